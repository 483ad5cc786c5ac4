"""Frames of any kind in, the same kind out: pandas, polars and pyarrow through one thin adapter.

What streams Arrow, such as a result of DuckDB, is taken too; a polars frame comes back.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from numbers import Real
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast, runtime_checkable
from weakref import WeakKeyDictionary

import numpy as np
import polars as pl

from shoal.connectors.dialect import AS_FOUND, Reading
from shoal.connectors.typed import CONVERT, DURATIONS, is_text, objects_of, plain
from shoal.data.table import Table
from shoal.errors import InputError, is_of_a_library, library_errors_as

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa
    from narwhals.typing import IntoDataFrame


@runtime_checkable
class ArrowStream(Protocol):
    """A table that hands itself on as a stream of Arrow (the PyCapsule interface)."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Frame: TypeAlias = "IntoDataFrame | ArrowStream"
"""A table of pandas, polars or pyarrow, or of anything that streams Arrow."""
NO_ORDER: Mapping[str, Sequence[str]] = {}

FrameT = TypeVar("FrameT", bound=Frame)


def table_of(frame: Frame | Table, allow_empty: bool = False, reading: Reading = AS_FOUND) -> Table:
    """The frame as a table; raises InputError for another thing, or a frame without records.

    reading: which columns are needed; one that is not may hold anything.
    """
    if isinstance(frame, Table):
        return frame
    eager = _eager(frame)
    _check_names(eager.columns)
    try:
        polars = _unchanged(eager)
    except BaseException as failed:
        _require_known(failed)
        polars = _by_columns(eager, reading)
    if not polars.height and not allow_empty:
        raise InputError("frame: holds no records; publish a table with at least k people")
    return Table(plain(polars, "frame", reading))


def nan_in(frame: Frame | Table, reading: Reading = AS_FOUND) -> dict[str, int]:
    """How many cells are NaN, by needed column; nothing for pandas, where NaN means missing."""
    eager = None if isinstance(frame, Table) else _eager(frame)
    if eager is None or eager.implementation.is_pandas():
        return {}
    floats = [name for name, dtype in eager.schema.items() if dtype.is_float()]
    return {name: int(eager[name].is_nan().sum()) for name in floats if reading.needs(name)}


def _require_all_in_columns(frame: Any) -> None:
    """Raises InputError where the index of a pandas frame may number people: it is not read.

    Whole numbers without a name that begin anew number the rows of frames that were joined.
    """
    for level, name in enumerate(frame.index.names):
        cells = frame.index.get_level_values(level)
        is_of_rows = name is None and cells.dtype.kind in "iu" and (cells[1:] != cells[:-1]).all()
        if cells.has_duplicates and not is_of_rows and (name is None or name not in frame.columns):
            shown = "" if name is None else f" '{name}'"
            raise InputError(
                f"frame: its index{shown} is left out, and may number people, as its values"
                " repeat; make it a column by reset_index(), or say reset_index(drop=True)"
            )


def refuse_index(frame: Any, names: Collection[str]) -> None:
    """Raises InputError for a name of the index of a pandas frame, which is not read."""
    of_index = [*getattr(getattr(frame, "index", None), "names", ())]
    InputError.raise_for(
        f"frame: '{name}' is its index, which is left out; make it a column by reset_index()"
        for name in of_index
        if name in names and name not in frame.columns
    )


def _as_shown(frame: Any) -> Any:
    """A pandas frame with periods and intervals as the texts that pandas shows of them, and with
    sparse columns filled.
    """
    from pandas.api.types import infer_dtype

    shown = {}
    for place in range(frame.shape[1]):
        cells = frame.iloc[:, place]
        labels = getattr(cells.dtype, "categories", None)
        if labels is not None and _are_spans(labels.dtype):
            if cells.cat.ordered:
                shown[place] = cells.cat.rename_categories(labels.astype(str))
                continue
            cells = cells.astype(labels.dtype)
        elif cells.dtype == object and infer_dtype(cells) in SPANS:
            cells = cells.infer_objects()
        if _are_spans(cells.dtype):
            shown[place] = _in_their_order(cells)
        elif str(cells.dtype).startswith("Sparse"):
            shown[place] = cells.sparse.to_dense()
    if not shown:
        return frame
    frame = frame.copy(deep=False)
    for place, cells in shown.items():
        frame.isetitem(place, cells)
    return frame


