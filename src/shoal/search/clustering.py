"""What the clustering methods share: records as points, for distances between records and means of
classes, and what t-closeness asks, in the arrays that their kernels take.

A linear attribute is one coordinate. A hierarchy gets a coordinate for every node below its root:
half of what the squared width falls from the parent to the node, its root taken. So the squared
distance between two leaves is the squared width of the lowest node over both, the same as for a
number that is as far apart, and a mean of such points is a mean of shares.
Reading: hierarchies with more than `MOST` nodes keep the coordinates of largest variance.

What t-closeness asks is in whole numbers throughout: a class of `size` records has cost = distance
* pairs * size * span, as the auditor computes it, but here records are counted and not (subject,
value) pairs. So where subjects have several records a class that looks close enough may fail;
`Promises.holds` has the last word.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from shoal.data.classes import Closeness, SensitiveColumn
from shoal.data.partition import Matrix, Partition
from shoal.protocols import Promises
from shoal.search.kernels import value_chains
from shoal.search.kernels.closeness import ENOUGH

SPARSE = 8
"""Cells are sorted where there may be more than this many times as many; counting is faster."""

UNSURE = 1e-9
"""Distances are floats here: who exceeds a limit by less is asked exactly."""
MOST = 32
"""Coordinates of one hierarchy at most."""

FEW, HELD = 16, 0.98
"""Points of more coordinates go to principal axes; the share of their variance that these hold."""

SCALE = {
    "help": (
        "how attributes are made comparable: each by its standard deviation, by domain and weight"
        " as losses are, or not at all, so that large numbers count most"
    ),
    "choices": ("deviation", "range", "raw"),
}


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


# Records as points.


def points_of(matrix: Matrix, scale: str) -> np.ndarray:
    """The quasi-identifiers as points, (coordinates, n) float64, C-contiguous.

    deviation: every attribute that costs anything has variance 1 in all. range: distances are
    losses. raw: distances are those of the numbers as they are, but for one factor, the same for
    all attributes; hierarchies have a width of 1.
    """
    blocks = []
    for j in range(matrix.attributes):
        codes = matrix.codes[:, j]
        if matrix.base[j] < 0:
            block = codes[None, :] * (_unit_of(matrix, j) if scale == "raw" else matrix.scale[j])
        else:
            nodes = matrix.nodes_of(j)
            parent = np.where(matrix.parent[nodes] < 0, -1, matrix.parent[nodes] - nodes.start)
            block = tree_coordinates(codes, parent, matrix.width[nodes])
        blocks.append(_standardised(block) if scale == "deviation" else block)
    return np.ascontiguousarray(_together(blocks) if scale == "raw" else np.concatenate(blocks))


def principal(points: np.ndarray) -> np.ndarray:
    """The points on the fewest principal axes that hold `HELD` of their variance; as they are where
    that saves little.

    Hierarchies have a coordinate for every node, many of which hardly vary: fewer make every
    distance cheaper.
    """
    coordinates, records = points.shape
    if coordinates <= FEW:
        return points
    centred = points - points.mean(axis=1, keepdims=True)
    variance, axes = np.linalg.eigh(centred @ centred.T / max(records, 1))
    held = np.cumsum(variance[::-1]) / max(float(variance.sum()), 1e-300)
    kept = max(int(np.searchsorted(held, HELD)) + 1, 1)
    if 2 * kept > coordinates:
        return points
    # rounded, so that what is equal up to the last bits is equal on any computer
    return np.ascontiguousarray(np.round(axes[:, ::-1][:, :kept].T @ centred, 9))


def sensitive_points(
    columns: tuple[SensitiveColumn, ...], codes: np.ndarray, scale: str = "deviation"
) -> np.ndarray:
    """The sensitive attributes as points, (coordinates, n) float64; each has variance 1 in all,
    unless the scale is raw.

    codes: (n, attributes), the value of each record. Numbers are themselves, ordinals their places;
    hierarchies and plain categories as trees.
    """
    blocks = [np.zeros((1, len(codes)))]
    for s, column in enumerate(columns):
        if column.distance == "ordered":
            block = _numbers_of(column)[codes[:, s]][None, :]
        elif column.distance == "hierarchical" and column.hierarchy is not None:
            tree = column.hierarchy
            block = tree_coordinates(codes[:, s], tree.parent, tree.levels / max(tree.height, 1))
        else:
            parent = np.append(np.full(column.values, column.values), -1)
            block = tree_coordinates(codes[:, s], parent, np.append(np.zeros(column.values), 1.0))
        blocks.append(block if scale == "raw" else _standardised(block))
    blocks = blocks[1:] or blocks
    return np.ascontiguousarray(_together(blocks) if scale == "raw" else np.concatenate(blocks))


def tree_coordinates(codes: np.ndarray, parent: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Coordinates of leaves: squared distances are the squared width of the lowest common node.

    codes: (n,) leaves. parent: (nodes,) -1 at the root. width: (nodes,) rising towards the root.
    """
    ways = _ways_up(codes, parent)
    share = sum(np.bincount(nodes[nodes >= 0], minlength=len(parent)) for nodes in ways) / max(
        len(codes), 1
    )
    falling = np.zeros(len(parent))
    below = np.flatnonzero(parent >= 0)
    falling[below] = np.maximum(width[parent[below]] ** 2 - width[below] ** 2, 0.0) / 2
    kept = np.argsort(-share * (1 - share) * falling, kind="stable")[:MOST]
    kept = np.sort(kept[(share * (1 - share) * falling)[kept] > 0])
    coordinate = np.full(len(parent), -1)
    coordinate[kept] = np.arange(len(kept))
    points = np.zeros((max(len(kept), 1), len(codes)))
    for nodes in ways:
        rows = np.flatnonzero((nodes >= 0) & (coordinate[nodes] >= 0))
        points[coordinate[nodes[rows]], rows] = np.sqrt(falling[nodes[rows]])
    return points


