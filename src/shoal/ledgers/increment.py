"""The increment: the records that the next release may hold, and those that have to wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl

from shoal.connectors.ledger import RUN, Ledger
from shoal.connectors.ledger.identities import (
    ORIGINALS,
    Identities,
    as_text,
    count_known,
    read_originals,
    token_of,
)
from shoal.connectors.ledger.panel import ARRIVALS, PENDING, WAITED
from shoal.connectors.ledger.panel import DeferredRecords as DeferredRecords
from shoal.data.known_people import KnownPeople
from shoal.data.person_names import (
    names_of,
    names_of_nobody,
    person_name,
    refuse_spelling,
    taken_for_others,
)
from shoal.data.table import Table
from shoal.errors import InfeasibleError, InputError, PromiseError
from shoal.ledgers.methods.waiting import PRICED
from shoal.policy.policy import Policy

LAST_INCREMENTS = 4
"""Increments by which it is judged how many records the next one has."""
LOOKED_AT = 200
"""Names of an increment that are looked for under other spellings."""
INSERT, UPDATE, DELETE = "insert", "update", "delete"


@dataclass(frozen=True)
class CandidateRecords:
    """The records that the next release may hold.

    records: (n,) int64, the number of each record that is published already, -1 for new ones.
    subjects: (n,) uint64 tokens, None where every record is its own person.
    changed: (n,) bool, updates of published records. deleted: how many published records are.
    returning: people of the increment whose earlier records wait already: they have the records of
    both, and count once. waited: (n,) int32, how many increments each has waited through; None with
    methods that don't ask.
    """

    table: Table
    records: np.ndarray
    subjects: np.ndarray | None
    changed: np.ndarray
    deleted: int = 0
    returning: int = 0
    waited: np.ndarray | None = None

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
        new = self.table.frame.filter(pl.Series(self.records < 0))
        # they need no other promise, only more people
        reasons = tuple(reason.partition("; ")[0] for reason in reasons)
        waited = None if self.waited is None else self.waited[self.records < 0]
        return DeferredRecords(new, reasons, self.returning, waited=waited)

    def only(self, kept: np.ndarray) -> Self:
        """Some of the records; kept: (n,) bool."""
        return replace(self.take(np.flatnonzero(kept)), deleted=0)

    def take(self, rows: np.ndarray) -> Self:
        """These records, in this order."""
        columns = {n: v[rows] for n, v in vars(self).items() if isinstance(v, np.ndarray)}
        return replace(self, table=Table(self.table.frame[rows]), **columns)

    def identities(self) -> Identities:
        """Who stands behind each record."""
        changed = self.changed if self.changed.any() else None
        return Identities(self.records, self.subjects, None, changed)


def collect_candidates(
    frame: pl.DataFrame, policy: Policy, method: Any, ledger: Ledger
) -> CandidateRecords:
    """The increment with the deferred records and, for methods that need them, all published ones.

    People are tokens. Raises InputError for operations that the method can't do, PromiseError for
    people whom it has published before.
    """
    frame = with_tokens(as_text(frame), policy, ledger)
    operations = operations_of(frame, policy, method)
    arriving = frame.filter(pl.Series(operations == INSERT))
    published = _published(method, ledger)
    _refuse_known(arriving, policy, method, ledger)
    deferred = DeferredRecords.of(ledger) if ledger.exists else DeferredRecords()
    waiting = deferred.frame
    deleted = 0
    if (operations != INSERT).any():
        _check_changes(frame, operations, policy, published, waiting)
        changes = frame.filter(pl.Series(operations != INSERT))
        updates = frame.filter(pl.Series(operations == UPDATE))
        if waiting is not None:
            waiting = _waiting_after(changes, updates, policy, waiting)
        if published is not None:
            before = published.table.frame.height
            published = _published_after(changes, updates, policy, published)
            deleted = before - published.table.frame.height
    new = [part.select(frame.columns) for part in (waiting, arriving) if part is not None]
    table, records, changed = _joined(published, new, frame.columns)
    waited = np.zeros(table.height, dtype=np.int32)
    if waits_for_a_price(method):  # knows no published records, so those that wait are in front
        waited[: deferred.records] = deferred.increments_waited
    candidates = CandidateRecords(
        Table(table),
        records,
        None if policy.subject is None else as_numbers(table[policy.subject]),
        changed,
        deleted,
        _count_returning(arriving, waiting, policy),
        waited,
    )
    if policy.model.render.order == "input":
        return candidates
    # methods see the records by content, which hides the input's order
    columns = [name for name in table.columns if name != policy.subject]
    order = table.select(pl.arg_sort_by(columns, maintain_order=True)).to_series()
    return candidates.take(order.to_numpy())


def last_arrivals(ledger: Ledger, now: int) -> tuple[int, ...]:
    """The records of this increment and of the last three before it."""
    before = DeferredRecords.of(ledger).arrivals if ledger.exists else ()
    return (*before, now)[-LAST_INCREMENTS:]


def waits_for_a_price(method: Any) -> bool:
    """Whether new records may wait although a class could be made of them."""
    return getattr(method, "waiting", None) == PRICED


def operations_of(frame: pl.DataFrame, policy: Policy, method: Any) -> np.ndarray:
    """insert, update or delete for every record of the increment.

    Raises InputError for others, and where the method can't do them.
    """
    if policy.operation is None:
        return np.full(frame.height, INSERT, dtype=object)
    cells = frame[policy.operation].fill_null(INSERT)
    unknown = int((~cells.is_in([INSERT, UPDATE, DELETE])).sum())
    if unknown:
        raise InputError(
            f"attribute '{policy.operation}': records whose operation is not insert, update or"
            f" delete: {unknown}; correct them"
        )
    changes = int((cells != INSERT).sum())
    if changes and not method.changes:
        raise InputError(
            f"method '{method.name}': it can only add people, and the increment has updates or"
            f" deletions: {changes}; use m-invariance for people who leave or change, or leave"
            " these records out"
        )
    return cells.to_numpy()


def _published(method: Any, ledger: Ledger) -> CandidateRecords | None:
    """The whole records of the last release, where the method needs them and there are any."""
    if method.needs != "originals" or not ledger.exists:
        return None
    originals = read_originals(ledger)
    if originals is not None:
        frame, records = originals
        return CandidateRecords(Table(frame), records, None, np.zeros(frame.height, dtype=bool))
    if ledger.releases():
        raise InputError(
            f"method '{method.name}': needs the records of all earlier releases, which methods that"
            " publish increments don't keep; stay with such a method, or begin another ledger"
        )
    return None


def _refuse_known(arriving: pl.DataFrame, policy: Policy, method: Any, ledger: Ledger) -> None:
    """Raises PromiseError where people of the increment are published already."""
    if policy.subject is None or not ledger.exists:
        return
    known = count_known(ledger, as_numbers(arriving[policy.subject]))
    if known:
        raise PromiseError(
            f"history: people of the increment who are in earlier releases: {known}; somebody in"
            " two releases can be found where they overlap, so the release is withheld."
            f" '{method.name}' publishes each person once: leave their records out, or begin a"
            " ledger by sticky, which publishes people again, or by m-invariance"
        )


def _count_returning(arriving: pl.DataFrame, waiting: pl.DataFrame | None, policy: Policy) -> int:
    """How many people of the increment wait already."""
    if policy.subject is None or waiting is None:
        return 0
    people = arriving[policy.subject].drop_nulls().unique()
    return int(people.is_in(waiting[policy.subject].to_list()).sum())


# Updates and deletions


def _check_changes(
    frame: pl.DataFrame,
    operations: np.ndarray,
    policy: Policy,
    published: CandidateRecords | None,
    waiting: pl.DataFrame | None,
) -> None:
    """Raises InputError where an update or deletion does not name one person of the table."""
    assert policy.subject is not None
    people = frame[policy.subject].fill_null("").to_numpy()
    findings = []
    if len(np.unique(people)) < len(people):
        findings.append(
            "increment: some people have several records; with updates or deletions, give everybody"
            " one record"
        )
    known = set() if published is None else set(published.table.frame[policy.subject].to_list())
    known |= set() if waiting is None else set(waiting[policy.subject].to_list())
    strangers = sum(person not in known for person in people[operations != INSERT].tolist())
    if strangers:
        findings.append(
            f"increment: updates or deletions of people who are not in the table: {strangers};"
            " leave them out"
        )
    if findings:
        raise InputError.from_findings(findings)


def _waiting_after(
    changes: pl.DataFrame, updates: pl.DataFrame, policy: Policy, waiting: pl.DataFrame
) -> pl.DataFrame:
    """The waiting records after updates and deletions."""
    subject = policy.subject
    assert subject is not None
    stays = ~_is_one_of(waiting[subject], changes[subject])
    newer = updates.filter(_is_one_of(updates[subject], waiting[subject]))
    return pl.concat([waiting.filter(stays), newer.select(waiting.columns)])


def _published_after(
    changes: pl.DataFrame, updates: pl.DataFrame, policy: Policy, published: CandidateRecords
) -> CandidateRecords:
    """The published records after updates and deletions."""
    subject = policy.subject
    assert subject is not None
    person = published.table.frame[subject]
    stays = ~_is_one_of(person, changes[subject])
    newer = updates.filter(_is_one_of(updates[subject], person))
    number = dict(zip(person.to_list(), published.records.tolist(), strict=True))
    kept = published.records[stays.to_numpy()]
    updated = np.array([number[name] for name in newer[subject].to_list()], dtype=np.int64)
    frame = published.table.frame
    return CandidateRecords(
        Table(pl.concat([frame.filter(stays), newer.select(frame.columns)])),
        np.concatenate([kept, updated]),
        None,
        np.concatenate([np.zeros(len(kept), dtype=bool), np.ones(len(updated), dtype=bool)]),
    )


def _is_one_of(people: pl.Series, others: pl.Series) -> pl.Series:
    return people.is_in(others.to_list())


# One table


def _joined(
    published: CandidateRecords | None, new: Sequence[pl.DataFrame], columns: list[str]
) -> tuple[pl.DataFrame, np.ndarray, np.ndarray]:
    """Published records and behind them new ones; the number of each, and which are updates."""
    if published is None:
        table = pl.concat(new)
        return table, np.full(table.height, -1), np.zeros(table.height, dtype=bool)
    table = pl.concat([published.table.frame.select(columns), *new])
    fresh = table.height - published.table.frame.height
    records = np.concatenate([published.records, np.full(fresh, -1)]).astype(np.int64)
    changed = np.concatenate([published.changed, np.zeros(fresh, dtype=bool)])
    return table, records, changed


# What each step of a ledger writes about people: keyed tokens, never names.
#
# Whole records are kept only while they wait, and by methods that publish the whole table anew.


TRANSIENT_FILES = (PENDING, ORIGINALS, WAITED, ARRIVALS)
"""The files that each step replaces; those of the step before are removed."""


def write_known(ledger: Ledger, identities: Identities, folder: Path) -> tuple[int, ...]:
    """Adds the release's people to those ever published; the steps whose runs stay in use.

    A run is merged with later ones of no greater size, so that there are few and each token is
    seldom written again: an increment writes the same however many people the ledger holds.
    """
    if identities.subjects is None:
        return ()
    runs = ledger.runs()
    people = np.unique(identities.subjects[identities.is_real])
    fresh = people[~KnownPeople(list(runs.values())).holds(people)]
    stay = list(runs)
    while stay and len(fresh) and len(runs[stay[-1]]) <= len(fresh):
        fresh = np.sort(np.concatenate([runs[stay.pop()], fresh]), kind="stable")
    if len(fresh):
        fresh.astype("<u8", copy=False).tofile(folder / RUN)
    return tuple(stay)


def with_tokens(frame: pl.DataFrame, policy: Policy, ledger: Ledger) -> pl.DataFrame:
    """The subject column, which is text, as tokens under the ledger's key."""
    if policy.subject is None or not frame.height:
        return frame
    if ledger.exists:
        _refuse_other_spellings(frame[policy.subject], ledger)
    return tokens_of(frame, policy, ledger.key)


