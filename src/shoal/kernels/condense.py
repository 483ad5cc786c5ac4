"""Clusters of k people out of a stream's buffer, and which published cluster covers a record.

Distances are whole numbers of the unit of loss that `Space` sets, so sums don't depend on their
order and ties are real ties.

Throughout, for n records in order of arrival: near (linear, n) int32, positions on linear attributes
in units of loss, so that a difference is a loss. leaf (trees, n) int32, leaves of tree attributes.
people (n,) int32 dense person numbers, empty where every record is its own. base (trees,) int32, where
an attribute's nodes begin in parent, first, last (nodes,) int32 and cost (nodes,) int32, the loss of
publishing a node.
"""

from __future__ import annotations

import numpy as np
from numba import njit

inner = njit(nogil=True, cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]

BLOCK = 512
STEP = 32
FAR = np.int32(2**31 - 1)
BY_NEAREST, BY_DRAW, OWN_ONLY = 0, 1, 2


@njit(nogil=True, cache=True)
def nearest(near, leaf, people, picks, k, rule, base, parent, first, last, cost):
    """Clusters of a picked record and its k - 1 nearest, until fewer than k people are left.

    picks: (n,) int64, a random order of the records; each pick is the next one that is left.
    The k - 1 nearest are of k - 1 other people. rule: each by the nearest record (BY_NEAREST), or by the
    one that is first in `picks` (BY_DRAW); or only the picked person's own records are passed over, as
    FADS is printed (OWN_ONLY). Ties go to the earlier record.
    Returns the cluster of each record, (n,) int32 with -1 for those left over, and how many there are.
    """
    near, leaf = near.copy(), leaf.copy()
    n = near.shape[1] if near.shape[0] > 0 else leaf.shape[1]
    labels = np.full(n, -1, np.int32)
    ids, where = np.arange(n), np.arange(n)
    counts, distinct = _people_counts(people, n)
    own_only = rule == OWN_ONLY
    best = np.empty(len(counts), np.int64)
    rank = np.empty(n if rule == BY_DRAW else 0, np.int64)
    for i in range(len(rank)):
        rank[picks[i]] = i
    rows, starts = np.empty(_leaves(base, first, last), np.int32), _row_starts(base, first, last)
    dist, heap = np.empty(n, np.int32), np.empty(max(k - 1, 1), np.int64)
    left, clusters, at = n, 0, 0
    while (left if own_only else distinct) >= k:
        while where[picks[at]] < 0:
            at += 1
        t = where[picks[at]]
        for j in range(leaf.shape[0]):
            _fill_row(rows, starts[j], base[j] + leaf[j, t], base[j], parent, first, last, cost)
        _distances(near, leaf, rows, starts, t, left, dist)
        repeated = len(people) > 0 and (own_only or distinct < left)
        if repeated and not own_only:
            size = _nearest_people(dist, ids, people, rank, best, left, t, heap, k - 1)
        else:
            size = _nearest_records(dist, ids, people, left, t, heap, k - 1)
        if size < k - 1:
            break  # only where fewer than k - 1 records are of other people, which own_only allows
        _take(ids[t], clusters, labels, ids, where, near, leaf, left)
        left -= 1
        distinct -= _gone(people, counts, picks[at])
        for h in range(k - 1):
            i = heap[h] & 0xFFFFFFFF
            _take(i, clusters, labels, ids, where, near, leaf, left)
            left -= 1
            distinct -= _gone(people, counts, i)
        clusters += 1
    return labels, clusters


