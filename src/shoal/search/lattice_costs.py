"""What a node of the lattice costs, by each metric, and its floor."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shoal.data.numbers import exact_sum
from shoal.data.partition import Matrix
from shoal.errors import InputError
from shoal.search.kernels import distinct_rows as kernel

# The levels of every attribute's hierarchy, as tables of codes.


Node = tuple[int, ...]


class NodeGroups(NamedTuple):
    """The classes of a node. first: (c,) int32 a record of each; size: (c,) int32 its records."""

    first: np.ndarray
    size: np.ndarray


@dataclass(frozen=True)
class Levels:
    """Every level of every attribute, as tables over codes.

    codes: (n, d) int32 of the records and then of all populations, dense enough to index tables.
    span: groups of each code; that of code c of attribute j at a level is span[place[j][level] +
    c].
    groups: how many there are, by attribute and level.
    values: for each attribute, the matrix's code behind each code; present: how many records have
    it.
    nodes: for each tree, (levels, codes) int32 the node of each code; None for other attributes.
    """

    codes: np.ndarray
    span: np.ndarray
    place: tuple[np.ndarray, ...]
    groups: tuple[np.ndarray, ...]
    values: tuple[np.ndarray, ...]
    present: tuple[np.ndarray, ...]
    nodes: tuple[np.ndarray | None, ...]

    @classmethod
    def of(cls, matrix: Matrix) -> "Levels":
        codes, values = _dense(matrix)
        records = codes[: matrix.records]
        spans: list[np.ndarray] = []
        place, groups, present = [], [], []
        nodes: list[np.ndarray | None] = []
        room = 0
        for j in range(matrix.attributes):
            levels = int(matrix.heights[j]) + 1
            if matrix.is_tree(j):
                numbered, number = _numbered(matrix, j)
                leaf = np.minimum(values[j], matrix.leaves(j))
                spans += [row[leaf] for row in number]
                nodes.append(np.take(numbered, leaf, axis=1))
                groups.append(number[:, -1] + 1)
            else:
                starts = [matrix.starts_at(j, level) for level in range(levels)]
                spans += [np.searchsorted(s, values[j], side="right") - 1 for s in starts]
                nodes.append(None)
                groups.append(np.array([len(s) for s in starts]))
            place.append(room + len(values[j]) * np.arange(levels))
            counted = np.bincount(records[:, j], weights=matrix.count, minlength=len(values[j]))
            present.append(counted.astype(np.int64, copy=False))
            room += len(values[j]) * levels
        flat = np.concatenate(spans).astype(np.int32) if spans else np.zeros(0, np.int32)
        return cls(
            codes, flat, tuple(place), tuple(groups), tuple(values), tuple(present), tuple(nodes)
        )

    def at(self, j: int, level: int) -> np.ndarray:
        """The group of each code of attribute j at a level."""
        start = self.place[j][level]
        return self.span[start : start + len(self.present[j])]


def _numbered(matrix: Matrix, j: int) -> tuple[np.ndarray, np.ndarray]:
    """The node of each leaf of a tree at each level, and its number there; (levels, leaves + 1).

    The last column is of what only people of a population have, who lack the value: nothing below
    the whole domain covers it.
    """
    nodes = matrix.nodes_by_level(j)
    nodes = np.column_stack([nodes, nodes[:, -1]])
    begins = matrix.first[nodes] == np.arange(nodes.shape[1])
    begins[:, -1] = True
    begins[-1] = np.arange(nodes.shape[1]) == 0  # the whole domain, whatever the tree says
    return nodes, np.cumsum(begins, axis=1, dtype=np.int32) - 1


def _dense(matrix: Matrix) -> tuple[np.ndarray, list[np.ndarray]]:
    """Codes that index short tables, and by attribute the matrix's code behind each of them."""
    given = matrix.codes
    if matrix.populations:
        given = np.concatenate([given, *matrix.populations.values()])
    codes, values = given, []
    for j in range(matrix.attributes):
        whole = int(given[:, j].max(initial=0)) + 1
        if whole <= 2 * matrix.total + (1 << 17):
            values.append(np.arange(whole))
            continue
        distinct, ranks = np.unique(given[:, j], return_inverse=True)
        codes = codes.copy() if codes is given else codes
        codes[:, j] = ranks
        values.append(distinct)
    return codes, values


