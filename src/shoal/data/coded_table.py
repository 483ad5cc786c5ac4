"""A table that is too large to be held as a frame: every column as codes alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.data.room import Room, blocks
from shoal.data.table import Column, Table
from shoal.errors import InputError


class Blank(NamedTuple):
    """What reads as the empty text in a column: cells without a value, and empty texts."""

    missing: bool = False
    empty: bool = False


class CodedTable(Table):
    """A table whose columns are codes, which may lie in files, beside their distinct texts.

    What asks for its frame can't be done within a limit on memory, and is refused.
    """

    def __init__(
        self,
        columns: Mapping[str, Column],
        records: int,
        room: Room,
        dtypes: Mapping[str, pl.DataType] | None = None,
        blanks: Mapping[str, Blank] | None = None,
    ) -> None:
        known = {
            "_columns": dict(columns),
            "_names": list(columns),
            "_records": records,
            "_room": room,
            "_dtypes": dict(dtypes or {}),
            "_blanks": dict(blanks or {}),
        }
        for name, value in known.items():
            object.__setattr__(self, name, value)

    _names: list[str]
    _records: int
    _room: Room
    _dtypes: dict[str, pl.DataType]
    _blanks: dict[str, Blank]

    @property
    def frame(self) -> pl.DataFrame:
        raise InputError(
            "memory: what was asked for needs the whole table in memory; leave out --memory, or"
            " what asks for it"
        )

    @property
    def records(self) -> int:
        return self._records

    @property
    def names(self) -> list[str]:
        return self._names

    @property
    def room(self) -> Room:
        return self._room

    def dtype(self, name: str) -> pl.DataType:
        return self._dtypes.get(name, pl.String())

    def blank(self, name: str) -> Blank:
        """What reads as the empty text in a column."""
        return self._blanks.get(name, Blank())

    def is_restorable(self, name: str) -> bool:
        """Whether `cells` are what the column came with, whatever its records hold."""
        dtype, blank = self.dtype(name), self.blank(name)
        is_known = self.is_text(name) or dtype.is_integer() or dtype.is_float()
        return is_known and not (blank.missing and blank.empty)

    def cells(self, name: str) -> pl.Series:
        """The distinct cells of a column, of the type it came in."""
        texts = pl.Series(name, self._columns[name].cells, dtype=pl.String)
        if self.blank(name).missing:
            texts = texts.replace("", None)
        return texts if self.is_text(name) else texts.cast(self.dtype(name))

    def is_text(self, name: str) -> bool:
        """Whether the mark can stand in a column."""
        return self.dtype(name) in (pl.String, pl.Categorical, pl.Enum)

    def same_cells(self, one: str, other: str) -> bool:
        first, second = self._columns[one], self._columns[other]
        return first.cells == second.cells and all(
            np.array_equal(first.codes[rows], second.codes[rows]) for rows in blocks(self.records)
        )

    def without(self, names: Sequence[str]) -> CodedTable:
        kept = {name: column for name, column in self._columns.items() if name not in names}
        return CodedTable(kept, self.records, self.room, self._dtypes, self._blanks)

    def part(self, codes: Mapping[str, np.ndarray]) -> CodedTable:
        """Some of its columns, of some of its records. codes: theirs, (m,) of each column."""
        columns = {
            name: Column(name, some, self._columns[name].cells, self._columns[name].was_number)
            for name, some in codes.items()
        }
        records = len(next(iter(codes.values()), ()))
        return CodedTable(columns, records, self.room, self._dtypes, self._blanks)

    def encode(self, names: Iterable[str]) -> None:
        """All columns are encoded."""

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def follows(self, name: str, source: str) -> bool:
        of, by = self._columns[name], self._columns[source]
        shown = np.full(len(by.cells), -1, dtype=np.int64)
        for rows in blocks(self.records):
            codes = by.codes[rows]
            shown[codes] = of.codes[rows]
            if not np.array_equal(shown[codes], of.codes[rows]):
                return False
        again = (shown[by.codes[rows]] == of.codes[rows] for rows in blocks(self.records))
        return all(bool(same.all()) for same in again)
