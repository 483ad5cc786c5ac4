"""What an attack is given: a release as its readers see it, also as whole numbers, so that
attackers can count, and the people it is tried on.

Every quasi-identifier is an axis whose values are 0, 1, 2, ...: steps of a number's finest decimal,
places of an order, or leaves. A class is then a box, and a person a point.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from shoal.data.classes import SensitiveColumn
from shoal.data.encoding import EncodedAttribute, linear_domain
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.numbers import position_unit
from shoal.data.release import PublishedColumn
from shoal.data.row_order import Followed
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
        """(m,) int32 places of numbers, places in the order or leaves; NaN is a missing value, and
        infinite what has no place.
        """
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
    lo, hi = np.zeros((2, len(people), len(axes)), dtype=np.int32)
    sizes = np.zeros(lo.shape)
    for j, axis in enumerate(axes):
        column = published[axis.name]
        cell = column.codes[record]
        lo[:, j], hi[:, j], sizes[:, j] = (part[cell] for part in axis.spans(column))
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


Findings: TypeAlias = dict[str, Any]
"""What an attack found, as a certificate states it: shares and counts, by names of its own."""


@dataclass(frozen=True)
class ShownRelease:
    """A released table; n records, suppressed ones too.

    labels: (n,) int32 class, -1 where suppressed. subjects: (n,) int32 person of each record, None
    where each is its own. sensitive: published values by attribute, in one code space with the
    people's. plain: (n,) codes of the columns that pass through, by name. real: (n,) bool, rows
    that people stand behind; None where none is invented. naming: the columns of either that name
    people or say where they are.
    """

    boxes: Boxes
    labels: np.ndarray
    subjects: np.ndarray | None
    sensitive: Mapping[str, SensitiveColumn]
    plain: Mapping[str, np.ndarray] = field(default_factory=dict)
    real: np.ndarray | None = None
    naming: tuple[str, ...] = ()

    @property
    def in_classes(self) -> np.ndarray:
        """(n,) bool, rows of people who are in some class."""
        kept = self.labels >= 0
        return kept if self.real is None else kept & self.real

    @property
    def persons(self) -> np.ndarray:
        """(n,) the person of each record."""
        return np.arange(len(self.labels)) if self.subjects is None else self.subjects

    @property
    def records(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class People:
    """People as an attacker knows them, record by record.

    points: (m, d) int32, their quasi-identifiers. values: (m,) int64 true sensitive codes by
    attribute, -1 for a value that nobody in the table has. persons: (m,) whose record it is.
    classes: (m,) the class of their own record in the release, -1 if it is suppressed; None where
    they are not in it, or where that is not known.
    """

    points: np.ndarray
    values: Mapping[str, np.ndarray]
    persons: np.ndarray
    classes: np.ndarray | None = None

    @property
    def records(self) -> int:
        return len(self.points)

    def take(self, rows: np.ndarray) -> "People":
        """Some of the records."""
        return People(
            self.points[rows],
            {name: codes[rows] for name, codes in self.values.items()},
            self.persons[rows],
            None if self.classes is None else self.classes[rows],
        )


@dataclass(frozen=True)
class Trial:
    """A release, people who are in it, and people like them who are not; None where none are."""

    release: ShownRelease
    members: People
    outsiders: People | None = None


@dataclass(frozen=True)
class Control:
    """Where the people come from who are not in the release.

    kind: `republished`, `given` or `none`. reason: why there are none.
    """

    kind: str = "none"
    people: int = 0
    folds: int = 0
    reason: str | None = None


@dataclass(frozen=True)
class ShownRows:
    """All rows of another release, m of them.

    labels: (m,) class, -1 where suppressed. persons: (m,) in the numbers of this release's people;
    others have numbers beyond them. values: (m,) sensitive codes by attribute, as this release's,
    -1 for a value that it does not show.
    """

    labels: np.ndarray
    persons: np.ndarray
    values: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class EarlierRelease:
    """Another release of the same people, aligned with this one.

    rows: what it shows. labels: (n,) class there of each record of this release: -1 where
    suppressed, -2 where the person is not in it. unchanged: (n,) bool, whether it shows the same
    sensitive values. order: share of rows that agree in what both show, and the chance of it; None
    where rows can't be compared. joined_by: `order`, `subject`, `trace` or `ledger`.
    absence_is_known: whether an attacker knows who is not in it.
    """

    rows: ShownRows
    labels: np.ndarray
    unchanged: np.ndarray
    order: tuple[float, float] | None
    joined_by: str
    absence_is_known: bool = False


@dataclass(frozen=True)
class ExternalList:
    """A named list of people that an attacker holds.

    columns: the axes that it has. points: (m, columns). classes: (m,) the class of each of them in
    the release, -1 for none; None where the list does not say who they are.
    """

    columns: tuple[int, ...]
    points: np.ndarray
    classes: np.ndarray | None


@dataclass(frozen=True)
class Surroundings:
    """The population that a release was drawn from.

    source: `table`, `frequencies`, `fraction` or `weights`. columns: the axes that it knows.
    points: (m, columns) combinations of values. weights: (m,) people who have them; of `weights`,
    those whom the people of each class stand for. fraction: share of the population in the release.
    uniques: share of the population that is alone in its class, by the estimator; None where its
    model can't be fitted.
    """

    source: str
    columns: tuple[int, ...] = ()
    points: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int32))
    weights: np.ndarray = field(default_factory=lambda: np.zeros(0))
    fraction: float | None = None
    estimator: str | None = None
    uniques: float | None = None


@dataclass(frozen=True)
class Replay:
    """What a method would do with the records of one class alone; rows: of the release.

    would_cut: whether it would cut them if only k were asked. stays_whole: given an attribute and
    (a, m) whose value each of the m records gets, whether they would stay one class, (a,) bool.
    """

    would_cut: Callable[[np.ndarray], bool]
    stays_whole: Callable[[np.ndarray, str, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Recoding:
    """How the release was made, as far as that is known.

    statistics: of a search that recodes globally. suppression_limit: records that it might
    suppress. replay: None for the reason `no_replay`.
    """

    method: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    statistics: Mapping[str, Any] = field(default_factory=dict)
    suppression_limit: int | None = None
    replay: Replay | None = None
    no_replay: str = "no account of what this method would have done otherwise"

    @classmethod
    def of(cls, method: Mapping[str, Any], records: int) -> "Recoding":
        """As a certificate's `method` states it."""
        parameters = method.get("parameters", {})
        share = parameters.get("suppression")
        limit = None if share is None else int(Fraction(str(share)) * records)
        return cls(method["name"], parameters, method.get("search_statistics", {}), limit)


