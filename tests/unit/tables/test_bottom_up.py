"""Bottom-up against its plain twin, its promise, and the effect of its blocks."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from naive_peers import DistinctValues, JustK, bottom_up, classes_of, people
from peer_cases import adult, gcp, matrices, run
from shoal.data.matrix import Matrix
from shoal.search.repair import repair
from shoal_papers.baselines.bottom_up import BottomUp

rules = st.sampled_from(["added", "union", "box"])
blocks = st.sampled_from([0, 8, 20])
ks = st.integers(1, 5)


@given(matrices(), ks, rules, blocks, st.booleans())
@settings(max_examples=300, deadline=None)
def test_classes_are_those_of_the_plain_twin(matrix, k, rule, block, needs_more_than_k):
    assume(matrix.people >= k)
    promise = JustK(matrix, k, needs_more_than_k)
    labels = run(BottomUp(neighbour=rule, block=block), matrix, promise)
    assert labels.tolist() == bottom_up(matrix, promise, rule, block).tolist()


@given(matrices(people=False), ks, rules)
@settings(max_examples=200, deadline=None)
def test_classes_hold_at_most_2k_minus_1_records(matrix, k, rule):
    assume(matrix.records >= k)
    sizes = [
        len(members)
        for members in classes_of(run(BottomUp(neighbour=rule), matrix, JustK(matrix, k)))
    ]
    assert max(sizes) <= max(2 * k - 1, 1)


@given(matrices(least=8), st.integers(2, 5), st.data())
@settings(max_examples=100, deadline=None)
def test_groups_are_only_cut_where_every_promise_holds_and_the_repair_does_the_rest(
    matrix, k, data
):
    values = np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=matrix.records, max_size=matrix.records))
    )
    promise = DistinctValues(matrix, k, values, 2)
    assume(promise.keeps(list(range(matrix.records))))
    partition = BottomUp().partition(matrix, promise, np.random.default_rng(0))
    assert partition.labels.tolist() == bottom_up(matrix, promise, "added", 0).tolist()
    assert all(
        promise.keeps(members) for members in classes_of(repair(matrix, partition, promise).labels)
    )


def test_near_records_grow_into_one_class():
    matrix = Matrix.from_columns(np.array([[0], [100], [1], [101], [2], [102]]), [102.0])
    assert run(BottomUp(), matrix, JustK(matrix, 3)).tolist() == [0, 1, 0, 1, 0, 1]


def test_records_all_equal_are_cut_into_classes_of_nearly_k():
    matrix = Matrix.from_columns(np.zeros((35, 2), dtype=int), [0.0, 3.0])
    sizes = np.bincount(run(BottomUp(), matrix, JustK(matrix, 4)))
    assert sizes.min() >= 4
    assert sizes.max() <= 7


def test_a_block_of_one_person_joins_its_nearest_class():
    codes = np.concatenate([np.zeros(64, dtype=int), np.arange(100, 164)])[:, None]
    subjects = np.concatenate([np.zeros(64, dtype=int), np.arange(1, 65)])
    matrix = Matrix.from_columns(codes, [163.0], subjects)
    labels = run(BottomUp(block=16), matrix, JustK(matrix, 4))
    assert all(people(matrix, members) >= 4 for members in classes_of(labels))


@pytest.mark.long
def test_adult_loses_little_by_blocks_and_less_than_by_median_cuts():
    matrix = adult()
    blocked = gcp(matrix, run(BottomUp(block=2048), matrix, JustK(matrix, 10)))
    whole = gcp(matrix, run(BottomUp(block=0), matrix, JustK(matrix, 10)))
    assert whole < blocked < 1.1 * whole
    assert whole < 6.85  # the nearest median cut
