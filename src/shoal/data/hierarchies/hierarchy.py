"""A generalization hierarchy as arrays: one form, whoever made it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Hierarchy:
    """A tree over the values of one attribute; leaves may lie at different depths.

    Nodes are numbered leaves first, in depth-first order, then the inner nodes, so that leaf `c` is
    node `c` and every node covers the leaves `first..last` without gaps. No inner node has a single
    child that covers the same leaves: such a chain is one node and carries the label nearest the leaf.

    labels: text of every node as it is published.
    parent: (nodes,) int32, -1 at the root.
    first, last: (nodes,) int32, the span of leaves a node covers.
    """

    labels: tuple[str, ...]
    parent: np.ndarray
    first: np.ndarray
    last: np.ndarray

    @property
    def leaves(self) -> int:
        return int(self.last.max()) + 1

    @property
    def root(self) -> int:
        return int(np.flatnonzero(self.parent < 0)[0])

    def widths(self) -> np.ndarray:
        """Loss of publishing each node: (leaves(node) - 1) / (leaves(root) - 1), 0 for a one-leaf tree."""
        covered = (self.last - self.first).astype(np.float64)
        return covered / (self.leaves - 1) if self.leaves > 1 else np.zeros_like(covered)

    def covering(self, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
        """The lowest node that covers leaves lo..hi, elementwise; (m,) int32."""
        node = np.array(lo, dtype=np.int32)
        while True:
            short = self.last[node] < hi
            if not short.any():
                return node
            node[short] = self.parent[node[short]]
