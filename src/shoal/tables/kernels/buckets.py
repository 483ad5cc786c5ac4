"""Anatomy's buckets: which of them each group draws from, and which records it takes of them."""

from heapq import heapify, heappop, heappush

import numpy as np

from shoal.data.numba_kernels import inner, outer


@outer
def largest_buckets(counts, l):
    """The l largest buckets at each step, one record taken of each, while l are left.

    counts: (values,) int64, records of each bucket. Returns (groups, l) int64, largest first; of
    equally large buckets the one of the lower code.
    """
    heap = [(-counts[v], np.int64(v)) for v in range(len(counts)) if counts[v] > 0]
    heapify(heap)
    chosen = np.empty((counts.sum() // l, l), dtype=np.int64)
    left = np.empty(l, dtype=np.int64)
    groups = 0
    while len(heap) >= l:
        for j in range(l):
            count, v = heappop(heap)
            chosen[groups, j] = v
            left[j] = -count - 1
        for j in range(l):
            if left[j] > 0:
                heappush(heap, (-left[j], chosen[groups, j]))
        groups += 1
    return chosen[:groups]


@outer
def nearest_of_buckets(chosen, records, starts, points):
    """Which record each step takes of each of its buckets: the last of the first, and of the others
    the one nearest to that.

    chosen: as of `largest_buckets`. records: (n,) int64, bucket by bucket, changed; starts:
    (values + 1,) int64, where each begins. points: (n, coordinates) float64. Ties go to the earlier
    place. Returns (groups, l) int64.
    """
    ends = starts[1:].copy()
    taken = np.empty(chosen.shape, dtype=np.int64)
    for g in range(len(chosen)):
        v = chosen[g, 0]
        ends[v] -= 1
        taken[g, 0] = records[ends[v]]
        for j in range(1, chosen.shape[1]):
            v = chosen[g, j]
            at = _nearest(records, starts[v], ends[v], points, taken[g, 0])
            taken[g, j] = records[at]
            ends[v] -= 1
            records[at] = records[ends[v]]
    return taken


@inner
def _nearest(records, start, end, points, first):
    """The place, from start to before end, of the record nearest to the first one."""
    best, least = start, np.inf
    for at in range(start, end):
        distance = 0.0
        for c in range(points.shape[1]):
            away = points[records[at], c] - points[first, c]
            distance += away * away
        if distance < least:
            best, least = at, distance
    return best
