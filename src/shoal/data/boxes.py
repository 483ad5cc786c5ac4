"""What a release shows of its classes as whole numbers, so that attackers can count.

Every quasi-identifier is an axis whose values are 0, 1, 2, ...: steps of a number's finest decimal,
places of an order, or leaves. A class is then a box, and a person a point.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from shoal.data.encoding import EncodedAttribute, linear_domain
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.numbers import position_unit
from shoal.data.release import PublishedColumn
from shoal.data.schema import Kind

EVERYTHING = np.iinfo(np.int32).max  # upper end of the suppression mark: it covers all there is
_SLACK = 1e-6  # of a unit: what floats add to the ends of a cell


@dataclass(frozen=True)
class Axis:
    """One quasi-identifier.

    size: values of its domain, a missing one among them where the table has any: then it is the
        last. low, unit: the number behind 0, and the step. tree: the hierarchy, None where linear.
    """

    name: str
    size: int
    low: float = 0.0
    unit: float = 1.0
    tree: Hierarchy | None = None
    has_missing: bool = False

    @classmethod
    def of(cls, encoded: EncodedAttribute) -> "Axis":
        """The axis of a column of the whole table, whatever part of it is looked at later."""
        attribute = encoded.attribute
        missing = encoded.present < len(encoded.texts)
        if attribute.hierarchy is not None:
            leaves = attribute.hierarchy.leaves
            return cls(attribute.name, leaves + missing, 0.0, 1.0, attribute.hierarchy, missing)
        if attribute.kind is Kind.ORDINAL:
            return cls(attribute.name, len(attribute.order or ()) + missing, has_missing=missing)
        low, high = linear_domain(attribute, encoded.values)
        unit = position_unit(np.append(encoded.values, low), high - low)
        size = int(np.floor((high - low) / unit + _SLACK)) + 1
        return cls(attribute.name, size + missing, low, unit, None, missing)

    @property
    def values(self) -> int:
        """Values of the domain that are not missing."""
        return self.size - self.has_missing

    @property
    def nowhere(self) -> int:
        """The place of a value outside the domain: only the suppression mark covers it."""
        return self.size

    def points(self, values: np.ndarray) -> np.ndarray:
        """(m,) int32 places of numbers, places in the order or leaves; NaN is a missing value."""
        missing = np.isnan(values)
        steps = np.rint((np.where(missing, self.low, values) - self.low) / self.unit)
        outside = (steps < 0) | (steps >= self.values)
        places = np.where(outside, self.nowhere, steps).astype(np.int32)
        return np.where(missing, self.values if self.has_missing else self.nowhere, places)

    def spans(self, published: PublishedColumn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """First and last place of each distinct cell, int32, and how many values it holds."""
        marked = np.isneginf(published.lo)
        missing = np.isnan(published.lo)
        shown = ~marked & ~missing
        lo = np.where(shown, published.lo, self.low)
        hi = np.where(shown, published.hi, self.low)
        first = np.clip(np.ceil((lo - self.low) / self.unit - _SLACK), 0, self.values - 1)
        last = np.clip(np.floor((hi - self.low) / self.unit + _SLACK), 0, self.values - 1)
        sizes = np.where(marked, self.size, np.maximum(last - first + 1, 1))
        sizes = np.where(missing, 1, sizes)
        none = self.values if self.has_missing else self.nowhere
        first = np.where(marked, 0, np.where(missing, none, first)).astype(np.int32)
        last = np.where(marked, EVERYTHING, np.where(missing, none, last)).astype(np.int32)
        return first, last, sizes.astype(np.float64)


@dataclass(frozen=True)
class Boxes:
    """The cells of every class, without suppressed records.

    lo, hi: (classes, d) int32, first and last place that the cell covers; the mark ends at
        EVERYTHING. sizes: (classes, d) float64, values in the cell. people: (classes,) int64.
    """

    axes: tuple[Axis, ...]
    lo: np.ndarray
    hi: np.ndarray
    sizes: np.ndarray
    people: np.ndarray

    @property
    def count(self) -> int:
        return len(self.people)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.axes)

    def log_volumes(self, columns: Iterable[int] | None = None) -> np.ndarray:
        """(classes,) logarithm of how many combinations of values the box holds."""
        kept = list(range(len(self.axes)) if columns is None else columns)
        return np.log(self.sizes[:, kept]).sum(axis=1)

    def is_marked(self) -> np.ndarray:
        """(classes, d) bool, cells that show the suppression mark."""
        return self.hi == EVERYTHING


def boxes_of(
    axes: tuple[Axis, ...],
    columns: Iterable[PublishedColumn],
    labels: np.ndarray,
    people: np.ndarray,
) -> Boxes:
    """The boxes of the classes of a release; labels: (n,) class of each record, -1 for none."""
    published = {column.name: column for column in columns}
    kept = np.flatnonzero(labels >= 0)
    record = np.zeros(len(people), dtype=np.int64)
    record[labels[kept]] = kept  # all records of a class show the same cells
    parts = []
    for axis in axes:
        column = published[axis.name]
        cell = column.codes[record]
        parts.append([part[cell] for part in axis.spans(column)])
    shape = (len(people), 0)
    if not parts:
        none = np.zeros(shape, dtype=np.int32)
        return Boxes(axes, none, none, np.zeros(shape), people)
    lo, hi, sizes = (np.column_stack(part) for part in zip(*parts, strict=True))
    return Boxes(axes, lo, hi, sizes, people)


def axes_of(encoded: Iterable[EncodedAttribute]) -> tuple[tuple[Axis, ...], list[str]]:
    """The axes that attackers read, and the names of columns that show one value for all."""
    axes, blind = [], []
    for attribute in encoded:
        if attribute.attribute.shown.hides_span:
            blind.append(attribute.attribute.name)
        else:
            axes.append(Axis.of(attribute))
    return tuple(axes), blind
