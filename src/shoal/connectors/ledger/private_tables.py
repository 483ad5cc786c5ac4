"""Tables of a ledger's private part, each in a file of its own."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl


def write_table(frame: pl.DataFrame, path: Path) -> None:
    content = io.BytesIO()
    frame.write_parquet(content)
    # a full disk is an OSError here, which it is not where Polars writes
    path.write_bytes(content.getbuffer())


def read_table(path: Path) -> pl.DataFrame | None:
    return pl.read_parquet(path) if path.exists() else None
