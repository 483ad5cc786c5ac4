"""Classes of k near people around the records that lie farthest out, in turn.

points: (d, n) float64. subject_ids: (n,) int32, the person of each record, or empty where each is
its own. codes, layout, prefix_sums, lookup, limit: as in `search.clustering.Targets`; pool,
count, remaining and distance: as in `kernels.unassigned_pool`. Equal distances go to the lower
record.
"""

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.closeness import TargetArrays
from shoal.tables.kernels.improve_closeness import improve_closeness, improvement, is_farther
from shoal.tables.kernels.unassigned_pool import compacted, distances_to_seed, farthest, pool_of


@outer
def around_extremes(points, subject_ids, k, most, codes, layout, prefix_sums, lookup, limit):
    """Classes of k people around the records that lie farthest out; the last one has up to 2k - 1.

    Seeds are the record farthest from the mean of what is left and the record farthest from that
    one, in turn; what is left below 2k people is the last class.
    Each class starts as the nearest k people. While it is too far from the table, the next nearest
    record replaces the member that brings it closest, if that brings it closer than it was; at most
    `most` records are tried.
    Returns the class of each record, (n,) int32.
    """
    targets = TargetArrays(codes, layout, prefix_sums, lookup, limit)
    d, n = points.shape
    labels = np.full(n, -1, np.int32)
    pool = pool_of(points)
    plan = improvement(subject_ids, most, np.bool_(False), len(prefix_sums))
    seen = np.zeros(len(subject_ids), np.int64)
    centre = np.empty(d)
    distance = np.empty(n)
    total = np.zeros(d)
    for j in range(d):
        for i in range(n):
            total[j] += points[j, i]
    count = n
    remaining = n
    number = 0
    opposite = np.int64(-1)
    while _hold_people(pool, count, remaining, subject_ids, seen, 2 * k):
        distances_to_seed(pool, count, remaining, total, opposite, centre, distance)
        seeded_by_mean = opposite < 0
        members = _nearest_people(pool, count, distance, subject_ids, seen, k)
        for e in range(len(members)):
            pool.assigned[members[e]] = True
        improve_closeness(members, pool, count, number + 1, distance, plan, targets)
        for e in range(len(members)):
            labels[pool.ids[members[e]]] = number
            for j in range(d):
                total[j] -= pool.points[j, members[e]]
        # the next class is around the record farthest from this seed, and the one after that again
        # around the record farthest from the mean
        opposite = np.int64(-1)
        if seeded_by_mean:
            opposite = np.int64(pool.ids[farthest(pool, count, distance)])
        number += 1
        remaining -= len(members)
        count = compacted(pool, count, remaining)
    for i in range(count):
        if not pool.assigned[i]:
            labels[pool.ids[i]] = number
    return labels


@inner
def _hold_people(pool, count, remaining, subject_ids, seen, asked):
    """Whether the records left have at least `asked` people. seen: (people,) int64, work space."""
    if len(subject_ids) == 0 or remaining < asked:
        return remaining >= asked
    ids, assigned = pool.ids, pool.assigned
    people = 0
    seen[:] = 0
    for i in range(count):
        if not assigned[i] and seen[subject_ids[ids[i]]] == 0:
            seen[subject_ids[ids[i]]] = 1
            people += 1
            if people >= asked:
                return True
    return False


@inner
def _nearest_people(pool, count, distance, subject_ids, seen, k):
    """The nearest positions with k people in all, nearest first."""
    wanted = k
    while True:
        nearest = _nearest(pool, count, distance, wanted)
        if len(subject_ids) == 0:
            return nearest
        seen[:] = 0
        people = 0
        for e in range(len(nearest)):
            person = subject_ids[pool.ids[nearest[e]]]
            if seen[person] == 0:
                seen[person] = 1
                people += 1
                if people == k:
                    return nearest[: e + 1].copy()
        wanted *= 2  # people with several records: look farther


@inner
def _nearest(pool, count, distance, wanted):
    """The `wanted` nearest positions, nearest first."""
    assigned = pool.assigned
    heap = np.empty(min(wanted, count), np.int64)
    held = 0
    # a heap of the nearest so far, the farthest of them on top
    for i in range(count):
        if assigned[i]:
            continue
        if held < wanted:
            heap[held] = i
            held += 1
            _lift(heap, held - 1, distance)
        elif distance[i] < distance[heap[0]]:
            heap[0] = i
            _sink(heap, np.int64(0), held, distance)
    # its entries in rising order
    for last in range(held - 1, 0, -1):
        heap[0], heap[last] = heap[last], heap[0]
        _sink(heap, np.int64(0), last, distance)
    return heap[:held]


@inner
def _lift(heap, at, distance):
    """Moves an entry up a heap whose farthest is on top."""
    while at > 0 and is_farther(heap[at], heap[(at - 1) // 2], distance):
        heap[at], heap[(at - 1) // 2] = heap[(at - 1) // 2], heap[at]
        at = (at - 1) // 2


@inner
def _sink(heap, at, held, distance):
    """Moves an entry down a heap whose farthest is on top."""
    while 2 * at + 1 < held:
        child = 2 * at + 1
        if child + 1 < held and is_farther(heap[child + 1], heap[child], distance):
            child += 1
        if not is_farther(heap[child], heap[at], distance):
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child
