"""How often each sensitive value occurs in each class, without a table of classes times values."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from typing import ClassVar

import numpy as np

from shoal.data.certificate_shape import PromiseReport
from shoal.data.classes import Classes, SensitiveColumn
from shoal.errors import InputError
from shoal.privacy import promise
from shoal.privacy.k_anonymity import BesidesK, too_few_subjects
from shoal.privacy.promise import Judgement, Promise


@dataclass(frozen=True)
class ValueCounts:
    """The values that occur, class by class.

    A subject counts once for each different value that it has in a class, however many records say
    so; a subject with several values counts once for each of them.

    class_of: (cells,) int64, ascending. value: (cells,) int64, ascending within a class.
    count: (cells,) int64 subjects with this value in this class.
    starts: (classes + 1,) int64, the cells of class c are starts[c]:starts[c + 1].
    """

    class_of: np.ndarray
    value: np.ndarray
    count: np.ndarray
    starts: np.ndarray

    @property
    def classes(self) -> int:
        return len(self.starts) - 1

    @property
    def distinct(self) -> np.ndarray:
        """Different values of every class, (classes,) int64."""
        return np.diff(self.starts)

    def total(self) -> np.ndarray:
        """Subjects of every class, once for each of their values; (classes,) int64."""
        return self.sums(self.count)

    def sums(self, cells: np.ndarray) -> np.ndarray:
        """Sum over the cells of every class, (classes,) of the cells' own type."""
        return self._reduced(np.add, cells)

    def largest(self, cells: np.ndarray) -> np.ndarray:
        """Greatest over the cells of every class, 0 for a class without any; (classes,)."""
        return self._reduced(np.maximum, cells)

    def _reduced(self, operation: np.ufunc, cells: np.ndarray) -> np.ndarray:
        result = np.zeros(self.classes, dtype=cells.dtype)
        occupied = np.flatnonzero(self.distinct)
        if len(occupied):
            result[occupied] = operation.reduceat(cells, self.starts[occupied])
        return result

    def only(self, chosen: np.ndarray) -> "ValueCounts":
        """The counts of some classes, renumbered 0.. in order; chosen: ascending numbers."""
        sizes = self.distinct[chosen]
        starts = np.concatenate(([0], np.cumsum(sizes)))
        cells = np.repeat(self.starts[chosen] - starts[:-1], sizes) + np.arange(starts[-1])
        return ValueCounts(
            np.repeat(np.arange(len(chosen)), sizes), self.value[cells], self.count[cells], starts
        )


def value_counts(classes: Classes, attribute: str) -> ValueCounts:
    """Counts of one sensitive attribute; raises InputError when the classes don't carry it.

    Texts that stand for no value are one value; see `counts_of` for those that compare shares.
    """
    return counts_of(classes, sensitive_column(classes, attribute).with_missing_as_one())


def counts_of(classes: Classes, column: SensitiveColumn) -> ValueCounts:
    """Counts of the places of a sensitive column, whose codes are aligned with the classes."""
    width = max(column.values, 1)
    pairs = _class_value_pairs(classes, column, width)
    edges = _edges(pairs)
    cells = pairs[edges[:-1]].astype(np.int64)
    class_of = cells // width
    starts = np.searchsorted(class_of, np.arange(classes.count + 1))
    return ValueCounts(class_of, cells - class_of * width, np.diff(edges), starts)


def table_frequencies(
    table: Classes, column: SensitiveColumn, everybody: bool = False
) -> np.ndarray:
    """How often each place counts among all records in some class of the table, or among all
    records; (values,) int64.
    """
    if column.in_table is not None:
        return column.in_table
    labels = np.where((table.labels >= 0) | everybody, 0, -1)
    counts = counts_of(Classes(labels, 1, table.subjects, table.sensitive), column)
    frequencies = np.zeros(max(column.values, 1), dtype=np.int64)
    frequencies[counts.value] = counts.count
    return frequencies


def sensitive_column(classes: Classes, attribute: str) -> SensitiveColumn:
    if attribute not in classes.sensitive:
        raise InputError(
            f"attribute '{attribute}': a promise needs it as sensitive; give it that role"
        )
    return classes.sensitive[attribute]


