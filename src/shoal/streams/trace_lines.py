"""The lines of a trace: what became of every record."""

from __future__ import annotations

import polars as pl

from shoal.data.stream import KINDS
from shoal.streams.core import Batch


def trace_lines(batch: Batch, published: int) -> bytes:
    """The lines of a batch in the trace. published: rows that left before it."""
    decided = batch.decided
    frame = pl.DataFrame(
        {
            "seq": batch.position,
            "subject": batch.person if batch.person is not None else batch.position,
            "release": decided.release,
            "class": decided.cluster,
            "kind": pl.Series(list(KINDS)).gather(decided.kind),
            "arrival": decided.seq,
            "emitted": decided.emitted,
            "row": batch.row,
        }
    )
    row, cluster = pl.col("row"), pl.col("class")
    frame = frame.with_columns(
        pl.when(row >= 0).then(row + published).alias("row"),
        pl.when(cluster >= 0).then(cluster).alias("class"),
    )
    return frame.write_ndjson().encode()
