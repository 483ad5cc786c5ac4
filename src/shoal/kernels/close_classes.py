"""Classes of near records whose sensitive values are distributed nearly as in the whole table.

Throughout: points (coordinates, n) float64; who (n,) int32 the person of each record, or empty where
each is its own; place, shape, table, step, limit as in `algorithms.table.targets.Targets`. The excess
of a class is the greatest distance - limit over the attributes, -1 where nothing is asked: a class
is close enough when it is at most 0. Equal distances between points go to the lower record.

The cost of an ordered attribute is the sum over its values of |pairs * C - size * G|, with C and G
the cumulative counts of class and table. Between two values of the class C stands still, so prefix
sums of G give each such run in O(1). Replacing one member by y shifts only the runs between the
two by one level: with prefix sums of the runs at their own level, one lower and one higher, every
replacement costs O(1), however many values the table has.

While classes are built, the records that are left are kept together: `near` their points, `ids` their
numbers, rising; a position is a place in these. `gone` marks positions that are in a class already.
"""

from __future__ import annotations

import numpy as np
from numba import njit

inner = njit(nogil=True, cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]

TREE, FIRST, VALUES, STEP, PAIRS, SPAN = range(6)
COUNT, MARK, GAIN = range(3)
CHUNK = 1024
LAZY = 6  # candidates that are looked for one by one before the rest is ordered as a heap
FEW = 16  # records are sorted, not bucketed, where values are so many times as many
ENOUGH = 1e-12  # distances are compared as floats; rounding must not fail a class


@njit(nogil=True, cache=True)
def around_extremes(points, who, k, most, place, shape, table, step, limit):
    """Classes of k people around the record farthest from the mean of what is left and the record
    farthest from that one, in turn; what is left below 2k people is the last class.

    Each class starts as the nearest k people. While it is too far from the table, the next nearest
    record replaces the member that brings it closest, if that brings it closer than it was; at most
    `most` records are tried.
    Returns the class of each record, (n,) int32.
    """
    d, n = points.shape
    labels = np.full(n, -1, np.int32)
    near, ids = points.copy(), np.arange(n).astype(np.int32)
    gone, tried = np.zeros(n, np.bool_), np.zeros(n, np.int64)
    seen = np.zeros(len(who), np.int64)
    scratch = np.zeros((3, len(table)), np.int64)
    centre, mean, distance = np.empty(d), np.zeros(d), np.empty(n)
    for j in range(d):
        for i in range(n):
            mean[j] += points[j, i]
    count, left, number = n, n, 0
    opposite = -1
    while _hold_people(ids, gone, count, left, who, seen, 2 * k):
        _distances_to_seed(near, ids, gone, count, left, mean, opposite, centre, distance)
        opposite = -1 if opposite >= 0 else -2
        members = _nearest_people(distance, ids, gone, count, who, seen, k)
        for e in range(len(members)):
            gone[members[e]] = True
        _bring_closer(
            members, near, ids, gone, tried, number + 1, count, who, distance, False, most, scratch,
            place, shape, table, step, limit,
        )  # fmt: skip
        for e in range(len(members)):
            labels[ids[members[e]]] = number
            for j in range(d):
                mean[j] -= near[j, members[e]]
        if opposite == -2:
            opposite = ids[_farthest(distance, gone, count)]
        number += 1
        left -= len(members)
        if 8 * left < 7 * count:
            count = _close_up(near, ids, gone, tried, count)
    for i in range(count):
        if not gone[i]:
            labels[ids[i]] = number
    return labels


