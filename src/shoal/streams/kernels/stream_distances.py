"""What it costs to publish records of a stream together: distances, and boxes over records.

Distances are whole numbers of the unit of loss that `Space` sets, so sums don't depend on their
order and ties are real ties.

Throughout, for n records in order of arrival: near (linear, n) int32, positions on linear
attributes in units of loss, so that a difference is a loss. leaf (trees, n) int32, leaves of tree
attributes. base (trees,) int32, where an attribute's nodes begin in parent, first, last (nodes,)
int32 and cost (nodes,) int32, the loss of publishing a node.
"""

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inner, outer, uncompiled_up_to

BLOCK = 512
"""Records whose distances are added up together, so that they stay in the cache."""

FAR = np.int32(2**31 - 1)


class StreamPoints(NamedTuple):
    """Records as points: near (linear, n) and leaf (trees, n), int32."""

    near: np.ndarray
    leaf: np.ndarray


class StreamTrees(NamedTuple):
    """The trees of all tree attributes, as `Space.costs` has them."""

    base: np.ndarray
    parent: np.ndarray
    first: np.ndarray
    last: np.ndarray
    cost: np.ndarray


class LeafLosses(NamedTuple):
    """What it costs to publish one node of each tree together with any leaf.

    losses: (leaves of all trees,) int32. starts: (trees + 1,) int64, where each tree begins in it.
    """

    losses: np.ndarray
    starts: np.ndarray


class Boxes(NamedTuple):
    """The smallest boxes over sets of records. An empty box has lo FAR, hi -FAR and node -1.

    lo, hi: (boxes, linear) int32. node: (boxes, trees) int32. loss: (boxes,) int64, kept by the
    caller.
    """

    lo: np.ndarray
    hi: np.ndarray
    node: np.ndarray
    loss: np.ndarray


@uncompiled_up_to(lambda near, leaf, probes, *_: len(probes) * (near.size + leaf.size))
@outer
def rarity(near, leaf, probes, base, parent, first, last, cost):
    """Distances of each record to the probes, records too, added up; (n,) int64."""
    points = StreamPoints(near, leaf)
    trees = StreamTrees(base, parent, first, last, cost)
    losses = leaf_losses(trees)
    n = records_in(points)
    dist = np.empty(n, np.int32)
    total = np.zeros(n, np.int64)
    for t in probes:
        distances_from(t, points, n, losses, trees, dist)
        for i in range(n):
            total[i] += dist[i]
    return total


@inner
def records_in(points):
    """How many records they are, also where all attributes are trees."""
    return points.near.shape[1] if points.near.shape[0] > 0 else points.leaf.shape[1]


# Distances


@inner
def leaf_losses(trees):
    """Room for `LeafLosses`; `fill_losses` fills in one tree."""
    starts = np.zeros(len(trees.base) + 1, np.int64)
    for j in range(len(trees.base)):
        end = trees.base[j + 1] if j + 1 < len(trees.base) else len(trees.last)
        leaves = 0
        for node in range(trees.base[j], end):
            leaves = max(leaves, trees.last[node] + 1)
        starts[j + 1] = starts[j] + leaves
    return LeafLosses(np.empty(starts[-1], np.int32), starts)


@inner
def fill_losses(j, node, losses, trees):
    """The loss of the lowest node over `node` and each leaf of tree j."""
    parent, first, last, cost = trees.parent, trees.first, trees.last, trees.cost
    row = losses.losses
    start = losses.starts[j]
    lo = first[node]
    hi = last[node]
    for leaf in range(lo, hi + 1):
        row[start + leaf] = cost[node]
    # each node further up adds the leaves left and right of those below it
    while parent[node] >= 0:
        node = parent[node]
        for leaf in range(first[node], lo):
            row[start + leaf] = cost[node]
        for leaf in range(hi + 1, last[node] + 1):
            row[start + leaf] = cost[node]
        lo = first[node]
        hi = last[node]


@inner
def distances_from(t, points, count, losses, trees, dist):
    """Loss of the smallest box over record t and each of the first `count`, (count,) int32.

    losses: become those of record t's leaves.
    """
    near, leaf = points.near, points.leaf
    row, starts = losses.losses, losses.starts
    for j in range(leaf.shape[0]):
        fill_losses(j, trees.base[j] + leaf[j, t], losses, trees)
    for begin in range(0, count, BLOCK):
        end = min(begin + BLOCK, count)
        for i in range(begin, end):
            dist[i] = 0
        for j in range(near.shape[0]):
            x = near[j, t]
            for i in range(begin, end):
                dist[i] += abs(near[j, i] - x)
        for j in range(leaf.shape[0]):
            start = starts[j]
            for i in range(begin, end):
                dist[i] += row[start + leaf[j, i]]


# Boxes


@inner
def node_over(node, first_leaf, last_leaf, trees):
    """The lowest node from `node` up that covers these leaves."""
    while trees.last[node] < last_leaf or trees.first[node] > first_leaf:
        node = trees.parent[node]
    return node


@inner
def empty_boxes(count, points):
    linear = points.near.shape[0]
    return Boxes(
        np.full((count, linear), FAR, np.int32),
        np.full((count, linear), -FAR, np.int32),
        np.full((count, points.leaf.shape[0]), -1, np.int32),
        np.zeros(count, np.int64),
    )


@inner
def empty_box(c, boxes):
    for j in range(boxes.lo.shape[1]):
        boxes.lo[c, j] = FAR
        boxes.hi[c, j] = -FAR
    for j in range(boxes.node.shape[1]):
        boxes.node[c, j] = -1


@inner
def set_box_to(i, c, points, boxes, trees):
    for j in range(points.near.shape[0]):
        boxes.lo[c, j] = points.near[j, i]
        boxes.hi[c, j] = points.near[j, i]
    for j in range(points.leaf.shape[0]):
        boxes.node[c, j] = trees.base[j] + points.leaf[j, i]


@inner
def widen(i, c, points, boxes, trees):
    """Widens box c to record i."""
    near, leaf = points.near, points.leaf
    lo, hi, node = boxes.lo, boxes.hi, boxes.node
    for j in range(near.shape[0]):
        lo[c, j] = min(lo[c, j], near[j, i])
        hi[c, j] = max(hi[c, j], near[j, i])
    for j in range(leaf.shape[0]):
        if node[c, j] < 0:
            node[c, j] = trees.base[j] + leaf[j, i]
        node[c, j] = node_over(node[c, j], leaf[j, i], leaf[j, i], trees)
