"""A generalization hierarchy as arrays: one form, whoever made it.

A maker is named in a policy by its kind, with one argument: `hierarchy: {prefix: 5}`. To add one,
write its file beside the others: a dataclass with a `kind` is found by looking.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.data.findings import Fault
from shoal.data.hierarchies.edits import Edit, edited_rows
from shoal.data.hierarchies.paths import Paths, Trie, diagnose
from shoal.data.table import places_in
from shoal.errors import InputError


class Alias(NamedTuple):
    """Another label of a node: that of an only-child chain's upper link, at its own level."""

    node: int
    level: int
    label: str


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A tree over the values of one attribute; leaves may lie at different depths.

    Nodes are numbered leaves first, in depth-first order, then the inner nodes, so that leaf `c` is
    node `c` and every node covers the leaves `first..last` without gaps. No inner node has a single
    child that covers the same leaves: such a chain is one node and carries the label nearest the
    leaf.

    labels: text of every node as it is published.
    parent: (nodes,) int32, -1 at the root.
    first, last: (nodes,) int32, the span of leaves a node covers.
    aliases: the further labels of chains that became one node, by node and level.
    table_levels: (nodes,) int32 where the hierarchy was read from a table whose rows are padded,
        so that a node may stand higher than its subtree is deep; None to take the depth.
    repeated: rows of the table that said the same as an earlier one.
    """

    labels: tuple[str, ...]
    parent: np.ndarray
    first: np.ndarray
    last: np.ndarray
    aliases: tuple[Alias, ...] = ()
    table_levels: np.ndarray | None = None
    repeated: int = 0

    @classmethod
    def from_paths(cls, rows: Iterable[Sequence[str]]) -> Hierarchy:
        """The tree that these leaf-to-root rows of labels spell; InputError with every fault.

        Rows may differ in length. A label that repeats next to itself in a row is one node, unless
        the row's leaf bears the name of a group with other members: then it is a member of that
        group. Leaves and siblings keep the order in which the rows name them first.
        """
        try:
            paths = Paths.of(rows)
        except TypeError:
            raise InputError(
                "hierarchy: is not a list of rows of labels, such as [['3', '0-9', '*'], ...]"
            ) from None
        faults = [f.message for f in diagnose(paths) if f.kind is not Fault.UNEVEN_ROWS]
        InputError.raise_for(faults)
        return tree_of(paths)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hierarchy):
            return NotImplemented
        return (
            self.labels == other.labels
            and self.aliases == other.aliases
            and np.array_equal(self.parent, other.parent)
            and np.array_equal(self.first, other.first)
            and np.array_equal(self.last, other.last)
            and np.array_equal(self.levels, other.levels)
        )

    def __hash__(self) -> int:
        return hash(self.labels)

    @property
    def leaves(self) -> int:
        return int(self.last.max()) + 1

    @property
    def root(self) -> int:
        return int(np.flatnonzero(self.parent < 0)[0])

    def widths(self) -> np.ndarray:
        """Loss of publishing each node: (leaves(node) - 1) / (leaves(root) - 1), or 0."""
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

    def node_of_label(self, label: str) -> int:
        """The node that a published label or alias means, -1 where none.

        All nodes of one name lie on one line from a leaf to the root; the widest of them counts.
        """
        return self._node_of.get(label, -1)

    @cached_property
    def _node_of(self) -> dict[str, int]:
        node_of: dict[str, int] = {}
        for node in np.argsort(self.last - self.first, kind="stable").tolist():
            node_of[self.labels[node]] = node
        for alias in self.aliases:
            known = node_of.get(alias.label, alias.node)
            node_of[alias.label] = max(
                alias.node, known, key=lambda node: self.last[node] - self.first[node]
            )
        return node_of

    def leaf_codes(self, values: pl.Series | np.ndarray | Sequence[str]) -> np.ndarray:
        """The leaf of each text, -1 where it is not a leaf; (n,) int32."""
        return places_in(self.labels[: self.leaves], values)

    @cached_property
    def levels(self) -> np.ndarray:
        """(nodes,) how high each node stands: its longest way down to a leaf, in rows as given.

        Leaves are at 0. A node that stands for a chain has the level of the chain's lowest link, so
        that distances which weigh nodes by level / `height` come out as on the full table.
        """
        if self.table_levels is not None:
            return self.table_levels
        return heights_of(self.parent)

    @cached_property
    def height(self) -> int:
        """Generalization levels above the values: columns of the table less one."""
        return max([int(self.levels.max()), *(alias.level for alias in self.aliases)])

    def ancestors_at(self, level: int) -> np.ndarray:
        """The highest node above each leaf that stands no higher than `level`; (leaves,) int32.

        Level 0 is the values themselves, `height` the root. Each level is a partition of the leaves
        that the next one coarsens; where rows are even it is that column of the table.
        """
        node = np.arange(self.leaves, dtype=np.int32)
        return climbed(node, self.parent, self.levels, level)

    def labels_at(self, level: int) -> np.ndarray:
        """(leaves,) objects, column `level` of the table: each leaf's label there, or an alias."""
        of_node = np.array(self.labels, dtype=object)
        for alias in self.aliases:  # ascending levels within a node
            if alias.level <= level:
                of_node[alias.node] = alias.label
        return of_node[self.ancestors_at(level)]

    def rows(self) -> np.ndarray:
        """(leaves, height + 1) objects, the table as ARX writes it: value first, root last."""
        return np.stack([self.labels_at(level) for level in range(self.height + 1)], axis=1)

    def edited(self, edits: Edit | Sequence[Edit]) -> Hierarchy:
        """Another hierarchy, after these edits in their order; this one stays as it is.

        Edits are mappings such as `{"put": "Malta", "under": "Europe"}`; `shoal.data.hierarchies`
        `.edits` lists all. Raises InputError where an edit can't be made or leaves no hierarchy.
        """
        asked = [edits] if isinstance(edits, Mapping) else edits
        return Hierarchy.from_paths(map(tuple, edited_rows(self.rows(), asked)))

    def with_leaf(self, label: str) -> Hierarchy:
        """One more leaf, after all others and right under the root; the others keep their codes.

        For a value that only the whole attribute generalizes, such as a missing one.
        """
        if self.node_of_label(label) not in (-1, self.root) or label in self.labels[: self.leaves]:
            raise InputError(
                "the label to add names another node of the hierarchy; choose a different one"
            )
        chain = [alias for alias in self.aliases if alias.node == self.root]
        tree = self._with_bare_root(chain) if chain or self.root < self.leaves else self
        at, root = tree.leaves, tree.root + 1
        grown = tree._with_node(label, root, at, at, 0)
        grown.last[root] = at
        return grown

    def _with_bare_root(self, chain: Sequence[Alias]) -> Hierarchy:
        """The root's chain untied: its topmost label is a node of its own again."""
        top = chain[-1] if chain else Alias(self.root, self.height + 1, "*")
        others = replace(self, aliases=tuple(alias for alias in self.aliases if alias != top))
        grown = others._with_node(top.label, -1, 0, self.leaves - 1, top.level)
        grown.parent[self.root + (self.root >= self.leaves)] = self.leaves
        return grown

    def _with_node(self, label: str, above: int, first: int, last: int, level: int) -> Hierarchy:
        """One more node, behind the leaves. above: the number that its parent then has."""
        at = self.leaves
        moved = [alias._replace(node=alias.node + (alias.node >= at)) for alias in self.aliases]
        return Hierarchy(
            labels=(*self.labels[:at], label, *self.labels[at:]),
            parent=np.insert(self.parent + (self.parent >= at), at, above).astype(np.int32),
            first=np.insert(self.first, at, first).astype(np.int32),
            last=np.insert(self.last, at, last).astype(np.int32),
            aliases=tuple(moved),
            table_levels=np.insert(self.levels, at, level).astype(np.int32),
        )


