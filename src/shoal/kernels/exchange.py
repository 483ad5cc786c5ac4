"""Classes exchange records: less squared error, and no farther from the whole table than allowed.

Throughout: rows (n, d) float64 the records as points; place, shape, table, step, limit as in
`algorithms.table.targets.Targets`; who (n,) int32 the person of each record, or empty where each is its
own. The excess of a class is the sum over the sensitive attributes of max(0, distance - limit), and
1 for every person that it lacks of k.

Exchanging r of class a and s of class b, with means A and B, changes the squared error by
2 (s - r) . (B - A) - |s - r|^2 (1 / size a + 1 / size b). The change of a distance takes O(1): the cost
of an ordered attribute is a sum of runs |pairs * C - size * G| between neighbouring values of the
class, with C and G the cumulative counts of class and table, and an exchange shifts the runs between
the two values by one level; prefix sums of the runs at their own level and one lower and higher are kept.
"""

from __future__ import annotations

import numpy as np
from numba import njit

inner = njit(nogil=True, cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]

TREE, FIRST, VALUES, STEP, PAIRS, SPAN = range(6)
MANY = 48  # members of a class that are tried at a time
GAIN = 1e-9  # less is rounding
ENOUGH = 1e-12


@njit(nogil=True, cache=True)
def exchange(rows, who, k, labels, classes, near, weight, rounds, place, shape, table, step, limit):
    """Exchanges records between near classes while squared error + weight * excess falls.

    labels: (n,) int32, changed in place; sizes stay. near: (classes, q) int32, the classes that each
    one exchanges with, -1 for none. Pairs of large classes try a part of their exchanges at a time.
    Returns the excess of every class, (classes,) float64, and how many records changed places.
    """
    n, d = rows.shape
    several = len(limit)
    sizes = np.zeros(classes, np.int64)
    for i in range(n):
        sizes[labels[i]] += 1
    start = np.zeros(classes + 1, np.int64)
    for c in range(classes):
        start[c + 1] = start[c] + sizes[c]
        sizes[c] = 0
    members = np.empty(n, np.int64)
    for i in range(n):
        c = labels[i]
        members[start[c] + sizes[c]] = i
        sizes[c] += 1
    means = np.empty((classes, d))
    values = np.zeros((several, n + 2 * classes), np.int64)
    sums = np.zeros((several, 3, n + 2 * classes), np.int64)
    rank = np.zeros((several, n), np.int64)
    cost = np.zeros((several, classes), np.int64)
    counts = np.zeros((2, len(table)), np.int64)
    excess = np.empty(classes)
    turns, turn_at = _turns(start, classes, shape, step)
    changed, seen = np.ones(classes, np.int64), np.zeros(near.shape, np.int64)
    for c in range(classes):
        _set_mean(rows, members, start, c, means)
        excess[c] = _lacking(who, k, members, start, c, -1, -1) + _settle(
            members, start, c, values, sums, rank, cost, turns, turn_at, counts, place, shape, table, step, limit
        )
    clock = 1
    for _ in range(rounds):
        moved = False
        for a in range(classes):
            for q in range(near.shape[1]):
                b = np.int64(near[a, q])
                if b < 0 or max(changed[a], changed[b]) <= seen[a, q]:
                    continue
                seen[a, q] = clock
                while True:
                    found, x, y = _best_exchange(
                        rows, who, k, members, start, a, b, clock, means, values, sums, rank, cost, excess,
                        weight, turns, turn_at, counts, place, shape, table, step, limit,
                    )  # fmt: skip
                    if not found:
                        break
                    moved = True
                    r, s = members[start[a] + x], members[start[b] + y]
                    members[start[a] + x], members[start[b] + y] = s, r
                    labels[r], labels[s] = b, a
                    for c in (np.int64(a), b):
                        _set_mean(rows, members, start, c, means)
                        excess[c] = _lacking(who, k, members, start, c, -1, -1) + _settle(
                            members,
                            start,
                            c,
                            values,
                            sums,
                            rank,
                            cost,
                            turns,
                            turn_at,
                            counts,
                            place,
                            shape,
                            table,
                            step,
                            limit,
                        )
                    clock += 1
                    changed[a] = clock
                    changed[b] = clock
                    seen[a, q] = clock
        if not moved:
            break
    return excess, 2 * (clock - 1)


