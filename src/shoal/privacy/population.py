"""Promises that compare a release with a table of the whole population.

A person of the population fits a class if the class's published cells cover all of that person's
quasi-identifiers. Rows of the population table are people.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.data.certificate_shape import PromiseReport
from shoal.data.classes import Classes, Population
from shoal.data.option import parameter
from shoal.errors import InputError
from shoal.privacy.promise import Judgement, Promise, as_written, decimal, one_name, sign

NEEDS_ORDER = (
    "population: an order or hierarchy follows from the input, so the release alone does not tell"
    " who fits its classes; give the original (--original)"
)


class _AgainstPopulation(Promise):
    """What counts the population of each class."""

    attributes = ()

    def of(self, classes: Classes) -> Population:
        """Who fits each class; raises InputError where nobody has counted."""
        if self.population not in classes.population:
            raise InputError(NEEDS_ORDER)
        return classes.population[self.population]


@dataclass(frozen=True)
class KMap(_AgainstPopulation):
    """Every class fits at least k people of the population.

    Weaker than k-anonymity, as others than those in the table could be meant.

    The people who fit a union of classes are at least those who fit the larger one.
    """

    model: ClassVar[str] = "k-map"
    letter: ClassVar[str] = "k"
    source: ClassVar[str] = "Sweeney 2001"
    definition: ClassVar[str] = (
        "The published cells of every class cover at least k people of the population table."
    )
    monotone: ClassVar[bool] = True
    higher_is_better: ClassVar[bool] = True

    k: int = parameter("least number of people of the population who fit a class", low=2)
    population: str = parameter("table of the population, with all quasi-identifiers")

    def nearest_among(self, people: int) -> list[str]:
        """What stands against the promise in a population of this size."""
        if people >= self.k:
            return []
        remedy = (
            f"the nearest that may hold is k = {people}"
            if people >= 2
            else "no k holds for fewer than 2"
        )
        return [
            f"promise '{self.model}': k = {self.k} asked, {people} people in the population;"
            f" {remedy}"
        ]

    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        people = self.of(classes).people
        return people.astype(np.float64), (people >= self.k) & (classes.people() > 0)


@dataclass(frozen=True)
class DeltaPresence(_AgainstPopulation):
    """Nobody's presence in the release can be inferred with more, or less, than delta.

    A union's share of its population lies between the shares of its classes where nobody fits two
    of them, as with global recoding; other methods don't ask it of unions, only of the release.
    """

    model: ClassVar[str] = "delta-presence"
    letter: ClassVar[str] = "delta_max"
    source: ClassVar[str] = "Nergiz, Atzori, Clifton 2007"
    definition: ClassVar[str] = (
        "For every person of the population table, the chance to be in the release - people of the"
        " class that fits, by people of the population who fit it, 0 where none fits - is at least"
        " delta_min and at most delta_max."
    )
    monotone: ClassVar[bool] = True
    higher_is_better: ClassVar[bool] = False
    states: ClassVar[tuple[str, ...]] = ("delta_min",)

    delta_max: float = parameter("greatest chance to be in the release", low=0.0, high=1.0)
    population: str = parameter("table of the population, with all quasi-identifiers")
    delta_min: float = parameter("least chance", default=0.0, low=0.0, high=1.0)

    def __post_init__(self) -> None:
        object.__setattr__(
            self,
            "delta_max",
            decimal(self.model, "delta_max", self.delta_max, 0.0, 1.0, above=True),
        )
        object.__setattr__(
            self, "delta_min", decimal(self.model, "delta_min", self.delta_min, 0.0, self.delta_max)
        )
        one_name(self.model, "population", self.population)

    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        fits, people = self.of(classes), classes.people()
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(people > 0, people / fits.people, np.nan)
        low = sign(people, fits.people, as_written(self.delta_min)) >= 0
        high = sign(people, fits.people, as_written(self.delta_max)) <= 0
        nobody_left_out = not (self.delta_min > 0 and fits.outside)
        return share, low & high & (people > 0) & nobody_left_out

    def part(self, classes: Classes, table: Classes) -> Judgement:
        share, holds = self.judge(classes)
        known = share[~np.isnan(share)]
        least = 0.0 if self.of(classes).outside else float(known.min()) if len(known) else None
        return self._judgement(share, holds, least)

    def total(self, parts: Sequence[Judgement]) -> PromiseReport:
        known = [part.more for part in parts if part.more is not None]
        return super().total(parts) | {"measured_min": min(known, default=None)}