def _class_value_pairs(classes: Classes, column: SensitiveColumn, width: int) -> np.ndarray:
    """class * width + value of every record in a class, ascending, a subject once for each."""
    labels, codes, subjects = classes.labels, column.codes, classes.subjects
    kept = labels >= 0
    if not kept.all():
        labels, codes = labels[kept], codes[kept]
        subjects = None if subjects is None else subjects[kept]
    pairs = labels.astype(np.int64) * width + codes
    if subjects is None:
        return np.sort(_narrow(pairs, classes.count * width))
    people = int(subjects.max()) + 1 if len(subjects) else 1
    if classes.count * width * people < promise.ROOM:
        return _distinct(pairs * people + subjects) // people
    values, dense = np.unique(pairs, return_inverse=True)
    return values[_distinct(dense * people + subjects) // people]


def _narrow(keys: np.ndarray, bound: int) -> np.ndarray:
    """Shorter integers where they fit: they sort several times as fast."""
    return keys.astype(np.int32) if bound < 2**31 else keys


def _distinct(keys: np.ndarray) -> np.ndarray:
    ordered = np.sort(keys)
    return ordered[_edges(ordered)[:-1]]


def _edges(ordered: np.ndarray) -> np.ndarray:
    """Where each run of equal keys starts, and the end; (runs + 1,) int64."""
    if not len(ordered):
        return np.zeros(1, dtype=np.int64)
    changes = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    return np.concatenate(([0], changes, [len(ordered)]))


# What p-sensitive k-anonymity and (k,l)-diversity share: people and values in every class.


class CountsValues(Promise):
    """A promise to which "no value" is a value, and what it would measure if it were none.

    `measured_without_missing` is stated where that is worse than what is measured.
    """

    def judge_valued(self, classes: Classes) -> np.ndarray:
        """The measured value of every class, without the records that have no value."""
        return self.measure(_with_a_value(classes, self.attributes[0]))

    def part(self, classes: Classes, table: Classes) -> Judgement:
        found = super().part(classes, table)
        if not any(sensitive_column(classes, name).missing for name in self.attributes):
            return found
        return replace(found, valued=self.worst(self.judge_valued(classes)))

    def total(self, parts: Sequence[Judgement]) -> PromiseReport:
        report = super().total(parts)
        known = [part.valued for part in parts if part.valued is not None]
        worst = self.worst(np.array([*known, report["measured"]], dtype=np.float64))
        if known and worst is not None and worst != report["measured"]:
            report["measured_without_missing"] = worst
        return report


def _with_a_value(classes: Classes, name: str) -> Classes:
    """The classes without the records that have no value of a sensitive attribute."""
    column = sensitive_column(classes, name)
    has_value = column.codes < column.values - column.missing
    return replace(classes, labels=np.where(has_value, classes.labels, -1))


class DifferentValues(CountsValues, BesidesK, ABC):
    """k-anonymity, and several different values of each listed attribute in every class.

    What is measured is the number of values, of the attribute that has the fewest; `holds` asks k
    as well. letter: the field that says how many values are asked.
    """

    monotone: ClassVar[bool] = True
    higher_is_better: ClassVar[bool] = True
    states: ClassVar[tuple[str, ...]] = ("k",)

    attributes: tuple[str, ...]
    k: int

    @property
    def _values(self) -> int:
        values: int = getattr(self, self.letter)
        return values

    @property
    def survives_additions(self) -> bool:
        return True

    def least_subjects(self, several_records: bool) -> int:
        """Different values need as many subjects, unless one subject may bring several values."""
        return self.k if several_records else max(self.k, self._values)

    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        fewest: np.ndarray = np.min(
            [value_counts(classes, name).distinct for name in self.attributes], axis=0
        )
        return fewest.astype(np.float64), (fewest >= self._values) & (classes.people() >= self.k)

    def judge_valued(self, classes: Classes) -> np.ndarray:
        counts = (value_counts(_with_a_value(classes, name), name) for name in self.attributes)
        return np.min([one.distinct for one in counts], axis=0).astype(np.float64)

    def nearest(self, whole_table: Classes) -> list[str]:
        return [
            *too_few_subjects(self.model, self.k, whole_table),
            *self._too_few_values(whole_table),
        ]

    def _too_few_values(self, whole_table: Classes) -> list[str]:
        """A finding for every attribute with fewer different values in the table than asked."""
        letter, asked = self.letter, self._values
        distinct = {
            name: int(value_counts(whole_table, name).distinct[0]) for name in self.attributes
        }
        return [
            f"promise '{self.model}' on '{name}': {letter} = {asked} asked, {most} different values"
            f" in the table; the nearest that holds is {letter} = {most}"
            for name, most in distinct.items()
            if most < asked
        ]


# The share of each sensitive value in a class beside its share in the whole table.
#
# What beta-likeness and delta-disclosure privacy compare. Shares weigh (subject, value) pairs, as
# those of t-closeness do: a subject counts once for each different value it has there.


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
    def of(cls, classes: Classes, attribute: str, frequencies: np.ndarray) -> "Shares":
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
