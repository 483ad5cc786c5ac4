"""What a ledger's private part remembers of people: who stands behind each published row, and who waits.

Subjects are kept as keyed tokens, never as they are named. Whole records are kept only while they wait, and by
methods that publish the whole table anew.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.data.table import Table, encode_text
from shoal.errors import InputError, LedgerError, PromiseError
from shoal.jobs.policy import Policy
from shoal.state.ledger import Ledger

ROWS, PENDING, ORIGINALS, KNOWN = "rows.parquet", "pending.parquet", "originals.parquet", "known.npy"
PASSING = (PENDING, ORIGINALS, KNOWN)
"""The files that each step replaces; those of the step before are removed."""

INSERT, UPDATE, DELETE = "insert", "update", "delete"
_NUMBER = ""  # the column of record numbers: no data column has an empty name


@dataclass(frozen=True)
class Identities:
    """Who stands behind each published row.

    records: (n,) int64, the running number of each record, the same in every release; -1 where it has none yet or
        the row is invented. subjects: (n,) uint64 tokens, None where every record is its own person.
    """

    records: np.ndarray
    subjects: np.ndarray | None = None
    invented: np.ndarray | None = None
    next_record: int = 0

    def numbered(self, following: int) -> Identities:
        """The same, with numbers from `following` on for new records."""
        new = self.records < 0
        if self.invented is not None:
            new &= ~self.invented
        records = self.records.copy()
        records[new] = following + np.arange(int(new.sum()))
        return replace(self, records=records, next_record=following + int(new.sum()))

    @property
    def is_real(self) -> np.ndarray:
        return self.records >= 0

    def write(self, folder: Path) -> None:
        columns = {"record": self.records} | ({} if self.subjects is None else {"subject": self.subjects})
        pl.DataFrame(columns).write_parquet(folder / ROWS)

    @classmethod
    def read(cls, folder: Path) -> Identities:
        """Those of the release that a private step led to; raises LedgerError where they are lost."""
        frame = _read(folder / ROWS)
        if frame is None:
            raise LedgerError(f"private step {folder.name}: {ROWS} is missing; restore the private part")
        subjects = frame["subject"].to_numpy() if "subject" in frame.columns else None
        return cls(frame["record"].to_numpy(), subjects)


@dataclass(frozen=True)
class Waiting:
    """Records that wait for a later release, and why."""

    frame: pl.DataFrame | None = None
    reasons: tuple[str, ...] = ()

    @classmethod
    def of(cls, ledger: Ledger) -> Waiting:
        """Those of the last step."""
        return cls(_read(ledger.step_folder(ledger.last_step().number) / PENDING))

    @property
    def records(self) -> int:
        return 0 if self.frame is None else self.frame.height

    def write(self, folder: Path) -> None:
        if self.frame is not None and self.frame.height:
            self.frame.write_parquet(folder / PENDING)


@dataclass(frozen=True)
class Material:
    """The records that the next release may hold.

    records: (n,) int64, the number of each record that is published already, -1 for new ones.
    subjects: (n,) uint64 tokens, None where every record is its own person. left: how many published records left.
    """

    table: Table
    records: np.ndarray
    subjects: np.ndarray | None
    left: int = 0

    @property
    def new(self) -> bool:
        """Whether anything is to be published that is not published already."""
        return bool((self.records < 0).any()) or self.left > 0

    def waiting_for(self, *reasons: str) -> Waiting:
        """All new records wait."""
        return Waiting(self.table.frame.filter(pl.Series(self.records < 0)), reasons)

    def identities(self, rows: np.ndarray | None) -> Identities:
        """Who stands behind each published row; rows: the record behind each, None for all in order."""
        rows = np.arange(len(self.records)) if rows is None else rows
        return Identities(self.records[rows], None if self.subjects is None else self.subjects[rows])


def gather(frame: pl.DataFrame, policy: Policy, method: Any, ledger: Ledger) -> Material:
    """The increment with what waited and, for methods that need them, all published records; people as tokens.

    Raises InputError for operations that the method can't do, PromiseError for people it has published before.
    """
    frame = _with_tokens(_text(frame), policy, ledger)
    operations = _operations(frame, policy, method)
    last = ledger.step_folder(ledger.last_step().number) if ledger.exists else None
    waited = None if last is None else _read(last / PENDING)
    originals = None if last is None or method.needs != "originals" else _read(last / ORIGINALS)
    if last is not None and method.needs == "originals" and originals is None and ledger.releases():
        raise InputError(
            f"method '{method.name}': needs the records of all earlier releases, which methods that publish "
            "increments don't keep; stay with such a method, or begin another ledger"
        )
    arriving = frame.filter(pl.Series(operations == INSERT))
    _refuse_known(arriving, policy, method, last)
    parts = [part for part in (originals, waited, arriving) if part is not None]
    table = pl.concat([part.select(frame.columns) for part in parts])
    records = np.concatenate([_numbers(part) for part in parts])
    order = _by_content(table, policy)
    table, records = table[order], records[order]
    subjects = None if policy.subject is None else _as_numbers(table[policy.subject])
    return Material(Table(table), records, subjects)


def _operations(frame: pl.DataFrame, policy: Policy, method: Any) -> np.ndarray:
    """insert, update or delete for every record of the increment."""
    if policy.operation is None:
        return np.full(frame.height, INSERT, dtype=object)
    cells = frame[policy.operation].fill_null(INSERT)
    strange = int((~cells.is_in([INSERT, UPDATE, DELETE])).sum())
    if strange:
        raise InputError(
            f"attribute '{policy.operation}': {strange} records with another operation than insert, update or delete; "
            "mend them"
        )
    others = int((cells != INSERT).sum())
    if others and not method.changes:
        raise InputError(
            f"method '{method.name}': {others} records of the increment are updated or deleted, and it can only add "
            "people; use m-invariance for those who leave or change, or leave these records out"
        )
    return cells.to_numpy()


def _refuse_known(arriving: pl.DataFrame, policy: Policy, method: Any, last: Path | None) -> None:
    if policy.subject is None or last is None or not (last / KNOWN).exists():
        return
    known = np.load(last / KNOWN, mmap_mode="r")
    people = np.unique(_as_numbers(arriving[policy.subject]))
    place = np.searchsorted(known, people)
    again = int((known[np.minimum(place, len(known) - 1)] == people).sum()) if len(known) else 0
    if again:
        raise PromiseError(
            f"history: {again} people of the increment are in earlier releases, and who is in two releases can be "
            f"found where they overlap; the release is withheld. '{method.name}' publishes each person once: leave "
            "their records out, or begin a ledger by m-invariance, which publishes changed records"
        )


def write_known(ledger: Ledger, identities: Identities, folder: Path) -> None:
    """The tokens of everybody who was ever published, sorted."""
    if identities.subjects is None:
        return
    before = ledger.step_folder(ledger.last_step().number) / KNOWN
    known = np.load(before) if before.exists() else np.zeros(0, dtype=np.uint64)
    np.save(folder / KNOWN, np.union1d(known, identities.subjects[identities.is_real]))


def carry_over(ledger: Ledger, folder: Path) -> None:
    """What a step without a release leaves as it was."""
    before = ledger.step_folder(ledger.last_step().number)
    for name in (ORIGINALS, KNOWN):
        if (before / name).exists():
            os.link(before / name, folder / name)


def write_originals(records: pl.DataFrame, identities: Identities, folder: Path) -> None:
    """The whole records behind the real rows of a release, for methods that publish them anew."""
    records.with_columns(pl.Series(_NUMBER, identities.records[identities.is_real])).write_parquet(folder / ORIGINALS)


def _with_tokens(frame: pl.DataFrame, policy: Policy, ledger: Ledger) -> pl.DataFrame:
    """The subject column as tokens: 64 bits of BLAKE2 under the ledger's key, as hexadecimal digits."""
    if policy.subject is None or not frame.height:
        return frame
    column = encode_text(frame[policy.subject])
    key = ledger.key
    empty = {"", *policy.model.missing_values}
    tokens = [
        hashlib.blake2b(name.encode(), digest_size=8, key=key).hexdigest() if name not in empty else None
        for name in (cell.strip() for cell in column.cells)
    ]
    return frame.with_columns(pl.Series(policy.subject, tokens, dtype=pl.String).gather(column.codes))


