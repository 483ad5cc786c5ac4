"""Frames of any kind in, the same kind out: pandas, polars and pyarrow through one thin adapter."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import polars as pl

from shoal.connectors.files import check_plain
from shoal.data.table import Table
from shoal.errors import InputError


def table_of(frame: Any, allow_empty: bool = False) -> Table:
    """The frame as a table; raises InputError for what is no frame, or one without records."""
    if isinstance(frame, Table):
        return frame
    eager = _eager(frame)
    repeated = sorted({name for name in eager.columns if eager.columns.count(name) > 1})
    if repeated:
        raise InputError(
            f"frame: column names {', '.join(map(repr, repeated))} occur twice; rename one"
        )
    try:
        polars = eager.to_polars()
    except (
        Exception
    ):  # each kind of frame has its own ways to fail, and their texts may hold values
        raise InputError(
            "frame: a column mixes kinds of values; give every column one kind"
        ) from None
    if not polars.height and not allow_empty:
        raise InputError("frame: holds no records; publish a table with at least k people")
    check_plain(polars, "frame")
    return Table(polars)


def like(frame: Any, polars: pl.DataFrame) -> Any:
    """A polars frame as the kind of frame that `frame` is."""
    text = polars.with_columns(
        pl.col(name).cast(pl.String) for name, dtype in polars.schema.items() if dtype == pl.Enum
    )
    return nw.from_arrow(text, backend=_eager(frame).implementation).to_native()


def _eager(frame: Any) -> nw.DataFrame[Any]:
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError:
        raise InputError(
            "frame: is not a pandas, polars or pyarrow table; read the data into one of them, and"
            " collect lazy ones"
        ) from None
    except nw.exceptions.DuplicateError:
        raise InputError("frame: a column name occurs twice; rename one") from None
