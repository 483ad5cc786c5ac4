"""Regions of the declared domain, cut finer and finer where records are published.

Whole regions show nothing of the records in them but that they lie there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.schema import Kind, Missing
from shoal.data.stream import Space, State
from shoal_papers.baselines.kernels.regions import CHILD, CUT, SIBLING, WAITING

ARRAYS = ("lo", "hi", "nodes", "parent", "cluster", "used", "is_last", "is_free")


class RegionTree:
    """Nodes are numbered, the root is node 0; each has a region, and children once it is cut.

    lo, hi: (n, d) float64. nodes: (4, n) int32, as in `kernels.regions`. parent: (n,) int32, -1 at
    the root. cluster: (n,) int64, the cluster that a node's region was published as, -1 for none:
    a node that has one works. used: (n,) int64, the record with which it was last published.
    is_last: (n,) bool, leaves that can't be cut any further.
    """

    def __init__(self, space: Space, most: int) -> None:
        """most: nodes at most; more where a single cut needs them."""
        self._space = space
        self._child_of = [_children(tree) for tree in space.trees]
        widest = max([3, *(len(parts) for tree in self._child_of for parts in tree.values())])
        n = max(most, 1 + widest)
        d = space.attributes
        self.lo, self.hi = np.zeros((n, d)), np.zeros((n, d))
        self.nodes = np.full((4, n), -1, np.int32)
        self.nodes[WAITING] = 0
        self.parent, self.cluster = np.full(n, -1, np.int32), np.full(n, -1, np.int64)
        self.used, self.is_last = np.zeros(n, np.int64), np.zeros(n, bool)
        self.is_free = np.ones(n, bool)
        self.is_free[0] = False
        self._can_miss = space.schema.missing is Missing.VALUE
        for j, tree in enumerate(space.trees):
            whole = tree.leaves - 1 if tree is not None else space.low[j] + space.width[j]
            self.lo[0, j] = 0 if tree is not None else space.low[j]
            self.hi[0, j] = space.beyond[j] if tree is None and self._can_miss else whole

    @property
    def working(self) -> np.ndarray:
        """The clusters of all nodes that work."""
        return np.sort(self.cluster[self.cluster >= 0])

    def upwards(self, node: int) -> Iterator[int]:
        """The node and all above it."""
        while node >= 0:
            yield node
            node = int(self.parent[node])

    def cut(self, node: int, values: np.ndarray | None) -> np.ndarray:
        """Cuts a leaf at its relatively widest side; the nodes whose records have to move.

        values: (m, d) float64, to cut at their median; None for the middle. Where all other nodes
        are in use, others give way; where that is not enough, nothing is cut.
        """
        parts = self._parts(node, values)
        if parts is None:
            self.is_last[node] = True
            return np.zeros(0, np.int64)
        attribute, spans = parts
        left = np.zeros(0, np.int64)
        while self.is_free.sum() < len(spans):
            folded = self._fold(spared=int(self.parent[node]))
            if not len(folded):
                return left
            left = np.append(left, folded)
        children = np.flatnonzero(self.is_free)[: len(spans)]
        self.is_free[children], self.is_last[children] = False, False
        self.lo[children], self.hi[children] = self.lo[node], self.hi[node]
        self.lo[children, attribute], self.hi[children, attribute] = np.array(spans).T
        self.nodes[CUT, children], self.nodes[WAITING, children] = -1, 0
        self.nodes[SIBLING, children] = np.append(children[1:], -1)
        self.nodes[CUT, node], self.nodes[CHILD, node] = attribute, children[0]
        self.nodes[WAITING, node] = 0
        self.parent[children] = node
        return np.append(left, node)

    def _fold(self, spared: int) -> np.ndarray:
        """Makes a leaf again of the node used longest ago whose children are all leaves, but not of
        the spared one; the children, none without such a node. Of nodes used at the same time it
        is the one with the lowest number.
        """
        is_inner = self.nodes[CUT] >= 0
        is_inner[self.parent[np.flatnonzero(is_inner)[1:]]] = False  # the root is the first of them
        found = np.flatnonzero(is_inner)
        found = found[found != spared]
        if not len(found):
            return found
        node = found[np.argmin(self.used[found])]
        children = np.flatnonzero(self.parent == node)
        self.is_free[children], self.cluster[children], self.parent[children] = True, -1, -1
        self.nodes[CUT, node], self.nodes[WAITING, node] = -1, 0
        return children

    def _parts(
        self, node: int, values: np.ndarray | None
    ) -> tuple[int, list[tuple[float, float]]] | None:
        """The attribute to cut and the spans of the parts; None where no side can be cut."""
        widths = self._widths(node)
        for j in np.argsort(-widths, kind="stable").tolist():
            if widths[j] > 0 and (spans := self._spans(node, j, values)):
                return j, spans
        return None

    def _widths(self, node: int) -> np.ndarray:
        """What the region loses on each attribute, (d,) float64."""
        space, widths = self._space, np.zeros(self._space.attributes)
        for j, tree in enumerate(space.trees):
            whole = tree.leaves - 1 if tree is not None else space.width[j]
            span = self.hi[node, j] - self.lo[node, j]
            widths[j] = space.share[j] * min(span / whole if whole > 0 else float(span > 0), 1.0)
        return widths

    def _spans(
        self, node: int, j: int, values: np.ndarray | None
    ) -> list[tuple[float, float]] | None:
        """The parts of a region on one attribute: the children of its node in the hierarchy, or
        both sides of a value; missing values are a part of their own.
        """
        low, high = float(self.lo[node, j]), float(self.hi[node, j])
        if self._space.trees[j] is not None:
            return self._child_of[j][(int(low), int(high))]
        beyond = float(self._space.beyond[j])
        missing = [(beyond, beyond)] if high >= beyond else []
        if missing:
            high = float(self._space.low[j] + self._space.width[j])
        is_ordinal = self._space.schema.quasi[j].kind is Kind.ORDINAL
        at = (low + high) / 2
        if values is not None:
            known = np.sort(values[values[:, j] <= high, j])
            at = float(known[(len(known) - 1) // 2]) if len(known) else at
        if is_ordinal:
            at = float(np.floor(at))
        inside = low < at < high or (low <= at < high and (values is not None or is_ordinal))
        if not inside:
            return [(low, high), *missing] if missing else None
        return [(low, at), (at + 1 if is_ordinal else at, high), *missing]

    def snapshot(self) -> State:
        return {f"tree.{name}": getattr(self, name).copy() for name in ARRAYS}

    def restore(self, state: State) -> None:
        for name in ARRAYS:
            setattr(self, name, state[f"tree.{name}"].copy())


def _children(tree: Hierarchy | None) -> dict[tuple[int, int], list[tuple[float, float]]]:
    """The spans of each node's children, in order, by the node's own span."""
    if tree is None:
        return {}
    found: dict[tuple[int, int], list[tuple[float, float]]] = {}
    parent, first, last = tree.parent, tree.first, tree.last
    for node in np.argsort(first, kind="stable").tolist():
        if parent[node] >= 0:
            up = int(parent[node])
            span = (float(first[node]), float(last[node]))
            found.setdefault((int(first[up]), int(last[up])), []).append(span)
    return found
