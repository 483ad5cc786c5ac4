"""Cutting runs of records in two or more, in place: the inner loop of every Mondrian.

rows: (n, d + 1) or (n, d + 2) int32, one record each: its d codes, its number, and its person where
    people are counted. Whole rows move, as in quicksort, so that a segment, a run of rows, stays
    one piece of memory; the number travels with its record.
costs: as in `spans`.
seen: room to count people, (people + 1,) int64 zeros, or empty where every record is its own
    person: a mark for each person, and last the latest mark that was given.
k is how many people every side needs; segments below 2 * `least` rows are not cut.
An attempt is a number: 0 is the first cut to try on a segment (its widest attribute), 1 the next.
"""

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inner, outer, uncompiled_up_to
from shoal.search.kernels.spans import (
    SAME,
    first_node,
    is_wider,
    last_leaf,
    lower_size,
    parent_of,
    span_loss,
    swap_rows,
)

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
IN_TURN = 6
"""As ROUNDED, but not the widest attribute is cut first: that of the segment's depth, in turn."""

HALVINGS = 12
"""Passes that find a rank in a range of a few thousand values."""


class CutRule(NamedTuple):
    """What was asked: one of the rules above, least rows and people of a side, attributes."""

    rule: int
    least: int
    k: int
    d: int


class Scratch(NamedTuple):
    """Work space for any segment, allocated once."""

    bounds: np.ndarray  # (2, d + 1) least and greatest code of the segment; last: record number
    order: np.ndarray  # (d,) attributes, the widest first
    cost: np.ndarray  # (d,) what the segment's span costs on each attribute
    # (2, d + 1) columns by which rows are compared, and the values of the last left
    key: np.ndarray
    values: np.ndarray  # (n,) codes of the segment on one column
    spots: np.ndarray  # (n,) rows that are tied so far, or the child of each row
    child: np.ndarray  # (2, d + nodes) rows of each node, then where its next row and its end are


def _passes(rows, d):
    """Of cutting segments of all rows together once: the bounds, then the halving of a range."""
    return len(rows) * (2 * d + HALVINGS)


