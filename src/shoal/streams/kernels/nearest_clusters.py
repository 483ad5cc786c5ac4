"""Clusters of k people out of a stream's buffer: a record and those nearest to it; records that no
cluster has join the clusters where they add least loss.

Throughout: near, leaf, base, parent, first, last, cost and boxes as in `kernels.stream_distances`.
subject_ids (n,) int32, the person of each record, dense; empty where every record is its own. A
row is a place among the records that remain, which are kept together; see `Unassigned`. Keys are
int64: a distance in the upper half, a record in the lower one, so that ties go to the earlier
record.
"""

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inner, outer, uncompiled_up_to
from shoal.streams.kernels.stream_distances import (
    FAR,
    StreamPoints,
    StreamTrees,
    distances_from,
    empty_box,
    empty_boxes,
    leaf_losses,
    node_over,
    records_in,
    widen,
)

STEP = 32
"""Distances that are passed over together where none of them is small enough."""

NO_KEY = np.int64(2**62)

BY_NEAREST, BY_DRAW, OWN_ONLY = 0, 1, 2
"""Rules of `nearest`."""


class Unassigned(NamedTuple):
    """The records that no cluster has yet: the first `remaining` rows.

    points, ids: the point and the record in each row, ids (n,) int64.
    row_of: (n,) int64, the row of each record, -1 for none.
    records_of: (people,) int32, how many records each person has left; empty as `subject_ids`.
    labels: (n,) int32, the cluster of each record, -1 for none.
    """

    points: StreamPoints
    ids: np.ndarray
    row_of: np.ndarray
    subject_ids: np.ndarray
    records_of: np.ndarray
    labels: np.ndarray


class Neighbours(NamedTuple):
    """The search for the nearest records.

    dist: (n,) int32, distance of each row. heap: int64, the keys found so far.
    best: (people,) int64, the key of the record that stands for each person.
    rank: (n,) int64, by which each person's record is chosen, lowest first; empty for the nearest.
    """

    dist: np.ndarray
    rank: np.ndarray
    best: np.ndarray
    heap: np.ndarray


@outer
def nearest(near, leaf, subject_ids, picks, k, rule, base, parent, first, last, cost):
    """Clusters of a picked record and its k - 1 nearest, until fewer than k people are left.

    picks: (n,) int64, a random order of the records; each pick is the next one that is left.
    The k - 1 nearest are of k - 1 other people. rule: each by the nearest record (BY_NEAREST), or
    by the one that is first in `picks` (BY_DRAW); or only the picked person's own records are
    passed over, as FADS is printed (OWN_ONLY). Ties go to the earlier record. Returns the cluster
    of each record, (n,) int32 with -1 for those left over, and how many there are.
    """
    trees = StreamTrees(base, parent, first, last, cost)
    losses = leaf_losses(trees)
    pool, people = unassigned(near, leaf, subject_ids)
    n = len(pool.ids)
    own_only = rule == OWN_ONLY
    rank = np.empty(n if rule == BY_DRAW else 0, np.int64)
    for i in range(len(rank)):
        rank[picks[i]] = i
    chosen = np.empty(k, np.int64)
    heap = np.empty(max(k - 1, 1), np.int64)
    best = np.empty(len(pool.records_of), np.int64)
    found = Neighbours(np.empty(n, np.int32), rank, best, heap)
    remaining = n
    clusters = np.int64(0)
    at = np.int64(0)
    while (remaining if own_only else people) >= k:
        at = next_pick(picks, at, pool)
        picked = picks[at]
        row = pool.row_of[picked]
        distances_from(row, pool.points, remaining, losses, trees, found.dist)
        if len(subject_ids) > 0 and not own_only and people < remaining:
            size = nearest_people(row, remaining, pool.ids, subject_ids, found, k - 1)
        else:
            size = nearest_records(row, remaining, pool.ids, subject_ids, found, k - 1)
        if size < k - 1:
            break  # only where fewer than k - 1 records are of other people, which own_only allows
        chosen[0] = picked
        for h in range(k - 1):
            chosen[h + 1] = record_of(heap[h])
        people -= assign(chosen, np.int64(0), k, clusters, pool, remaining)
        remaining -= k
        clusters += 1
    return pool.labels, clusters