@njit(nogil=True, cache=True)
def from_groups(points, who, group, k, most, follow, uniform, place, shape, table, step, limit):
    """Classes that take one record from each of k groups in turn, near to one drawn from the first.

    group: (n,) int32, 0..k-1. uniform: (n // k,) float64 in [0, 1), settles which record is drawn.
    most: records tried to bring a class closer to the table, nearest to its mean first, which moves
        with every replacement where `follow`.
    Returns the class of each record, (n,) int32; -1 for what is left below 2k records.
    """
    d, n = points.shape
    labels = np.full(n, -1, np.int32)
    near, ids = points.copy(), np.arange(n).astype(np.int32)
    gone, tried = np.zeros(n, np.bool_), np.zeros(n, np.int64)
    scratch = np.zeros((3, len(table)), np.int64)
    centre, distance = np.empty(d), np.empty(n)
    in_group, nearest = np.zeros(k, np.int64), np.empty(k, np.int64)
    for i in range(n):
        in_group[group[i]] += 1
    count, left, number = n, n, 0
    while left >= 2 * k:
        seed = _drawn(group, in_group, ids, gone, count, uniform[number])
        for j in range(d):
            centre[j] = near[j, seed]
        _distances(near, count, centre, distance)
        members = np.empty(k, np.int64)
        members[0] = seed
        gone[seed] = True
        in_group[group[ids[seed]]] -= 1
        taken = 1
        while taken < k:
            _nearest_of_groups(distance, group, ids, gone, count, nearest)
            before = taken
            for g in range(1, k):
                if taken < k and nearest[g] >= 0:
                    taken = _take(members, taken, nearest[g], gone, group, in_group, ids)
            if taken == before:
                taken = _take(members, taken, nearest[0], gone, group, in_group, ids)
        _bring_closer(
            members, near, ids, gone, tried, number + 1, count, who, distance, follow, most, scratch,
            place, shape, table, step, limit,
        )  # fmt: skip
        for e in range(k):
            labels[ids[members[e]]] = number
        number += 1
        left -= k
        for g in range(k):
            in_group[g] = 0
        for i in range(count):
            if not gone[i]:
                in_group[group[ids[i]]] += 1
        if 8 * left < 7 * count:
            count = _close_up(near, ids, gone, tried, count)
    return labels


@njit(nogil=True, cache=True)
def from_subsets(points, subset, subsets, middle):
    """Classes of one record from each subset, the nearest to a seed: farthest from the mean of what is
    left, then farthest from that seed, in turn. The subsets are equally large but for the middle
    one, of which the first classes take a second record.

    Returns the class of each record, (n,) int32.
    """
    d, n = points.shape
    labels = np.full(n, -1, np.int32)
    near, ids = points.copy(), np.arange(n).astype(np.int32)
    gone, tried = np.zeros(n, np.bool_), np.zeros(n, np.int64)
    centre, mean, distance = np.empty(d), np.zeros(d), np.empty(n)
    nearest, sizes = np.empty(subsets, np.int64), np.zeros(subsets, np.int64)
    for i in range(n):
        sizes[subset[i]] += 1
        for j in range(d):
            mean[j] += points[j, i]
    classes = sizes[0] if middle != 0 else sizes[subsets - 1]
    if subsets == 1:
        classes = n
    spare = sizes[middle] - classes
    count, left, opposite = n, n, -1
    for number in range(classes):
        _distances_to_seed(near, ids, gone, count, left, mean, opposite, centre, distance)
        opposite = -1 if opposite >= 0 else -2
        for again in range(2):
            _nearest_of_groups(distance, subset, ids, gone, count, nearest)
            for g in range(subsets):
                if again == 0 or (g == middle and spare > 0):
                    gone[nearest[g]] = True
                    labels[ids[nearest[g]]] = number
                    left -= 1
                    for j in range(d):
                        mean[j] -= near[j, nearest[g]]
            if again == 1 and spare > 0:
                spare -= 1
        if opposite == -2 and left > 0:
            opposite = ids[_farthest(distance, gone, count)]
        if 8 * left < 7 * count:
            count = _close_up(near, ids, gone, tried, count)
    return labels


