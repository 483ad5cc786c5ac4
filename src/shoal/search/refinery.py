"""Where classes are refined: one step after another, over blocks of near classes; and what classes
promise about sensitive values, as every move is asked.

Distances of t-closeness, distinct l-diversity and the greatest share of a value are asked of each
class that a move changes. For any other promise, records change places only with records of the
same values, which breaks none.
"""

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from shoal.data.partition import Matrix, Partition
from shoal.protocols import Promises, PromiseTerms
from shoal.search.clustering import Targets, targets_of
from shoal.search.kernels import near_records, rebuilding
from shoal.search.kernels.class_promises import LARGEST, ClassPromises
from shoal.search.kernels.closeness import VALUES, TargetArrays
from shoal.search.kernels.slots import LANES, NOISE_BITS, SlotClasses
from shoal.search.segments import loss_of, lowest_nodes


@dataclass(frozen=True)
class Asked:
    """What is asked of every class, for n records.

    values: (n, m) int32, with least: (m,) int64 different ones, and share: (m,) float64 at most of
    each, as in `kernels.class_promises`.
    """

    targets: Targets
    values: np.ndarray
    least: np.ndarray
    share: np.ndarray

    def take(self, rows: np.ndarray) -> "Asked":
        """What is asked of classes of some of the records."""
        values = np.ascontiguousarray(self.values[rows])
        return replace(self, targets=self.targets.take(rows), values=values)

    def arrays(self, capacity: int, first: int, end: int) -> ClassPromises:
        """As a kernel takes them, for classes first..end - 1 of up to `capacity` records."""
        layout, several = self.targets.layout, len(self.targets.limit)
        further, classes = len(self.least), end - first
        return ClassPromises(
            TargetArrays(*self.targets.arrays),
            self.values,
            self.least,
            self.share,
            _crossings(self.targets, min(capacity, LARGEST) + 1),
            _spans(self.targets),
            np.empty((further + several, classes * capacity), dtype=np.int64),
            np.zeros((2 * further + several, classes + 1), dtype=np.int64),
            np.zeros(classes),
            np.zeros(capacity + 1, dtype=np.int64),
            np.zeros(int(layout[:, VALUES].max(initial=0)), dtype=np.int64),
            first,
        )


