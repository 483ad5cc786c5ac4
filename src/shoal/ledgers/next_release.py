"""The next release as it would be published: which records it holds, and in which classes.

In one of three ways, by what a method needs of published records: nothing or their originals
(here), or the boxes of their classes (`published_boxes`). People who come again are planned
elsewhere (`returning`).
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.ledger import terms
from shoal.connectors.ledger import Ledger
from shoal.data.progress import Progress
from shoal.ledgers.increment import (
    CandidateRecords,
    DeferredRecords,
    collect_candidates,
    last_arrivals,
    waits_for_a_price,
)
from shoal.ledgers.placing import bound_table, place, view_of_records
from shoal.ledgers.planned_release import NO_ROOM, PlannedRelease
from shoal.ledgers.published_boxes import plan_into_boxes
from shoal.ledgers.recoding import recoded
from shoal.ledgers.returning import plan_again, refuse_panel
from shoal.policy.policy import Policy
from shoal.privacy.promises import nearest_feasible


def plan(
    frame: pl.DataFrame, policy: Policy, method: Any, ledger: Ledger, progress: Progress
) -> PlannedRelease | DeferredRecords:
    """The next release; only the deferred records where there is none.

    Raises InputError, PromiseError or InfeasibleError.
    """
    planned = _plan(frame, policy, method, ledger, progress)
    if not waits_for_a_price(method):
        return planned
    arrivals = last_arrivals(ledger, frame.height)
    if isinstance(planned, DeferredRecords):
        return planned.after(method.deadline, arrivals)
    return replace(planned, waiting=planned.waiting.after(method.deadline, arrivals))


def _plan(
    frame: pl.DataFrame, policy: Policy, method: Any, ledger: Ledger, progress: Progress
) -> PlannedRelease | DeferredRecords:
    if terms.returns_people(method):
        return plan_again(frame, policy, method, ledger, progress)
    progress("checking the data against the policy")
    refuse_panel(method, ledger)
    candidates = collect_candidates(frame, policy, method, ledger)
    if not candidates.is_new:
        return candidates.defer("the increment holds nothing new")
    if method.needs == "boxes" and ledger.exists and ledger.releases():
        return plan_into_boxes(candidates, policy, method, ledger, progress)
    return _plan_new_classes(candidates, frame.height, policy, method, ledger, progress)


def _plan_new_classes(
    candidates: CandidateRecords,
    arrived: int,
    policy: Policy,
    method: Any,
    ledger: Ledger,
    progress: Progress,
) -> PlannedRelease | DeferredRecords:
    """All candidates in new classes; those for which the method finds none wait.

    arrived: records of the increment.
    """
    bound = bound_table(candidates.table, policy)
    matrix, whole_table = bound.method_input()
    obstacles = nearest_feasible(policy.build_promises(), whole_table)
    if obstacles:
        return candidates.defer(*obstacles)
    progress(f"finding classes by {policy.method_name}")
    began = time.process_time()
    view, values = view_of_records(candidates, bound, policy, method, ledger)
    if waits_for_a_price(method) and candidates.waited is not None:
        waited = candidates.waited[~bound.encoded.suppressed]
        recent = last_arrivals(ledger, arrived)
        view = replace(view, waited=waited, arrivals=sum(recent) / len(recent))
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
    planned = recoded(candidates, bound, placed, values, policy)
    return replace(planned, waiting=waiting, seconds=seconds)
