"""Who stands behind each published row, as the private part of a ledger remembers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from shoal.connectors.ledger.private_tables import read_table, write_table
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
