"""Trees of values, in which rows are published at a node: hierarchies, and boxes cut in halves."""

from dataclasses import dataclass

import numpy as np

from shoal.data.matrix import Matrix
from shoal.search.segments import span_costs


@dataclass(frozen=True)
class ValueTrees:
    """Where rows may be published: nodes over values, each with all that is under its parent.

    leaf: (n,) int64, the node of each row's own value; group: (n,) int64, rows of different ones
    never share a node, though they may share the tree. parent: (nodes,) int64, -1 at a root. first,
    last: (nodes,) int64, in the order of values; a node lies below another if its span does.
    width: (nodes,) float64, what it costs to publish a row there.
    """

    leaf: np.ndarray
    group: np.ndarray
    parent: np.ndarray
    first: np.ndarray
    last: np.ndarray
    width: np.ndarray

    @classmethod
    def of(cls, matrix: Matrix, group: np.ndarray, person: np.ndarray, k: int) -> "ValueTrees":
        """A column with a hierarchy keeps it; all else is cut into boxes of k people or more.

        group: (n,) int64, -1 for rows that are in none. person: (n,) int64.
        """
        if matrix.attributes == 1 and matrix.is_tree(0):
            above = matrix.parent.astype(np.int64)
            leaf = matrix.base[0] + matrix.codes[:, 0].astype(np.int64)
            first, last = matrix.first.astype(np.int64), matrix.last.astype(np.int64)
            return cls(leaf, group, above, first, last, matrix.width)
        return _boxes(matrix, group, person, k)

    @classmethod
    def joined(cls, trees: list["ValueTrees"]) -> "ValueTrees":
        """The trees of several tables, none of whose rows share a group."""
        nodes = np.cumsum([0, *(len(tree.parent) for tree in trees)])
        groups = np.cumsum([0, *(int(tree.group.max(initial=-1)) + 1 for tree in trees)])
        moved = [
            cls(
                tree.leaf + node,
                np.where(tree.group < 0, -1, tree.group + group),
                np.where(tree.parent < 0, -1, tree.parent + node),
                tree.first,
                tree.last,
                tree.width,
            )
            for tree, node, group in zip(trees, nodes, groups, strict=False)
        ]
        return cls(
            np.concatenate([tree.leaf for tree in moved]),
            np.concatenate([tree.group for tree in moved]),
            np.concatenate([tree.parent for tree in moved]),
            np.concatenate([tree.first for tree in moved]),
            np.concatenate([tree.last for tree in moved]),
            np.concatenate([tree.width for tree in moved]),
        )

    @property
    def nodes(self) -> int:
        return len(self.parent)

    def roots(self, nodes: np.ndarray) -> np.ndarray:
        """The root above each of these nodes; -1 above -1."""
        found, parent = nodes.copy(), np.append(self.parent, -1)
        while (climbs := parent[found] >= 0).any():
            found[climbs] = parent[found[climbs]]
        return found


def _boxes(matrix: Matrix, group: np.ndarray, person: np.ndarray, k: int) -> ValueTrees:
    """The rows of each group, cut in halves at one column's values, again and again."""
    leaf = np.full(len(group), -1)
    parent: list[int] = []
    width: list[float] = []
    spans: list[tuple[int, int]] = []
    order = np.argsort(group, kind="stable")
    order = order[np.searchsorted(group[order], 0) :]
    ends = np.flatnonzero(np.diff(group[order])) + 1
    place = 0
    for rows in np.split(order, ends) if len(order) else []:
        waiting = [(rows, -1)]
        while waiting:
            rows, node_above = waiting.pop()
            node = len(parent)
            parent.append(node_above)
            costs = span_costs(matrix, rows)
            width.append(float(costs.sum()))
            halves = _halves(matrix, rows, person, costs, k)
            if halves is None:
                leaf[rows] = node
                spans.append((place, place))
                place += 1
            else:
                spans.append((place, -1))
                waiting += [(half, node) for half in halves[::-1]]
    first, last = np.array(spans, dtype=np.int64).reshape(-1, 2).T.copy()
    for node in range(len(parent) - 1, -1, -1):  # a parent stands before its children
        if parent[node] >= 0:
            last[parent[node]] = max(last[parent[node]], last[node])
    above = np.array(parent, dtype=np.int64)
    return ValueTrees(leaf, group, above, first, last, np.array(width, dtype=np.float64))


def _halves(
    matrix: Matrix, rows: np.ndarray, person: np.ndarray, costs: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Rows cut in two of k people each, nearest the middle: by the widest column that allows it."""
    for j in np.argsort(-costs, kind="stable").tolist():
        ordered = rows[np.argsort(matrix.codes[rows, j], kind="stable")]
        before = _people_so_far(person[ordered])[:-1]
        behind = _people_so_far(person[ordered[::-1]])[::-1][1:]
        changes = np.diff(matrix.codes[ordered, j]) > 0
        places = np.flatnonzero(changes & (before >= k) & (behind >= k)) + 1
        if len(places):
            middle = places[np.argmin(np.abs(2 * places - len(rows)))]
            return ordered[:middle], ordered[middle:]
    return None


def _people_so_far(person: np.ndarray) -> np.ndarray:
    """How many people there are among the first rows, for each number of them; (n,) int64."""
    is_new = np.zeros(len(person), dtype=np.int64)
    is_new[np.unique(person, return_index=True)[1]] = 1
    return np.cumsum(is_new)
