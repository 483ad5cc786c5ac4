"""What each record looks up by its code, and cells that are made and told apart that way."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.data import recoding, room
from shoal.data.room import IN_MEMORY
from shoal.data.table import encode_text


@pytest.fixture(params=[2, 1 << 18], autouse=True, scope="module")
def block(request):
    """Few records at once, so that a small array has several blocks."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(room, "BLOCK", request.param)
        yield


@given(
    st.lists(st.integers(-9, 9), min_size=1, max_size=9),
    st.lists(st.integers(0, 8), max_size=9),
    st.sampled_from(["u1", "u2", "u4", "i4", "i8"]),
    st.sampled_from(["?", "u1", "i4", "f8"]),
)
def test_each_code_leads_to_its_place(table, codes, code_type, type_of_table):
    values, places = np.array(table).astype(type_of_table), np.array(codes, dtype=code_type)
    if max(codes, default=0) >= len(table):
        with pytest.raises(IndexError):
            IN_MEMORY.gather(values, places)
        return
    expected = [values[code] for code in codes]
    found = IN_MEMORY.gather(values, places)
    assert found.dtype == values.dtype
    assert found.tolist() == expected
    columns = np.zeros((2, len(codes)), dtype=values.dtype)
    IN_MEMORY.gather(values, places, columns[1])
    assert columns[1].tolist() == expected


def test_no_code_is_counted_from_the_end():
    with pytest.raises(IndexError):
        IN_MEMORY.gather(np.arange(3), np.array([0, -1], dtype=np.int32))


@given(st.lists(st.lists(st.sampled_from(["b", "", "a", "é", "ab", "10", "9"])), min_size=1))
def test_categories_are_numbered_by_their_texts_whatever_chunk_they_lie_in(chunks):
    pl.Series(["z", "10"], dtype=pl.Categorical)  # seen before, so that numbers are in no order
    parts = [pl.Series("a", cells, dtype=pl.Categorical) for cells in chunks]
    series = parts[0]
    for part in parts[1:]:
        series = series.append(part)
    texts = [cell for cells in chunks for cell in cells]
    column = encode_text(series) if texts else encode_text(pl.Series("a", texts))
    assert list(column.cells) == sorted(set(texts))
    assert [column.cells[code] for code in column.codes] == texts


@given(
    st.lists(st.sampled_from(["b", "", "a", "é"]), min_size=1, unique=True),
    st.lists(st.integers(0, 3), max_size=9),
)
def test_cells_show_the_text_of_their_place(texts, numbers):
    cell = np.arange(len(texts), dtype=np.uint32)[::-1].copy()
    places = np.array([number % len(texts) for number in numbers], dtype=np.int32) - 1
    cells = recoding._column("a", texts, cell, places)
    assert cells.name == "a"
    assert cells.dtype == pl.Enum([text for text in texts if text])
    assert cells.to_list() == [texts[cell[place]] or None for place in places]


@pytest.mark.parametrize("count", [1, 255, 256, 65_535, 65_536])
def test_any_number_of_texts_can_be_shown(count):
    texts = [str(number) for number in range(count)]
    cells = recoding._column("a", texts, np.arange(count, dtype=np.uint32), np.array([0, -1]))
    assert cells.to_list() == ["0", str(count - 1)]
