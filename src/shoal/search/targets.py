"""What t-closeness asks, in the arrays that the kernels of the clustering methods take.

Whole numbers throughout: a class of `size` records has cost = distance * pairs * size * span, as
the auditor computes it, but here records are counted and not (subject, value) pairs. So where
subjects have several records a class that looks close enough may fail; `Promises.holds` has the
last word.
"""

from dataclasses import dataclass, replace

import numpy as np

from shoal.data.classes import Closeness, SensitiveColumn
from shoal.protocols import Promises

SPARSE = 8
"""Cells are sorted where there may be more than this many times as many; counting is faster."""

UNSURE = 1e-9
"""Distances are floats here: who exceeds a limit by less is asked exactly."""


@dataclass(frozen=True)
class Targets:
    """Distances to the whole table on S sensitive attributes, and how far is allowed.

    codes: (n, S) int32, value of each record, or its leaf.
    layout: (S, 6) int64: 1 for a tree, 0 for ordered values; where the attribute starts in
        `prefix_sums`; its values or nodes; where it starts in `lookup`; pairs in the whole table;
        greatest distance.
    prefix_sums: int64. Ordered: m + 1 prefix sums of the cumulative counts of the table. Tree:
        records below each node, then the length of the edge above each node.
    lookup: int32. Ordered: value of the i-th pair in ascending order. Tree: parent of each node.
    limit: (S,) float64, the greatest distance allowed, each t.
    """

    columns: tuple[SensitiveColumn, ...]
    codes: np.ndarray
    layout: np.ndarray
    prefix_sums: np.ndarray
    lookup: np.ndarray
    limit: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """As every kernel takes them."""
        return self.codes, self.layout, self.prefix_sums, self.lookup, self.limit

    def take(self, rows: np.ndarray) -> "Targets":
        return replace(self, codes=np.ascontiguousarray(self.codes[rows]))

    def too_far(self, labels: np.ndarray, count: int) -> np.ndarray:
        """Classes that are surely farther than any limit allows, (count,) bool: records are
        counted, so that it says nothing of people with several.

        labels: (n,) int32, -1 for records in none.
        """
        rows = np.flatnonzero(labels >= 0)
        return self.take(rows).excesses(labels[rows], count) > UNSURE

    def excesses(self, labels: np.ndarray, count: int) -> np.ndarray:
        """The greatest distance - limit of each class over the attributes, (count,) float64; -1
        where nothing is asked.

        labels: (n,) int32, the class of each record.
        """
        sizes = np.bincount(labels, minlength=count)
        excess = np.full(count, -1.0)
        for s, (tree, _, _, _, pairs, span) in enumerate(self.layout.tolist()):
            cost = (self._tree_costs if tree else self._order_costs)(s, labels, sizes)
            apart = cost / (float(pairs) * np.maximum(sizes, 1) * span)
            np.maximum(excess, apart - self.limit[s], out=excess)
        return excess

    def _order_costs(self, s: int, labels: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """What the runs between the values of each class cost, see `kernels.closeness`."""
        _, first, values, step, pairs, _ = self.layout[s].tolist()
        sums = self.prefix_sums[first : first + values + 1]
        starts = np.cumsum(sizes + 1) - (sizes + 1)
        size = np.repeat(sizes, sizes + 1)
        level = np.arange(len(size)) - np.repeat(starts, sizes + 1)
        begin = np.zeros(len(size), dtype=np.int64)
        begin[level > 0] = self.codes[np.lexsort((self.codes[:, s], labels)), s]
        end = np.append(begin[1:], values)
        end[level == size] = values
        nth = -(-pairs * level // np.maximum(size, 1))
        crossing = self.lookup[step + np.maximum(nth, 1) - 1].astype(np.int64)
        crossing[level == size] = values
        crossing[level == 0] = 0
        crossing = np.clip(crossing, begin, end)
        cost = pairs * level * (2 * crossing - begin - end)
        cost += size * (sums[end] - 2 * sums[crossing] + sums[begin])
        return np.add.reduceat(cost, starts)

    def _tree_costs(self, s: int, labels: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """What the nodes above the records of each class cost."""
        _, first, nodes, step, pairs, _ = self.layout[s].tolist()
        parent = self.lookup[step : step + nodes]
        covered, edge = self.prefix_sums[first : first + 2 * nodes].reshape(2, nodes)
        cell, held = _counted(labels.astype(np.int64) * nodes + self.codes[:, s])
        cells, counts = [cell], [held]
        # a class holds far fewer nodes than records
        while len(cell):
            row, node = np.divmod(cell, nodes)
            node = parent[node]
            cell, held = (row * nodes + node)[node >= 0], held[node >= 0]
            cells.append(cell)
            counts.append(held)
        found, held = _counted(np.concatenate(cells), np.concatenate(counts))
        row, node = np.divmod(found, nodes)
        cost = np.zeros(len(sizes), dtype=np.int64)
        beyond = np.maximum(0, pairs * held - sizes[row] * covered[node])
        np.add.at(cost, row, edge[node] * beyond)
        return cost


def _counted(cells: np.ndarray, held: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The different whole numbers, rising, and how often each occurs, or what it holds in all."""
    if cells.max(initial=0) > SPARSE * len(cells):
        found, place = np.unique(cells, return_inverse=True)
        return found, np.bincount(place, held).astype(np.int64)
    sums = np.bincount(cells, held).astype(np.int64)
    found = np.flatnonzero(sums)
    return found, sums[found]


def targets_of(promises: Promises, records: int) -> Targets:
    """What the promises ask; those that know nothing of closeness may leave it out."""
    return targets_for(promises.closeness, records)


def targets_for(asked: tuple[Closeness, ...], records: int) -> Targets:
    """The arrays for these attributes; for none, nothing is ever too far."""
    layout = []
    prefix_sums = [np.zeros(0, dtype=np.int64)]
    lookup = [np.zeros(0, dtype=np.int32)]
    first_sum = first_lookup = 0
    for target in asked:
        tree, values, sums, own, span = _arrays_of(target)
        pairs = int(target.frequencies.sum())
        layout.append([tree, first_sum, values, first_lookup, pairs, span])
        prefix_sums.append(sums.astype(np.int64))
        lookup.append(own.astype(np.int32))
        first_sum += len(sums)
        first_lookup += len(own)
    codes = np.zeros((records, len(asked)), dtype=np.int32)
    for s, target in enumerate(asked):
        codes[:, s] = target.column.codes
    return Targets(
        tuple(target.column for target in asked),
        codes,
        np.array(layout, dtype=np.int64).reshape(len(asked), 6),
        np.concatenate(prefix_sums),
        np.concatenate(lookup),
        np.array([target.t for target in asked], dtype=np.float64),
    )


def _arrays_of(target: Closeness) -> tuple[int, int, np.ndarray, np.ndarray, int]:
    """Whether a tree, values or nodes, `prefix_sums`, `lookup` and the greatest distance."""
    frequencies, column = target.frequencies, target.column
    values = len(frequencies)
    if column.distance == "ordered":
        sums = np.concatenate(([0], np.cumsum(np.cumsum(frequencies))))
        return 0, values, sums, np.repeat(np.arange(values), frequencies), max(values - 1, 1)
    if column.distance == "hierarchical" and column.hierarchy is not None:
        tree = column.hierarchy
        running = np.concatenate(([0], np.cumsum(frequencies)))
        covered = running[tree.last + 1] - running[tree.first]
        edge = np.where(tree.parent >= 0, tree.levels[tree.parent] - tree.levels, 0)
        return (
            1,
            len(tree.parent),
            np.concatenate((covered, edge)),
            tree.parent,
            max(tree.height, 1),
        )
    covered = np.append(frequencies, frequencies.sum())
    edge = np.append(np.ones(values), 0)
    return 1, values + 1, np.concatenate((covered, edge)), np.append(np.full(values, values), -1), 1


def least_size(targets: Targets, k: int, records: int) -> int:
    """The least size from k on at which no attribute excludes that a class is close enough.

    In a class of g records every share is a multiple of 1/g. So its distance is at least the sum of
    what each cumulative share of the table (ordered) or share below a node (tree) lies from the
    nearest multiple; for ordered values that are all different it is (n + g)(n - g) / (4n(n - 1)g)
    and somewhat more where g does not divide n (Soria-Comas and others 2015, proposition 1).
    """
    size = max(k, 1)
    while size < records:
        if all(
            _least_distance(targets, s, size) <= targets.limit[s] for s in range(len(targets.limit))
        ):
            return size
        size += max(1, size // 32)
    return records


def _least_distance(targets: Targets, s: int, size: int) -> float:
    tree, first, values, _, pairs, span = targets.layout[s].tolist()
    sums = targets.prefix_sums
    if tree:
        share = sums[first : first + values] * size / pairs
        apart = np.abs(share - np.rint(share)) * sums[first + values : first + 2 * values] / 2
    else:
        share = np.diff(sums[first : first + values + 1]) * size / pairs
        apart = np.abs(share - np.rint(share))
    return max(float(apart.sum()) / (size * span) - 1e-9, 0.0)
