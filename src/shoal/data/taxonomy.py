"""What all owners of a fusion know of an attribute and of a quasi-identifier beforehand.

An attribute is a row of *cells* 0..m-1: the leaves of a hierarchy in depth-first order, or the
points of a number's grid. A node is a span of cells, and a specialization is where its children
start.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from shoal.data.hierarchies.hierarchy import Hierarchy

Span = tuple[int, int]
"""First and last cell of a node."""


@dataclass(frozen=True)
class Taxonomy:
    """The public part of an attribute: how many cells it has, and the children of its nodes.

    children: node -> first cells of its children, ascending. is_number: whether nodes without
    children are split in two where the data says.
    """

    cells: int
    children: Mapping[Span, np.ndarray] = field(default_factory=dict)
    is_number: bool = False

    @classmethod
    def of_tree(cls, hierarchy: Hierarchy) -> "Taxonomy":
        starts_below: dict[int, list[int]] = {}
        for node, parent in enumerate(hierarchy.parent.tolist()):
            if parent >= 0:
                starts_below.setdefault(parent, []).append(int(hierarchy.first[node]))
        children = {}
        for node, starts in starts_below.items():
            span = (int(hierarchy.first[node]), int(hierarchy.last[node]))
            children[span] = np.array(sorted(starts))
        return cls(hierarchy.leaves, children)

    @property
    def root(self) -> Span:
        return 0, self.cells - 1


@dataclass(frozen=True)
class IndexedRequirement:
    """A QID, attributes by number: how many people must share each combination of values."""

    attributes: tuple[int, ...]
    k: int
