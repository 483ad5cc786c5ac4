"""Splitting segments around two far records: the inner loop of top-down greedy.

rows: (n, d + 1) or (n, d + 2) int32, one record each: its d codes, its number, and its person where
    people are counted. Whole rows move; a segment is a run of rows.
costs: as in `spans`.
seen: room to count people, (people + 1,) int64 zeros, or empty where every record is its own
    person: a mark for each person, and last the latest mark that was given.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.spans import span_loss, swap_rows

WEIGHTED = 0
"""A record joins the side where records times cost of the box grows least."""
PENALTY = 1
"""A record joins the side whose box with it costs less."""
SEEDS = 2
"""A record joins the side of the nearer seed."""

# the sides; as plain numbers they would compile every function twice
LEFT = np.int64(0)
RIGHT = np.int64(1)


class Sides(NamedTuple):
    """The two sides of the segment that is being split."""

    side: np.ndarray  # (n,) int8, the side of each row
    bounds: np.ndarray  # (2, 2, d) int32: side; least and greatest; attribute
    cost: np.ndarray  # (2, d + 1) float64: side; attributes, then their sum


class Waiting(NamedTuple):
    """Rows that the side short of people may take, as a heap with the cheapest on top."""

    heap: np.ndarray  # (n,) int64, rows
    added: np.ndarray  # (n,) float64, what the side costs with the row


@outer
def propose(rows, starts, ends, d, k, rounds, rule, draws, costs, seen, cuts):
    """Splits each segment in two sides of k people each; returns the parts of each, 2 or 0 for
    none.

    starts, ends: (s,) int64 segments; those below 2 * k rows are left alone.
    draws: as many random numbers in [0, 1) as the segments have rows; they put every segment in
        order.
    cuts: (n,) int64; the sides of a segment end at cuts[start] and cuts[start + 1].
    """
    n = rows.shape[0]
    sides = Sides(np.empty(n, np.int8), np.empty((2, 2, d), np.int32), np.empty((2, d + 1)))
    waiting = Waiting(np.empty(n, np.int64), np.empty(n, np.float64))
    parts = np.zeros(len(starts), np.int64)
    used = np.int64(0)
    for s in range(len(starts)):
        start = starts[s]
        end = ends[s]
        if end - start < 2 * k:
            continue
        used = _shuffle(rows, start, end, draws, used)
        u, v = _far_pair(rows, start, end, d, rounds, costs)
        _assign(rows, start, end, u, v, rule, costs, sides)
        if _both_sides_have_people(rows, start, end, k, costs, seen, sides, waiting):
            cuts[start] = _move_left(rows, start, end, sides.side)
            cuts[start + 1] = end
            parts[s] = 2
    return parts


@inner
def _shuffle(rows, start, end, draws, used):
    """Puts the segment's rows in random order with the next draws; returns how many are used then.

    Fisher and Yates, from the last row down.
    """
    for i in range(end - 1, start, -1):
        swap_rows(rows, i, start + int(draws[used] * (i - start + 1)))
        used += 1
    return used


@inner
def _far_pair(rows, start, end, d, rounds, costs):
    """Two rows far from each other: from the first row to the farthest, from there to the farthest,
    ...

    Stops when a round finds nothing farther. Ties go to the lower record number.
    """
    u = start
    v = start
    apart = -1.0
    for _ in range(rounds):
        other = u
        farthest = apart
        for i in range(start, end):
            if i == u:
                continue
            distance = _pair_cost(rows, u, i, d, costs)
            if distance > farthest or (
                distance == farthest and other != u and rows[i, d] < rows[other, d]
            ):
                other = i
                farthest = distance
        if other == u:
            break
        v = u
        u = other
        apart = farthest
    return v, u


@inner
def _pair_cost(rows, a, b, d, costs):
    """Cost of the least box over two rows."""
    total = 0.0
    for j in range(d):
        low = min(rows[a, j], rows[b, j])
        high = max(rows[a, j], rows[b, j])
        if low < high:
            total += span_loss(low, high, j, costs)
    return total


@inner
def _assign(rows, start, end, u, v, rule, costs, sides):
    """Puts u on the left, v on the right and every other row in turn where it costs less; ties to
    the smaller side, then to the left.
    """
    d = sides.bounds.shape[2]
    cost = sides.cost
    _begin_side(rows, u, LEFT, sides)
    _begin_side(rows, v, RIGHT, sides)
    left = 1
    right = 1
    for i in range(start, end):
        if i in (u, v):
            continue
        if rule == SEEDS:
            to_left = _pair_cost(rows, i, u, d, costs)
            to_right = _pair_cost(rows, i, v, d, costs)
        else:
            to_left = _cost_with(rows, i, LEFT, sides, costs)
            to_right = _cost_with(rows, i, RIGHT, sides, costs)
        if rule == WEIGHTED:  # by how much records times cost grows
            to_left = (left + 1) * to_left - left * cost[0, d]
            to_right = (right + 1) * to_right - right * cost[1, d]
        if to_left < to_right or (to_left == to_right and left <= right):
            _join(rows, i, LEFT, sides, costs)
            left += 1
        else:
            _join(rows, i, RIGHT, sides, costs)
            right += 1


@inner
def _begin_side(rows, i, s, sides):
    """Row i alone is side s: its box is a point and costs nothing."""
    d = sides.bounds.shape[2]
    sides.side[i] = s
    for j in range(d):
        sides.bounds[s, 0, j] = rows[i, j]
        sides.bounds[s, 1, j] = rows[i, j]
    for j in range(d + 1):
        sides.cost[s, j] = 0.0


@inner
def _cost_with(rows, i, s, sides, costs):
    """Cost of the box of side s with row i in it."""
    bounds = sides.bounds
    cost = sides.cost
    total = 0.0
    for j in range(bounds.shape[2]):
        code = rows[i, j]
        low = bounds[s, 0, j]
        high = bounds[s, 1, j]
        if low <= code <= high:
            total += cost[s, j]
        else:
            total += span_loss(min(low, code), max(high, code), j, costs)
    return total


@inner
def _join(rows, i, s, sides, costs):
    """Row i goes to side s, whose box grows to hold it."""
    bounds = sides.bounds
    cost = sides.cost
    d = bounds.shape[2]
    sides.side[i] = s
    total = 0.0
    for j in range(d):
        code = rows[i, j]
        low = bounds[s, 0, j]
        high = bounds[s, 1, j]
        if code < low or code > high:
            low = min(low, code)
            high = max(high, code)
            bounds[s, 0, j] = low
            bounds[s, 1, j] = high
            cost[s, j] = span_loss(low, high, j, costs)
        total += cost[s, j]
    cost[s, d] = total


@inner
def _both_sides_have_people(rows, start, end, k, costs, seen, sides, waiting):
    """Whether both sides hold k people, once a side with fewer took what it lacks from the other.

    What it takes first is what would cost it least as it stood before it took any.
    """
    d = sides.bounds.shape[2]
    side = sides.side
    heap = waiting.heap
    people_left = _mark_people(rows, start, end, d, LEFT, side, seen)
    people_right = _mark_people(rows, start, end, d, RIGHT, side, seen)
    if people_left >= k and people_right >= k:
        return True
    if people_left < k and people_right < k:
        return False
    s = LEFT if people_left < k else RIGHT
    people = _mark_people(rows, start, end, d, s, side, seen)
    # a heap of the other side's rows
    size = 0
    for i in range(start, end):
        if side[i] != s:
            waiting.added[i] = _cost_with(rows, i, s, sides, costs)
            heap[size] = i
            size += 1
    for place in range(size // 2 - 1, -1, -1):
        _sift_down(waiting, place, size, rows, d)
    while people < k and size > 0:
        i = heap[0]
        size -= 1
        heap[0] = heap[size]
        _sift_down(waiting, np.int64(0), size, rows, d)
        if len(seen) > 0:
            if seen[rows[i, d + 1]] == seen[-1]:
                continue  # already counted on this side
            seen[rows[i, d + 1]] = seen[-1]
        side[i] = s
        people += 1
    return people >= k and _mark_people(rows, start, end, d, 1 - s, side, seen) >= k


@inner
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


@inner
def _sift_down(waiting, place, size, rows, d):
    """Restores the heap below `place`: least added cost on top, ties to the lower record number."""
    heap = waiting.heap
    i = heap[place]
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and _is_before(heap[child + 1], heap[child], waiting.added, rows, d):
            child += 1
        if not _is_before(heap[child], i, waiting.added, rows, d):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = i


@inner
def _is_before(a, b, added, rows, d):
    return added[a] < added[b] or (added[a] == added[b] and rows[a, d] < rows[b, d])


@inner
def _move_left(rows, start, end, side):
    """Moves the rows of the left side to the front of the segment; returns where they end."""
    left = start
    for i in range(start, end):
        if side[i] == LEFT:
            swap_rows(rows, left, i)
            left += 1
    return left
