"""Records that show equal cells are one class, and classes are numbered in the order of cells."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.data import release, room
from shoal.data.release import PublishedColumn, label_classes


@pytest.fixture(params=[(1, 2), (6, 3), (1 << 20, 1 << 18)], autouse=True, scope="module")
def sizes(request):
    """Small tables and few records at once, so that a small release needs several."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(release, "_TABLE", request.param[0])
        patched.setattr(room, "BLOCK", request.param[1])
        yield


def column(codes: list[int], cells: int, dtype: str) -> PublishedColumn:
    nothing = np.zeros(0)
    shown = range(cells)  # as many cells as that, none of which is read
    return PublishedColumn("a", np.array(codes, dtype=dtype), shown, nothing, nothing, nothing)


def plainly(rows: list[tuple[int, ...]], left_out: list[bool]) -> tuple[list[int], int]:
    shown = sorted({row for row, is_out in zip(rows, left_out, strict=True) if not is_out})
    labels = [
        -1 if is_out else shown.index(row) for row, is_out in zip(rows, left_out, strict=True)
    ]
    return labels, len(shown)


@st.composite
def releases(draw):
    """Columns of few cells and of so many that no number holds a record's keys."""
    records = draw(st.integers(0, 8))
    left_out = draw(st.lists(st.booleans(), min_size=records, max_size=records))
    columns, shown = [], []
    for cells in draw(st.lists(st.sampled_from([1, 2, 3, 5, 1 << 15, 1 << 31]), max_size=6)):
        code = st.integers(0, cells - 1) | st.sampled_from([0, cells - 1])
        codes = draw(st.lists(code, min_size=records, max_size=records))
        dtype = draw(st.sampled_from(["u4", "i8"] if cells > 256 else ["u1", "u2", "i4"]))
        columns.append(column(codes, cells, dtype))
        shown.append(codes)
    rows = [tuple(codes[record] for codes in shown) for record in range(records)]
    return tuple(columns), rows, left_out


@given(releases())
def test_classes_are_those_of_a_comparison_cell_by_cell(drawn):
    columns, rows, left_out = drawn
    labels, count = label_classes(columns, np.array(left_out, dtype=bool))
    assert labels.dtype == np.int32
    assert (labels.tolist(), count) == plainly(rows, left_out)
