"""Cutting runs of records in two or more, in place: the inner loop of every Mondrian.

A record is a row of `rows`, (n, d + 1) or (n, d + 2) int32: its d codes, its number, and its person
where people are counted. A segment is a run of rows. Whole rows move, as in quicksort, so that a
segment stays one piece of memory; the number travels with its record.

Throughout: scale, base, parent, last, width are the costs of a span of codes as in `Matrix`;
`seen` is room to count people, (people + 1,) int64 zeros, or empty where every record is its own
person; `k` is how many people every side needs; segments below 2 * `least` rows are not cut.
An attempt is a number: 0 is the first cut to try on a segment (its widest attribute), 1 the next.
"""

from __future__ import annotations

import numpy as np
from numba import njit

MEDIAN = 0
"""Left are the codes up to the lower median: records of one code stay together."""
NEAREST = 1
"""As MEDIAN, or left are the codes below the median: whichever halves better, then the other."""
CHILDREN = 2
"""As MEDIAN, but tree attributes are cut into all children of the node that covers the segment."""
NEAREST_CHILDREN = 3
"""As NEAREST, but tree attributes are cut as in CHILDREN."""
HALVES = 4
"""Left are the floor(m / 2) lowest records, equal codes shared."""
ROUNDED = 5
"""Left are ceil(a / 2) * least + ceil(b / 2) of m = a * least + b records, equal codes shared."""


@njit(nogil=True, cache=True)
def split_to_end(rows, d, rule, least, k, scale, base, parent, last, width, seen, history, ends):
    """Cuts the whole of `rows` until no cut is left; returns how many segments there are.

    history: as in `propose`. ends: (n // least + 1,) int64, filled with the end of every segment.
    """
    bounds, order, cost, key, values, spots, child = _room(rows, d, parent)
    cuts = np.empty(rows.shape[0], np.int64)
    stack = np.empty(len(ends) + 1, np.int64)  # ends of the segments still open, the nearest on top
    stack[0] = rows.shape[0]
    still_open, found = 1, 0
    start, first_attempt = np.int64(0), np.int64(0)  # plain zeros would compile all below twice
    while still_open > 0:
        end = stack[still_open - 1]
        parts, _ = _cut(
            rows, start, end, first_attempt, d, rule, least, k, scale, base, parent, last, width, seen,
            history, cuts, bounds, order, cost, key, values, spots, child,
        )  # fmt: skip
        if parts == 0:
            ends[found] = end
            found += 1
            still_open -= 1
            start = end
        else:
            for part in range(parts):
                stack[still_open - 1 + part] = cuts[start + parts - 1 - part]
            still_open += parts - 1
    return found


@njit(nogil=True, cache=True)
def propose(
    rows, starts, ends, attempts, d, rule, least, k, scale, base, parent, last, width, seen, history, cuts
):  # fmt: skip
    """Makes the next cut of each segment that leaves k people on every side; returns the parts of each.

    starts, ends: (s,) int64 segments. attempts: (s,) int64, the first attempt to make; set to the
        one after the attempt that was made.
    history: (n // least + 1, d) int32, -1 at first; at row start // least the attributes by which a
        segment was ordered, the latest first: equal codes keep that order. Empty: they are ordered by
        the other attributes, the widest first. Then by record number. Only for shared codes.
    cuts: (n,) int64; a segment's parts end at cuts[start], cuts[start + 1], ...
    Returns (s,) int64, 0 where no attempt is left.
    """
    bounds, order, cost, key, values, spots, child = _room(rows, d, parent)
    parts = np.zeros(len(starts), np.int64)
    for s in range(len(starts)):
        parts[s], attempts[s] = _cut(
            rows, starts[s], ends[s], attempts[s], d, rule, least, k, scale, base, parent, last, width, seen,
            history, cuts, bounds, order, cost, key, values, spots, child,
        )  # fmt: skip
    return parts


@njit(nogil=True, cache=True)
def number_segments(rows, d, starts, ends, labels):
    """Writes into labels[record] the number of the segment that holds the record."""
    for s in range(len(starts)):
        for i in range(starts[s], ends[s]):
            labels[rows[i, d]] = s


@njit(nogil=True, cache=True)
def _room(rows, d, parent):
    n = rows.shape[0]
    bounds = np.empty((2, d + 1), np.int32)  # least and greatest code of the segment; last: record number
    bounds[0, d], bounds[1, d] = 0, n - 1
    order = np.empty(d, np.int32)
    cost = np.empty(d, np.float64)
    key = np.empty((2, d + 1), np.int64)
    values = np.empty(n, np.int32)
    spots = np.empty(n, np.int32)
    child = np.zeros((2, len(parent)), np.int64)
    return bounds, order, cost, key, values, spots, child


