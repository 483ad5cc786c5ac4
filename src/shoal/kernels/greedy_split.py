"""Splitting segments around two far records: the inner loop of top-down greedy.

A record is a row of `rows`, (n, d + 1) or (n, d + 2) int32: its d codes, its number, and its person
where people are counted. Whole rows move; a segment is a run of rows.

Throughout: scale, base, parent, last, width are the costs of a span of codes as in `Matrix`;
`seen` is room to count people, (people + 1,) int64 zeros, or empty where every record is its own
person.
"""

from __future__ import annotations

import numpy as np
from numba import njit

WEIGHTED = 0
"""A record joins the side where records times cost of the box grows least."""
PENALTY = 1
"""A record joins the side whose box with it costs less."""
SEEDS = 2
"""A record joins the side of the nearer seed."""

LEFT, RIGHT = np.int64(0), np.int64(1)  # the sides; as plain numbers they would compile every function twice


@njit(nogil=True, cache=True)
def propose(rows, starts, ends, d, k, rounds, rule, draws, scale, base, parent, last, width, seen, cuts):
    """Splits each segment in two sides of k people each; returns the parts of each, 2 or 0 for none.

    starts, ends: (s,) int64 segments; those below 2 * k rows are left alone.
    draws: as many random numbers in [0, 1) as the segments have rows; they put every segment in order.
    cuts: (n,) int64; the sides of a segment end at cuts[start] and cuts[start + 1].
    """
    side = np.empty(rows.shape[0], np.int8)
    bounds = np.empty((2, 2, d), np.int32)  # side; least and greatest; attribute
    cost = np.empty((2, d + 1), np.float64)  # side; attributes, then their sum
    heap = np.empty(rows.shape[0], np.int64)
    added = np.empty(rows.shape[0], np.float64)
    parts = np.zeros(len(starts), np.int64)
    used = np.int64(0)
    for s in range(len(starts)):
        start, end = starts[s], ends[s]
        if end - start < 2 * k:
            continue
        used = _shuffle(rows, start, end, draws, used)
        u, v = _far_pair(rows, start, end, d, rounds, scale, base, parent, last, width)
        _assign(rows, start, end, u, v, d, rule, scale, base, parent, last, width, side, bounds, cost)
        if _both_sides_have_people(
            rows, start, end, d, k, scale, base, parent, last, width, seen, side, bounds, cost, heap, added
        ):
            cuts[start] = _move_left(rows, start, end, side)
            cuts[start + 1] = end
            parts[s] = 2
    return parts


@njit(nogil=True, cache=True)
def _far_pair(rows, start, end, d, rounds, scale, base, parent, last, width):
    """Two rows far from each other: from the first row to the farthest, from there to the farthest, ...

    Stops when a round finds nothing farther. Ties go to the lower record number.
    """
    u, v, apart = start, start, -1.0
    for _ in range(rounds):
        found, farthest = u, apart
        for i in range(start, end):
            if i == u:
                continue
            distance = _pair_cost(rows, u, i, d, scale, base, parent, last, width)
            if distance > farthest or (distance == farthest and found != u and rows[i, d] < rows[found, d]):
                found, farthest = i, distance
        if found == u:
            break
        u, v, apart = found, u, farthest
    return v, u


@njit(nogil=True, cache=True)
def _pair_cost(rows, a, b, d, scale, base, parent, last, width):
    total = 0.0
    for j in range(d):
        low, high = min(rows[a, j], rows[b, j]), max(rows[a, j], rows[b, j])
        if low < high:
            total += _cost(low, high, scale[j], base[j], parent, last, width)
    return total


@njit(nogil=True, cache=True)
def _cost(lo, hi, scale, base, parent, last, width):
    """What a span of codes costs: see shoal.data.matrix.Matrix."""
    if base < 0:
        return (np.int64(hi) - np.int64(lo)) * scale
    node = base + lo
    while last[node] < hi:
        node = parent[node]
    return width[node]


@njit(nogil=True, cache=True)
def _assign(rows, start, end, u, v, d, rule, scale, base, parent, last, width, side, bounds, cost):
    """Puts u on the left, v on the right and every other row in turn where it costs less; ties to the
    smaller side, then to the left."""
    _begin_side(rows, u, d, LEFT, side, bounds, cost)
    _begin_side(rows, v, d, RIGHT, side, bounds, cost)
    left, right = 1, 1
    for i in range(start, end):
        if i in (u, v):
            continue
        if rule == SEEDS:
            to_left = _pair_cost(rows, i, u, d, scale, base, parent, last, width)
            to_right = _pair_cost(rows, i, v, d, scale, base, parent, last, width)
        else:
            to_left = _cost_with(rows, i, d, LEFT, bounds, cost, scale, base, parent, last, width)
            to_right = _cost_with(rows, i, d, RIGHT, bounds, cost, scale, base, parent, last, width)
        if rule == WEIGHTED:
            to_left = (left + 1) * to_left - left * cost[0, d]
            to_right = (right + 1) * to_right - right * cost[1, d]
        if to_left < to_right or (to_left == to_right and left <= right):
            _join(rows, i, d, LEFT, side, bounds, cost, scale, base, parent, last, width)
            left += 1
        else:
            _join(rows, i, d, RIGHT, side, bounds, cost, scale, base, parent, last, width)
            right += 1