@njit(nogil=True, cache=True)
def grown(near, leaf, people, picks, k, base, parent, first, last, cost):
    """Clusters that begin with a picked record and take the record that adds least loss, k - 1 times.

    As `nearest` in all else: the record that is taken next is of none of the cluster's people.
    """
    near, leaf = near.copy(), leaf.copy()
    linear, trees = near.shape[0], leaf.shape[0]
    n = near.shape[1] if linear > 0 else leaf.shape[1]
    labels = np.full(n, -1, np.int32)
    ids, where = np.arange(n), np.arange(n)
    counts, distinct = _people_counts(people, n)
    rows, starts = np.empty(_leaves(base, first, last), np.int32), _row_starts(base, first, last)
    lo, hi, node = np.empty(linear, np.int32), np.empty(linear, np.int32), np.empty(trees, np.int32)
    total = np.empty(n, np.int32)
    left, clusters, at = n, 0, 0
    while distinct >= k:
        while where[picks[at]] < 0:
            at += 1
        t = where[picks[at]]
        for j in range(linear):
            lo[j], hi[j] = near[j, t], near[j, t]
        for j in range(trees):
            node[j] = base[j] + leaf[j, t]
            _fill_row(rows, starts[j], node[j], base[j], parent, first, last, cost)
        _distances(near, leaf, rows, starts, t, left, total)
        taken = ids[t]
        for _ in range(k - 1):
            _take_grown(taken, clusters, labels, ids, where, near, leaf, total, left)
            left -= 1
            distinct -= _gone(people, counts, taken)
            if len(people) > 0 and counts[people[taken]] > 0:
                for i in range(left):
                    if people[ids[i]] == people[taken]:
                        total[i] = FAR
            i = _least(total, ids, left)
            taken = ids[i]
            _grow_to(i, near, leaf, total, left, lo, hi, node, rows, starts, base, parent, first, last, cost)
        _take_grown(taken, clusters, labels, ids, where, near, leaf, total, left)
        left -= 1
        distinct -= _gone(people, counts, taken)
        clusters += 1
    return labels, clusters


@njit(nogil=True, cache=True)
def grown_near(near, leaf, people, picks, k, reach, base, parent, first, last, cost):
    """As `grown`, but a cluster grows only among the picked record's `reach * k` nearest people.

    Each of them by the nearest record; all who are left where they are fewer.
    """
    near, leaf = near.copy(), leaf.copy()
    linear, trees = near.shape[0], leaf.shape[0]
    n = near.shape[1] if linear > 0 else leaf.shape[1]
    labels = np.full(n, -1, np.int32)
    ids, where = np.arange(n), np.arange(n)
    counts, distinct = _people_counts(people, n)
    best = np.empty(len(counts), np.int64)
    no_rank = np.empty(0, np.int64)
    rows, starts = np.empty(_leaves(base, first, last), np.int32), _row_starts(base, first, last)
    dist, heap = np.empty(n, np.int32), np.empty(reach * k, np.int64)
    some_near, some_leaf = np.empty((linear, reach * k), np.int32), np.empty((trees, reach * k), np.int32)
    some = np.empty(reach * k, np.int64)
    lo, hi, node = np.empty(linear, np.int32), np.empty(linear, np.int32), np.empty(trees, np.int32)
    left, clusters, at = n, 0, 0
    while distinct >= k:
        while where[picks[at]] < 0:
            at += 1
        t = where[picks[at]]
        for j in range(trees):
            _fill_row(rows, starts[j], base[j] + leaf[j, t], base[j], parent, first, last, cost)
        _distances(near, leaf, rows, starts, t, left, dist)
        most = min(reach * k, distinct - 1)
        if len(people) > 0 and distinct < left:
            size = _nearest_people(dist, ids, people, no_rank, best, left, t, heap, most)
        else:
            size = _nearest_records(dist, ids, people, left, t, heap, most)
        for h in range(size):
            some[h] = heap[h] & 0xFFFFFFFF
            dist[h] = np.int32(heap[h] >> 32)
            for j in range(linear):
                some_near[j, h] = near[j, where[some[h]]]
            for j in range(trees):
                some_leaf[j, h] = leaf[j, where[some[h]]]
        for j in range(linear):
            lo[j], hi[j] = near[j, t], near[j, t]
        for j in range(trees):
            node[j] = base[j] + leaf[j, t]
        _take(picks[at], clusters, labels, ids, where, near, leaf, left)
        left -= 1
        distinct -= _gone(people, counts, picks[at])
        _grow(
            some, some_near, some_leaf, dist, size, k - 1, lo, hi, node, rows, starts, base, parent, first, last, cost
        )
        for h in range(size - k + 1, size):
            _take(some[h], clusters, labels, ids, where, near, leaf, left)
            left -= 1
            distinct -= _gone(people, counts, some[h])
        clusters += 1
    return labels, clusters


