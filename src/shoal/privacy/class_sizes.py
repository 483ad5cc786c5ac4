"""Promises about a release as a whole, from the sizes of its classes alone; and how much of a
population is alone in its class, estimated from a sample's classes.

Sizes are counted in distinct subjects; suppressed records are in no class. Every class is given the
figure of the whole release, so that all of them hold or none does.

Of estimators: sizes that occur among the classes of the sample, ascending; counts, how many classes
have each; fraction, the sample's share of the population. n people and u classes in the sample, f_1
classes of one, N = n / fraction people in the population. Every estimator returns a share of N, NaN
where its model can't be fitted.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, lgamma, log, nan
from typing import ClassVar

import numpy as np

from shoal.data.certificate_shape import PromiseReport
from shoal.data.classes import Classes, Sizes
from shoal.data.numbers import weighted_sum
from shoal.data.option import parameter
from shoal.privacy.promise import Judgement, Promise, as_written

STEPS = 200  # of a bisection; floats hold still long before


def zayatz(sizes: np.ndarray, counts: np.ndarray, fraction: float) -> float:
    """Share of the population that is unique; Zayatz 1991.

    Takes the sample's distribution of sizes for the population's. By Bayes, a sample unique is a
    population unique with P = g(1) h(1) / sum of g(j) h(j), where g(j) is the share of classes of
    size j and h(j) the (hypergeometric) chance that of j people exactly one is sampled.
    """
    n = int(sizes @ counts)
    population = max(round(n / fraction), n)
    weights = [g * _one_of(int(j), n, population) for j, g in zip(sizes, counts, strict=True)]
    return _share(counts[0] * weights[0] / sum(weights) / n) if sum(weights) > 0 else nan


def _one_of(size: int, n: int, population: int) -> float:
    """Chance that exactly one of `size` people is among n drawn from the population."""
    rest = population - size
    if rest < n - 1:
        return 0.0
    return size * exp(_log_choose(rest, n - 1) - _log_choose(population, n))


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def pitman(sizes: np.ndarray, counts: np.ndarray, fraction: float) -> float:
    """Share of the population that is unique; Hoshino 2001.

    Journal of Official Statistics 17(4):499-520.

    Pitman's sampling formula with 0 <= alpha < 1 and theta > -alpha, fitted by maximum likelihood;
    expected uniques of the population Gamma(theta + 1) / Gamma(theta + alpha) * N**alpha. Meant for
    small fractions. No maximum inside the domain means that the model does not fit.
    """
    n, u = int(sizes @ counts), int(counts.sum())
    if u < 2 or u == n:
        return nan  # one class only, or everybody alone: the likelihood has no maximum

    def classes_sum(alpha: float, theta: float) -> float:
        """Sum of 1 / (theta + i alpha) over i = 1..u-1."""
        return (_digamma(u + theta / alpha) - _digamma(1 + theta / alpha)) / alpha

    def best_theta(alpha: float) -> float:
        """Where the derivative to theta is 0; it falls once, from above to below."""

        def slope(theta: float) -> float:
            return classes_sum(alpha, theta) - (_digamma(n + theta) - _digamma(1 + theta))

        low = 1e-9 if slope(1e-9) > 0 else -alpha * (1 - 1e-9)
        return _root(slope, low, 1e9 * n)

    def slope(alpha: float) -> float:
        """Derivative of the likelihood to alpha, at the best theta."""
        theta = best_theta(alpha)
        harmonic = np.concatenate(([0.0], np.cumsum(1 / (np.arange(1, int(sizes[-1])) - alpha))))
        return float(
            (u - 1 - theta * classes_sum(alpha, theta)) / alpha
            - weighted_sum(counts, harmonic[sizes - 1])
        )

    alpha = _root(slope, 1e-6, 1 - 1e-6)
    theta = best_theta(alpha)
    if np.isnan(alpha) or np.isnan(theta):
        return nan
    population = n / fraction
    return _share(exp(lgamma(theta + 1) - lgamma(theta + alpha) + (alpha - 1) * log(population)))


def _digamma(x: float) -> float:
    """Derivative of log gamma for x > 0: its recurrence up to 10, then the asymptotic series."""
    below = 0.0
    while x < 10:
        below += 1 / x
        x += 1
    inverse = 1 / (x * x)
    return log(x) - 0.5 / x - inverse * (1 / 12 - inverse * (1 / 120 - inverse / 252)) - below


def snb(sizes: np.ndarray, counts: np.ndarray, fraction: float) -> float:
    """Share of the population that is unique; slide negative binomial, Chen, McNulty 1998.

    Class sizes of the population are 1 + NB(r, p). Reading: r and p by moments, such that K = N /
    (1 + r q / p) classes of the population, sampled person by person, give the u classes and the
    f_1 uniques of the sample. Then K p**r people are unique.
    """
    n, u, alone = int(sizes @ counts), int(counts.sum()), int(counts[0])
    if fraction >= 1:
        return _share(alone / n)
    missed = 1 - fraction

    def classes_of(r: float, p: float) -> float:
        return n / fraction / (1 + r * (1 - p) / p)

    def seen(r: float, p: float) -> float:
        """Expected classes of the sample."""
        return classes_of(r, p) * (1 - missed * (p / (1 - (1 - p) * missed)) ** r)

    def fitting_r(p: float) -> float:
        return _root(lambda r: seen(r, p) - u, 1e-9, 1e9)

    def surplus(p: float) -> float:
        """Expected uniques of the sample, less those there are."""
        r, q = fitting_r(p), 1 - p
        none = p / (1 - q * missed)
        return float(
            classes_of(r, p) * fraction * (none**r * (1 + missed * r * q / (1 - q * missed)))
            - alone
        )

    grid = np.concatenate((np.geomspace(1e-6, 0.1, 40), np.linspace(0.1, 1 - 1e-6, 60)))
    found = [surplus(p) for p in grid]
    for left, right, low, high in zip(found, found[1:], grid, grid[1:], strict=False):
        if left * right <= 0:
            p = _root(surplus, float(low), float(high))
            r = fitting_r(p)
            return _share(classes_of(r, p) * p**r / (n / fraction))
    return nan


def _share(estimate: float) -> float:
    return nan if np.isnan(estimate) else float(min(max(estimate, 0.0), 1.0))


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where the function is 0 between two ends at which its signs differ, NaN where they don't."""
    left, right = function(low), function(high)
    if not left * right <= 0:
        return nan
    for _ in range(STEPS):
        middle = (low * high) ** 0.5 if low > 0 and high > 4 * low else (low + high) / 2
        if not low < middle < high:
            break
        value = function(middle)
        if (value <= 0) == (left <= 0):
            low = middle
        else:
            high = middle
    return (low + high) / 2


ESTIMATORS = {"pitman": pitman, "zayatz": zayatz, "snb": snb}


# The promises.


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
