"""A release for analysis: the file that its certificate names, with intervals as numbers."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, get_args, overload

import numpy as np
import polars as pl

from shoal.connectors import files
from shoal.connectors.dialect import reading_as_stated
from shoal.connectors.frames import FrameT, as_it_is, of_library
from shoal.connectors.location import Location
from shoal.connectors.outputs import certificate_beside
from shoal.connectors.parquet_parts import check_released
from shoal.data import notebook
from shoal.data.certificate import Certificate
from shoal.data.numbers import Notation, PublishedNumbers, map_cells, number_text, parse_numbers
from shoal.data.option import require_choice
from shoal.data.person.columns import NO_VALUE
from shoal.data.regular_files import path_text, readable
from shoal.data.release import read_column
from shoal.data.schema import Attribute, Kind, Render, Role, Schema, Shown
from shoal.data.table import Column, as_text, encode_text, with_decimals
from shoal.data.warnings import NOT_NUMBERS, SIGN_OF_NO_VALUE, ReleaseWarning, warn
from shoal.errors import InputError
from shoal.policy.binding.notation import (
    COMPUTED,
    Span,
    as_numbers,
    spans_of_bins,
    spans_of_numbers,
)
from shoal.policy.model import PolicyModel
from shoal.policy.proposal.cells import ColumnCells, ends_of_spans, span_ends

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Numbers = Literal["published", "interval", "mid", "mean"]
Library = Literal["polars", "pandas", "pyarrow"]
SHOWN = {
    "interval": Shown.RANGE,
    "span": Shown.RANGE,
    "mean": Shown.MEAN,
    "mean-and-interval": Shown.BOTH,
    "median": Shown.MEDIAN,
}


@dataclass(frozen=True, repr=False)
class ReleaseFrame(notebook.Figures, Generic[FrameT]):
    """A release that was read.

    data: the frame. columns: what the certificate, or else a Parquet file, says about each.
    certificate: None where there is none.
    """

    data: FrameT
    columns: Sequence[Mapping[str, Any]]
    certificate: Certificate | None

    def _figures(self) -> dict[str, int]:
        rows, columns = as_it_is(self.data).shape
        return {"rows": rows, "columns": columns}

    def _repr_html_(self) -> str:
        """The first rows, for a notebook."""
        return notebook.section(notebook.first_rows(as_it_is(self.data)))


@overload
def read_release(
    path: str | Path,
    certificate: str | Path | Certificate | None = None,
    *,
    numbers: Numbers = "published",
    to: Literal["polars"] = "polars",
    check: bool = True,
) -> ReleaseFrame[pl.DataFrame]: ...


@overload
def read_release(
    path: str | Path,
    certificate: str | Path | Certificate | None = None,
    *,
    numbers: Numbers = "published",
    to: Literal["pandas"],
    check: bool = True,
) -> "ReleaseFrame[pd.DataFrame]": ...


@overload
def read_release(
    path: str | Path,
    certificate: str | Path | Certificate | None = None,
    *,
    numbers: Numbers = "published",
    to: Literal["pyarrow"],
    check: bool = True,
) -> "ReleaseFrame[pa.Table]": ...


def read_release(
    path: str | Path,
    certificate: str | Path | Certificate | None = None,
    *,
    numbers: Numbers = "published",
    to: Library = "polars",
    check: bool = True,
) -> ReleaseFrame[Any]:
    """A released file as a frame, certain to be the one that its certificate names.

    certificate: by default PATH.certificate.json; columns that it names as numbers are such unless
    they show intervals. numbers: these as they are published; `interval` makes a struct of lo and
    hi of each, where hi of a bin is excluded, `mid` the middle, or the mean where only that is
    shown, `mean` the mean, or the middle where no mean is shown. They read ordered labels and those
    of hierarchies, too, if all are numbers or spans such as `20-39`. Suppressed and empty cells
    become null; a warning counts all others that do. to: the kind of frame. check:
    whether the file must have the hash that the certificate states. Raises InputError.
    """
    require_choice("numbers", numbers, get_args(Numbers))
    require_choice("to", to, get_args(Library))
    path = Location(path_text(path, "path"))
    if not (path.is_table or Path(path).exists() or path.is_many):
        raise InputError(f"release '{path}': is not there; check its name")
    proof = _certificate(path, certificate)
    if check:
        check_released(path)
        _check_hash(path, proof)
    said = _said(path, proof)
    dialect = said.get("dialect") or {}
    frame = files.read(path, allow_empty=True, reading=reading_as_stated(dialect)).frame
    columns = [dict(column) for column in said.get("columns") or []]
    frame = _with_numbers(frame, columns, dialect, numbers)
    return ReleaseFrame(_as(frame, to), columns, proof)


def numbers_of(
    frame: pl.DataFrame,
    certificate: Certificate,
    model: PolicyModel,
    numbers: Numbers,
    were_numbers: Collection[str],
) -> pl.DataFrame:
    """A released frame with its numbers as such, by its certificate and policy.

    were_numbers: columns that the original held as numbers; one that stays text is warned of.
    """
    require_choice("numbers", numbers, get_args(Numbers))
    render = model.render
    dialect = {
        "decimal": model.read.decimal,
        "intervals": render.intervals,
        "mark": render.suppressed,
        "missing": model.missing_texts,
    }
    return _with_numbers(frame, certificate["columns"], dialect, numbers, were_numbers)


def _certificate(path: Location, given: str | Path | Certificate | None) -> Certificate | None:
    if isinstance(given, Certificate):
        return given
    if given is None:
        beside = certificate_beside(path)
        return None if beside is None else Certificate.parsed(beside, path.certificate)
    return Certificate.load(given)


def _check_hash(path: str, certificate: Certificate | None) -> None:
    if certificate is None:
        raise InputError(
            f"release '{path}': has no certificate beside it; fetch that too, or say check=False"
        )
    stated = (certificate.get("output") or {}).get("sha256")
    with readable(f"release '{path}'"):
        digest = files.table_sha256(path)
    if stated != digest:
        raise InputError(
            f"release '{path}': is not the file that its certificate names; fetch both again"
        )


def _said(path: Location, certificate: Certificate | None) -> Mapping[str, Any]:
    """The columns and the dialect, by the certificate or by the file itself."""
    if certificate is not None and certificate.get("columns"):
        published = [c for c in certificate["columns"] if c["technique"] != "removed"]
        return {"columns": published, "dialect": (certificate["output"] or {}).get("dialect")}
    if not path.kind.is_parquet or not Path(path).is_file():
        return {}
    try:
        said = json.loads(pl.read_parquet_metadata(path).get("shoal", "{}"))
    except (ValueError, RecursionError, pl.exceptions.PolarsError):
        return {}
    return said if isinstance(said, dict) else {}


def _with_numbers(
    frame: pl.DataFrame,
    columns: Sequence[Mapping[str, Any]],
    dialect: Mapping[str, Any],
    numbers: Numbers,
    were_numbers: Collection[str] = (),
) -> pl.DataFrame:
    notation = Notation(dialect.get("decimal") or ".")
    intervals, mark = dialect.get("intervals") or "[{lo}, {hi}]", dialect.get("mark") or "*"
    render = Render(intervals, mark, missing=(*with_decimals(dialect.get("missing") or ()),))
    for column in columns:
        name = column["name"]
        if name not in frame.columns:
            continue
        technique = column["technique"]
        cells = _plain(frame[name], notation, render)
        if technique != "derived":
            signs = [as_text(one).is_in(render.missing) for one in (frame[name], cells)]
            cells = cells.set(signs[0] | signs[1], None)
        held = cells
        if cells.dtype.is_decimal():  # as from a file of text, which may say more than a float can
            cells = cells.cast(pl.String)
        if column.get("type") != "number" and not (
            numbers != "published" and _shows_numbers(cells, technique, render)
        ):
            if numbers != "published" and frame[name].dtype == pl.String:
                _warn_of_text(frame[name], technique, render, name in were_numbers)
            continue
        if numbers == "published" and technique in SHOWN and not SHOWN[technique].hides_span:
            continue
        if numbers != "published" and (technique == "node" or technique in SHOWN):
            read = _of_spans(cells, technique, render, numbers)
        else:
            source = column.get("derived_from")
            part = name.removeprefix(f"{source}_") if source else technique
            is_text = held.dtype == pl.String
            shown = held.set(held == render.suppressed, None) if is_text else held
            read = _of_values(shown, numbers, part in COMPUTED)
            if numbers == "published" and read.dtype == pl.String:
                continue
        _warn_of_lost(cells, read, render)
        if "missing" not in dialect:
            _warn_of_signs(name, read)
        frame = frame.with_columns(read.alias(name))
    return frame


def _plain(cells: pl.Series, notation: Notation, render: Render) -> pl.Series:
    """Text with decimal points; columns of numbers as they are."""
    if cells.dtype != pl.String or notation.has_plain_numbers:
        return cells
    published = PublishedNumbers.of(notation, render)
    return map_cells(cells, lambda cell: published.translated(cell, notation.plain))[0]


def _of_values(held: pl.Series, numbers: Numbers, are_computed: bool) -> pl.Series:
    """Whole numbers or floats; decimals and text as they are where floats have fewer digits.

    Text that holds other than numbers is left, too, or becomes null if these were asked for.
    """
    text = held.cast(pl.String) if held.dtype.is_decimal() else held
    read = as_numbers(text, are_computed)
    if read.dtype != pl.String:
        return read
    floats = text.cast(pl.Float64, strict=False)
    is_read = floats.is_finite().fill_null(False) | (text.fill_null("") == "")
    return held if numbers == "published" or is_read.all() else floats


def _of_spans(cells: pl.Series, technique: str, render: Render, numbers: Numbers) -> pl.Series:
    """What every cell shows, found once for each distinct one."""
    column = encode_text(cells)
    spans = _spans(column, technique, render)
    if numbers == "interval":
        ends = pl.DataFrame({part: _floats(spans, part) for part in ("lo", "hi")})
        shows = pl.any_horizontal(pl.all().is_not_null())
        values = ends.select(pl.when(shows).then(pl.struct(pl.all()))).to_series()
    else:
        other = "mean" if numbers == "mid" else "mid"
        values = _floats(spans, numbers).fill_null(_floats(spans, other))
    return values.gather(column.codes)


def _spans(column: Column, technique: str, render: Render) -> list[Span]:
    ends = _ends_of_labels(_labels(column, render), technique, render)
    if ends is not None:
        # an open end, and the middle of an open span, are empty
        pairs = [ends.get(cell, (np.nan, np.nan)) for cell in column.cells]
        texts = [[number_text(one) if np.isfinite(one) else "" for one in pair] for pair in pairs]
        return [Span.between(*pair) for pair in texts]
    if technique == "node":
        return spans_of_bins(column.cells)
    attribute = Attribute(column.name, Role.QUASI, Kind.NUMBER, shown=SHOWN[technique])
    return spans_of_numbers(read_column(attribute, column, Schema((), render=render)), render)


def _labels(column: Column, render: Render) -> list[str]:
    return [cell for cell in column.cells if cell not in ("", "*", render.suppressed)]


def _shows_numbers(cells: pl.Series, technique: str, render: Render) -> bool:
    """Whether the labels of an order, or of a hierarchy of texts, are numbers and their spans."""
    if cells.dtype != pl.String:
        return False
    labels = _labels(encode_text(cells), render)
    return bool(labels) and _ends_of_labels(labels, technique, render) is not None


def _ends_of_labels(
    labels: Sequence[str], technique: str, render: Render
) -> Mapping[str, tuple[float, float]] | None:
    """The ends by label of an order or a hierarchy, infinite where it is open; None where some is
    neither a number nor a span, or none of a hierarchy is a span.
    """
    if technique != "span":
        return ends_of_spans(labels) if technique == "node" else None
    ends = {label: span_ends(label) or _ends_of_both(label, render) for label in labels}
    known = {label: span for label, span in ends.items() if span is not None}
    return known if len(known) == len(ends) else None


def _ends_of_both(cell: str, render: Render) -> tuple[float, float] | None:
    """The ends of what two labels of an order span, such as `[20-39, 40-59]`."""
    head, middle, tail = render.parts
    parts = cell.removeprefix(head).removesuffix(tail).split(middle)
    for at in range(1, len(parts)):  # labels may hold what stands between two of them
        least, most = span_ends(middle.join(parts[:at])), span_ends(middle.join(parts[at:]))
        if least is not None and most is not None and least[0] <= most[1]:
            return least[0], most[1]
    return None


def _warn_of_text(cells: pl.Series, technique: str, render: Render, were_numbers: bool) -> None:
    """Warns of a column that stays text although its values, or some of its labels, are numbers."""
    labels = _labels(encode_text(cells), render)
    remedy = "publish it with 'type: number', or by a hierarchy whose labels are all ranges"
    if technique == "value-or-nothing" and ends_of_spans(labels) is not None:
        text = "its labels are ranges of numbers without an order, so it stays text"
        remedy = "publish it with an 'order'"
    elif technique in ("node", "span") and any(_is_range(label) for label in labels):
        text = "only some of its labels are ranges of numbers, so it stays text"
    elif were_numbers:
        text = "its numbers were published as labels, so it stays text"
    else:
        return
    said = f"column '{cells.name}': {text}; {remedy}"
    warn(ReleaseWarning(NOT_NUMBERS, said, cells.name))


def _is_range(label: str) -> bool:
    ends = span_ends(label)
    return ends is not None and ends[0] < ends[1]


def _floats(spans: Sequence[Span], part: str) -> pl.Series:
    texts = tuple(getattr(span, part) for span in spans)
    return pl.Series(parse_numbers(texts), dtype=pl.Float64).fill_nan(None)


def _warn_of_lost(cells: pl.Series, read: pl.Series, render: Render) -> None:
    """Warns of cells that gave no number, but suppressed ones and usual words for no value."""
    ends = read.struct.field("lo") if read.dtype == pl.Struct else read
    shows_text = ~as_text(cells).fill_null("").is_in([render.suppressed, *NO_VALUE])
    if lost := int((ends.is_null() & shows_text).sum()):
        cells_are = "1 cell is not a number" if lost == 1 else f"{lost} cells are not numbers"
        text = f"column '{cells.name}': {cells_are} as asked, and null; see numbers='published'"
        warn(ReleaseWarning(NOT_NUMBERS, text, cells.name))


def _warn_of_signs(name: str, read: pl.Series) -> None:
    """Warns of numbers that seem to stand for no value where the certificate names no such sign."""
    numbers = read.struct.field("lo") if read.dtype == pl.Struct else read
    if doubtful := sum(ColumnCells.of(encode_text(as_text(numbers))).doubtful.values()):
        text = (
            f"column '{name}': a usual sign for no value is read as a number in {doubtful}"
            " cells, as the certificate does not list it; leave them out of means, or publish again"
            " with missing_values"
        )
        warn(ReleaseWarning(SIGN_OF_NO_VALUE, text, name))


def _as(frame: pl.DataFrame, to: Library) -> Any:
    try:
        return frame if to == "polars" else of_library(frame, to)
    except ImportError:
        raise InputError(
            f"to='{to}': needs pandas and pyarrow; install them, or take to='polars'"
        ) from None
