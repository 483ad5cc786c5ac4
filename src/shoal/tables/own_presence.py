"""Publish beside releases that are out, against who knows of one person only that it is in them.

Algorithm: ours. Such an attacker finds the classes of John in all releases, and thinks of everybody
whose true quasi-identifiers fit all of these, members or not; they must be k people.

1. Withhold people for whom fewer than k would remain even if the new release were one class, which
   is the widest box that there can be; again, as long as what is left makes a narrower one.
2. Find classes as if nothing was out. If k people remain for everybody, these are published.
3. Unite each class of somebody for whom fewer than k remain with the one that adds least loss,
   until there is none. Boxes that grow exclude nobody, so this is monotone; by 1 it ends.
4. Where most classes fail, few are left. So unite another start as well: the classes that follow
   the old ones, as in `aligned`, with those old classes whole that have fewer than k people here.
   Who shares both classes fits both, so most of these hold. What loses less is published.

Who fits a class is judged by the cells that it would show.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from shoal.attacks.beside.guard import BesideGuard, Candidates
from shoal.attacks.counts import entries_of
from shoal.data.classes import Classes, Population
from shoal.data.cut import Cut
from shoal.data.partition import Partition
from shoal.data.progress import Progress, no_progress
from shoal.data.release import PublishedColumn, read_columns, spans_cover
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.errors import InfeasibleError
from shoal.policy.binding.table import BoundTable
from shoal.policy.problem import Problem
from shoal.privacy.promises import BoundPromises
from shoal.recoding.recode import find_classes, recoding_of_whole_table
from shoal.search.repair import repair
from shoal.search.segments import loss_of
from shoal.tables.aligned import inside_groups, require_k_left

BLOCK = 1 << 21  # pairs of a class and a person who may fit it that are compared at a time


def find_united(
    table: Table,
    bound: BoundTable,
    guard: BesideGuard,
    progress: Progress = no_progress,
) -> tuple[Partition, float]:
    """Classes that keep every promise and leave k people who fit, and the CPU seconds it took.

    Withheld records are suppressed. Raises InfeasibleError where no classes keep the promises, or
    nobody is left.
    """
    progress("finding who fits the classes of other releases")
    started = time.process_time()
    problem = bound.problem
    assert problem.required_k is not None
    k, candidates = problem.required_k, guard.candidates(Truth(table, bound.encoded), bound.schema)
    matrix, everybody = bound.method_input()
    remaining = Remaining(bound, candidates)
    kept = remaining.safe(k)
    withheld = int((~kept).sum())
    if not kept.any():
        raise InfeasibleError(
            "beside: fewer than"
            f" {k} people fit the classes of everybody, however few classes there are, so nobody"
            " can be published; lower k, or publish both on one grouping"
        )
    if withheld:
        matrix = matrix.take(np.flatnonzero(kept))
        everybody = everybody.only(kept, matrix.subjects)
    seconds = time.process_time() - started
    try:
        classes, more = find_classes(matrix, everybody, problem, progress)
    except InfeasibleError as error:
        if not withheld:
            raise
        require_k_left(kept, k)
        gone = f"without the {withheld} people who are withheld beside other releases, "
        raise InfeasibleError(gone + str(error)) from error
    assert not isinstance(classes, Cut)
    progress("uniting classes that too few people fit")
    started = time.process_time()
    promises = WhoFits(problem, everybody, remaining, np.flatnonzero(kept))
    united = repair(matrix, classes, promises)
    if united.count < classes.count:
        rng = np.random.default_rng(problem.seed)
        groups = remaining.groups[kept]
        start = inside_groups(matrix, everybody, groups, problem, rng, progress)
        following = repair(matrix, start, promises)
        united = min(united, following, key=lambda one: loss_of(matrix, one))
    labels = np.full(len(kept), -1, dtype=np.int32)
    labels[kept] = united.labels
    found = replace(united, labels=labels, search_statistics=classes.search_statistics)
    return found, seconds + more + time.process_time() - started


class WhoFits(BoundPromises):
    """All promises of a policy, and that k people fit all classes of everybody."""

    def __init__(
        self, problem: Problem, template: Classes, remaining: "Remaining", rows: np.ndarray
    ) -> None:
        super().__init__(problem.promises, template)
        self._remaining, self._rows, self._least = remaining, rows, problem.required_k

    def holds(
        self,
        labels: np.ndarray,
        count: int,
        quasi: Mapping[str, np.ndarray] | None = None,
        population: Mapping[str, Population] | None = None,
    ) -> np.ndarray:
        """As before; labels: (n,) of the records that `rows` names, -1 for those to leave out."""
        whole = np.full(self._remaining.records, -1, dtype=np.int32)
        whole[self._rows] = labels
        enough = self._remaining.of_classes(whole, count) >= self._least
        return super().holds(labels, count, quasi, population) & enough


@dataclass(frozen=True)
class Remaining:
    """How many people fit all classes of somebody, in the releases that are out and a new one."""

    bound: BoundTable
    candidates: Candidates

    @property
    def records(self) -> int:
        """Those that methods see."""
        return int((~self.bound.encoded.suppressed).sum())

    def safe(self, k: int) -> np.ndarray:
        """(records,) bool, those that step 1 does not withhold."""
        kept = np.ones(self.records, dtype=bool)
        while kept.any():
            groups, _, left = self._counted(np.where(kept, 0, -1).astype(np.int32), 1)
            unsafe = kept & np.isin(self.groups, groups[left < k])
            if not unsafe.any():
                break
            kept &= ~unsafe
        return kept

    def of_classes(self, labels: np.ndarray, count: int) -> np.ndarray:
        """(count,) the fewest that are left of anybody in each class."""
        least = np.full(count, np.iinfo(np.int64).max)
        _, label, left = self._counted(labels, count)
        np.minimum.at(least, label, left)
        return least

    @property
    def groups(self) -> np.ndarray:
        """(records,) the group of each, ABSENT for newcomers."""
        return self.candidates.groups[~self.bound.encoded.suppressed]

    def _counted(self, labels: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Each group and class that somebody is in, (m,) both, and how many fit both; (m,)."""
        rows = np.flatnonzero((labels >= 0) & (self.groups >= 0))
        pairs = np.unique(self.groups[rows] * max(count, 1) + labels[rows])
        group, label = pairs // max(count, 1), pairs % max(count, 1)
        left = np.zeros(len(pairs), dtype=np.int64)
        if not len(pairs):
            return group, label, left
        shown = self._shown(labels, count)
        for rows, pair, person in self._pairs(group):
            fits = np.ones(len(pair), dtype=bool)
            for j, column in enumerate(shown):
                cell = column.codes[label[rows][pair]]
                fits &= spans_cover(
                    column.lo[cell], column.hi[cell], self.candidates.points[person, j]
                )
            left[rows] = np.bincount(pair[fits], minlength=len(rows))
        return group, label, left

    def _pairs(self, group: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Block by block, the places of groups in it, and the people who fit the old classes."""
        starts = self.candidates.starts
        sizes = starts[group + 1] - starts[group]
        block = np.cumsum(sizes) // BLOCK
        for rows in np.split(np.arange(len(group)), np.flatnonzero(np.diff(block)) + 1):
            pair, place = entries_of(group[rows], starts)
            yield rows, pair, self.candidates.people[place]

    def _shown(self, labels: np.ndarray, count: int) -> tuple[PublishedColumn, ...]:
        """The quasi-identifiers that each class would show, a record for each class."""
        schema, encoded = self.bound.schema, self.bound.encoded
        recoding = recoding_of_whole_table(Partition(labels, count), encoded, schema.render)
        member = np.zeros(count, dtype=np.int64)
        kept = np.flatnonzero(labels >= 0)
        member[labels[kept]] = np.flatnonzero(~encoded.suppressed)[kept]
        cells = [
            recoding.column(j, one, schema.render).gather(member)
            for j, one in enumerate(encoded.attributes)
        ]
        columns, findings = read_columns(Table(pl.DataFrame(cells)), schema)
        assert not findings, "what classes show can be read"
        return columns
