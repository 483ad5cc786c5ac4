"""The increment: the records that the next release may hold, and those that have to wait."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import polars as pl

from shoal.auditor.ledger import release_view
from shoal.auditor.ledger.terms import Values, compared, joined, mode_of, returns_people, values_of
from shoal.connectors import files
from shoal.connectors.ledger import DATA, Ledger, private
from shoal.connectors.ledger.private import DeferredRecords, Identities, KnownPeople, NamedPeople
from shoal.data import ledger_view, warnings
from shoal.data.findings import RowsFinding, counted_records
from shoal.data.person_names import names_of, names_of_nobody, person_name, refuse_spelling
from shoal.data.table import Table
from shoal.errors import ANOTHER_LEDGER, TWICE, InfeasibleError, InputError, PromiseError
from shoal.ledgers.methods.waiting import PRICED
from shoal.policy.binding.table import BoundTable, bound_table
from shoal.policy.policy import Policy

INSERT, UPDATE, DELETE = "insert", "update", "delete"
NO_ROOM = "no class has room for them yet"


@dataclass(frozen=True)
class Terms:
    """What the next release of a ledger is made under: the policy, its method, the ledger."""

    policy: Policy
    method: Any
    ledger: Ledger

    @property
    def returns_people(self) -> bool:
        return returns_people(self.method)

    @property
    def is_priced(self) -> bool:
        """Whether new records may wait although a class could be made of them."""
        return getattr(self.method, "waiting", None) == PRICED

    @property
    def guards(self) -> str:
        """What keeps the releases safe together, as their certificates state it."""
        is_company = self.returns_people and mode_of(self.policy.model) == ledger_view.TOGETHER
        return release_view.COMPANY if is_company else str(self.method.guards)

    @property
    def compared(self) -> tuple[str, ...]:
        """The sensitive attributes that some promise compares with the whole table."""
        return compared(self.policy.build_promises())

    @property
    def looks_back(self) -> bool:
        """Whether a release is made from all earlier ones, and not from the last alone."""
        is_whole = self.method.covers == "table" or self.returns_people
        return is_whole or bool(self.compared)

    def bound(self, table: Table) -> BoundTable:
        """`bound_table`; once there is a release, what does not fit can't be made to fit."""
        try:
            return bound_table(table, self.policy)
        except InputError as unfit:
            if not self.ledger.releases():
                raise
            way_out = f"leave such records out, or begin another ledger with a wider one ({TWICE})"
            first, *others = unfit.found
            said = f"{first}. The ledger keeps its policy: {way_out}"
            raise InputError(RowsFinding(said, getattr(first, "rows", ())), others) from None

    def check_plain_columns(self, names: list[str], deferred: DeferredRecords) -> None:
        """Raises InputError where columns that the policy publishes unnamed come or go."""
        is_plain, releases = self.policy.model.other == "plain", self.ledger.releases()
        earlier = deferred.frame
        if is_plain and earlier is None and releases:
            earlier = files.read_as(self.ledger.folder(releases[-1]) / DATA).frame
        if is_plain and earlier is not None:
            InputError.raise_for(
                f"column '{name}': is published by 'other: plain', and either the increment or the"
                " ledger's earlier records lack it; give every increment the same columns"
                for name in sorted({*earlier.columns} ^ {*names})
                if name not in self.policy.model.attributes
            )

    def beside_the_table(self) -> "Terms":
        """The terms of the next release; of an increment, with the values of what it joins."""
        ledger = self.ledger
        names = self.compared if self.method.covers == "increment" else ()
        releases = ledger.releases() if names else []
        if not releases:
            return self
        table: Values = {name: Counter() for name in names}
        for part in release_view.parts_of(ledger, releases[-1]):
            frame = files.read_as(ledger.folder(part) / DATA).frame
            own = values_of(frame, Identities.read(ledger.step_of(part)), self.policy.model, names)
            table = joined(table, own)
        return replace(self, policy=replace(self.policy, earlier=table))


