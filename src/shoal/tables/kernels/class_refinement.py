"""Local search over finished classes: records change places, class sizes stay as they are.

rows: (n, d + 1) int32, codes and record number, the members of a class side by side.
starts: (classes + 1,) int64, where each class starts, and n at the end.
costs: as in `spans`; a class weighs its records times its loss.

Two moves, each made only when it lowers the total, so the search ends: *regroup* takes a class and
some of its nearest, pools their members and grows the classes anew, each from the member farthest
from the last, always adding the member that costs least (k-member clustering: Byun, Kamra, Bertino,
Li 2007); *swap* exchanges a member that alone attains a bound of its class with any member of a
near class.

Python allocates the work space: allocations take long to compile, and this is part of every first
run.
"""

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.spans import copy_row, span_loss

GAIN = 1e-9  # less is rounding

# the first index of Classes.boxes[c]: what a class's codes reach, with and without the outermost
LEAST, GREATEST, SECOND_LEAST, SECOND_GREATEST = range(4)


class RefinedClasses(NamedTuple):
    """The classes as they are now."""

    starts: np.ndarray  # (classes + 1,) int64
    boxes: np.ndarray  # (classes, 4, d) int32, see LEAST
    loss: np.ndarray  # (classes,) float64
    changed: np.ndarray  # (classes,) int64, when a class last changed


class Nearest(NamedTuple):
    """For each class of the run that is searched, its nearest classes."""

    near: np.ndarray  # (run, neighbours) int64, the nearest first
    visited: np.ndarray  # (run, neighbours) int64, when each was last tried
    known: np.ndarray  # (run,) int64, how many of them there are
    listed: np.ndarray  # (run,) int64, when they were found
    distance: np.ndarray  # (neighbours,) float64, room for what their unions lose


def refine_classes(rows, starts, reach, neighbours, group, rounds, costs, above=0.0):
    """Lowers the total loss in place by regrouping and swapping; class sizes stay. Returns the
    moves made.

    reach: classes are compared within runs of this length, in the order they come. neighbours: near
    classes tried for each class. group: classes regrouped together. rounds: times that every class
    is visited; a visit skips what has not changed since it was last tried. above: classes that
    lose less than this multiple of the mean class are not visited, but may be near ones.
    """
    d = rows.shape[1] - 1
    count = len(starts) - 1
    run = min(reach, count)
    pooled = int(np.diff(starts).max()) * group
    return _refine_classes(
        rows,
        starts,
        np.array([rounds, above], dtype=np.float64),
        costs,
        np.empty((count, 4, d), dtype=np.int32),  # boxes
        np.empty(count),  # loss
        np.ones(count, dtype=np.int64),  # changed
        np.empty((2, run, neighbours), dtype=np.int64),  # near, visited
        np.empty((2, run), dtype=np.int64),  # known, listed
        np.empty(neighbours),  # distance
        np.empty((3, max(pooled, 2), d + 1), dtype=np.int32),  # pool, regrouped, bounds
        np.empty((2, group), dtype=np.int64),  # ids, sizes
    )


