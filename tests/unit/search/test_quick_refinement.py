"""Short searches: no hotter than the table bears, and of many records only where something is
lost.
"""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from naive_peers import JustK, classes_of
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.partition import Matrix, Partition
from shoal.search import refinement
from shoal.search.refinement import (
    MANY_RECORDS,
    quick_search,
    refine_quickly,
    search_of_many,
    worth_searching,
)
from shoal.search.refinery import Search, mean_loss
from shoal.search.segments import loss_of
from shoal.tables.methods.lattice_peeling import LatticePeeling
from shoal.tables.methods.rounded_partition import RoundedPartition
from unit.search.test_refinement import PLACES, classed, searched


@pytest.fixture
def all_are_many(monkeypatch):
    monkeypatch.setattr(refinement, "MANY_RECORDS", 0)


# two classes of the same cells, another pure one, and one that loses something
CROWDED = Partition.of(np.array([0, 0, 1, 1, 1, 2, 2, 3, 3]))


def crowded(n: int = 600, seed: int = 0) -> Matrix:
    """A table whose records are mostly equal to many others."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 4, n), rng.geometric(0.5, n), rng.integers(0, 9, n) // 6]
    return Matrix.from_columns(np.column_stack(columns), [PLACES, 20.0, 1.0])


def wide(records: int, trees: bool = False) -> Matrix:
    ranges: list[float | Hierarchy] = [PLACES if trees else 3.0]
    return Matrix.from_columns(np.arange(records)[:, None] % 4, ranges)


@settings(max_examples=100)
@given(case=classed())
@example((Matrix.from_columns(np.array([[0]] * 5 + [[1], [1], [2], [3]]), [3.0]), 2, CROWDED))
def test_classes_worth_searching_are_those_of_plain_python(case):
    matrix, _, partition = case
    members = classes_of(partition.labels)
    rows = [{tuple(matrix.codes[r]) for r in records} for records in members]
    largest: dict[frozenset, int] = {}
    for c, records in enumerate(members):
        if len(rows[c]) == 1:
            cells = frozenset(rows[c])
            if cells not in largest or len(records) > len(members[largest[cells]]):
                largest[cells] = c
    expected = [len(rows[c]) > 1 or c in largest.values() for c in range(len(members))]
    assert worth_searching(matrix, partition).tolist() == expected


@settings(max_examples=60)
@given(case=classed(people=False), seed=st.integers(0, 99), resizes=st.booleans())
def test_a_search_of_the_losing_classes_loses_no_more_and_keeps_k(case, seed, resizes):
    matrix, k, partition = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refinement, "MANY_RECORDS", 0)
        rng = np.random.default_rng(seed)
        found = refine_quickly(matrix, partition, JustK(matrix, k), resizes, rng)
    assert sorted(set(found.labels.tolist())) == list(range(found.count))
    assert found.sizes().min() >= min(k, partition.sizes().min())
    assert loss_of(matrix, found) <= loss_of(matrix, partition) + 1e-9
    if not resizes:
        assert sorted(found.sizes()) == sorted(partition.sizes())


@pytest.mark.parametrize("method", [LatticePeeling, RoundedPartition])
def test_the_losing_classes_of_a_crowded_table_are_refined(method, all_are_many):
    none, full = (searched(crowded(), refine, method=method) for refine in ("none", "full"))
    assert loss_of(crowded(), full) < loss_of(crowded(), none)


def test_the_order_of_many_records_changes_no_cell(all_are_many):
    shown = []
    for order in (np.arange(600), np.random.default_rng(1).permutation(600)):
        matrix = crowded().take(order)
        classes = classes_of(searched(matrix, "full").labels)
        shown.append(sorted(sorted(matrix.codes[of].tolist()) for of in classes))
    assert shown[0] == shown[1]


def test_where_all_records_are_equal_nothing_is_left_to_search(all_are_many):
    matrix = Matrix.from_columns(np.zeros((8, 1), dtype=np.int64), [1.0])
    partition = Partition.of(np.repeat([0, 1], 4))
    found = refine_quickly(matrix, partition, JustK(matrix, 2), True, np.random.default_rng(0))
    assert found.labels.tolist() == partition.labels.tolist()


def test_many_records_get_as_many_tries_together_as_fewer_do():
    for k in (2, 10, 100):
        for resizes in (True, False):
            most = quick_search(wide(8), k, resizes)
            tries = most.steps * most.sweeps * MANY_RECORDS
            for records in (50_001, 70_000, 200_000):
                search = search_of_many(wide(records), k, resizes)
                assert search.steps * search.sweeps * records <= 1.1 * tries
    few, many = (search_of_many(wide(n, trees=True), 10, True) for n in (50_001, 200_000))
    assert (few.steps, many.steps) == (5, 2)


def test_a_search_is_no_hotter_than_asked_and_falls_as_steeply():
    search = Search(4, 22, 0.09, 0.012, resizes=True, rebuilds=False)
    assert search.no_hotter(0.1) is search
    cooler = search.no_hotter(0.03)
    assert (cooler.hot, cooler.cold) == (0.03, pytest.approx(0.004))


def test_a_mean_loss_is_in_widths_of_an_attribute():
    codes = np.array([[0, 0], [1, 0], [0, 0], [3, 0]])
    partition = Partition.of(np.array([0, 0, 1, 1]))
    for weight in (1.0, 5.0):  # scales do not matter
        matrix = Matrix.from_columns(codes, [3.0, 1.0], weights=[weight, weight])
        # 1/3 and 1 of the only attribute that varies, which is as wide as both on average twice
        assert mean_loss(matrix, partition) == pytest.approx(2 * (1 / 3 + 1) / 2, rel=1e-3)