@njit(nogil=True, cache=True)
def regrouped(near, leaf, people, labels, clusters, k, tries, rounds, base, parent, first, last, cost):
    """Two near clusters of k records are divided anew wherever that loses less; labels change in place.

    Each cluster with its `tries` nearest, by the loss of the box over both; `rounds` times over, what has not
    changed since its last visit left out. Of both clusters' records, the one farthest from the cluster's box
    grows as in `grown`, until half of them are taken. Records of people who are in both stay where they are, so
    that k different people make each cluster before and after. Ties go to the earlier cluster and record.
    """
    linear, trees = near.shape[0], leaf.shape[0]
    rows, starts = np.empty(_leaves(base, first, last), np.int32), _row_starts(base, first, last)
    members, filled = np.empty((clusters, k), np.int64), np.zeros(clusters, np.int64)
    for i in range(len(labels)):
        if labels[i] >= 0:
            members[labels[i], filled[labels[i]]] = i
            filled[labels[i]] += 1
    rest, grown = clusters, clusters + 1  # the boxes of a division that is tried
    lo, hi = np.empty((clusters + 2, linear), np.int32), np.empty((clusters + 2, linear), np.int32)
    node, loss = np.empty((clusters + 2, trees), np.int32), np.empty(clusters + 2, np.int64)
    for c in range(clusters):
        loss[c] = _box(near, leaf, members[c], lo, hi, node, c, base, parent, first, last, cost)
    pool, total = np.empty(2 * k, np.int64), np.empty(2 * k, np.int32)
    pool_near, pool_leaf = np.empty((linear, 2 * k), np.int32), np.empty((trees, 2 * k), np.int32)
    seen_in = np.zeros(people.max() + 1 if len(people) > 0 else 0, np.int64)
    keys, pair = np.empty(tries, np.int64), 0
    changed, visited, clock = np.ones(clusters, np.int64), np.zeros(clusters, np.int64), 1
    for _ in range(rounds):
        before = clock
        for a in range(clusters):
            size = _nearest_boxes(a, clusters, loss, lo, hi, node, keys, parent, first, last, cost)
            since, visited[a] = visited[a], clock
            for h in range(size):
                b = keys[h] & 0xFFFFFFFF
                if max(changed[a], changed[b]) <= since:
                    continue
                pair += 2
                both = _pool(people, members[a], members[b], pool, seen_in, pair)
                if both == k:
                    continue
                of_one = pool[both : 2 * k - both]
                _divide(near, leaf, of_one, pool_near, pool_leaf, total, a, lo, hi, node, rows, starts,
                        base, parent, first, last, cost)  # fmt: skip
                loss[grown] = _box(near, leaf, pool[k:], lo, hi, node, grown, base, parent, first, last, cost)
                loss[rest] = _box(near, leaf, pool[:k], lo, hi, node, rest, base, parent, first, last, cost)
                if loss[grown] + loss[rest] >= loss[a] + loss[b]:
                    continue
                clock += 1
                changed[a], changed[b] = clock, clock
                _settle(a, rest, pool, 0, members, loss, lo, hi, node)
                _settle(b, grown, pool, k, members, loss, lo, hi, node)
        if clock == before:
            break
    for c in range(clusters):
        for i in members[c]:
            labels[i] = c


@njit(nogil=True, cache=True)
def rarity(near, leaf, probes, base, parent, first, last, cost):
    """Distances of each record to the probes, records too, added up; (n,) int64."""
    n = near.shape[1] if near.shape[0] > 0 else leaf.shape[1]
    rows, starts = np.empty(_leaves(base, first, last), np.int32), _row_starts(base, first, last)
    dist, total = np.empty(n, np.int32), np.zeros(n, np.int64)
    for t in probes:
        for j in range(leaf.shape[0]):
            _fill_row(rows, starts[j], base[j] + leaf[j, t], base[j], parent, first, last, cost)
        _distances(near, leaf, rows, starts, t, n, dist)
        for i in range(n):
            total[i] += dist[i]
    return total


@njit(nogil=True, cache=True)
def around(near, leaf, people, t, k, base, parent, first, last, cost):
    """Which records make a cluster of k people with record t: the nearest of k - 1 others; (n,) bool.

    There must be k people. Ties go to the earlier record.
    """
    n = near.shape[1] if near.shape[0] > 0 else leaf.shape[1]
    rows, starts = np.empty(_leaves(base, first, last), np.int32), _row_starts(base, first, last)
    for j in range(leaf.shape[0]):
        _fill_row(rows, starts[j], base[j] + leaf[j, t], base[j], parent, first, last, cost)
    ids, dist, heap = np.arange(n), np.empty(n, np.int32), np.empty(max(k - 1, 1), np.int64)
    _distances(near, leaf, rows, starts, t, n, dist)
    if len(people) > 0:
        best = np.empty(people.max() + 1, np.int64)
        size = _nearest_people(dist, ids, people, np.empty(0, np.int64), best, n, t, heap, k - 1)
    else:
        size = _nearest_records(dist, ids, people, n, t, heap, k - 1)
    chosen = np.zeros(n, np.bool_)
    chosen[t] = True
    for h in range(size):
        chosen[heap[h] & 0xFFFFFFFF] = True
    return chosen


