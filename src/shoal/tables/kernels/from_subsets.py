"""Classes that take one record from each of several groups of alike sensitive values; the groups
are made around centres: k-means++.

points: (d, n) float64. subject_ids: (n,) int32, the person of each record, or empty where each is
its own. codes, layout, prefix_sums, lookup, limit: as in `search.clustering.Targets`; pool,
count, remaining and distance: as in `kernels.unassigned_pool`. centres: (d, k) float64. Equal
distances go to the lower record or centre.
"""

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.closeness import TargetArrays
from shoal.tables.kernels.improve_closeness import improve_closeness, improvement
from shoal.tables.kernels.unassigned_pool import (
    compacted,
    distances_to_seed,
    farthest,
    nearest_of_groups,
    pool_of,
    squared_distances,
)


@outer
def from_groups(
    points, subject_ids, group, k, most, follow, uniform, codes, layout, prefix_sums, lookup, limit
):
    """Classes that take one record from each of k groups in turn, near to one drawn from the first.

    group: (n,) int32, 0..k-1. uniform: (n // k,) float64 in [0, 1), settles which record is drawn.
    most: records tried to bring a class closer to the table, nearest to its mean first, which moves
        with every replacement where `follow`.
    Returns the class of each record, (n,) int32; -1 for what is left below 2k records.
    """
    targets = TargetArrays(codes, layout, prefix_sums, lookup, limit)
    d, n = points.shape
    labels = np.full(n, -1, np.int32)
    pool = pool_of(points)
    plan = improvement(subject_ids, most, follow, len(prefix_sums))
    centre = np.empty(d)
    distance = np.empty(n)
    nearest = np.empty(k, np.int64)
    in_group = np.zeros(k, np.int64)
    for i in range(n):
        in_group[group[i]] += 1
    count = n
    remaining = n
    number = 0
    while remaining >= 2 * k:
        seed = _drawn(pool, count, group, in_group, uniform[number])
        for j in range(d):
            centre[j] = pool.points[j, seed]
        squared_distances(pool, count, centre, distance)
        members = _one_of_each(seed, pool, count, group, distance, nearest)
        improve_closeness(members, pool, count, number + 1, distance, plan, targets)
        for e in range(k):
            labels[pool.ids[members[e]]] = number
        number += 1
        remaining -= k
        in_group[:] = 0
        for i in range(count):
            if not pool.assigned[i]:
                in_group[group[pool.ids[i]]] += 1
        count = compacted(pool, count, remaining)
    return labels


@inner
def _drawn(pool, count, group, in_group, uniform):
    """A position of the first group that is not empty."""
    g = 0
    while in_group[g] == 0:
        g += 1
    skip = min(np.int64(uniform * in_group[g]), in_group[g] - 1)
    for i in range(count):
        if not pool.assigned[i] and group[pool.ids[i]] == g:
            if skip == 0:
                return i
            skip -= 1
    return -1


@inner
def _one_of_each(seed, pool, count, group, distance, nearest):
    """The seed and the nearest of each group 1..k-1, over and over until they are k.

    The first group gives another record only where all others are empty. Marks them as assigned.
    """
    k = len(nearest)
    members = np.empty(k, np.int64)
    members[0] = seed
    pool.assigned[seed] = True
    taken = 1
    while taken < k:
        nearest_of_groups(pool, count, group, distance, nearest)
        before = taken
        for g in range(1, k):
            if taken < k and nearest[g] >= 0:
                members[taken] = nearest[g]
                pool.assigned[nearest[g]] = True
                taken += 1
        if taken == before:
            members[taken] = nearest[0]
            pool.assigned[nearest[0]] = True
            taken += 1
    return members


