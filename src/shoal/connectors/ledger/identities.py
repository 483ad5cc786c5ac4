"""Who stands behind each published row, as the private part of a ledger remembers it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from shoal.connectors.ledger import Ledger
from shoal.connectors.ledger.panel import read_table, write_table
from shoal.errors import LedgerError

ROWS = "rows.parquet"


@dataclass(frozen=True)
class Identities:
    """Who stands behind each published row.

    records: (n,) int64, the running number of each record, the same in every release; -1 where it
    has none yet or the row is invented.
    subjects: (n,) uint64 tokens, None where every record is its own person.
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

    def take(self, rows: np.ndarray) -> Identities:
        """The identities of some of the rows, in that order."""
        parts = (self.records, self.subjects, self.invented, self.changed)
        return Identities(*(None if part is None else part[rows] for part in parts))  # type: ignore[arg-type]

    def numbered(self, following: int) -> Identities:
        """The identities, new records numbered from `following` on."""
        new = (self.records < 0) & self.is_real
        records = self.records.copy()
        records[new] = following + np.arange(int(new.sum()))
        return replace(self, records=records)

    @classmethod
    def joined(cls, parts: Sequence[Identities]) -> Identities:
        """The rows of several releases or increments, one after the other."""
        subjects = [part.subjects for part in parts if part.subjects is not None]
        return cls(
            np.concatenate([part.records for part in parts]),
            np.concatenate(subjects) if len(subjects) == len(parts) else None,
            np.concatenate([~part.is_real for part in parts]),
            np.concatenate([part.is_changed for part in parts]),
        )

    def write_rows(self, folder: Path) -> None:
        columns = {
            "record": self.records,
            "subject": self.subjects,
            "invented": self.invented,
            "changed": self.changed,
        }
        present = {name: column for name, column in columns.items() if column is not None}
        write_table(pl.DataFrame(present), folder / ROWS)

    @classmethod
    def read(cls, folder: Path) -> Identities:
        """Those of the release that a private step led to; LedgerError where they are lost."""
        frame = read_table(folder / ROWS)
        if frame is None:
            raise LedgerError(
                f"private step {folder.name}: {ROWS} is missing; restore the private part"
            )
        columns = {name: frame[name].to_numpy() for name in frame.columns}
        return cls(
            columns["record"],
            columns.get("subject"),
            columns.get("invented"),
            columns.get("changed"),
        )


# Whole records behind a release, which methods keep that publish the whole table anew.


ORIGINALS = "originals.parquet"
_NUMBER = ""  # the column of record numbers: no data column has an empty name


def read_originals(ledger: Ledger) -> tuple[pl.DataFrame, np.ndarray] | None:
    """The whole records behind the last release, with their numbers; None where none are kept."""
    kept = read_table(ledger.last_folder / ORIGINALS)
    return None if kept is None else (kept.drop(_NUMBER), kept[_NUMBER].to_numpy())


def write_originals(records: pl.DataFrame, identities: Identities, folder: Path) -> None:
    """The whole records behind the real rows of a release, for methods that publish them anew."""
    numbers = pl.Series(_NUMBER, identities.records[identities.is_real])
    write_table(records.with_columns(numbers), folder / ORIGINALS)


def carry_over(ledger: Ledger, folder: Path) -> None:
    """What a step without a release leaves as it was."""
    if (ledger.last_folder / ORIGINALS).exists():
        os.link(ledger.last_folder / ORIGINALS, folder / ORIGINALS)


# Who was ever published in a ledger, and by which token each person is known there.


class KnownPeople:
    """Everybody published so far.

    In sorted runs of tokens that are merged when they are of like size, so that looking up stays
    cheap, and each token is seldom written again: an increment writes the same however many people
    a ledger holds.
    """

    def __init__(self, ledger: Ledger | None = None) -> None:
        """ledger: whose people are known already; under its lock only."""
        self.runs = [] if ledger is None else list(ledger.runs().values())

    def holds(self, people: np.ndarray) -> np.ndarray:
        """Which of these tokens are known; (n,) bool."""
        known = np.zeros(len(people), dtype=bool)
        for run in self.runs:
            index = np.minimum(np.searchsorted(run, people), len(run) - 1)
            known |= run[index] == people
        return known

    def count(self, people: np.ndarray) -> int:
        """How many different tokens of these are known."""
        return int(self.holds(np.unique(people)).sum())

    def add_and_count_known(self, subjects: np.ndarray) -> int:
        """Add these tokens; how many of them were known before."""
        people = np.unique(subjects)
        is_known = self.holds(people)
        fresh = people[~is_known]
        while self.runs and len(self.runs[-1]) <= len(fresh):
            fresh = np.sort(np.concatenate([self.runs.pop(), fresh]), kind="stable")
        if len(fresh):
            self.runs.append(fresh)
        return int(is_known.sum())


def token_of(name: str, key: bytes) -> str:
    """64 bits of BLAKE2, in hexadecimal."""
    return hashlib.blake2b(name.encode(), digest_size=8, key=key).hexdigest()


def as_text(frame: pl.DataFrame) -> pl.DataFrame:
    """All columns as text, without a value where there is none."""
    text = frame.with_columns(pl.all().cast(pl.String))
    return text.with_columns(pl.when(pl.all() != "").then(pl.all()))
