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

# helpers are called from compiled code only; without wrappers for Python they compile faster
inner = njit(nogil=True, cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


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
def _measure(rows, a, b, box, costs):
    """Loss of the class rows a..b; box: (4, d) its least, greatest, second least and second greatest codes."""
    total = 0.0
    for j in range(box.shape[1]):
        lo = rows[a, j]
        hi = lo
        lo2 = np.int32(2147483647)
        hi2 = np.int32(-2147483648)
        for i in range(a + 1, b):
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
        box[0, j], box[1, j], box[2, j], box[3, j] = lo, hi, lo2, hi2
        total += span_loss(lo, hi, j, costs)
    return total


@inner
def _nearest(boxes, loss, a, first, end, near, distance, costs):
    """The classes of first..end whose union with class a loses least above their own; how many were found."""
    found = 0
    for b in range(first, end):
        if b == a:
            continue
        more = -loss[a] - loss[b]
        limit = distance[found - 1] if found == near.shape[0] else np.inf
        for j in range(boxes.shape[2]):
            lo = min(boxes[a, 0, j], boxes[b, 0, j])
            hi = max(boxes[a, 1, j], boxes[b, 1, j])
            more += 2.0 * span_loss(lo, hi, j, costs)
            if more >= limit:
                break
        if more < limit:
            if found < near.shape[0]:
                found += 1
            t = found - 1
            while t > 0 and distance[t - 1] > more:
                distance[t] = distance[t - 1]
                near[t] = near[t - 1]
                t -= 1
            distance[t] = more
            near[t] = b
    return found


@inner
def _regroup(pool, sizes, box, limit, regrouped, costs):
    """Grows classes of these sizes from as many pooled rows; True when they weigh less than `limit`.

    The first class grows from the row farthest from `box`. The pool is used up.
    """
    d = box.shape[1]
    lo = box[0].copy()
    hi = box[1].copy()
    weight = 0.0
    done = 0
    left = 0
    for c in range(sizes.shape[0]):
        left += sizes[c]
    for c in range(sizes.shape[0]):
        members = 0
        loss = 0.0
        while members < sizes[c]:
            at = 0
            best = -1.0 if members == 0 else np.inf
            i = 0
            while i < left and members < sizes[c]:
                more = 0.0
                for j in range(d):
                    v = pool[i, j]
                    if v < lo[j] or v > hi[j]:
                        more += span_loss(min(lo[j], v), max(hi[j], v), j, costs) - span_loss(lo[j], hi[j], j, costs)
                        if more >= best and members > 0:
                            break
                if members == 0:
                    if more > best:
                        best, at = more, i
                elif more == 0.0:  # inside the box: joins at once
                    left -= 1
                    for j in range(d + 1):
                        regrouped[done, j] = pool[i, j]
                        pool[i, j] = pool[left, j]
                    done += 1
                    members += 1
                    continue
                elif more < best:
                    best, at = more, i
                i += 1
            if members == sizes[c]:
                break
            for j in range(d):
                v = pool[at, j]
                lo[j] = v if members == 0 else min(lo[j], v)
                hi[j] = v if members == 0 else max(hi[j], v)
            if members > 0:
                loss += best
                if weight + loss * sizes[c] >= limit:
                    return False
            left -= 1
            for j in range(d + 1):
                regrouped[done, j] = pool[at, j]
                pool[at, j] = pool[left, j]
            done += 1
            members += 1
        weight += loss * sizes[c]
    return weight < limit


@inner
def _best_swap(rows, i, a, starts, boxes, loss, near, fresh, costs):
    """The row of a near class whose exchange with row i of class a gains most: (row, class), -1 where none gains."""
    d = boxes.shape[2]
    lo = np.empty(d, dtype=np.int32)
    hi = np.empty(d, dtype=np.int32)
    size = starts[a + 1] - starts[a]
    without = 0.0
    for j in range(d):
        v = rows[i, j]
        lo[j] = boxes[a, 2, j] if v == boxes[a, 0, j] else boxes[a, 0, j]
        hi[j] = boxes[a, 3, j] if v == boxes[a, 1, j] else boxes[a, 1, j]
        without += span_loss(lo[j], hi[j], j, costs)
    at, other = -1, -1
    best = -GAIN
    if size < 2 or loss[a] - without <= GAIN:
        return at, other
    for t in range(near.shape[0]):
        if not fresh[t]:
            continue
        b = near[t]
        size_b = starts[b + 1] - starts[b]
        before = size * loss[a] + size_b * loss[b]
        least = size * without - before  # no member's leaving shrinks b below its second bounds
        for j in range(d):
            least += size_b * span_loss(min(boxes[b, 2, j], rows[i, j]), max(boxes[b, 3, j], rows[i, j]), j, costs)
        if least >= best:
            continue
        for p in range(starts[b], starts[b + 1]):
            change = -before
            j = 0
            while j < d and change < best:
                v, w = rows[i, j], rows[p, j]
                lo_a, hi_a, lo_b, hi_b = boxes[a, 0, j], boxes[a, 1, j], boxes[b, 0, j], boxes[b, 1, j]
                if v != w:
                    lo_a, hi_a = min(lo[j], w), max(hi[j], w)
                    lo_b = min(boxes[b, 2, j] if w == lo_b else lo_b, v)
                    hi_b = max(boxes[b, 3, j] if w == hi_b else hi_b, v)
                change += size * span_loss(lo_a, hi_a, j, costs) + size_b * span_loss(lo_b, hi_b, j, costs)
                j += 1
            if j == d and change < best:
                best = change
                at, other = p, b
    return at, other


@njit(nogil=True, cache=True)
def refine_classes(rows, starts, reach, neighbours, group, rounds, costs):
    """Lowers the total loss in place by regrouping and swapping; class sizes stay. Returns the moves made.

    reach: classes are compared within runs of so many, in the order they come. neighbours: near classes
    tried for each class. group: classes regrouped together. rounds: times that every class is visited;
    a visit skips what has not changed since it was last tried.
    """
    d = rows.shape[1] - 1
    count = starts.shape[0] - 1
    run = min(reach, count)
    largest = 0
    for c in range(count):
        largest = max(largest, starts[c + 1] - starts[c])
    boxes = np.empty((count, 4, d), dtype=np.int32)
    loss = np.empty(count)
    for c in range(count):
        loss[c] = _measure(rows, starts[c], starts[c + 1], boxes[c], costs)
    pool = np.empty((largest * group, d + 1), dtype=np.int32)
    regrouped = np.empty((largest * group, d + 1), dtype=np.int32)
    sizes = np.empty(group, dtype=np.int64)
    ids = np.empty(group, dtype=np.int64)
    near = np.empty((run, neighbours), dtype=np.int64)
    known = np.empty(run, dtype=np.int64)  # how many neighbours
    listed = np.empty(run, dtype=np.int64)  # when they were listed
    visited = np.empty((run, neighbours), dtype=np.int64)  # when they were last tried
    changed = np.ones(count, dtype=np.int64)
    fresh = np.empty(neighbours, dtype=np.bool_)
    distance = np.empty(neighbours)
    clock = 1
    moves = 0
    for first in range(0, count, run):
        end = min(first + run, count)
        listed[:] = 0
        for _ in range(rounds):
            before = moves
            for a in range(first, end):
                r = a - first
                if changed[a] > listed[r]:
                    known[r] = _nearest(boxes, loss, a, first, end, near[r], distance, costs)
                    listed[r] = clock
                    for t in range(neighbours):
                        visited[r, t] = 0
                ids[0] = a
                for t in range(0, known[r] - group + 2, group - 1):
                    latest = changed[a]
                    for g in range(1, group):
                        ids[g] = near[r, t + g - 1]
                        latest = max(latest, changed[ids[g]])
                    if latest <= visited[r, t]:
                        continue
                    weight = 0.0
                    pooled = 0
                    for g in range(group):
                        c = ids[g]
                        sizes[g] = starts[c + 1] - starts[c]
                        weight += sizes[g] * loss[c]
                        for i in range(starts[c], starts[c + 1]):
                            for j in range(d + 1):
                                pool[pooled, j] = rows[i, j]
                            pooled += 1
                    if not _regroup(pool, sizes, boxes[a], weight - GAIN, regrouped, costs):
                        continue
                    moves += 1
                    clock += 1
                    done = 0
                    for g in range(group):
                        c = ids[g]
                        for i in range(starts[c], starts[c + 1]):
                            for j in range(d + 1):
                                rows[i, j] = regrouped[done, j]
                            done += 1
                        loss[c] = _measure(rows, starts[c], starts[c + 1], boxes[c], costs)
                        changed[c] = clock
                i = starts[a]
                while i < starts[a + 1]:
                    for t in range(known[r]):
                        fresh[t] = max(changed[a], changed[near[r, t]]) > visited[r, t]
                    p, b = _best_swap(rows, i, a, starts, boxes, loss, near[r, : known[r]], fresh, costs)
                    i += 1
                    if p < 0:
                        continue
                    moves += 1
                    clock += 1
                    for j in range(d + 1):
                        rows[i - 1, j], rows[p, j] = rows[p, j], rows[i - 1, j]
                    for c in (a, b):
                        loss[c] = _measure(rows, starts[c], starts[c + 1], boxes[c], costs)
                        changed[c] = clock
                    i = starts[a]
                clock += 1
                for t in range(known[r]):
                    visited[r, t] = clock
            if moves == before:
                break
    return moves