GEOMETRIC = "loss-geometric"
METRICS = (
    "loss",
    GEOMETRIC,
    "discernibility",
    "discernibility-star",
    "average-class-size",
    "height",
    "precision",
    "entropy",
    "ambiguity",
)


class LatticeCosts:
    """A metric, made ready for the nodes of one lattice.

    means: for each attribute, the part of a node's floor that its level alone tells; (levels,).

    `loss-geometric` counts in logarithms, in which it adds up over the attributes; `reported` turns
    them into the metric. As the logarithm is concave, what suppression adds at a node is still
    added at every finer one, where less is lost and as much or more is added.
    """

    def __init__(self, matrix: Matrix, levels: Levels, metric: str, k: int) -> None:
        if metric not in METRICS:
            raise InputError(f"metric must be one of {', '.join(METRICS)}")
        self.metric, self.levels, self.records, self.k = metric, levels, max(matrix.total, 1), k
        self.means: list[np.ndarray] = []
        self.values = np.zeros(0)
        tables, tops = [], []
        for j in range(matrix.attributes):
            table = _TABLES[metric](matrix, levels, j) if metric in _TABLES else None
            if table is None:
                self.means.append(
                    np.arange(len(levels.place[j]), dtype=np.float64) * (metric == "height")
                )
                continue
            tables.append(table)
            tops.append(table[-1, levels.present[j] > 0].max(initial=0.0))
        if metric == "ambiguity":
            self.values = np.concatenate([t.ravel() for t in tables])
            self.top = float(np.prod(tops))
            self.means = [np.zeros(len(place)) for place in levels.place]
        elif metric == GEOMETRIC:
            self._geometric(matrix.whole, tables)
        elif tables:
            self._additive(tables)

    def _additive(self, tables: list[np.ndarray]) -> None:
        """Costs that add up over cells: a mean by level; suppressed cells cost as the root."""
        weights = [count / self.records for count in self.levels.present]
        # not a matrix product: its threads cost more than they save, and add up in any order
        spent = [
            (table * weight).sum(axis=1) for table, weight in zip(tables, weights, strict=True)
        ]
        whole = exact_sum(float(costs[-1]) for costs in spent) or 1.0
        self.means = [costs / whole for costs in spent]
        drops = [(table[-1] - table).ravel() for table in tables]
        self.values = np.concatenate(drops) / whole / self.records

    def _geometric(self, weights: np.ndarray, tables: list[np.ndarray]) -> None:
        """The logarithm of the mean of 1 + loss by weights, 0 where there is nothing to lose."""
        each = np.where(weights > 0, weights, 1.0)
        self.exponents = weights / (weights.sum() or 1.0)
        self.losses = [
            (table * (count / self.records)).sum(axis=1) / w
            for table, count, w in zip(tables, self.levels.present, each, strict=True)
        ]
        self.means = [e * np.log1p(x) for e, x in zip(self.exponents, self.losses, strict=True)]
        drops = [((t[-1] - t) / w).ravel() for t, w in zip(tables, each, strict=True)]
        self.values = np.concatenate(drops) / self.records

    def reported(self, score: float) -> float:
        """A score as the metric itself has it."""
        return float(np.expm1(score)) if self.metric == GEOMETRIC else score

    def alone(self, classes: NodeGroups, node: Node, chosen: np.ndarray) -> np.ndarray:
        """What each of some classes would add to the score if it alone were suppressed, (m,).

        Up to what is the same for all of them; of `loss-geometric` nearly.
        """
        size = classes.size[chosen].astype(np.float64)
        if self.metric in ("height", "average-class-size") or "discern" in self.metric:
            discerned = size * (self.records - size)
            return discerned if self.metric == "discernibility" else np.zeros(len(chosen))
        place = [int(self.levels.place[j][level]) for j, level in enumerate(node)]
        codes = self.levels.codes[classes.first[chosen]]
        parts = [self.values[at + codes[:, j]] for j, at in enumerate(place)]
        if self.metric == "ambiguity":
            return size * (self.top - np.prod(parts, axis=0))
        if self.metric == GEOMETRIC:
            steeps = [
                e / (1.0 + x[level])
                for e, x, level in zip(self.exponents, self.losses, node, strict=True)
            ]
            parts = [steep * part for steep, part in zip(steeps, parts, strict=True)]
        return size * np.add.reduce(parts, axis=0)

    def _geometric_penalty(self, classes: NodeGroups, node: Node, failing: np.ndarray) -> float:
        gone = np.flatnonzero(failing)
        codes, size = self.levels.codes[classes.first[gone]], classes.size[gone]
        total = 0.0
        for j, level in enumerate(node):
            part = self.values[self.levels.place[j][level] + codes[:, j]]
            more, lost = float((part * size).sum()), float(self.losses[j][level])
            total += float(self.exponents[j]) * float(np.log1p(more / (1.0 + lost)))
        return total

    def of(
        self, classes: NodeGroups, node: Node, failing: np.ndarray, suppressed: int
    ) -> tuple[float, float]:
        """Floor and penalty of a node."""
        levels, n = self.levels, self.records
        size = classes.size.astype(np.float64)
        if self.metric == "average-class-size":
            kept = len(size) - int(failing.sum()) + (suppressed > 0)
            floor = n / len(size) / self.k
            return floor, n / max(kept, 1) / self.k - floor
        if self.metric.startswith("discernibility"):
            penalty = float((size[failing] * (n - size[failing])).sum())
            return float(size @ size), penalty if self.metric == "discernibility" else 0.0
        place = np.array([levels.place[j][level] for j, level in enumerate(node)], dtype=np.int64)
        if self.metric == "ambiguity":
            total, failed = kernel.multiplied(levels.codes, *classes, failing, self.values, place)
            return total / n, (suppressed * self.top - failed) / n
        floor = exact_sum(
            float(means[level]) for means, level in zip(self.means, node, strict=True)
        )
        if self.metric == "height" or not suppressed:
            return floor, 0.0
        if self.metric == GEOMETRIC:
            return floor, self._geometric_penalty(classes, node, failing)
        return floor, float(kernel.summed(levels.codes, *classes, failing, self.values, place))


