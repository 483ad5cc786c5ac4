"""Values of a release and of its original, as they are compared."""

from __future__ import annotations

import polars as pl
import pytest

from shoal.data.schema import Attribute, Kind, Role
from shoal.data.table import Table
from shoal.data.truth import as_values


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
    tables = (Table(pl.DataFrame({"x": cells})) for cells in (shown, kept))
    one, other = as_values(attribute, *tables)
    assert (one == other).to_list() == are_same
