"""The records that make a cluster with one record of a stream's buffer.

near, leaf, base, parent, first, last and cost: as in `shoal.streams.kernels.stream_distances`;
subject_ids: as in `shoal.streams.kernels.nearest_clusters`.
"""

from __future__ import annotations

import numpy as np

from shoal.data.numba_kernels import outer
from shoal.streams.kernels.nearest_clusters import (
    Neighbours,
    nearest_people,
    nearest_records,
    record_of,
)
from shoal.streams.kernels.stream_distances import (
    StreamPoints,
    StreamTrees,
    distances_from,
    leaf_losses,
    records_in,
)


@outer
def around(near, leaf, subject_ids, t, k, base, parent, first, last, cost):
    """Which records make a cluster of k people with record t: the nearest of k - 1 others.

    Returns (n,) bool. There must be k people. Ties go to the earlier record.
    """
    points = StreamPoints(near, leaf)
    trees = StreamTrees(base, parent, first, last, cost)
    n = records_in(points)
    ids = np.arange(n)
    heap = np.empty(max(k - 1, 1), np.int64)
    people = subject_ids.max() + 1 if len(subject_ids) > 0 else 0
    best = np.empty(people, np.int64)
    found = Neighbours(np.empty(n, np.int32), np.empty(0, np.int64), best, heap)
    distances_from(t, points, n, leaf_losses(trees), trees, found.dist)
    if len(subject_ids) > 0:
        size = nearest_people(t, n, ids, subject_ids, found, k - 1)
    else:
        size = nearest_records(t, n, ids, subject_ids, found, k - 1)
    chosen = np.zeros(n, np.bool_)
    chosen[t] = True
    for h in range(size):
        chosen[record_of(heap[h])] = True
    return chosen
