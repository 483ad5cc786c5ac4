"""How often each sensitive value occurs in each class, without a table of classes times values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.data.classes import Classes, SensitiveColumn
from shoal.errors import InputError
from shoal.privacy import exact


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

    def only(self, chosen: np.ndarray) -> ValueCounts:
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
    whole_table = Classes(labels, 1, table.subjects, table.sensitive)
    counts = counts_of(whole_table, column)
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
    if classes.count * width * people < exact.ROOM:
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
