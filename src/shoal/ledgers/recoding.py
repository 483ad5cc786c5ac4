"""The rows of a planned release: the cells of classes, and rows that a method invents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from shoal.connectors.ledger.identities import Identities
from shoal.data.ledger_view import Placement
from shoal.data.partition import Partition
from shoal.data.schema import Schema
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


# Invented rows, which fill classes that lack a sensitive value.


def with_counterfeits(
    frame: pl.DataFrame,
    identities: Identities,
    placed: Placement,
    partition: Partition,
    values: list[str],
    schema: Schema,
) -> tuple[pl.DataFrame, Identities]:
    """The rows of the table and behind them the invented ones, which show what their class shows.

    Each bears the token of a member of its class, so that it never counts as a person of its own.
    """
    assert identities.subjects is not None  # signatures need a subject
    member = np.zeros(partition.count, dtype=np.int64)
    member[partition.labels] = np.arange(len(partition.labels))
    models = member[placed.counterfeits[:, 0]]
    invented = frame[models].with_columns(
        pl.Series(attribute.name, [values[v] for v in placed.counterfeits[:, 1].tolist()])
        for attribute in schema.sensitive
    )
    invented = invented.with_columns(
        pl.col(name).cast(dtype) for name, dtype in frame.schema.items()
    )
    real, more = len(identities.records), len(models)
    return pl.concat([frame, invented]), Identities(
        records=np.concatenate([identities.records, np.full(more, -1, dtype=np.int64)]),
        subjects=np.concatenate([identities.subjects, identities.subjects[models]]),
        invented=np.arange(real + more) >= real,
        changed=np.concatenate([identities.is_changed, np.zeros(more, dtype=bool)]),
    )


def counterfeits_by_class(frame: pl.DataFrame, real: int, schema: Schema) -> pl.DataFrame:
    """The cells of each class that has invented rows, and how many. real: rows that are not."""
    quasi = [attribute.name for attribute in schema.quasi]
    text = frame[real:].select(pl.col(quasi).cast(pl.String))
    return text.group_by(quasi).agg(pl.len().alias("counterfeits")).sort(quasi)