# Records that no cluster has yet


@inner
def unassigned(near, leaf, subject_ids):
    """All records, on arrays of their own, and how many people they are of."""
    points = StreamPoints(near.copy(), leaf.copy())
    n = records_in(points)
    labels = np.full(n, -1, np.int32)
    if len(subject_ids) == 0:
        nobody = np.zeros(0, np.int32)
        return Unassigned(points, np.arange(n), np.arange(n), subject_ids, nobody, labels), n
    records_of = np.zeros(subject_ids.max() + 1 if n > 0 else 0, np.int32)
    people = 0
    for person in subject_ids:
        people += records_of[person] == 0
        records_of[person] += 1
    return Unassigned(points, np.arange(n), np.arange(n), subject_ids, records_of, labels), people


@inner
def next_pick(picks, at, pool):
    """Where in `picks`, from `at` on, the next record is that no cluster has."""
    while pool.row_of[picks[at]] < 0:
        at += 1
    return at


@inner
def assign(records, begin, end, cluster, pool, remaining):
    """Labels records[begin:end] and fills the row of each with the last one that remains.

    Returns how many people have no record left now.
    """
    near, leaf = pool.points.near, pool.points.leaf
    ids, row_of, labels = pool.ids, pool.row_of, pool.labels
    subject_ids, records_of = pool.subject_ids, pool.records_of
    people = 0
    for e in range(begin, end):
        i = records[e]
        row = row_of[i]
        remaining -= 1
        labels[i] = cluster
        row_of[i] = -1
        if row != remaining:
            for j in range(near.shape[0]):
                near[j, row] = near[j, remaining]
            for j in range(leaf.shape[0]):
                leaf[j, row] = leaf[j, remaining]
            ids[row] = ids[remaining]
            row_of[ids[row]] = row
        if len(records_of) == 0:
            people += 1
        else:
            records_of[subject_ids[i]] -= 1
            people += records_of[subject_ids[i]] == 0
    return people


# The nearest of them


@inner
def key_of(distance, record):
    """Orders by distance, then by record."""
    return (np.int64(distance) << 32) | record


@inner
def record_of(key):
    """The lower half of a key."""
    return key & 0xFFFFFFFF


@inner
def nearest_records(t, count, ids, subject_ids, found, most):
    """Keys of the `most` records of other people that are nearest to the one in row t; how many."""
    dist, heap = found.dist, found.heap
    size = np.int64(0)
    own = -1
    if len(subject_ids) > 0:
        own = subject_ids[ids[t]]
    for begin in range(0, count, STEP):
        end = min(begin + STEP, count)
        if size == most:
            # pass over the whole step where all are farther than the farthest so far
            top = np.int32(heap[0] >> 32)
            least = FAR
            for i in range(begin, end):
                least = min(least, dist[i])
            if least > top:
                continue
        for i in range(begin, end):
            if i == t or (own >= 0 and subject_ids[ids[i]] == own):
                continue
            key = key_of(dist[i], ids[i])
            if size < most:
                _push(heap, size, key)
                size += 1
            elif most > 0 and key < heap[0]:
                _replace_top(heap, size, key)
    return size


@inner
def nearest_people(t, count, ids, subject_ids, found, most):
    """Keys of the nearest people, each by the nearest record, or that of least rank; how many."""
    dist, rank, best, heap = found.dist, found.rank, found.best, found.heap
    for person in range(len(best)):
        best[person] = NO_KEY
    # the record that stands for each person
    for i in range(count):
        order = rank[ids[i]] if len(rank) > 0 else np.int64(dist[i])
        key = key_of(order, ids[i])
        if key < best[subject_ids[ids[i]]]:
            best[subject_ids[ids[i]]] = key
    if len(rank) > 0:
        for i in range(count):
            if best[subject_ids[ids[i]]] == key_of(rank[ids[i]], ids[i]):
                best[subject_ids[ids[i]]] = key_of(dist[i], ids[i])
    # the nearest of these
    size = np.int64(0)
    own = subject_ids[ids[t]]
    for person in range(len(best)):
        if person == own or best[person] == NO_KEY:
            continue
        if size < most:
            _push(heap, size, best[person])
            size += 1
        elif most > 0 and best[person] < heap[0]:
            _replace_top(heap, size, best[person])
    return size