SPANS = ("period", "interval")
"""What pandas calls spans of time, and of numbers or time."""


def _are_spans(dtype: object) -> bool:
    return str(dtype).startswith(SPANS)


def _in_their_order(cells: Any) -> Any:
    """Periods and intervals as texts: ordered categories, unless they overlap, or the texts are
    dates, which have calendar periods of their own.
    """
    from pandas import CategoricalDtype

    texts = cells.astype(str).where(cells.notna(), None)
    known = cells.dropna().drop_duplicates().sort_values()
    if str(cells.dtype).startswith("interval"):
        has_order = known.array.is_non_overlapping_monotonic
    else:
        has_order = (known.dt.end_time - known.dt.start_time).max().days > 0
    return texts.astype(CategoricalDtype(known.astype(str), ordered=True)) if has_order else texts


DURATION = "month_day_nano_interval"
PANICS = re.compile(f"decimal256|{DURATION}")
"""Types of Arrow at which Polars panics aloud."""


def _unchanged(frame: nw.DataFrame[IntoDataFrame]) -> pl.DataFrame:
    """The frame in Polars; raises an error, whichever, where some column can't be read, or cells
    of several kinds would be made one.
    """
    native: Any = frame.to_native()
    kinds = native.schema.types if frame.implementation.is_pyarrow() else native.dtypes
    if PANICS.search(" ".join(map(str, kinds))):
        raise ValueError
    polars = frame.to_polars()
    for place, (kind, read) in enumerate(zip(kinds, polars.dtypes, strict=True)):
        held = getattr(getattr(kind, "categories", None), "dtype", kind)
        may_mix = str(held) == "object" and (read.is_float() or read.is_temporal())
        if may_mix and _first_other(frame[:, place]) is not None:
            raise ValueError
    return polars


def _require_known(failed: BaseException) -> None:
    """Raises again what no library of frames raised: texts of theirs may hold values."""
    if not isinstance(failed, Exception) and not is_of_a_library(failed):
        raise failed


def _check_names(names: Sequence[object]) -> None:
    shown = [str(name) for name in names]
    repeated = sorted(name for name, times in Counter(shown).items() if times > 1)
    if repeated:
        what = "column name" if len(repeated) == 1 else "column names"
        occur = "occurs" if len(repeated) == 1 else "occur"
        raise InputError(
            f"frame: {what} {', '.join(map(repr, repeated))} {occur} twice; rename one"
        )
    for name in shown:
        if not is_text(name):
            raise InputError(f"frame: column name {name!r} is not a text; rename the column")


def _by_columns(frame: nw.DataFrame[IntoDataFrame], reading: Reading) -> pl.DataFrame:
    """Each column by itself, as texts where one can't be read and nobody needs it.

    Raises InputError with all others, and the first row that differs.
    """
    columns, findings = [], []
    for place, name in enumerate(map(str, frame.columns)):
        try:
            columns.append(_unchanged(frame[:, [place]]).to_series().alias(name))
        except BaseException as failed:
            _require_known(failed)
            columns.append(_told_apart(frame[:, place], name))
            if reading.needs(name):
                row = _first_other(frame[:, place])
                findings.append(
                    f"frame: column '{name}' holds {_holding(frame[:, place])}"
                    if row is None
                    else f"frame: column '{name}' mixes kinds of values (row {row}); give it one"
                    " kind"
                )
    InputError.raise_for(findings)
    return pl.DataFrame(columns)


