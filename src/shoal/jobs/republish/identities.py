"""What a ledger's private part remembers of people: who stands behind each published row, and who
waits.

Subjects are kept as keyed tokens, never as they are named. Whole records are kept only while they
wait, and by methods that publish the whole table anew.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.data.table import Table, encode_text
from shoal.errors import InfeasibleError, InputError, LedgerError, PromiseError
from shoal.policy.policy import Policy
from shoal.privacy.history import KnownPeople
from shoal.state.ledger import RUN, Ledger

ROWS, PENDING, ORIGINALS = "rows.parquet", "pending.parquet", "originals.parquet"
PASSING = (PENDING, ORIGINALS)
"""The files that each step replaces; those of the step before are removed."""

INSERT, UPDATE, DELETE = "insert", "update", "delete"
_NUMBER = ""  # the column of record numbers: no data column has an empty name


@dataclass(frozen=True)
class Identities:
    """Who stands behind each published row.

    records: (n,) int64, the running number of each record, the same in every release; -1 where it
        has none yet or the row is invented. subjects: (n,) uint64 tokens, None where every record
        is its own person.
    invented, changed: (n,) bool; None where no row is. changed: the record is an update of what was
    published.
    """

    records: np.ndarray
    subjects: np.ndarray | None = None
    invented: np.ndarray | None = None
    changed: np.ndarray | None = None

    @property
    def is_real(self) -> np.ndarray:
        """(n,) bool; all rows but the invented ones."""
        return np.ones(len(self.records), dtype=bool) if self.invented is None else ~self.invented

    @property
    def is_changed(self) -> np.ndarray:
        return np.zeros(len(self.records), dtype=bool) if self.changed is None else self.changed

    def at(self, rows: np.ndarray) -> Identities:
        """The same for some of the rows, in that order."""
        parts = (self.records, self.subjects, self.invented, self.changed)
        return Identities(*(None if part is None else part[rows] for part in parts))  # type: ignore[arg-type]

    def numbered(self, following: int) -> tuple[Identities, int]:
        """The same, with numbers from `following` on for new records; and the number after the
        last.
        """
        new = (self.records < 0) & self.is_real
        records = self.records.copy()
        records[new] = following + np.arange(int(new.sum()))
        return replace(self, records=records), following + int(new.sum())

    @classmethod
    def joined(cls, parts: Sequence[Identities]) -> Identities:
        """The rows of several releases or increments, one behind the other."""
        subjects = [part.subjects for part in parts if part.subjects is not None]
        return cls(
            np.concatenate([part.records for part in parts]),
            np.concatenate(subjects) if len(subjects) == len(parts) else None,
            np.concatenate([~part.is_real for part in parts]),
            np.concatenate([part.is_changed for part in parts]),
        )

    def write(self, folder: Path) -> None:
        columns = {
            "record": self.records,
            "subject": self.subjects,
            "invented": self.invented,
            "changed": self.changed,
        }
        told = {name: column for name, column in columns.items() if column is not None}
        _write(pl.DataFrame(told), folder / ROWS)

    @classmethod
    def read(cls, folder: Path) -> Identities:
        """Those of the release that a private step led to; raises LedgerError where they are lost."""
        frame = _read(folder / ROWS)
        if frame is None:
            raise LedgerError(
                f"private step {folder.name}: {ROWS} is missing; restore the private part"
            )
        told = {name: frame[name].to_numpy() for name in frame.columns}
        return cls(told["record"], told.get("subject"), told.get("invented"), told.get("changed"))


@dataclass(frozen=True)
class DeferredRecords:
    """Records that wait for a later release, and why. again: people of the increment who waited
    already.
    """

    frame: pl.DataFrame | None = None
    reasons: tuple[str, ...] = ()
    again: int = 0

    @classmethod
    def of(cls, ledger: Ledger) -> DeferredRecords:
        """Those of the last step."""
        return cls(_read(ledger.step_folder(ledger.last_step().number) / PENDING))

    @property
    def records(self) -> int:
        return 0 if self.frame is None else self.frame.height

    def write(self, folder: Path) -> None:
        if self.frame is not None and self.frame.height:
            _write(self.frame, folder / PENDING)


@dataclass(frozen=True)
class CandidateRecords:
    """The records that the next release may hold.

    records: (n,) int64, the number of each record that is published already, -1 for new ones.
    subjects: (n,) uint64 tokens, None where every record is its own person.
    changed: (n,) bool, updates of published records. left: how many published records are deleted.
    again: people of the increment who waited already: they have the records of both, and count
    once.
    """

    table: Table
    records: np.ndarray
    subjects: np.ndarray | None
    changed: np.ndarray
    left: int = 0
    again: int = 0

    @property
    def is_new(self) -> bool:
        """Whether anything is not as it is published already."""
        return self.shows_new(np.ones(len(self.records), dtype=bool))

    def shows_new(self, kept: np.ndarray) -> bool:
        """Whether a release of these records shows anything that is not published already; kept:
        (n,) bool.
        """
        return bool((self.records[kept] < 0).any()) or bool(self.changed.any()) or self.left > 0

    def waiting_for(self, *reasons: str) -> DeferredRecords:
        """All new records wait. Raises InfeasibleError where others would have to, too."""
        if self.changed.any() or self.left:
            raise InfeasibleError(
                f"increment: updates ({int(self.changed.sum())}) and deletions ({self.left}) can't"
                f" wait, and no release is possible: {reasons[0]}; add records"
            )
        return DeferredRecords(
            self.table.frame.filter(pl.Series(self.records < 0)), reasons, self.again
        )

    def only(self, kept: np.ndarray) -> CandidateRecords:
        """The same for some of the records."""
        subjects = None if self.subjects is None else self.subjects[kept]
        table = Table(self.table.frame.filter(pl.Series(kept)))
        return replace(
            self,
            table=table,
            records=self.records[kept],
            subjects=subjects,
            changed=self.changed[kept],
            left=0,
        )

    def identities(self) -> Identities:
        """Who stands behind each record."""
        return Identities(
            self.records, self.subjects, None, self.changed if self.changed.any() else None
        )


def collect_candidates(
    frame: pl.DataFrame, policy: Policy, method: Any, ledger: Ledger
) -> CandidateRecords:
    """The increment with what waited and, for methods that need them, all published records; people
    as tokens.

    Raises InputError for operations that the method can't do, PromiseError for people it has
    published before.
    """
    frame = _with_tokens(as_text(frame), policy, ledger)
    operations = _operations(frame, policy, method)
    last = ledger.step_folder(ledger.last_step().number) if ledger.exists else None
    waited = None if last is None else _read(last / PENDING)
    originals = None if last is None or method.needs != "originals" else _read(last / ORIGINALS)
    if last is not None and method.needs == "originals" and originals is None and ledger.releases():
        raise InputError(
            f"method '{method.name}': needs the records of all earlier releases, which methods that"
            " publish increments don't keep; stay with such a method, or begin another ledger"
        )
    arriving = frame.filter(pl.Series(operations == INSERT))
    _refuse_known(arriving, policy, method, ledger)
    published = (
        None
        if originals is None
        else Published(originals.drop(_NUMBER), originals[_NUMBER].to_numpy())
    )
    left = 0
    if (operations != INSERT).any():
        published, waited, left = _changed(frame, operations, policy, published, waited)
    new = [part.select(frame.columns) for part in (waited, arriving) if part is not None]
    table = pl.concat(
        [*([] if published is None else [published.frame.select(frame.columns)]), *new]
    )
    fresh = table.height - (0 if published is None else published.frame.height)
    records = np.concatenate(
        [[] if published is None else published.records, np.full(fresh, -1)]
    ).astype(np.int64)
    changed = np.zeros(table.height, dtype=bool)
    if published is not None and published.changed is not None:
        changed[: len(published.changed)] = published.changed
    order = _by_content(table, policy)
    table, records, changed = table[order], records[order], changed[order]
    subjects = None if policy.subject is None else _as_numbers(table[policy.subject])
    return CandidateRecords(
        Table(table), records, subjects, changed, left, _again(arriving, waited, policy)
    )


def _again(arriving: pl.DataFrame, waited: pl.DataFrame | None, policy: Policy) -> int:
    """How many people of the increment waited already."""
    if policy.subject is None or waited is None:
        return 0
    return int(
        arriving[policy.subject].drop_nulls().unique().is_in(waited[policy.subject].to_list()).sum()
    )


@dataclass(frozen=True)
class Published:
    """Whole records of the last release, with their numbers."""

    frame: pl.DataFrame
    records: np.ndarray
    changed: np.ndarray | None = None


def _changed(
    frame: pl.DataFrame,
    operations: np.ndarray,
    policy: Policy,
    published: Published | None,
    waited: pl.DataFrame | None,
) -> tuple[Published | None, pl.DataFrame | None, int]:
    """Published and waiting records after updates and deletions, and how many published ones are
    deleted.
    """
    assert policy.subject is not None
    who = frame[policy.subject].fill_null("").to_numpy()
    touched = operations != INSERT
    findings = []
    if len(np.unique(who)) < len(who):
        findings.append(
            "increment: some people come twice; with updates or deletions, give everybody one"
            " record"
        )
    known = set() if published is None else set(published.frame[policy.subject].to_list())
    held = set() if waited is None else set(waited[policy.subject].to_list())
    strangers = sum(person not in known and person not in held for person in who[touched].tolist())
    if strangers:
        findings.append(
            f"increment: updates or deletions of people who are not in the table: {strangers};"
            " leave them out"
        )
    if findings:
        raise InputError.from_findings(findings)
    updates = frame.filter(pl.Series(operations == UPDATE))
    if waited is not None:
        stays = ~waited[policy.subject].is_in(who[touched].tolist())
        newer = updates.filter(updates[policy.subject].is_in(sorted(held)))
        waited = pl.concat([waited.filter(stays), newer.select(waited.columns)])
    if published is None:
        return None, waited, 0
    person = published.frame[policy.subject]
    stays = ~person.is_in(who[touched].tolist())
    newer = updates.filter(updates[policy.subject].is_in(person.to_list()))
    number = dict(zip(person.to_list(), published.records.tolist(), strict=True))
    records = np.array([number[name] for name in newer[policy.subject].to_list()], dtype=np.int64)
    kept = published.records[stays.to_numpy()]
    after = Published(
        pl.concat([published.frame.filter(stays), newer.select(published.frame.columns)]),
        np.concatenate([kept, records]),
        np.concatenate([np.zeros(len(kept), dtype=bool), np.ones(len(records), dtype=bool)]),
    )
    return after, waited, published.frame.height - after.frame.height


def _operations(frame: pl.DataFrame, policy: Policy, method: Any) -> np.ndarray:
    """insert, update or delete for every record of the increment."""
    if policy.operation is None:
        return np.full(frame.height, INSERT, dtype=object)
    cells = frame[policy.operation].fill_null(INSERT)
    strange = int((~cells.is_in([INSERT, UPDATE, DELETE])).sum())
    if strange:
        raise InputError(
            f"attribute '{policy.operation}': records with another operation than insert, update or"
            f" delete: {strange}; mend them"
        )
    others = int((cells != INSERT).sum())
    if others and not method.changes:
        raise InputError(
            f"method '{method.name}': it can only add people, and the increment has updates or"
            f" deletions: {others}; use m-invariance for those who leave or change, or leave these"
            " records out"
        )
    return cells.to_numpy()


def _refuse_known(arriving: pl.DataFrame, policy: Policy, method: Any, ledger: Ledger) -> None:
    if policy.subject is None or not ledger.exists:
        return
    people = np.unique(_as_numbers(arriving[policy.subject]))
    again = int(KnownPeople(known_people(ledger)).holds(people).sum())
    if again:
        raise PromiseError(
            f"history: people of the increment who are in earlier releases: {again}; who is in two"
            f" can be found where they overlap, so the release is withheld. '{method.name}'"
            " publishes each person once: leave their records out, or begin a ledger by"
            " m-invariance, which publishes changed records"
        )


def known_people(ledger: Ledger) -> list[np.ndarray]:
    """The tokens of everybody who was ever published, in sorted runs."""
    return list(ledger.runs().values())


def write_known(ledger: Ledger, identities: Identities, folder: Path) -> tuple[int, ...]:
    """Adds the release's people to those ever published; the steps whose runs stay in use.

    A run is merged with later ones of no greater size, so that there are few and each token is
    seldom written again: an increment writes the same however many people the ledger holds.
    """
    if identities.subjects is None:
        return ()
    runs = ledger.runs()
    people = np.sort(identities.subjects[identities.is_real])
    people = people[np.concatenate([[True], people[1:] != people[:-1]])] if len(people) else people
    fresh = people[~KnownPeople(list(runs.values())).holds(people)]
    stay = list(runs)
    while stay and len(fresh) and len(runs[stay[-1]]) <= len(fresh):
        fresh = np.sort(np.concatenate([runs[stay.pop()], fresh]), kind="stable")
    if len(fresh):
        fresh.astype("<u8", copy=False).tofile(folder / RUN)
    return tuple(stay)


def carry_over(ledger: Ledger, folder: Path) -> None:
    """What a step without a release leaves as it was."""
    before = ledger.step_folder(ledger.last_step().number)
    if (before / ORIGINALS).exists():
        os.link(before / ORIGINALS, folder / ORIGINALS)


def write_originals(records: pl.DataFrame, identities: Identities, folder: Path) -> None:
    """The whole records behind the real rows of a release, for methods that publish them anew."""
    _write(
        records.with_columns(pl.Series(_NUMBER, identities.records[identities.is_real])),
        folder / ORIGINALS,
    )


def _with_tokens(frame: pl.DataFrame, policy: Policy, ledger: Ledger) -> pl.DataFrame:
    """The subject column as tokens: 64 bits of BLAKE2 under the ledger's key, as hexadecimal
    digits.
    """
    if policy.subject is None or not frame.height:
        return frame
    column = encode_text(frame[policy.subject])
    key = ledger.key
    empty = {"", *policy.model.missing_values}
    tokens = [
        (
            hashlib.blake2b(name.encode(), digest_size=8, key=key).hexdigest()
            if name not in empty
            else None
        )
        for name in (cell.strip() for cell in column.cells)
    ]
    return frame.with_columns(
        pl.Series(policy.subject, tokens, dtype=pl.String).gather(column.codes)
    )


def _as_numbers(tokens: pl.Series) -> np.ndarray:
    """(n,) uint64 of sixteen hexadecimal digits each; 0 for none."""
    text = tokens.fill_null("0" * 16).to_list()
    return np.frombuffer(bytes.fromhex("".join(text)), dtype=">u8").astype(np.uint64)


def _by_content(frame: pl.DataFrame, policy: Policy) -> np.ndarray:
    """The order in which methods see the records: by what they hold, so that nothing of the input's
    order is left.
    """
    if policy.model.render.order == "input":
        return np.arange(frame.height)
    columns = [name for name in frame.columns if name != policy.subject]
    return frame.select(pl.arg_sort_by(columns, maintain_order=True)).to_series().to_numpy()


def as_text(frame: pl.DataFrame) -> pl.DataFrame:
    """All columns as text, without a value where there is none."""
    text = frame.with_columns(pl.all().cast(pl.String))
    return text.with_columns(pl.when(pl.all() != "").then(pl.all()))


def _write(frame: pl.DataFrame, path: Path) -> None:
    content = io.BytesIO()
    frame.write_parquet(content)
    path.write_bytes(
        content.getbuffer()
    )  # a full disk is an OSError, which it is not where Polars writes


def _read(path: Path) -> pl.DataFrame | None:
    return pl.read_parquet(path) if path.exists() else None