@njit(nogil=True, cache=True)
def join(near, leaf, people, labels, clusters, base, parent, first, last, cost):
    """Puts each record that is left over, in order of arrival, into the cluster whose loss grows least.

    people: (n,) int32, to put all that is left of a person into one cluster; empty to put records singly.
    Clusters grow as they go; of equals the one made first. labels: (n,) int32, changed in place.
    """
    linear, trees, n = near.shape[0], leaf.shape[0], len(labels)
    lo, hi = np.full((clusters + 1, linear), FAR, np.int32), np.full((clusters + 1, linear), -FAR, np.int32)
    node = np.full((clusters + 1, trees), -1, np.int32)
    for i in range(n):
        if labels[i] >= 0:
            _widen(near, leaf, i, lo, hi, node, labels[i], base, parent, first, last)
    for i in range(n):
        if labels[i] >= 0:
            continue
        own = clusters  # the box over all that is to join
        lo[own], hi[own], node[own] = FAR, -FAR, -1
        end = n if len(people) > 0 else i + 1
        for other in range(i, end):
            if other == i or (labels[other] < 0 and people[other] == people[i]):
                _widen(near, leaf, other, lo, hi, node, own, base, parent, first, last)
        best, least = 0, np.int64(2**62)
        for c in range(clusters):
            added = np.int64(0)
            for j in range(linear):
                added += max(np.int64(lo[c, j]) - lo[own, j], 0) + max(np.int64(hi[own, j]) - hi[c, j], 0)
            for j in range(trees):
                up = node[c, j]
                while last[up] < last[node[own, j]] or first[up] > first[node[own, j]]:
                    up = parent[up]
                added += cost[up] - cost[node[c, j]]
            if added < least:
                best, least = c, added
        for other in range(i, end):
            if other == i or (labels[other] < 0 and people[other] == people[i]):
                labels[other] = best
                _widen(near, leaf, other, lo, hi, node, best, base, parent, first, last)


@njit(nogil=True, cache=True)
def covering(values, lo, hi, loss, draws):
    """For each record the covering cluster of least loss, -1 where none covers it; (n,) int32.

    values: (n, d) float64. lo, hi: (d, c) float64, bounds of the clusters, in ascending order of loss.
    loss: (c,) float64. draws: (n,) float64 in [0, 1), which one of several clusters of equal loss.
    """
    n, d = values.shape
    c = len(loss)
    found = np.full(n, -1, np.int32)
    outside = np.empty(c, np.int32)
    for i in range(n):
        for m in range(c):
            outside[m] = 0
        for j in range(d):
            _mark_outside(values[i, j], lo[j], hi[j], outside)
        for m in range(c):
            if outside[m] == 0:
                found[i] = m
                break
        m = found[i]
        if m >= 0 and m + 1 < c and loss[m + 1] == loss[m]:
            found[i] = _drawn_equal(outside, loss, m, draws[i])
    return found


@inner
def _mark_outside(x, lo, hi, outside):
    for m in range(len(outside)):
        outside[m] |= 1 - (np.int32(x >= lo[m]) & np.int32(x <= hi[m]))  # NaN lies outside


@inner
def _drawn_equal(outside, loss, m, draw):
    """The drawn one of the covering clusters that lose as much as cluster m."""
    end, many = m, 0
    while end < len(loss) and loss[end] == loss[m]:
        many += outside[end] == 0
        end += 1
    skip = int(draw * many)
    for c in range(m, end):
        if outside[c] == 0:
            if skip == 0:
                return c
            skip -= 1
    return m


@inner
def _people_counts(people, n):
    """Records left of each person, and how many people are left."""
    if len(people) == 0:
        return np.zeros(0, np.int32), n
    counts = np.zeros(people.max() + 1 if n > 0 else 0, np.int32)
    distinct = 0
    for p in people:
        distinct += counts[p] == 0
        counts[p] += 1
    return counts, distinct


