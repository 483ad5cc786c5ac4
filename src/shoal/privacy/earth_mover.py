"""How far the values of a class lie from those of the whole table, as earth mover's distance.

Li, Li, Venkatasubramanian. ICDE 2007. All distances as whole numbers: what is computed is
`cost = distance * pairs * size * span`, where `pairs` are the (subject, value) pairs of the table,
`size` those of the class and `span` the greatest distance between two values in the attribute's own
unit. Every cost takes one pass over the values that occur in the classes, however many there are in
the table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from shoal.data.classes import SensitiveColumn
from shoal.data.hierarchies.hierarchy import Hierarchy, climbed
from shoal.privacy.value_counts import ValueCounts


class Distance(Protocol):
    """A ground distance, bound to the distribution of the whole table."""

    @property
    def pairs(self) -> int: ...

    @property
    def span(self) -> int: ...

    def cost(self, counts: ValueCounts, dtype: type) -> np.ndarray:
        """Whole-number cost of every class, computed in int64, float64 or object; (classes,)."""


def distance_to(column: SensitiveColumn, frequencies: np.ndarray) -> Distance:
    """The distance that the column declares, to these frequencies.

    frequencies: (values,) int64, how many pairs of the whole table have each value.
    """
    if column.distance == "equal":
        return TreeDistance.flat(frequencies)
    if column.distance == "ordered":
        return OrderedDistance.of(frequencies)
    assert column.hierarchy is not None
    return TreeDistance.of(column.hierarchy, frequencies)


@dataclass(frozen=True)
class OrderedDistance:
    """Distance |i - j| / (m - 1) between the i-th and the j-th of m values.

    With cumulative counts C of the class and G of the table, the cost is the sum over all values of
    |pairs * C - size * G|. Between two values of the class C stands still and G rises, so prefix
    sums of G give the sum over such a run, once the place is known where size * G passes pairs * C.

    place: (values,) int64, the place of each value among those that occur in the table. sums: (m +
    1,) int64, sums of G before each place. value_at: (pairs,) int32, place of the i-th pair in
    ascending order.
    """

    pairs: int
    span: int
    place: np.ndarray
    sums: np.ndarray
    value_at: np.ndarray

    @classmethod
    def of(cls, frequencies: np.ndarray) -> "OrderedDistance":
        # a value that only suppressed records have must not stretch the scale
        occurs = frequencies > 0
        place = np.cumsum(occurs) - 1
        frequencies = frequencies[occurs]
        values = len(frequencies)
        sums = np.concatenate(([0], np.cumsum(np.cumsum(frequencies))))
        value_at = np.repeat(np.arange(values, dtype=np.int32), frequencies)
        return cls(int(frequencies.sum()), max(values - 1, 1), place, sums, value_at)

    def cost(self, counts: ValueCounts, dtype: type) -> np.ndarray:
        total = counts.total()
        size = np.repeat(total, counts.distinct)
        level = self.pairs * self._cumulative(counts)
        start = self.place[counts.value]
        end = self._ends(start, counts)
        passes = np.clip(self.value_at[-(-level // size) - 1], start, end)
        below, above = self.sums[passes] - self.sums[start], self.sums[end] - self.sums[passes]
        runs = level.astype(dtype) * (2 * passes - start - end) + size.astype(dtype) * (
            above - below
        )
        occupied = counts.distinct > 0
        first = start[counts.starts[:-1][occupied]]
        before: np.ndarray = np.zeros(counts.classes, dtype=dtype)
        before[occupied] = total[occupied].astype(dtype) * self.sums[first]
        return before + counts.sums(runs)

    def _cumulative(self, counts: ValueCounts) -> np.ndarray:
        """Pairs of the class up to and including each of its values."""
        running = np.concatenate(([0], np.cumsum(counts.count)))
        return running[1:] - np.repeat(running[counts.starts[:-1]], counts.distinct)

    def _ends(self, start: np.ndarray, counts: ValueCounts) -> np.ndarray:
        """The next place of the same class, else the last of the table."""
        ends = np.empty_like(start)
        ends[:-1] = start[1:]
        ends[counts.starts[1:][counts.distinct > 0] - 1] = len(self.sums) - 2
        return ends


@dataclass(frozen=True)
class TreeDistance:
    """Distance height(lowest common ancestor) / height(root) between two leaves.

    Such a distance is the length of the path in the tree whose edges are as long as the difference
    of height of their ends, halved. So the least cost of moving is the sum over all nodes below the
    root of edge * max(0, share in the class - share in the table), and nodes that cover nothing of
    the class add nothing. It equals the formula of Li et al. (sum over inner nodes of
    height * min(surplus, deficit of the children)).

    Reading: the height of a node is its longest way down to a leaf, counted in levels of the
    hierarchy as it was written, padding included.

    levels: for each depth below the root, (leaves,) int32 the node at that depth on the leaf's way
    to the root, -1 where the way is shorter. edge, covered: (nodes,) int64, difference of height to
    the parent; pairs of the table below the node.
    """

    pairs: int
    span: int
    levels: tuple[np.ndarray, ...]
    edge: np.ndarray
    covered: np.ndarray

    @classmethod
    def flat(cls, frequencies: np.ndarray) -> "TreeDistance":
        """Any two different values are equally far apart: a tree of height 1."""
        leaves = len(frequencies)
        level = np.arange(leaves, dtype=np.int32)
        return cls(
            int(frequencies.sum()), 1, (level,), np.ones(leaves, dtype=np.int64), frequencies
        )

    @classmethod
    def of(cls, tree: Hierarchy, frequencies: np.ndarray) -> "TreeDistance":
        depth = _depths(tree.parent)
        height = tree.levels.astype(np.int64)
        running = np.concatenate(([0], np.cumsum(frequencies)))
        covered = running[tree.last + 1] - running[tree.first]
        edge = height[tree.parent] - height
        levels = tuple(_levels(tree.parent, depth, tree.leaves))
        return cls(int(frequencies.sum()), max(tree.height, 1), levels, edge, covered)

    def cost(self, counts: ValueCounts, dtype: type) -> np.ndarray:
        size: np.ndarray = counts.total().astype(dtype)
        cost: np.ndarray = np.zeros(counts.classes, dtype=dtype)
        for level in self.levels:
            below = self._counts_below(counts, level)
            nodes = below.value
            surplus = (
                below.count.astype(dtype) * self.pairs - size[below.class_of] * self.covered[nodes]
            )
            cost += below.sums(np.maximum(surplus, 0) * self.edge[nodes])
        return cost

    def _counts_below(self, counts: ValueCounts, level: np.ndarray) -> ValueCounts:
        """The counts by node of one depth; in depth-first order nodes stay sorted."""
        nodes = level[counts.value]
        kept = np.flatnonzero(nodes >= 0)
        nodes, class_of, count = nodes[kept], counts.class_of[kept], counts.count[kept]
        changes = (nodes[1:] != nodes[:-1]) | (class_of[1:] != class_of[:-1])
        edges = np.flatnonzero(np.concatenate(([True], changes)))[: len(nodes)]
        summed = np.add.reduceat(count, edges) if len(edges) else count
        starts = np.searchsorted(class_of[edges], np.arange(counts.classes + 1))
        return ValueCounts(class_of[edges], nodes[edges], summed, starts)


def _depths(parent: np.ndarray) -> np.ndarray:
    """Edges from each node up to the root, (nodes,) int64."""
    depth = np.zeros(len(parent), dtype=np.int64)
    at = parent.copy()
    while (at >= 0).any():
        depth += at >= 0
        at = np.where(at >= 0, parent[at], -1)
    return depth


def _levels(parent: np.ndarray, depth: np.ndarray, leaves: int) -> Iterator[np.ndarray]:
    """The ancestor of every leaf at depth 1, 2, ...; the leaf itself at its own depth."""
    for level in range(1, int(depth.max()) + 1):
        at = climbed(np.arange(leaves, dtype=np.int32), parent, -depth, -level)
        yield np.where(depth[at] == level, at, -1).astype(np.int32)
