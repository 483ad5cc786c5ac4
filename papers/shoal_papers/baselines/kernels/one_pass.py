"""One-pass k-means, and the adjustment of its groups to k records.

points: (coordinates, n) float64; means: (coordinates, k) float64. Equal distances go to the lower
mean.
"""

from __future__ import annotations

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.tables.kernels.from_subsets import nearest, squared_distance


@outer
def one_pass(points, order, k):
    """One-pass k-means: the first floor(n / k) records of the order are seeds, the others join the
    nearest mean in turn. Groups above k records give up their farthest, one by one; these join the
    nearest group below k, then, when there is none, the nearest of all.

    Returns the group of each record, (n,) int32, none below k records.
    """
    d, n = points.shape
    groups = n // k
    group = np.full(n, -1, np.int32)
    sizes = np.zeros(groups, np.int64)
    means = np.zeros((d, groups))
    for at in range(n):
        g = at if at < groups else nearest(points, order[at], means)
        group[order[at]] = g
        sizes[g] += 1
        _shift_mean(points, order[at], means, g, 1.0 / sizes[g])
    # groups above k records give up their farthest
    removed = 0
    spare = np.empty(n, np.int64)
    for g in range(groups):
        while sizes[g] > k:
            worst = _farthest_member(points, group, means, g)
            sizes[g] -= 1
            group[worst] = -1
            _shift_mean(points, worst, means, g, -1.0 / sizes[g])
            spare[removed] = worst
            removed += 1
    # these go where records are missing, then to the nearest
    short = 0
    for g in range(groups):
        short += k - sizes[g]
    for at in range(removed):
        best = -1
        least = np.inf
        for g in range(groups):
            if short > 0 and sizes[g] >= k:
                continue
            distance = squared_distance(points, spare[at], means, g)
            if best < 0 or distance < least:
                best = g
                least = distance
        short -= 1 if short > 0 else 0
        group[spare[at]] = best
        sizes[best] += 1
        _shift_mean(points, spare[at], means, best, 1.0 / sizes[best])
    return group


@inner
def _shift_mean(points, i, means, g, by):
    for j in range(points.shape[0]):
        means[j, g] += (points[j, i] - means[j, g]) * by


@inner
def _farthest_member(points, group, means, g):
    worst = -1
    most = -1.0
    for i in range(points.shape[1]):
        if group[i] == g:
            distance = squared_distance(points, i, means, g)
            if distance > most:
                worst = i
                most = distance
    return worst
