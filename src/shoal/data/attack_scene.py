"""What an attack is given: a release as its readers see it, and the people it is tried on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from shoal.data.boxes import Boxes
from shoal.data.classes import SensitiveColumn
from shoal.data.row_order import Followed

Findings: TypeAlias = dict[str, Any]
"""What an attack found, as a certificate states it: shares and counts, by names of its own."""


@dataclass(frozen=True)
class ShownRelease:
    """A released table; n records, suppressed ones too.

    labels: (n,) int32 class, -1 where suppressed. subjects: (n,) int32 person of each record, None
    where each is its own. sensitive: published values by attribute, in one code space with the
    people's. plain: (n,) codes of the columns that pass through, by name. real: (n,) bool, rows
    that people stand behind; None where none is invented.
    """

    boxes: Boxes
    labels: np.ndarray
    subjects: np.ndarray | None
    sensitive: Mapping[str, SensitiveColumn]
    plain: Mapping[str, np.ndarray] = field(default_factory=dict)
    real: np.ndarray | None = None

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
        statistics = method.get("search_statistics", {})
        return cls(method["name"], parameters, statistics, limit)


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
