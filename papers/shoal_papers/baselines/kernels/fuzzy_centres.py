"""Records shared between centres: fuzzy c-means.

points: (coordinates, n) float64; centres: (coordinates, k) float64. Equal shares go to the lower
record.
"""

from __future__ import annotations

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.tables.kernels.from_subsets import drawn_centres, squared_distance


@outer
def fuzzy_shares(points, k, uniform, fuzzifier, rounds):
    """Fuzzy c-means from centres drawn by k-means++: the share of each record in each centre,
    (n, k) float64.
    """
    d, n = points.shape
    centres = drawn_centres(points, k, uniform)
    share = np.zeros((n, k))
    before = np.empty(k)
    for _ in range(rounds):
        moved = 0.0
        for i in range(n):
            _fill_shares(points, i, centres, fuzzifier, share, before)
            for g in range(k):
                moved = max(moved, abs(share[i, g] - before[g]))
        if moved < 1e-6:
            break
        for g in range(k):
            weight = 0.0
            for i in range(n):
                weight += share[i, g] ** fuzzifier
            if weight > 0.0:
                for j in range(d):
                    total = 0.0
                    for i in range(n):
                        total += share[i, g] ** fuzzifier * points[j, i]
                    centres[j, g] = total / weight
    return share


@outer
def equal_groups(order, k, n):
    """Groups of floor(n / k) or one more records, filled in the given order; (n,) int32.

    order: record * k + centre of every pair, the greatest share first. A full group is closed.
    """
    group = np.full(n, -1, np.int32)
    sizes = np.zeros(k, np.int64)
    larger = n % k
    for at in range(len(order)):
        i = order[at] // k
        g = order[at] % k
        if group[i] >= 0 or sizes[g] > n // k or (sizes[g] == n // k and larger == 0):
            continue
        group[i] = g
        sizes[g] += 1
        if sizes[g] == n // k + 1:
            larger -= 1
    return group


@inner
def _fill_shares(points, i, centres, fuzzifier, share, before):
    """share[i, g] proportional to distance ** (-2 / (fuzzifier - 1)); all of it at centres that
    coincide with the record. before: what the shares were.
    """
    k = centres.shape[1]
    whole = 0.0
    at_centre = 0
    for g in range(k):
        before[g] = share[i, g]
        distance = squared_distance(points, i, centres, g)
        share[i, g] = distance
        if distance == 0.0:
            at_centre += 1
    for g in range(k):
        if at_centre > 0:
            share[i, g] = 1.0 if share[i, g] == 0.0 else 0.0
        else:
            share[i, g] = share[i, g] ** (-1.0 / (fuzzifier - 1.0))
        whole += share[i, g]
    for g in range(k):
        share[i, g] /= whole