def _ways_up(codes: np.ndarray, parent: np.ndarray) -> list[np.ndarray]:
    """The node of each record at every step from its leaf up to the root, -1 beyond; (n,) each."""
    ways = [codes.astype(np.int64)]
    while (ways[-1] >= 0).any():
        ways.append(np.where(ways[-1] >= 0, parent[ways[-1]], -1))
    return ways[:-1]


def _unit_of(matrix: Matrix, j: int) -> float:
    """What a step of the codes of linear attribute j is worth; nothing where it costs nothing."""
    if not matrix.scale[j]:
        return 0.0
    return float(matrix.unit[j]) if len(matrix.unit) else 1.0


def _together(blocks: list[np.ndarray]) -> np.ndarray:
    """All divided by one number, so that an attribute has variance 1 on average.

    Whoever weighs squared errors against distances to the table then need not know the scale.
    """
    whole = _standardised(np.concatenate(blocks))
    return whole * np.sqrt(len(blocks))


def _standardised(block: np.ndarray) -> np.ndarray:
    """The block with variance 1 summed over the coordinates; zeros where nothing varies."""
    centred = block - block.mean(axis=1, keepdims=True) if block.shape[1] else block
    variance = float((centred**2).sum()) / max(block.shape[1], 1)
    return centred / np.sqrt(variance) if variance > 0 else np.zeros_like(block)


def _numbers_of(column: SensitiveColumn) -> np.ndarray:
    """The number behind each place; missing values lie beyond the greatest by the range of all."""
    if column.numbers is None:
        return np.arange(column.values, dtype=np.float64)
    known = column.numbers[np.isfinite(column.numbers)]
    beyond = 2 * known.max() - known.min() if len(known) else 0.0
    return np.where(np.isfinite(column.numbers), column.numbers, beyond)


# Large tables in blocks: cut first, then cluster every block by itself.
#
# A block is half of a larger one, cut at the median of the coordinate that varies most. Where
# t-closeness is asked, a cut must leave both halves within half of t of the whole table, so that
# classes inside a block can come close to it; where no coordinate allows that, records are dealt
# to the halves in turn, in the order of their sensitive values, so that both are distributed as
# the whole.


