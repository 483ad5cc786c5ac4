"""CRP: floor(n / k) classes of k to 2k - 1 people, found as the paper's steps say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive_republication import crp_classes, of_added_loss, to_nearest_mean, with_leftovers
from shoal.data.ledger_view import LedgerView
from shoal.data.partition import Matrix
from shoal.errors import InfeasibleError
from shoal.ledgers.methods.crp import Crp
from shoal.testing import OnlyK, small_matrices


@st.composite
def increments(draw):
    n, d = draw(st.integers(2, 30)), draw(st.integers(1, 3))
    points = np.array(
        draw(st.lists(st.lists(st.integers(0, 6), min_size=d, max_size=d), min_size=n, max_size=n))
    )
    who = None
    if draw(st.booleans()):
        named = draw(st.lists(st.integers(0, n), min_size=n, max_size=n))
        who = np.unique(named, return_inverse=True)[1].astype(np.int32)
    return points.astype(float), who, draw(st.integers(2, 5))


@given(
    increments(),
    st.sampled_from(["nearest-mean", "least-loss"]),
    st.sampled_from(["first", "random"]),
    st.integers(0, 99),
)
def test_classes_are_those_of_the_papers_steps(drawn, leftovers, first, seed):
    """Also where everybody has one record, so that nobody need be named."""
    points, who, k = drawn
    start = 0 if first == "first" else int(np.random.default_rng(seed).integers(len(points)))
    # a quarter is exact, so ties are
    matrix = Matrix.from_columns(points, [4.0] * points.shape[1], subjects=who)
    people = list(range(len(points))) if who is None else who.tolist()
    labels = crp_classes(points, people, k, start)
    if max(labels) < 0:
        return
    cost = {
        "nearest-mean": to_nearest_mean(points, labels),
        "least-loss": of_added_loss(matrix.codes.tolist(), matrix.scale.tolist()),
    }[leftovers]
    wanted = with_leftovers(people, labels, k, cost)
    method, rng = Crp(first=first, leftovers=leftovers), np.random.default_rng(seed)
    placed = method.publish(matrix, LedgerView(), OnlyK(matrix, k), rng)
    assert placed.labels.tolist() == wanted


@given(
    st.integers(2, 400),
    st.integers(2, 12),
    st.integers(0, 5),
    st.sampled_from(["nearest-mean", "least-loss"]),
)
def test_as_many_classes_as_k_fits_into_the_increment_none_of_2k(n, k, seed, leftovers):
    rng = np.random.default_rng(seed)
    matrix = Matrix.from_columns(rng.integers(0, 9, (n, 3)), [8.0] * 3)
    if n < k:
        return
    placed = Crp(leftovers=leftovers).publish(matrix, LedgerView(), OnlyK(matrix, k), rng)
    sizes = np.bincount(placed.labels)
    assert placed.count == len(sizes) == n // k
    assert sizes.min() >= k
    assert sizes.max() < 2 * k


def test_fewer_people_than_k_are_refused():
    matrix = Matrix.from_columns(np.zeros((3, 1)), [1.0])
    with pytest.raises(InfeasibleError):
        Crp().publish(matrix, LedgerView(), OnlyK(matrix, 4), np.random.default_rng(0))


def test_blocks_of_few_people_with_many_records_are_no_trap():
    """Seven people with a thousand records each, in blocks that hold fewer than k of them."""
    rng = np.random.default_rng(5)
    who = np.repeat(np.arange(7), 1000)
    matrix = Matrix.from_columns(
        who[:, None] * 10 + rng.integers(0, 2, (7000, 1)), [70.0], subjects=who
    )
    promises = OnlyK(matrix, 3)
    for block in (0, 100):
        placed = Crp(block=block).publish(matrix, LedgerView(), promises, rng)
        assert placed.labels.min() == 0
        assert promises.holds(placed.labels, placed.count).all()


def test_blocks_keep_the_number_of_classes():
    rng = np.random.default_rng(3)
    matrix = Matrix.from_columns(rng.integers(0, 1000, (5000, 4)), [999.0] * 4)
    whole = Crp(block=0).publish(matrix, LedgerView(), OnlyK(matrix, 7), rng)
    parts = Crp(block=600).publish(matrix, LedgerView(), OnlyK(matrix, 7), rng)
    assert whole.count == parts.count == 5000 // 7
    assert np.bincount(parts.labels).min() >= 7


@pytest.mark.parametrize("first", ["farthest", "first", "random"])
def test_every_small_matrix_gives_classes_of_k_people(first):
    for matrix in small_matrices():
        for k in (2, 3):
            if matrix.people >= k:
                promises = OnlyK(matrix, k)
                placed = Crp(first=first).publish(
                    matrix, LedgerView(), promises, np.random.default_rng(1)
                )
                assert promises.holds(placed.labels, placed.count).all()
