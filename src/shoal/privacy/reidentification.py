"""How likely people of a sample are re-identified: one by one, by household, on average.

Benedetti, Franconi. Statistical and technological solutions for controlled data dissemination,
1998; Polettini. Some remarks on the individual risk methodology, 2003. Households as in sdcMicro.

f people of the sample show the same cells; their weights add up to F, the estimate of how many of
the population fit them, p = f / F, q = 1 - p. Given f, the number of people who fit is negative
binomial, and the risk of each is the mean of one over it:

  r = p**f / f * 2F1(f, f; f + 1; q) = p / f * 2F1(1, 1; f + 1; q) = p I(f),
  I(f) = integral of u**(f - 1) / (p + q u) over u in 0..1,

by Euler's transformation, and by u = p t / (1 - q t) in Euler's integral.

A union of classes has more people and a larger sum of weights than each of them, and r falls in
both: no member's risk rises, and neither does the mean over all.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from shoal.data.certificate_shape import PromiseReport, RisksReport, SampleReport
from shoal.data.classes import Classes, Sample
from shoal.data.option import parameter
from shoal.errors import InputError
from shoal.privacy.promise import Promise

TERMS = 64  # of the series: each is at most half of the one before, or f is FEW at least
FEW = 20
LOWEST, BINS = 1e-9, 6  # of a histogram: where it begins at least, and how many to a power of ten


def individual_risk(people: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The risk of each person among `people` who show the same and stand for `weight`; float64.

    people: (m,) whole numbers from 1. weight: (m,) float64, at least as many. Exact to 1e-12 of
    itself for up to 10**6 people and p from 1e-9 to 1.
    """
    f, p = people.astype(np.float64), np.minimum(people / weight, 1.0)
    found = np.empty(len(f))
    steps = (f < FEW) & (p < 0.5)
    found[~steps] = _by_series(f[~steps], p[~steps])
    found[steps] = _by_steps(f[steps], p[steps])
    return found


def _by_series(f: np.ndarray, p: np.ndarray) -> np.ndarray:
    """p / f times the sum over n of n! / ((f + 1) .. (f + n)) q**n; all terms are positive."""
    q, term, total = 1 - p, np.ones(len(f)), np.ones(len(f))
    for n in range(1, TERMS):
        term *= n * q / (f + n)
        total += term
    return p / f * total


def _by_steps(f: np.ndarray, p: np.ndarray) -> np.ndarray:
    """q I(f + 1) = 1 / f - p I(f), from I(1) = ln(1 / p) / q; errors shrink as p < q."""
    q = 1 - p
    integral = -np.log(p) / q
    for number in range(1, int(f.max(initial=1))):
        integral = np.where(number < f, (1 / number - p * integral) / q, integral)
    return p * integral


class SampledPeople(NamedTuple):
    """Everybody who is in a class, once: (people,) own risk, and the risk with the household's.

    household: what everybody of a household carries, the chance that one of it at least is named.
    """

    own: np.ndarray
    household: np.ndarray


def risks_of_classes(classes: Classes) -> np.ndarray:
    """`individual_risk` of each class, (count,) float64, NaN where nobody is in it.

    Raises InputError where nobody knows the weights.
    """
    people, weight = people_and_weights(classes)
    found = np.full(classes.count, np.nan)
    occupied = people > 0
    found[occupied] = individual_risk(people[occupied], weight[occupied])
    return found


def people_and_weights(classes: Classes) -> tuple[np.ndarray, np.ndarray]:
    """The people of each class, (count,) int64, and whom they stand for, (count,) float64.

    Raises InputError where nobody knows the weights.
    """
    labels, rows, _ = _members(classes)
    weights = _sample(classes).weights[rows]
    return classes.people(), np.bincount(labels, weights=weights, minlength=classes.count)


def risks_of_people(classes: Classes) -> SampledPeople:
    """The risks of everybody who is in a class; a person in several carries the greatest."""
    labels, rows, person = _members(classes)
    sample = _sample(classes)
    own = np.zeros(int(person.max(initial=-1)) + 1)
    np.maximum.at(own, person, risks_of_classes(classes)[labels])
    if sample.households is None:
        return SampledPeople(own, own)
    home = np.zeros(len(own), dtype=np.int64)
    home[person] = sample.households[rows]
    order = np.lexsort((own, home))  # whoever comes first, sums are the same
    with np.errstate(divide="ignore"):
        nobody = np.bincount(home[order], weights=np.log1p(-own[order]))
    return SampledPeople(own, np.maximum(own, -np.expm1(nobody)[home]))