@njit(nogil=True, cache=True)
def merge_far(points, labels, classes, place, shape, table, step, limit):
    """While the farthest class is too far from the table, it merges with the class whose mean is nearest.

    Equally far or near classes go to the lower number; a union keeps the lower number of the two.
    Returns the class of each record with gaps where classes merged away, (n,) int32.
    """
    d, n = points.shape
    several = len(limit)
    into = np.arange(classes)
    sizes, total = np.zeros(classes, np.int64), np.zeros((classes, d))
    head, later = np.full((several, classes), -1, np.int32), np.full((several, n), -1, np.int32)
    counts = np.zeros(len(table), np.int64)
    for i in range(n):
        sizes[labels[i]] += 1
        for j in range(d):
            total[labels[i], j] += points[j, i]
    for s in range(several):
        _chain(place, s, labels, head[s], later[s], shape)
    excess = np.empty(classes)
    for c in range(classes):
        excess[c] = _excess_of_chains(head, later, c, sizes[c], place, shape, table, step, limit, counts)
    alive = classes
    while alive > 1:
        worst = 0
        for c in range(classes):
            if sizes[c] > 0 and (sizes[worst] == 0 or excess[c] > excess[worst]):
                worst = c
        if excess[worst] <= ENOUGH:
            break
        best, least = -1, np.inf
        for c in range(classes):
            if c != worst and sizes[c] > 0:
                apart = 0.0
                for j in range(d):
                    between = total[c, j] / sizes[c] - total[worst, j] / sizes[worst]
                    apart += between * between
                if apart < least or best < 0:
                    best, least = c, apart
        kept, other = min(worst, best), max(worst, best)
        for j in range(d):
            total[kept, j] += total[other, j]
        for s in range(several):
            head[s, kept] = _merged(head[s, kept], head[s, other], later[s], place, s)
        sizes[kept] += sizes[other]
        sizes[other] = 0
        into[other] = kept
        alive -= 1
        excess[kept] = _excess_of_chains(head, later, kept, sizes[kept], place, shape, table, step, limit, counts)
    for c in range(classes):
        into[c] = into[into[c]]  # a class only ever goes into a lower number
    result = np.empty(n, np.int32)
    for i in range(n):
        result[i] = into[labels[i]]
    return result


@njit(nogil=True, cache=True)
def excesses(labels, classes, place, shape, table, step, limit):
    """The excess of every class, (classes,) float64. labels: (n,) int32, -1 for records to leave out."""
    n = len(labels)
    several = len(limit)
    sizes = np.zeros(classes, np.int64)
    for i in range(n):
        if labels[i] >= 0:
            sizes[labels[i]] += 1
    head, later = np.full((several, classes), -1, np.int32), np.full((several, n), -1, np.int32)
    counts = np.zeros(len(table), np.int64)
    for s in range(several):
        _chain(place, s, labels, head[s], later[s], shape)
    result = np.empty(classes)
    for c in range(classes):
        result[c] = _excess_of_chains(head, later, c, sizes[c], place, shape, table, step, limit, counts)
    return result


# Records that are left


@inner
def _distances(points, count, centre, distance):
    """Squared distance of the first `count` points from the centre."""
    for begin in range(0, count, CHUNK):
        end = min(begin + CHUNK, count)
        for i in range(begin, end):
            distance[i] = 0.0
        for j in range(len(centre)):
            c = centre[j]
            for i in range(begin, end):
                distance[i] += (points[j, i] - c) * (points[j, i] - c)


@inner
def _farthest(distance, gone, count):
    best = -1
    for i in range(count):
        if not gone[i] and (best < 0 or distance[i] > distance[best]):
            best = i
    return best


@inner
def _distances_to_seed(near, ids, gone, count, left, mean, opposite, centre, distance):
    """Squared distances to the next seed: record `opposite` where it is one, else the farthest from the mean.

    mean: sum over the `left` records that are not gone. centre: becomes the seed.
    """
    d = len(centre)
    if opposite >= 0:
        seed = _position(ids, count, opposite)
    else:
        for j in range(d):
            centre[j] = mean[j] / left
        _distances(near, count, centre, distance)
        seed = _farthest(distance, gone, count)
    for j in range(d):
        centre[j] = near[j, seed]
    _distances(near, count, centre, distance)


