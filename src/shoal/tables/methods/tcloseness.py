"""t-closeness by exchange: classes as small as t allows, which then trade records to become
compact.

Ours, not from a paper. Methods that gather near records first (k-anonymity first) lose where t is
tight, methods that spread every class over the sensitive values (k-means++ clustering, t-closeness
first) lose where t is loose. This one starts spread, where t holds, and lets pairs of classes
exchange records as long as the squared error falls and t still holds: it ends as compact as t
allows.
Promise: every class holds k people and is within t of the whole table on every sensitive attribute.
1. The size of classes is the least that the sensitive values allow: k, or more where even the best
   conceivable class of that size is too far (on each attribute, every cumulative share of a class
   of g records is a multiple of 1/g).
2. Records are cut into cells by their quasi-identifiers while cells stay within half of t, and
   dealt to the classes of their cell in the order of a sensitive attribute.
3. Classes exchange records while squared error + weight * excess falls; the excess is the sum of
   what distances exceed t by. The change of both takes O(1), whatever the size of class and table.
4. Where many classes still fail, classes start larger, in growing steps and then back; where few
   do, the worst are dissolved: each of their records joins the class where it costs least, and the
   exchange goes on.
Without t-closeness among the promises, MDAV's classes are improved by exchange.
Exchanging keeps classes compact around their means, which are not all that a reader sees: with
`aim="spans"` the table is also cut under the same promises, by lattice peeling where a hierarchy
has several steps, else by the rounded partition, and what publishes the narrower cells is taken.
Cutting wins where t is loose, exchanging where it is tight: where many classes of k records drawn
at random are too far, cutting loses more by a fifth at least (Adult, k = 5 to 50) and is left out.
Few quasi-identifiers are an exception: where most records that are alike are classes that hold as
they are, little needs coarsening, so the table is cut by lattice peeling first, as small tables
are.
Where each move can be asked for all promises, exchanging is kept short and the narrower classes are
annealed (`search.refinement`).
"""

from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from shoal.data import numbers, option
from shoal.data.partition import Matrix, Partition
from shoal.data.progress import Progress
from shoal.errors import InfeasibleError
from shoal.protocols import Promises, SearchingPartitioner
from shoal.search import clustering as geometry
from shoal.search import refinement
from shoal.search.clustering import Targets, least_size, targets_of
from shoal.search.efforts import Effort
from shoal.search.segments import costs_of, loss_of, repair, require_people
from shoal.tables.kernels import around_extremes, exchange, unassigned_pool
from shoal.tables.methods.lattice_peeling import LatticePeeling
from shoal.tables.methods.rounded_partition import RoundedPartition
from shoal.tables.twins import by_twins, cut_apart, has_twins, is_large, short_search

TRADE_OFF, MUST = 5e3, 5e7
"""What an excess of 1 weighs, in mean squared errors of a record: at first, and where it has to go.
"""


AUTO = Effort("auto", seconds=1, steps=0, stop=-1, resizes=True)

NEAR = 1.1
"""Of exchanged and cut classes, those that lose more than the least by this factor are given up."""

FEW, SAMPLE, SPARE = 4, 2_000, 8
"""In short: near classes and rounds; records of a sample, and how much larger than there classes
are on all records, one part in this number.
"""

ROOM = 1.6
"""In short: times as large as k classes start, since records move more freely between larger ones.
"""

TIGHT = 0.75
"""Tables are not cut where less than this share of classes drawn at random would hold."""

LOOSE, TOGETHER = 0.3, 3_000
"""Large tables are cut for k first where less than this share of classes then fails, and exchange
this number of classes at a time.
"""

SMALL = 5_000
"""Records up to which the table is always cut, too, with all of that method's effort."""

MOSTLY = 0.85
"""Where so large a part of the records is in classes that hold before anything is coarsened, the
table is cut, too (Adult with 1 to 5 quasi-identifiers: with less, cutting lost more in all cases
but one, which it would have served by 5 %).
"""

SETTLED = 500
"""Exchanging ends where a round moves less than one record in this number."""


