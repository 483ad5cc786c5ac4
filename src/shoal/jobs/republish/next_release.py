"""The next release as it would be published: which records it holds, and in which classes.

In one of three ways, by what a method needs of published records: nothing or their originals
(here), or the boxes of their classes (`published_boxes`).
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from shoal.binding.table import BoundTable
from shoal.data.ledger_view import Placement
from shoal.data.partition import Partition
from shoal.data.progress import Progress
from shoal.jobs.publish.recode import recode
from shoal.jobs.republish.counterfeits import counterfeits_by_class, with_counterfeits
from shoal.jobs.republish.increment import CandidateRecords, DeferredRecords, collect_candidates
from shoal.jobs.republish.placing import bound_table, place, view_of_records
from shoal.jobs.republish.planned_release import PlannedRelease, row_order
from shoal.jobs.republish.published_boxes import plan_into_boxes
from shoal.policy.policy import Policy
from shoal.privacy.promises import nearest_feasible
from shoal.state.ledger import Ledger

NO_ROOM = "no class has room for them yet"


def plan(
    frame: pl.DataFrame, policy: Policy, method: Any, ledger: Ledger, progress: Progress
) -> PlannedRelease | DeferredRecords:
    """The next release; only the deferred records where there is none.

    Raises InputError, PromiseError or InfeasibleError.
    """
    progress("checking the data against the policy")
    candidates = collect_candidates(frame, policy, method, ledger)
    if not candidates.is_new:
        return candidates.defer("the increment holds nothing new")
    if method.needs == "boxes" and ledger.exists and ledger.releases():
        return plan_into_boxes(candidates, policy, method, ledger, progress)
    return _plan_new_classes(candidates, policy, method, ledger, progress)


def _plan_new_classes(
    candidates: CandidateRecords, policy: Policy, method: Any, ledger: Ledger, progress: Progress
) -> PlannedRelease | DeferredRecords:
    """All candidates in new classes; those for which the method finds none wait."""
    bound = bound_table(candidates.table, policy)
    matrix = bound.matrix()
    whole_table = bound.published(matrix.subjects)
    obstacles = nearest_feasible(policy.build_promises(), whole_table)
    if obstacles:
        return candidates.defer(*obstacles)
    progress(f"finding classes by {policy.method_name}")
    began = time.process_time()
    view, values = view_of_records(candidates, bound, policy, method, ledger)
    placed = place(matrix, view, whole_table, policy, method)
    seconds = time.process_time() - began
    kept = np.ones(candidates.table.records, dtype=bool)
    kept[~bound.encoded.suppressed] = placed.labels >= 0
    if not kept.any():
        return candidates.defer("no class can be made of it yet")
    if not candidates.shows_new(kept):
        return candidates.defer(NO_ROOM)
    waiting = DeferredRecords()
    if not kept.all():
        waiting = candidates.only(~kept).defer(NO_ROOM)
        candidates = candidates.only(kept)
        bound = bound_table(candidates.table, policy)
    progress("recoding")
    planned = _recoded(candidates, bound, placed, values, policy)
    return replace(planned, waiting=waiting, seconds=seconds)


def _recoded(
    candidates: CandidateRecords,
    bound: BoundTable,
    placed: Placement,
    values: list[str] | None,
    policy: Policy,
) -> PlannedRelease:
    """The rows of all these records and of invented ones, in the order that the policy asks for.

    values: the text of each sensitive value, where the method invents rows.
    """
    partition = Partition(placed.labels[placed.labels >= 0], placed.count)
    # a method that invents rows suppresses none, and classes are whole only with those rows
    recoded = recode(
        candidates.table,
        _in_input_order(bound),
        partition,
        policy,
        judged=values is None,
        merging=False,  # earlier releases tell which records may be together
        typed=False,
    )
    frame, identities = recoded.frame, candidates.identities()
    records = frame.height
    counterfeits = None
    if values is not None:
        frame, identities = with_counterfeits(
            frame, identities, placed, partition, values, bound.schema
        )
        counterfeits = counterfeits_by_class(frame, records, bound.schema)
    order = row_order(frame, bound.schema, policy.model.seed)
    is_real = order < records
    real = order[is_real]
    return PlannedRelease(
        frame[order],
        bound.schema,
        identities.take(order),
        originals=candidates.table.frame[real],
        truth=replace(recoded.truth, rows=real),
        known=None if is_real.all() else np.flatnonzero(is_real),
        counterfeits=counterfeits,
        returning=candidates.returning,
    )


def _in_input_order(bound: BoundTable) -> BoundTable:
    """The same table, to be recoded in its own order."""
    render = replace(bound.schema.render, order="input")
    return replace(bound, schema=replace(bound.schema, render=render))
