"""Promises about a release as a whole, from the sizes of its classes alone.

Sizes are counted in distinct subjects; suppressed records are in no class. Every class is given the
figure of the whole release, so that all of them hold or none does.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import ClassVar

import numpy as np

from shoal.data.certificate_shape import PromiseReport
from shoal.data.classes import Classes, Sizes
from shoal.data.option import parameter
from shoal.privacy.promise import Judgement, Promise, as_written
from shoal.privacy.uniqueness import ESTIMATORS


class _OfSizes(Promise):
    """What depends on the class sizes of the whole release."""

    higher_is_better: ClassVar[bool] = False
    whole_table: ClassVar[bool] = True
    attributes = ()
    letter: ClassVar[str] = "threshold"

    threshold: float

    def enough_subjects(self, several_records: bool) -> int:
        return 2 if self.threshold < 1 else 1

    @abstractmethod
    def of_sizes(self, sizes: Sizes) -> tuple[float, bool]:
        """The figure for the sizes of one class or more, and whether it is low enough."""

    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        people = classes.people()
        occupied = people > 0
        measured, holds = self.of_sizes(Sizes.of(people)) if occupied.any() else (np.nan, False)
        return np.where(occupied, measured, np.nan), occupied & holds

    def part(self, classes: Classes, table: Classes) -> Judgement:
        """The sizes alone: what they amount to is known of all of them together only."""
        people = classes.people()
        return Judgement(None, bool((people > 0).all()), Sizes.of(people))

    def total(self, parts: Sequence[Judgement]) -> PromiseReport:
        sizes, occupied = Sizes.joined(part.more for part in parts), all(p.holds for p in parts)
        if not sizes.count:
            return self.stated(None, occupied)
        measured, holds = self.of_sizes(sizes)
        return self.stated(self.worst(np.array([measured])), occupied and holds)

    def _is_low(self, part: int, of: int) -> bool:
        return Fraction(part, max(of, 1)) <= as_written(self.threshold)


@dataclass(frozen=True)
class AverageRisk(_OfSizes):
    """The average chance to pick a person's record is at most the threshold.

    A person in a class of s has risk 1 / s, so the average is classes / people. Merging classes
    lowers it.
    """

    model: ClassVar[str] = "average-risk"
    source: ClassVar[str] = "El Emam 2013 (marketer risk)"
    definition: ClassVar[str] = (
        "The mean over all people of 1 / (people in their class), which is classes / people, is at"
        " most the threshold."
    )
    monotone: ClassVar[bool] = True

    threshold: float = parameter("greatest average risk", low=0.0, high=1.0, above=True)

    def enough_subjects(self, several_records: bool) -> int:
        return ceil(1 / as_written(self.threshold))

    def of_sizes(self, sizes: Sizes) -> tuple[float, bool]:
        return sizes.count / sizes.total, self._is_low(sizes.count, sizes.total)

    def nearest(self, whole_table: Classes) -> list[str]:
        people = int(whole_table.people()[0])
        least = -(-(10**6) // max(people, 1)) / 10**6
        return [
            f"promise '{self.model}': threshold = {self.threshold} asked, {people} subjects in the"
            f" table; the nearest that holds is threshold = {least}"
        ]


@dataclass(frozen=True)
class SampleUniqueness(_OfSizes):
    """At most a share of the people of the release are alone in their class.

    Merging classes leaves nobody alone who was not alone before.
    """

    model: ClassVar[str] = "sample-uniqueness"
    source: ClassVar[str] = "Skinner, Elliot 2002; as in ARX"
    definition: ClassVar[str] = (
        "The share of people who are alone in their class is at most the threshold."
    )
    monotone: ClassVar[bool] = True

    threshold: float = parameter("greatest share of people alone in a class", low=0.0, high=1.0)

    def of_sizes(self, sizes: Sizes) -> tuple[float, bool]:
        alone, total = int(sizes.groups[sizes.sizes == 1].sum()), sizes.total
        return alone / total, self._is_low(alone, total)

    def nearest(self, whole_table: Classes) -> list[str]:
        return [f"promise '{self.model}': the table has one subject, who is alone; add records"]


@dataclass(frozen=True)
class PopulationUniqueness(_OfSizes):
    """At most an estimated share of the population is alone in its class.

    The people of the release are a sample of that population.

    The estimate says nothing where its model doesn't fit: a model that can't be fitted keeps no
    promise. Merging classes may raise an estimate, so this promise is not monotone.
    """

    model: ClassVar[str] = "population-uniqueness"
    source: ClassVar[str] = "Hoshino 2001 (Pitman); Zayatz 1991; Chen, McNulty 1998 (SNB)"
    definition: ClassVar[str] = (
        "The share of the population that is alone in its class, estimated from the class sizes of"
        " the release as a random sample of the given fraction, is at most the threshold; 0 where"
        " nobody of the release is alone."
    )
    monotone: ClassVar[bool] = False
    states: ClassVar[tuple[str, ...]] = ("estimator", "fraction")

    threshold: float = parameter("greatest share of the population alone", low=0.0, high=1.0)
    fraction: float = parameter(
        "share of the population that is in the table", low=0.0, high=1.0, above=True
    )
    estimator: str = parameter(
        "model of the class sizes", default="pitman", choices=tuple(ESTIMATORS)
    )

    def of_sizes(self, sizes: Sizes) -> tuple[float, bool]:
        estimate = ESTIMATORS[self.estimator]
        is_any_alone = sizes.least == 1
        share = estimate(sizes.sizes, sizes.groups, self.fraction) if is_any_alone else 0.0
        return share, bool(share <= self.threshold)