@njit(nogil=True, cache=True)
def near_classes(rows, labels, classes, q):
    """The q classes whose means are nearest to that of each, (classes, q) int32; every pair is listed once.

    -1 where a pair is listed with the other class, or there are fewer classes.
    """
    n, d = rows.shape
    means, sizes = np.zeros((classes, d)), np.zeros(classes)
    for i in range(n):
        sizes[labels[i]] += 1.0
        for j in range(d):
            means[labels[i], j] += rows[i, j]
    for c in range(classes):
        for j in range(d):
            means[c, j] /= max(sizes[c], 1.0)
    near, apart = np.full((classes, q), -1, np.int32), np.full(q, np.inf)
    for a in range(classes):
        apart[:] = np.inf
        for b in range(classes):
            distance = 0.0
            for j in range(d):
                distance += (means[a, j] - means[b, j]) * (means[a, j] - means[b, j])
            if b == a or not distance < apart[q - 1]:
                continue
            at = q - 1
            while at > 0 and apart[at - 1] > distance:
                apart[at], near[a, at] = apart[at - 1], near[a, at - 1]
                at -= 1
            apart[at], near[a, at] = distance, b
    for a in range(classes):
        for at in range(q):
            b = near[a, at]
            for other in range(q):
                if b >= 0 and near[b, other] == a:
                    near[b, other] = -1
    return near


@njit(nogil=True, cache=True)
def hand_out(rows, labels, classes, weight, place, shape, table, step, limit):
    """Every record without a class joins the class where squared error + weight * excess grows least.

    labels: (n,) int32, -1 for records without a class; changed in place. The lower class of equals.
    """
    n, d = rows.shape
    several = len(limit)
    sizes, means = np.zeros(classes), np.zeros((classes, d))
    head, later = np.full((several, classes), -1, np.int64), np.full((several, n), -1, np.int64)
    counts = np.zeros(len(table), np.int64)
    excess, grown = np.empty(classes), np.empty(classes)
    for i in range(n):
        if labels[i] >= 0:
            _join(i, labels[i], rows, sizes, means, head, later, place)
    for c in range(classes):
        excess[c] = _excess_of_chain(head, later, c, sizes[c], -1, place, shape, table, step, limit, counts)
    for i in range(n):
        if labels[i] >= 0:
            continue
        best, least = 0, np.inf
        for c in range(classes):
            error = 0.0
            for j in range(d):
                error += (rows[i, j] - means[c, j]) * (rows[i, j] - means[c, j])
            error *= sizes[c] / (sizes[c] + 1.0)
            if error - weight * excess[c] >= least:
                continue
            grown[c] = _excess_of_chain(head, later, c, sizes[c] + 1, i, place, shape, table, step, limit, counts)
            error += weight * (grown[c] - excess[c])
            if error < least:
                best, least = c, error
        labels[i] = best
        excess[best] = grown[best]
        _join(i, best, rows, sizes, means, head, later, place)


@inner
def _join(i, c, rows, sizes, means, head, later, place):
    """Puts record i into class c, and into its place in the chains of the class by rising values."""
    sizes[c] += 1.0
    for j in range(rows.shape[1]):
        means[c, j] += (rows[i, j] - means[c, j]) / sizes[c]
    for s in range(head.shape[0]):
        before, at = -1, head[s, c]
        while at >= 0 and place[at, s] < place[i, s]:
            before, at = at, later[s, at]
        later[s, i] = at
        if before < 0:
            head[s, c] = i
        else:
            later[s, before] = i


