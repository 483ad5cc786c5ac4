"""t-closeness of large tables under equal distance: a small table is searched for the large one.

Ours. Where values are equally far apart, only how often each occurs matters, so records with one
sensitive value and near quasi-identifiers can stand for one another.
1. Records of one sensitive value are cut into *units* of m near records each.
2. One record of each unit, the nearest to its median, goes to a small table. It is searched as any
   table is, but its classes are compared with the whole table.
3. The records of the units of a class are dealt to m classes, alike in how often each value occurs.
4. What no unit took joins classes that keep t with one more of its value; classes exchange records
   of equal values.

Promise: as `search`'s, every class holds k people and is within t. A dealt class is as large as the
class of representatives and has each value as often, which keeps k and t; exchanges of equal values
change neither; a joining record is asked about first. That counts records: where people have
several, one may be dealt to a class twice. `repair` has the last word; where it would merge many
classes, the table is searched as a whole.
"""

from collections.abc import Callable

import numpy as np

from shoal.data.classes import Closeness
from shoal.data.partition import Matrix, Partition
from shoal.errors import InfeasibleError
from shoal.protocols import Promises
from shoal.search.efforts import ASKED_RECORDS
from shoal.search.kernels import nearest_class, rounded_cut
from shoal.search.large_tables import PartPromises
from shoal.search.refinery import Refinery, Search
from shoal.search.segments import costs_of, loss_of, repair
from shoal.tables.kernels.deal import deal
from shoal.tables.methods.lattice_peeling import RULES
from shoal.tables.methods.rounded_partition import EXACT_ROWS

UNITS = 31_000
"""Units of a table at least; fewer than twice as many."""

MOST_LEFT = 500
"""At most one record in this number may be left over."""

MOST_FAILING = 0.3
"""Of dealt classes at most this share may fail, as where people have several records."""

NEAR_TABLE = 200_000
"""Up to here, near records are looked for in three orders, beyond in one."""

SearchPart = Callable[[Matrix, Promises], Partition]


def is_large(matrix: Matrix, promises: Promises) -> bool:
    """Whether more records are asked about k and t alone than are annealed."""
    if matrix.records <= ASKED_RECORDS or promises.about_release:
        return False
    models = {term.model for term in promises.terms}
    return bool(promises.closeness) and models <= {"k-anonymity", "t-closeness"}


def has_twins(matrix: Matrix, promises: Promises) -> bool:
    """Whether a table is large, its distances equal, and few records are left without twins."""
    asked = promises.closeness
    if not is_large(matrix, promises) or any(target.column.distance != "equal" for target in asked):
        return False
    left = np.bincount(_values(asked)) % _members(matrix)
    return int(left.sum()) * MOST_LEFT <= matrix.records


def by_twins(
    matrix: Matrix, promises: Promises, rng: np.random.Generator, search: SearchPart
) -> Partition:
    """Classes of a table that `has_twins`. search: for the classes of its small table."""
    values, m = _values(promises.closeness), _members(matrix)
    costs = costs_of(matrix)
    units, left = _units(matrix, values, m, costs, rng)
    chosen = units[np.arange(len(units)), _middle(matrix, units)]
    found = search(matrix.take(chosen), PartPromises(promises, chosen, matrix.records))
    labels = _dealt(matrix, units, values[chosen], found, costs)
    _join(labels, left, matrix, promises.closeness)
    polished = _polished(matrix, Partition.of(labels), values, promises.k, rng)
    if promises.holds(polished.labels, polished.count).mean() < 1 - MOST_FAILING:
        raise InfeasibleError("people are too often dealt to a class twice")
    return repair(matrix, polished, promises)