@inner
def _gone(people, counts, i):
    """Takes one record off its person; 1 where that was the person's last."""
    if len(people) == 0:
        return 1
    counts[people[i]] -= 1
    return 1 if counts[people[i]] == 0 else 0


@inner
def _leaves(base, first, last):
    """Leaves of all tree attributes together."""
    total = 0
    for j in range(len(base)):
        end = base[j + 1] if j + 1 < len(base) else len(last)
        most = 0
        for node in range(base[j], end):
            most = max(most, last[node] + 1)
        total += most
    return total


@inner
def _row_starts(base, first, last):
    starts = np.zeros(len(base) + 1, np.int64)
    for j in range(len(base)):
        end = base[j + 1] if j + 1 < len(base) else len(last)
        most = 0
        for node in range(base[j], end):
            most = max(most, last[node] + 1)
        starts[j + 1] = starts[j] + most
    return starts


@inner
def _fill_row(rows, start, node, base, parent, first, last, cost):
    """The loss of the lowest node over `node` and each leaf of its attribute."""
    lo, hi = first[node], last[node]
    for leaf in range(lo, hi + 1):
        rows[start + leaf] = cost[node]
    while parent[node] >= 0:
        node = parent[node]
        for leaf in range(first[node], lo):
            rows[start + leaf] = cost[node]
        for leaf in range(hi + 1, last[node] + 1):
            rows[start + leaf] = cost[node]
        lo, hi = first[node], last[node]


@inner
def _distances(near, leaf, rows, starts, t, left, dist):
    """Loss of the smallest box over record t and each other one."""
    for begin in range(0, left, BLOCK):
        end = min(begin + BLOCK, left)
        for i in range(begin, end):
            dist[i] = 0
        for j in range(near.shape[0]):
            x = near[j, t]
            for i in range(begin, end):
                dist[i] += abs(near[j, i] - x)
        for j in range(leaf.shape[0]):
            start = starts[j]
            for i in range(begin, end):
                dist[i] += rows[start + leaf[j, i]]


@inner
def _nearest_records(dist, ids, people, left, t, heap, most):
    """Keys (distance, record) of the `most` nearest records of other people, as a heap; how many."""
    size, own = 0, -1
    if len(people) > 0:
        own = people[ids[t]]
    for begin in range(0, left, STEP):
        end = min(begin + STEP, left)
        if size == most:
            top = np.int32(heap[0] >> 32)
            least = FAR
            for i in range(begin, end):
                least = min(least, dist[i])
            if least > top:
                continue
        for i in range(begin, end):
            if i == t or (own >= 0 and people[ids[i]] == own):
                continue
            key = (np.int64(dist[i]) << 32) | ids[i]
            if size < most:
                _push(heap, size, key)
                size += 1
            elif most > 0 and key < heap[0]:
                _replace(heap, size, key)
    return size


@inner
def _nearest_people(dist, ids, people, rank, best, left, t, heap, most):
    """As `_nearest_records`, each person by the nearest record, or by the one of least rank if ranks are given."""
    for p in range(len(best)):
        best[p] = np.int64(2**62)
    for i in range(left):
        order = rank[ids[i]] if len(rank) > 0 else np.int64(dist[i])
        key = (order << 32) | ids[i]
        if key < best[people[ids[i]]]:
            best[people[ids[i]]] = key
    if len(rank) > 0:
        for i in range(left):
            if best[people[ids[i]]] == (rank[ids[i]] << 32) | ids[i]:
                best[people[ids[i]]] = (np.int64(dist[i]) << 32) | ids[i]
    size, own = 0, people[ids[t]]
    for p in range(len(best)):
        if p == own or best[p] == np.int64(2**62):
            continue
        if size < most:
            _push(heap, size, best[p])
            size += 1
        elif most > 0 and best[p] < heap[0]:
            _replace(heap, size, best[p])
    return size


