"""Publish beside releases that are out: classes that follow theirs, so that nobody is singled out,
also by who knows of one person only that it is in them.

Algorithm: ours. To merge classes afterwards cascades: where most people are in both releases, few
classes are left. So the new release is *aligned* with the old classes from the beginning:

1. Withhold people whose old class has fewer than k members in the new table: whoever remains lies
   among them, so that no class could be safe.
2. Partition inside each old class of 2k members or more; keep smaller ones whole. Newcomers are
   partitioned apart. Where an old class can keep what else is promised of each class by itself, its
   parts do, so that the values which both releases show of a person stay as many as promised.
3. Unite whole classes where the policy promises more.

Promise: each cell, the people of one old class in one new class, holds nobody or k people. Unions
of such classes keep it, so it is monotone. Strict: the members of an old class who are not
published now are none or at least k, too; else more are withheld.

Against who knows of one person only that it is in them (`find_united`), ours, too. Such an attacker
finds the classes of John in all releases, and thinks of everybody whose true quasi-identifiers fit
all of these, members or not; they must be k people.

1. Withhold people for whom fewer than k would remain even if the new release were one class, which
   is the widest box that there can be; again, as long as what is left makes a narrower one.
2. Find classes as if nothing was out. If k people remain for everybody, these are published.
3. Unite each class of somebody for whom fewer than k remain with the one that adds least loss,
   until there is none. Boxes that grow exclude nobody, so this is monotone; by 1 it ends.
4. Where most classes fail, few are left. So unite another start as well: the classes that follow
   the old ones, with those old classes whole that have fewer than k people here.
   Who shares both classes fits both, so most of these hold. What loses less is published.

Who fits a class is judged by the cells that it would show.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from shoal.attacks.beside.guard import BesideGuard, Candidates, OldCells
from shoal.auditor.sharing import entries_of
from shoal.data.classes import Classes, Population
from shoal.data.partition import Cut, Matrix, Partition
from shoal.data.progress import Progress, no_progress
from shoal.data.release import PublishedColumn, read_columns, spans_cover
from shoal.data.table import Column, Table
from shoal.data.truth import Truth
from shoal.errors import InfeasibleError, InputError
from shoal.policy import registry
from shoal.policy.binding.table import BoundTable
from shoal.policy.problem import Problem
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.promises import BoundPromises, infeasible_promises
from shoal.protocols import PrivacyModel
from shoal.recoding.recode import find_classes, recoding_of_whole_table
from shoal.search.segments import loss_of, repair


def require_one_class_each(table: Table, problem: Problem) -> tuple[int, Column]:
    """The k that is promised to people of one class each, and the column that names them.

    Raises InputError where people can't be found again, or have several records."""
    if problem.subject is None:
        raise InputError(
            "beside: the policy names no 'subject', so nobody can be found in the other"
            " releases; give the column that names the person this role"
        )
    if problem.required_k is None:
        raise InputError("beside: the policy promises no k-anonymity; add a promise of it")
    if problem.policy.recodes_globally:
        raise InputError(
            f"method '{problem.method_name}': recodes globally, so its classes can't be fitted"
            " to those of other releases; name one of local recoding"
        )
    named = table.column(problem.subject)
    counts = np.bincount(named.codes, minlength=len(named.texts))
    if (counts > 1).any():
        raise InputError(
            f"beside: {int((counts > 1).sum())} people have several records, whose classes"
            " could be intersected as well; publish one record of each (by 'shoal republish"
            " --method sticky' where they come again and again), or publish without --others and"
            " let 'shoal audit --others' tell what the releases reveal together"
        )
    return problem.required_k, named


