"""The hash of a table's rows, the same in any database: what a certificate names.

SHA-256 over the names of the columns and then the rows, each a line. A cell is its length in bytes,
a colon, its text and a comma; NULL is `-,`. So no two tables are written alike.
"""

from __future__ import annotations

import hashlib

import polars as pl

BATCH = 1 << 16


def rows_sha256(frame: pl.DataFrame) -> str:
    """The hash of a frame of text."""
    digest = hashlib.sha256()
    digest.update(_line(frame.columns).encode())
    for first in range(0, frame.height, BATCH):
        cells = [_cell(name) for name in frame.columns]
        lines = frame.slice(first, BATCH).select(pl.concat_str([*cells, pl.lit("\n")]))
        digest.update(str(lines.to_series().str.join("").item()).encode())
    return digest.hexdigest()


def _line(names: list[str]) -> str:
    return "".join(f"{len(name.encode())}:{name}," for name in names) + "\n"


def _cell(name: str) -> pl.Expr:
    cell = pl.col(name)
    length = cell.str.len_bytes().cast(pl.String)
    return pl.concat_str([length, pl.lit(":"), cell, pl.lit(",")]).fill_null("-,")