@outer
def from_subsets(points, subset, subsets, middle):
    """Classes of one record from each subset, the nearest to a seed.

    The seed is the record farthest from the mean of what is left, then the one farthest from that
    seed, in turn. The subsets are equally large but for the middle one, of which the first classes
    take a second record.
    subset: (n,) int32, the subset of each record, 0..subsets-1.
    Returns the class of each record, (n,) int32.
    """
    d, n = points.shape
    labels = np.full(n, -1, np.int32)
    pool = pool_of(points)
    centre = np.empty(d)
    distance = np.empty(n)
    nearest = np.empty(subsets, np.int64)
    sizes = np.zeros(subsets, np.int64)
    total = np.zeros(d)
    for i in range(n):
        sizes[subset[i]] += 1
        for j in range(d):
            total[j] += points[j, i]
    classes = sizes[0] if middle != 0 else sizes[subsets - 1]
    if subsets == 1:
        classes = n
    spare = sizes[middle] - classes
    count = n
    remaining = n
    opposite = np.int64(-1)
    for number in range(classes):
        distances_to_seed(pool, count, remaining, total, opposite, centre, distance)
        seeded_by_mean = opposite < 0
        for again in range(2):
            nearest_of_groups(pool, count, subset, distance, nearest)
            for g in range(subsets):
                if again == 0 or (g == middle and spare > 0):
                    pool.assigned[nearest[g]] = True
                    labels[pool.ids[nearest[g]]] = number
                    remaining -= 1
                    for j in range(d):
                        total[j] -= pool.points[j, nearest[g]]
            if again == 1 and spare > 0:
                spare -= 1
        # the next class is around the record farthest from this seed, and the one after that again
        # around the record farthest from the mean
        opposite = np.int64(-1)
        if seeded_by_mean and remaining > 0:
            opposite = np.int64(pool.ids[farthest(pool, count, distance)])
        count = compacted(pool, count, remaining)
    return labels


@outer
def k_means(points, k, uniform, rounds):
    """Lloyd's k-means from centres drawn by k-means++ (Arthur, Vassilvitskii 2007); (n,) int32
    centre of each.

    uniform: (k,) in [0, 1). A centre without records stays where it is.
    """
    d, n = points.shape
    centres = drawn_centres(points, k, uniform)
    group = np.full(n, -1, np.int32)
    sizes = np.empty(k)
    for _ in range(rounds):
        changed = False
        for i in range(n):
            best = nearest(points, i, centres)
            changed |= best != group[i]
            group[i] = best
        if not changed:
            break
        total = np.zeros((d, k))
        sizes[:] = 0.0
        for i in range(n):
            sizes[group[i]] += 1.0
            for j in range(d):
                total[j, group[i]] += points[j, i]
        for g in range(k):
            if sizes[g] > 0:
                for j in range(d):
                    centres[j, g] = total[j, g] / sizes[g]
    return group


@inner
def drawn_centres(points, k, uniform):
    """k-means++: each centre is a record, drawn by its squared distance to the nearest so far."""
    d, n = points.shape
    centres = np.empty((d, k))
    apart = np.ones(n)
    for g in range(k):
        whole = 0.0
        for i in range(n):
            whole += apart[i]
        chosen = min(np.int64(uniform[g] * n), n - 1)  # where each record is a centre already
        if whole > 0.0:
            running = 0.0
            chosen = n - 1
            for i in range(n):
                running += apart[i]
                if running > uniform[g] * whole and apart[i] > 0.0:
                    chosen = i
                    break
        for j in range(d):
            centres[j, g] = points[j, chosen]
        for i in range(n):
            distance = squared_distance(points, i, centres, g)
            apart[i] = distance if g == 0 else min(apart[i], distance)
    return centres


@inner
def squared_distance(points, i, centres, g):
    distance = 0.0
    for j in range(points.shape[0]):
        apart = points[j, i] - centres[j, g]
        distance += apart * apart
    return distance


@inner
def nearest(points, i, centres):
    best = 0
    least = np.inf
    for g in range(centres.shape[1]):
        distance = squared_distance(points, i, centres, g)
        if distance < least:
            best = g
            least = distance
    return best
