"""Cutting by several threads gives what one thread gives, byte by byte."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.data import cores
from shoal.data.classes import Classes
from shoal.data.matrix import Matrix
from shoal.errors import InputError
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.promises import BoundPromises
from shoal.search import subtrees
from shoal.search.kernels import rounded_cut
from shoal.search.segments import costs_of
from shoal.tables.methods import rounded_partition
from shoal.tables.methods.rounded_partition import EXACT_ROWS, PAPER, RoundedPartition

PRICED = (int(rounded_cut.SAME), True, True, rounded_cut.TIES_LEXICOGRAPHIC)
BY_RULE = (int(rounded_cut.SAME), False, False, rounded_cut.TIES_BY_ROW)


def _columns(records: int, values: list[int], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns with the record's number last, and what their spans cost."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, v, records) for v in values]).astype(np.int32)
    costs = costs_of(Matrix.from_columns(codes, [float(v) for v in values]))
    numbers = np.arange(records, dtype=np.int32)
    return np.vstack([codes.T, numbers]), costs


@pytest.fixture
def always_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables are cut like large ones."""
    monkeypatch.setattr(rounded_cut, "LISTED", 0)


@pytest.mark.usefixtures("always_in_place")
@given(
    records=st.integers(60, 6_000),
    values=st.lists(st.sampled_from([1, 2, 7, 74, 5_000]), min_size=1, max_size=4),
    k=st.sampled_from([1, 2, 10, 29, 700]),
    priced=st.booleans(),
    threads=st.sampled_from([2, 3, 8]),
    grain=st.sampled_from([20, 511, 1_500]),
)
def test_any_number_of_threads_gives_the_same_classes(
    records: int, values: list[int], k: int, priced: bool, threads: int, grain: int
) -> None:
    rules, sample = (PRICED, EXACT_ROWS) if priced else (BY_RULE, 0)
    alone, costs = _columns(records, values, seed=records)
    together = alone.copy()
    expected = rounded_cut.cut(alone, np.array([0, records]), k, rules, sample, costs)
    with cores.using(threads):
        starts = subtrees.cut_by_threads(together, k, rules, sample, costs, grain)
    assert np.array_equal(starts, expected)
    assert np.array_equal(together, alone)
    assert len(starts) - 1 == max(records // k, 1)  # theorem 1


@pytest.mark.parametrize("size", [512, 513, 3_000, 50_000, 50_001])
def test_a_part_cut_alone_is_the_same_part_of_the_whole(size: int) -> None:
    """A cut depends on the records of its node, in the order of their numbers, and on no others."""
    records, k = 60_000, 10
    whole, costs = _columns(records, [74, 9, 300], seed=1)
    low = rounded_cut.halve(whole, 0, records, k, PRICED, EXACT_ROWS, costs)
    begin, end = low, min(low + size, records)  # any run of records may be a node
    alone = np.ascontiguousarray(whole[:, begin:end])
    alone_starts = rounded_cut.cut(
        alone, np.array([0, end - begin]), k, PRICED, EXACT_ROWS, costs, False
    )
    node = np.array([begin, end])
    starts = rounded_cut.cut(whole, node, k, PRICED, EXACT_ROWS, costs, False)
    assert np.array_equal(starts, alone_starts + begin)
    assert np.array_equal(whole[:, begin:end], alone)


def test_a_node_is_not_cut_by_lists_because_it_is_small_but_because_the_table_is() -> None:
    records, k = 20_000, 10
    by_lists, costs = _columns(records, [74, 9, 300], seed=2)
    in_place = by_lists.copy()
    node = np.array([0, records])
    rounded_cut.cut(by_lists, node, k, PRICED, EXACT_ROWS, costs)
    rounded_cut.cut(in_place, node, k, PRICED, EXACT_ROWS, costs, False)
    assert not np.array_equal(by_lists, in_place)  # or nobody would have to be told


def test_a_method_gives_the_same_partition_on_any_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subtrees, "GRAIN", 5_000)
    monkeypatch.setattr(rounded_partition, "SORTED_RECORDS", 0)
    rng = np.random.default_rng(3)
    codes = np.column_stack([rng.integers(0, v, 60_000) for v in (74, 9, 16)]).astype(np.int32)
    matrix = Matrix.from_columns(codes, [74.0, 9.0, 16.0])
    everyone = Classes(np.zeros(60_000, dtype=np.int32), 1)
    promises = BoundPromises([KAnonymity(10)], everyone)
    for parameters in ({"refine": "none"}, PAPER):
        found = []
        for threads in (1, 3):
            with cores.using(threads):
                method = RoundedPartition(**parameters)
                found.append(method.partition(matrix, promises, rng).labels)
        assert np.array_equal(*found)


def test_no_threads_are_refused() -> None:
    with pytest.raises(InputError, match=r"threads: 0"), cores.using(0):
        pass


def test_threads_are_those_asked_for_and_else_the_cores() -> None:
    assert cores.threads() == cores.available() >= 1
    with cores.using(3):
        assert cores.threads() == 3
        assert cores.side_by_side(lambda n: n * n, range(5), cores.LARGE) == [0, 1, 4, 9, 16]
    assert cores.threads() == cores.available()
