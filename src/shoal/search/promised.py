"""What classes promise about sensitive values, as the local searches ask it of every move.

Distances of t-closeness, distinct l-diversity and the greatest share of a value are asked of each
class that a move changes. For any other promise, records change places only with records of the
same values, which breaks none.
"""

from dataclasses import dataclass, replace

import numpy as np

from shoal.data.matrix import Matrix
from shoal.protocols import Promises, PromiseTerms
from shoal.search.kernels.class_promises import LARGEST, ClassPromises
from shoal.search.kernels.closeness import VALUES, TargetArrays
from shoal.search.targets import Targets, targets_of


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

    def take(self, rows: np.ndarray) -> "Asked":
        """What is asked of classes of some of the records."""
        values = np.ascontiguousarray(self.values[rows])
        return replace(self, targets=self.targets.take(rows), values=values)

    def arrays(self, capacity: int, first: int, end: int) -> ClassPromises:
        """As a kernel takes them, for classes first..end - 1 of up to `capacity` records."""
        layout, several = self.targets.layout, len(self.targets.limit)
        further, classes = len(self.least), end - first
        return ClassPromises(
            TargetArrays(*self.targets.arrays),
            self.values,
            self.least,
            self.share,
            _crossings(self.targets, min(capacity, LARGEST) + 1),
            _spans(self.targets),
            np.empty((further + several, classes * capacity), dtype=np.int64),
            np.zeros((2 * further + several, classes + 1), dtype=np.int64),
            np.zeros(classes),
            np.zeros(capacity + 1, dtype=np.int64),
            np.zeros(int(layout[:, VALUES].max(initial=0)), dtype=np.int64),
            first,
        )


def _crossings(targets: Targets, most: int) -> np.ndarray:
    """`kernels.closeness.crossing_value` of sizes and levels up to `most`."""
    found = np.zeros((len(targets.limit), most + 1, most + 1), dtype=np.int32)
    for s, (tree, _, values, step, pairs, _) in enumerate(targets.layout.tolist()):
        for size in range(1, 0 if tree else most + 1):
            found[s, size, size:] = values
            # the pair that is the ceil(pairs * level / size)-th in rising order has that value
            nth = -(-pairs * np.arange(1, size) // size)
            found[s, size, 1:size] = targets.lookup[step + nth - 1]
    return found


def _spans(targets: Targets) -> np.ndarray:
    """The first and the last leaf under each node of the trees, (2, entries of lookup) int32."""
    spans = np.zeros((2, len(targets.lookup)), dtype=np.int32)
    for tree, _, nodes, step, _, _ in targets.layout.tolist():
        if not tree:
            continue
        parent = targets.lookup[step : step + nodes]
        has_children = np.zeros(nodes, dtype=bool)
        has_children[parent[parent >= 0]] = True
        leaves = np.flatnonzero(~has_children)
        first, last = np.full(nodes, nodes, dtype=np.int64), np.full(nodes, -1, dtype=np.int64)
        above = leaves
        while len(leaves):
            np.minimum.at(first, above, leaves)
            np.maximum.at(last, above, leaves)
            goes_on = parent[above] >= 0
            leaves, above = leaves[goes_on], parent[above[goes_on]]
        spans[0, step : step + nodes], spans[1, step : step + nodes] = first, last
    return spans


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
