"""The records that no class has yet, kept together while classes are built one after the other.

Throughout: pool, see `Pool`; count, how many of its positions are in use; remaining, how many of
these are not assigned. distance: (positions,) float64, squared distances from some centre. Equal
distances go to the lower record.
"""

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.closeness import ENOUGH, TREE, TargetArrays, unit_cost
from shoal.search.kernels.value_chains import cost_in_order, cost_in_tree

CHUNK = 1024
"""Points whose distances are added up together, so that they stay in the cache."""


class Pool(NamedTuple):
    """Records at positions 0..count-1, rising.

    points: (d, n) float64. ids: (n,) int32, the record at each position.
    assigned: (n,) bool, positions that are in a class already; `compacted` drops them.
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


# Records without a class join the classes where they cost least.
#
# rows: (n, d) float64, the records as points. codes, layout, prefix_sums, lookup, limit: as in
# `search.clustering.Targets`; targets as in `kernels.closeness`; head and later: the
# chains of `kernels.value_chains`. sizes: (classes,) int64. means: (classes, d) float64. counts:
# (nodes of all trees,) int64, zeros between calls. The excess of a class is the sum over the
# sensitive attributes of max(0, distance - limit).


def assign_leftovers(rows, labels, classes, weight, *targets):
    """Every record without a class joins that where squared error + weight * excess grows least.

    labels: (n,) int32, -1 for records without a class; changed in place. The lower class of equals.
    """
    table = TargetArrays(*targets)
    several, (n, d) = len(table.limit), rows.shape
    sizes, means = np.zeros(classes, np.int64), np.zeros((classes, d))
    head = np.full((several, classes), -1, np.int32)
    later = np.full((several, n), -1, np.int32)
    counts = np.zeros(len(table.prefix_sums), np.int64)
    excess = np.empty((2, classes))
    _assign_leftovers(rows, labels, float(weight), sizes, means, head, later, counts, excess, table)


@outer
def _assign_leftovers(rows, labels, weight, sizes, means, head, later, counts, excesses, targets):
    n, d = rows.shape
    classes = len(sizes)
    excess, grown = excesses[0], excesses[1]
    for i in range(n):
        if labels[i] >= 0:
            _join(i, np.int64(labels[i]), rows, sizes, means, head, later, targets)
    for c in range(classes):
        excess[c] = _excess_with(np.int64(-1), head, later, c, sizes[c], counts, targets)
    for i in range(n):
        if labels[i] >= 0:
            continue
        best = np.int64(0)
        least = np.inf
        for c in range(classes):
            error = 0.0
            for j in range(d):
                error += (rows[i, j] - means[c, j]) * (rows[i, j] - means[c, j])
            error *= sizes[c] / (sizes[c] + 1.0)
            # even if the record took away all that the class exceeds by
            if error - weight * excess[c] >= least:
                continue
            grown[c] = _excess_with(i, head, later, c, sizes[c] + 1, counts, targets)
            error += weight * (grown[c] - excess[c])
            if error < least:
                best = c
                least = error
        labels[i] = best
        excess[best] = grown[best]
        _join(i, best, rows, sizes, means, head, later, targets)


@inner
def _join(i, c, rows, sizes, means, head, later, targets):
    """Puts record i into class c, and into the chains of the class by rising values."""
    codes = targets.codes
    sizes[c] += 1
    for j in range(rows.shape[1]):
        means[c, j] += (rows[i, j] - means[c, j]) / sizes[c]
    for s in range(head.shape[0]):
        before = -1
        at = np.int64(head[s, c])
        while at >= 0 and codes[at, s] < codes[i, s]:
            before = at
            at = np.int64(later[s, at])
        later[s, i] = at
        if before < 0:
            head[s, c] = i
        else:
            later[s, before] = i


@inner
def _excess_with(extra, head, later, c, size, counts, targets):
    """The excess of class c, which has `size` records, `extra` among them unless it is -1."""
    result = 0.0
    for s in range(len(targets.limit)):
        if targets.layout[s, TREE] == 1:
            cost = cost_in_tree(head[s, c], later, extra, size, s, counts, targets)
        else:
            cost = cost_in_order(head[s, c], later, extra, size, s, targets)
        apart = cost / unit_cost(max(size, 1), s, targets)
        result += max(0.0, apart - targets.limit[s] - ENOUGH)
    return result
