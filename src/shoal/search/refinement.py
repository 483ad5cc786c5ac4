"""Refinement: records of near classes change places and classes are rebuilt, so that less is lost;
quickly where classes promise only k.

Ours. Simulated annealing (Kirkpatrick, Gelatt, Vecchi. Science 220:671-680, 1983) over exchanges
between near classes and, where their sizes and number may change, over classes that are taken apart
and grown anew; see `kernels.rebuilding`.

A *step* tries every record in some sweeps and, where that is allowed, to rebuild every class once.
The temperature falls from step to step, so at first the loss rises; the best classes of all steps
are kept. The outcome follows from the classes, the seed and the number of steps, neither from the
clock nor from the number of threads: every step deals the classes out to blocks that share neither
a class nor a random number.

Promise: what comes back loses no more than what was given and keeps every promise that it kept.
- k: exchanges leave sizes as they are; where sizes may change, a record moves over only from a
  class of more than k, and a rebuilt class has k members or more, or none.
- Beyond k: t-closeness, distinct l-diversity and (alpha, k) are asked of both classes before each
  move (`refinery.Asked`). Where anything else is promised, only records with equal sensitive
  values change places and none moves over. No class is rebuilt. Of subjects with several records
  only those change places who have one record in their own class and none in the other.
- `Promises.holds` and `release_holds` have the last word after every step, where they held before.

Besides few sweeps (`quick_search`), three things keep the search short:
- It starts at a temperature below the mean loss of a record. A short search that first accepts
  moves worse than that would end with more loss than it started with.
- On large tables it leaves out records that can't gain: classes of equal records lose nothing, and
  records with the same cells often fill many such classes.
- However many records are left, together they get about as many tries as `MANY_RECORDS` do.
"""

from collections.abc import Callable
from dataclasses import replace
from time import monotonic

import numpy as np

from shoal.data.partition import Matrix, Partition
from shoal.data.progress import Progress, no_progress
from shoal.errors import is_stop
from shoal.protocols import Promises
from shoal.search import segments
from shoal.search.refinery import Refinery, Search, asked_of, asked_otherwise, mean_loss

ROUNDING = 1e-9
REPORTS = 200  # times that progress is shown of a short search
PAUSE = 10.0  # seconds after which that of a long one is shown
CYCLE = 75  # steps of a thorough search over hierarchies in which the temperature falls once


def quick_search(matrix: Matrix, k: int, resizes: bool) -> Search:
    """A search that takes about as long as finding the classes did."""
    if resizes and (matrix.base >= 0).any():
        hot = 0.03 * (k / 10) ** 0.3
        steps = max(5, round(5 * (k / 10) ** 0.2))  # large classes are rebuilt more slowly
        return Search(steps, 4, hot, 0.005, resizes, rebuilds=True, run=64, orders=4)
    hot, cold = 0.09 * (k / 10) ** 0.5, 0.012 * (k / 10) ** 0.4
    return Search(3, 26, hot, cold, resizes, rebuilds=False, above=0.15)


def promised_search(k: int, resizes: bool, sensitive: int = 1) -> Search:
    """A search that takes some seconds where each move is put to the promises.

    sensitive: how many attributes they are about; several take longer to ask.
    """
    hot, cold = 0.1 * (k / 10) ** 0.4, 0.01 * (k / 10) ** 0.4
    sweeps = 22 if sensitive == 1 else 18
    return Search(5, sweeps, hot, cold, resizes, rebuilds=False, near=24, orders=12)