def find_aligned(
    bound: BoundTable, old: OldCells, progress: Progress = no_progress
) -> tuple[Partition, float]:
    """Classes that keep every promise and follow the old ones, and the CPU seconds it took.

    old: of the whole table. Withheld records are suppressed. Raises InfeasibleError where no
    classes keep the promises, or nobody is left.
    """
    problem = bound.problem
    matrix, everybody = bound.method_input()
    old = old.taken(~bound.encoded.suppressed)
    rng = np.random.default_rng(problem.seed)
    promises = problem.promises
    started = time.process_time()
    kept = ~old.unsafe(rng)
    if not kept.any():
        raise InfeasibleError(
            f"beside: every class of the other releases has fewer than {old.k} people in this"
            " table, so nobody can be published; lower k, or publish both on one grouping"
        )
    whole_table = replace(everybody, labels=np.where(kept, 0, -1).astype(np.int32))
    people = {name: len(codes) for name, codes in matrix.populations.items()}
    findings = infeasible_promises(
        promises, whole_table.only(kept, matrix.take(kept).subjects), people
    )
    if findings:
        raise too_few_left(kept, old.k, *findings)
    partition = inside_groups(matrix, whole_table, old.cells, problem, rng, progress)
    partition = repair(matrix, partition, BoundPromises(promises, whole_table))
    return partition, time.process_time() - started


def too_few_left(kept: np.ndarray, k: int, first: str, *others: str) -> InfeasibleError:
    """What is raised where the records, each a person, that are not withheld break promises.

    How many are withheld depends on k, so those who are left do not tell which k would do.
    """
    left, withheld = int(kept.sum()), f"{int((~kept).sum())} people"
    if left < min(k, len(kept)):
        return InfeasibleError(
            f"beside: with k = {k}, {withheld} are withheld beside other releases,"
            f" and the {left} left are fewer than k; lower k, or publish both on one grouping"
        )
    gone = f"without the {withheld} who are withheld beside other releases"
    return InfeasibleError(f"{gone}, {first}", others)


def inside_groups(
    matrix: Matrix,
    whole_table: Classes,
    cells: np.ndarray,
    problem: Problem,
    rng: np.random.Generator,
    progress: Progress = no_progress,
) -> Partition:
    """Step 2. cells: (n,) int64, the old class of each record, ABSENT for newcomers; whole_table:
    its labels are -1 for records to leave out.
    """
    method = problem.build_method()
    labels = np.full(matrix.records, -1, dtype=np.int32)
    count = 0
    assert problem.required_k is not None
    asked = [model for model in problem.promises if _is_local(model)]
    local = [KAnonymity(problem.required_k), *asked]
    with registry.blaming_plug_in(problem.method_name, "publish"):
        for number, rows in enumerate(_groups(cells, whole_table.labels >= 0)):
            if not number % 100:
                progress("following the classes of other releases")
            part = _parted(matrix, rows, whole_table, method, local, rng)
            labels[rows] = np.where(part.labels >= 0, part.labels + count, -1)
            count += part.count
    return Partition(labels, count)


def _groups(cells: np.ndarray, kept: np.ndarray) -> list[np.ndarray]:
    """The records of each old class; newcomers come first."""
    rows = np.flatnonzero(kept)
    order = rows[np.argsort(cells[rows], kind="stable")]  # ascending inside each class
    return np.split(order, np.flatnonzero(np.diff(cells[order])) + 1)


def _is_local(model: PrivacyModel) -> bool:
    """Whether it is about each class alone, and a part of the table can be asked as well."""
    whole = model.whole_table or model.compares_with_table or bool(model.population)
    return model.monotone and not whole


def _parted(
    matrix: Matrix,
    rows: np.ndarray,
    whole_table: Classes,
    method: Any,
    local: Sequence[PrivacyModel],
    rng: np.random.Generator,
) -> Partition:
    """Classes of these records that keep k, and if they can the rest; one of fewer than 2k."""
    if len(rows) < 2 * local[0].least_subjects(False):
        return Partition(np.zeros(len(rows), dtype=np.int32), 1)
    part = matrix.take(rows)
    chosen = np.zeros(matrix.records, dtype=bool)
    chosen[rows] = True
    table = whole_table.only(chosen, part.subjects)
    own = BoundPromises(local[:1] if infeasible_promises(local, table, {}) else local, table)
    return repair(part, method.partition(part, own, rng), own)


BLOCK = 1 << 21  # pairs of a class and a person who may fit it that are compared at a time


def find_united(
    table: Table, bound: BoundTable, guard: BesideGuard, progress: Progress = no_progress
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
        raise too_few_left(kept, k, str(error)) from None
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
