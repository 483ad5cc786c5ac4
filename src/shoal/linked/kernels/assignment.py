"""Which row goes to which slot, at the least cost."""

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inlined, inner


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
