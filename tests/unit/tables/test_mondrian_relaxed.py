"""Relaxed Mondrian against its plain twin, its promise, and published figures."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from naive_peers import DistinctValues, JustK, classes_of, relaxed_mondrian
from peer_cases import adult, discernibility, gcp, matrices, run
from shoal.data.matrix import Matrix
from shoal_papers.baselines.mondrian_relaxed import MondrianRelaxed

methods = st.builds(MondrianRelaxed, ties=st.sampled_from(["rows", "codes"]))
ks = st.integers(1, 6)


@given(matrices(), ks, methods, st.booleans())
@settings(max_examples=300, deadline=None)
def test_classes_are_those_of_the_plain_twin(matrix, k, method, needs_more_than_k):
    assume(matrix.people >= k)
    promise = JustK(matrix, k, needs_more_than_k)
    assert (
        run(method, matrix, promise).tolist()
        == relaxed_mondrian(matrix, promise, method.ties).tolist()
    )


@given(matrices(least=8), ks, methods, st.data())
@settings(max_examples=200, deadline=None)
def test_a_cut_that_breaks_a_promise_beyond_k_is_refused_and_the_next_is_tried(
    matrix, k, method, data
):
    values = np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=matrix.records, max_size=matrix.records))
    )
    promise = DistinctValues(matrix, k, values, 2)
    assume(promise.keeps(list(range(matrix.records))))
    labels = run(method, matrix, promise)
    assert all(promise.keeps(members) for members in classes_of(labels))
    assert labels.tolist() == relaxed_mondrian(matrix, promise, method.ties).tolist()


@given(matrices(people=False), ks, methods)
@settings(max_examples=200, deadline=None)
def test_classes_hold_k_to_2k_minus_1_records(matrix, k, method):
    assume(matrix.records >= k)
    sizes = [len(members) for members in classes_of(run(method, matrix, JustK(matrix, k)))]
    assert min(sizes) >= k
    assert max(sizes) <= max(2 * k - 1, 1)


@given(matrices(people=False), ks, st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_with_ties_by_code_permuting_the_records_leaves_the_same_classes_of_codes(
    matrix, k, random
):
    assume(matrix.records >= k)
    order = list(range(matrix.records))
    random.shuffle(order)
    shuffled = replace(matrix, codes=matrix.codes[order])

    def contents(m: Matrix) -> list[list[list[int]]]:
        labels = run(MondrianRelaxed(ties="codes"), m, JustK(m, k))
        return sorted(
            sorted(m.codes[r].tolist() for r in members) for members in classes_of(labels)
        )

    assert contents(shuffled) == contents(matrix)


def test_records_all_equal_are_halved_by_their_place():
    matrix = Matrix.from_columns(np.full((8, 2), 4), [0.0, 9.0])
    assert run(MondrianRelaxed(), matrix, JustK(matrix, 2)).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_three_times_a_power_of_two_gives_classes_of_three():
    """The example of the rounded-partition paper: median cuts give half as many classes again as
    needed.
    """
    matrix = Matrix.from_columns(np.arange(24)[:, None], [23.0])
    assert np.bincount(run(MondrianRelaxed(), matrix, JustK(matrix, 2))).tolist() == [3] * 8


def test_adult_gives_the_figures_measured_independently():
    matrix = adult()
    labels = run(MondrianRelaxed(), matrix, JustK(matrix, 10))
    assert labels.max() + 1 == 2048
    assert discernibility(labels) == 444_618
    assert gcp(matrix, labels) == pytest.approx(12.18, abs=0.05)
