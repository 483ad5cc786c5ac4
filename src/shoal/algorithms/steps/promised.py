"""What classes promise about sensitive values, as the local searches ask it of every move.

Distances of t-closeness, distinct l-diversity and the greatest share of a value are asked of each
class that a move changes. For any other promise, records change places only with records of the
same values, which breaks none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from shoal.algorithms.steps.targets import Targets, targets_of
from shoal.data.matrix import Matrix
from shoal.kernels.class_promises import ClassPromises
from shoal.kernels.closeness import VALUES, TargetArrays
from shoal.protocols import Promises, PromiseTerms


@dataclass(frozen=True)
class Asked:
    """What is asked of every class, for n records.

    values: (n, m) int32, with least: (m,) int64 different ones, and share: (m,) float64 at most of
    each, as in `kernels.class_promises`.
    """

    targets: Targets
    values: np.ndarray
    least: np.ndarray
    share: np.ndarray

    def take(self, rows: np.ndarray) -> Asked:
        """The same for some of the records."""
        values = np.ascontiguousarray(self.values[rows])
        return replace(self, targets=self.targets.take(rows), values=values)

    def arrays(self, capacity: int, first: int, end: int) -> ClassPromises:
        """As a kernel takes them, for classes first..end - 1 of up to `capacity` records."""
        nodes = int(self.targets.layout[:, VALUES].max(initial=0))
        return ClassPromises(
            TargetArrays(*self.targets.arrays),
            self.values,
            self.least,
            self.share,
            np.zeros(capacity + 1, dtype=np.int64),
            np.zeros(nodes, dtype=np.int64),
            np.empty(
                (len(self.least) + len(self.targets.limit), (end - first) * capacity),
                dtype=np.int64,
            ),
            first * capacity,
        )


def asked_of(matrix: Matrix, promises: Promises) -> Asked | None:
    """What can be asked of single moves; None where that is nothing."""
    if not promises.needs_more_than_k:
        return None
    diverse = [(term, found) for term in promises.terms if (found := _diversity(term)) is not None]
    values = np.zeros((matrix.records, len(diverse)), dtype=np.int32)
    for m, (term, _) in enumerate(diverse):
        values[:, m] = promises.sensitive[term.sensitive[0]].codes
    targets = targets_of(promises, matrix.records)
    if not diverse and not len(targets.limit):
        return None
    return Asked(
        targets,
        values,
        np.array([least for _, (least, _) in diverse], dtype=np.int64),
        np.array([share for _, (_, share) in diverse], dtype=np.float64),
    )


def asked_otherwise(promises: Promises) -> list[PromiseTerms]:
    """The promises besides k that no single move is asked about."""
    return [
        term
        for term in promises.terms
        if term.model not in ("k-anonymity", "t-closeness") and _diversity(term) is None
    ]


def _diversity(term: PromiseTerms) -> tuple[int, float] | None:
    """How many values a class has at least, and which part of it has the same one at most; None
    where the promise is another one.
    """
    parameters = term.parameters
    if term.model == "l-diversity" and parameters["kind"] == "distinct":
        return int(parameters["l"]), 1.0
    if term.model == "alpha-k-anonymity" and not parameters["values"]:
        return 1, float(parameters["alpha"])
    return None
