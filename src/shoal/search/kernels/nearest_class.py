"""For classes that must merge: which other class costs least to merge with.

A class is its box and its size. Merging a and b adds
size(a) * (cost(box of both) - cost(box of a)) + size(b) * (cost(box of both) - cost(box of b)).
Classes are kept in tiles that lie close together, and tiles in a binary tree; a branch is passed
over when even the smallest merge with anything in it adds more than the best one found. That bound
is computed by the same additions in the same order, so rounding can't make it exceed the truth.

costs: as in `spans`.
"""

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inner, outer, uncompiled_up_to
from shoal.search.kernels.spans import box_loss

DEEPEST = 128  # nodes that can wait on the way down: two for each level of the tree


class ClassBoxes(NamedTuple):
    """The classes, and which of them look for a partner."""

    lo: np.ndarray  # (count, d) int32, bounds
    hi: np.ndarray
    sizes: np.ndarray  # (count,) int64, records
    cost: np.ndarray  # (count,) float64, of the box
    failing: np.ndarray  # (count,) bool
    partner: np.ndarray  # (count,) int32, -1 for none


class Tiles(NamedTuple):
    """The classes tile by tile, and where the tiles end."""

    order: np.ndarray  # (count,) int64
    ends: np.ndarray  # (tiles,) int64


class TileTree(NamedTuple):
    """A binary tree over the tiles: node i has children 2i and 2i + 1, tiles start at node `first`.

    Every class in a node reaches down to `lo` and up to `hi` at least, has at least `smallest`
    records and costs at most `dearest`. Nodes without classes have smallest 0.
    """

    first: int
    lo: np.ndarray  # (nodes, d) int32
    hi: np.ndarray
    smallest: np.ndarray  # (nodes,) int64
    dearest: np.ndarray  # (nodes,) float64


class Unpaired(NamedTuple):
    """The classes that are in no pair of this round yet."""

    tile_of: np.ndarray  # (count,) int64, the tile of every class
    free: np.ndarray  # (nodes,) int64, how many of a node's classes are in no pair
    lowest: np.ndarray  # (nodes,) int64, the lowest number of a node's classes, in a pair or not


def boxes(codes, labels, count):
    """Bounds and sizes of classes: lo, hi (count, d) int32; sizes (count,). -1 is in no class."""
    lo, hi = np.empty((2, count, codes.shape[1]), np.int32)
    sizes = np.zeros(count, np.int64)
    _fill(codes, labels, lo, hi, sizes)
    return lo, hi, sizes


@uncompiled_up_to(lambda codes, *_: codes.size)
@outer
def _fill(codes, labels, lo, hi, sizes):
    """Fills in what `boxes` returns. sizes: zeros."""
    n, d = codes.shape
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


@uncompiled_up_to(lambda lo, hi, sizes, failing, *_: lo.size * (4 + int(failing.sum())))
@outer
def partners(lo, hi, sizes, failing, order, ends, costs):
    """The class that each failing class merges with in this round, (count,) int32, -1 for none.

    In rising order, every failing class takes the class that adds least, ties to the lowest number:
    of those that hold, or that fail and are in no pair of this round yet.
    failing: (count,) bool. order, ends: the classes tile by tile, and where the tiles end.
    """
    count = len(sizes)
    cost = np.empty(count, np.float64)
    for c in range(count):
        cost[c] = box_loss(lo, hi, c, lo, hi, c, costs)
    partner = np.full(count, -1, np.int32)
    classes = ClassBoxes(lo, hi, sizes, cost, failing, partner)
    tiles = Tiles(order, ends)
    tree = _tree(classes, tiles)
    unpaired = _unpaired(count, tiles, tree.first)
    stack = np.empty(DEEPEST, np.int64)
    for c in range(count):
        if not failing[c] or partner[c] >= 0:
            continue
        best = _nearest(c, classes, tiles, tree, unpaired, stack, costs)
        if best < 0:
            continue
        partner[c] = best
        _take(tree.first + unpaired.tile_of[c], unpaired.free)
        if failing[best]:
            partner[best] = c
            _take(tree.first + unpaired.tile_of[best], unpaired.free)
    return partner


