"""Columns of a file as codes, taken in piece by piece: only distinct texts are held in memory.

Codes are numbers of first sight while a file is read, and are renumbered by sorted text at the end,
so that nothing depends on the pieces. They lie in the Room, in segments that are as narrow as the
texts met so far allow.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from shoal.data.coded_table import Blank, CodedTable
from shoal.data.room import Room, blocks
from shoal.data.table import Column
from shoal.errors import InputError

SEGMENT = 1 << 20
"""Records of a segment."""

TEXT_BYTES = 120
"""What a distinct text takes beside its characters, in every place that holds it."""

SHARE = 8
"""The distinct texts of a column may take one part in so many of the limit."""


class GrowingTable:
    """A table that grows by frames of text, the same columns in each."""

    def __init__(self, schema: dict[str, pl.DataType], room: Room) -> None:
        self._room, self._schema, self._records = room, schema, 0
        self._columns = {name: _GrowingColumn(name, room) for name in schema}

    def dtypes(self) -> dict[str, pl.Categorical]:
        """The types that the columns of each frame must have."""
        return {name: column.dtype for name, column in self._columns.items()}

    def add(self, frame: pl.DataFrame) -> None:
        """Takes records in; raises InputError where a column has too many distinct texts."""
        self._records += frame.height
        for name, column in self._columns.items():
            column.add(frame[name])

    def table(self) -> CodedTable:
        """All records; nothing can be added after it."""
        columns, blanks = {}, {name: column.blank for name, column in self._columns.items()}
        for name in list(self._columns):
            columns[name] = self._columns.pop(name).finished(self._schema[name].is_numeric())
        return CodedTable(columns, self._records, self._room, self._schema, blanks)


class _GrowingColumn:
    """The codes of one column so far. Missing values read as the empty text."""

    def __init__(self, name: str, room: Room) -> None:
        self.name, self._room = name, room
        # its own categories: held here, so that their numbers stay what they are
        self.dtype = pl.Categorical(pl.Categories.random("shoal"))
        self._number_of = np.full(1024, -1, dtype=np.int64)
        self._texts: list[pl.Series] = []
        self._distinct = self._bytes = 0
        self._missing = -1
        self._segments: list[np.ndarray] = []
        self._filled = SEGMENT

    def add(self, cells: pl.Series) -> None:
        physical = cells.to_physical()
        is_missing = physical.is_null().to_numpy() if physical.null_count() else None
        numbers = (
            physical.fill_null(0).to_numpy() if is_missing is not None else physical.to_numpy()
        )
        known = numbers if is_missing is None else numbers[~is_missing]
        self._learn(cells if is_missing is None else cells.drop_nulls(), known)
        codes = self._number_of[numbers] if len(known) else np.zeros(len(cells), dtype=np.int64)
        if is_missing is not None:
            if self._missing < 0:
                self._missing = self._number(pl.Series([""], dtype=pl.String))
            codes[is_missing] = self._missing
        self._keep(codes)

    @property
    def blank(self) -> Blank:
        empty = sum(int((texts == "").sum()) for texts in self._texts)
        return Blank(self._missing >= 0, empty > int(self._missing >= 0))

    def _learn(self, cells: pl.Series, numbers: np.ndarray) -> None:
        """Numbers the categories that are met for the first time, in the order of their rows."""
        most = int(numbers.max(initial=0)) + 1
        if most > len(self._number_of):
            more = np.full(max(most, 2 * len(self._number_of)), -1, dtype=np.int64)
            more[: len(self._number_of)] = self._number_of
            self._number_of = more
        fresh = np.flatnonzero(self._number_of[numbers] < 0)
        if len(fresh):
            categories, first = np.unique(numbers[fresh], return_index=True)
            texts = cells.gather(fresh[first]).cast(pl.String)
            begun = self._number(texts)
            self._number_of[categories] = np.arange(begun, self._distinct)

    def _number(self, texts: pl.Series) -> int:
        """The number of the first of these new texts; raises InputError if they are too many."""
        begun = self._distinct
        self._texts.append(texts)
        self._distinct += len(texts)
        self._bytes += int(texts.str.len_bytes().sum()) + TEXT_BYTES * len(texts)
        limit = self._room.limit
        if limit is not None and self._bytes > max(limit // SHARE, 1 << 16):
            needed = SHARE * self._bytes / 1e6
            raise InputError(
                f"memory: column '{self.name}' has {self._distinct} different texts or more, too"
                f" many to be held in an eighth of the limit; leave the column out, or allow"
                f" {needed:.0f} MB and more"
            )
        return begun

    def _keep(self, codes: np.ndarray) -> None:
        dtype = np.min_scalar_type(max(self._distinct - 1, 0))
        begun = 0
        while begun < len(codes):
            if self._filled == SEGMENT:
                self._segments.append(self._room.array(SEGMENT, dtype))
                self._filled = 0
            elif self._segments[-1].dtype.itemsize < dtype.itemsize:
                wider = self._room.array(SEGMENT, dtype)
                wider[: self._filled] = self._segments[-1][: self._filled]
                self._segments[-1] = wider
            some = codes[begun : begun + SEGMENT - self._filled]
            self._segments[-1][self._filled : self._filled + len(some)] = some
            self._filled += len(some)
            begun += len(some)

    def finished(self, was_number: bool) -> Column:
        """The column, its codes renumbered by sorted text."""
        texts = pl.concat(self._texts) if self._texts else pl.Series([], dtype=pl.String)
        cells = texts.unique().sort()
        renumbered = texts.cast(pl.Enum(cells)).to_physical().to_numpy()
        dtype = np.min_scalar_type(max(len(cells) - 1, 0))
        renumbered = renumbered.astype(dtype)
        records = max(len(self._segments) - 1, 0) * SEGMENT
        records += self._filled if self._segments else 0
        codes = self._room.array(records, dtype)
        for number in range(len(self._segments)):
            start = number * SEGMENT
            segment = self._segments[number][: records - start]
            for rows in blocks(len(segment)):
                codes[start + rows.start : start + rows.stop] = renumbered[segment[rows]]
            self._segments[number] = segment[:0].copy()  # its room is free again
        return Column(self.name, codes, tuple(cells.to_list()), was_number)
