"""Clusters that grow out of a record of a stream's buffer by the record that adds least loss.

Throughout: near, leaf, base, parent, first, last and cost as in `kernels.stream_distances`;
subject_ids and rows as in `kernels.nearest_clusters`. total (rows,) int32 is the loss of the
growing box with each record, FAR for records that may not be taken.
"""

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inner, outer, uncompiled_up_to
from shoal.streams.kernels.nearest_clusters import (
    STEP,
    Neighbours,
    assign,
    nearest_people,
    nearest_records,
    next_pick,
    record_of,
    unassigned,
)
from shoal.streams.kernels.stream_distances import (
    FAR,
    StreamPoints,
    StreamTrees,
    distances_from,
    empty_boxes,
    fill_losses,
    leaf_losses,
    node_over,
    set_box_to,
)


class GrowthPool(NamedTuple):
    """The records that a box may grow by: points, ids (rows,) int64, and total (rows,) int32."""

    points: StreamPoints
    ids: np.ndarray
    total: np.ndarray


@outer
def grown(near, leaf, subject_ids, picks, k, base, parent, first, last, cost):
    """Clusters of a picked record that take the record that adds least loss, k - 1 times.

    As `nearest` in all else: the record that is taken next is of none of the cluster's people.
    """
    trees = StreamTrees(base, parent, first, last, cost)
    losses = leaf_losses(trees)
    pool, people = unassigned(near, leaf, subject_ids)
    ids = pool.ids
    boxes = empty_boxes(np.int64(1), pool.points)
    total = np.empty(len(ids), np.int32)
    chosen = np.empty(k, np.int64)
    remaining = len(ids)
    clusters = np.int64(0)
    at = np.int64(0)
    while people >= k:
        at = next_pick(picks, at, pool)
        row = pool.row_of[picks[at]]
        set_box_to(row, np.int64(0), pool.points, boxes, trees)
        distances_from(row, pool.points, remaining, losses, trees, total)
        taken = ids[row]
        for grown_by in range(k):
            if grown_by > 0:
                row = _least(total, ids, remaining)
                taken = ids[row]
                _grow_to(row, pool.points, total, remaining, np.int64(0), boxes, losses, trees)
            total[pool.row_of[taken]] = total[remaining - 1]
            chosen[grown_by] = taken
            people -= assign(chosen, grown_by, grown_by + 1, clusters, pool, remaining)
            remaining -= 1
            if grown_by < k - 1:
                _exclude_person(taken, total, pool, remaining)
        clusters += 1
    return pool.labels, clusters


@inner
def _exclude_person(taken, total, pool, remaining):
    """Lets the cluster take no other record of this record's person."""
    subject_ids = pool.subject_ids
    if len(subject_ids) > 0 and pool.records_of[subject_ids[taken]] > 0:
        for row in range(remaining):
            if subject_ids[pool.ids[row]] == subject_ids[taken]:
                total[row] = FAR