def sample_report(classes: Classes) -> SampleReport | None:
    """The risks of everybody as certificates state them, counted in sixths of a power of ten.

    None where no weights are known, or nobody is in a class.
    """
    if classes.sample is None or not classes.count:
        return None
    risks = risks_of_people(classes)
    lowest = min(int(np.floor(np.log10(max(risks.own.min(), LOWEST)))), -1)
    edges = np.array([float(f"{10 ** (n / BINS):.4g}") for n in range(lowest * BINS, 1)])

    def stated(found: np.ndarray) -> RisksReport:
        people = np.histogram(np.clip(found, edges[0], 1.0), edges)[0]
        return {"mean": _mean(found), "max": float(found.max()), "people": people.tolist()}

    report = SampleReport(edges=edges.tolist(), own=stated(risks.own))
    if classes.sample.households is not None:
        report["household"] = stated(risks.household)
    return report


def _sample(classes: Classes) -> Sample:
    if classes.sample is None:
        raise InputError(
            "individual risk: needs the weights of the original; give it, in the order of the"
            " release or with the trace"
        )
    return classes.sample


def _members(classes: Classes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each person of each class once: the class, one of its records there, and its number."""
    rows = np.flatnonzero(classes.labels >= 0)
    labels = classes.labels[rows].astype(np.int64)
    if classes.subjects is None:
        return labels, rows, np.arange(len(rows))
    subjects = classes.subjects[rows].astype(np.int64)
    _, first = np.unique(labels << 32 | subjects, return_index=True)
    person = np.unique(subjects[first], return_inverse=True)[1].reshape(-1)
    return labels[first], rows[first], person


class _OfSample(Promise):
    """What is measured by the weights of the original; not at all where they are not at hand."""

    higher_is_better: ClassVar[bool] = False
    monotone: ClassVar[bool] = True
    of_sample: ClassVar[bool] = True
    attributes = ()
    letter: ClassVar[str] = "at_most"
    source: ClassVar[str] = "Benedetti, Franconi 1998; Polettini 2003"

    at_most: float

    def report(self, classes: Classes) -> PromiseReport:
        if classes.sample is None:
            return self.stated(None, None)
        return super().report(classes)

    def nearest(self, whole_table: Classes) -> list[str]:
        found = float(self.judge(whole_table)[0][0])
        return [
            f"promise '{self.model}': at_most = {self.at_most} asked, everybody in one class has"
            f" {found:.6g}; ask for no less than that"
        ]


@dataclass(frozen=True)
class IndividualRisk(_OfSample):
    """Nobody is re-identified in the population with more than this chance."""

    model: ClassVar[str] = "individual-risk"
    definition: ClassVar[str] = (
        "For every person, the mean of 1 / (people of the population who fit the person's cells),"
        " estimated from the people of the sample who show them and their weights, is at most"
        " at_most."
    )

    at_most: float = parameter("greatest risk of a person", low=0.0, high=1.0, above=True)

    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        risk = risks_of_classes(classes)
        return risk, risk <= self.at_most


@dataclass(frozen=True)
class GlobalRisk(_OfSample):
    """The mean risk over all people is at most this; with households, of the greater one.

    Classes of one are allowed where weights hide them.
    """

    model: ClassVar[str] = "global-risk"
    definition: ClassVar[str] = (
        "The mean over all people of their individual risk is at most at_most. With households,"
        " everybody carries the chance that one of the household at least is named."
    )
    whole_table: ClassVar[bool] = True
    states: ClassVar[tuple[str, ...]] = ("households",)

    at_most: float = parameter("greatest mean risk", low=0.0, high=1.0, above=True)
    households: bool = parameter("whether people are named by their households", default=False)

    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        occupied = classes.people() > 0
        measured = _mean(self._risks(classes))
        holds = bool(measured <= self.at_most)
        return np.where(occupied, measured, np.nan), occupied & holds

    def report(self, classes: Classes) -> PromiseReport:
        """With how many people are named on average, and the share of people above the bound."""
        stated = super().report(classes)
        if classes.sample is not None:
            risks = self._risks(classes)
            stated["expected"] = float(np.sort(risks).sum())
            stated["above"] = float((risks > self.at_most).mean()) if len(risks) else None
        return stated

    def enough_among(self, table: Classes) -> int:
        """As many people as keep the bound in the largest household if all weigh the least."""
        sample, people = _sample(table), int(table.people().sum())
        largest = 1
        if self.households and sample.households is not None:
            largest = int(np.bincount(sample.households).max(initial=1))
        own = -np.expm1(np.log1p(-self.at_most) / largest) if self.at_most < 1 else 1.0
        least = float(sample.weights.min(initial=1e9))

        def is_enough(number: int) -> bool:
            some = np.array([number])
            return bool(individual_risk(some, some * least)[0] <= own)

        return 1 + bisect_left(range(1, max(people, 1)), True, key=is_enough)

    def _risks(self, classes: Classes) -> np.ndarray:
        found = risks_of_people(classes)
        return found.household if self.households else found.own


def _mean(risks: np.ndarray) -> float:
    """The mean; the same for the same risks in any order."""
    return float(np.sort(risks).mean()) if len(risks) else float("nan")