def _as_numbers(tokens: pl.Series) -> np.ndarray:
    """(n,) uint64 of sixteen hexadecimal digits each; 0 for none."""
    text = tokens.fill_null("0" * 16).to_list()
    return np.frombuffer(bytes.fromhex("".join(text)), dtype=">u8").astype(np.uint64)


def _by_content(frame: pl.DataFrame, policy: Policy) -> np.ndarray:
    """The order in which methods see the records: by what they hold, so that nothing of the input's order is left."""
    if policy.model.render.order == "input":
        return np.arange(frame.height)
    columns = [name for name in frame.columns if name != policy.subject]
    return frame.select(pl.arg_sort_by(columns, maintain_order=True)).to_series().to_numpy()


def _numbers(part: pl.DataFrame) -> np.ndarray:
    if _NUMBER in part.columns:
        return part[_NUMBER].to_numpy()
    return np.full(part.height, -1, dtype=np.int64)


def _text(frame: pl.DataFrame) -> pl.DataFrame:
    """All columns as text, without a value where there is none."""
    text = frame.with_columns(pl.all().cast(pl.String))
    return text.with_columns(pl.when(pl.all() != "").then(pl.all()))


def _read(path: Path) -> pl.DataFrame | None:
    return pl.read_parquet(path) if path.exists() else None