def thorough_search(matrix: Matrix, k: int, resizes: bool, steps: int, stop: int) -> Search:
    """A search of this length: the longer, the hotter it begins; over hierarchies, the more often
    it begins anew, since classes that are grown again gain nothing from a slower fall.
    """
    if not resizes or not (matrix.base >= 0).any():
        grows = (k / 10) ** 0.4
        hot, cold = min(0.1 * steps**0.25, 0.25) * grows, 0.012 * grows
        return Search(steps, 48, hot, cold, resizes, resizes, near=12, orders=12, stop=stop)
    cycles = max(1, steps // CYCLE)
    sweeps, near = (6, 12) if cycles == 1 else (12, 40)
    return Search(steps, sweeps, 0.05, 0.005, True, True, near, stop=stop, cycles=cycles)


def steps_within(matrix: Matrix, seconds: int) -> int:
    """How many steps of a thorough search take so long on one core of 2023: a fixed rate, so that
    the same setting gives the same classes on every computer.
    """
    step = 2e-3 + matrix.records * 4e-6
    return max(1, int(seconds / step))


def refine(
    matrix: Matrix,
    partition: Partition,
    promises: Promises,
    search: Search,
    rng: np.random.Generator,
    progress: Progress | None = None,
    tell: Progress = no_progress,
) -> Partition:
    """Classes that lose no more and keep every promise that these keep.

    progress: takes how far the search is. Where it is given, the search may be long: Ctrl-C ends it
    but not the program, and `search_statistics` of the outcome say what it takes to repeat it.
    tell: takes the same, and changes nothing.
    """
    if partition.count < 2 or (partition.labels < 0).any():
        return partition
    best = _Best(matrix, partition, search)
    try:
        bound, asked = bound_records(matrix, promises), asked_of(matrix, promises)
        refinery = Refinery(matrix, partition, promises.k, bound, search, rng, asked)
        keeps = keeps_as(matrix, partition, promises)
        for step in range(search.steps if search.stop < 0 else min(search.stop, search.steps)):
            found = refinery.after(step)
            kept = keeps(found)
            if not kept:
                refinery.go_back()
            best.take(found if kept else None, step + 1)
            if best.is_news():
                (progress or tell)(best.sentence)
    except (KeyboardInterrupt, SystemError) as stop:
        if progress is None or not is_stop(stop):
            raise
        progress("interrupted: going on with the best classes so far")
    return best.partition if progress is None else best.with_statistics()


class _Best:
    """The best classes so far, and how far the search is."""

    def __init__(self, matrix: Matrix, partition: Partition, search: Search) -> None:
        self._matrix, self.partition, self._search = matrix, partition, search
        self._first = self._least = self._now = segments.loss_of(matrix, partition)
        self._made = 0
        self._shown = monotonic()

    def take(self, found: Partition | None, made: int) -> None:
        """What a step found; None where it broke a promise."""
        self._made = made
        if found is None:
            return
        self._now = segments.loss_of(self._matrix, found)
        # sums differ in their last digits with the order of the input
        if self._now < self._least * (1 - ROUNDING):
            self.partition, self._least = found, self._now

    def is_news(self) -> bool:
        """Whether to show how far the search is: at even shares of it, and after every pause."""
        steps, now = self._search.steps, monotonic()
        is_share = self._made * REPORTS // steps > (self._made - 1) * REPORTS // steps
        if is_share or now - self._shown > PAUSE:
            self._shown = now
            return True
        return False

    @property
    def sentence(self) -> str:
        cells = max(self._matrix.records * self._matrix.attributes, 1)
        return (
            f"refining: step {self._made} of {self._search.steps}, loss {self._now / cells:.2%},"
            f" least {self._least / cells:.2%}, at first {self._first / cells:.2%}"
        )

    def with_statistics(self) -> Partition:
        stopped = {} if self._made == self._search.steps else {"stop": self._made}
        statistics = {
            "steps": self._search.steps,
            **stopped,
            "loss_before": self._first,
            "loss_after": self._least,
        }
        return replace(self.partition, search_statistics=statistics)


def is_k_alone(matrix: Matrix, promises: Promises) -> bool:
    """Whether the promises are a matter of the sizes of classes."""
    return matrix.subjects is None and not promises.needs_more_than_k


def is_asked_of_moves(matrix: Matrix, promises: Promises) -> bool:
    """Whether more than k is promised, and each move can be asked for all of it."""
    tied = bound_records(matrix, promises).shape[1] > 0
    return not tied and asked_of(matrix, promises) is not None


def bound_records(matrix: Matrix, promises: Promises) -> np.ndarray:
    """What ties records to their classes, (2, n) int32: what is sensitive about each, as one
    number, and its subject, -1 where every record is its own; (2, 0) where nothing does.

    Values tie a record where some promise about them can't be asked of single moves.
    """
    others = asked_otherwise(promises)
    if is_k_alone(matrix, promises) or (matrix.subjects is None and promises.terms and not others):
        return np.zeros((2, 0), dtype=np.int32)
    asked = {name for term in others for name in term.sensitive} or promises.sensitive
    values = [
        promises.sensitive[name].codes for name in sorted(asked) if name in promises.sensitive
    ]
    bound = np.full((2, matrix.records), -1, dtype=np.int32)
    bound[0] = 0
    if values and promises.needs_more_than_k:
        together = np.stack(values, axis=1)
        bound[0] = np.unique(together, axis=0, return_inverse=True)[1].reshape(-1)
    if matrix.subjects is not None:
        bound[1] = matrix.subjects
    return bound


def keeps_as(
    matrix: Matrix, partition: Partition, promises: Promises
) -> Callable[[Partition], bool]:
    """Whether other classes keep all that these keep."""

    k_alone = is_k_alone(matrix, promises)

    def every(classes: Partition) -> bool:
        if k_alone:  # a matter of sizes
            return bool((classes.sizes() >= promises.k).all())
        return bool(promises.holds(classes.labels, classes.count).all())

    def release(classes: Partition) -> bool:
        return promises.release_holds(classes.labels, classes.count)

    def as_read(classes: Partition) -> bool:
        return segments.holds_as_read(matrix, classes, promises)

    asked = [
        check
        for check, asks in (
            (every, True),
            (release, promises.about_release),
            (as_read, matrix.subjects is not None and promises.needs_more_than_k),
        )
        if asks and check(partition)
    ]
    return lambda classes: all(check(classes) for check in asked)


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
    if matrix.records <= MANY_RECORDS or promises.about_release:  # these depend on all records
        return _refine_capped(matrix, partition, promises, resizes, rng)
    chosen = worth_searching(matrix, partition)
    records = np.flatnonzero(chosen[partition.labels])
    if not len(records):
        return partition
    # numbered in their old order, which does not depend on the order of the records
    number = (np.cumsum(chosen) - 1).astype(np.int32)
    classes = Partition(number[partition.labels[records]], int(chosen.sum()))
    found = _refine_capped(matrix.take(records), classes, promises, resizes, rng)
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
    resizes: bool,
    rng: np.random.Generator,
) -> Partition:
    """Refines from a first temperature from which a short search can cool down."""
    kind = search_of_many if matrix.records > MANY_RECORDS else quick_search
    search = kind(matrix, promises.k, resizes)
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
