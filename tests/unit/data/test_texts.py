"""Texts as they are encoded, by Python or by Polars, and as they are compared."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.data import table
from shoal.data.schema import Attribute, Kind, Role
from shoal.data.truth import as_values

texts = st.text(st.characters(codec="utf-8"), max_size=3)


@given(st.lists(st.none() | texts | st.sampled_from(["a", "é", "\uffff", "\U0001f41f"])))
def test_few_texts_have_the_codes_that_they_have_among_many(cells):
    column = pl.Series("s", cells, pl.String)
    few = table.encode_text(column)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "FEW_ROWS", -1)
        many = table.encode_text(column)
    assert (few.name, few.cells, few.was_number) == (many.name, many.cells, many.was_number)
    assert np.array_equal(few.codes, many.codes)
    assert few.codes.dtype == many.codes.dtype


@given(st.lists(texts | st.integers(0, 99).map(str), min_size=1), st.booleans())
def test_texts_that_hardly_repeat_have_the_codes_of_others(cells, have_one_hash):
    column = pl.Series("s", cells, pl.String)
    hashes = np.zeros(len(cells), dtype=np.uint64) if have_one_hash else column.hash().to_numpy()
    found = table._encode_many(column, hashes, was_number=False)
    if found is None:
        assert have_one_hash
        assert len(set(cells)) > 1
    else:
        assert found.cells == tuple(sorted(set(cells)))
        assert [found.cells[code] for code in found.codes] == cells


@given(st.lists(texts, unique=True, min_size=2), st.data())
def test_each_place_is_that_of_the_same_text(cells, data):
    listed = pl.Series("s", cells, pl.String)
    asked = data.draw(st.lists(texts | st.sampled_from(cells)))
    places = [cells.index(text) if text in cells else -1 for text in asked]
    assert table.places_in(listed, pl.Series(asked, dtype=pl.String)).tolist() == places


@pytest.mark.parametrize(
    ("kind", "are_same"),
    [
        (Kind.NUMBER, [True, True, True, False, True, False, True]),
        (Kind.CATEGORY, [False, False, False, False, True, False, True]),
    ],
)
def test_numbers_are_the_same_however_they_are_written_in_a_column_of_numbers(kind, are_same):
    shown = ["35", "35.0", "3.5e1", "10000000000000001", "none", "", ""]
    kept = ["035", " 35", "35", "10000000000000002", "none", "0", None]
    attribute = Attribute("x", Role.SENSITIVE, kind)
    tables = (table.Table(pl.DataFrame({"x": cells})) for cells in (shown, kept))
    one, other = as_values(attribute, *tables)
    assert (one == other).to_list() == are_same
