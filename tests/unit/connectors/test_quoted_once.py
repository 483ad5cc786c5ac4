"""Texts of categories are looked at for quotes once each; the bytes are those of Polars."""

import io
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.connectors import delimited
from shoal.connectors.dialect import Dialect

TEXTS = ["", " ", " b ", "41 - 50", "é", "a,b", 'a"b', '"', '""', '"a,b"', "a;b", "x\ty", "a|b"]
TEXTS += ["a\nb", "a\rb", "\r\n", "a.b", "a]b", "a\\b", "^", "1", "*", "#", "\ufeff", "true"]
DELIMITERS = [",", ";", "\t", "|", ".", "]", "^", "\\", "-", "1", " ", "a", "#", "&", "~"]
KINDS = (pl.Categorical, pl.Enum(TEXTS), pl.Int64, pl.UInt8, pl.Float64, pl.Boolean)


@pytest.fixture(scope="module", autouse=True)
def few_rows_are_many():
    with patch.object(delimited, "FEW_ROWS", 0):
        yield


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    """Columns of few texts and columns of numbers, with cells that are missing."""
    names = draw(st.lists(st.sampled_from(TEXTS[1:]), unique=True, max_size=4))
    rows = draw(st.integers(0, 6))
    columns = []
    for name in names:
        dtype = draw(st.sampled_from(KINDS))
        is_text = dtype in (pl.Categorical, pl.Enum)
        cell = st.none() | (st.sampled_from(TEXTS) if is_text else st.integers(0, 99))
        cells = pl.Series(name, draw(st.lists(cell, min_size=rows, max_size=rows)), strict=False)
        columns.append(cells.cast(dtype))
        if dtype == pl.Float64:
            columns[-1] /= 7
    return pl.DataFrame(columns)


def written(frame: pl.DataFrame, dialect: Dialect, header: bool = True) -> bytes:
    file = io.BytesIO()
    delimited.write(frame, file, dialect, header)
    return file.getvalue()


def written_by_polars(frame: pl.DataFrame, dialect: Dialect, header: bool = True) -> bytes:
    file = io.BytesIO()
    if frame.width == 1:  # else Polars writes a blank line for a cell without a value
        frame = frame.with_columns(pl.all().cast(pl.String).fill_null(""))
    frame.write_csv(
        file,
        separator=dialect.delimiter,
        line_terminator=dialect.newline,
        include_bom=dialect.bom and header,
        include_header=header,
    )
    return file.getvalue()


@given(
    frames(),
    st.builds(
        Dialect,
        st.sampled_from(DELIMITERS),
        st.just("utf-8"),
        st.sampled_from(["\n", "\r\n"]),
        st.booleans(),
    ),
    st.booleans(),
)
def test_the_bytes_are_those_of_a_look_at_every_cell(frame, dialect, header):
    assert delimited._quoted(frame, dialect.delimiter) is not None
    assert written(frame, dialect, header) == written_by_polars(frame, dialect, header)


@given(st.text(max_size=4), st.sampled_from(DELIMITERS), st.sampled_from([pl.Categorical, "enum"]))
def test_any_text_is_quoted_as_polars_does(text, delimiter, kind):
    cells = pl.Series("a", [text, "x", None, text])
    cells = cells.cast(pl.Enum(cells.unique().drop_nulls()) if kind == "enum" else kind)
    dialect = Dialect(delimiter)
    assert written(cells.to_frame(), dialect) == written_by_polars(cells.to_frame(), dialect)


@pytest.mark.parametrize(
    "other", [pl.Series("o", ["a,b", ""]), pl.Series("o", [0, 1]).cast(pl.Date)]
)
def test_columns_of_other_types_are_left_to_polars(other):
    frame = pl.DataFrame([pl.Series("t", ["a,b", ""], dtype=pl.Categorical), other])
    assert delimited._quoted(frame, ",") is None
    assert written(frame, Dialect()) == written_by_polars(frame, Dialect())


def test_nothing_is_looked_at_twice_where_no_text_needs_quotes():
    frame = pl.DataFrame({"a": pl.Series(["x", "y", "x"], dtype=pl.Enum(["x", "y"]))})
    with patch.object(pl.Series, "to_physical", side_effect=AssertionError):
        assert written(frame, Dialect()) == b"a\nx\ny\nx\n"


def test_a_cell_without_a_value_that_stands_alone_is_no_blank_line():
    """Readers such as pandas leave out blank lines, so rows would be missing."""
    for cells in (["x", None, ""], pl.Series(["x", None, ""], dtype=pl.Categorical)):
        assert written(pl.DataFrame({"a": cells}), Dialect()) == b'a\nx\n""\n""\n'
    assert written(pl.DataFrame({"a": [1, None]}), Dialect()) == b'a\n1\n""\n'
