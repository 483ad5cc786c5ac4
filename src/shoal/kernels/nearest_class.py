"""For classes that must merge: which other class costs least to merge with.

A class is its box and its size. Merging a and b adds
size(a) * (cost(box of both) - cost(box of a)) + size(b) * (cost(box of both) - cost(box of b)).
Classes are kept in tiles that lie close together, and tiles in a binary tree; a branch is passed
over when even the smallest merge with anything in it adds more than the best one found. That bound
is computed by the same additions in the same order, so rounding can't make it exceed the truth.

Throughout: scale, base, parent, last, width are the costs of a span of codes as in `Matrix`.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def boxes(codes, labels, count):
    """Bounds and sizes of classes: lo, hi (count, d) int32; sizes (count,) int64. -1 is in no class."""
    n, d = codes.shape
    lo = np.empty((count, d), np.int32)
    hi = np.empty((count, d), np.int32)
    sizes = np.zeros(count, np.int64)
    for i in range(n):
        c = labels[i]
        if c < 0:
            continue
        for j in range(d):
            code = codes[i, j]
            if sizes[c] == 0 or code < lo[c, j]:
                lo[c, j] = code
            if sizes[c] == 0 or code > hi[c, j]:
                hi[c, j] = code
        sizes[c] += 1
    return lo, hi, sizes


@njit(nogil=True, cache=True)
def partners(lo, hi, sizes, failing, order, ends, scale, base, parent, last, width):
    """The class that each failing class merges with in this round, (count,) int32, -1 for none.

    In rising order, every failing class takes the class that adds least, ties to the lowest number:
    of those that hold, or that fail and are in no pair of this round yet.
    failing: (count,) bool. order, ends: the classes tile by tile, and where the tiles end.
    """
    count = len(sizes)
    cost = np.empty(count, np.float64)
    for c in range(count):
        cost[c] = _box_cost(lo, hi, c, lo, hi, c, scale, base, parent, last, width)
    first, reach_lo, reach_hi, smallest, widest = _tree(lo, hi, sizes, cost, order, ends)
    tile_of, free, lowest = _free_places(count, order, ends, first)
    stack = np.empty(128, np.int64)
    partner = np.full(count, -1, np.int32)
    for c in range(count):
        if not failing[c] or partner[c] >= 0:
            continue
        best = _nearest(
            c, lo, hi, sizes, cost, failing, partner, order, ends, first, reach_lo, reach_hi, smallest, widest,
            free, lowest, stack, scale, base, parent, last, width,
        )  # fmt: skip
        if best < 0:
            continue
        partner[c] = best
        _take(first + tile_of[c], free)
        if failing[best]:
            partner[best] = c
            _take(first + tile_of[best], free)
    return partner


@njit(nogil=True, cache=True)
def _nearest(
    c, lo, hi, sizes, cost, failing, partner, order, ends, first, reach_lo, reach_hi, smallest, widest,
    free, lowest, stack, scale, base, parent, last, width,
):  # fmt: skip
    """The free class that adds least when merged with c, -1 for none: nearer branches first."""
    best, best_added = -1, np.inf
    stack[0] = 1
    waiting = 1
    while waiting > 0:
        waiting -= 1
        node = stack[waiting]
        if free[node] == 0:
            continue
        reach = _box_cost(lo, hi, c, reach_lo, reach_hi, node, scale, base, parent, last, width)
        least = sizes[c] * (reach - cost[c]) + smallest[node] * max(0.0, reach - widest[node])
        if least > best_added or (least == best_added and lowest[node] > best):
            continue
        if node < first:
            near = _nearer_child(lo, hi, c, reach_lo, reach_hi, node, free, scale, base, parent, last, width)
            stack[waiting] = 4 * node + 1 - near
            stack[waiting + 1] = near
            waiting += 2
            continue
        tile = node - first
        for place in range(ends[tile - 1] if tile > 0 else 0, ends[tile]):
            g = order[place]
            if g == c or (failing[g] and partner[g] >= 0):
                continue
            both = _box_cost(lo, hi, c, lo, hi, g, scale, base, parent, last, width)
            added = sizes[c] * (both - cost[c]) + sizes[g] * (both - cost[g])
            if added < best_added or (added == best_added and g < best):
                best, best_added = g, added
    return best


@njit(nogil=True, cache=True)
def _box_cost(lo, hi, a, other_lo, other_hi, b, scale, base, parent, last, width):
    """Cost of the least box that covers lo[a]..hi[a] and reaches down to other_lo[b], up to other_hi[b]."""
    total = 0.0
    for j in range(lo.shape[1]):
        low = min(lo[a, j], other_lo[b, j])
        high = max(hi[a, j], other_hi[b, j])
        if base[j] < 0:
            total += (np.int64(high) - np.int64(low)) * scale[j]
        else:
            node = base[j] + low
            while last[node] < high:
                node = parent[node]
            total += width[node]
    return total


@njit(nogil=True, cache=True)
def _tree(lo, hi, sizes, cost, order, ends):
    """A binary tree over the tiles: node i has children 2i and 2i + 1, tiles start at node `first`.

    Every class in a node reaches down to reach_lo and up to reach_hi at least, and has at least
    `smallest` records and costs at most `widest`. Nodes without classes have smallest 0.
    """
    d = lo.shape[1]
    first = 1
    while first < len(ends):
        first *= 2
    reach_lo = np.empty((2 * first, d), np.int32)
    reach_hi = np.empty((2 * first, d), np.int32)
    smallest = np.zeros(2 * first, np.int64)
    widest = np.zeros(2 * first, np.float64)
    for tile in range(len(ends)):
        for place in range(ends[tile - 1] if tile > 0 else 0, ends[tile]):
            g = order[place]
            _include(reach_lo, reach_hi, smallest, widest, first + tile, lo, hi, sizes[g], cost[g], g)
    for node in range(2 * first - 1, 1, -1):
        if smallest[node] > 0:
            size, most = smallest[node], widest[node]
            _include(reach_lo, reach_hi, smallest, widest, node // 2, reach_lo, reach_hi, size, most, node)
    return first, reach_lo, reach_hi, smallest, widest


@njit(nogil=True, cache=True)
def _include(reach_lo, reach_hi, smallest, widest, node, lo, hi, size, cost, g):
    new = smallest[node] == 0
    for j in range(lo.shape[1]):
        reach_lo[node, j] = lo[g, j] if new else max(reach_lo[node, j], lo[g, j])
        reach_hi[node, j] = hi[g, j] if new else min(reach_hi[node, j], hi[g, j])
    smallest[node] = size if new else min(smallest[node], size)
    widest[node] = cost if new else max(widest[node], cost)


@njit(nogil=True, cache=True)
def _free_places(count, order, ends, first):
    """The tile of every class; how many classes of each node are in no pair yet; its lowest class."""
    tile_of = np.empty(count, np.int64)
    free = np.zeros(2 * first, np.int64)
    lowest = np.full(2 * first, count, np.int64)
    for tile in range(len(ends)):
        for place in range(ends[tile - 1] if tile > 0 else 0, ends[tile]):
            tile_of[order[place]] = tile
            free[first + tile] += 1
            lowest[first + tile] = min(lowest[first + tile], order[place])
    for node in range(first - 1, 0, -1):
        free[node] = free[2 * node] + free[2 * node + 1]
        lowest[node] = min(lowest[2 * node], lowest[2 * node + 1])
    return tile_of, free, lowest


@njit(nogil=True, cache=True)
def _take(node, free):
    """One class of a tile is in a pair now, and can't be chosen any more in this round."""
    while node > 0:
        free[node] -= 1
        node //= 2


@njit(nogil=True, cache=True)
def _nearer_child(lo, hi, c, reach_lo, reach_hi, node, free, scale, base, parent, last, width):
    left, right = 2 * node, 2 * node + 1
    if free[left] == 0 or free[right] == 0:
        return left
    to_left = _box_cost(lo, hi, c, reach_lo, reach_hi, left, scale, base, parent, last, width)
    to_right = _box_cost(lo, hi, c, reach_lo, reach_hi, right, scale, base, parent, last, width)
    return left if to_left <= to_right else right
