"""What a ledger's private part remembers of people: who stands behind each published row.

Subjects are kept as keyed tokens, never as they are named. Whole records are kept only while they
wait, and by methods that publish the whole table anew.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from shoal.errors import LedgerError
from shoal.policy.policy import Policy
from shoal.privacy.history.people import KnownPeople
from shoal.state.ledger import RUN, Ledger
from shoal.state.private_tables import read_table, write_table

ROWS, PENDING, ORIGINALS = "rows.parquet", "pending.parquet", "originals.parquet"
WAITED, ARRIVALS = "waited.parquet", "arrivals.parquet"
TRANSIENT_FILES = (PENDING, ORIGINALS, WAITED, ARRIVALS)
"""The files that each step replaces; those of the step before are removed."""

_NUMBER = ""  # the column of record numbers: no data column has an empty name


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
        """The same for some of the rows, in that order."""
        parts = (self.records, self.subjects, self.invented, self.changed)
        return Identities(*(None if part is None else part[rows] for part in parts))  # type: ignore[arg-type]

    def numbered(self, following: int) -> tuple[Identities, int]:
        """The same, new records numbered from `following` on; and the number after the last."""
        new = (self.records < 0) & self.is_real
        records = self.records.copy()
        records[new] = following + np.arange(int(new.sum()))
        return replace(self, records=records), following + int(new.sum())

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


# Everybody who was ever published


def count_known(ledger: Ledger, people: np.ndarray) -> int:
    """How many different tokens of these were ever published."""
    return int(_known_people(ledger).holds(np.unique(people)).sum())


def write_known(ledger: Ledger, identities: Identities, folder: Path) -> tuple[int, ...]:
    """Adds the release's people to those ever published; the steps whose runs stay in use.

    A run is merged with later ones of no greater size, so that there are few and each token is
    seldom written again: an increment writes the same however many people the ledger holds.
    """
    if identities.subjects is None:
        return ()
    runs = ledger.runs()
    people = np.unique(identities.subjects[identities.is_real])
    fresh = people[~_known_people(ledger).holds(people)]
    stay = list(runs)
    while stay and len(fresh) and len(runs[stay[-1]]) <= len(fresh):
        fresh = np.sort(np.concatenate([runs[stay.pop()], fresh]), kind="stable")
    if len(fresh):
        fresh.astype("<u8", copy=False).tofile(folder / RUN)
    return tuple(stay)


def _known_people(ledger: Ledger) -> KnownPeople:
    return KnownPeople(list(ledger.runs().values()))


# Whole records


def read_originals(ledger: Ledger) -> tuple[pl.DataFrame, np.ndarray] | None:
    """The whole records behind the last release, with their numbers; None where none are kept."""
    kept = read_table(ledger.step_folder(ledger.last_step().number) / ORIGINALS)
    return None if kept is None else (kept.drop(_NUMBER), kept[_NUMBER].to_numpy())


def write_originals(records: pl.DataFrame, identities: Identities, folder: Path) -> None:
    """The whole records behind the real rows of a release, for methods that publish them anew."""
    numbers = pl.Series(_NUMBER, identities.records[identities.is_real])
    write_table(records.with_columns(numbers), folder / ORIGINALS)


def carry_over(ledger: Ledger, folder: Path) -> None:
    """What a step without a release leaves as it was."""
    before = ledger.step_folder(ledger.last_step().number)
    if (before / ORIGINALS).exists():
        os.link(before / ORIGINALS, folder / ORIGINALS)


# Tokens


def with_tokens(frame: pl.DataFrame, policy: Policy, ledger: Ledger) -> pl.DataFrame:
    """The subject column, which is text, as tokens under the ledger's key."""
    if policy.subject is None or not frame.height:
        return frame
    return tokens_of(frame, policy, ledger.key)


def tokens_of(frame: pl.DataFrame, policy: Policy, key: bytes) -> pl.DataFrame:
    """The same under any key; the policy has a subject."""
    assert policy.subject is not None
    names = frame[policy.subject]
    absent = {"", *policy.model.missing_values}
    distinct = names.unique()
    stripped = [name and name.strip() for name in distinct.to_list()]
    tokens = [None if name is None or name in absent else token_of(name, key) for name in stripped]
    column = names.replace_strict(
        distinct, pl.Series(tokens, dtype=pl.String), return_dtype=pl.String
    )
    return frame.with_columns(column)


def token_of(name: str, key: bytes) -> str:
    """64 bits of BLAKE2, in hexadecimal."""
    return hashlib.blake2b(name.encode(), digest_size=8, key=key).hexdigest()


def as_numbers(tokens: pl.Series) -> np.ndarray:
    """(n,) uint64 of sixteen hexadecimal digits each; 0 for none."""
    text = tokens.fill_null("0" * 16).to_list()
    return np.frombuffer(bytes.fromhex("".join(text)), dtype=">u8").astype(np.uint64)


def as_text(frame: pl.DataFrame) -> pl.DataFrame:
    """All columns as text, without a value where there is none."""
    text = frame.with_columns(pl.all().cast(pl.String))
    return text.with_columns(pl.when(pl.all() != "").then(pl.all()))