@inner
def _excess_of_chain(head, later, c, size, extra, place, shape, table, step, limit, counts):
    """The excess of class c, together with record `extra` where it is given."""
    result = 0.0
    whole = np.int64(size)
    for s in range(len(limit)):
        cost = np.int64(0)
        if shape[s, TREE] == 1:
            for turn in range(3):  # count, add what every node costs, clear
                i, more = head[s, c], extra >= 0
                while i >= 0 or more:
                    if i < 0:
                        i, more = extra, False
                    node = np.int64(place[i, s])
                    while node >= 0:
                        at = shape[s, FIRST] + node
                        if turn == 0:
                            counts[at] += 1
                        elif turn == 1 and counts[at] > 0:
                            cost += _surplus(counts[at], whole, s, node, shape, table)
                            counts[at] = -counts[at]
                        elif turn == 2:
                            counts[at] = 0
                        node = np.int64(step[shape[s, STEP] + node])
                    i = later[s, i] if i != extra else -1
        else:
            level, value, i, waiting = 0, np.int64(0), head[s, c], extra >= 0
            while i >= 0 or waiting:
                if waiting and (i < 0 or place[extra, s] <= place[i, s]):
                    following, waiting = np.int64(place[extra, s]), False
                else:
                    following, i = np.int64(place[i, s]), later[s, i]
                cost += _run(level, _passes(level, whole, s, shape, step), value, following, whole, s, shape, table)
                value = following
                level += 1
            cost += _run(level, _passes(level, whole, s, shape, step), value, shape[s, VALUES], whole, s, shape, table)
        result += max(0.0, _distance(cost, max(whole, 1), s, shape) - limit[s] - ENOUGH)
    return result


@inner
def _set_mean(rows, members, start, c, means):
    for j in range(rows.shape[1]):
        total = 0.0
        for e in range(start[c], start[c + 1]):
            total += rows[members[e], j]
        means[c, j] = total / (start[c + 1] - start[c])


