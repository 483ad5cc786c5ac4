"""What the cells of a column say, whatever its name, found once from its distinct cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from shoal.data.column_words import words_of
from shoal.data.numbers import FARTHEST
from shoal.data.table import Column

NO_VALUE = ("", "?", "*", "NA", "N/A", "n/a", "NULL", "null", "nan", "NaN")
NO_NUMBER = ("None", "-")  # among numbers and dates; elsewhere they may be answers
_ISO = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$"
_DIGITS = r"^\d+$"


@dataclass(frozen=True)
class ColumnCells:
    """A column's distinct cells that hold a value.

    cells: as they are written. values: the same without blanks around them. absent: cells that
    seem to stand for no value. filled: records with a value. records: all of the table.
    """

    name: str
    cells: pl.Series
    values: pl.Series
    absent: tuple[str, ...]
    filled: int
    records: int

    @classmethod
    def of(cls, column: Column) -> ColumnCells:
        cells = pl.Series(column.name, column.cells, dtype=pl.String)
        values = cells.str.strip_chars()
        is_value = ~values.is_in(NO_VALUE)
        if values.is_in(NO_NUMBER).any():
            fewer = is_value & ~values.is_in(NO_NUMBER)
            some = values.filter(fewer)
            if len(some) and (_numbers(some) is not None or _are_iso_days(some)):
                is_value = fewer
        filled = int(column.counts()[is_value.to_numpy()].sum())
        absent = tuple(cells.filter(~is_value & (values != "*")).to_list())
        kept = cells.filter(is_value), values.filter(is_value)
        return cls(column.name, *kept, absent, filled, len(column.codes))

    def is_value(self, column: Column) -> np.ndarray:
        """(column's cells,) bool, which of them hold a value. column: the one these are of."""
        cells = pl.Series(column.cells, dtype=pl.String)
        return cells.is_in(self.cells.implode()).to_numpy()

    @cached_property
    def words(self) -> list[str]:
        return words_of(self.name)

    @property
    def distinct(self) -> int:
        return len(self.cells)

    @property
    def repeats(self) -> bool:
        return self.filled > self.distinct

    @property
    def all_differ(self) -> bool:
        return 1 < self.distinct == self.filled

    @cached_property
    def numbers(self) -> np.ndarray | None:
        """(distinct,) float64; None where some are not numbers, or too far out for a domain."""
        return _numbers(self.values)

    @cached_property
    def are_whole(self) -> bool:
        """Whether they are numbers without fractions."""
        return self.numbers is not None and bool((self.numbers == np.rint(self.numbers)).all())

    @property
    def are_iso_days(self) -> bool:
        """Whether they are dates or time stamps as ISO 8601 writes them."""
        return _are_iso_days(self.values)

    @cached_property
    def code_length(self) -> int | None:
        """Digits of numbers that begin with zeros, as codes do; None for others."""
        if not self.values.str.contains(r"^0\d").any():
            return None
        lengths = self.values.str.len_chars()
        is_code = self.values.str.contains(_DIGITS).all() and lengths.n_unique() == 1
        return int(lengths[0]) if is_code else None

    @property
    def counts_records(self) -> bool:
        """Whether they are whole numbers one after the other, one for each record."""
        if not self.all_differ or not self.are_whole or self.filled < self.records:
            return False
        assert self.numbers is not None
        return bool(self.numbers.max() - self.numbers.min() + 1 == self.distinct)


def _numbers(values: pl.Series) -> np.ndarray | None:
    numbers = values.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    is_number = len(numbers) > 0 and bool((np.abs(numbers) < FARTHEST / 100).all())
    return numbers if is_number else None


def _are_iso_days(values: pl.Series) -> bool:
    if not len(values) or not values.str.contains(_ISO).all():
        return False
    return not values.str.head(10).str.to_date("%Y-%m-%d", strict=False).has_nulls()