@inner
def _position(ids, count, record):
    """Where a record is among those left."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if ids[middle] < record:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _close_up(near, ids, gone, tried, count):
    """Drops the positions that are gone; how many stay."""
    kept = 0
    for i in range(count):
        if not gone[i]:
            ids[kept] = ids[i]
            tried[kept] = tried[i]
            kept += 1
    for j in range(near.shape[0]):
        kept = 0
        for i in range(count):
            if not gone[i]:
                near[j, kept] = near[j, i]
                kept += 1
    for i in range(count):
        gone[i] = False
    return kept


@inner
def _hold_people(ids, gone, count, left, who, seen, asked):
    """Whether the records left have at least `asked` people."""
    if len(who) == 0 or left < asked:
        return left >= asked
    people = 0
    for i in range(len(seen)):
        seen[i] = 0
    for i in range(count):
        if not gone[i] and seen[who[ids[i]]] == 0:
            seen[who[ids[i]]] = 1
            people += 1
            if people >= asked:
                return True
    return False


@inner
def _nearest_people(distance, ids, gone, count, who, seen, k):
    """The nearest positions with k people in all, nearest first."""
    wanted = k
    while True:
        nearest = _nearest(distance, gone, count, wanted)
        if len(who) == 0:
            return nearest
        for i in range(len(seen)):
            seen[i] = 0
        people = 0
        for e in range(len(nearest)):
            person = who[ids[nearest[e]]]
            if seen[person] == 0:
                seen[person] = 1
                people += 1
                if people == k:
                    return nearest[: e + 1].copy()
        wanted *= 2


@inner
def _nearest(distance, gone, count, wanted):
    """The `wanted` nearest positions, nearest first."""
    heap = np.empty(min(wanted, count), np.int64)
    held = 0
    for i in range(count):
        if gone[i]:
            continue
        if held < wanted:
            heap[held] = i
            held += 1
            _lift(heap, held - 1, distance)
        elif distance[i] < distance[heap[0]]:
            heap[0] = i
            _sink(heap, 0, held, distance)
    for last in range(held - 1, 0, -1):
        heap[0], heap[last] = heap[last], heap[0]
        _sink(heap, 0, last, distance)
    return heap[:held]


@inner
def _is_farther(a, b, distance):
    return distance[a] > distance[b] or (distance[a] == distance[b] and a > b)


@inner
def _lift(heap, at, distance):
    """Moves an entry up a heap whose farthest is on top."""
    while at > 0 and _is_farther(heap[at], heap[(at - 1) // 2], distance):
        heap[at], heap[(at - 1) // 2] = heap[(at - 1) // 2], heap[at]
        at = (at - 1) // 2


@inner
def _sink(heap, at, held, distance):
    """Moves an entry down a heap whose farthest is on top."""
    while 2 * at + 1 < held:
        child = 2 * at + 1
        if child + 1 < held and _is_farther(heap[child + 1], heap[child], distance):
            child += 1
        if not _is_farther(heap[child], heap[at], distance):
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child


@inner
def _sink_nearest(heap, at, held, distance):
    """Moves an entry down a heap whose nearest is on top."""
    while 2 * at + 1 < held:
        child = 2 * at + 1
        if child + 1 < held and _is_farther(heap[child], heap[child + 1], distance):
            child += 1
        if not _is_farther(heap[at], heap[child], distance):
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child


# One record from each group


@inner
def _drawn(group, in_group, ids, gone, count, uniform):
    """A record of the first group that is not empty."""
    g = 0
    while in_group[g] == 0:
        g += 1
    skip = min(np.int64(uniform * in_group[g]), in_group[g] - 1)
    for i in range(count):
        if not gone[i] and group[ids[i]] == g:
            if skip == 0:
                return i
            skip -= 1
    return -1


@inner
def _nearest_of_groups(distance, group, ids, gone, count, nearest):
    for g in range(len(nearest)):
        nearest[g] = -1
    for i in range(count):
        if not gone[i]:
            g = group[ids[i]]
            if nearest[g] < 0 or distance[i] < distance[nearest[g]]:
                nearest[g] = i


@inner
def _take(members, taken, position, gone, group, in_group, ids):
    members[taken] = position
    gone[position] = True
    in_group[group[ids[position]]] -= 1
    return taken + 1


# Bringing a class closer to the table


@inner
def _bring_closer(
    members, near, ids, gone, tried, turn, count, who, distance, follow, most, scratch,
    place, shape, table, step, limit,
):  # fmt: skip
    """Replaces members, marked gone, by the nearest records left while the class is too far.

    distance: of all positions from the centre; measured anew after each replacement where `follow`.
    """
    size, several = len(members), len(limit)
    if several == 0:
        return
    values, rank = np.empty((several, size + 2), np.int64), np.empty((several, size), np.int64)
    sums = np.zeros((several, 3, size + 2), np.int64)
    turns = np.zeros((several, size + 3), np.int64)
    for s in range(several):
        for level in range(-1, size + 2) if shape[s, TREE] == 0 else range(0):
            turns[s, level + 1] = _passes(level, size, s, shape, step)
    cost, excess = np.zeros(several, np.int64), np.empty(size)
    current = _measure(members, ids, values, rank, sums, turns, cost, scratch, place, shape, table, step, limit)
    if current > ENOUGH:
        centre = np.empty(near.shape[0])
        heap = np.empty(count, np.int64)
        if follow:
            _mean(members, near, centre)
            _distances(near, count, centre, distance)
        held, lazy = _waiting(heap, gone, tried, turn, count), LAZY
        tries = 0
        while current > ENOUGH and held > 0 and tries < most:
            at = 0
            if lazy > 0:
                at = _nearest_waiting(heap, held, distance)
                lazy -= 1
            candidate = heap[at]
            held -= 1
            heap[at] = heap[held]
            if lazy == 0:
                _heap_up(heap, held, distance)
                lazy = -1
            elif lazy < 0:
                _sink_nearest(heap, 0, held, distance)
            tries += 1
            tried[candidate] = turn
            stamp = (np.int64(turn) << 32) + tries
            helps = _try(
                candidate, members, ids, values, rank, sums, turns, cost, excess, current, stamp, scratch,
                place, shape, table, step, limit,
            )  # fmt: skip
            if not helps:
                continue
            best = _best_replacement(candidate, members, ids, who, excess)
            if best < 0 or not excess[best] < current:
                continue
            _uncount(members, ids, scratch, place, shape, step)
            gone[members[best]], tried[members[best]] = False, turn
            gone[candidate] = True
            members[best] = candidate
            current = _measure(members, ids, values, rank, sums, turns, cost, scratch, place, shape, table, step, limit)
            if follow and current > ENOUGH:
                _mean(members, near, centre)
                _distances(near, count, centre, distance)
                held, lazy = _waiting(heap, gone, tried, turn, count), LAZY
    _uncount(members, ids, scratch, place, shape, step)


@inner
def _mean(members, near, centre):
    for j in range(len(centre)):
        total = 0.0
        for e in range(len(members)):
            total += near[j, members[e]]
        centre[j] = total / len(members)


@inner
def _waiting(heap, gone, tried, turn, count):
    """The positions left that were not tried yet, in any order; how many."""
    held = 0
    for i in range(count):
        if not gone[i] and tried[i] != turn:
            heap[held] = i
            held += 1
    return held


@inner
def _nearest_waiting(heap, held, distance):
    best = 0
    for at in range(1, held):
        if _is_farther(heap[best], heap[at], distance):
            best = at
    return best


@inner
def _heap_up(heap, held, distance):
    """Orders the waiting positions as a heap whose nearest is on top."""
    for at in range(held // 2 - 1, -1, -1):
        _sink_nearest(heap, at, held, distance)


@inner
def _best_replacement(candidate, members, ids, who, excess):
    """The member whose replacement brings the class closest, the lowest record of equals; -1 for none."""
    same, only = 0, -1
    if len(who) > 0:
        for e in range(len(members)):
            if who[ids[members[e]]] == who[ids[candidate]]:
                same, only = same + 1, e
    if same > 0:
        return only if same == 1 else -1
    best = 0
    for e in range(1, len(members)):
        if excess[e] < excess[best] or (excess[e] == excess[best] and members[e] < members[best]):
            best = e
    return best


@inner
def _measure(members, ids, values, rank, sums, turns, cost, scratch, place, shape, table, step, limit):
    """Prepares the class for `_try` and returns its excess; counts its records in the trees."""
    size = len(members)
    result = -1.0
    for s in range(len(limit)):
        first = shape[s, FIRST]
        if shape[s, TREE] == 1:
            for e in range(size):
                node = np.int64(place[ids[members[e]], s])
                while node >= 0:
                    scratch[COUNT, first + node] += 1
                    node = np.int64(step[shape[s, STEP] + node])
            cost[s] = _cost_of_tree(members, ids, s, scratch, place, shape, table, step)
        else:
            _sort_places(members, ids, s, values[s], rank[s], place, shape[s, VALUES])
            for level in range(3):
                running = np.int64(0)
                for j in range(size + 1):
                    sums[s, level, j] = running
                    turn = turns[s, j + level]
                    running += _run(j + level - 1, turn, values[s, j], values[s, j + 1], size, s, shape, table)
                sums[s, level, size + 1] = running
            cost[s] = sums[s, 1, size + 1]
        result = max(result, _distance(cost[s], size, s, shape) - limit[s])
    return result


@inner
def _distance(cost, size, s, shape):
    return cost / (np.float64(shape[s, PAIRS]) * size * shape[s, SPAN])


@inner
def _sort_places(members, ids, s, values, rank, place, last):
    """values: 0, the places of the members in order, last; rank: the place of each member in that order."""
    size = len(members)
    order = np.empty(size, np.int64)
    for e in range(size):
        at = e
        while at > 0 and place[ids[members[order[at - 1]]], s] > place[ids[members[e]], s]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = e
    values[0], values[size + 1] = 0, last
    for at in range(size):
        values[at + 1] = place[ids[members[order[at]]], s]
        rank[order[at]] = at + 1


@inner
def _run(level, passes, first, last, size, s, shape, table):
    """Sum over the values first..last-1 of |pairs * level - size * G|, which turns at the value `passes`."""
    passes = min(max(passes, first), last)
    start = shape[s, FIRST]
    below = table[start + passes] - table[start + first]
    above = table[start + last] - table[start + passes]
    return shape[s, PAIRS] * level * (2 * passes - first - last) + size * (above - below)


@inner
def _passes(level, size, s, shape, step):
    """The first value at which size * G reaches pairs * level."""
    if level <= 0:
        return np.int64(0)
    if level >= size:
        return shape[s, VALUES]
    return np.int64(step[shape[s, STEP] + (shape[s, PAIRS] * level + size - 1) // size - 1])


@inner
def _surplus(count, size, s, node, shape, table):
    """What a node of a tree adds to the cost when it holds `count` records of the class."""
    at = shape[s, FIRST] + node
    return table[at + shape[s, VALUES]] * max(np.int64(0), shape[s, PAIRS] * count - size * table[at])


@inner
def _cost_of_tree(members, ids, s, scratch, place, shape, table, step):
    """Every node that covers a member once: at its last visit, when all its records are uncounted again."""
    size = len(members)
    cost = np.int64(0)
    for e in range(size):
        node = np.int64(place[ids[members[e]], s])
        while node >= 0:
            at = shape[s, FIRST] + node
            if scratch[COUNT, at] > 0:
                cost += _surplus(scratch[COUNT, at], size, s, node, shape, table)
                scratch[COUNT, at] = -scratch[COUNT, at]
            node = np.int64(step[shape[s, STEP] + node])
    for e in range(size):
        node = np.int64(place[ids[members[e]], s])
        while node >= 0:
            at = shape[s, FIRST] + node
            scratch[COUNT, at] = abs(scratch[COUNT, at])
            node = np.int64(step[shape[s, STEP] + node])
    return cost


@inner
def _uncount(members, ids, scratch, place, shape, step):
    for s in range(shape.shape[0]):
        if shape[s, TREE] == 1:
            for e in range(len(members)):
                node = np.int64(place[ids[members[e]], s])
                while node >= 0:
                    scratch[COUNT, shape[s, FIRST] + node] = 0
                    node = np.int64(step[shape[s, STEP] + node])


@inner
def _try(
    candidate, members, ids, values, rank, sums, turns, cost, excess, current, stamp, scratch,
    place, shape, table, step, limit,
):  # fmt: skip
    """The excess of the class with each member replaced by the candidate in turn, (size,).

    Returns whether any may be below the current one; the attribute that is farthest now is tried first,
    as no replacement helps that doesn't help there.
    """
    size, several = len(members), len(limit)
    lead = 0
    for s in range(several):
        if _distance(cost[s], size, s, shape) - limit[s] == current:
            lead = s
    for e in range(size):
        excess[e] = -1.0
    for turn in range(several):
        s = (lead + turn) % several
        y = np.int64(place[ids[candidate], s])
        if shape[s, TREE] == 1:
            _try_tree(y, members, ids, cost[s], excess, stamp, s, scratch, place, shape, table, step, limit)
        else:
            _try_ordered(y, values, rank, sums, turns, cost[s], excess, s, shape, table, limit)
        least = excess[0]
        for e in range(1, size):
            least = min(least, excess[e])
        if not least < current:
            return False
    return True


@inner
def _try_ordered(y, values, rank, sums, turns, cost, excess, s, shape, table, limit):
    size = rank.shape[1]
    low, high = 0, size
    while low < high:
        middle = (low + high + 1) // 2
        if values[s, middle] <= y:
            low = middle
        else:
            high = middle - 1
    p = low  # so many members are at or below y
    begin, end = values[s, p], values[s, p + 1]
    left = _run(p - 1, turns[s, p], begin, y, size, s, shape, table)
    left -= _run(p, turns[s, p + 1], begin, y, size, s, shape, table)
    right = _run(p + 1, turns[s, p + 2], y, end, size, s, shape, table)
    right -= _run(p, turns[s, p + 1], y, end, size, s, shape, table)
    left += cost - sums[s, 1, p] + sums[s, 0, p]
    right += cost + sums[s, 1, p + 1] - sums[s, 2, p + 1]
    whole, most = np.float64(shape[s, PAIRS]) * size * shape[s, SPAN], limit[s]
    for e in range(size):
        r = rank[s, e]
        after = left + sums[s, 1, r] - sums[s, 0, r] if r <= p else right + sums[s, 2, r] - sums[s, 1, r]
        excess[e] = max(excess[e], after / whole - most)


@inner
def _try_tree(y, members, ids, cost, excess, stamp, s, scratch, place, shape, table, step, limit):
    size, first = len(members), shape[s, FIRST]
    added = np.int64(0)
    node = y
    while node >= 0:
        at = first + node
        scratch[MARK, at] = stamp
        scratch[GAIN, at] = added
        held = scratch[COUNT, at]
        added += _surplus(held + 1, size, s, node, shape, table) - _surplus(held, size, s, node, shape, table)
        node = np.int64(step[shape[s, STEP] + node])
    for e in range(size):
        node = np.int64(place[ids[members[e]], s])
        change = np.int64(0)
        while scratch[MARK, first + node] != stamp:
            held = scratch[COUNT, first + node]
            change += _surplus(held - 1, size, s, node, shape, table) - _surplus(held, size, s, node, shape, table)
            node = np.int64(step[shape[s, STEP] + node])
        change += scratch[GAIN, first + node]
        excess[e] = max(excess[e], _distance(cost + change, size, s, shape) - limit[s])


# Classes as chains of records in order of their values, one chain for each attribute


@inner
def _chain(place, s, labels, head, later, shape):
    """Links the records of every class in rising order of their values: from the greatest down."""
    n = len(labels)
    if n * FEW < shape[s, VALUES]:
        order = _ordered(place, s, n)
        for at in range(n - 1, -1, -1):
            i = order[at]
            if labels[i] >= 0:
                later[i] = head[labels[i]]
                head[labels[i]] = i
        return
    bucket = np.full(shape[s, VALUES], -1, np.int32)
    before = np.empty(n, np.int32)
    for i in range(n - 1, -1, -1):
        before[i] = bucket[place[i, s]]
        bucket[place[i, s]] = i
    for value in range(shape[s, VALUES] - 1, -1, -1):
        i = bucket[value]
        while i >= 0:
            if labels[i] >= 0:
                later[i] = head[labels[i]]
                head[labels[i]] = i
            i = before[i]


@inner
def _ordered(place, s, n):
    """The records in rising order of their values, by Shell's sort."""
    order = np.arange(n)
    gap = 1
    while 3 * gap + 1 < n:
        gap = 3 * gap + 1
    while gap > 0:
        for e in range(gap, n):
            i, at = order[e], e
            while at >= gap and place[order[at - gap], s] > place[i, s]:
                order[at] = order[at - gap]
                at -= gap
            order[at] = i
        gap //= 3
    return order