def _holding(cells: nw.Series[Any]) -> str:
    """What cells that can't be read are, and the way out."""
    native: Any = cells.to_native()
    dtype = str(getattr(native, "dtype", getattr(native, "type", "")))
    if dtype.startswith(DURATION):
        return DURATIONS
    if dtype != "object":
        return f"values of the type {dtype}; {CONVERT}"
    return objects_of(next(type(cell) for cell in cells.to_list() if _kind(cell) is not None))


def _told_apart(cells: nw.Series[Any], name: str) -> pl.Series:
    """A text for each cell that equal ones share: they may number people; none where one fails."""
    try:
        texts = [None if _kind(cell) is None else str(cell) for cell in cells.to_list()]
        return pl.Series(name, texts, pl.String)
    except BaseException as failed:
        _require_known(failed)
        return pl.Series(name, [None] * len(cells), pl.String)


def _first_other(cells: nw.Series[Any]) -> int | None:
    """The first row whose cell is of another kind than those before it."""
    try:
        kinds = [(row, _kind(cell)) for row, cell in enumerate(cells.to_list(), 1)]
    except Exception:
        return None
    filled = [(row, kind) for row, kind in kinds if kind is not None]
    return next((row for row, kind in filled if kind != filled[0][1]), None)


def _kind(cell: object) -> object:
    """What a cell is, one for all numbers, and whether without a time zone; None where empty."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(cell, Real) and not isinstance(cell, bool):
        return None if cell != cell else float  # NaN
    kind = next((kind for kind in KINDS if isinstance(cell, kind)), type(cell))
    return kind, getattr(cell, "tzinfo", None) is None


KINDS = (str, np.bool_, datetime, date, time, timedelta)
"""Those of which cells may be of several types; datetimes are dates, too, so they go first."""


def like(
    frame: FrameT, polars: pl.DataFrame, orders: Mapping[str, Sequence[str]] = NO_ORDER
) -> FrameT:
    """A polars frame as the kind of frame that `frame` is; itself for what only streams Arrow.

    orders: as of `of_library`.
    """
    library = "polars" if _only_streams(frame) else _eager(frame).implementation
    return cast(FrameT, of_library(polars, library, orders))


def of_library(
    polars: pl.DataFrame, library: Any, orders: Mapping[str, Sequence[str]] = NO_ORDER
) -> Any:
    """A polars frame as one of another library, by its name or as Narwhals calls it.

    orders: by column, labels, least first: ordered categories where it shows no other text. A label
    that it does not show is left out, as it may be that of a record which was withheld.
    """
    import narwhals as nw  # here and below: publishing from file to file does not need it

    text = polars.with_columns(
        pl.col(name).cast(pl.String) for name, dtype in polars.schema.items() if dtype == pl.Enum
    )
    shown = {name: set(text[name].drop_nulls().unique()) for name in orders if name in text.columns}
    text = text.with_columns(
        pl.col(name).cast(pl.Enum([label for label in orders[name] if label in labels]))
        for name, labels in shown.items()
        if labels <= set(orders[name])
    )
    backend: Any = nw.Implementation.from_backend(library)
    made: Any = nw.from_arrow(text, backend=backend).to_native()
    if backend.is_pandas():  # which would make fractions of whole numbers beside missing ones
        from pandas.arrays import IntegerArray

        for name in text.columns:
            column = text[name]
            if column.dtype.is_integer() and column.null_count():
                whole = column.fill_null(0).to_numpy(writable=True)
                made[name] = IntegerArray(whole, column.is_null().to_numpy(writable=True))
            elif column.dtype == pl.Boolean and column.null_count():
                made[name] = made[name].astype("boolean")
    return made


def ordered_categories(frame: Frame) -> dict[str, list[str]]:
    """The labels, least first, of every column whose categories have an order."""
    import narwhals as nw

    eager = _eager(frame)
    found = {
        name: [str(label) for label in dtype.categories]
        for name, dtype in eager.schema.items()
        if isinstance(dtype, nw.Enum)
    }
    if eager.implementation.is_pyarrow():
        found |= _ordered_in_arrow(eager.to_native())
    return found


def durations_in(frame: Frame) -> list[str]:
    """The columns of durations, which no release shows; empty if the frame has no other columns."""
    import narwhals as nw

    kinds = _eager(frame).schema
    found = [name for name, dtype in kinds.items() if dtype == nw.Duration]
    return found if len(found) < len(kinds) else []


def _ordered_in_arrow(table: Any) -> dict[str, list[str]]:
    """Those of pyarrow, of which Narwhals says no order; none where parts of a column differ."""
    named = [field.name for field in table.schema if getattr(field.type, "ordered", False)]
    orders = {
        name: {(*part.dictionary.to_pylist(),) for part in table[name].chunks} for name in named
    }
    return {name: [*map(str, *one)] for name, one in orders.items() if len(one) == 1}


def as_it_is(frame: Frame) -> nw.DataFrame[IntoDataFrame]:
    """The frame to be looked at, whatever its cells hold; raises TypeError for another thing."""
    import narwhals as nw

    known: Any = _streamed(cast(ArrowStream, frame)) if _only_streams(frame) else frame
    return nw.from_native(known, eager_only=True)


def _only_streams(frame: Frame) -> bool:
    import narwhals as nw

    return isinstance(frame, ArrowStream) and not nw.dependencies.is_into_dataframe(frame)


def _streamed(stream: ArrowStream) -> pl.DataFrame | pa.Table:
    """All records of a stream; those of one that can be read only once are kept while it lives."""
    if not (isinstance(stream, Iterator) and type(stream).__weakrefoffset__):
        return _all_of(stream)
    if stream not in _READ:
        _READ[stream] = _all_of(stream)
    return _READ[stream]


_READ: WeakKeyDictionary[ArrowStream, pl.DataFrame | pa.Table] = WeakKeyDictionary()


def _all_of(stream: ArrowStream) -> pl.DataFrame | pa.Table:
    """All records, in pyarrow where Polars can't read a column: it may be one that nobody needs."""
    with suppress(ImportError):
        from pyarrow import RecordBatchReader

        reader = stream = RecordBatchReader.from_stream(stream)
        if PANICS.search(" ".join(map(str, reader.schema.types))):
            return reader.read_all()
    with library_errors_as(
        "frame: holds columns that Polars can't read, such as intervals; leave them out, or make"
        " them text"
    ):
        return pl.DataFrame(stream)


def refuse_path(frame: object, instead: str = "") -> None:
    """Raises InputError for the name of a file where a frame is asked for.

    instead: what the message says of a call that takes names.
    """
    if isinstance(frame, str | PathLike):
        raise InputError(
            "frame: is a name, not a table; read the file into a frame, such as by"
            f" polars.read_csv(..., infer_schema=False){instead}"
        )


def _eager(frame: Frame) -> nw.DataFrame[IntoDataFrame]:
    import narwhals as nw

    try:
        known = as_it_is(frame)
        if not known.implementation.is_pandas():
            return known
        _require_all_in_columns(known.to_native())
        return nw.from_native(_as_shown(known.to_native()))
    except nw.exceptions.DuplicateError:
        _check_names([*getattr(frame, "column_names", getattr(frame, "columns", ()))])
        raise InputError("frame: a column name occurs twice; rename one") from None
    except InputError:
        raise
    except BaseException as failed:
        _require_known(failed)
    refuse_path(frame)
    is_inside = nw.dependencies.is_into_dataframe(getattr(frame, "data", None))
    remedy = "give its `.data`" if is_inside else "read the data into one of them"
    raise InputError(
        f"frame: is not a pandas, polars or pyarrow table; {remedy}, and collect lazy ones"
    )
