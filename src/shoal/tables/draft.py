"""From a table to the release as it would be published, before anyone has measured it; a
bucketizer's is two tables, quasi-identifiers beside sensitive values.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from shoal.auditor.verdict import CertifiedRelease
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import BesideReport, MethodReport
from shoal.data.classes import Classes
from shoal.data.coded_table import ShownTable
from shoal.data.partition import Cut, Partition
from shoal.data.progress import Progress, no_progress
from shoal.data.recoding import SENSITIVE, GlobalRecoding, TwoTables
from shoal.data.regular_files import Json
from shoal.data.release import Release
from shoal.data.row_order import published_order
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.errors import InfeasibleError, InputError
from shoal.policy import registry
from shoal.policy.binding.table import BoundTable, bound_table
from shoal.policy.problem import Problem
from shoal.privacy.promises import BoundPromises, infeasible_promises
from shoal.recoding.recode import find_classes, recode
from shoal.search.segments import repair

if TYPE_CHECKING:
    from shoal.attacks.beside.guard import BesideGuard
    from shoal.auditor.audit import AuditResult
    from shoal.tables.global_recoding import Plan


# what few publications ask for is imported where it is done


WITHHELD = "nothing was written"
ReportBeside: TypeAlias = "Callable[[AuditResult], BesideReport]"
BOUNDED = "rounded-partition"
"""The method that promises as many classes as there can be; how near it came is stated."""


@dataclass(frozen=True)
class RecodedDraft:
    """What would be published.

    asked: what the policy asks, whichever method made the release.
    plan: to be saved; None for local recoding, and where one was applied.
    certificate_extras: more keys of the certificate. beside: what it says of other releases, where
    it is published beside some, once it was read back.
    sensitive: the second table of two.
    """

    shown: pl.DataFrame | ShownTable
    asked: Problem
    truth: Truth
    method: MethodReport
    reasons: dict[str, int]
    seconds: float
    plan: Plan | None = None
    certificate_extras: Json = field(default_factory=dict)
    beside: ReportBeside | None = None
    sensitive: pl.DataFrame | None = None

    @property
    def frame(self) -> pl.DataFrame:
        """The release; raises InputError where it does not fit into memory."""
        return self.shown if isinstance(self.shown, pl.DataFrame) else self.shown.frame


def prepare(
    table: Table,
    bound: BoundTable,
    progress: Progress = no_progress,
    plan: Plan | None = None,
    explained: bool = False,
    typed: bool = True,
    beside: BesideGuard | None = None,
) -> RecodedDraft:
    """The release as it would be published.

    plan: to be applied instead of a search. typed: as for `recode`. beside: releases that are out.
    """
    if bound.encoded.suppressed.any() and bound.asked.compares_with_input:
        raise InputError(
            "missing: 'suppress' takes records out of what 'reference: input' compares with; set"
            " missing to value, or leave reference out"
        )
    if bound.asked.is_in_two_tables:
        if beside is not None:
            bound.asked.policy.refuse_two_tables("beside")
        return _in_two_tables(table, bound, progress, explained)
    report = None
    if beside is None:
        decision = _decide_recoding(bound, progress, plan, explained)
    else:
        decision, report = _beside(table, bound, beside, progress, explained)
    if beside is None or not beside.is_own:  # which asks whom these cells fit in other releases
        table = table.without([attribute.name for attribute in bound.schema.quasi])
    progress("recoding")
    recoded = recode(
        table,
        bound,
        decision.recoding,
        merging=beside is None,
        typed=typed,
        withheld=beside is not None,
    )
    missing = int(bound.encoded.suppressed.sum())
    reasons = ({"missing quasi-identifier": missing} if missing else {}) | decision.reasons
    return RecodedDraft(
        recoded.frame,
        bound.asked,
        recoded.truth,
        decision.method,
        reasons,
        decision.seconds,
        decision.plan,
        decision.certificate_extras,
        report,
    )


def _in_two_tables(
    table: Table, bound: BoundTable, progress: Progress, explained: bool
) -> RecodedDraft:
    """Groups of the policy's method in two tables, the first sorted by what its rows show."""
    problem = bound.problem
    if explained:
        raise InputError(_no_explanation(problem))
    progress(f"finding groups by {problem.method_name}")
    # draws follow from what the records hold, not from their order
    text = table.frame.select(pl.all().cast(pl.String))
    order = text.select(pl.arg_sort_by(text.columns)).to_series().to_numpy()
    by_content = Table(table.frame[order])
    again = bound_table(by_content, problem.policy)
    groups, seconds = _groups(by_content, again)
    shown = TwoTables().tables(by_content, again.encoded, groups, again.schema)
    rows = published_order(shown[""], again.problem.quasi, again.schema.render)
    return RecodedDraft(
        shown[""][rows],
        bound.asked,
        Truth(table, bound.encoded, order[rows]),
        problem.stated_method(),
        {},
        seconds,
        sensitive=shown[SENSITIVE],
    )


def with_bound(certificate: Certificate, problem: Problem, release: Release | None) -> Certificate:
    """The certificate of `BOUNDED` with the most classes there can be, where that is known.

    release: None past memory, where promises count records alone.
    """
    from shoal.search.most_classes import class_bound

    records = certificate["records"]
    one = Classes(np.broadcast_to(np.int32(0), records["out"] - records["withheld"]), 1)
    bound = class_bound(problem.promises, one if release is None else release.classes)
    if bound is None:
        return certificate
    return certificate.extended(classes=certificate["classes"] | {"bound": bound})


