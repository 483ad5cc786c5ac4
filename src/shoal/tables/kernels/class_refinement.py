"""Local search over finished classes: records change places, class sizes stay as they are.

rows: (n, d + 1) int32, codes and record number, the members of a class side by side.
starts: (classes + 1,) int64, where each class starts, and n at the end.
costs: as in `spans`; a class weighs its records times its loss.

Two moves, each made only when it lowers the total, so the search ends: *regroup* takes a class and
some of its nearest, pools their members and grows the classes anew, each from the member farthest
from the last, always adding the member that costs least (k-member clustering: Byun, Kamra, Bertino,
Li 2007); *swap* exchanges a member that alone attains a bound of its class with any member of a
near class.

Members and classes are priced attribute by attribute, many at once, which runs on vectors. An
attribute on which all that take part have one code changes nothing and is left out.

Python allocates the work space: allocations take long to compile, in every first run.
"""

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.spans import copy_row, first_node, span_loss

GAIN = 1e-9  # less is rounding

BLOCK = 64
"""Classes whose unions are priced together."""

# the first index of Classes.boxes[c]: what a class's codes reach, with and without the outermost
LEAST, GREATEST, SECOND_LEAST, SECOND_GREATEST = range(4)


class RefinedClasses(NamedTuple):
    """The classes as they are now."""

    starts: np.ndarray  # (classes + 1,) int64
    boxes: np.ndarray  # (classes, 4, d) int32, see LEAST
    loss: np.ndarray  # (classes,) float64
    changed: np.ndarray  # (classes,) int64, when a class last changed
    reach: np.ndarray  # (2, d, classes) int32, the least and the greatest of `boxes` once more


class Nearest(NamedTuple):
    """For each class of the run that is searched, its nearest classes."""

    near: np.ndarray  # (run, neighbours) int64, the nearest first
    visited: np.ndarray  # (run, neighbours) int64, when each was last tried
    known: np.ndarray  # (run,) int64, how many of them there are
    listed: np.ndarray  # (run,) int64, when they were found
    distance: np.ndarray  # (neighbours,) float64, room for what their unions lose
    unions: np.ndarray  # (BLOCK,) float64, room for what unions with some classes lose


class Pool(NamedTuple):
    """The members of classes that are regrouped; those that no class has taken come first."""

    ids: np.ndarray  # (group,) int64, the classes
    sizes: np.ndarray  # (group,) int64
    attributes: np.ndarray  # (d,) int64, those that vary
    codes: np.ndarray  # (d, members) int32, what the members have there
    growth: np.ndarray  # (d, members) float64, what each adds to the loss of the class that grows
    total: np.ndarray  # (members,) float64, on all attributes
    number: np.ndarray  # (members,) int64, their places when they were pooled
    taken: np.ndarray  # (members,) int64, those places in the order in which they were taken
    bounds: np.ndarray  # (2, d) int32, the box of the class that grows


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
    largest = int(np.diff(starts).max())
    pooled = largest * group
    return _refine_classes(
        rows,
        starts,
        np.array([rounds, above, group], dtype=np.float64),
        costs,
        np.empty((count, 4, d), dtype=np.int32),  # boxes
        np.empty((2, d, count), dtype=np.int32),  # reach
        np.empty(count),  # loss
        np.ones(count, dtype=np.int64),  # changed
        np.empty((2, run, neighbours), dtype=np.int64),  # near, visited
        np.empty((2, run), dtype=np.int64),  # known, listed
        np.empty((d, pooled), dtype=np.int32),  # codes
        np.empty((d + 4, max(pooled, neighbours, BLOCK, d + 1))),  # growth to unions, rest
        np.empty((5, max(pooled, d)), dtype=np.int64),  # ids, sizes, attributes, number, taken
        np.empty((pooled + 2, d + 1), dtype=np.int32),  # the pooled rows, bounds
    )


@outer
def _refine_classes(
    rows, starts, effort, costs, boxes, reach, loss, changed, near, known, codes, sums, order, room
):
    """effort: (3,) float64, `rounds`, `above` and `group`. The others: the arrays of the tuples
    above, some in one, and room for the pooled rows.
    """
    d = boxes.shape[2]
    bounds = room[-2:]
    classes = RefinedClasses(starts, boxes, loss, changed, reach)
    nearest = Nearest(near[0], near[1], known[0], known[1], sums[d + 1], sums[d + 2])
    group = int(effort[2])
    ids = order[0, :group]
    pool = Pool(ids, order[1], order[2], codes, sums[:d], sums[d], order[3], order[4], bounds)
    count = starts.shape[0] - 1
    run = near.shape[1]
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
                    if not _regroup(rows, classes, pool, costs):
                        continue
                    moves += 1
                    clock += 1
                    _deal(rows, starts, pool, room)
                    for c in ids:
                        _measure(rows, c, classes, costs)
                        changed[c] = clock
                # swap members of a until none of them gains
                i = starts[a]
                while i < starts[a + 1]:
                    p, b = _best_swap(rows, i, a, r, classes, nearest, bounds, sums[d + 3], costs)
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
        classes.reach[0, j, c] = lo
        classes.reach[1, j, c] = hi
        boxes[c, SECOND_LEAST, j] = lo2
        boxes[c, SECOND_GREATEST, j] = hi2
        total += span_loss(lo, hi, j, costs)
    classes.loss[c] = total


