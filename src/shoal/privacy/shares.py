"""The share of each sensitive value in a class beside its share in the whole table.

What beta-likeness and delta-disclosure privacy compare. Shares weigh (subject, value) pairs, as
those of
t-closeness do: a subject counts once for each different value it has there.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext

import numpy as np

from shoal.data.classes import Classes
from shoal.privacy.promise import Promise
from shoal.privacy.value_counts import ValueCounts, counts_of, sensitive_column, table_frequencies

UNSURE = Decimal("1e-50")
"""Logarithms of 60 digits that are no farther apart are taken to be equal."""


@dataclass(frozen=True)
class Shares:
    """For every value that occurs in a class, its share there (q) and in the whole table (p).

    counts: the cells. inside, outside: (cells,) int64 whole numbers with q / p = inside / outside.
    often: (cells,) int64 how often the value counts in the table. pairs: how often all values do.
    occurring: values that occur in the table.
    """

    counts: ValueCounts
    inside: np.ndarray
    outside: np.ndarray
    often: np.ndarray
    pairs: int
    occurring: int

    @classmethod
    def of(cls, classes: Classes, attribute: str, frequencies: np.ndarray) -> Shares:
        counts = counts_of(classes, sensitive_column(classes, attribute))
        size, often, pairs = (
            np.repeat(counts.total(), counts.distinct),
            frequencies[counts.value],
            frequencies.sum(),
        )
        inside, outside = counts.count * pairs, size * often
        return cls(counts, inside, outside, often, int(pairs), int((frequencies > 0).sum()))

    @property
    def ratio(self) -> np.ndarray:
        """q / p of every cell, (cells,) float64."""
        return self.inside / self.outside

    @property
    def occupied(self) -> np.ndarray:
        """Which classes hold a record at all, (classes,) bool."""
        return self.counts.distinct > 0


class SharesPromise(Promise):
    """A promise about q and p of every value, on several attributes, of which the worst counts."""

    higher_is_better = False

    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        return self.judged_against(classes, classes)

    def judged_against(self, table: Classes, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        return self._judge(classes, self._frequencies(table))

    def against(self, table: Classes) -> Callable[[Classes], np.ndarray]:
        frequencies = self._frequencies(table)
        return lambda classes: self._judge(classes, frequencies)[1]

    @abstractmethod
    def judge_shares(self, shares: Shares) -> tuple[np.ndarray, np.ndarray]:
        """Measured value of one attribute and whether it holds, for every class with a record."""

    def _frequencies(self, table: Classes) -> Mapping[str, np.ndarray]:
        return {
            name: table_frequencies(table, sensitive_column(table, name), self.compares_with_input)
            for name in self.attributes
        }

    def _judge(
        self, classes: Classes, frequencies: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        measured, holds = np.zeros(classes.count), np.ones(classes.count, dtype=bool)
        for name in self.attributes:
            shares = Shares.of(classes, name, frequencies[name])
            value, kept = self.judge_shares(shares)
            measured = np.maximum(measured, np.where(shares.occupied, value, np.nan))
            holds &= kept & shares.occupied
        return measured, holds


def precise_logarithm(numerator: int, denominator: int) -> Decimal:
    """ln(numerator / denominator) to 60 digits."""
    with localcontext(prec=60):
        return Decimal(numerator).ln() - Decimal(denominator).ln()
