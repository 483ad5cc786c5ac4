"""What tables with types may hold: Parquet, Arrow, JSON lines and frames."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import polars as pl

from shoal.connectors.dialect import AS_FOUND, Reading
from shoal.data.unpacking import CELL, SHORT, most_unpacked, require_room
from shoal.errors import InputError, library_errors_as

FARTHEST_DAY = 95_000_000
"""Days from 1970, on either side, that can be written."""


def require_unfolded(
    paths: Sequence[str | Path], kind: str, what: str, allowed: int | None = None
) -> None:
    """Raises InputError where Parquet or Arrow files hold far more cells or characters than bytes:
    a value that repeats is written once, and read as often. allowed: as in `most_unpacked`.
    """
    most = most_unpacked(sum(os.stat(path).st_size for path in paths), allowed)
    size = 0
    for path in paths:
        incomplete = f"{what}: is not a complete {kind[1:]} file; write it again"
        with library_errors_as(incomplete), open(path, "rb") as file:
            table = pl.scan_parquet(file) if kind == ".parquet" else pl.scan_ipc(file)
            schema = table.collect_schema()
            size += CELL * table.select(pl.len()).collect().item() * len(schema)
            require_room(size, most, what)
            size += table.select(long_texts(schema)).collect().item()
            require_room(size, most, what)


def long_texts(schema: Mapping[str, pl.DataType]) -> pl.Expr:
    """The bytes of a table's texts beyond `SHORT` each, counted where they are written once for
    many cells.
    """
    lengths = [
        pl.col(name).str.len_bytes() if dtype == pl.String else pl.col(name).cat.len_bytes()
        for name, dtype in schema.items()
        if isinstance(dtype, pl.String | pl.Categorical | pl.Enum)
    ]
    long = ((length.cast(pl.Int64) - SHORT).clip(0).sum() for length in lengths)
    return pl.sum_horizontal(pl.lit(0), *long)


def plain(frame: pl.DataFrame, where: str, reading: Reading = AS_FOUND) -> pl.DataFrame:
    """The frame, with one text for all equal cells of columns that nobody needs where these have
    none, such as lists or bytes, one 0 of numbers, and no value where a number is none (NaN);
    raises InputError where columns that are needed hold what has no one text.
    """
    found = [
        name
        for name, dtype in frame.schema.items()
        if dtype.is_nested()
        or dtype in (pl.Binary, pl.Object, pl.Duration)
        or isinstance(dtype, pl.BaseExtension)
        or (dtype in (pl.Date, pl.Datetime) and _is_beyond(frame[name]))
    ]
    odd = [name for name in found if reading.needs(name)]
    if "" in frame.columns and reading.needs(""):
        raise InputError(f"{where}: column {frame.columns.index('') + 1} has no name; give it one")
    if odd:
        hold = "column {} holds" if len(odd) == 1 else "columns {} hold"
        quoted = ", ".join(f"'{name}'" for name in odd)
        raise InputError(
            f"{where}: {hold.format(quoted)} lists, objects, bytes, durations or days beyond all"
            " calendars; give plain values, of a duration for instance its days"
        )
    changed = [_told_apart(frame[name]) for name in found]
    floats = [frame[name] for name, dtype in frame.schema.items() if dtype.is_float()]
    changed += [column.fill_nan(None).set(column == 0, 0.0) for column in floats]  # -0.0, too
    return frame.with_columns(changed) if changed else frame


def _told_apart(cells: pl.Series) -> pl.Series:
    """A text for each cell that equal ones share: they may number people."""
    return cells.hash().cast(pl.String).set(cells.is_null(), None)


def _is_beyond(days: pl.Series) -> bool:
    """Whether some lie beyond the years that have a text."""
    unit = getattr(days.dtype, "time_unit", None)  # None of days
    most = FARTHEST_DAY * {None: 1, "ms": 86_400 * 10**3, "us": 86_400 * 10**6}.get(unit, 10**18)
    cells = days.to_physical()
    return any(end is not None and abs(cast(int, end)) > most for end in (cells.min(), cells.max()))
