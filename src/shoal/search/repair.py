"""The shared repair: classes that break a promise merge with their nearest until all promises hold.

Not from a paper; every method may be followed by it, whatever is promised.
Promise: every class holds, or InfeasibleError. Each round merges every failing class with another
one, so the failing classes become fewer until none is left or all records are one class.
Nearest: least loss added by the box of both, weighted by records; ties to the lowest class number.
In one round a failing class may join a class that holds, however many others do, or make a pair
with one failing class; then all merged classes are measured once. So a table where nearly every
class fails takes about as many rounds as doublings, not as many as there are classes.
Classes whose cells are equal are one class to readers of the release. A union of classes that
hold holds unless they share subjects; where subjects have several records, such classes are judged
together.
Promises about the release as a whole are not asked class by class; where one fails, classes with
fewer people than it can do with merge, too.
"""

from collections.abc import Callable

import numpy as np

from shoal.data.classes import Classes
from shoal.data.matrix import Matrix
from shoal.data.partition import Partition
from shoal.errors import InfeasibleError
from shoal.protocols import Promises
from shoal.search.kernels import cuts, nearest_class
from shoal.search.segments import costs_of, lowest_nodes

Hold = Callable[[np.ndarray, int], np.ndarray]
"""`hold(labels, count)`: whether each class holds, as `Promises.holds`."""

TILE = 16
"""Classes in a tile of the search at least; at most twice as many."""


def repair(matrix: Matrix, partition: Partition, promises: Promises) -> Partition:
    """The partition with every class that fails `promises.holds` merged away; unchanged where none
    does.

    Suppressed records stay suppressed. Raises InfeasibleError when one class of everybody fails.
    """
    partition = merge_failing(matrix, partition, promises.holds)
    while partition.count and matrix.subjects is not None and promises.needs_more_than_k:
        united = as_read(matrix, partition)
        if united.count == partition.count or promises.holds(united.labels, united.count).all():
            break
        partition = merge_failing(matrix, united, promises.holds)
    labels, count = partition.labels, partition.count
    if promises.about_release and not promises.release_holds(labels, count):
        return merge_failing(matrix, partition, _of_enough_people(matrix, promises))
    return partition


def _of_enough_people(matrix: Matrix, promises: Promises) -> Hold:
    """Whether each class also has as many people as a promise about the whole can do with.

    A method that counts records may have made smaller ones where people have several.
    """

    def hold(labels: np.ndarray, count: int) -> np.ndarray:
        enough = Classes(labels, count, matrix.subjects).people() >= promises.k
        return promises.holds(labels, count) & enough

    return hold


def holds_as_read(matrix: Matrix, partition: Partition, promises: Promises) -> bool:
    """Whether every promise holds where classes that show the same cells are one."""
    united = as_read(matrix, partition)
    return bool(promises.holds(united.labels, united.count).all())


def as_read(matrix: Matrix, partition: Partition) -> Partition:
    """Classes that show the same cells, in bounds or lowest nodes, as one."""
    lo, hi, _ = nearest_class.boxes(matrix.codes, partition.labels, partition.count)
    for j in np.flatnonzero(matrix.base >= 0).tolist():
        lo[:, j] = hi[:, j] = lowest_nodes(matrix, j, lo[:, j], hi[:, j])
    number = np.unique(np.concatenate((lo, hi), axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    return Partition.of(np.where(partition.labels >= 0, number[partition.labels], -1))


def merge_failing(matrix: Matrix, partition: Partition, hold: Hold) -> Partition:
    """The partition with every class that fails `hold` merged away."""
    labels, count = partition.labels, partition.count
    failing = ~hold(labels, count)
    if not failing.any():
        return partition
    costs = costs_of(matrix)
    while failing.any():
        if count == 1:
            raise InfeasibleError(
                f"no partition keeps every promise: all {matrix.people} subjects in one class still"
                " fail; promise less (a lower k or l, a higher t) or add records"
            )
        renumbered = _merge_round(matrix.codes, costs, labels, count, failing)
        asked = np.zeros(int(renumbered.max()) + 1, dtype=bool)
        asked[renumbered[failing]] = True
        labels = np.where(labels >= 0, renumbered[labels], np.int32(-1))
        count = len(asked)
        failing = _failing_among(hold, labels, asked)
    return Partition.of(labels)


def _merge_round(
    codes: np.ndarray, costs: np.ndarray, labels: np.ndarray, count: int, failing: np.ndarray
) -> np.ndarray:
    """One merge for every failing class that finds a partner: the new number of each class."""
    lo, hi, sizes = nearest_class.boxes(codes, labels, count)
    order, ends = tiles(costs, lo, hi, TILE)
    partner = nearest_class.partners(lo, hi, sizes, failing, order, ends, costs)
    chosen = np.flatnonzero(failing & (partner >= 0))
    joined = np.arange(count, dtype=np.int32)
    joined[chosen] = np.where(
        failing[partner[chosen]], np.minimum(chosen, partner[chosen]), partner[chosen]
    )
    return np.unique(joined, return_inverse=True)[1].astype(np.int32)


def tiles(
    costs: np.ndarray, lo: np.ndarray, hi: np.ndarray, least: int
) -> tuple[np.ndarray, np.ndarray]:
    """The classes in tiles that lie close together, halved at the medians of their middles.

    least: classes in a tile; at most twice as many. Also where each tile ends.
    """
    count, d = lo.shape
    rows = np.empty((count, d + 1), dtype=np.int32)
    rows[:, :d] = lo + (hi.astype(np.int64) - lo) // 2
    rows[:, d] = np.arange(count)
    ends = np.empty(count // least + 1, dtype=np.int64)
    nobody, no_history = np.zeros(0, dtype=np.int64), np.zeros((0, d), dtype=np.int32)
    found = cuts.split_to_end(rows, d, cuts.HALVES, least, least, costs, nobody, no_history, ends)
    return rows[:, d].copy(), ends[:found]


def _failing_among(hold: Hold, labels: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Which classes fail: measured for those asked, the others hold as they did."""
    number = np.full(len(asked), -1, dtype=np.int32)
    number[asked] = np.arange(int(asked.sum()), dtype=np.int32)
    holds = hold(np.where(labels >= 0, number[labels], np.int32(-1)), int(asked.sum()))
    failing = np.zeros(len(asked), dtype=bool)
    failing[asked] = ~holds
    return failing