@dataclass(frozen=True)
class CandidateRecords:
    """The records that the next release may hold.

    records: (n,) int64, the number of each record that is published already, -1 for new ones.
    rows: (n,) int32, where each stands in the increment, -1 for those of before.
    subject: the column of people's tokens, None where every record is its own person.
    changed: (n,) bool, updates of published records. deleted: how many published records are.
    returning: people of the increment whose earlier records wait already: they have the records of
    both, and count once. waited: (n,) int32, how many increments each has waited through.
    """

    table: Table
    records: np.ndarray
    rows: np.ndarray
    subject: str | None
    changed: np.ndarray
    waited: np.ndarray
    deleted: int = 0
    returning: int = 0

    @classmethod
    def of(
        cls,
        frame: pl.DataFrame,
        subject: str | None,
        records: np.ndarray | int = -1,
        rows: np.ndarray | int = -1,
    ) -> Self:
        """Records that are no updates and have not waited. records, rows: their numbers."""
        numbers = np.broadcast_to(np.asarray(records, dtype=np.int64), frame.height)
        places = np.broadcast_to(np.asarray(rows, dtype=np.int32), frame.height)
        none = np.zeros(frame.height, dtype=np.int32)
        return cls(Table(frame), numbers, places, subject, none.astype(bool), none)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """All records of these parts, one part after the other."""
        names = "records", "rows", "changed", "waited"
        arrays: Any = {n: np.concatenate([getattr(part, n) for part in parts]) for n in names}
        table = Table(pl.concat([part.table.frame for part in parts]))
        return replace(parts[0], table=table, **arrays)

    @property
    def subjects(self) -> np.ndarray | None:
        """(n,) uint64 tokens, None where every record is its own person."""
        return None if self.subject is None else private.as_numbers(self.table.frame[self.subject])

    def shows_new(self, kept: np.ndarray | slice = slice(None)) -> bool:
        """Whether a release of these records shows anything new; kept: (n,) bool."""
        return bool((self.records[kept] < 0).any()) or bool(self.changed.any()) or self.deleted > 0

    def defer(self, *reasons: str) -> DeferredRecords:
        """All new records wait. Raises InfeasibleError where others would have to, too."""
        if self.changed.any() or self.deleted:
            raise InfeasibleError(
                f"increment: updates ({int(self.changed.sum())}) and deletions ({self.deleted})"
                f" can't wait, and no release is possible: {reasons[0]}; add records"
            )
        new = self.records < 0
        frame = self.table.frame.filter(pl.Series(new))
        return DeferredRecords(
            frame, without_ways_out(reasons), self.returning, waited=self.waited[new]
        )

    def waiting(self, kept: np.ndarray) -> DeferredRecords:
        """The records that are in no class wait for one; kept: (n,) bool, those that are."""
        if kept.all():
            return DeferredRecords(returning=self.returning)
        return self.only(~kept).defer(NO_ROOM)

    def only(self, kept: np.ndarray) -> Self:
        """Some of the records; kept: (n,) bool."""
        return replace(self.take(np.flatnonzero(kept)), deleted=0)

    def take(self, rows: np.ndarray) -> Self:
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        columns = {n: v[rows] for n, v in named.items() if isinstance(v, np.ndarray)}
        return replace(self, table=Table(self.table.frame[rows]), **columns)

    def ordered_by(self, columns: list[str]) -> Self:
        order = self.table.frame.select(pl.arg_sort_by(columns, maintain_order=True)).to_series()
        return self.take(order.to_numpy())

    def lent_to_the_deleted(self, frame: pl.DataFrame, terms: Terms) -> Table:
        """An increment in which whoever leaves, and needs no values, has those of before."""
        before = self.table.frame.filter(pl.Series(self.rows < 0)).head(1)
        leaves = (operations_of(frame, terms) == DELETE) & bool(before.height)
        places = np.where(leaves, frame.height, np.arange(frame.height))
        return Table(pl.concat([frame, before])[places])

    def identities(self) -> Identities:
        """Who stands behind each record."""
        changed = self.changed if self.changed.any() else None
        return Identities(self.records, self.subjects, None, changed)


def without_ways_out(reasons: Sequence[str]) -> tuple[str, ...]:
    """Why records wait: they need no other promise, only more people."""
    return tuple(reason.partition("; ")[0] for reason in reasons)