@inner
def _push(heap, size, key):
    """Adds a key to a heap of `size` whose greatest is on top."""
    at = size
    while at > 0 and heap[(at - 1) // 2] < key:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = key


@inner
def _replace_top(heap, size, key):
    at = np.int64(0)
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= key:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = key


@uncompiled_up_to(
    lambda near, leaf, people, labels, clusters, *_: (near.size + leaf.size) * clusters
)
@outer
def join(near, leaf, subject_ids, labels, clusters, base, parent, first, last, cost):
    """Puts each record that is left over into the cluster whose loss grows least, as they arrived.

    subject_ids: (n,) int32, to put all that is left of a person into one cluster; empty to put
    records singly. Clusters grow as they go; of equals the one made first. labels: (n,) int32,
    changed in place.
    """
    points = StreamPoints(near, leaf)
    trees = StreamTrees(base, parent, first, last, cost)
    n = len(labels)
    boxes = empty_boxes(clusters + 1, points)
    for i in range(n):
        if labels[i] >= 0:
            widen(i, np.int64(labels[i]), points, boxes, trees)
    own = clusters  # the box over all that is to join
    for i in range(n):
        if labels[i] >= 0:
            continue
        empty_box(own, boxes)
        end = n if len(subject_ids) > 0 else i + 1
        for other in range(i, end):
            if other == i or (labels[other] < 0 and subject_ids[other] == subject_ids[i]):
                widen(other, own, points, boxes, trees)
        best = _cheapest(own, boxes, trees)
        for other in range(i, end):
            if other == i or (labels[other] < 0 and subject_ids[other] == subject_ids[i]):
                labels[other] = best
                widen(other, best, points, boxes, trees)


@inner
def _cheapest(own, boxes, trees):
    """Of the boxes before box `own`, the first whose loss grows least if it takes that one in."""
    lo, hi, node = boxes.lo, boxes.hi, boxes.node
    first, last, cost = trees.first, trees.last, trees.cost
    best = np.int64(0)
    least = np.int64(2**62)
    for c in range(own):
        added = np.int64(0)
        for j in range(lo.shape[1]):
            added += max(np.int64(lo[c, j]) - lo[own, j], 0)
            added += max(np.int64(hi[own, j]) - hi[c, j], 0)
        for j in range(node.shape[1]):
            up = node_over(node[c, j], first[node[own, j]], last[node[own, j]], trees)
            added += cost[up] - cost[node[c, j]]
        if added < least:
            best = c
            least = added
    return best


# Which published cluster covers a record.


@outer
def covering(values, lo, hi, loss, draws):
    """For each record the covering cluster of least loss, -1 where none covers it; (n,) int32.

    values: (n, d) float64. lo, hi: (d, c) float64, bounds of the clusters, in ascending order of
    loss. loss: (c,) float64. draws: (n,) float64 in [0, 1), which one of several clusters of equal
    loss.
    """
    n, d = values.shape
    clusters = len(loss)
    result = np.full(n, -1, np.int32)
    outside = np.empty(clusters, np.int32)
    for i in range(n):
        for c in range(clusters):
            outside[c] = 0
        for j in range(d):
            _mark_outside(values[i, j], lo[j], hi[j], outside)
        for c in range(clusters):
            if outside[c] == 0:
                result[i] = c
                break
        c = result[i]
        if c >= 0 and c + 1 < clusters and loss[c + 1] == loss[c]:
            result[i] = _drawn_equal(outside, loss, c, draws[i])
    return result


@inner
def _mark_outside(x, lo, hi, outside):
    for c in range(len(outside)):
        outside[c] |= 1 - (np.int32(x >= lo[c]) & np.int32(x <= hi[c]))  # NaN lies outside


@inner
def _drawn_equal(outside, loss, c, draw):
    """The drawn one of the covering clusters that lose as much as cluster c."""
    end = c
    covering = 0
    while end < len(loss) and loss[end] == loss[c]:
        covering += outside[end] == 0
        end += 1
    skip = int(draw * covering)
    for other in range(c, end):
        if outside[other] == 0:
            if skip == 0:
                return other
            skip -= 1
    return c
