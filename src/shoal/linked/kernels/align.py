"""Aligning the rows of a class's members with the slots of its template.

A class is a run of `members`, who are parents of the rows of one table: people, or rows of the
table above. Its slots are as many as the member with the fewest rows has; each slot gets a row of
every member, and the rows left over have no slot.
"""

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inlined, inner, outer
from shoal.search.kernels.spans import span_loss

PASSES = 3
"""The first builds the template member by member; in the others each meets the other members'."""
LARGEST_ASSIGNED = 200
"""Rows of a member above which slots keep the order of the rows, whatever is asked."""
NOTHING = np.iinfo(np.int32).max
"""Lower end of a span that covers nothing; the upper end is -1."""


class AssignmentSpace(NamedTuple):
    """Room for assignments of up to `slots` slots to `rows` rows."""

    cost: np.ndarray  # (slots, rows) float64
    chosen: np.ndarray  # (slots,) int64, the row of each slot
    slot_price: np.ndarray  # (slots + 1,) float64
    row_price: np.ndarray  # (rows + 1,) float64
    reach: np.ndarray  # (rows + 1,) float64, the least reduced cost by which a row is reached
    slot_of: np.ndarray  # (rows + 1,) int64
    before: np.ndarray  # (rows + 1,) int64, the row before it on the path
    is_done: np.ndarray  # (rows + 1,) bool
    best: np.ndarray  # (slots + 1, rows + 1) float64, of `assign_in_order`; may be (0, 0)


@inner
def assignment_space(slots, rows, ordered):
    """ordered: slots up to which `assign_in_order` is called, with the same rows; 0 for never."""
    height = ordered + 1 if ordered > 0 else 0
    return AssignmentSpace(
        np.empty((slots, rows)),
        np.empty(slots, np.int64),
        np.empty(slots + 1),
        np.empty(rows + 1),
        np.empty(rows + 1),
        np.empty(rows + 1, np.int64),
        np.empty(rows + 1, np.int64),
        np.empty(rows + 1, np.bool_),
        np.empty((height, rows + 1)),
    )


@inlined
def assign(slots, rows, space):
    """Gives every slot a row of its own at the least total `space.cost`: `space.chosen`.

    slots <= rows. Shortest augmenting paths with prices (Kuhn 1955; Jonker and Volgenant 1987):
    O(slots^2 rows). Slots and rows count from 1 here, and 0 is none.
    """
    cost, slot_price, row_price, reach = space.cost, space.slot_price, space.row_price, space.reach
    slot_of, before, is_done = space.slot_of, space.before, space.is_done
    slot_price[: slots + 1] = 0.0
    row_price[: rows + 1] = 0.0
    slot_of[: rows + 1] = 0
    for new in range(1, slots + 1):
        slot_of[0] = new
        row = 0
        reach[: rows + 1] = np.inf
        is_done[: rows + 1] = False
        while slot_of[row] != 0:
            is_done[row] = True
            slot = slot_of[row]
            least = np.inf
            nearest = 0
            for r in range(1, rows + 1):
                if is_done[r]:
                    continue
                reduced = cost[slot - 1, r - 1] - slot_price[slot] - row_price[r]
                if reduced < reach[r]:
                    reach[r] = reduced
                    before[r] = row
                if reach[r] < least:
                    least = reach[r]
                    nearest = r
            for r in range(rows + 1):
                if is_done[r]:
                    slot_price[slot_of[r]] += least
                    row_price[r] -= least
                else:
                    reach[r] -= least
            row = nearest
        while row != 0:
            slot_of[row] = slot_of[before[row]]
            row = before[row]
    for r in range(1, rows + 1):
        if slot_of[r] > 0:
            space.chosen[slot_of[r] - 1] = r - 1


@inlined
def assign_in_order(slots, rows, space):
    """Assigns at the least cost where a later slot gets a later row: O(slots rows)."""
    cost, best = space.cost, space.best
    best[0, : rows + 1] = 0.0
    for s in range(1, slots + 1):
        best[s, s - 1] = np.inf
        for r in range(s, rows + 1):
            best[s, r] = min(best[s, r - 1], best[s - 1, r - 1] + cost[s - 1, r - 1])
    r = rows
    for s in range(slots, 0, -1):
        while r > s and best[s, r] == best[s, r - 1]:
            r -= 1
        space.chosen[s - 1] = r - 1
        r -= 1