def collect_candidates(
    frame: pl.DataFrame, deferred: DeferredRecords, terms: Terms
) -> CandidateRecords:
    """The increment with the deferred records and, for methods that need them, all published ones.

    People are tokens. Raises InputError for operations that the method can't do, PromiseError for
    people whom it has published before.
    """
    frame, subject = with_tokens(frame, terms), terms.policy.subject
    operations = operations_of(frame, terms)
    is_new = pl.Series(operations == INSERT)
    arriving = CandidateRecords.of(frame.filter(is_new), subject, rows=is_new.arg_true().to_numpy())
    published = _published(frame.columns, terms)
    _refuse_known(arriving, terms)
    waiting = CandidateRecords.of(deferred.frame_like(frame), subject)
    waiting = replace(waiting, waited=deferred.increments_waited)
    deleted = returning = 0
    if not is_new.all():
        assert subject is not None  # checked with the policy
        _check_changes(frame[subject], ~is_new, [waiting, published])
        changed, updated = frame[subject].filter(~is_new), np.flatnonzero(operations == UPDATE)
        updates = CandidateRecords.of(frame[updated], subject, rows=updated)
        waiting = _after(changed, updates, waiting)
        before = len(published.records)
        published = _after(changed, updates, published)
        deleted = before - len(published.records)
    if subject is not None:
        people = arriving.table.frame[subject].drop_nulls().unique()
        returning = int(people.is_in(waiting.table.frame[subject].to_list()).sum())
    joined = CandidateRecords.joined([published, waiting, arriving])
    candidates = replace(joined, deleted=deleted, returning=returning)
    if terms.method.guards == "signatures":
        _require_one_record(candidates, terms.policy.operation is not None)
    if terms.policy.model.render.order == "input":
        return candidates
    # methods see the records by content, which hides the input's order
    return candidates.ordered_by([name for name in frame.columns if name != subject])


def operations_of(frame: pl.DataFrame, terms: Terms) -> np.ndarray:
    """The operation of every record; raises InputError for what the method can't do."""
    name, method = terms.policy.operation, terms.method
    if name is None:
        _refuse_dropped(frame, terms)
        return np.full(frame.height, INSERT, dtype=object)
    check_operations(frame[name])
    cells = frame[name].fill_null(INSERT)
    changes = (cells != INSERT).arg_true().to_numpy()
    if len(changes) and not method.changes:
        way_out = f"{ANOTHER_LEDGER} by" if terms.ledger.releases() else "use"
        what = (
            f"method '{method.name}': it can only add people, and the increment has updates or"
            " deletions"
        )
        remedy = f"{way_out} m-invariance for people who leave or change"
        raise InputError(counted_records(what, changes, f"{remedy}, or leave these records out"))
    return cells.to_numpy()


def check_operations(cells: pl.Series) -> None:
    """Raises InputError for operations other than insert, update, delete and none."""
    known = cells.cast(pl.String).fill_null(INSERT).is_in([INSERT, UPDATE, DELETE])
    unknown = (~known).arg_true().to_numpy()
    if len(unknown):
        what = f"attribute '{cells.name}': records whose operation is not insert, update or delete"
        raise InputError(counted_records(what, unknown, "correct them"))


def _refuse_dropped(frame: pl.DataFrame, terms: Terms) -> None:
    """Raises InputError where a dropped column says who leaves or changes: releases would show them
    as people who come.
    """
    known = [INSERT, UPDATE, DELETE]
    for cells in frame.get_columns():
        if terms.policy.role_of(cells.name) not in warnings.REMOVED_ROLES:
            continue
        said = cells.cast(pl.String).drop_nulls().str.to_lowercase()
        changes = (said != INSERT).sum()
        if changes and said.is_in(known).all():
            raise InputError(
                f"column '{cells.name}': asks for updates or deletions in {changes} of"
                f" {frame.height} records, and the policy drops it; give it the role 'operation' in"
                " a ledger by m-invariance, or leave the column and these records out"
            )


def _published(columns: list[str], terms: Terms) -> CandidateRecords:
    """The whole records of the last release, where the method needs them; else none."""
    ledger, subject = terms.ledger, terms.policy.subject
    originals = private.read_originals(ledger) if terms.method.needs == "originals" else None
    if originals is not None:
        frame, records = originals
        return CandidateRecords.of(private.in_columns(frame, columns), subject, records)
    if terms.method.needs == "originals" and ledger.releases():
        raise InputError(
            f"method '{terms.method.name}': needs the records of all earlier releases, which"
            " methods that publish increments don't keep; stay with such a method, or"
            f" {ANOTHER_LEDGER}"
        )
    return CandidateRecords.of(pl.DataFrame(schema=dict.fromkeys(columns, pl.String)), subject)


def _refuse_known(arriving: CandidateRecords, terms: Terms) -> None:
    """Raises PromiseError where people of the increment are published already."""
    people = arriving.subjects
    if people is None:
        return
    is_known = KnownPeople(terms.ledger).holds(people)
    if is_known.any():
        remedy = (
            "send the record of somebody who is in the table as an 'update', and leave out people"
            " who were deleted"
            if terms.method.changes
            else f"'{terms.method.name}' publishes each person once: leave their records out, or"
            " begin a ledger by sticky, which publishes people again, or by m-invariance, but"
            f" {TWICE}"
        )
        what = "history: people of the increment who are in earlier releases"
        why = "somebody in two releases can be found where they overlap, so the release is withheld"
        rows, known = arriving.rows[is_known], len(np.unique(people[is_known]))
        raise PromiseError(counted_records(what, rows, f"{why}; {remedy}", known))


