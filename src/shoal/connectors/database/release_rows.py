"""The rows of a table that takes the releases of a ledger, read and compared with what is listed.

Rows of a release lie behind one another, so its number of rows says where it is; written as CSV,
they are byte for byte the file that its certificate names.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from shoal.connectors import delimited
from shoal.connectors.database.address import RELEASES
from shoal.connectors.database.release_list import ListedRelease
from shoal.connectors.database.session import SOURCE, Session, SqlColumn, TableName, cell_of
from shoal.connectors.database.tables import RELEASE, ROW
from shoal.connectors.dialect import default_dialect
from shoal.errors import InputError

CSV = default_dialect(".csv")


@dataclass(frozen=True)
class TableRows:
    """A table in a transaction."""

    session: Session
    table: TableName
    columns: Mapping[str, SqlColumn]

    @classmethod
    def of(cls, session: Session, table: TableName) -> TableRows:
        return cls(session, table, {column.name: column for column in session.columns(table)})

    def count(self) -> int:
        found = self.session.query(f"SELECT CAST(count(*) AS text) FROM {self.table.quoted}")
        return int(found.item())

    def shown(self, line: ListedRelease, and_later: bool) -> pl.DataFrame:
        """The published cells that bear the number of a release, wherever they lie, as text.

        These are what somebody's own SELECT finds, also where numbers were changed or rows added.
        """
        which = f"{cell_of(RELEASE)} {'>=' if and_later else '='} {line.release}"
        return self._cells(line, which).drop(ROW, RELEASE)

    def _placed_cells(self, line: ListedRelease, first: int) -> pl.DataFrame:
        """The rows where a release was put, with both numbers.

        first: how many rows of the table are before it.
        """
        row = cell_of(ROW)
        return self._cells(line, f"{row} > {first} AND {row} <= {first + max(line.rows, 0)}")

    def _cells(self, line: ListedRelease, which: str) -> pl.DataFrame:
        """Rows as text, in the order of a release's columns, with both numbers."""
        names = [ROW, RELEASE, *(line.names or self._names)]
        if not {*names} <= {*self.columns}:
            raise InputError(
                f"table '{self.table.name}': lacks columns that its certificates name; restore it"
            )
        cells = ", ".join(
            f'{self.columns[name].as_text} AS "{place}"' for place, name in enumerate(names)
        )
        frame = self.session.query(
            f"SELECT {cells} FROM {self.table.quoted} AS {SOURCE}"
            f" WHERE {which} ORDER BY {cell_of(ROW)}"
        )
        frame.columns = names
        return frame

    @property
    def _names(self) -> list[str]:
        """The published columns."""
        return [name for name in self.columns if name not in (ROW, RELEASE)]

    def are_as_certified(self, line: ListedRelease, first: int) -> bool:
        """Whether a release has the rows, and these the numbers, that it was put with."""
        frame = self._placed_cells(line, first)
        # first: the list may state more rows than any memory holds numbers
        if frame.height != line.rows:
            return False
        numbers = pl.int_range(first + 1, first + 1 + line.rows, eager=True).cast(pl.String)
        return (
            frame[ROW].equals(numbers, check_names=False)
            and bool((frame[RELEASE] == str(line.release)).all())
            and csv_sha256(frame.drop(ROW, RELEASE)) == line.data_sha256
        )

    def damage(self, releases: Sequence[ListedRelease]) -> list[str]:
        """What is not as it was put, each in a line: of the columns, the list or the rows."""
        if {*self.columns} != {ROW, RELEASE, *(releases[0].names or self._names)}:
            return ["columns: some were added, removed or renamed"]
        lines: list[ListedRelease | None] = [None, *releases]
        for number, (before, line) in enumerate(zip(lines, releases, strict=False), start=1):
            if not line.follows(before):
                return [f"release {number:04d}: its line in '{RELEASES}' is missing or was changed"]
        findings = [
            f"release {line.release:04d}: its rows were changed"
            for line, first in placed(releases)
            if not self.are_as_certified(line, first)
        ]
        if self.count() != sum(line.rows for line in releases):
            findings.append("rows: some were added or taken away")
        return findings


def placed(releases: Sequence[ListedRelease]) -> Iterator[tuple[ListedRelease, int]]:
    """Each release with how many rows are before it."""
    first = 0
    for line in releases:
        yield line, first
        first += line.rows


def csv_sha256(frame: pl.DataFrame) -> str:
    """The hash of the file that a ledger keeps of these rows."""
    file = io.BytesIO()
    delimited.write(frame, file, CSV)
    return hashlib.sha256(file.getvalue()).hexdigest()
