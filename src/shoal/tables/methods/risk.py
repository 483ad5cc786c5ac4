"""Risk: classes that lose least while people of a sample are named no more often than is promised.

Ours; risk after Benedetti, Franconi 1998 (see `privacy.reidentification`).
Promise: every class keeps what is asked of classes, and the release keeps its global risk.
1. Equal records are a class: that loses nothing. Weights may hide a class of one.
2. The union of near classes that removes most risk per loss added comes first, until every class is
   allowed and the total is as low as the promise asks.
3. Records move, or change places, while loss + price * risk falls. The price starts at that of the
   last union, and follows the total up and down; the least loss whose total is low enough counts.
Reading: what is asked of classes beside people and individual risk is left to the shared repair; so
are classes that have no near ones left, and people with several records.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.data.option import parameter
from shoal.data.partition import Matrix, Partition
from shoal.protocols import Partitioner, Promises, PromiseTerms
from shoal.search.refinery import SearchSpace
from shoal.search.segments import costs_of, require_people
from shoal.tables.kernels import risk_classes
from shoal.tables.kernels import risk_classes as kernel
from shoal.tables.kernels.risk_classes import HIGHEST, LEAST, TARGET, TOTAL

NEAR, RUN, ORDERS = 16, 64, 8
STEEP, FASTEST = 1.5, 2.0  # how the price follows the total, and by what factor at most
MARGIN = 1e-9  # of the target, for sums in another order
GLOBAL, INDIVIDUAL = "global-risk", "individual-risk"


@dataclass(frozen=True)
class Risk(Partitioner):
    """Least loss under a bound of the global risk."""

    name: ClassVar[str] = "risk"
    paper: ClassVar[str] = "Ours; risk after Benedetti, Franconi 1998."

    passes: int = parameter("times that every record is offered another place", default=12, low=0)

    def partition(self, matrix: Matrix, promises: Promises, rng: np.random.Generator) -> Partition:
        """The classes; where no global risk is promised, what is asked of classes is all."""
        require_people(matrix, promises)
        people = _people(matrix, promises, rng)
        terms = _terms(matrix, promises)
        costs = costs_of(matrix)
        labels = people.order[people.first[people.point]].astype(np.int32)
        classes = kernel.classes_of(labels, matrix.attributes)
        kernel.measure(people, classes, terms, costs)
        price = kernel.unite(people, classes, terms, costs)
        best = _Best.of(classes, terms)
        for turn in range(self.passes):
            visits = rng.permutation(matrix.records).astype(np.int32)
            moved = risk_classes.improve(people, classes, terms, costs, visits, price, turn)
            kernel.measure(people, classes, terms, costs)
            price *= np.clip((terms[TOTAL] / terms[TARGET]) ** STEEP, 1 / FASTEST, FASTEST)
            best = best.or_better(classes, terms)
            if not moved:
                break
        kernel.unite(people, classes, terms, costs)
        return Partition.of(best.or_better(classes, terms).labels)


@dataclass(frozen=True)
class _Best:
    """The classes that lose least among those with a total that is low enough."""

    labels: np.ndarray
    loss: float

    @classmethod
    def of(cls, classes: kernel.RiskClasses, terms: np.ndarray) -> "_Best":
        return cls(classes.label.copy(), float(classes.people @ classes.loss))

    def or_better(self, classes: kernel.RiskClasses, terms: np.ndarray) -> "_Best":
        found = _Best.of(classes, terms)
        return found if terms[TOTAL] <= terms[TARGET] and found.loss < self.loss else self


def _asked(promises: Promises, model: str) -> PromiseTerms | None:
    """The strictest promise of a model; None without one."""
    asked = [each for each in promises.terms if each.model == model]
    return min(asked, key=lambda each: float(each.parameters["at_most"]), default=None)


def _people(matrix: Matrix, promises: Promises, rng: np.random.Generator) -> kernel.SurveyedPeople:
    """The records with their weights, their households as far as these count, and who is near."""
    sample, bound = promises.sample, _asked(promises, GLOBAL)
    weights = np.ones(matrix.records) if sample is None else sample.weights
    home = np.arange(matrix.records, dtype=np.int32)
    is_by_home = bound is not None and bound.parameters["households"]
    if is_by_home and sample is not None and sample.households is not None:
        home = np.unique(sample.households, return_inverse=True)[1].reshape(-1).astype(np.int32)
    size = np.bincount(home).astype(np.float64)
    space = SearchSpace.of(matrix)
    rows, point = np.unique(space.rows, axis=0, return_inverse=True)
    point = point.reshape(-1).astype(np.int32)
    order = np.argsort(point, kind="stable").astype(np.int32)
    first = np.concatenate(([0], np.cumsum(np.bincount(point))))
    near = space.nearest(rows, NEAR, RUN, ORDERS, rng)
    unnamed = np.ones(len(size))
    return kernel.SurveyedPeople(
        matrix.codes, weights, home, size, unnamed, point, first, order, near
    )


def _terms(matrix: Matrix, promises: Promises) -> np.ndarray:
    """As the kernels have them: the target, and what is asked of every class."""
    everybody, each = _asked(promises, GLOBAL), _asked(promises, INDIVIDUAL)
    terms = np.zeros(4)
    share = 1.0 if everybody is None else everybody.parameters["at_most"]
    terms[TARGET] = share * matrix.records * (1 - MARGIN)
    terms[LEAST] = max(qid.k for qid in promises.qids)
    terms[HIGHEST] = 1.0 if each is None else each.parameters["at_most"]
    return terms