@inner
def _find_nearest(a, first, end, classes, nearest, costs):
    """The classes of first..end whose union with class a loses least above their own; none of them
    is visited yet.
    """
    loss = classes.loss
    near = nearest.near
    distance = nearest.distance
    unions = nearest.unions
    r = a - first
    found = np.int64(0)
    most = near.shape[1]
    limit = np.inf
    for begin in range(first, end, BLOCK):
        size = min(BLOCK, end - begin)
        for i in range(size):
            unions[i] = -loss[a] - loss[begin + i]
        if not _unite(a, begin, size, limit, classes, unions, costs):
            continue
        for i in range(size):
            more = unions[i]
            if more >= limit or begin + i == a:
                continue
            # into its place in the list, nearest first; the farthest drops out of a full one
            if found < most:
                found += 1
            t = found - 1
            while t > 0 and distance[t - 1] > more:
                distance[t] = distance[t - 1]
                near[r, t] = near[r, t - 1]
                t -= 1
            distance[t] = more
            near[r, t] = begin + i
            if found == most:
                limit = distance[found - 1]
    nearest.known[r] = found
    for t in range(found):
        nearest.visited[r, t] = 0


@inner
def _unite(a, begin, size, limit, classes, unions, costs):
    """Adds what the union of class a and each class from `begin` on loses; False as soon as none
    stays below the limit.
    """
    d = classes.reach.shape[1]
    for j in range(d):
        lo = classes.reach[0, j, begin:]
        hi = classes.reach[1, j, begin:]
        lo_a = classes.reach[0, j, a]
        hi_a = classes.reach[1, j, a]
        is_linear = first_node(j, costs) < 0
        unit = costs[j, 0]
        for i in range(size):
            low = min(lo_a, lo[i])
            high = max(hi_a, hi[i])
            if is_linear:
                unions[i] += 2.0 * (np.int32(high - low) * unit)
            elif unions[i] < limit:
                unions[i] += 2.0 * span_loss(low, high, j, costs)
        if j % 8 == 7:
            lowest = np.inf
            for i in range(size):
                lowest = min(lowest, unions[i])
            if lowest >= limit:
                return False
    return True


@inner
def _varying(ids, boxes, attributes):
    """How many attributes vary among the members of these classes; lists them first."""
    count = np.int64(0)
    for j in range(boxes.shape[2]):
        lo = boxes[ids[0], LEAST, j]
        hi = boxes[ids[0], GREATEST, j]
        for c in ids[1:]:
            lo = min(lo, boxes[c, LEAST, j])
            hi = max(hi, boxes[c, GREATEST, j])
        if lo < hi:
            attributes[count] = j
            count += 1
    return count


@inner
def _regroup(rows, classes, pool, costs):
    """Grows classes of the same sizes from the members of these; True when they weigh less, and
    `pool.taken` then says who belongs to which.

    The first class grows from the member farthest from the box of class ids[0], each other one from
    the member farthest from the class before; the last takes what is left of the pool.
    """
    ids = pool.ids
    sizes = pool.sizes
    starts = classes.starts
    codes = pool.codes
    total = pool.total
    bounds = pool.bounds
    d = _varying(ids, classes.boxes, pool.attributes)
    limit = -GAIN
    left = np.int64(0)
    for g in range(ids.shape[0]):
        c = ids[g]
        sizes[g] = starts[c + 1] - starts[c]
        limit += sizes[g] * classes.loss[c]
        for i in range(starts[c], starts[c + 1]):
            for j in range(d):
                codes[j, left] = rows[i, pool.attributes[j]]
            pool.number[left] = left
            left += 1
    for j in range(d):
        bounds[0, j] = classes.boxes[ids[0], LEAST, pool.attributes[j]]
        bounds[1, j] = classes.boxes[ids[0], GREATEST, pool.attributes[j]]
        _price(pool, left, j, costs)
    weight = 0.0
    done = np.int64(0)
    for g in range(ids.shape[0] - 1):
        members = 0
        loss = 0.0
        while members < sizes[g]:
            _add_up(pool, left, d)
            # the first member is the farthest, every other one the one that costs least
            at = np.int64(0)
            best = -1.0 if members == 0 else np.inf
            i = np.int64(0)
            while i < left and members < sizes[g]:
                if total[i] == 0.0 and members > 0:  # inside the box: joins at once
                    left -= 1
                    _take(pool, i, left, done, d)
                    done += 1
                    members += 1
                    continue
                if (total[i] > best) if members == 0 else (total[i] < best):
                    best = total[i]
                    at = i
                i += 1
            if members == sizes[g]:
                break
            if members > 0:
                loss += best
                if weight + loss * sizes[g] >= limit:
                    return False
            for j in range(d):
                v = codes[j, at]
                if members > 0 and bounds[0, j] <= v <= bounds[1, j]:
                    continue
                bounds[0, j] = v if members == 0 else min(bounds[0, j], v)
                bounds[1, j] = v if members == 0 else max(bounds[1, j], v)
                _price(pool, left, j, costs)
            left -= 1
            _take(pool, at, left, done, d)
            done += 1
            members += 1
        weight += loss * sizes[g]
    for j in range(d):
        lo = codes[j, 0]
        hi = lo
        for i in range(left):
            lo = min(lo, codes[j, i])
            hi = max(hi, codes[j, i])
        weight += left * span_loss(lo, hi, pool.attributes[j], costs)
    for i in range(left):
        pool.taken[done + i] = pool.number[i]
    return weight < limit


