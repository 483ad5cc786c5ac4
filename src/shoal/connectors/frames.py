"""Frames of any kind in, the same kind out: pandas, polars and pyarrow through one thin adapter.

What streams Arrow, such as a result of DuckDB, is taken too; a polars frame comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

import polars as pl

from shoal.connectors.files import check_plain
from shoal.data.table import Table
from shoal.errors import InputError

if TYPE_CHECKING:
    import narwhals as nw
    from narwhals.typing import IntoDataFrame


@runtime_checkable
class ArrowStream(Protocol):
    """A table that hands itself on as a stream of Arrow (the PyCapsule interface)."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Frame: TypeAlias = "IntoDataFrame | ArrowStream"
"""A table of pandas, polars or pyarrow, or of anything that streams Arrow."""

FrameT = TypeVar("FrameT", bound=Frame)


def table_of(frame: Frame | Table, allow_empty: bool = False) -> Table:
    """The frame as a table; raises InputError for another thing, or a frame without records."""
    if isinstance(frame, Table):
        return frame
    eager = _eager(frame)
    _check_names(eager.columns)
    try:
        polars = eager.to_polars()
    except Exception:
        # each kind of frame has its own ways to fail, and their texts may hold values
        raise InputError.from_findings(_mixed_columns(eager)) from None
    if not polars.height and not allow_empty:
        raise InputError("frame: holds no records; publish a table with at least k people")
    check_plain(polars, "frame")
    return Table(polars)


def _check_names(names: Sequence[object]) -> None:
    repeated = sorted({str(name) for name in names if names.count(name) > 1})
    if repeated:
        what = "column name" if len(repeated) == 1 else "column names"
        occur = "occurs" if len(repeated) == 1 else "occur"
        raise InputError(
            f"frame: {what} {', '.join(map(repr, repeated))} {occur} twice; rename one"
        )


def _mixed_columns(frame: nw.DataFrame[IntoDataFrame]) -> list[str]:
    """What to say of the columns that no one type fits, with the first row that differs."""
    findings = []
    for name in frame.columns:
        try:
            frame.select(name).to_polars()
        except Exception:
            kinds = [(row, _kind(cell)) for row, cell in enumerate(frame[name].to_list(), 1)]
            filled = [(row, kind) for row, kind in kinds if kind is not None]
            other = next((row for row, kind in filled if kind is not filled[0][1]), None)
            where = "" if other is None else f" (row {other})"
            findings.append(
                f"frame: column '{name}' mixes kinds of values{where}; give it one kind"
            )
    return findings or ["frame: a column mixes kinds of values; give every column one kind"]


def _kind(cell: object) -> type | None:
    """The type of a cell, one for all numbers; None where it is empty."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(cell, Real) and not isinstance(cell, bool):
        return None if cell != cell else float  # NaN
    return type(cell)


def like(frame: FrameT, polars: pl.DataFrame) -> FrameT:
    """A polars frame as the kind of frame that `frame` is."""
    import narwhals as nw  # here and below: publishing from file to file does not need it

    text = polars.with_columns(
        pl.col(name).cast(pl.String) for name, dtype in polars.schema.items() if dtype == pl.Enum
    )
    made = nw.from_arrow(text, backend=_eager(frame).implementation).to_native()
    return cast(FrameT, made)


def ordered_categories(frame: Frame) -> dict[str, list[str]]:
    """The labels, least first, of every column whose categories have an order."""
    import narwhals as nw

    schema = _eager(frame).schema
    return {
        name: [str(label) for label in dtype.categories]
        for name, dtype in schema.items()
        if isinstance(dtype, nw.Enum)
    }


def _eager(frame: Frame) -> nw.DataFrame[IntoDataFrame]:
    import narwhals as nw

    try:
        known = nw.from_native(frame, eager_only=True, pass_through=True)
        if isinstance(known, nw.DataFrame):
            return known
        if isinstance(frame, ArrowStream):
            return nw.from_native(pl.DataFrame(frame), eager_only=True)
    except nw.exceptions.DuplicateError:
        _check_names([*getattr(frame, "column_names", getattr(frame, "columns", ()))])
        raise InputError("frame: a column name occurs twice; rename one") from None
    except Exception:  # each library has its own ways to fail, and their texts may hold values
        pass
    raise InputError(
        "frame: is not a pandas, polars or pyarrow table; read the data into one of them, and"
        " collect lazy ones"
    )