@inner
def _best_exchange(
    rows, who, k, members, start, a, b, clock, means, values, sums, rank, cost, excess, weight,
    turns, turn_at, counts, place, shape, table, step, limit,
):  # fmt: skip
    """The exchange between classes a and b that gains most: found, which member of a, which of b."""
    d = rows.shape[1]
    size_a, size_b = start[a + 1] - start[a], start[b + 1] - start[b]
    shrink = 1.0 / size_a + 1.0 / size_b
    now = excess[a] + excess[b]
    best, best_x, best_y = GAIN, -1, -1
    loaded = False
    every_a, every_b = max(1, size_a // MANY), max(1, size_b // MANY)
    for x in range(clock % every_a, size_a, every_a):
        r = members[start[a] + x]
        for y in range(clock % every_b, size_b, every_b):
            s = members[start[b] + y]
            gain = 0.0
            for j in range(d):
                between = rows[s, j] - rows[r, j]
                gain += between * (between * shrink - 2.0 * (means[b, j] - means[a, j]))
            if gain + weight * now <= best:
                continue
            if not loaded:
                _load(members, start, a, counts[0], place, shape, step, 1)
                _load(members, start, b, counts[1], place, shape, step, 1)
                loaded = True
            after = _excess_if(
                members, start, a, r, s, values, sums, rank, cost, turns, turn_at, counts[0],
                place, shape, table, step, limit,
            )  # fmt: skip
            if gain + weight * (now - after) <= best:
                continue
            after += _excess_if(
                members, start, b, s, r, values, sums, rank, cost, turns, turn_at, counts[1],
                place, shape, table, step, limit,
            )  # fmt: skip
            after += _lacking(who, k, members, start, a, r, s) + _lacking(who, k, members, start, b, s, r)
            gain += weight * (now - after)
            if gain > best:
                best, best_x, best_y = gain, x, y
    if loaded:
        _load(members, start, a, counts[0], place, shape, step, -1)
        _load(members, start, b, counts[1], place, shape, step, -1)
    return best_x >= 0, best_x, best_y


@inner
def _lacking(who, k, members, start, c, out, new):
    """How many people class c lacks of k, with record `new` instead of its member `out` where they are given."""
    if len(who) == 0:
        return 0.0
    people = 0
    for e in range(start[c], start[c + 1]):
        i = new if members[e] == out else members[e]
        first = True
        for f in range(start[c], e):
            other = new if members[f] == out else members[f]
            if who[other] == who[i]:
                first = False
                break
        if first:
            people += 1
            if people == k:
                return 0.0
    return np.float64(k - people)


@inner
def _load(members, start, c, counts, place, shape, step, by):
    """Counts the members of class c at every node above them, or uncounts them."""
    for s in range(shape.shape[0]):
        if shape[s, TREE] == 1:
            for e in range(start[c], start[c + 1]):
                node = np.int64(place[members[e], s])
                while node >= 0:
                    counts[shape[s, FIRST] + node] += by
                    node = np.int64(step[shape[s, STEP] + node])


@inner
def _distance(cost, size, s, shape):
    return cost / (np.float64(shape[s, PAIRS]) * size * shape[s, SPAN])


@inner
def _run(level, passes, first, last, size, s, shape, table):
    """Sum over the values first..last-1 of |pairs * level - size * G|, which turns at the value `passes`."""
    passes = min(max(passes, first), last)
    begin = shape[s, FIRST]
    below = table[begin + passes] - table[begin + first]
    above = table[begin + last] - table[begin + passes]
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
def _turns(start, classes, shape, step):
    """`_passes` of all levels -1..size + 1 for every size that occurs, and where each size has them."""
    largest = 0
    for c in range(classes):
        largest = max(largest, start[c + 1] - start[c])
    turn_at, whole = np.full(largest + 1, -1, np.int64), 0
    for c in range(classes):
        size = start[c + 1] - start[c]
        if turn_at[size] < 0:
            turn_at[size] = whole + 1
            whole += size + 3
    turns = np.zeros((shape.shape[0], whole), np.int64)
    for size in range(largest + 1):
        if turn_at[size] > 0:
            for s in range(shape.shape[0]):
                for level in range(-1, size + 2) if shape[s, TREE] == 0 else range(0):
                    turns[s, turn_at[size] + level] = _passes(level, size, s, shape, step)
    return turns, turn_at


@inner
def _surplus(count, size, s, node, shape, table):
    """What a node of a tree adds to the cost when it holds `count` records of the class."""
    at = shape[s, FIRST] + node
    return table[at + shape[s, VALUES]] * max(np.int64(0), shape[s, PAIRS] * count - size * table[at])


@inner
def _settle(members, start, c, values, sums, rank, cost, turns, turn_at, counts, place, shape, table, step, limit):
    """Orders the values of class c, sums its runs, and returns its excess."""
    size, base = start[c + 1] - start[c], start[c] + 2 * c
    result = 0.0
    for s in range(len(limit)):
        if shape[s, TREE] == 1:
            _load(members, start, c, counts[0], place, shape, step, 1)
            cost[s, c] = _cost_of_tree(members, start, c, s, counts[0], place, shape, table, step)
            _load(members, start, c, counts[0], place, shape, step, -1)
        else:
            _sort(members, start, c, values[s], rank[s], place, s, shape[s, VALUES])
            for level in range(3):
                running = np.int64(0)
                for j in range(size + 1):
                    sums[s, level, base + j] = running
                    running += _run(
                        j + level - 1, turns[s, turn_at[size] + j + level - 1],
                        values[s, base + j], values[s, base + j + 1], size, s, shape, table,
                    )  # fmt: skip
                sums[s, level, base + size + 1] = running
            cost[s, c] = sums[s, 1, base + size + 1]
        result += max(0.0, _distance(cost[s, c], size, s, shape) - limit[s] - ENOUGH)
    return result


@inner
def _sort(members, start, c, values, rank, place, s, last):
    """values: 0, the places of the members in order, last; rank: where each record is in that order, from 1."""
    size, base = start[c + 1] - start[c], start[c] + 2 * c
    order = members[start[c] : start[c + 1]].copy()
    gap = 1
    while 3 * gap + 1 < size:
        gap = 3 * gap + 1
    while gap > 0:  # Shell's sort
        for e in range(gap, size):
            i, at = order[e], e
            while at >= gap and place[order[at - gap], s] > place[i, s]:
                order[at] = order[at - gap]
                at -= gap
            order[at] = i
        gap //= 3
    values[base], values[base + size + 1] = 0, last
    for at in range(size):
        values[base + at + 1] = place[order[at], s]
        rank[order[at]] = at + 1


@inner
def _cost_of_tree(members, start, c, s, counts, place, shape, table, step):
    """Every node that covers a member once; the sign of its count tells that it had its turn."""
    size = start[c + 1] - start[c]
    cost = np.int64(0)
    for turn in range(2):
        for e in range(start[c], start[c + 1]):
            node = np.int64(place[members[e], s])
            while node >= 0:
                at = shape[s, FIRST] + node
                if turn == 0 and counts[at] > 0:
                    cost += _surplus(counts[at], size, s, node, shape, table)
                    counts[at] = -counts[at]
                elif turn == 1:
                    counts[at] = abs(counts[at])
                node = np.int64(step[shape[s, STEP] + node])
    return cost


@inner
def _excess_if(
    members, start, c, out, new, values, sums, rank, cost, turns, turn_at, counts, place, shape, table, step, limit
):
    """The excess of class c with record `new` instead of its member `out`."""
    size, base = start[c + 1] - start[c], start[c] + 2 * c
    result = 0.0
    for s in range(len(limit)):
        if shape[s, TREE] == 1:
            change = _change_in_tree(place[out, s], place[new, s], size, s, counts, shape, table, step)
        else:
            change = _change_in_order(
                rank[s, out], place[new, s], values[s], sums[s], base, size, turns[s], turn_at[size], s, shape, table
            )
        result += max(0.0, _distance(cost[s, c] + change, size, s, shape) - limit[s] - ENOUGH)
    return result


@inner
def _change_in_order(r, new, values, sums, base, size, turns, at, s, shape, table):
    """How the cost changes when the member of rank r is replaced by a record at place `new`.

    turns, at: `_passes` of level l for this size is turns[at + l].
    """
    y = np.int64(new)
    low, high = 0, size
    while low < high:
        middle = (low + high + 1) // 2
        if values[base + middle] <= y:
            low = middle
        else:
            high = middle - 1
    p = low  # so many members are at or below y
    if r <= p:
        begin = values[base + p]
        moved = _run(p - 1, turns[at + p - 1], begin, y, size, s, shape, table)
        moved -= _run(p, turns[at + p], begin, y, size, s, shape, table)
        return moved + sums[0, base + p] - sums[0, base + r] - sums[1, base + p] + sums[1, base + r]
    end = values[base + p + 1]
    moved = _run(p + 1, turns[at + p + 1], y, end, size, s, shape, table)
    moved -= _run(p, turns[at + p], y, end, size, s, shape, table)
    return moved + sums[2, base + r] - sums[2, base + p + 1] - sums[1, base + r] + sums[1, base + p + 1]


@inner
def _change_in_tree(out, new, size, s, counts, shape, table, step):
    """How the cost changes when a member at leaf `out` is replaced by a record at leaf `new`.

    Only nodes over one of the two change: both climb, the deeper one first, until they meet.
    """
    gone, come = np.int64(out), np.int64(new)
    deeper = _depth(gone, s, shape, step) - _depth(come, s, shape, step)
    change = np.int64(0)
    while gone != come:
        node, by = (gone, -1) if deeper >= 0 else (come, 1)
        held = counts[shape[s, FIRST] + node]
        change += _surplus(held + by, size, s, node, shape, table) - _surplus(held, size, s, node, shape, table)
        above = np.int64(step[shape[s, STEP] + node])
        if deeper >= 0:
            gone = above
        else:
            come = above
        deeper += by
    return change


@inner
def _depth(node, s, shape, step):
    """Steps up to the root."""
    steps = 0
    while node >= 0:
        node = np.int64(step[shape[s, STEP] + node])
        steps += 1
    return steps
