"""Publish beside releases that are out: classes that follow theirs, so that nobody is singled out.

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
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shoal.attacks.beside.guard import OldCells
from shoal.data.classes import Classes
from shoal.data.matrix import Matrix
from shoal.data.partition import Partition
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Column, Table
from shoal.errors import InfeasibleError, InputError
from shoal.policy import registry
from shoal.policy.binding.table import BoundTable
from shoal.policy.problem import Problem
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.promises import BoundPromises, nearest_feasible
from shoal.protocols import PrivacyModel
from shoal.search.repair import repair


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
    counts = np.bincount(named.codes, minlength=len(named.cells))
    if (counts > 1).any():
        raise InputError(
            f"beside: {int((counts > 1).sum())} people have several records, whose classes"
            " could be intersected as well; publish one record of each"
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
    findings = nearest_feasible(
        promises, whole_table.only(kept, matrix.take(kept).subjects), people
    )
    if findings:
        require_k_left(kept, old.k)
        gone = f"without the {int((~kept).sum())} people who are withheld beside other releases, "
        raise InfeasibleError(gone + findings[0], findings[1:])
    partition = inside_groups(matrix, whole_table, old.cells, problem, rng, progress)
    partition = repair(matrix, partition, BoundPromises(promises, whole_table))
    return partition, time.process_time() - started


def require_k_left(kept: np.ndarray, k: int) -> None:
    """Raises InfeasibleError where too few records, each a person, are left beside those withheld.

    How many are withheld depends on k, so those who are left do not tell which k would do.
    """
    left = int(kept.sum())
    if left < min(k, len(kept)):
        raise InfeasibleError(
            f"beside: with k = {k}, {len(kept) - left} people are withheld beside other releases,"
            f" and the {left} left are fewer than k; lower k, or publish both on one grouping"
        )


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
    """Classes of these records that keep k, which is the first promise, and if they can the rest;
    one, where they are fewer than 2k.
    """
    if len(rows) < 2 * local[0].least_subjects(False):
        return Partition(np.zeros(len(rows), dtype=np.int32), 1)
    part = matrix.take(rows)
    chosen = np.zeros(matrix.records, dtype=bool)
    chosen[rows] = True
    table = whole_table.only(chosen, part.subjects)
    own = BoundPromises(local[:1] if nearest_feasible(local, table, {}) else local, table)
    return repair(part, method.partition(part, own, rng), own)