def _members(matrix: Matrix) -> int:
    """Records of a unit."""
    return max(matrix.records // UNITS, 2)


def _values(asked: tuple[Closeness, ...]) -> np.ndarray:
    """What is sensitive about each record as one number; (n,) int64."""
    first, *others = (target.column for target in asked)
    values = first.codes.astype(np.int64)
    for column in others:
        values = np.unique(values * column.values + column.codes, return_inverse=True)[1]
    return values


def _units(
    matrix: Matrix, values: np.ndarray, m: int, costs: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Near records of one value, (units, m), and the records in none."""
    drawn = rng.permutation(matrix.records)
    drawn = drawn[np.argsort(values[drawn], kind="stable")]
    amount = np.bincount(values)
    first = np.cumsum(amount) - amount
    is_left = np.arange(matrix.records) - first[values[drawn]] < (amount % m)[values[drawn]]
    kept = drawn[~is_left]
    # in a fixed order within each value, so that ties do not depend on the draw
    kept = kept[np.lexsort((kept, values[kept]))]
    nodes = np.concatenate(([0], np.cumsum(amount // m * m)))
    nodes = nodes[np.append(True, np.diff(nodes) > 0)]
    units = cut_apart(matrix, kept, nodes, m, costs)[0].reshape(-1, m)
    # in an order that says nothing of their values, which would decide between near ones
    return units[rng.permutation(len(units))], drawn[is_left]


def cut_apart(
    matrix: Matrix, rows: np.ndarray, nodes: np.ndarray, k: int, costs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Records cut into classes of k to 2k - 1 near ones, as many as there can be: the records class
    by class, and where each class starts, and the end.

    nodes: where runs of `rows` start that no class crosses, and the end.
    """
    columns = np.empty((matrix.attributes + 1, len(rows)), dtype=np.int32)
    columns[:-1] = matrix.codes[rows].T
    columns[-1] = rows
    starts = rounded_cut.cut(columns, nodes, k, RULES, EXACT_ROWS, costs)
    return columns[-1].astype(np.int64), starts


def _middle(matrix: Matrix, units: np.ndarray) -> np.ndarray:
    """The place of the record nearest to the median of each unit, in losses; (units,)."""
    m = units.shape[1]
    apart = np.zeros(units.shape)
    for j in range(matrix.attributes):
        codes = matrix.codes[units, j]
        median = np.partition(codes, m // 2, axis=1)[:, m // 2, None]
        width = 1 / max(matrix.leaves(j) - 1, 1) if matrix.is_tree(j) else matrix.scale[j]
        apart += np.abs(codes - median) * width
    return apart.argmin(axis=1)


def _dealt(
    matrix: Matrix, units: np.ndarray, values: np.ndarray, found: Partition, costs: np.ndarray
) -> np.ndarray:
    """The class of each record of a unit, -1 of others; (n,) int32.

    values: of each unit. found: the classes of the units.
    """
    m = units.shape[1]
    order = np.lexsort((values, found.labels))
    members = units[order].reshape(-1)
    stratum = np.stack((found.labels[order], values[order]), axis=1)
    is_first = np.append(True, (stratum[1:] != stratum[:-1]).any(axis=1))
    begins = np.flatnonzero(is_first)
    amounts = np.diff(np.append(begins, len(order)))
    strata = np.searchsorted(found.labels[order][begins], np.arange(found.count + 1))
    sizes = found.sizes()
    starts = np.concatenate(([0], np.cumsum(sizes))) * m
    codes = np.ascontiguousarray(matrix.codes.T)
    deal(codes, costs, members, starts, strata, amounts, m)
    labels = np.full(matrix.records, -1, dtype=np.int32)
    labels[members] = np.repeat(np.arange(found.count * m, dtype=np.int32), np.repeat(sizes, m))
    return labels


def _join(
    labels: np.ndarray, left: np.ndarray, matrix: Matrix, asked: tuple[Closeness, ...]
) -> None:
    """Records in no unit join the class that grows least of those that take one more, in place;
    those without one become classes of their own.
    """
    count = int(labels.max()) + 1
    lo, hi, sizes = nearest_class.boxes(matrix.codes, labels, count)
    takes_more = np.ones(count, dtype=bool)
    fits: dict[tuple[int, ...], np.ndarray] = {}
    width = np.where(matrix.base < 0, matrix.scale, 0)
    for j in np.flatnonzero(matrix.base >= 0).tolist():
        width[j] = 1 / max(matrix.leaves(j) - 1, 1)
    for record in left.tolist():
        value = tuple(int(target.column.codes[record]) for target in asked)
        if value not in fits:
            fits[value] = _fits(labels, sizes, asked, value)
        open_classes = np.flatnonzero(takes_more & fits[value])
        if not len(open_classes):
            labels[record] = count
            count += 1
            continue
        code = matrix.codes[record].astype(np.int64)
        beyond = np.maximum(lo[open_classes] - code, 0) + np.maximum(code - hi[open_classes], 0)
        joined = open_classes[(beyond * width).sum(axis=1).argmin()]
        labels[record] = joined
        takes_more[joined] = False


def _fits(
    labels: np.ndarray, sizes: np.ndarray, asked: tuple[Closeness, ...], value: tuple[int, ...]
) -> np.ndarray:
    """Classes that keep t with one more record of a value; (classes,) bool. sizes: of each."""
    keeps = np.ones(len(sizes), dtype=bool)
    rows = np.flatnonzero(labels >= 0)
    for target, code in zip(asked, value, strict=True):
        several = len(target.frequencies)
        cell = labels[rows].astype(np.int64) * several + target.column.codes[rows]
        amount = np.bincount(cell, minlength=len(sizes) * several)[: len(sizes) * several]
        amount = amount.reshape(-1, several)
        amount[:, code] += 1
        share = target.frequencies / target.frequencies.sum()
        apart = np.abs(amount / (sizes[:, None] + 1) - share).sum(axis=1) / 2
        keeps &= apart <= target.t
    return keeps


def short_search(matrix: Matrix, resizes: bool) -> Search:
    """What a large table has time for."""
    orders = 3 if matrix.records <= NEAR_TABLE else 1
    return Search(1, 6, 0.02, 0.005, resizes, rebuilds=False, near=8, run=64, orders=orders)


def _polished(
    matrix: Matrix, partition: Partition, values: np.ndarray, k: int, rng: np.random.Generator
) -> Partition:
    """The classes after exchanges of equal values, where these lose less."""
    bound = np.full((2, matrix.records), -1, dtype=np.int32)
    bound[0] = values
    if matrix.subjects is not None:
        bound[1] = matrix.subjects
    search = short_search(matrix, resizes=False)
    found = Refinery(matrix, partition, k, bound, search, rng).after(0)
    return min(partition, found, key=lambda one: loss_of(matrix, one))
