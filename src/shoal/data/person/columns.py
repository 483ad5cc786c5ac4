"""A table's columns, as the question who is one person asks for them; each is read once at most."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from shoal.data.person.cells import BLANKS, MOST_CELLS, NO_VALUE, Look, look_of
from shoal.data.person.names import ColumnName, name_of
from shoal.data.table import Table

FEW_CELLS = 2_000  # different values among some rows, up to which a column is encoded in a blink
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def is_value(cells: Sequence[str]) -> np.ndarray:
    """(cells,) bool, which of these sorted texts stand for a value, but for blanks around them.

    Only texts that begin with a blank or with a text for no value are looked at.
    """
    found = np.ones(len(cells), dtype=bool)
    spans = [(0, bisect_left(cells, "!"))]
    spans += [(bisect_left(cells, text), bisect_left(cells, f"{text}!")) for text in NO_VALUE]
    for begin, end in spans:
        for place in range(begin, end):
            found[place] = cells[place].strip(BLANKS) not in NO_VALUE
    return found


def hashed_to_0(codes: np.ndarray, share: int) -> np.ndarray:
    """(codes,) bool, about one of `share` codes; the same ones each time."""
    return (codes.astype(np.uint64) * _GOLDEN >> np.uint64(33)) % np.uint64(share) == 0


@dataclass(frozen=True)
class People:
    """Records by whom they are of.

    codes: (n,) of each record. is_value: (codes,) bool, which of them stand for somebody. counts:
    (codes,) records of each.
    """

    codes: np.ndarray
    is_value: np.ndarray
    counts: np.ndarray

    @property
    def records(self) -> int:
        """Records of somebody."""
        return int(self.counts[self.is_value].sum())

    @property
    def distinct(self) -> int:
        """How many people there are."""
        return int((self.counts[self.is_value] > 0).sum())

    @property
    def most(self) -> int:
        """Records of the one who has most."""
        return int(self.counts[self.is_value].max(initial=0))

    def rows(self, most: int) -> np.ndarray:
        """Rows of somebody; where there are more than `most`, those of whole values by hash."""
        share = -(-self.records // most)
        kept = self.is_value
        if share > 1:
            kept = kept & hashed_to_0(np.arange(len(kept)), share)
        return np.flatnonzero(kept[self.codes])


class PersonColumn:
    """A column by its name and cells. rows: some rows, whose cells show how it is written."""

    def __init__(self, table: Table, title: str, rows: np.ndarray) -> None:
        self._table = table
        self.title = title
        self.name: ColumnName = name_of(title)
        codes, has_value, cells = self._among(rows)
        held = np.unique(codes[has_value])
        self.seen = len(held)
        some = held[:: -(-len(held) // MOST_CELLS)] if self.seen else held
        texts = [cells[code].strip(BLANKS) for code in some]
        self.look: Look = look_of(texts, self.name, self.seen)

    seen: int
    """Different values among the rows by which it was looked at."""

    @property
    def varies(self) -> bool:
        """Whether it has two values at least."""
        return self.seen > 1

    @cached_property
    def repeats(self) -> bool:
        """Whether two records share a value; without counting each where all differ."""
        if self._is_encoded or self.seen < MOST_CELLS:
            return self.distinct < self.records
        return self._table.distinct(self.title) < self._table.records

    @cached_property
    def people(self) -> People:
        """The records by the value that they hold here."""
        column = self._table.column(self.title)
        return People(column.codes, self._is_value, column.counts())

    @cached_property
    def records(self) -> int:
        """Records that have a value."""
        return self.people.records

    @cached_property
    def distinct(self) -> int:
        """Their different values."""
        return self.people.distinct

    @property
    def repeated(self) -> int:
        """Records beyond the first of each value."""
        return self.records - self.distinct

    def among(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What some records hold: (rows,) int64 codes, and whether it is a value."""
        if not self._is_encoded and self.seen <= FEW_CELLS:
            self._table.column(self.title)  # it costs less than to encode some rows again and again
        codes, has_value, _ = self._among(rows)
        return codes, has_value

    def numbers_among(self, rows: np.ndarray) -> np.ndarray:
        """(rows,) float64, not a number where they hold none."""
        codes, _, cells = self._among(rows)
        held, place = np.unique(codes, return_inverse=True)
        texts = pl.Series([cells[code].strip(BLANKS) for code in held], dtype=pl.String)
        numbers = texts.str.replace(",", ".").cast(pl.Float64, strict=False)
        return numbers.fill_null(np.nan).to_numpy()[place]

    def whole_numbers(self) -> np.ndarray:
        """(codes,) int64 of what each code stands for, -1 where it is not a whole number."""
        texts = pl.Series(self._table.column(self.title).cells, dtype=pl.String)
        return texts.str.strip_chars(BLANKS).cast(pl.Int64, strict=False).fill_null(-1).to_numpy()

    @property
    def _is_encoded(self) -> bool:
        return self.title in self._table.coded

    @cached_property
    def _is_value(self) -> np.ndarray:
        return is_value(self._table.column(self.title).cells)

    def _among(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, Sequence[str]]:
        """(rows,) codes, whether they are of a value, and the sorted cells that they stand for."""
        if self._is_encoded:
            column = self._table.column(self.title)
            codes = column.codes[rows].astype(np.int64)
            return codes, self._is_value[codes], column.cells
        column = self._table.column_among(self.title, rows)
        return column.codes.astype(np.int64), is_value(column.cells)[column.codes], column.cells
