"""The records that no class has yet, kept together while classes are built one after the other.

Throughout: pool, see `Pool`; count, how many of its positions are in use; remaining, how many of
these are not assigned. distance: (positions,) float64, squared distances from some centre. Equal
distances go to the lower record.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inner

CHUNK = 1024
"""Points whose distances are added up together, so that they stay in the cache."""


class Pool(NamedTuple):
    """Records at positions 0..count-1, rising.

    points: (d, n) float64. ids: (n,) int32, the record at each position.
    assigned: (n,) bool, positions that are in a class already; `compact` drops them.
    tried: (n,) int64, the last class that the record was a candidate for, from 1.
    """

    points: np.ndarray
    ids: np.ndarray
    assigned: np.ndarray
    tried: np.ndarray


@inner
def pool_of(points):
    """All records, none of them assigned."""
    n = points.shape[1]
    ids = np.arange(n).astype(np.int32)
    return Pool(points.copy(), ids, np.zeros(n, np.bool_), np.zeros(n, np.int64))


@inner
def squared_distances(pool, count, centre, distance):
    """Squared distance of every position from the centre."""
    points = pool.points
    for begin in range(0, count, CHUNK):
        end = min(begin + CHUNK, count)
        for i in range(begin, end):
            distance[i] = 0.0
        for j in range(len(centre)):
            c = centre[j]
            for i in range(begin, end):
                distance[i] += (points[j, i] - c) * (points[j, i] - c)


@inner
def farthest(pool, count, distance):
    """The unassigned position that is farthest from the centre."""
    assigned = pool.assigned
    best = -1
    for i in range(count):
        if not assigned[i] and (best < 0 or distance[i] > distance[best]):
            best = i
    return best


@inner
def distances_to_seed(pool, count, remaining, total, opposite, centre, distance):
    """Squared distances to the next seed: record `opposite`, or -1 for the farthest from the mean.

    total: (d,) float64, sum over the points that remain. centre: becomes the seed.
    """
    d = len(centre)
    if opposite >= 0:
        seed = _position(pool.ids, count, opposite)
    else:
        for j in range(d):
            centre[j] = total[j] / remaining
        squared_distances(pool, count, centre, distance)
        seed = farthest(pool, count, distance)
    for j in range(d):
        centre[j] = pool.points[j, seed]
    squared_distances(pool, count, centre, distance)


@inner
def _position(ids, count, record):
    """The position of a record, by halving."""
    low = 0
    high = count
    while low < high:
        middle = (low + high) // 2
        if ids[middle] < record:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def compacted(pool, count, remaining):
    """Drops the assigned positions once they are more than an eighth; how many stay in use."""
    if 8 * remaining >= 7 * count:
        return count
    return _compact(pool, count)


@inner
def _compact(pool, count):
    """Drops the assigned positions; how many stay."""
    points, ids, assigned, tried = pool.points, pool.ids, pool.assigned, pool.tried
    kept = 0
    for i in range(count):
        if not assigned[i]:
            ids[kept] = ids[i]
            tried[kept] = tried[i]
            kept += 1
    for j in range(points.shape[0]):
        kept = 0
        for i in range(count):
            if not assigned[i]:
                points[j, kept] = points[j, i]
                kept += 1
    for i in range(count):
        assigned[i] = False
    return kept


@inner
def nearest_of_groups(pool, count, group, distance, nearest):
    """Fills `nearest` with each group's unassigned position nearest to the centre, -1 for none.

    group: (n,) int32, the group of each record.
    """
    ids, assigned = pool.ids, pool.assigned
    for g in range(len(nearest)):
        nearest[g] = -1
    for i in range(count):
        if not assigned[i]:
            g = group[ids[i]]
            if nearest[g] < 0 or distance[i] < distance[nearest[g]]:
                nearest[g] = i
