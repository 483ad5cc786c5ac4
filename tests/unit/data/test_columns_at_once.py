"""A matrix lays its codes out by record or by attribute, whichever a method asks for."""

import copy
import pickle
from dataclasses import fields, replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_policies import content_of
from shoal.data import encoding
from shoal.data.encoding import EncodedTable
from shoal.data.partition import Matrix
from shoal.data.table import Table
from shoal.policy.binding.table import bound_table
from shoal.policy.policy import Policy

CELLS = st.tuples(
    st.sampled_from(["1", "2", "7.5", ""]), st.sampled_from("abc"), st.sampled_from(["x", "", "y"])
)


@pytest.fixture(params=[2, 1 << 16], autouse=True, scope="module")
def block(request):
    """Few records at once, so that a small table has several blocks."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(encoding, "_BLOCK", request.param)
        patched.setattr("shoal.data.partition._BLOCK", request.param)
        patched.setattr("shoal.data.room.BLOCK", request.param)
        yield


def encoded_table(rows: list[tuple[str, ...]], missing: str) -> EncodedTable:
    frame = pl.DataFrame([*zip(*rows, strict=True)], schema=["age", "place", "job"])
    ordered = {"role": "quasi", "order": "frequency"}
    columns = {"age": {"role": "quasi", "type": "number"}, "place": ordered, "job": ordered}
    return bound_table(Table(frame), Policy.of(content_of(columns, missing=missing))).encoded


def plainly(table: EncodedTable) -> np.ndarray:
    """A code for each record that is not suppressed and each attribute, one after the other."""
    return np.array(
        [
            [one.positions[one.rank_of_code[one.codes[record]]] for one in table.attributes]
            for record in range(table.records)
            if not table.suppressed[record]
        ],
        dtype=np.int32,
    ).reshape(-1, len(table.attributes))


@given(st.lists(CELLS, min_size=1, max_size=9), st.sampled_from(["value", "suppress"]))
def test_both_ways_hold_the_codes_of_the_records_that_are_kept(rows, missing):
    table = encoded_table([("3", "a", "x"), *rows], missing)
    codes = plainly(table)
    expected = np.vstack([codes.T, np.zeros((1, len(codes))), np.arange(len(codes))[None]])
    columns = table.matrix().columns(1)
    assert columns.dtype == np.int32
    assert np.array_equal(columns, expected)
    matrix = table.matrix()
    assert (matrix.records, matrix.attributes) == codes.shape
    assert matrix.codes.flags.c_contiguous
    assert np.array_equal(matrix.codes, codes)
    assert np.array_equal(matrix.columns(1), expected)


@given(st.lists(CELLS, min_size=2, max_size=9))
def test_what_is_made_of_it_has_codes_of_its_own(rows):
    table = encoded_table(rows, "value")
    matrix, codes = table.matrix(np.arange(len(rows))), plainly(table)
    few = matrix.take(np.array([1, 0]))
    assert type(few) is Matrix
    assert few.records == 2
    assert np.array_equal(few.columns(0)[:-1], codes[[1, 0]].T)
    assert few.label.tolist() == [1, 0]
    same = replace(matrix)
    for field in fields(Matrix):
        one, other = getattr(same, field.name), getattr(matrix, field.name)
        assert one is other or np.array_equal(one, other)


def test_columns_alone_make_no_rows(monkeypatch):
    table = encoded_table([("1", "a", "x"), ("2", "b", "y")], "value")
    monkeypatch.delattr(EncodedTable, "rows")
    assert table.matrix().columns(0).shape == (4, 2)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
@pytest.mark.parametrize("is_laid_out", [False, True])
def test_a_matrix_can_be_copied_and_sent_to_another_process(again, is_laid_out):
    table = encoded_table([("1", "a", "x"), ("", "b", "y"), ("2", "a", "y")], "suppress")
    matrix = table.matrix()
    if is_laid_out:
        assert matrix.codes.shape == (2, 3)
    other = again(matrix)
    assert other.records == 2
    assert np.array_equal(other.codes, plainly(table))
    assert np.array_equal(other.columns(1), matrix.columns(1))
