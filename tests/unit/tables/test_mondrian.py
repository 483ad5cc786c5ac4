"""Strict Mondrian against its plain twin, its promise, and published figures."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from naive_peers import JustK, classes_of
from peer_cases import adult, discernibility, gcp, hierarchy_of, matrices, run
from shoal.data.matrix import Matrix
from shoal.tables.methods.mondrian import Mondrian

methods = st.builds(
    Mondrian,
    cut=st.sampled_from(["median", "nearest"]),
    trees=st.sampled_from(["order", "children"]),
)
ks = st.integers(1, 6)


@given(matrices(people=False), ks)
@settings(max_examples=200, deadline=None)
def test_with_nearest_cuts_no_class_is_larger_than_the_bound_of_the_paper(matrix, k):
    assume(matrix.people >= k)
    d = matrix.attributes
    largest = max(
        len(members)
        for members in classes_of(run(Mondrian(cut="nearest"), matrix, JustK(matrix, k)))
    )
    copies = max(Counter(map(tuple, matrix.codes.tolist())).values())
    assert largest <= 2 * d * (k - 1) + copies


@given(matrices(), ks, methods, st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_permuting_the_records_only_permutes_the_classes(matrix, k, method, random):
    assume(matrix.people >= k)
    order = list(range(matrix.records))
    random.shuffle(order)
    subjects = None if matrix.subjects is None else matrix.subjects[order]
    shuffled = replace(matrix, codes=matrix.codes[order], subjects=subjects)
    labels = run(method, matrix, JustK(matrix, k))
    there = run(method, shuffled, JustK(shuffled, k))
    assert {frozenset(order[r] for r in members) for members in classes_of(there)} == {
        frozenset(members) for members in classes_of(labels)
    }


def test_a_common_value_at_the_upper_end_blocks_the_baseline_but_not_the_nearest_cut():
    matrix = Matrix.from_columns(np.array([[0], [0], [1], [1], [1]]), [1.0])
    assert run(Mondrian(), matrix, JustK(matrix, 2)).tolist() == [0] * 5
    assert run(Mondrian(cut="nearest"), matrix, JustK(matrix, 2)).tolist() == [0, 0, 1, 1, 1]


def test_a_hierarchy_is_cut_into_all_children_of_the_node_that_covers_the_segment():
    tree = hierarchy_of([[None, None], [None, None], [None, None]])
    matrix = Matrix.from_columns(np.array([[0], [1], [2], [2], [4], [5]]), [tree])
    assert run(Mondrian(trees="children"), matrix, JustK(matrix, 2)).tolist() == [0, 0, 1, 1, 2, 2]
    assert run(Mondrian(trees="order"), matrix, JustK(matrix, 3)).tolist() == [0] * 6


@pytest.mark.parametrize(
    ("cut", "classes", "squares", "loss"),
    [("median", 1865, 580_900, 9.36), ("nearest", 2102, 465_028, 6.85)],
)
def test_adult_gives_the_figures_measured_independently(cut, classes, squares, loss):
    """Measured with plain arrays before this code was written; equally frequent categories may be
    coded
    in another order there, which moves a few records."""
    matrix = adult()
    labels = run(Mondrian(cut=cut), matrix, JustK(matrix, 10))
    assert labels.max() + 1 == pytest.approx(classes, abs=10)
    assert discernibility(labels) == pytest.approx(squares, rel=0.003)
    assert gcp(matrix, labels) == pytest.approx(loss, abs=0.05)
