"""A few texts are encoded by Python, more of them by Polars: the codes are the same."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.data import table

texts = st.text(st.characters(codec="utf-8"), max_size=3)


@given(st.lists(st.none() | texts | st.sampled_from(["a", "é", "\uffff", "\U0001f41f"])))
def test_few_texts_have_the_codes_that_they_have_among_many(cells):
    column = pl.Series("s", cells, pl.String)
    few = table.encode_text(column)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "FEW", -1)
        many = table.encode_text(column)
    assert (few.name, few.cells, few.was_number) == (many.name, many.cells, many.was_number)
    assert np.array_equal(few.codes, many.codes)
    assert few.codes.dtype == many.codes.dtype
