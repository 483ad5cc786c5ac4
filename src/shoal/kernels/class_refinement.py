"""Compiled local search over finished classes: records change places, class sizes stay as they are.

rows: (n, d + 1) int32, codes and record number, the members of a class side by side; starts: where each
class starts, and n at the end. Costs as `Matrix` defines them; a class weighs its records times its loss.

Two moves, each made only when it lowers the total, so the search ends: *regroup* takes a class and some of
its nearest, pools their members and grows the classes anew, each from the member farthest from the last,
always adding the member that costs least (k-member clustering: Byun, Kamra, Bertino, Li 2007); *swap*
exchanges a member that alone attains a bound of its class with any member of a near class.
"""

from __future__ import annotations

import numpy as np
from numba import njit

GAIN = 1e-9  # less is rounding

# Half the compile time of a kernel goes into its helpers, allocations and wrappers. So helpers, called from compiled
# code only, have no wrappers, all work space is allocated in Python, and rows of a matrix are passed by their number. A
# counter that a helper takes starts as `x - x`: for a literal 0 the helper would be compiled a second time.
inner = njit(nogil=True, cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
outer = njit(nogil=True, cache=True, no_cfunc_wrapper=True)


@inner
def span_loss(lo, hi, j, costs):
    """Loss of publishing lo..hi on attribute j."""
    if costs[j, 1] < 0.0:
        return (hi - lo) * costs[j, 0]
    node = int(costs[j, 1]) + lo
    while costs[node, 1] < hi:
        node = int(costs[node, 0])
    return costs[node, 2]


@inner
def _measure(rows, starts, c, boxes, loss, costs):
    """Fills in the loss and the box of class c: its least, greatest, second least and second greatest codes."""
    total = 0.0
    for j in range(boxes.shape[2]):
        lo = rows[starts[c], j]
        hi = lo
        lo2 = np.int32(2147483647)
        hi2 = np.int32(-2147483648)
        for i in range(starts[c] + 1, starts[c + 1]):
            v = rows[i, j]
            if v <= lo:
                lo2 = lo
                lo = v
            elif v < lo2:
                lo2 = v
            if v >= hi:
                hi2 = hi
                hi = v
            elif v > hi2:
                hi2 = v
        boxes[c, 0, j] = lo
        boxes[c, 1, j] = hi
        boxes[c, 2, j] = lo2
        boxes[c, 3, j] = hi2
        total += span_loss(lo, hi, j, costs)
    loss[c] = total


@inner
def _nearest(boxes, loss, a, first, end, near, r, distance, costs):
    """Into near[r] the classes of first..end whose union with class a loses least above their own; how many."""
    found = 0
    most = near.shape[1]
    for b in range(first, end):
        if b == a:
            continue
        more = -loss[a] - loss[b]
        limit = distance[found - 1] if found == most else np.inf
        for j in range(boxes.shape[2]):
            lo = min(boxes[a, 0, j], boxes[b, 0, j])
            hi = max(boxes[a, 1, j], boxes[b, 1, j])
            more += 2.0 * span_loss(lo, hi, j, costs)
            if more >= limit:
                break
        if more < limit:
            if found < most:
                found += 1
            t = found - 1
            while t > 0 and distance[t - 1] > more:
                distance[t] = distance[t - 1]
                near[r, t] = near[r, t - 1]
                t -= 1
            distance[t] = more
            near[r, t] = b
    return found


@inner
def _move(source, at, target, to):
    for j in range(source.shape[1]):
        target[to, j] = source[at, j]


@inner
def _regroup(pool, left, sizes, boxes, a, limit, bounds, regrouped, costs):
    """Grows classes of these sizes from the `left` pooled rows; True when they weigh less than `limit`.

    The first class grows from the row farthest from the box of class a; the last takes what is left of the pool.
    """
    d = boxes.shape[2]
    for j in range(d):
        bounds[0, j] = boxes[a, 0, j]
        bounds[1, j] = boxes[a, 1, j]
    weight = 0.0
    done = left - left
    for c in range(sizes.shape[0] - 1):
        members = 0
        loss = 0.0
        while members < sizes[c]:
            at = left - left
            best = -1.0 if members == 0 else np.inf
            i = left - left
            while i < left and members < sizes[c]:
                more = 0.0
                for j in range(d):
                    v = pool[i, j]
                    lo = bounds[0, j]
                    hi = bounds[1, j]
                    if v < lo or v > hi:
                        more += span_loss(min(lo, v), max(hi, v), j, costs) - span_loss(lo, hi, j, costs)
                        if more >= best and members > 0:
                            break
                if more == 0.0 and members > 0:  # inside the box: joins at once
                    left -= 1
                    _move(pool, i, regrouped, done)
                    _move(pool, left, pool, i)
                    done += 1
                    members += 1
                    continue
                if (more > best) if members == 0 else (more < best):
                    best = more
                    at = i
                i += 1
            if members == sizes[c]:
                break
            for j in range(d):
                v = pool[at, j]
                if members == 0 or v < bounds[0, j]:
                    bounds[0, j] = v
                if members == 0 or v > bounds[1, j]:
                    bounds[1, j] = v
            if members > 0:
                loss += best
                if weight + loss * sizes[c] >= limit:
                    return False
            left -= 1
            _move(pool, at, regrouped, done)
            _move(pool, left, pool, at)
            done += 1
            members += 1
        weight += loss * sizes[c]
    for j in range(d):
        lo = pool[0, j]
        hi = lo
        for i in range(left):
            lo = min(lo, pool[i, j])
            hi = max(hi, pool[i, j])
        weight += left * span_loss(lo, hi, j, costs)
    for i in range(left):
        _move(pool, i, regrouped, done + i)
    return weight < limit


@inner
def _best_swap(rows, i, a, starts, boxes, loss, near, r, fresh, known, bounds, costs):
    """The row of a near class whose exchange with row i of class a gains most: (row, class), -1 where none gains."""
    d = boxes.shape[2]
    size = starts[a + 1] - starts[a]
    without = 0.0
    for j in range(d):
        v = rows[i, j]
        bounds[0, j] = boxes[a, 2 if v == boxes[a, 0, j] else 0, j]
        bounds[1, j] = boxes[a, 3 if v == boxes[a, 1, j] else 1, j]
        without += span_loss(bounds[0, j], bounds[1, j], j, costs)
    at = -1
    other = -1
    best = -GAIN
    if size < 2 or loss[a] - without <= GAIN:
        return at, other
    for t in range(known):
        if not fresh[t]:
            continue
        b = near[r, t]
        size_b = starts[b + 1] - starts[b]
        before = size * loss[a] + size_b * loss[b]
        least = size * without - before  # no member's leaving shrinks b below its second bounds
        for j in range(d):
            v = rows[i, j]
            least += size_b * span_loss(min(boxes[b, 2, j], v), max(boxes[b, 3, j], v), j, costs)
        if least >= best:
            continue
        for p in range(starts[b], starts[b + 1]):
            change = -before
            for j in range(d):
                v = rows[i, j]
                w = rows[p, j]
                lo_a = boxes[a, 0, j]
                hi_a = boxes[a, 1, j]
                lo_b = boxes[b, 0, j]
                hi_b = boxes[b, 1, j]
                if v != w:
                    lo_a = min(bounds[0, j], w)
                    hi_a = max(bounds[1, j], w)
                    lo_b = min(boxes[b, 2, j] if w == lo_b else lo_b, v)
                    hi_b = max(boxes[b, 3, j] if w == hi_b else hi_b, v)
                change += size * span_loss(lo_a, hi_a, j, costs) + size_b * span_loss(lo_b, hi_b, j, costs)
                if change >= best:
                    break
            if change < best:
                best = change
                at = p
                other = b
    return at, other


def refine_classes(rows, starts, reach, neighbours, group, rounds, costs):
    """Lowers the total loss in place by regrouping and swapping; class sizes stay. Returns the moves made.

    reach: classes are compared within runs of so many, in the order they come. neighbours: near classes
    tried for each class. group: classes regrouped together. rounds: times that every class is visited;
    a visit skips what has not changed since it was last tried.
    """
    d = rows.shape[1] - 1
    count = len(starts) - 1
    run = min(reach, count)
    pooled = int(np.diff(starts).max()) * group
    return _refine_classes(
        rows,
        starts,
        rounds,
        costs,
        np.empty((count, 4, d), dtype=np.int32),
        np.empty(count),
        np.ones(count, dtype=np.int64),
        np.empty((run, neighbours), dtype=np.int64),
        np.empty((run, neighbours), dtype=np.int64),
        np.empty(run, dtype=np.int64),
        np.empty(run, dtype=np.int64),
        np.empty(neighbours),
        np.empty(neighbours, dtype=np.bool_),
        np.empty((pooled, d + 1), dtype=np.int32),
        np.empty((pooled, d + 1), dtype=np.int32),
        np.empty(group, dtype=np.int64),
        np.empty(group, dtype=np.int64),
        np.empty((2, d), dtype=np.int32),
    )


@outer
def _refine_classes(
    rows, starts, rounds, costs, boxes, loss, changed, near, visited, known, listed, distance, fresh,
    pool, regrouped, ids, sizes, bounds,
):  # fmt: skip
    """changed: when a class last changed; for the classes of a run, near: the nearest, visited: when these were
    last tried, known: how many there are, listed: when they were found. The rest is work space.
    """
    d = rows.shape[1] - 1
    count = starts.shape[0] - 1
    run = near.shape[0]
    group = ids.shape[0]
    for c in range(count):
        _measure(rows, starts, c, boxes, loss, costs)
    clock = 1
    moves = 0
    for first in range(0, count, run):
        end = min(first + run, count)
        for r in range(run):
            listed[r] = 0
        for _ in range(rounds):
            before = moves
            for a in range(first, end):
                r = a - first
                if changed[a] > listed[r]:
                    known[r] = _nearest(boxes, loss, a, first, end, near, r, distance, costs)
                    listed[r] = clock
                    for t in range(known[r]):
                        visited[r, t] = 0
                ids[0] = a
                for t in range(0, known[r] - group + 2, group - 1):
                    latest = changed[a]
                    for g in range(1, group):
                        ids[g] = near[r, t + g - 1]
                        if changed[ids[g]] > latest:
                            latest = changed[ids[g]]
                    if latest <= visited[r, t]:
                        continue
                    weight = 0.0
                    pooled = a - a
                    for g in range(group):
                        c = ids[g]
                        sizes[g] = starts[c + 1] - starts[c]
                        weight += sizes[g] * loss[c]
                        for i in range(starts[c], starts[c + 1]):
                            _move(rows, i, pool, pooled)
                            pooled += 1
                    if not _regroup(pool, pooled, sizes, boxes, a, weight - GAIN, bounds, regrouped, costs):
                        continue
                    moves += 1
                    clock += 1
                    pooled = a - a
                    for g in range(group):
                        c = ids[g]
                        for i in range(starts[c], starts[c + 1]):
                            _move(regrouped, pooled, rows, i)
                            pooled += 1
                        _measure(rows, starts, c, boxes, loss, costs)
                        changed[c] = clock
                i = starts[a]
                while i < starts[a + 1]:
                    for t in range(known[r]):
                        latest = visited[r, t]
                        fresh[t] = changed[a] > latest or changed[near[r, t]] > latest
                    p, b = _best_swap(rows, i, a, starts, boxes, loss, near, r, fresh, known[r], bounds, costs)
                    i += 1
                    if p < 0:
                        continue
                    moves += 1
                    clock += 1
                    for j in range(d + 1):
                        v = rows[p, j]
                        rows[p, j] = rows[i - 1, j]
                        rows[i - 1, j] = v
                    for c in (a, b):
                        _measure(rows, starts, c, boxes, loss, costs)
                        changed[c] = clock
                    i = starts[a]
                clock += 1
                for t in range(known[r]):
                    visited[r, t] = clock
            if moves == before:
                break
    return moves
