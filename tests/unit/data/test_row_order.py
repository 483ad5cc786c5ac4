"""The order of published rows: what it follows from, against a plain sort."""

from random import Random

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.data import row_order
from shoal.data.room import IN_MEMORY
from shoal.data.row_order import RankedColumn, ascending, published_order
from shoal.data.schema import Render

RENDER = Render()
ORDERED = ["", "-3", "2", "[2, 10]", "10.5 [2, 20]", "[2, 30]", "9", "9.5 [9, 11]", "10"]
ORDERED += ["12 7", "Zürich", "a", "b", "ä", "*"]


def test_quasi_identifiers_are_compared_first_in_the_order_of_the_policy():
    frame = pl.DataFrame({"ill": list("xyzu"), "age": ["2", "1", "1", "2"], "sex": list("mffm")})
    order = published_order(frame, ["sex", "age"], RENDER)
    assert order.tolist() == [1, 2, 3, 0]


def test_suppressed_rows_are_last_and_input_order_stays():
    frame = pl.DataFrame({"age": ["*", "7", "*"], "sex": ["*", "*", "f"]})
    assert published_order(frame, ["age", "sex"], RENDER).tolist() == [1, 2, 0]
    kept = Render(order="input")
    assert published_order(frame, ["age", "sex"], kept).tolist() == [0, 1, 2]


def test_typed_columns_are_ordered_as_their_text_is():
    typed = pl.DataFrame({"n": [10, 9, None, -3], "on": [True, False, None, True]})
    text = typed.cast(pl.String)
    for name in typed.columns:
        orders = [published_order(frame, [name], RENDER).tolist() for frame in (typed, text)]
        assert orders[0] == orders[1]


rows = st.lists(st.tuples(*[st.sampled_from(ORDERED)] * 3), min_size=1, max_size=40)


@given(rows, st.randoms(use_true_random=False), st.booleans())
@example([(cell,) * 3 for cell in reversed(ORDERED)], Random(1), False)
def test_the_order_follows_from_the_rows_alone(given_rows, random, is_enum):
    """No value comes first, then numbers and spans, then text, and the mark last."""
    kind = pl.Enum([cell for cell in ORDERED if cell]) if is_enum else pl.String
    cells = [tuple(cell or None for cell in row) if is_enum else row for row in given_rows]
    moved = random.sample(cells, len(cells))
    one, other = (
        pl.DataFrame(some, schema=dict.fromkeys("abc", kind), orient="row")
        for some in (cells, moved)
    )
    found = one[published_order(one, ["b"], RENDER)]
    assert found.equals(other[published_order(other, ["b"], RENDER)])
    keys = [tuple(ORDERED.index(row[j] or "") for j in (1, 0, 2)) for row in found.iter_rows()]
    assert keys == sorted(keys)


@pytest.mark.parametrize("bits", [8, 11, 62])
def test_columns_that_make_several_keys_are_compared_as_those_of_one(monkeypatch, bits):
    monkeypatch.setattr(row_order, "KEY_BITS", bits)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, (3, 60))
    columns = [RankedColumn(own.__getitem__, np.arange(5)) for own in codes]
    assert ascending(columns, 60, IN_MEMORY).tolist() == np.lexsort(codes[::-1]).tolist()


CLASSES = st.lists(
    st.tuples(st.sampled_from("ab2*"), st.sampled_from("x9")), min_size=1, max_size=5
)


@given(CLASSES, st.data())
def test_what_is_known_of_classes_changes_no_order(shown, data):
    of_row = data.draw(st.lists(st.integers(-1, len(shown) - 1), min_size=1, max_size=30))
    cells = [*shown, ("*", "*")]  # of those in no class
    frame = pl.DataFrame(
        [(*cells[c], data.draw(st.sampled_from("uv"))) for c in of_row], orient="row"
    )
    frame.columns = ["age", "sex", "ill"]
    labels = np.array(of_row, dtype=np.int32)
    plain = published_order(frame, ["age", "sex"], RENDER)
    assert published_order(frame, ["age", "sex"], RENDER, None, labels).tolist() == plain.tolist()