@inner
def _merged(a, b, later, place, s):
    """The head of the chain of both; ties to chain a."""
    if a < 0 or b < 0:
        return max(a, b)
    if place[b, s] < place[a, s]:
        head, b = b, later[b]
    else:
        head, a = a, later[a]
    tail = head
    while a >= 0 and b >= 0:
        if place[b, s] < place[a, s]:
            later[tail] = b
            tail, b = b, later[b]
        else:
            later[tail] = a
            tail, a = a, later[a]
    later[tail] = a if a >= 0 else b
    return head


@inner
def _excess_of_chains(head, later, c, size, place, shape, table, step, limit, counts):
    result = -1.0
    for s in range(len(limit)):
        cost = np.int64(0)
        if shape[s, TREE] == 1:
            cost = _cost_of_chain_in_tree(head[s, c], later[s], size, s, place, shape, table, step, counts)
        elif size > 0:
            level, at, i = 0, np.int64(0), head[s, c]
            while i >= 0:
                value = np.int64(place[i, s])
                if value > at:
                    cost += _run(level, _passes(level, size, s, shape, step), at, value, size, s, shape, table)
                    at = value
                level += 1
                i = later[s, i]
            cost += _run(level, _passes(level, size, s, shape, step), at, shape[s, VALUES], size, s, shape, table)
        result = max(result, _distance(cost, max(size, 1), s, shape) - limit[s])
    return result


@inner
def _cost_of_chain_in_tree(start, later, size, s, place, shape, table, step, counts):
    cost = np.int64(0)
    for turn in range(3):  # count, add up what each node costs once, clear
        i = start
        while i >= 0:
            node = np.int64(place[i, s])
            while node >= 0:
                at = shape[s, FIRST] + node
                if turn == 0:
                    counts[at] += 1
                elif turn == 1 and counts[at] > 0:
                    cost += _surplus(counts[at], size, s, node, shape, table)
                    counts[at] = -counts[at]
                elif turn == 2:
                    counts[at] = 0
                node = np.int64(step[shape[s, STEP] + node])
            i = later[i]
    return cost