@inner
def _price(pool, left, j, costs):
    """What each of the `left` members adds to the loss of the box on the j-th attribute."""
    attribute = pool.attributes[j]
    lo = pool.bounds[0, j]
    hi = pool.bounds[1, j]
    span = span_loss(lo, hi, attribute, costs)
    is_linear = first_node(attribute, costs) < 0
    unit = costs[attribute, 0]
    for i in range(left):
        low = min(lo, pool.codes[j, i])
        high = max(hi, pool.codes[j, i])
        if is_linear:
            pool.growth[j, i] = np.int32(high - low) * unit - span
        else:
            pool.growth[j, i] = span_loss(low, high, attribute, costs) - span


@inner
def _add_up(pool, left, d):
    """What each of the `left` members adds to the loss of the box."""
    for i in range(left):
        pool.total[i] = 0.0
    for j in range(d):
        for i in range(left):
            pool.total[i] += pool.growth[j, i]


@inner
def _take(pool, i, last, done, d):
    """Takes member i out as number `done`; the last one takes its place."""
    pool.taken[done] = pool.number[i]
    pool.number[i] = pool.number[last]
    pool.total[i] = pool.total[last]
    for j in range(d):
        pool.codes[j, i] = pool.codes[j, last]
        pool.growth[j, i] = pool.growth[j, last]


@inner
def _deal(rows, starts, pool, room):
    """Puts the members of these classes into the order in which they were taken."""
    pooled = np.int64(0)
    for c in pool.ids:
        for i in range(starts[c], starts[c + 1]):
            copy_row(rows, i, room, pooled)
            pooled += 1
    pooled = np.int64(0)
    for c in pool.ids:
        for i in range(starts[c], starts[c + 1]):
            copy_row(room, pool.taken[pooled], rows, i)
            pooled += 1


@inner
def _best_swap(rows, i, a, r, classes, nearest, bounds, rest, costs):
    """The row of a near class whose exchange with row i of class a gains most: (row, class), -1
    where none gains.

    Classes that have not changed since they were tried with a are passed over. bounds: (2, d)
    int32, room for the box of class a without the row. rest: (d + 1,) float64, room for what both
    classes lose at least on each attribute and those behind it.
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
            rest[j] = size_b * span_loss(lo_b, hi_b, j, costs)
            least += rest[j]
            if least >= best:
                break
        if least >= best:
            continue
        rest[d] = 0.0
        for j in range(d - 1, -1, -1):
            rest[j] += rest[j + 1] + size * span_loss(bounds[0, j], bounds[1, j], j, costs)
        for p in range(starts[b], starts[b + 1]):
            change = -before
            for j in range(d):
                v = rows[i, j]
                w = rows[p, j]
                lo_b = boxes[b, SECOND_LEAST if w == boxes[b, LEAST, j] else LEAST, j]
                hi_b = boxes[b, SECOND_GREATEST if w == boxes[b, GREATEST, j] else GREATEST, j]
                loss_a = span_loss(min(bounds[0, j], w), max(bounds[1, j], w), j, costs)
                loss_b = span_loss(min(lo_b, v), max(hi_b, v), j, costs)
                change += size * loss_a + size_b * loss_b
                if change + rest[j + 1] >= best + GAIN:
                    change = best
                    break
            if change < best:
                best = change
                at = p
                other = b
    return at, other