Cluster = Callable[[np.ndarray, np.ndarray, Targets], np.ndarray]
"""`cluster(points, subject_ids, targets)`: the class of each record of a block, numbered from 0."""

BLOCK = {
    "help": "records clustered together, 8k at least: larger is slower and loses less; 0 is all",
    "low": 0,
}

CANDIDATES = {
    "help": "nearest records tried to bring a class within t; 0 is all, as printed",
    "low": 0,
}


def in_blocks(
    matrix: Matrix, points: np.ndarray, targets: Targets, block: int, k: int, cluster: Cluster
) -> np.ndarray:
    """The class of each record when every block is clustered by itself, (n,) int32."""
    blocks = rows_of_blocks(points, targets, block, k)
    if len(blocks) == 1:
        return cluster(points, people_of(matrix), targets)
    labels = np.full(matrix.records, -1, dtype=np.int32)
    count = 0
    for rows in blocks:
        people = people_of(matrix.take(rows))
        own = cluster(np.ascontiguousarray(points[:, rows]), people, targets.take(rows))
        labels[rows] = own + count
        count = int(labels[rows].max()) + 1
    return labels


def people_of(matrix: Matrix) -> np.ndarray:
    """The person of each record, (n,) int32; empty where each is its own."""
    return np.zeros(0, dtype=np.int32) if matrix.subjects is None else matrix.subjects


def rows_of_blocks(points: np.ndarray, targets: Targets, block: int, k: int) -> list[np.ndarray]:
    """The rows of each block as the parameter `block` asks; all in one where that is all."""
    most = max(block, 8 * k)
    if block <= 0 or points.shape[1] <= most:
        return [np.arange(points.shape[1])]
    return blocks_of(points, targets, most, k)


def blocks_of(points: np.ndarray, targets: Targets, most: int, size: int) -> list[np.ndarray]:
    """The rows of each block, rising; none has more than `most`, at least 4 * size.

    All blocks but one hold a multiple of `size`, so that they make no fewer classes than the whole
    would.
    """
    waiting, blocks = [np.arange(points.shape[1])], []
    stricter = replace(targets, limit=targets.limit / 2)
    while waiting:
        rows = waiting.pop()
        if len(rows) <= most:
            blocks.append(rows)
            continue
        half = len(rows) // 2 // size * size
        chosen = _half(np.ascontiguousarray(points[:, rows]), stricter.take(rows), half)
        waiting += [rows[~chosen], rows[chosen]]
    return blocks


def _half(points: np.ndarray, targets: Targets, half: int) -> np.ndarray:
    """Which records go to a part of `half` records, (n,) bool."""
    records = points.shape[1]
    for j in np.argsort(-points.var(axis=1), kind="stable"):
        chosen = np.zeros(records, dtype=bool)
        chosen[np.argsort(points[j], kind="stable")[:half]] = True
        if not len(targets.limit):
            return chosen
        if (targets.excesses(chosen.astype(np.int32), 2) <= 0).all():
            return chosen
    chosen = np.zeros(records, dtype=bool)
    chosen[np.lexsort((points[0], *targets.codes.T))[np.arange(half) * records // half]] = True
    return chosen


# Classes that are too far from the whole table merge until each is close enough.
#
# Soria-Comas, Domingo-Ferrer, Sanchez, Martinez. t-closeness through microaggregation: strict
# privacy with enhanced utility preservation. IEEE TKDE 27(11):3098-3110, 2015. Algorithm 1, its
# second half.


def merged(points: np.ndarray, labels: np.ndarray, targets: Targets) -> Partition:
    """The classes after merging the farthest with its nearest until all are close enough."""
    classes = int(labels.max()) + 1
    if (targets.excesses(labels, classes) <= ENOUGH).all():
        return Partition.of(labels)
    return Partition.of(value_chains.merge_far(points, labels, classes, *targets.arrays))