@dataclass(frozen=True)
class TClosenessByExchange(SearchingPartitioner):
    """t-closeness by exchange between classes."""

    name: ClassVar[str] = "tcloseness"
    paper: ClassVar[str] = (
        "Shoal's own: t-closeness for several sensitive attributes by exchange between classes."
    )

    scale: str = field(default="deviation", metadata=geometry.SCALE)
    neighbours: int = option.parameter(
        "nearest classes that a class exchanges records with: more is slower and loses less",
        default=16,
        low=1,
    )
    aim: str = option.parameter(
        "what is kept small: squared errors to the means of classes, or the width of"
        " published cells, for which the table is also cut and the better taken",
        default="means",
        choices=("means", "spans"),
    )
    rounds: int = option.parameter(
        "times that all classes look for exchanges at most, each time anew with near ones",
        default=30,
        low=1,
    )
    block: int = field(default=1 << 15, metadata=geometry.BLOCK)

    def search(
        self, matrix: Matrix, promises: Promises, rng: np.random.Generator, progress: Progress
    ) -> Partition:
        """Classes of `promises.k` people within t; merged where exchanges could not get there."""
        require_people(matrix, promises)
        is_small = matrix.records <= SMALL
        if self.aim == "means" or not (is_small or _holds_as_it_is(matrix, promises)):
            return self._searched(matrix, promises, rng, progress)
        progress("cutting the table")
        cut = LatticePeeling().partition(matrix, promises, rng)
        found = [repair(matrix, cut, promises)]
        if loss_of(matrix, found[0]) > 0:
            found.append(self._searched(matrix, promises, rng, progress))
        return min(found, key=lambda p: loss_of(matrix, p))

    def _searched(
        self, matrix: Matrix, promises: Promises, rng: np.random.Generator, progress: Progress
    ) -> Partition:
        if self.aim == "spans" and is_large(matrix, promises):
            labels = self._k_first(matrix, promises, rng, progress)
            if labels is not None:
                return labels
        if self.aim == "spans" and has_twins(matrix, promises):
            with suppress(InfeasibleError):  # too little of the table may stand for all of it
                search = partial(self.search, rng=rng, progress=progress)
                return by_twins(matrix, promises, rng, search)
        refines = self.aim == "spans" and AUTO.anneals(matrix, promises)
        progress("exchanging records between classes")
        exchanged = self._exchanged(matrix, promises, rng, brief=refines)
        if self.aim == "means":
            return exchanged
        found = [exchanged]
        if not _is_tight(matrix, promises, rng):
            progress("cutting the table")
            effort = "exchange" if refines else "auto"
            method = LatticePeeling if has_steps(matrix) else RoundedPartition
            found.append(method(refine=effort).partition(matrix, promises, rng))
        found = [repair(matrix, partition, promises) for partition in found]
        losses = [loss_of(matrix, partition) for partition in found]
        if refines:
            found = [
                AUTO.refined(matrix, partition, promises, rng, progress)
                for partition, loss in zip(found, losses, strict=True)
                if loss <= NEAR * min(losses)
            ]
        return min(found, key=lambda p: loss_of(matrix, p))

    def _k_first(
        self, matrix: Matrix, promises: Promises, rng: np.random.Generator, progress: Progress
    ) -> Partition | None:
        """Classes cut for k, whose records trade places until t holds; None where too many fail."""
        ends = np.array([0, matrix.records])
        rows, costs = np.arange(matrix.records), costs_of(matrix)
        # one person's records, where they lie far apart, hardly meet in a class of k
        for quota in dict.fromkeys((promises.k, promises.k * matrix.records // matrix.people)):
            order, starts = cut_apart(matrix, rows, ends, quota, costs)
            labels, count = Partition.of_runs(order, starts).labels, len(starts) - 1
            if promises.holds(labels, count).mean() >= 1 - LOOSE:
                break
        else:
            return None
        points = geometry.principal(geometry.points_of(matrix, self.scale))
        targets = targets_of(promises, matrix.records)
        for first in range(0, count, TOGETHER):
            rows = np.sort(order[starts[first] : starts[min(first + TOGETHER, count)]])
            near = np.ascontiguousarray(points[:, rows])
            search = _ExchangeSearch(
                self,
                near,
                geometry.people_of(matrix.take(rows)),
                promises.k,
                targets.take(rows),
                rng,
                brief=True,
            )
            labels[rows] = search.repaired(labels[rows] - np.int32(first)) + first
        found = repair(matrix, Partition.of(labels), promises)
        return refinement.refine(
            matrix, found, promises, short_search(matrix, resizes=True), rng, tell=progress
        )

    def _exchanged(
        self, matrix: Matrix, promises: Promises, rng: np.random.Generator, brief: bool
    ) -> Partition:
        points = geometry.principal(geometry.points_of(matrix, self.scale))
        targets = targets_of(promises, matrix.records)

        def cluster(points: np.ndarray, subject_ids: np.ndarray, targets: Targets) -> np.ndarray:
            search = _ExchangeSearch(self, points, subject_ids, promises.k, targets, rng, brief)
            return search.classes()

        labels = geometry.in_blocks(matrix, points, targets, self.block, promises.k, cluster)
        return geometry.merged(points, labels, targets)


def _is_tight(matrix: Matrix, promises: Promises, rng: np.random.Generator) -> bool:
    """Whether many classes of k records fail even where they are drawn at random."""
    count = matrix.records // promises.k
    drawn = rng.spawn(1)[0].permutation(matrix.records) % count  # later draws stay as they are
    return promises.holds(drawn.astype(np.int32), count).mean() < TIGHT


def _holds_as_it_is(matrix: Matrix, promises: Promises) -> bool:
    """Whether most records are in classes that hold where those that are alike are one class."""
    cells, count = np.zeros(matrix.records, dtype=np.int64), 1
    for codes in matrix.codes.T:
        cells = numbers.alike((cells, codes), matrix.records)
        count = int(cells.max(initial=0)) + 1
        if count * promises.k > matrix.people:
            return False
    return promises.holds(cells.astype(np.int32), count)[cells].mean() >= MOSTLY


def has_steps(matrix: Matrix) -> bool:
    """Whether some attribute has a hierarchy of more than one step above its values."""
    inner = matrix.parent >= 0
    return bool((matrix.parent[matrix.parent[inner]] >= 0).any())


@dataclass
class _ExchangeSearch:
    """One search for the classes of a block. brief: annealing goes on, so a start is enough."""

    method: TClosenessByExchange
    points: np.ndarray
    subject_ids: np.ndarray
    k: int
    targets: Targets
    rng: np.random.Generator
    brief: bool = False

    def __post_init__(self) -> None:
        most = FEW if self.brief else np.inf
        self.neighbours = int(min(self.method.neighbours, most))
        self.most_rounds = int(min(self.method.rounds, most))
        self.rows = np.ascontiguousarray(self.points.T)
        self.unit = max(float(self.points.var(axis=1).sum()), 1e-300)

    def classes(self) -> np.ndarray:
        """The class of each record, numbered from 0; some may still be too far."""
        records = self.points.shape[1]
        # without t there is nothing to spread: microaggregation, then exchange for smaller classes
        if not len(self.targets.limit):
            labels = around_extremes.around_extremes(
                self.points, self.subject_ids, self.k, 0, *self.targets.arrays
            )
            self._exchange(labels, MUST)
            return labels
        size = least_size(self.targets, self.k, records)
        if self.brief and records > 2 * SAMPLE:
            size = self._size_on_sample()
            size += size // SPARE
        if self.brief:
            size = max(size, min(int(ROOM * self.k), records // 2))
        size, labels = self._smallest(size)
        return self.repaired(labels) if labels is not None else np.zeros(records, dtype=np.int32)

    def _size_on_sample(self) -> int:
        """The size at which classes of a sample of the records come near enough."""
        rows = np.sort(self.rng.permutation(self.points.shape[1])[:SAMPLE])
        people = self.subject_ids[rows] if len(self.subject_ids) else self.subject_ids
        points = np.ascontiguousarray(self.points[:, rows])
        sample = _ExchangeSearch(
            self.method, points, people, self.k, self.targets.take(rows), self.rng, brief=True
        )
        return sample._smallest(least_size(self.targets, self.k, SAMPLE))[0]

    def _smallest(self, size: int) -> tuple[int, np.ndarray | None]:
        """Step 1: the smallest size from this on whose classes are near enough; these, if any."""
        records = self.points.shape[1]
        # try ever larger sizes
        failed, step, labels = size, max(1, size // 16), None
        while 2 * size <= records:
            labels = self._of_size(size)
            if labels is not None:
                break
            failed, size, step = size, min(size + step, max(records // 2, size + 1)), 2 * step
        if labels is None:
            return records, None
        # the steps grew: look for a smaller size between the last two
        while size - failed > max(1, failed // 16):
            middle = (failed + size) // 2
            smaller = self._of_size(middle)
            if smaller is None:
                failed = middle
            else:
                size, labels = middle, smaller
        return size, labels

    def _of_size(self, size: int) -> np.ndarray | None:
        """Classes of this size after a few rounds; None where more than a quarter is too far."""
        labels = self._spread(size)
        excess = self._exchange(labels, TRADE_OFF, patience=3 if self.brief else 4)
        return labels if 4 * (excess > 0).sum() <= len(excess) else None

    def _spread(self, size: int) -> np.ndarray:
        """Step 2: classes of `size` or one more, each spread over sensitive values."""
        labels = np.empty(self.points.shape[1], dtype=np.int32)
        count = 0
        for rows in geometry.blocks_of(self.points, self.targets, 8 * size, size):
            own = _dealt(self.targets.codes[rows, 0], max(len(rows) // size, 1), self.rng)
            labels[rows] = own + count
            count += int(own.max()) + 1
        return labels

    def repaired(self, labels: np.ndarray) -> np.ndarray:
        """Steps 3 and 4: exchange until nothing is gained; the worst dissolve while any fails."""
        if not self.brief:
            self._exchange(labels, TRADE_OFF)
        while True:
            excess = self._exchange(labels, MUST, patience=1 if self.brief else 0)
            # the worse half of those that fail, so that their records help the other half
            failing = np.argsort(-excess, kind="stable")[: (int((excess > 0).sum()) + 1) // 2]
            if not len(failing) or len(excess) == 1:
                return labels
            labels = self._dissolved(labels, failing)

    def _exchange(self, labels: np.ndarray, weight: float, patience: int = 0) -> np.ndarray:
        """Changes the labels until none moves or `patience` rounds passed; each class's excess."""
        classes = int(labels.max()) + 1
        q = min(self.neighbours, max(classes - 1, 1))
        for _ in range(patience or self.most_rounds):
            near = exchange.near_classes(self.rows, labels, classes, q)
            excess, moved = exchange.exchange(
                self.rows,
                self.subject_ids,
                self.k,
                labels,
                near,
                weight * self.unit,
                2,
                *self.targets.arrays,
            )
            # few exchanges in a round: the rest would gain little
            if moved * SETTLED <= self.points.shape[1]:
                break
            if self.brief and patience and 10 * (excess > 0).sum() > 9 * classes:
                break  # hopeless at this size
        return excess

    def _dissolved(self, labels: np.ndarray, failing: np.ndarray) -> np.ndarray:
        # classes keep their order and are numbered anew; -1 marks records to be assigned
        kept = np.ones(int(labels.max()) + 1, dtype=bool)
        kept[failing] = False
        number = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
        labels = number[labels]
        unassigned_pool.assign_leftovers(
            self.rows, labels, int(kept.sum()), MUST * self.unit, *self.targets.arrays
        )
        return labels


def _dealt(codes: np.ndarray, classes: int, rng: np.random.Generator) -> np.ndarray:
    """Deals the records in order of their values: a class gets one of each run of `classes`, drawn
    at random.

    The run in the middle takes what the division leaves, so that it moves no class far.
    """
    records = len(codes)
    each, spare = divmod(records, classes)
    order = np.argsort(codes, kind="stable")
    labels = np.empty(records, dtype=np.int32)
    ends = np.cumsum([classes + (spare if run == each // 2 else 0) for run in range(each)])
    for begin, end in zip(np.concatenate(([0], ends[:-1])), ends, strict=True):
        # one record of the run to each class; what the division leaves goes to a few more
        deal = np.concatenate(
            (rng.permutation(classes), rng.permutation(classes)[: end - begin - classes])
        )
        labels[order[begin:end]] = rng.permutation(deal)
    return labels