@njit(nogil=True, cache=True)
def _cut(
    rows, start, end, attempt, d, rule, least, k, scale, base, parent, last, width, seen, history, cuts,
    bounds, order, cost, key, values, spots, child,
):  # fmt: skip
    """Makes the first cut from `attempt` on that leaves k people on every side: (parts, next attempt)."""
    m = end - start
    if m < 2 * least:
        return 0, attempt
    _widest_first(rows, start, end, d, scale, base, parent, last, width, bounds, order, cost)
    choices = 2 if rule in (NEAREST, NEAREST_CHILDREN) else 1
    while attempt < choices * d:
        j = order[attempt // choices]
        choice = attempt % choices
        attempt += 1
        if bounds[0, j] == bounds[1, j] and (rule < HALVES or attempt > 1):
            continue  # nothing tells the records apart; sharing them by number is tried once
        if rule >= HALVES:
            rank = m // 2 if rule == HALVES else _rounded(m, least)
            settled_by = history[start // least] if len(history) > 0 else order
            parts = _part_by_rank(rows, start, end, j, d, rank, settled_by, bounds, values, spots, key, cuts)
            if len(history) > 0:
                _remember(history, start // least, cuts[start] // least, j)
        elif base[j] < 0 or rule < CHILDREN:
            parts = _part_by_median(rows, start, end, j, k, bounds, choices + choice, values, key, cuts)
        elif choice == 0:
            parts = _part_by_child(rows, start, end, j, k, bounds, base[j], parent, last, child, spots, cuts)
        else:
            parts = 0
        if parts > 0 and _people_everywhere(rows, start, parts, cuts, d, k, seen):
            return parts, attempt
    return 0, attempt


@njit(nogil=True, cache=True)
def _rounded(m, k):
    a, b = m // k, m % k
    return (a + 1) // 2 * k + (b + 1) // 2


@njit(nogil=True, cache=True)
def _widest_first(rows, start, end, d, scale, base, parent, last, width, bounds, order, cost):
    """Tight bounds of a segment, and its attributes by falling cost, ties by place, into `order`."""
    for j in range(d):
        bounds[0, j] = rows[start, j]
        bounds[1, j] = rows[start, j]
    for i in range(start + 1, end):
        for j in range(d):
            code = rows[i, j]
            if code < bounds[0, j]:
                bounds[0, j] = code
            if code > bounds[1, j]:
                bounds[1, j] = code
    for j in range(d):
        cost[j] = _cost(bounds[0, j], bounds[1, j], scale[j], base[j], parent, last, width)
        place = j
        while place > 0 and cost[order[place - 1]] < cost[j]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = j


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
def _part_by_median(rows, start, end, j, k, bounds, choice, values, key, cuts):
    """choice: 1 codes up to the median go left; 2 or 3 the nearer or the farther cut around it."""
    m = end - start
    for i in range(m):
        values[i] = rows[start + i, j]
    value, below, upto = _at_rank(values, m, bounds[0, j], bounds[1, j], (m + 1) // 2)
    if choice > 1 and (abs(2 * below - m) < abs(2 * upto - m)) == (choice == 2):
        value, upto = value - 1, below
    if upto < k or m - upto < k:
        return 0
    key[0, 0], key[1, 0] = j, value
    cuts[start] = _move_left(rows, start, end, key, np.int64(1))
    cuts[start + 1] = end
    return 2


@njit(nogil=True, cache=True)
def _part_by_rank(rows, start, end, j, d, rank, settled_by, bounds, values, spots, key, cuts):
    """The `rank` first rows in the order of j, then of the attributes that settle ties, go left."""
    columns = _columns_in_turn(j, d, settled_by, key)
    m = end - start
    for i in range(m):
        spots[i] = start + i
    for column in range(columns):
        c = key[0, column]
        for i in range(m):
            values[i] = rows[spots[i], c]
        value, below, upto = _at_rank(values, m, bounds[0, c], bounds[1, c], rank)
        key[1, column] = value
        rank -= below
        if upto - below == rank:
            columns = column + 1
            break
        tied = 0
        for i in range(m):
            if values[i] == value:
                spots[tied] = spots[i]
                tied += 1
        m = tied
    cuts[start] = _move_left(rows, start, end, key, columns)
    cuts[start + 1] = end
    return 2


@njit(nogil=True, cache=True)
def _columns_in_turn(j, d, settled_by, key):
    """Into key[0]: j, the attributes that settle ties, the record number; returns how many they are."""
    key[0, 0] = j
    columns = 1
    for place in range(d):
        if settled_by[place] < 0:
            break
        if settled_by[place] != j:
            key[0, columns] = settled_by[place]
            columns += 1
    key[0, columns] = d
    return columns + 1


@njit(nogil=True, cache=True)
def _remember(history, left, right, j):
    """A segment was ordered by j: both its halves know."""
    d = history.shape[1]
    place = 0
    while place < d - 1 and history[left, place] != j and history[left, place] >= 0:
        place += 1
    while place > 0:
        history[left, place] = history[left, place - 1]
        place -= 1
    history[left, 0] = j
    for place in range(d):
        history[right, place] = history[left, place]


@njit(nogil=True, cache=True)
def _at_rank(values, m, low, high, rank):
    """The smallest v in low..high with rank or more of values[:m] <= v, and how many are < v and <= v.

    Halves the range of values rather than the values: 32 plain passes at worst, whatever the data.
    """
    low, high = np.int64(low), np.int64(high)
    below, upto = 0, m
    while low < high:
        middle = low + (high - low) // 2
        count = 0
        for i in range(m):
            count += values[i] <= middle
        if count >= rank:
            high, upto = middle, count
        else:
            low, below = middle + 1, count
    return low, below, upto


@njit(nogil=True, cache=True)
def _move_left(rows, start, end, key, columns):
    """Moves the rows up to the key to the front of the segment; returns where they end."""
    left, right = start, end - 1
    while True:
        while left <= right and _is_upto(rows, left, key, columns):
            left += 1
        while left <= right and not _is_upto(rows, right, key, columns):
            right -= 1
        if left > right:
            return left
        _swap(rows, left, right)
        left += 1
        right -= 1


@njit(nogil=True, cache=True)
def _is_upto(rows, i, key, columns):
    """Whether row i is at most key[1] on the columns key[0], the first that differs decides."""
    for place in range(columns):
        code = rows[i, key[0, place]]
        if code != key[1, place]:
            return code < key[1, place]
    return True


@njit(nogil=True, cache=True)
def _swap(rows, a, b):
    for c in range(rows.shape[1]):
        rows[a, c], rows[b, c] = rows[b, c], rows[a, c]


@njit(nogil=True, cache=True)
def _part_by_child(rows, start, end, j, k, bounds, base, parent, last, child, spots, cuts):
    """Groups the rows by the child of their covering node, in order of first appearance; returns how
    many children occur, 0 when one of them has fewer than k rows.

    spots: room for the child of every row. child: (2, nodes) zeros: rows of it, then where its next
        row and its end are; zeros again afterwards.
    """
    top = base + bounds[0, j]
    while last[top] < bounds[1, j]:
        top = parent[top]
    parts = 0
    for i in range(start, end):
        node = base + rows[i, j]
        while parent[node] != top:
            node = parent[node]
        spots[i] = node
        if child[0, node] == 0:
            cuts[start + parts] = node
            parts += 1
        child[0, node] += 1
    fewest = end - start
    place = start
    for part in range(parts):
        node = cuts[start + part]
        size = child[0, node]
        fewest = min(fewest, size)
        child[0, node] = place
        place += size
        child[1, node] = place
    if fewest >= k:
        _swap_into_place(rows, start, parts, child, spots, cuts)
    for part in range(parts):
        node = cuts[start + part]
        cuts[start + part] = child[1, node]
        child[0, node] = 0
        child[1, node] = 0
    return parts if fewest >= k else 0


@njit(nogil=True, cache=True)
def _swap_into_place(rows, start, parts, child, spots, cuts):
    """Sends every row to the next free place of its child (American flag sort)."""
    for part in range(parts):
        here = cuts[start + part]
        while child[0, here] < child[1, here]:
            i = child[0, here]
            node = spots[i]
            to = child[0, node]
            if node != here:
                _swap(rows, i, to)
                spots[i], spots[to] = spots[to], spots[i]
            child[0, node] += 1


@njit(nogil=True, cache=True)
def _people_everywhere(rows, start, parts, cuts, d, k, seen):
    """Whether each part holds k distinct people (k rows, where every record is its own person)."""
    first = start
    for part in range(parts):
        end = cuts[start + part]
        if len(seen) == 0:
            people = end - first
        else:
            people = 0
            seen[-1] += 1
            while first < end and people < k:
                person = rows[first, d + 1]
                people += seen[person] != seen[-1]
                seen[person] = seen[-1]
                first += 1
        if people < k:
            return False
        first = end
    return True
