"""Classes that are too far from the table merge with near ones until none is.

points: (d, n) float64. labels: (n,) int32, the class of each record. codes, layout, prefix_sums,
lookup, limit: as in `search.targets.Targets`. sizes: (classes,) int64 and total:
(classes, d) float64, records of each class and the sum of their points; a class of size 0 has
merged away.
"""

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.closeness import ENOUGH, TargetArrays
from shoal.search.kernels.value_chains import chains_of, measure_chains, merged_chain


@outer
def merge_far(points, labels, classes, codes, layout, prefix_sums, lookup, limit):
    """While the farthest class is too far from the table, it merges with that of the nearest mean.

    Equally far or near classes go to the lower number; a union keeps the lower number of the two.
    Returns the class of each record with gaps where classes merged away, (n,) int32.
    """
    targets = TargetArrays(codes, layout, prefix_sums, lookup, limit)
    d, n = points.shape
    into = np.arange(classes)
    sizes = np.zeros(classes, np.int64)
    total = np.zeros((classes, d))
    for i in range(n):
        sizes[labels[i]] += 1
        for j in range(d):
            total[labels[i], j] += points[j, i]
    head, later = chains_of(labels, classes, targets)
    counts = np.zeros(len(prefix_sums), np.int64)
    excess = np.empty(classes)
    measure_chains(np.int64(0), classes, head, later, sizes, counts, excess, targets)
    for _ in range(classes - 1):
        worst = _farthest_class(excess, sizes)
        if excess[worst] <= ENOUGH:
            break
        nearest = _nearest_class(worst, sizes, total)
        kept = min(worst, nearest)
        other = max(worst, nearest)
        for j in range(d):
            total[kept, j] += total[other, j]
        for s in range(len(limit)):
            head[s, kept] = merged_chain(head[s, kept], head[s, other], s, later, targets)
        sizes[kept] += sizes[other]
        sizes[other] = 0
        into[other] = kept
        measure_chains(kept, kept + 1, head, later, sizes, counts, excess, targets)
    for c in range(classes):
        into[c] = into[into[c]]  # a class only ever goes into a lower number
    result = np.empty(n, np.int32)
    for i in range(n):
        result[i] = into[labels[i]]
    return result


@inner
def _farthest_class(excess, sizes):
    """The class of greatest excess."""
    worst = 0
    for c in range(len(sizes)):
        if sizes[c] > 0 and (sizes[worst] == 0 or excess[c] > excess[worst]):
            worst = c
    return worst


@inner
def _nearest_class(a, sizes, total):
    """The class whose mean is nearest to that of class a."""
    best = -1
    least = np.inf
    for c in range(len(sizes)):
        if c != a and sizes[c] > 0:
            apart = 0.0
            for j in range(total.shape[1]):
                between = total[c, j] / sizes[c] - total[a, j] / sizes[a]
                apart += between * between
            if apart < least or best < 0:
                best = c
                least = apart
    return best
