"""Clusters that grow out of a record of a stream's buffer by the record that adds least loss.

Throughout: near, leaf, base, parent, first, last and cost, and boxes, as in
`kernels.stream_distances`; subject_ids and rows as in `kernels.nearest_clusters`. total (rows,)
int32 is the loss of the growing box with each record, FAR for records that may not be taken.
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
    ids[a], ids[b] = ids[b], ids[a]
    for j in range(near.shape[0]):
        near[j, a], near[j, b] = near[j, b], near[j, a]
    for j in range(leaf.shape[0]):
        leaf[j, a], leaf[j, b] = leaf[j, b], leaf[j, a]


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


@uncompiled_up_to(
    lambda near, leaf, people, labels, k, tries, *_: (
        (near.size + leaf.size) * (len(labels) // k**2 + tries * 2 * k)
    )
)
@outer
def regrouped(near, leaf, subject_ids, labels, k, tries, rounds, base, parent, first, last, cost):
    """Two near clusters of k records are divided anew wherever that loses less.

    labels: (n,) int32, changed in place. Below, members (clusters, k) int64 are the records of each
    cluster; box c is that of cluster c, and the last two are those of a division that is tried.
    Each cluster with its `tries` nearest, by the loss of the box over both; `rounds` times over,
    what has not changed since its last visit left out. Of both clusters' records, the one farthest
    from the cluster's box grows as in `grown`, until half of them are taken. Records of people who
    are in both stay where they are, so that k different people make each cluster before and after.
    Ties go to the earlier cluster and record.
    """
    points = StreamPoints(near, leaf)
    trees = StreamTrees(base, parent, first, last, cost)
    losses = leaf_losses(trees)
    members = _members(labels, k)
    clusters = len(members)
    rest = clusters
    grown = clusters + 1
    boxes = empty_boxes(clusters + 2, points)
    for c in range(clusters):
        _set_box(members[c], c, points, boxes, trees)
    both_ids = np.empty(2 * k, np.int64)
    copies = StreamPoints(
        np.empty((near.shape[0], 2 * k), np.int32), np.empty((leaf.shape[0], 2 * k), np.int32)
    )
    total = np.empty(2 * k, np.int32)
    seen_in = np.zeros(subject_ids.max() + 1 if len(subject_ids) > 0 else 0, np.int64)
    pair = 0
    keys = np.empty(tries, np.int64)
    # the clock ticks with every change: a pair is tried again once either cluster has changed
    clock = 1
    changed = np.ones(clusters, np.int64)
    visited = np.zeros(clusters, np.int64)
    for _ in range(rounds):
        before = clock
        for a in range(clusters):
            size = _nearest_boxes(a, clusters, boxes, keys, trees)
            since = visited[a]
            visited[a] = clock
            for h in range(size):
                b = keys[h] & 0xFFFFFFFF
                if max(changed[a], changed[b]) <= since:
                    continue
                pair += 2
                fixed = _pool_both(subject_ids, members[a], members[b], both_ids, seen_in, pair)
                if fixed == k:
                    continue
                # people in both are at the ends of the pool, one record in each half
                pool = GrowthPool(copies, both_ids[fixed : 2 * k - fixed], total)
                _divide(pool, a, grown, points, boxes, losses, trees)
                _set_box(both_ids[k:], grown, points, boxes, trees)
                _set_box(both_ids[:k], rest, points, boxes, trees)
                if boxes.loss[grown] + boxes.loss[rest] >= boxes.loss[a] + boxes.loss[b]:
                    continue
                clock += 1
                changed[a] = clock
                changed[b] = clock
                _set_cluster(a, both_ids[:k], rest, members, boxes)
                _set_cluster(b, both_ids[k:], grown, members, boxes)
        if clock == before:
            break
    for c in range(clusters):
        for i in members[c]:
            labels[i] = c


@inner
def _members(labels, k):
    """The records of each cluster, rising, (clusters, k) int64."""
    clusters = 0
    for i in range(len(labels)):
        clusters = max(clusters, labels[i] + 1)
    members = np.empty((clusters, k), np.int64)
    filled = np.zeros(clusters, np.int64)
    for i in range(len(labels)):
        if labels[i] >= 0:
            members[labels[i], filled[labels[i]]] = i
            filled[labels[i]] += 1
    return members


@inner
def _set_box(records, c, points, boxes, trees):
    """Makes box c that over some records, with its loss."""
    near, leaf = points.near, points.leaf
    lo, hi, node = boxes.lo, boxes.hi, boxes.node
    base, parent, first, last = trees.base, trees.parent, trees.first, trees.last
    loss = np.int64(0)
    for j in range(near.shape[0]):
        low = FAR
        high = -FAR
        for i in records:
            low = min(low, near[j, i])
            high = max(high, near[j, i])
        lo[c, j] = low
        hi[c, j] = high
        loss += high - low
    for j in range(leaf.shape[0]):
        up = np.int64(base[j] + leaf[j, records[0]])
        for i in records:
            while last[up] < leaf[j, i] or first[up] > leaf[j, i]:
                up = np.int64(parent[up])
        node[c, j] = up
        loss += trees.cost[up]
    boxes.loss[c] = loss


@inner
def _set_cluster(c, records, box, members, boxes):
    """Makes cluster c these records, of this box."""
    boxes.loss[c] = boxes.loss[box]
    for i in range(members.shape[1]):
        members[c, i] = records[i]
    for j in range(boxes.lo.shape[1]):
        boxes.lo[c, j] = boxes.lo[box, j]
        boxes.hi[c, j] = boxes.hi[box, j]
    for j in range(boxes.node.shape[1]):
        boxes.node[c, j] = boxes.node[box, j]


@inner
def _nearest_boxes(a, clusters, boxes, keys, trees):
    """Fills `keys` with the boxes whose union with box a loses least above their own; how many.

    A key is what it loses in the upper half and the cluster in the lower one; they rise.
    """
    lo, hi, node, loss = boxes.lo, boxes.hi, boxes.node, boxes.loss
    size = 0
    for b in range(clusters):
        if b == a:
            continue
        # both clusters are published as the union: it counts twice
        more = -loss[a] - loss[b]
        for j in range(lo.shape[1]):
            more += 2 * np.int64(max(hi[a, j], hi[b, j]) - min(lo[a, j], lo[b, j]))
        for j in range(node.shape[1]):
            other = node[b, j]
            up = node_over(node[a, j], trees.first[other], trees.last[other], trees)
            more += 2 * trees.cost[up]
        key = (more << 32) | b
        if size < len(keys):
            size += 1
        elif key > keys[size - 1]:
            continue
        at = size - 1
        while at > 0 and keys[at - 1] > key:
            keys[at] = keys[at - 1]
            at -= 1
        keys[at] = key
    return size


@inner
def _pool_both(subject_ids, mine, theirs, pool, seen_in, pair):
    """Both clusters' records; mine of people in both come first, theirs last.

    Returns how many people are in both.
    seen_in: (people,) int64, all less than `pair`; work space.
    """
    k = len(mine)
    if len(subject_ids) == 0:
        for i in range(k):
            pool[i] = mine[i]
            pool[k + i] = theirs[i]
        return 0
    # people of mine are marked with `pair`, those of both with pair + 1
    both = 0
    for i in mine:
        seen_in[subject_ids[i]] = pair
    for i in theirs:
        if seen_in[subject_ids[i]] == pair:
            seen_in[subject_ids[i]] = pair + 1
            both += 1
            pool[2 * k - both] = i
    first = 0
    at = both
    for i in mine:
        if seen_in[subject_ids[i]] > pair:
            pool[first] = i
            first += 1
        else:
            pool[at] = i
            at += 1
    for i in theirs:
        if seen_in[subject_ids[i]] <= pair:
            pool[at] = i
            at += 1
    return both


@inner
def _divide(pool, a, box, points, boxes, losses, trees):
    """Moves the record farthest from box a, and those it grows by, into the second half."""
    ids, copies = pool.ids, pool.points
    for i in range(len(ids)):
        for j in range(copies.near.shape[0]):
            copies.near[j, i] = points.near[j, ids[i]]
        for j in range(copies.leaf.shape[0]):
            copies.leaf[j, i] = points.leaf[j, ids[i]]
    farthest = _farthest_from(a, pool, boxes, trees)
    end = len(ids) - 1
    swap_rows(farthest, end, pool)
    set_box_to(end, box, copies, boxes, trees)
    distances_from(end, copies, end, losses, trees, pool.total)
    grow(pool, end, len(ids) // 2 - 1, box, boxes, losses, trees)


@inner
def _farthest_from(c, pool, boxes, trees):
    """The row of the record that adds most to the loss of box c; of equals the earlier record."""
    ids, near, leaf = pool.ids, pool.points.near, pool.points.leaf
    lo, hi, node = boxes.lo, boxes.hi, boxes.node
    farthest = np.int64(0)
    most = np.int64(-1)
    for i in range(len(ids)):
        added = np.int64(0)
        for j in range(near.shape[0]):
            added += max(lo[c, j] - near[j, i], 0) + max(near[j, i] - hi[c, j], 0)
        for j in range(leaf.shape[0]):
            up = node_over(node[c, j], leaf[j, i], leaf[j, i], trees)
            added += trees.cost[up] - trees.cost[node[c, j]]
        if added > most or (added == most and ids[i] < ids[farthest]):
            farthest = i
            most = added
    return farthest