@outer
def align(
    members, starts, slots, first_row, codes, costs, column, below, below_start, spared, in_order
):
    """The row that each slot takes of each member; (sum of members x slots,) int64.

    members: (m,) int64, class after class. starts: (classes + 1,) int64, where each begins, and
        the end. slots: (classes,) int64.
    first_row: (parents + 1,) int64, where the rows of each parent begin, and the end.
    codes: (rows, d) int32. costs: as in `spans`; `column` is the one of the first of the d.
    below: float64, what else a row costs in a slot; that of row r of member i in slot s stands at
        below_start[i] + r * slots + s. Empty: nothing.
    spared: (rows,) float64, what a row costs without a slot beside its own cells, where `below` is
        not empty.
    in_order: whether a later slot takes a later row.
    Of a class, the rows of the first slot come first, in the order of the members.
    """
    classes = len(slots)
    most_rows, most_slots, most_hulls, total, ordered = 0, 0, 0, 0, 0
    for c in range(classes):
        size = starts[c + 1] - starts[c]
        total += size * slots[c]
        most_slots = max(most_slots, slots[c])
        most_hulls = max(most_hulls, (size + 1) * slots[c])
        for i in range(starts[c], starts[c + 1]):
            rows = first_row[members[i] + 1] - first_row[members[i]]
            most_rows = max(most_rows, rows)
            if in_order or rows > LARGEST_ASSIGNED:
                ordered = max(ordered, slots[c])
    d = codes.shape[1]
    space = assignment_space(most_slots, most_rows, ordered)
    # of the members after each, and of those before the one in turn
    after = np.empty((2, most_hulls, d), np.int32)
    before = np.empty((2, most_slots, d), np.int32)
    taken = np.empty(total, np.int64)
    base = 0
    for c in range(classes):
        first, size, width = starts[c], starts[c + 1] - starts[c], slots[c]
        if width == 0:
            continue
        mine = taken[base : base + size * width]
        base += size * width
        lead = 0
        while first_row[members[first + lead] + 1] - first_row[members[first + lead]] > width:
            lead += 1
        for sweep in range(PASSES):
            _clear(before, 0, width)
            if sweep == 0:
                _clear(after, 0, (size + 1) * width)
                for s in range(width):
                    mine[s * size + lead] = first_row[members[first + lead]] + s
                    _widen(before, s, codes, mine[s * size + lead])
            else:
                _hulls_after(after, mine, size, width, codes)
            for i in range(size):
                if sweep == 0 and i == lead:
                    continue
                row = first_row[members[first + i]]
                rows = first_row[members[first + i] + 1] - row
                _price(space.cost, width, row, rows, codes, costs, column, before, after, i + 1)
                if len(below) > 0:
                    for r in range(rows):
                        for s in range(width):
                            at = below_start[first + i] + r * width + s
                            space.cost[s, r] += below[at] - spared[row + r]
                if in_order or rows > LARGEST_ASSIGNED:
                    assign_in_order(width, rows, space)
                else:
                    assign(width, rows, space)
                for s in range(width):
                    mine[s * size + i] = row + space.chosen[s]
                    _widen(before, s, codes, mine[s * size + i])
    return taken


@inlined
def _clear(hulls, first, end):
    for h in range(first, end):
        for q in range(hulls.shape[2]):
            hulls[0, h, q] = NOTHING
            hulls[1, h, q] = -1


@inlined
def _widen(hulls, h, codes, row):
    for q in range(codes.shape[1]):
        hulls[0, h, q] = min(hulls[0, h, q], codes[row, q])
        hulls[1, h, q] = max(hulls[1, h, q], codes[row, q])


@inlined
def _hulls_after(after, taken, size, width, codes):
    """Fills in, for each member, what the slots hold of this one and those after it."""
    _clear(after, size * width, (size + 1) * width)
    for i in range(size - 1, -1, -1):
        for s in range(width):
            h = i * width + s
            for q in range(codes.shape[1]):
                after[0, h, q] = after[0, h + width, q]
                after[1, h, q] = after[1, h + width, q]
            _widen(after, h, codes, taken[s * size + i])


@inlined
def _price(cost, width, row, rows, codes, costs, column, before, after, following):
    """What each slot costs with each row of a member, beside the other members' rows."""
    for s in range(width):
        h = following * width + s
        for r in range(rows):
            total = 0.0
            for q in range(codes.shape[1]):
                code = codes[row + r, q]
                lo = min(code, min(before[0, s, q], after[0, h, q]))
                hi = max(code, max(before[1, s, q], after[1, h, q]))
                total += span_loss(lo, hi, column + q, costs)
            cost[s, r] = total


@outer
def price_below(rows, leads, first_row, codes, costs, column, inside, weight):
    """What the rows below each row of a table cost beside those below the rows that lead its class.

    rows, leads: (m, 2) int64: each member's rows of the table and its lead's, from and up to.
    first_row, codes, costs, column: of the table below, as for `align`.
    inside: what this function gives of the table below, for the same members; empty: nothing.
    weight: what a row costs that has no partner.
    Returns float64, member after member: row of the member by row of the lead.
    """
    total, most = 0, 0
    for i in range(len(rows)):
        total += (rows[i, 1] - rows[i, 0]) * (leads[i, 1] - leads[i, 0])
        for pair in (rows[i], leads[i]):
            for r in range(pair[0], pair[1]):
                most = max(most, first_row[r + 1] - first_row[r])
    ordered = most if most > LARGEST_ASSIGNED else 0
    space = assignment_space(most, most, ordered)
    price = np.empty(total)
    at, base = 0, 0
    for i in range(len(rows)):
        first, last = first_row[rows[i, 0]], first_row[rows[i, 1]]
        lead, lead_end = first_row[leads[i, 0]], first_row[leads[i, 1]]
        width = lead_end - lead
        for r in range(rows[i, 0], rows[i, 1]):
            for s in range(leads[i, 0], leads[i, 1]):
                a, b = first_row[r], first_row[s]
                m, n = first_row[r + 1] - a, first_row[s + 1] - b
                for x in range(m):
                    for y in range(n):
                        cost = 0.0
                        for q in range(codes.shape[1]):
                            lo = min(codes[a + x, q], codes[b + y, q])
                            hi = max(codes[a + x, q], codes[b + y, q])
                            cost += span_loss(lo, hi, column + q, costs)
                        if len(inside) > 0:
                            cost += inside[base + (a + x - first) * width + b + y - lead]
                        if m <= n:
                            space.cost[x, y] = cost
                        else:
                            space.cost[y, x] = cost
                fewer, more = min(m, n), max(m, n)
                if more > LARGEST_ASSIGNED:
                    assign_in_order(fewer, more, space)
                else:
                    assign(fewer, more, space)
                price[at] = weight * (more - fewer)
                for x in range(fewer):
                    price[at] += space.cost[x, space.chosen[x]]
                at += 1
        base += (last - first) * width
    return price
