"""Invented rows, which fill classes that lack a sensitive value."""

from __future__ import annotations

import numpy as np
import polars as pl

from shoal.connectors.ledger.identities import Identities
from shoal.data.ledger_view import Placement
from shoal.data.partition import Partition
from shoal.data.schema import Schema


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