def heights_of(parent: np.ndarray) -> np.ndarray:
    """How high each node stands above its deepest leaf; (nodes,) int32."""
    heights = np.zeros(len(parent), dtype=np.int32)
    child = np.flatnonzero(parent >= 0)
    while True:
        raised = heights.copy()
        np.maximum.at(raised, parent[child], heights[child] + 1)
        if np.array_equal(raised, heights):
            return heights
        heights = raised


def climbed(nodes: np.ndarray, parent: np.ndarray, heights: np.ndarray, most: int) -> np.ndarray:
    """The highest node above each of these, or itself, that stands no higher than `most`."""
    while True:
        up = parent[nodes]
        climbs = (up >= 0) & (heights[up] <= most)
        if not climbs.any():
            return nodes
        nodes = np.where(climbs, up, nodes)


def tree_of(paths: Paths) -> Hierarchy:
    """The tree that paths without a fault spell: leaves first, a chain as its lowest link."""
    trie, labels = paths.trie, paths.labels
    lowest = _lowest_links(trie)
    nodes = np.arange(len(trie.parent))
    kept = nodes[1:][lowest[1:] == nodes[1:]]
    inner = trie.size[kept] > 1
    kept = kept[np.lexsort((-trie.size[kept], trie.first[kept], inner))]
    number = np.full(len(nodes), -1, dtype=np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    dropped = nodes[1:][lowest[1:] != nodes[1:]]
    aliases = sorted(
        Alias(int(number[lowest[node]]), int(trie.level[node]), labels[trie.label[node]])
        for node in dropped
    )
    return Hierarchy(
        labels=tuple(labels[code] for code in trie.label[kept].tolist()),
        parent=number[_parents_past_chains(trie, lowest)[kept]],
        first=trie.first[kept].astype(np.int32),
        last=(trie.first + trie.size - 1)[kept].astype(np.int32),
        aliases=tuple(aliases),
        table_levels=trie.level[kept],
    )


def _lowest_links(trie: Trie) -> np.ndarray:
    """For every node the one nearest the leaves that covers the same rows; itself if no other."""
    nodes = np.arange(len(trie.parent))
    lowest = nodes.copy()
    only = nodes[1:][trie.size[1:] == trie.size[trie.parent[1:]]]
    lowest[trie.parent[only]] = only
    while True:
        further = lowest[lowest]
        if np.array_equal(further, lowest):
            return lowest
        lowest = further


def _parents_past_chains(trie: Trie, lowest: np.ndarray) -> np.ndarray:
    """The first node above each one that covers more rows; 0 above the root."""
    above = trie.parent.copy()
    nodes = np.arange(len(above))
    while True:
        linked = (above > 0) & (lowest[above] == lowest[nodes])
        if not linked.any():
            return np.where(above < 0, 0, above)
        above[linked] = trie.parent[above[linked]]