@dataclass(frozen=True)
class AttackScene:
    """All that an attack may use.

    people: everybody of the original; `people.classes` and the release's records are aligned where
    it is not None. trials: releases with people inside and outside, at least one. halves: a
    release of one random half of the people, and the other half. required_k: the
    policy's k. blind: quasi-identifiers that show their means alone, which no attacker reads.
    followed: the column that rows follow most, as `most_followed` finds it; None without one.
    no_people: why people's quasi-identifiers are not at hand, nor the boxes of classes; None where
    they are.
    """

    seed: int
    release: ShownRelease
    people: People
    trials: tuple[Trial, ...]
    control: Control = Control()
    halves: Trial | None = None
    earlier: tuple[EarlierRelease, ...] = ()
    not_aligned: int = 0
    external: ExternalList | None = None
    surroundings: Surroundings | None = None
    recoding: Recoding = field(default_factory=Recoding)
    required_k: int | None = None
    blind: tuple[str, ...] = ()
    no_people: str | None = None
    followed: Followed | None = None

    @property
    def is_aligned(self) -> bool:
        """Whether it is known which record of the release is whose."""
        return self.people.classes is not None

    def rng(self, number: int) -> np.random.Generator:
        """The random numbers of one attack."""
        return np.random.default_rng([self.seed, 5, number])