class RecodingDecision(NamedTuple):
    """How a table is recoded, and what there is to say about it."""

    recoding: Partition | Cut | GlobalRecoding
    seconds: float
    method: MethodReport
    reasons: dict[str, int]
    plan: Plan | None = None
    certificate_extras: Json = {}


def _beside(
    table: Table, bound: BoundTable, guard: BesideGuard, progress: Progress, explained: bool
) -> tuple[RecodingDecision, ReportBeside]:
    """What the policy's method does inside the classes of releases that are out; or anywhere, its
    classes united until enough people fit. And how the certificate reports it.
    """
    from shoal.attacks.beside.guard import OldCells
    from shoal.tables.aligned import find_aligned, find_united, require_one_class_each

    if explained:
        raise InputError("--explain: is for methods of global recoding, which --others refuses")
    problem = bound.problem
    k, named = require_one_class_each(table, problem)
    if guard.is_own:
        found = find_united(table, bound, guard, progress)
        return _withholding(problem, *found), partial(guard.report, k)
    old = OldCells.of(guard, k, named)
    return _withholding(problem, *find_aligned(bound, old, progress)), old.report_of


def _withholding(problem: Problem, classes: Partition, seconds: float) -> RecodingDecision:
    """Classes beside other releases, and how many people are in none."""
    method = problem.stated_method(classes.search_statistics)
    withheld = int((classes.labels < 0).sum())
    reasons = {"withheld beside other releases": withheld} if withheld else {}
    return RecodingDecision(classes, seconds, method, reasons)


def _decide_recoding(
    bound: BoundTable, progress: Progress, plan: Plan | None, explained: bool
) -> RecodingDecision:
    """What a plan, or else the policy's method, does with the table."""
    if plan is not None:
        progress("applying the plan")
        return _planned(bound, plan)
    problem = bound.problem
    matrix, whole_table = bound.method_input()
    progress(f"finding classes by {problem.method_name}")
    classes, seconds = find_classes(matrix, whole_table, problem, progress)
    method = problem.stated_method(classes.search_statistics)
    if not isinstance(classes, Cut):
        if explained:
            raise InputError(_no_explanation(problem))
        return RecodingDecision(classes, seconds, method, {})
    from shoal.tables.global_recoding import Plan

    cut = classes
    suppressed_count = int((cut.round_of_record() < 0).sum())
    reasons = {"suppressed by the method": suppressed_count} if suppressed_count else {}
    saved = Plan.of(cut, bound.encoded.attributes, bound.schema.render, method)
    extras = {}
    if explained:
        from shoal.tables.global_recoding import explain

        progress("asking what would be cheaper")
        extras["explanation"] = explain(matrix, whole_table, cut, problem)
    return RecodingDecision(cut, seconds, method, reasons, saved, extras)


def _no_explanation(problem: Problem) -> str:
    return (
        f"method '{problem.method_name}': recodes each class on its own, so no level or column"
        " forced it; --explain is for methods of global recoding, such as full-domain"
    )


def _planned(bound: BoundTable, plan: Plan) -> RecodingDecision:
    """The table recoded by a plan that another one gave."""
    from shoal.tables.global_recoding import apply_plan

    started = time.process_time()
    recoding, reasons, stated = apply_plan(plan, bound)
    seconds = time.process_time() - started
    # its search statistics are about another table
    made_by = MethodReport(name=plan.method["name"], parameters=plan.method["parameters"])
    return RecodingDecision(recoding, seconds, made_by, reasons, None, {"plan": stated})


# What a publish found: the certificate, the release, and the draft that it was made of.


@dataclass(frozen=True)
class Outcome(CertifiedRelease):
    """A published table: its certificate, and what a report needs to be drawn from it.

    draft: what was published. frames: the release where it stays in memory, of two tables both.
    """

    draft: RecodedDraft
    frames: Sequence[pl.DataFrame] = ()


ROWS = 1 << 16


def _groups(table: Table, bound: BoundTable) -> tuple[Partition, float]:
    """Groups that keep every promise, and the seconds that finding them took.

    Raises InputError where a person has several records, InfeasibleError where no groups keep the
    promises.
    """
    problem, encoded = bound.problem, bound.encoded
    several = 0 if encoded.subjects is None else int((np.bincount(encoded.subjects) > 1).sum())
    if several:
        raise InputError(
            f"method '{problem.method_name}': {several} people have several records, which"
            " different groups would show; publish one record of each"
        )
    promises = problem.promises
    InfeasibleError.raise_for(infeasible_promises(promises, bound.whole_table))
    (hidden,) = bound.whole_table.sensitive.values()
    matrix, asked = bound.matrix(), BoundPromises(promises, bound.whole_table)
    started = time.process_time()
    with registry.blaming_plug_in(problem.method_name, "publish"):
        method = problem.build_method()
        answer = method.bucketize(matrix, hidden, asked, _secret_rng(table, problem.seed))
        groups = repair(matrix, Partition.answered(answer, matrix.records), asked)
    return groups, time.process_time() - started


def _secret_rng(table: Table, seed: int) -> np.random.Generator:
    """Draws that follow from the seed and all that the table holds, columns that are removed too.

    The seed is published, and whoever could repeat the draws for any way to deal the values to the
    rows would find which of them leads to these groups.
    """
    digest = sha256()
    for piece in table.frame.iter_slices(ROWS):
        digest.update(piece.write_csv().encode())
    return np.random.default_rng([seed, int.from_bytes(digest.digest())])