def _crossings(targets: Targets, most: int) -> np.ndarray:
    """`kernels.closeness.crossing_value` of sizes and levels up to `most`."""
    found = np.zeros((len(targets.limit), most + 1, most + 1), dtype=np.int32)
    for s, (tree, _, values, step, pairs, _) in enumerate(targets.layout.tolist()):
        for size in range(1, 0 if tree else most + 1):
            found[s, size, size:] = values
            # the pair that is the ceil(pairs * level / size)-th in rising order has that value
            nth = -(-pairs * np.arange(1, size) // size)
            found[s, size, 1:size] = targets.lookup[step + nth - 1]
    return found


def _spans(targets: Targets) -> np.ndarray:
    """The first and the last leaf under each node of the trees, (2, entries of lookup) int32."""
    spans = np.zeros((2, len(targets.lookup)), dtype=np.int32)
    for tree, _, nodes, step, _, _ in targets.layout.tolist():
        if not tree:
            continue
        parent = targets.lookup[step : step + nodes]
        has_children = np.zeros(nodes, dtype=bool)
        has_children[parent[parent >= 0]] = True
        leaves = np.flatnonzero(~has_children)
        first, last = np.full(nodes, nodes, dtype=np.int64), np.full(nodes, -1, dtype=np.int64)
        above = leaves
        while len(leaves):
            np.minimum.at(first, above, leaves)
            np.maximum.at(last, above, leaves)
            goes_on = parent[above] >= 0
            leaves, above = leaves[goes_on], parent[above[goes_on]]
        spans[0, step : step + nodes], spans[1, step : step + nodes] = first, last
    return spans


def asked_of(matrix: Matrix, promises: Promises) -> Asked | None:
    """What can be asked of single moves; None where that is nothing."""
    if not promises.needs_more_than_k:
        return None
    diverse = [(term, found) for term in promises.terms if (found := _diversity(term)) is not None]
    values = np.zeros((matrix.records, len(diverse)), dtype=np.int32)
    for m, (term, _) in enumerate(diverse):
        values[:, m] = promises.sensitive[term.sensitive[0]].codes
    targets = targets_of(promises, matrix.records)
    if not diverse and not len(targets.limit):
        return None
    return Asked(
        targets,
        values,
        np.array([least for _, (least, _) in diverse], dtype=np.int64),
        np.array([share for _, (_, share) in diverse], dtype=np.float64),
    )


def asked_otherwise(promises: Promises) -> list[PromiseTerms]:
    """The promises besides k that no single move is asked about."""
    return [
        term
        for term in promises.terms
        if term.model not in ("k-anonymity", "t-closeness") and _diversity(term) is None
    ]


def _diversity(term: PromiseTerms) -> tuple[int, float] | None:
    """The fewest values of a class, and the most of it that has one; None for other promises."""
    parameters = term.parameters
    if term.model == "l-diversity" and parameters["kind"] == "distinct":
        return int(parameters["l"]), 1.0
    if term.model == "alpha-k-anonymity" and not parameters["values"]:
        return 1, float(parameters["alpha"])
    return None


# A matrix as the local searches see it: ranks, losses as whole numbers, and who is near.
#
# Losses are counted in units of 1/65,536 of the mean width of the attributes, so that every
# machine makes the same moves.


UNIT = 1 << 16
LARGEST_SUM = 2.0**30  # of all widths: a record's loss fits 32 bits
MOST_LEAVES = 1024  # a tree of up to this number of leaves gets a table of all pairs
DRAWS = 512  # weights of the columns, drawn before they are used


@dataclass(frozen=True)
class SearchSpace:
    """The records of a matrix, and what boxes of them lose.

    rows: (n, columns) int32. layout: (2 + 2 * trees,) int64 and table: int32, as `shape` without
    its first two entries and `table` in `kernels.slots`.
    """

    rows: np.ndarray
    layout: np.ndarray
    table: np.ndarray

    @classmethod
    def of(cls, matrix: Matrix) -> "SearchSpace":
        """All records of a matrix with one record at least."""
        lines = np.flatnonzero(matrix.base < 0).tolist()
        trees = np.flatnonzero(matrix.base >= 0).tolist()
        linear = -(-len(lines) // LANES) * LANES
        columns = linear + -(-len(trees) // LANES) * LANES
        rows = np.zeros((matrix.records, columns), dtype=np.int32)
        unit = _unit(matrix)
        for column, j in enumerate(lines):
            codes = matrix.codes[:, j]
            position = (codes - np.int64(codes.min())) * (matrix.scale[j] * unit)
            rows[:, column] = np.rint(position)
        layout, tables, used = [linear, len(trees)], [np.zeros(0, dtype=np.int32)], 0
        for column, j in enumerate(trees, start=linear):
            values, rows[:, column] = np.unique(matrix.codes[:, j], return_inverse=True)
            apart = matrix.width[lowest_nodes(matrix, j, values[:-1], values[1:])]
            losses = _losses_of_tree(np.rint(apart * unit).astype(np.int32))
            layout += [used, len(values) if len(values) <= MOST_LEAVES else -len(values)]
            tables.append(losses)
            used += len(losses)
        return cls(rows, np.array(layout, dtype=np.int64), np.concatenate(tables))

    @property
    def has_trees(self) -> bool:
        return len(self.layout) > 2

    def shape(self, k: int, capacity: int) -> np.ndarray:
        """As in `kernels.slots`, for classes of k to `capacity` records."""
        return np.concatenate([np.array([k, capacity]), self.layout])

    def order(self, rows: np.ndarray, run: int, rng: np.random.Generator) -> np.ndarray:
        """The numbers of some rows, near ones together in runs of `run`; (m,) int32."""
        order = np.arange(len(rows), dtype=np.int32)
        weights = rng.integers(1 << 10, 1 << 12, (DRAWS, self.layout[:2].sum()))
        stack = np.empty((64, 2), dtype=np.int64)
        reach = np.empty((2, rows.shape[1]), dtype=np.int32)
        near_records.halve(rows, self.shape(0, 0), self.table, weights, run, order, stack, reach)
        return order

    def nearest(
        self, rows: np.ndarray, most: int, run: int, orders: int, rng: np.random.Generator
    ) -> np.ndarray:
        """For each row its nearest others, (m, most) int32; where they are fewer, itself.

        Looked for in several orders, among the `run` rows around it in each.
        """
        near = np.full((len(rows), most), -1, dtype=np.int32)
        distance = np.full((len(rows), most), np.iinfo(np.int32).max, dtype=np.int32)
        room = np.empty((rows.shape[1], run), dtype=np.int32), np.empty((2, run), dtype=np.int32)
        costs = self.shape(0, 0), self.table
        for _ in range(orders):
            order = self.order(rows, run, rng)
            near_records.nearest_by_runs(rows, order, *costs, near, distance, *room)
        return np.where(near < 0, np.arange(len(rows), dtype=np.int32)[:, None], near)

    def side_by_side(self, labels: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
        """The classes' numbers so that near classes have near numbers, (count,) int32."""
        members = np.argsort(labels, kind="stable")
        size = np.bincount(labels, minlength=count)
        starts = np.cumsum(size) - size
        least = np.minimum.reduceat(self.rows[members], starts)
        greatest = np.maximum.reduceat(self.rows[members], starts)
        number = np.empty(count, dtype=np.int32)
        number[self.order(least + (greatest - least) // 2, 1, rng)] = np.arange(
            count, dtype=np.int32
        )
        return number


def mean_loss(matrix: Matrix, partition: Partition) -> float:
    """The mean loss of a record, in mean widths of an attribute."""
    return loss_of(matrix, partition) / max(matrix.records, 1) * _unit(matrix) / UNIT


def _unit(matrix: Matrix) -> float:
    """How many units an attribute's loss of 1 is."""
    widest = matrix.scale * np.ptp(matrix.codes.astype(np.int64), axis=0)
    for j in np.flatnonzero(matrix.base >= 0).tolist():
        widest[j] = matrix.width[matrix.root(j)]
    total = float(widest.sum())
    return min(UNIT * len(widest), LARGEST_SUM) / total if total > 0 else 1.0


def _losses_of_tree(apart: np.ndarray) -> np.ndarray:
    """A tree's part of `table`. apart: (leaves - 1,) int32, loss of each leaf with the next."""
    leaves = len(apart) + 1
    if leaves <= MOST_LEAVES:
        pairs = np.zeros((leaves, leaves), dtype=np.int32)
        for leaf in range(leaves - 1):
            pairs[leaf, leaf + 1 :] = np.maximum.accumulate(apart[leaf:])
        return (pairs + pairs.T).ravel()
    logarithm = np.zeros(leaves, dtype=np.int32)
    level, step = np.append(apart, np.int32(0)), 1
    levels = [logarithm, level]
    while 2 * step < leaves:
        logarithm[2 * step :] += 1
        level = level.copy()
        level[:-step] = np.maximum(level[:-step], level[step:])
        levels.append(level)
        step *= 2
    return np.concatenate(levels)


BLOCK = 4096  # classes that are searched together at most
SPARE = 32  # a block has one free number for each run of this many classes, for rebuilding
DISTINCT = 16  # near records, all different, of a class that is rebuilt
NOISE = np.array(
    [round(-math.log((v + 0.5) / (1 << NOISE_BITS)) * UNIT) for v in range(1 << NOISE_BITS)],
    dtype=np.int64,
)


@dataclass(frozen=True)
class Search:
    """How far a refinement looks.

    steps: how many. sweeps: of a step. hot, cold: first and last temperature, in widths of an
    attribute. resizes, rebuilds: whether the sizes of classes may change, and their number. near,
    run, orders: as `SearchSpace.nearest` takes them. stop: how many steps to make, where that is
    not all; negative: all. cycles: how often the temperature falls, each time over as many sweeps.
    above: the least loss of a class whose records are tried, in mean losses.
    """

    steps: int
    sweeps: int
    hot: float
    cold: float
    resizes: bool
    rebuilds: bool
    near: int = 8
    run: int = 128
    orders: int = 8
    stop: int = -1
    cycles: int = 1
    above: float = 0.0

    def no_hotter(self, most: float) -> "Search":
        """The search, starting at most at the temperature `most` and falling as steeply."""
        if self.hot <= most:
            return self
        return replace(self, hot=most, cold=self.cold * most / self.hot)

    def temperatures(self, step: int) -> np.ndarray:
        """Those of a step's sweeps, in units of loss, and after them the table of -ln u."""
        length = -(-self.steps // self.cycles)
        sweep = np.arange(self.sweeps) + step % length * self.sweeps
        fallen = sweep / max(length * self.sweeps - 1, 1)
        falling = self.hot * (self.cold / self.hot) ** fallen * UNIT
        return np.concatenate([falling.astype(np.int64), NOISE])


def slots_of(rows: np.ndarray, labels: np.ndarray, count: int, capacity: int) -> SlotClasses:
    """Records by class, as kernels move them; classes without members are empty."""
    members = np.argsort(labels, kind="stable")
    size = np.bincount(labels, minlength=count)
    place = np.arange(len(labels)) - np.repeat(np.cumsum(size) - size, size)
    slot = labels[members].astype(np.int64) * capacity + place
    filled = np.zeros((count * capacity, rows.shape[1]), dtype=np.int32)
    filled[slot] = rows[members]
    record = np.full(count * capacity, -1, dtype=np.int32)
    record[slot] = members
    boxes = np.zeros((count, 4, rows.shape[1]), dtype=np.int32)
    loss = np.zeros(count, np.int64)
    return SlotClasses(filled, record, size, loss, boxes, labels.astype(np.int32))


class Refinery:
    """The classes of a matrix on their way.

    bound: (2, n) int32, what ties records to their classes as `kernels.rebuilding` takes it, or
    (2, 0) where nothing does. asked: what every move keeps; then nothing is rebuilt. Equal records
    are interchangeable, so where nothing binds them the outcome does not depend on the order of the
    input.
    """

    def __init__(
        self,
        matrix: Matrix,
        partition: Partition,
        k: int,
        bound: np.ndarray,
        search: Search,
        rng: np.random.Generator,
        asked: Asked | None = None,
    ) -> None:
        self._order = np.lexsort((partition.labels, *matrix.codes.T[::-1]))
        codes = np.ascontiguousarray(matrix.codes[self._order])
        self._space = SearchSpace.of(replace(matrix, codes=codes))
        self._partition = self._before = Partition(partition.labels[self._order], partition.count)
        self._search, self._rng, self._k = search, rng, k
        self._bound = np.ascontiguousarray(bound[:, self._order[: bound.shape[1]]])
        self._asked = None if asked is None else asked.take(self._order)
        self._resizes = search.resizes and not bound.shape[1]
        self._rebuilds = self._resizes and search.rebuilds and asked is None
        rows = self._space.rows
        self._near = self._space.nearest(rows, search.near, search.run, search.orders, rng)
        if self._rebuilds:
            differs = np.append(True, (rows[1:] != rows[:-1]).any(axis=1))
            self._distinct = np.cumsum(differs) - 1  # which distinct row each record has
            different = np.ascontiguousarray(rows[differs])
            self._near_distinct = self._space.nearest(
                different, DISTINCT, search.run, search.orders, rng
            )

    def after(self, step: int) -> Partition:
        """The classes after this step, the steps made in turn."""
        self._before = self._partition
        labels, count = self._partition.labels, self._partition.count
        starts, spare = self._blocks(count)
        number = self._space.side_by_side(labels, count, self._rng)
        number += (np.searchsorted(starts, number, side="right") - 1).astype(np.int32) * spare
        largest = int(np.bincount(labels).max())
        capacity = max(2 * self._k - 1, largest)
        slots = slots_of(
            self._space.rows, number[labels], count + spare * (len(starts) - 1), capacity
        )
        firsts = starts + spare * np.arange(len(starts))
        self._search_blocks(slots, firsts, capacity, step)
        self._partition = Partition.of(slots.class_of)
        found = np.empty_like(labels)
        found[self._order] = self._partition.labels
        return Partition.of(found)

    def go_back(self) -> None:
        self._partition = self._before

    def _blocks(self, count: int) -> tuple[np.ndarray, int]:
        """Where blocks of classes side by side start, and the end; free numbers of each."""
        blocks = -(-count // BLOCK)
        starts = np.arange(blocks + 1) * count // blocks
        return starts, -(-count // blocks // SPARE) if self._rebuilds else 0

    def _search_blocks(
        self, slots: SlotClasses, firsts: np.ndarray, capacity: int, step: int
    ) -> None:
        """Searches every block, some at the same time: they change different classes."""
        # a record moves over only where its class has more than k, here as many as none has
        shape = self._space.shape(self._k if self._resizes else capacity, capacity)
        temperatures = self._search.temperatures(step)
        near = self._near_other_rows() if self._rebuilds else None
        above = round(1024 * self._search.above)
        seeds = self._rng.integers(1, 1 << 63, len(firsts) - 1, dtype=np.uint64)

        def search(block: int) -> None:
            classes = firsts[block], firsts[block + 1]
            own = np.array([seeds[block], *classes, above], dtype=np.uint64)
            costs = shape, self._space.table
            if self._asked is None:
                rebuilding.anneal(*slots, self._near, self._bound, *costs, temperatures, own)
            else:
                rebuilding.anneal_promised(
                    slots,
                    self._asked.arrays(capacity, int(firsts[block]), int(firsts[block + 1])),
                    self._near,
                    self._bound,
                    *costs,
                    temperatures,
                    own,
                )
            if near is not None:
                last = temperatures[self._search.sweeps - 1 :]
                rebuilding.rebuild(*slots, near, *costs, last, own)

        _at_once(search, len(seeds))

    def _near_other_rows(self) -> np.ndarray:
        """Near records of other rows for each record, a random one of each; (n, DISTINCT) int32."""
        drawn = self._rng.permutation(len(self._distinct)).astype(np.int32)
        of_row = np.empty(len(self._near_distinct), dtype=np.int32)
        of_row[self._distinct[drawn]] = drawn
        return of_row[self._near_distinct][self._distinct]


def _at_once(work: Callable[[int], None], tasks: int) -> None:
    """Does tasks 0..tasks-1 on the cores that this process may use."""
    if tasks == 1:
        work(0)
        return
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    with ThreadPoolExecutor(min(cores, tasks)) as threads:
        for _ in threads.map(work, range(tasks)):
            pass