@njit(nogil=True, cache=True)
def _begin_side(rows, i, d, s, side, bounds, cost):
    side[i] = s
    for j in range(d):
        bounds[s, 0, j] = rows[i, j]
        bounds[s, 1, j] = rows[i, j]
    for j in range(d + 1):
        cost[s, j] = 0.0


@njit(nogil=True, cache=True)
def _cost_with(rows, i, d, s, bounds, cost, scale, base, parent, last, width):
    """Cost of the box of side s with row i in it."""
    total = 0.0
    for j in range(d):
        code, low, high = rows[i, j], bounds[s, 0, j], bounds[s, 1, j]
        if low <= code <= high:
            total += cost[s, j]
        else:
            total += _cost(min(low, code), max(high, code), scale[j], base[j], parent, last, width)
    return total


@njit(nogil=True, cache=True)
def _join(rows, i, d, s, side, bounds, cost, scale, base, parent, last, width):
    side[i] = s
    total = 0.0
    for j in range(d):
        code, low, high = rows[i, j], bounds[s, 0, j], bounds[s, 1, j]
        if code < low or code > high:
            low, high = min(low, code), max(high, code)
            bounds[s, 0, j], bounds[s, 1, j] = low, high
            cost[s, j] = _cost(low, high, scale[j], base[j], parent, last, width)
        total += cost[s, j]
    cost[s, d] = total


@njit(nogil=True, cache=True)
def _both_sides_have_people(
    rows, start, end, d, k, scale, base, parent, last, width, seen, side, bounds, cost, heap, added
):
    """Whether both sides hold k people, once a side with fewer took what it lacks from the other."""
    people_left = _mark_people(rows, start, end, d, LEFT, side, seen)
    people_right = _mark_people(rows, start, end, d, RIGHT, side, seen)
    if people_left >= k and people_right >= k:
        return True
    if people_left < k and people_right < k:
        return False
    s = LEFT if people_left < k else RIGHT
    people = _mark_people(rows, start, end, d, s, side, seen)
    waiting = 0
    for i in range(start, end):
        if side[i] != s:
            added[i] = _cost_with(rows, i, d, s, bounds, cost, scale, base, parent, last, width)
            heap[waiting] = i
            waiting += 1
    for place in range(waiting // 2 - 1, -1, -1):
        _sift_down(heap, place, waiting, added, rows, d)
    while people < k and waiting > 0:
        i = heap[0]
        waiting -= 1
        heap[0] = heap[waiting]
        _sift_down(heap, np.int64(0), waiting, added, rows, d)
        if len(seen) > 0:
            if seen[rows[i, d + 1]] == seen[-1]:
                continue  # already counted on this side
            seen[rows[i, d + 1]] = seen[-1]
        side[i] = s
        people += 1
    return people >= k and _mark_people(rows, start, end, d, 1 - s, side, seen) >= k


@njit(nogil=True, cache=True)
def _mark_people(rows, start, end, d, s, side, seen):
    """How many people are on side s; their marks are the latest."""
    people = 0
    if len(seen) > 0:
        seen[-1] += 1
    for i in range(start, end):
        if side[i] != s:
            continue
        if len(seen) == 0:
            people += 1
        elif seen[rows[i, d + 1]] != seen[-1]:
            seen[rows[i, d + 1]] = seen[-1]
            people += 1
    return people


@njit(nogil=True, cache=True)
def _sift_down(heap, place, size, added, rows, d):
    """Restores the heap below `place`: least added cost on top, ties to the lower record number."""
    i = heap[place]
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and _is_before(heap[child + 1], heap[child], added, rows, d):
            child += 1
        if not _is_before(heap[child], i, added, rows, d):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = i


@njit(nogil=True, cache=True)
def _is_before(a, b, added, rows, d):
    return added[a] < added[b] or (added[a] == added[b] and rows[a, d] < rows[b, d])


@njit(nogil=True, cache=True)
def _move_left(rows, start, end, side):
    """Moves the rows of the left side to the front of the segment; returns where they end."""
    left = start
    for i in range(start, end):
        if side[i] == LEFT:
            _swap(rows, left, i)
            left += 1
    return left


@njit(nogil=True, cache=True)
def _shuffle(rows, start, end, draws, used):
    """Puts the segment's rows in random order with the next draws; returns how many are used then."""
    for i in range(end - 1, start, -1):
        _swap(rows, i, start + int(draws[used] * (i - start + 1)))
        used += 1
    return used


@njit(nogil=True, cache=True)
def _swap(rows, a, b):
    for c in range(rows.shape[1]):
        rows[a, c], rows[b, c] = rows[b, c], rows[a, c]