@outer
def _refine_classes(
    rows, starts, effort, costs, boxes, loss, changed, near, known, distance, pools, chosen
):
    """effort: (2,) float64, `rounds` and `above`. near, known: the arrays of `Nearest`, two in
    each. pools: room for the pooled members, for the same grown anew, and for the bounds of a
    class. chosen: room for the classes to regroup, and their sizes.
    """
    classes = RefinedClasses(starts, boxes, loss, changed)
    nearest = Nearest(near[0], near[1], known[0], known[1], distance)
    pool = pools[0]
    regrouped = pools[1]
    bounds = pools[2][:2]
    ids = chosen[0]
    sizes = chosen[1]
    count = starts.shape[0] - 1
    run = near.shape[1]
    group = chosen.shape[1]
    least = 0.0
    for c in range(count):
        _measure(rows, c, classes, costs)
        least += loss[c]
    least *= effort[1] / count
    # the clock goes on by one with every move and every visit: it says what came before what
    clock = np.int64(1)
    moves = np.int64(0)
    for first in range(0, count, run):
        end = min(first + run, count)
        for r in range(run):
            nearest.listed[r] = 0
        for _ in range(int(effort[0])):
            before = moves
            for a in range(first, end):
                r = a - first
                if loss[a] < least:
                    continue
                if changed[a] > nearest.listed[r]:
                    _find_nearest(a, first, end, classes, nearest, costs)
                    nearest.listed[r] = clock
                # regroup a with `group - 1` of its neighbours, then with the next ones
                ids[0] = a
                for t in range(0, nearest.known[r] - group + 2, group - 1):
                    latest = changed[a]
                    for g in range(1, group):
                        ids[g] = nearest.near[r, t + g - 1]
                        latest = max(latest, changed[ids[g]])
                    if latest <= nearest.visited[r, t]:
                        continue  # nothing has changed since it was tried
                    weight = 0.0
                    pooled = np.int64(0)
                    for g in range(group):
                        c = ids[g]
                        sizes[g] = starts[c + 1] - starts[c]
                        weight += sizes[g] * loss[c]
                        for i in range(starts[c], starts[c + 1]):
                            copy_row(rows, i, pool, pooled)
                            pooled += 1
                    if not _regroup(
                        pool, pooled, sizes, boxes, a, weight - GAIN, bounds, regrouped, costs
                    ):
                        continue
                    moves += 1
                    clock += 1
                    pooled = np.int64(0)
                    for g in range(group):
                        c = ids[g]
                        for i in range(starts[c], starts[c + 1]):
                            copy_row(regrouped, pooled, rows, i)
                            pooled += 1
                        _measure(rows, c, classes, costs)
                        changed[c] = clock
                # swap members of a until none of them gains
                i = starts[a]
                while i < starts[a + 1]:
                    p, b = _best_swap(rows, i, a, r, classes, nearest, bounds, costs)
                    i += 1
                    if p < 0:
                        continue
                    moves += 1
                    clock += 1
                    for j in range(rows.shape[1]):
                        rows[p, j], rows[i - 1, j] = rows[i - 1, j], rows[p, j]
                    for c in (a, b):
                        _measure(rows, c, classes, costs)
                        changed[c] = clock
                    i = starts[a]
                clock += 1
                for t in range(nearest.known[r]):
                    nearest.visited[r, t] = clock
            if moves == before:
                break
    return moves


@inner
def _measure(rows, c, classes, costs):
    """Fills in the loss and the box of class c."""
    boxes = classes.boxes
    starts = classes.starts
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
        boxes[c, LEAST, j] = lo
        boxes[c, GREATEST, j] = hi
        boxes[c, SECOND_LEAST, j] = lo2
        boxes[c, SECOND_GREATEST, j] = hi2
        total += span_loss(lo, hi, j, costs)
    classes.loss[c] = total


@inner
def _find_nearest(a, first, end, classes, nearest, costs):
    """The classes of first..end whose union with class a loses least above their own; none of them
    is visited yet.
    """
    boxes = classes.boxes
    loss = classes.loss
    near = nearest.near
    distance = nearest.distance
    r = a - first
    found = np.int64(0)
    most = near.shape[1]
    for b in range(first, end):
        if b == a:
            continue
        more = -loss[a] - loss[b]
        limit = distance[found - 1] if found == most else np.inf
        for j in range(boxes.shape[2]):
            lo = min(boxes[a, LEAST, j], boxes[b, LEAST, j])
            hi = max(boxes[a, GREATEST, j], boxes[b, GREATEST, j])
            more += 2.0 * span_loss(lo, hi, j, costs)
            if more >= limit:
                break
        if more < limit:
            # into its place in the list, nearest first; the farthest drops out of a full one
            if found < most:
                found += 1
            t = found - 1
            while t > 0 and distance[t - 1] > more:
                distance[t] = distance[t - 1]
                near[r, t] = near[r, t - 1]
                t -= 1
            distance[t] = more
            near[r, t] = b
    nearest.known[r] = found
    for t in range(found):
        nearest.visited[r, t] = 0


