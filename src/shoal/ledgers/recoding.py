"""The rows of a planned release: the cells of classes, and rows that a method invents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shoal.data.ledger_view import Placement
from shoal.data.partition import Partition
from shoal.ledgers.counterfeits import counterfeits_by_class, with_counterfeits
from shoal.ledgers.increment import CandidateRecords
from shoal.ledgers.planned_release import PlannedRelease, row_order
from shoal.policy.binding.table import BoundTable
from shoal.policy.policy import Policy
from shoal.recoding.recode import recode


def recoded(
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
    found = recode(
        candidates.table,
        _in_input_order(bound),
        partition,
        policy,
        judged=values is None,
        merging=False,  # earlier releases tell which records may be together
        typed=False,
    )
    frame, identities = found.frame, candidates.identities()
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
        truth=replace(found.truth, rows=real),
        known=None if is_real.all() else np.flatnonzero(is_real),
        counterfeits=counterfeits,
        returning=candidates.returning,
    )


def _in_input_order(bound: BoundTable) -> BoundTable:
    """The same table, to be recoded in its own order."""
    render = replace(bound.schema.render, order="input")
    return replace(bound, schema=replace(bound.schema, render=render))