@uncompiled_up_to(
    lambda rows, d, rule, least, *_: _passes(rows, d) * (len(rows) // least).bit_length()
)
@outer
def split_to_end(rows, d, rule, least, k, costs, seen, history, ends):
    """Cuts the whole of `rows` until no cut is left; returns how many segments there are.

    history: as in `propose`; for IN_TURN never without rows. ends: (n // least + 1,) int64, filled
        with the end of every segment.
    """
    asked = CutRule(rule, least, k, d)
    scratch = _scratch(rows, d, costs)
    cuts = np.empty(rows.shape[0], np.int64)
    # ends of the segments still open, the nearest on top; all of them begin where the last closed
    stack = np.empty(len(ends) + 1, np.int64)
    stack[0] = rows.shape[0]
    still_open = 1
    closed = 0
    start = np.int64(0)  # a plain zero would compile all below twice
    first_attempt = np.int64(0)
    while still_open > 0:
        end = stack[still_open - 1]
        parts, _ = _cut(rows, start, end, first_attempt, asked, costs, seen, history, cuts, scratch)
        if parts == 0:
            ends[closed] = end
            closed += 1
            still_open -= 1
            start = end
        else:
            # the segment's place on the stack goes to its parts, the first of them on top
            for part in range(parts):
                stack[still_open - 1 + part] = cuts[start + parts - 1 - part]
            still_open += parts - 1
    return closed


@uncompiled_up_to(lambda rows, starts, ends, attempts, d, *_: _passes(rows, d))
@outer
def propose(rows, starts, ends, attempts, d, rule, least, k, costs, seen, history, cuts):
    """Makes the next cut of each segment that leaves k people on every side; returns the parts of
    each.

    starts, ends: (s,) int64 segments. attempts: (s,) int64, the first attempt to make; set to the
        one after the attempt that was made.
    history: (n // least + 1, 0 to d + 1) int32, -1 at first; at row start // least what is known of
        the cuts that led to a segment: by which attributes it was ordered, the latest first, and,
        last, one less than its depth. Equal codes keep that order, at first that of the record
        numbers. Depth alone: equal codes go by record number. No rows: by the other attributes, the
        widest first, then by record number. Only for shared codes.
    cuts: (n,) int64; a segment's parts end at cuts[start], cuts[start + 1], ...
    Returns (s,) int64, 0 where no attempt is left.
    """
    asked = CutRule(rule, least, k, d)
    scratch = _scratch(rows, d, costs)
    parts = np.zeros(len(starts), np.int64)
    for s in range(len(starts)):
        parts[s], attempts[s] = _cut(
            rows, starts[s], ends[s], attempts[s], asked, costs, seen, history, cuts, scratch
        )
    return parts


@uncompiled_up_to(lambda rows, *_: len(rows))
@outer
def number_segments(rows, d, starts, ends, labels):
    """Writes into labels[record] the number of the segment that holds the record."""
    for s in range(len(starts)):
        for i in range(starts[s], ends[s]):
            labels[rows[i, d]] = s


@inner
def _scratch(rows, d, costs):
    n = rows.shape[0]
    bounds = np.empty((2, d + 1), np.int32)
    bounds[0, d] = 0
    bounds[1, d] = n - 1
    return Scratch(
        bounds,
        np.empty(d, np.int32),
        np.empty(d, np.float64),
        np.empty((2, d + 1), np.int64),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.zeros((2, len(costs)), np.int64),
    )


@inner
def _cut(rows, start, end, attempt, asked, costs, seen, history, cuts, scratch):
    """Makes the first cut from `attempt` on that leaves k people a side: (parts, next attempt)."""
    m = end - start
    if m < 2 * asked.least:
        return 0, attempt
    rule = asked.rule
    bounds = scratch.bounds
    _widest_first(rows, start, end, costs, scratch)
    if rule == IN_TURN:
        _take_turns(history[start // asked.least, -1] + 1, scratch)
    # attempts go through the attributes, with the rules that know a second cut twice on each
    choices = 2 if rule in (NEAREST, NEAREST_CHILDREN) else 1
    while attempt < choices * asked.d:
        j = scratch.order[attempt // choices]
        choice = attempt % choices
        attempt += 1
        if bounds[0, j] == bounds[1, j] and (rule < HALVES or attempt > 1):
            continue  # nothing tells the records apart; sharing them by number is tried once
        if rule >= HALVES:
            rank = m // 2 if rule == HALVES else lower_size(m, asked.least, SAME)
            kept = start // asked.least
            settled_by = history[kept, :-1] if len(history) > 0 else scratch.order
            parts = _part_by_rank(rows, start, end, j, rank, settled_by, scratch, cuts)
            if len(history) > 0:
                _remember(history, kept, cuts[start] // asked.least, j)
        elif rule < CHILDREN or first_node(j, costs) < 0:
            parts = _part_by_median(rows, start, end, j, asked.k, choices + choice, scratch, cuts)
        elif choice == 0:
            parts = _part_by_child(rows, start, end, j, asked.k, costs, scratch, cuts)
        else:
            parts = 0
        if parts > 0 and _people_everywhere(rows, start, parts, cuts, asked, seen):
            return parts, attempt
    return 0, attempt


@inner
def _widest_first(rows, start, end, costs, scratch):
    """Tight bounds of a segment; its attributes by falling cost, ties by place, into `order`."""
    bounds = scratch.bounds
    order = scratch.order
    cost = scratch.cost
    d = len(order)
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
        cost[j] = span_loss(bounds[0, j], bounds[1, j], j, costs)
        # insertion sort: d is small
        place = j
        while place > 0:
            before = order[place - 1]
            if not is_wider(cost[j], j, cost[before], before, costs):
                break
            order[place] = before
            place -= 1
        order[place] = j


@inner
def _take_turns(depth, scratch):
    """Into `order`: attributes from this depth's on, in turn; last those that part nothing."""
    bounds = scratch.bounds
    d = len(scratch.order)
    place = 0
    for is_constant in (False, True):
        for turn in range(d):
            j = (depth + turn) % d
            if (bounds[0, j] == bounds[1, j]) == is_constant:
                scratch.order[place] = j
                place += 1


@inner
def _part_by_median(rows, start, end, j, k, choice, scratch, cuts):
    """choice: 1 codes up to the median go left; 2 or 3 the nearer or the farther cut around it."""
    m = end - start
    values = scratch.values
    bounds = scratch.bounds
    key = scratch.key
    for i in range(m):
        values[i] = rows[start + i, j]
    value, below, upto = _at_rank(values, m, bounds[0, j], bounds[1, j], (m + 1) // 2)
    # the two cuts around the median leave `below` or `upto` rows on the left
    if choice > 1 and (abs(2 * below - m) < abs(2 * upto - m)) == (choice == 2):
        value -= 1
        upto = below
    if upto < k or m - upto < k:
        return 0
    key[0, 0] = j
    key[1, 0] = value
    cuts[start] = _move_left(rows, start, end, key, np.int64(1))
    cuts[start + 1] = end
    return 2


@inner
def _part_by_rank(rows, start, end, j, rank, settled_by, scratch, cuts):
    """The `rank` first rows in the order of j, then of the attributes that settle ties, go left."""
    values = scratch.values
    spots = scratch.spots
    bounds = scratch.bounds
    key = scratch.key
    columns = _columns_in_turn(j, settled_by, scratch)
    m = end - start
    for i in range(m):
        spots[i] = start + i
    # column after column, the value of the row at that rank, among the rows that are tied so far
    for column in range(columns):
        c = key[0, column]
        for i in range(m):
            values[i] = rows[spots[i], c]
        value, below, upto = _at_rank(values, m, bounds[0, c], bounds[1, c], rank)
        key[1, column] = value
        rank -= below
        if upto - below == rank:  # all that are tied go left: no further column is needed
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


@inner
def _columns_in_turn(j, settled_by, scratch):
    """Into key[0]: j, the attributes that settle ties, the record number; returns their count."""
    key = scratch.key
    key[0, 0] = j
    columns = 1
    for place in range(len(settled_by)):
        if settled_by[place] < 0:
            break
        if settled_by[place] != j:
            key[0, columns] = settled_by[place]
            columns += 1
    key[0, columns] = len(scratch.order)
    return columns + 1


@inner
def _remember(history, left, right, j):
    """A segment was ordered by j: both its halves know, and that they lie one deeper."""
    d = history.shape[1] - 1
    history[left, d] += 1
    # j moves to the front: those up to its old place, or the first free one, go one back
    place = 0
    while place < d - 1 and history[left, place] != j and history[left, place] >= 0:
        place += 1
    while place > 0:
        history[left, place] = history[left, place - 1]
        place -= 1
    if d > 0:
        history[left, 0] = j
    for place in range(d + 1):
        history[right, place] = history[left, place]


@inner
def _at_rank(values, m, low, high, rank):
    """The smallest v in low..high with rank or more of values[:m] <= v, and how many are < v and
    <= v.

    Halves the range of values rather than the values: 32 plain passes at worst, whatever the data.
    """
    low = np.int64(low)
    high = np.int64(high)
    below = 0
    upto = m
    while low < high:
        middle = low + (high - low) // 2
        count = 0
        for i in range(m):
            count += values[i] <= middle
        if count >= rank:
            high = middle
            upto = count
        else:
            low = middle + 1
            below = count
    return low, below, upto


@inner
def _move_left(rows, start, end, key, columns):
    """Moves the rows up to the key to the front of the segment; returns where they end."""
    left = start
    right = end - 1
    while True:
        while left <= right and _is_upto(rows, left, key, columns):
            left += 1
        while left <= right and not _is_upto(rows, right, key, columns):
            right -= 1
        if left > right:
            return left
        swap_rows(rows, left, right)
        left += 1
        right -= 1


@inner
def _is_upto(rows, i, key, columns):
    """Whether row i is at most key[1] on the columns key[0], the first that differs decides."""
    for place in range(columns):
        code = rows[i, key[0, place]]
        if code != key[1, place]:
            return code < key[1, place]
    return True


@inner
def _part_by_child(rows, start, end, j, k, costs, scratch, cuts):
    """Groups the rows by the child of their covering node, in order of first appearance; returns
    how many children occur, 0 when one of them has fewer than k rows.

    scratch.child: all zeros, and zeros again afterwards.
    """
    bounds = scratch.bounds
    child = scratch.child
    spots = scratch.spots
    base = first_node(j, costs)
    top = base + bounds[0, j]
    while last_leaf(top, costs) < bounds[1, j]:
        top = parent_of(top, costs)
    # count the rows of each child; cuts[start:] lists the children meanwhile
    parts = 0
    for i in range(start, end):
        node = base + rows[i, j]
        while parent_of(node, costs) != top:
            node = parent_of(node, costs)
        spots[i] = node
        if child[0, node] == 0:
            cuts[start + parts] = node
            parts += 1
        child[0, node] += 1
    # from counts to places: where each child's rows begin and end
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
        _swap_into_place(rows, start, parts, scratch, cuts)
    for part in range(parts):
        node = cuts[start + part]
        cuts[start + part] = child[1, node]
        child[0, node] = 0
        child[1, node] = 0
    return parts if fewest >= k else 0


@inner
def _swap_into_place(rows, start, parts, scratch, cuts):
    """Sends every row to the next free place of its child (American flag sort)."""
    child = scratch.child
    spots = scratch.spots
    for part in range(parts):
        here = cuts[start + part]
        while child[0, here] < child[1, here]:
            i = child[0, here]
            node = spots[i]
            to = child[0, node]
            if node != here:
                swap_rows(rows, i, to)
                spots[i], spots[to] = spots[to], spots[i]
            child[0, node] += 1


@inner
def _people_everywhere(rows, start, parts, cuts, asked, seen):
    """Whether each part holds k distinct people (k rows, where every record is its own person)."""
    first = start
    for part in range(parts):
        end = cuts[start + part]
        if len(seen) == 0:
            people = end - first
        else:
            people = 0
            seen[-1] += 1  # a fresh mark: nobody is counted yet
            while first < end and people < asked.k:
                person = rows[first, asked.d + 1]
                people += seen[person] != seen[-1]
                seen[person] = seen[-1]
                first += 1
        if people < asked.k:
            return False
        first = end
    return True