@inner
def _regroup(pool, left, sizes, boxes, a, limit, bounds, regrouped, costs):
    """Grows classes of these sizes from the `left` pooled rows; True when they weigh less than
    `limit`.

    The first class grows from the row farthest from the box of class a, each other one from the row
    farthest from the class before; the last takes what is left of the pool.
    bounds: (2, d) int32, room for the box of the class that grows.
    """
    d = boxes.shape[2]
    for j in range(d):
        bounds[0, j] = boxes[a, LEAST, j]
        bounds[1, j] = boxes[a, GREATEST, j]
    weight = 0.0
    done = np.int64(0)
    for c in range(sizes.shape[0] - 1):
        members = 0
        loss = 0.0
        while members < sizes[c]:
            # the first member is the farthest row, every other one the row that costs least
            at = np.int64(0)
            best = -1.0 if members == 0 else np.inf
            i = np.int64(0)
            while i < left and members < sizes[c]:
                more = 0.0
                for j in range(d):
                    v = pool[i, j]
                    lo = bounds[0, j]
                    hi = bounds[1, j]
                    if v < lo or v > hi:
                        grown = span_loss(min(lo, v), max(hi, v), j, costs)
                        more += grown - span_loss(lo, hi, j, costs)
                        if more >= best and members > 0:
                            break
                if more == 0.0 and members > 0:  # inside the box: joins at once
                    left -= 1
                    copy_row(pool, i, regrouped, done)
                    copy_row(pool, left, pool, i)
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
            copy_row(pool, at, regrouped, done)
            copy_row(pool, left, pool, at)
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
        copy_row(pool, i, regrouped, done + i)
    return weight < limit


@inner
def _best_swap(rows, i, a, r, classes, nearest, bounds, costs):
    """The row of a near class whose exchange with row i of class a gains most: (row, class), -1
    where none gains.

    Classes that have not changed since they were tried with a are passed over.
    bounds: (2, d) int32, room for the box of class a without the row.
    """
    starts = classes.starts
    boxes = classes.boxes
    loss = classes.loss
    changed = classes.changed
    near = nearest.near
    d = boxes.shape[2]
    size = starts[a + 1] - starts[a]
    at = -1
    other = -1
    best = -GAIN
    if size < 2:
        return at, other
    without = 0.0
    for j in range(d):
        v = rows[i, j]
        bounds[0, j] = boxes[a, SECOND_LEAST if v == boxes[a, LEAST, j] else LEAST, j]
        bounds[1, j] = boxes[a, SECOND_GREATEST if v == boxes[a, GREATEST, j] else GREATEST, j]
        without += span_loss(bounds[0, j], bounds[1, j], j, costs)
    if loss[a] - without <= GAIN:
        return at, other
    for t in range(nearest.known[r]):
        b = near[r, t]
        latest = nearest.visited[r, t]
        if changed[a] <= latest and changed[b] <= latest:
            continue
        size_b = starts[b + 1] - starts[b]
        before = size * loss[a] + size_b * loss[b]
        least = size * without - before  # no member's leaving shrinks b below its second bounds
        for j in range(d):
            v = rows[i, j]
            lo_b = min(boxes[b, SECOND_LEAST, j], v)
            hi_b = max(boxes[b, SECOND_GREATEST, j], v)
            least += size_b * span_loss(lo_b, hi_b, j, costs)
        if least >= best:
            continue
        for p in range(starts[b], starts[b + 1]):
            change = -before
            for j in range(d):
                v = rows[i, j]
                w = rows[p, j]
                lo_a = boxes[a, LEAST, j]
                hi_a = boxes[a, GREATEST, j]
                lo_b = boxes[b, LEAST, j]
                hi_b = boxes[b, GREATEST, j]
                if v != w:
                    lo_a = min(bounds[0, j], w)
                    hi_a = max(bounds[1, j], w)
                    lo_b = min(boxes[b, SECOND_LEAST, j] if w == lo_b else lo_b, v)
                    hi_b = max(boxes[b, SECOND_GREATEST, j] if w == hi_b else hi_b, v)
                loss_a = span_loss(lo_a, hi_a, j, costs)
                loss_b = span_loss(lo_b, hi_b, j, costs)
                change += size * loss_a + size_b * loss_b
                if change >= best:
                    break
            if change < best:
                best = change
                at = p
                other = b
    return at, other
