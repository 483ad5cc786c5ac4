"""Plain truth for hierarchies: nodes are the label paths from the root, with the set of leaves
below each.
"""

from collections import defaultdict
from dataclasses import dataclass


@dataclass(frozen=True)
class NaiveTree:
    """A tree before chains become one node.

    lines: for each leaf label, its nodes from the leaf up; a node is the tuple of labels down to
    it.
    covers: the leaf labels below each node. levels: cells from each node down to its deepest leaf.
    """

    lines: dict[str, list[tuple[str, ...]]]
    covers: dict[tuple[str, ...], frozenset[str]]
    levels: dict[tuple[str, ...], int]

    def distinct(self) -> dict[frozenset[str], list[tuple[str, ...]]]:
        """Nodes by what they cover, each chain from its lowest link up."""
        chains = defaultdict(list)
        for node in sorted(self.covers, key=len, reverse=True):
            chains[self.covers[node]].append(node)
        return dict(chains)

    def covering(self, leaves: list[str]) -> frozenset[str]:
        """What the lowest node above all these leaves covers."""
        for node in self.lines[leaves[0]]:
            if self.covers[node] >= set(leaves):
                return self.covers[node]
        raise AssertionError("the root covers every leaf")

    def label_at(self, leaf: str, level: int) -> str:
        """The label of the highest node on the leaf's line that stands no higher than level."""
        return [node for node in self.lines[leaf] if self.levels[node] <= level][-1][-1]

    @property
    def height(self) -> int:
        return max(self.levels.values())

    def moving_cost(self, difference: dict[str, int]) -> float:
        """Hierarchical earth mover's distance times mass: at each inner node, level/height *
        min(surplus, deficit).
        """
        cost = 0.0
        for node in self.covers:
            below = [
                sum(difference[x] for x in self.covers[child]) for child in self._children(node)
            ]
            surplus = sum(amount for amount in below if amount > 0)
            deficit = -sum(amount for amount in below if amount < 0)
            cost += self.levels[node] / max(self.height, 1) * min(surplus, deficit)
        return cost

    def _children(self, node: tuple[str, ...]) -> list[tuple[str, ...]]:
        return [
            other for other in self.covers if len(other) == len(node) + 1 and other[:-1] == node
        ]


def grown(rows: list[list[str]]) -> NaiveTree:
    """The tree of leaf-to-root rows, by dictionaries."""
    down = [_without_repeats(row)[::-1] for row in rows]
    inner = {tuple(path[:i]) for path in down for i in range(1, len(path))}
    lines, covers, levels = {}, defaultdict(set), defaultdict(int)
    for row, path in zip(rows, down, strict=True):
        if tuple(path) in inner:
            path = [*path, row[0]]
        line = [tuple(path[:i]) for i in range(len(path), 0, -1)]
        lines[row[0]] = line
        for node in line:
            covers[node].add(row[0])
        for node, place in _places(row, line).items():
            levels[node] = max(levels[node], place)
    return NaiveTree(
        lines, {node: frozenset(leaves) for node, leaves in covers.items()}, dict(levels)
    )


def _without_repeats(row: list[str]) -> list[str]:
    return [label for i, label in enumerate(row) if i == 0 or label != row[i - 1]]


def _places(row: list[str], line: list[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
    """Where the row first names each of its nodes; a group that shares its leaf's cells says
    nothing more.
    """
    starts = [i for i, label in enumerate(row) if i == 0 or label != row[i - 1]]
    if len(line) > len(starts):
        starts = [0, *starts]
    return dict(zip(line, starts, strict=True))
