"""True values behind published records, and squared errors that add up over parts of a release."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import frexp, isfinite, ldexp

import numpy as np

from shoal.data.room import IN_MEMORY, blocks

_BITS = 61
"""Errors of classes are whole multiples of their bound over 2 to this power, so that their sum is
exact, fits 64 bits and depends neither on their order nor on how classes are parted."""


@dataclass(frozen=True)
class TrueValues:
    """The number behind each published record of an attribute.

    codes: (n,) unsigned, which distinct value. values: (values,) float64, NaN for none.
    whole_table: (values,) int64, how many records of the whole table have each; by default, those
        at hand.
    """

    codes: np.ndarray
    values: np.ndarray
    whole_table: np.ndarray | None = field(default=None, repr=False)

    @classmethod
    def of(cls, numbers: np.ndarray) -> TrueValues:
        """Of a number for each record, (n,) float64."""
        values, codes = np.unique(numbers, return_inverse=True)
        return cls(codes.reshape(-1).astype(np.int32), values)

    def take(self, rows: np.ndarray) -> TrueValues:
        return replace(self, codes=self.codes[rows])

    @property
    def numbers(self) -> np.ndarray:
        """(n,) float64."""
        return self.values[self.codes]

    @cached_property
    def _table(self) -> tuple[np.ndarray, float]:
        """Every value less the mean of the whole table, and the sum of their squares there."""
        counts = self.whole_table
        if counts is None:
            counts = np.bincount(self.codes, minlength=len(self.values))
        counts, present = counts.astype(np.float64), ~np.isnan(self.values) & (counts > 0)
        if not present.any():
            return np.zeros(len(self.values)), 0.0
        often, values = counts[present], self.values[present]
        shifted = self.values - float(np.einsum("i,i", often, values)) / float(often.sum())
        # small numbers keep their digits; np.dot would wake a thread per core for all of the run
        return shifted, float(np.einsum("i,i,i", often, shifted[present], shifted[present]))

    def squared_error(self, places: np.ndarray, sizes: np.ndarray) -> SquaredSum:
        """Around the mean of each class; around that of the whole table for records in none.

        places: (n,) intp, class of each record, the last one where it shows nothing. sizes:
        (classes + 1,) records of each.
        """
        shifted, whole = self._table
        numbers = IN_MEMORY.gather(shifted, self.codes)
        if np.isnan(shifted).any():
            present = ~np.isnan(numbers)
            numbers, places = numbers[present], places[present]
            sizes = np.bincount(places, minlength=len(sizes))
        sums = np.bincount(places, weights=numbers, minlength=len(sizes))
        means = sums / np.maximum(sizes, 1)
        means[-1] = 0.0
        for rows in blocks(len(numbers)):
            off = numbers[rows]
            off -= IN_MEMORY.gather(means, places[rows])
            off *= off
        return SquaredSum.of(np.bincount(places, weights=numbers, minlength=len(sizes)), whole)


@dataclass(frozen=True)
class SquaredSum:
    """A sum of squared errors as a whole multiple of what its bound fixes.

    whole: the sum of squares around the mean of the whole table, which no sum around means of
        classes exceeds; infinite or NaN where the numbers are beyond what a float holds.
    """

    units: int
    whole: float

    @classmethod
    def of(cls, errors: np.ndarray, whole: float) -> SquaredSum:
        """The sum of some classes' errors. errors: (classes,) float64."""
        if not isfinite(whole) or whole <= 0:
            return cls(0, whole)
        units = np.rint(np.ldexp(errors, _BITS - frexp(whole)[1]))
        return cls(int(units.astype(np.int64).sum()), whole)

    @property
    def error(self) -> float:
        if not isfinite(self.whole) or self.whole <= 0:
            return self.whole
        return min(ldexp(float(self.units), frexp(self.whole)[1] - _BITS), self.whole)

    @classmethod
    def total(cls, parts: Iterable[SquaredSum]) -> SquaredSum:
        """Of all parts of one table; there is at least one."""
        parts = list(parts)
        return cls(sum(part.units for part in parts), parts[0].whole)