@inner
def _push(heap, size, key):
    at = size
    while at > 0 and heap[(at - 1) // 2] < key:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = key


@inner
def _replace(heap, size, key):
    at = 0
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


@inner
def _take(i, cluster, labels, ids, where, near, leaf, left):
    """Labels record i and fills its place with the last one that is left."""
    labels[i] = cluster
    at, tail = where[i], left - 1
    where[i] = -1
    if at != tail:
        for j in range(near.shape[0]):
            near[j, at] = near[j, tail]
        for j in range(leaf.shape[0]):
            leaf[j, at] = leaf[j, tail]
        ids[at] = ids[tail]
        where[ids[at]] = at


@inner
def _take_grown(i, cluster, labels, ids, where, near, leaf, total, left):
    total[where[i]] = total[left - 1]
    _take(i, cluster, labels, ids, where, near, leaf, left)


@inner
def _least(total, ids, left):
    """The place of the least total; of equals the earlier record."""
    best = 0
    for begin in range(0, left, STEP):
        end = min(begin + STEP, left)
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
def _grow_to(i, near, leaf, total, left, lo, hi, node, rows, starts, base, parent, first, last, cost):
    """Widens a cluster's box to record i; the loss of the box with each record follows."""
    for j in range(near.shape[0]):
        x = near[j, i]
        if x < lo[j]:
            _stretch_down(near, j, lo[j], x, total, left)
            lo[j] = x
        elif x > hi[j]:
            _stretch_up(near, j, hi[j], x, total, left)
            hi[j] = x
    for j in range(leaf.shape[0]):
        up = node[j]
        while last[up] < leaf[j, i] or first[up] > leaf[j, i]:
            up = parent[up]
        if up == node[j]:
            continue
        for s in range(left):
            if total[s] != FAR:
                total[s] -= rows[starts[j] + leaf[j, s]]
        _fill_row(rows, starts[j], up, base[j], parent, first, last, cost)
        for s in range(left):
            if total[s] != FAR:
                total[s] += rows[starts[j] + leaf[j, s]]
        node[j] = up


@inner
def _grow(some, near, leaf, total, size, steps, lo, hi, node, rows, starts, base, parent, first, last, cost):
    """Widens a box by one record after the other, each adding least; they end up behind the others."""
    while steps > 0:
        h = _least(total, some, size)
        loss = total[h]
        _grow_to(h, near, leaf, total, size, lo, hi, node, rows, starts, base, parent, first, last, cost)
        size, steps = size - 1, steps - 1
        total[h] = total[size]
        _exchange(h, size, some, near, leaf)
        covered = 0
        for i in range(size):
            covered += total[i] == loss
        if covered > steps:
            continue
        i = 0
        while covered > 0:  # all who add nothing, at once
            if total[i] == loss:
                size, steps, covered = size - 1, steps - 1, covered - 1
                total[i] = total[size]
                _exchange(i, size, some, near, leaf)
            else:
                i += 1


@inner
def _divide(near, leaf, pool, pool_near, pool_leaf, total, a, lo, hi, node, rows, starts, base, parent, first, last,
            cost):  # fmt: skip
    """Moves the record that is farthest from box a, and those that it grows by, into the pool's second half."""
    at, far = 0, np.int64(-1)
    for i in range(len(pool)):
        for j in range(near.shape[0]):
            pool_near[j, i] = near[j, pool[i]]
        for j in range(leaf.shape[0]):
            pool_leaf[j, i] = leaf[j, pool[i]]
        added = _added(pool_near, pool_leaf, i, lo, hi, node, a, parent, first, last, cost)
        if added > far or (added == far and pool[i] < pool[at]):
            at, far = i, added
    end, box = len(pool) - 1, len(lo) - 1  # the last box is work space
    _exchange(at, end, pool, pool_near, pool_leaf)
    for j in range(near.shape[0]):
        lo[box, j], hi[box, j] = pool_near[j, end], pool_near[j, end]
    for j in range(leaf.shape[0]):
        node[box, j] = base[j] + pool_leaf[j, end]
        _fill_row(rows, starts[j], node[box, j], base[j], parent, first, last, cost)
    _distances(pool_near, pool_leaf, rows, starts, end, end, total)
    _grow(pool, pool_near, pool_leaf, total, end, len(pool) // 2 - 1, lo[box], hi[box], node[box], rows, starts,
          base, parent, first, last, cost)  # fmt: skip


@inner
def _stretch_down(near, j, lo, x, total, left):
    """The loss of the box with each record, once its lower bound has fallen from lo to x."""
    for i in range(left):
        if total[i] != FAR:
            total[i] += min(lo, near[j, i]) - min(x, near[j, i])


@inner
def _stretch_up(near, j, hi, x, total, left):
    for i in range(left):
        if total[i] != FAR:
            total[i] += max(x, near[j, i]) - max(hi, near[j, i])


@inner
def _widen(near, leaf, i, lo, hi, node, c, base, parent, first, last):
    for j in range(near.shape[0]):
        lo[c, j] = min(lo[c, j], near[j, i])
        hi[c, j] = max(hi[c, j], near[j, i])
    for j in range(leaf.shape[0]):
        if node[c, j] < 0:
            node[c, j] = base[j] + leaf[j, i]
        while last[node[c, j]] < leaf[j, i] or first[node[c, j]] > leaf[j, i]:
            node[c, j] = parent[node[c, j]]


@inner
def _box(near, leaf, members, lo, hi, node, c, base, parent, first, last, cost):
    """Fills in the box over some records, and returns its loss."""
    for j in range(near.shape[0]):
        lo[c, j], hi[c, j] = FAR, -FAR
    for j in range(leaf.shape[0]):
        node[c, j] = -1
    for i in members:
        _widen(near, leaf, i, lo, hi, node, c, base, parent, first, last)
    total = np.int64(0)
    for j in range(near.shape[0]):
        total += hi[c, j] - lo[c, j]
    for j in range(leaf.shape[0]):
        total += cost[node[c, j]]
    return total


@inner
def _nearest_boxes(a, clusters, loss, lo, hi, node, keys, parent, first, last, cost):
    """Keys (distance, cluster) of the boxes whose union with box a loses least above their own, ascending; how many."""
    size = 0
    for b in range(clusters):
        if b == a:
            continue
        more = -loss[a] - loss[b]
        for j in range(lo.shape[1]):
            more += 2 * np.int64(max(hi[a, j], hi[b, j]) - min(lo[a, j], lo[b, j]))
        for j in range(node.shape[1]):
            up = node[a, j]
            while last[up] < last[node[b, j]] or first[up] > first[node[b, j]]:
                up = parent[up]
            more += 2 * cost[up]
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
def _pool(people, mine, theirs, pool, seen_in, pair):
    """Both clusters' records; mine of people in both come first, theirs last. How many people are in both.

    seen_in: (people,) int64, all less than `pair`; work space.
    """
    k, both = len(mine), 0
    if len(people) == 0:
        for i in range(k):
            pool[i], pool[k + i] = mine[i], theirs[i]
        return 0
    for i in mine:
        seen_in[people[i]] = pair
    for i in theirs:
        if seen_in[people[i]] == pair:
            seen_in[people[i]] = pair + 1
            both += 1
            pool[2 * k - both] = i
    first, at = 0, both
    for i in mine:
        if seen_in[people[i]] > pair:
            pool[first] = i
            first += 1
        else:
            pool[at] = i
            at += 1
    for i in theirs:
        if seen_in[people[i]] <= pair:
            pool[at] = i
            at += 1
    return both


@inner
def _settle(c, box, pool, start, members, loss, lo, hi, node):
    """Makes cluster c what lies in the pool from `start` on, of this box."""
    loss[c] = loss[box]
    for i in range(members.shape[1]):
        members[c, i] = pool[start + i]
    for j in range(lo.shape[1]):
        lo[c, j], hi[c, j] = lo[box, j], hi[box, j]
    for j in range(node.shape[1]):
        node[c, j] = node[box, j]


@inner
def _added(near, leaf, i, lo, hi, node, c, parent, first, last, cost):
    """What record i adds to the loss of box c."""
    added = np.int64(0)
    for j in range(near.shape[0]):
        added += max(lo[c, j] - near[j, i], 0) + max(near[j, i] - hi[c, j], 0)
    for j in range(leaf.shape[0]):
        up = node[c, j]
        while last[up] < leaf[j, i] or first[up] > leaf[j, i]:
            up = parent[up]
        added += cost[up] - cost[node[c, j]]
    return added


@inner
def _exchange(h, i, some, near, leaf):
    """Two records of a pool change places."""
    some[h], some[i] = some[i], some[h]
    for j in range(near.shape[0]):
        near[j, h], near[j, i] = near[j, i], near[j, h]
    for j in range(leaf.shape[0]):
        leaf[j, h], leaf[j, i] = leaf[j, i], leaf[j, h]