@inner
def _nearest(c, classes, tiles, tree, unpaired, stack, costs):
    """The free class that adds least when merged with c, -1 for none: nearer branches first.

    stack: room for the nodes still to look into, the nearest on top.
    """
    lo = classes.lo
    hi = classes.hi
    sizes = classes.sizes
    cost = classes.cost
    best = -1
    best_added = np.inf
    stack[0] = 1
    waiting = 1
    while waiting > 0:
        waiting -= 1
        node = stack[waiting]
        if unpaired.free[node] == 0:
            continue
        # what a merge with the nearest, smallest and dearest class that could be there would add
        reach = box_loss(lo, hi, c, tree.lo, tree.hi, node, costs)
        excess = max(0.0, reach - tree.dearest[node])
        least = sizes[c] * (reach - cost[c]) + tree.smallest[node] * excess
        if least > best_added or (least == best_added and unpaired.lowest[node] > best):
            continue
        if node < tree.first:
            near = _nearer_child(lo, hi, c, tree, node, unpaired.free, costs)
            stack[waiting] = 4 * node + 1 - near  # the other child
            stack[waiting + 1] = near
            waiting += 2
            continue
        tile = node - tree.first
        for place in range(_start_of(tile, tiles.ends), tiles.ends[tile]):
            g = tiles.order[place]
            if g == c or (classes.failing[g] and classes.partner[g] >= 0):
                continue
            both = box_loss(lo, hi, c, lo, hi, g, costs)
            added = sizes[c] * (both - cost[c]) + sizes[g] * (both - cost[g])
            if added < best_added or (added == best_added and g < best):
                best = g
                best_added = added
    return best


@inner
def _nearer_child(lo, hi, c, tree, node, free, costs):
    left = 2 * node
    right = 2 * node + 1
    if free[left] == 0 or free[right] == 0:
        return left
    to_left = box_loss(lo, hi, c, tree.lo, tree.hi, left, costs)
    to_right = box_loss(lo, hi, c, tree.lo, tree.hi, right, costs)
    return left if to_left <= to_right else right


@inner
def _start_of(tile, ends):
    return ends[tile - 1] if tile > 0 else 0


@inner
def _tree(classes, tiles):
    d = classes.lo.shape[1]
    count = len(tiles.ends)
    first = 1
    while first < count:
        first *= 2
    tree = TileTree(
        first,
        np.empty((2 * first, d), np.int32),
        np.empty((2 * first, d), np.int32),
        np.zeros(2 * first, np.int64),
        np.zeros(2 * first, np.float64),
    )
    for tile in range(count):
        for place in range(_start_of(tile, tiles.ends), tiles.ends[tile]):
            g = tiles.order[place]
            size = classes.sizes[g]
            _include(tree, first + tile, classes.lo, classes.hi, g, size, classes.cost[g])
    for node in range(2 * first - 1, 1, -1):
        if tree.smallest[node] > 0:
            size = tree.smallest[node]
            _include(tree, node // 2, tree.lo, tree.hi, node, size, tree.dearest[node])
    return tree


@inner
def _include(tree, node, lo, hi, g, size, cost):
    """A class, or a child, becomes part of a node: box g of lo and hi, so large and so dear."""
    new = tree.smallest[node] == 0
    for j in range(lo.shape[1]):
        # the part of every member's box: merging reaches at least this far
        tree.lo[node, j] = lo[g, j] if new else max(tree.lo[node, j], lo[g, j])
        tree.hi[node, j] = hi[g, j] if new else min(tree.hi[node, j], hi[g, j])
    tree.smallest[node] = size if new else min(tree.smallest[node], size)
    tree.dearest[node] = cost if new else max(tree.dearest[node], cost)


@inner
def _unpaired(count, tiles, first):
    """Every class, in no pair yet."""
    tile_of = np.empty(count, np.int64)
    free = np.zeros(2 * first, np.int64)
    lowest = np.full(2 * first, count, np.int64)
    for tile in range(len(tiles.ends)):
        for place in range(_start_of(tile, tiles.ends), tiles.ends[tile]):
            g = tiles.order[place]
            tile_of[g] = tile
            free[first + tile] += 1
            lowest[first + tile] = min(lowest[first + tile], g)
    for node in range(first - 1, 0, -1):
        free[node] = free[2 * node] + free[2 * node + 1]
        lowest[node] = min(lowest[2 * node], lowest[2 * node + 1])
    return Unpaired(tile_of, free, lowest)


@inner
def _take(node, free):
    """One class of a tile is in a pair now, and can't be chosen any more in this round."""
    while node > 0:
        free[node] -= 1
        node //= 2