def _require_one_record(candidates: CandidateRecords, takes_updates: bool) -> None:
    """Raises InputError where signatures can't guard a person, who has several records."""
    several = pl.Series(candidates.subjects).is_duplicated().to_numpy()
    if several.any():
        what = "increment: records of people who have several, including those that wait"
        remedy = "signatures need one record a person, so leave further ones out"
        if takes_updates:
            remedy += ", or send the record of somebody who waits as an 'update'"
        raise InputError(counted_records(what, candidates.rows[several], remedy))


# Updates and deletions


def _check_changes(
    people: pl.Series, is_change: pl.Series, known: Sequence[CandidateRecords]
) -> None:
    """Raises InputError where an update or deletion does not name one person of the table.

    people: of the increment. is_change: who leave or change. known: who may.
    """
    findings = []
    several = people.is_duplicated().arg_true().to_numpy()
    if len(several):
        what = "increment: records of people who have several"
        remedy = "with updates or deletions, give everybody one record"
        findings.append(counted_records(what, several, remedy))
    known_people = pl.concat([part.table.frame[people.name].drop_nulls() for part in known])
    is_known = people.is_in(known_people.implode()).fill_null(False)
    strangers = (is_change & ~is_known).arg_true().to_numpy()
    if len(strangers):
        what = "increment: updates or deletions of people who are not in the table"
        remedy = "correct their ids, or leave them out; a deletion that is left out deletes nobody"
        findings.append(counted_records(what, strangers, remedy))
    InputError.raise_for(findings)


def _after(
    changed: pl.Series, updates: CandidateRecords, before: CandidateRecords
) -> CandidateRecords:
    """The table's records after `changed` people's updates, which come last, and deletions."""
    people = before.table.frame[changed.name]
    stays = ~people.is_in(changed.to_list()).fill_null(False).to_numpy()
    newer = updates.only(updates.table.frame[changed.name].is_in(people.to_list()).to_numpy())
    number = dict(zip(people.to_list(), before.records.tolist(), strict=True))
    names = newer.table.frame[changed.name].to_list()
    numbers = np.array([number[name] for name in names], dtype=np.int64)
    updated = replace(newer, records=numbers, changed=numbers >= 0)
    return CandidateRecords.joined([before.only(stays), updated])


# People, by keyed tokens and never by name.


def people_of(frame: pl.DataFrame, deferred: DeferredRecords, terms: Terms) -> NamedPeople:
    """Everybody in the increment, or who waits.

    Raises InputError where people who are published or wait come again under ids that are spelled
    otherwise.
    """
    subject = terms.policy.subject
    if subject is None:
        return NamedPeople()
    leaves = operations_of(frame, terms) == DELETE
    key = terms.ledger.key
    waiting = private.as_numbers(deferred.frame_like(frame)[subject].drop_nulls())
    known = KnownPeople(terms.ledger)
    known.add_and_count_known(waiting, deferred.named)
    taken, named = 0, deferred.named.only(waiting)
    for rows in (leaves, ~leaves):  # who leaves stands beside nobody who comes
        names = names_of(frame[subject].filter(pl.Series(rows))).unique()
        names = names.filter(~names.is_in(names_of_nobody(terms.policy.model.no_names)))
        own = NamedPeople.of(names, key)
        taken += known.taken_for_others(names, own, key)
        named = own.joined(named)
    refuse_spelling("earlier increments", "increment", taken)
    return named


def with_tokens(frame: pl.DataFrame, terms: Terms) -> pl.DataFrame:
    """The subject column, which is text, as tokens under the ledger's key."""
    subject = terms.policy.subject
    if subject is None or not frame.height:
        return frame
    return tokens_of(frame, subject, terms.policy.model.no_names, terms.ledger.key)


def tokens_of(frame: pl.DataFrame, subject: str, no_names: list[str], key: bytes) -> pl.DataFrame:
    """The subject column as tokens under any key."""
    names = frame[subject]
    absent = names_of_nobody(no_names)
    distinct = names.unique()
    people = [person_name(name or "") for name in distinct.to_list()]
    tokens = [None if name in absent else private.token_of(name, key) for name in people]
    column = names.replace_strict(
        distinct, pl.Series(tokens, dtype=pl.String), return_dtype=pl.String
    )
    return frame.with_columns(column)
