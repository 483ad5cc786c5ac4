"""Relaxed Mondrian against its plain twin, its promise, and published figures."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from naive_peers import JustK, classes_of
from peer_cases import adult, discernibility, gcp, matrices, run
from shoal.data.matrix import Matrix
from shoal_papers.baselines.mondrian_relaxed import MondrianRelaxed

ks = st.integers(1, 6)


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