def _losses(matrix: Matrix, levels: Levels, j: int) -> np.ndarray:
    """Normalised width of every code's span, (levels, codes)."""
    nodes = levels.nodes[j]
    if nodes is None:
        return np.array([[0.0], [matrix.whole[j]]]) * np.ones(len(levels.present[j]))
    return matrix.width[nodes]


def _precision(matrix: Matrix, levels: Levels, j: int) -> np.ndarray:
    """Level over height (Sweeney 2002), (levels, codes)."""
    height = int(matrix.heights[j])
    steps = np.arange(height + 1) / max(height, 1) * matrix.whole[j]
    return steps[:, None] * np.ones(len(levels.present[j]))


def _entropies(matrix: Matrix, levels: Levels, j: int) -> np.ndarray:
    """Bits lost by telling only the span (Gionis, Tassa 2009), by how often values occur."""
    present = levels.present[j].astype(np.float64)
    counts = []
    for level in range(int(matrix.heights[j]) + 1):
        group = levels.at(j, level)
        counts.append(np.bincount(group, weights=present)[group])
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = np.log2(np.array(counts)) - np.log2(present)
    return np.where(present > 0, bits, 0.0) * matrix.whole[j]


def _breadths(matrix: Matrix, levels: Levels, j: int) -> np.ndarray:
    """Values that a cell may stand for (Goldberger, Tassa 2010), (levels, codes)."""
    nodes = levels.nodes[j]
    if nodes is None:
        whole = max(matrix.reach[j] + 1, len(np.unique(matrix.codes[:, j])))
        return np.array([[1.0], [whole]]) * np.ones(len(levels.present[j]))
    return matrix.last[nodes] - matrix.first[nodes] + 1.0


_TABLES = {
    "loss": _losses,
    GEOMETRIC: _losses,
    "precision": _precision,
    "entropy": _entropies,
    "ambiguity": _breadths,
}
