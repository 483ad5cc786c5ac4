"""Refinement in about the time that finding the classes took, where they promise only k.

Besides few sweeps (`refinement.quick_search`), three things keep the search short:
- It starts at a temperature below the mean loss of a record. A short search that first accepts
  moves worse than that would end with more loss than it started with.
- On large tables it leaves out records that can't gain: classes of equal records lose nothing, and
  records with the same cells often fill many such classes.
- However many records are left, together they get about as many tries as `MANY_RECORDS` do.
"""

from dataclasses import replace

import numpy as np

from shoal.data.matrix import Matrix
from shoal.data.partition import Partition
from shoal.protocols import Promises
from shoal.search.refinement import quick_search, refine
from shoal.search.refinery import Search, mean_loss

MANY_RECORDS = 50_000  # on larger tables records get fewer tries, and only those that may gain
HOTTEST = 1 / 3  # of the mean loss: a search that starts hotter may end above where it started
COLDEST = 1e-6  # in widths of an attribute: a temperature to start from where nothing is lost


def refine_quickly(
    matrix: Matrix,
    partition: Partition,
    promises: Promises,
    resizes: bool,
    rng: np.random.Generator,
) -> Partition:
    """Classes that promise only k, refined in about the time that finding them took.

    On large tables only records that may gain are searched.
    """
    if matrix.records <= MANY_RECORDS:
        search = quick_search(matrix, promises.k, resizes)
        return _refine_capped(matrix, partition, promises, search, rng)
    if promises.about_release:  # these depend on all records
        search = search_of_many(matrix, promises.k, resizes)
        return _refine_capped(matrix, partition, promises, search, rng)
    chosen = worth_searching(matrix, partition)
    records = np.flatnonzero(chosen[partition.labels])
    if not len(records):
        return partition
    # numbered in their old order, which does not depend on the order of the records
    number = (np.cumsum(chosen) - 1).astype(np.int32)
    classes = Partition(number[partition.labels[records]], int(chosen.sum()))
    part = matrix.take(records)
    kind = search_of_many if part.records > MANY_RECORDS else quick_search
    search = kind(part, promises.k, resizes)
    found = _refine_capped(part, classes, promises, search, rng)
    labels = partition.labels.copy()
    labels[records] = partition.count + found.labels
    return Partition.of(labels)


def search_of_many(matrix: Matrix, k: int, resizes: bool) -> Search:
    """A quick search with about as many tries however many records there are."""
    search = quick_search(matrix, k, resizes)
    share = MANY_RECORDS / matrix.records / (1 + k / 100)  # large classes take longer to try
    if search.rebuilds:
        return replace(search, steps=_between(2, share * 2 * search.steps, search.steps))
    sweeps = _between(3, share * search.sweeps, search.sweeps)
    return replace(search, sweeps=sweeps, near=4, run=64, orders=4)


def _between(least: int, number: float, most: int) -> int:
    return min(max(least, round(number)), most)


def _refine_capped(
    matrix: Matrix,
    partition: Partition,
    promises: Promises,
    search: Search,
    rng: np.random.Generator,
) -> Partition:
    """Refines from a first temperature from which a short search can cool down."""
    most = max(HOTTEST * mean_loss(matrix, partition), COLDEST)
    return refine(matrix, partition, promises, search.no_hotter(most), rng)


def worth_searching(matrix: Matrix, partition: Partition) -> np.ndarray:
    """The classes that lose something and, of those with the same cells that lose nothing, the
    largest one; (count,) bool.

    A record that is better off where nothing is lost needs one such class, not all of them.
    """
    labels, count = partition.labels, partition.count
    first = np.empty(count, dtype=np.int64)
    first[labels[::-1]] = np.arange(matrix.records)[::-1]
    loses = np.zeros(count, dtype=bool)
    loses[labels[(matrix.codes != matrix.codes[first[labels]]).any(axis=1)]] = True
    pure = np.flatnonzero(~loses)
    cells = matrix.codes[first[pure]]
    order = np.lexsort((pure, -partition.sizes()[pure], *cells.T))
    others = (cells[order][1:] == cells[order][:-1]).all(axis=1)
    chosen = loses
    chosen[pure[order[:1]]] = True
    chosen[pure[order[1:][~others]]] = True
    return chosen