def _refuse_other_spellings(names: pl.Series, ledger: Ledger) -> None:
    """Raises InputError where people come again under ids that are spelled otherwise.

    A few names are looked at: a program that writes ids otherwise does so in all of them.
    """
    known = KnownPeople(list(ledger.runs().values()))

    def is_known(name: str) -> bool:
        token = int(token_of(name, ledger.key), 16)
        return bool(known.holds(np.array([token], dtype=np.uint64))[0])

    people = names_of(names).unique().sort()
    some = people.filter(people != "")[:LOOKED_AT].to_list()
    refuse_spelling("earlier releases", "increment", *taken_for_others(some, is_known))


def tokens_of(frame: pl.DataFrame, policy: Policy, key: bytes) -> pl.DataFrame:
    """The subject column as tokens under any key; the policy has a subject."""
    assert policy.subject is not None
    names = frame[policy.subject]
    absent = names_of_nobody(policy.model.missing_values)
    distinct = names.unique()
    people = [person_name(name or "") for name in distinct.to_list()]
    tokens = [None if name in absent else token_of(name, key) for name in people]
    column = names.replace_strict(
        distinct, pl.Series(tokens, dtype=pl.String), return_dtype=pl.String
    )
    return frame.with_columns(column)


def as_numbers(tokens: pl.Series) -> np.ndarray:
    """(n,) uint64 of sixteen hexadecimal digits each; 0 for none."""
    text = tokens.fill_null("0" * 16).to_list()
    return np.frombuffer(bytes.fromhex("".join(text)), dtype=">u8").astype(np.uint64)