@uncompiled_up_to(
    lambda near, leaf, people, picks, k, reach, *_: (
        (near.size + leaf.size) * (len(picks) // k + reach * k)
    )
)
@outer
def grown_near(near, leaf, subject_ids, picks, k, reach, base, parent, first, last, cost):
    """Clusters that grow only among the picked record's `reach * k` nearest people.

    Each of them by the nearest record; all who are left where they are fewer.
    """
    trees = StreamTrees(base, parent, first, last, cost)
    losses = leaf_losses(trees)
    pool, people = unassigned(near, leaf, subject_ids)
    n = len(pool.ids)
    boxes = empty_boxes(np.int64(1), pool.points)
    chosen = np.empty(k, np.int64)
    heap = np.empty(reach * k, np.int64)
    best = np.empty(len(pool.records_of), np.int64)
    found = Neighbours(np.empty(n, np.int32), np.empty(0, np.int64), best, heap)
    some_near = np.empty((near.shape[0], reach * k), np.int32)
    some_leaf = np.empty((leaf.shape[0], reach * k), np.int32)
    some_ids = np.empty(reach * k, np.int64)
    some = GrowthPool(StreamPoints(some_near, some_leaf), some_ids, np.empty(reach * k, np.int32))
    remaining = n
    clusters = np.int64(0)
    at = np.int64(0)
    while people >= k:
        at = next_pick(picks, at, pool)
        picked = picks[at]
        row = pool.row_of[picked]
        distances_from(row, pool.points, remaining, losses, trees, found.dist)
        most = min(reach * k, people - 1)
        if len(subject_ids) > 0 and people < remaining:
            size = nearest_people(row, remaining, pool.ids, subject_ids, found, most)
        else:
            size = nearest_records(row, remaining, pool.ids, subject_ids, found, most)
        _copy_found(heap, size, pool, some)
        set_box_to(row, np.int64(0), pool.points, boxes, trees)
        grow(some, size, k - 1, np.int64(0), boxes, losses, trees)
        chosen[0] = picked
        for h in range(k - 1):
            chosen[h + 1] = some.ids[size - k + 1 + h]
        people -= assign(chosen, np.int64(0), k, clusters, pool, remaining)
        remaining -= k
        clusters += 1
    return pool.labels, clusters


@inner
def _copy_found(heap, size, pool, some):
    """Fills a growth pool with the records whose keys are in the heap, and their distances."""
    near, leaf = pool.points.near, pool.points.leaf
    some_near, some_leaf = some.points.near, some.points.leaf
    ids, total, row_of = some.ids, some.total, pool.row_of
    for h in range(size):
        record = record_of(heap[h])
        row = row_of[record]
        ids[h] = record
        total[h] = np.int32(heap[h] >> 32)
        for j in range(near.shape[0]):
            some_near[j, h] = near[j, row]
        for j in range(leaf.shape[0]):
            some_leaf[j, h] = leaf[j, row]


@inner
def grow(pool, size, steps, c, boxes, losses, trees):
    """Widens box c by one record after the other, each adding least; they end up behind the others.

    pool: the first `size` rows are tried. losses: of the nodes of box c.
    """
    total = pool.total
    while steps > 0:
        row = _least(total, pool.ids, size)
        loss = total[row]
        _grow_to(row, pool.points, total, size, c, boxes, losses, trees)
        size -= 1
        steps -= 1
        total[row] = total[size]
        swap_rows(row, size, pool)
        covered = 0
        for i in range(size):
            covered += total[i] == loss
        if covered > steps:
            continue
        i = np.int64(0)
        while covered > 0:  # all who add nothing, at once
            if total[i] == loss:
                size -= 1
                steps -= 1
                covered -= 1
                total[i] = total[size]
                swap_rows(i, size, pool)
            else:
                i += 1


@inner
def swap_rows(a, b, pool):
    """Two records of a pool change places; not their totals."""
    ids, near, leaf = pool.ids, pool.points.near, pool.points.leaf
    record = ids[a]
    ids[a] = ids[b]
    ids[b] = record
    for j in range(near.shape[0]):
        position = near[j, a]
        near[j, a] = near[j, b]
        near[j, b] = position
    for j in range(leaf.shape[0]):
        code = leaf[j, a]
        leaf[j, a] = leaf[j, b]
        leaf[j, b] = code


@inner
def _least(total, ids, count):
    best = np.int64(0)
    for begin in range(0, count, STEP):
        end = min(begin + STEP, count)
        least = FAR
        for i in range(begin, end):
            least = min(least, total[i])
        if least > total[best]:
            continue
        for i in range(begin, end):
            if total[i] < total[best] or (total[i] == total[best] and ids[i] < ids[best]):
                best = i
    return best


@inner
def _grow_to(row, points, total, count, c, boxes, losses, trees):
    """Widens box c to the record in a row; the losses and totals follow."""
    near, leaf = points.near, points.leaf
    lo, hi, node = boxes.lo, boxes.hi, boxes.node
    for j in range(near.shape[0]):
        x = near[j, row]
        if x < lo[c, j]:
            _lower(near, j, lo[c, j], x, total, count)
            lo[c, j] = x
        elif x > hi[c, j]:
            _raise(near, j, hi[c, j], x, total, count)
            hi[c, j] = x
    for j in range(leaf.shape[0]):
        up = node_over(node[c, j], leaf[j, row], leaf[j, row], trees)
        if up == node[c, j]:
            continue
        # replace the part of this tree in every total
        start = losses.starts[j]
        for i in range(count):
            if total[i] != FAR:
                total[i] -= losses.losses[start + leaf[j, i]]
        fill_losses(j, np.int64(up), losses, trees)
        for i in range(count):
            if total[i] != FAR:
                total[i] += losses.losses[start + leaf[j, i]]
        node[c, j] = up


@inner
def _lower(near, j, lo, x, total, count):
    """The loss of the box with each record, once its lower bound has fallen from lo to x."""
    for i in range(count):
        if total[i] != FAR:
            total[i] += min(lo, near[j, i]) - min(x, near[j, i])


@inner
def _raise(near, j, hi, x, total, count):
    """The loss of the box with each record, once its upper bound has risen from hi to x."""
    for i in range(count):
        if total[i] != FAR:
            total[i] += max(x, near[j, i]) - max(hi, near[j, i])
