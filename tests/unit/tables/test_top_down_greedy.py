"""Top-down greedy against its plain twin, its promise, and published figures."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from naive_peers import DistinctValues, JustK, greedy_sides
from peer_cases import adult, gcp, matrices
from shoal.data.matrix import Matrix
from shoal.search.repair import repair
from shoal.search.segments import costs_of, marks_of, rows_of
from shoal_papers.baselines import top_down_greedy
from shoal_papers.baselines.kernels import greedy_split
from shoal_papers.baselines.top_down_greedy import RULES, TopDownGreedy, _lopsided

methods = st.builds(
    TopDownGreedy, assignment=st.sampled_from(list(RULES)), rounds=st.integers(1, 6)
)
ks = st.integers(1, 6)


def run(method: TopDownGreedy, matrix: Matrix, promise: JustK, seed: int = 0) -> np.ndarray:
    return method.partition(matrix, promise, np.random.default_rng(seed)).labels


def one_split(matrix: Matrix, k: int, method: TopDownGreedy) -> tuple[set[int], set[int]] | None:
    """The two sides of all records, taken in the table's order: draws just below 1 leave it as it
    is.
    """
    n, d = matrix.codes.shape
    rows, cut_at, whole = rows_of(matrix), np.zeros(n, dtype=np.int64), np.array([n])
    parts = greedy_split.propose(
        rows,
        np.array([0]),
        whole,
        d,
        k,
        method.rounds,
        RULES[method.assignment],
        np.full(n, 1 - 1e-9),
        costs_of(matrix),
        marks_of(matrix),
        cut_at,
    )
    if parts[0] == 0:
        return None
    records = rows[:, d].tolist()
    return set(records[: cut_at[0]]), set(records[cut_at[0] :])


@given(matrices(least=2), ks, methods)
@settings(max_examples=300, deadline=None)
def test_a_split_is_that_of_the_plain_twin(matrix, k, method):
    assume(matrix.records >= 2 * k)
    expected = greedy_sides(
        matrix, list(range(matrix.records)), k, method.rounds, method.assignment
    )
    assert one_split(matrix, k, method) == (expected and (set(expected[0]), set(expected[1])))


@given(matrices(least=8), ks, methods, st.data())
@settings(max_examples=100, deadline=None)
def test_no_split_breaks_a_promise_beyond_k(matrix, k, method, data):
    values = np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=matrix.records, max_size=matrix.records))
    )
    promise = DistinctValues(matrix, k, values, 2)
    assume(promise.keeps(list(range(matrix.records))))
    partition = method.partition(matrix, promise, np.random.default_rng(0))
    assert repair(matrix, partition, promise) is partition


def test_the_same_seed_gives_the_same_classes():
    matrix = Matrix.from_columns(np.random.default_rng(1).integers(0, 50, (500, 3)), [49.0] * 3)
    assert (
        run(TopDownGreedy(), matrix, JustK(matrix, 5)).tolist()
        == run(TopDownGreedy(), matrix, JustK(matrix, 5)).tolist()
    )


def test_a_lone_outlier_takes_its_nearest_records_along():
    matrix = Matrix.from_columns(np.array([[0], [1], [2], [3], [50], [1000]]), [1000.0])
    assert run(TopDownGreedy(), matrix, JustK(matrix, 2)).tolist()[4:] == [2, 2]


def test_records_all_equal_are_split_evenly():
    matrix = Matrix.from_columns(np.zeros((64, 2), dtype=int), [0.0, 3.0])
    assert np.bincount(run(TopDownGreedy(), matrix, JustK(matrix, 4))).tolist() == [4] * 16


def test_less_than_a_sixteenth_on_one_side_is_lopsided():
    starts, ends = np.zeros(3, dtype=np.int64), np.full(3, 160)
    cut_at = np.array([9])
    assert _lopsided(starts, ends, np.array([2, 2, 0]), cut_at).tolist() == [True, True, True]
    assert _lopsided(starts[:1], ends[:1], np.array([2]), np.array([10])).tolist() == [False]


def test_deep_down_lopsided_splits_give_way_to_halves(monkeypatch):
    """Twenty attributes with ever nearer outliers: the farthest record is nearly alone each
    time.
    """
    codes = np.zeros((20_000, 20), dtype=np.int64)
    place = np.arange(20_000)
    codes[place, place % 20] = 2e9 * 0.97 ** (place // 20)
    matrix = Matrix.from_columns(codes, np.ptp(codes, axis=0).astype(float).tolist())

    def levels(allowed: int) -> int:
        asked = []
        split = greedy_split.propose
        with monkeypatch.context() as patch:
            patch.setattr(top_down_greedy, "DEPTH", allowed)
            patch.setattr(greedy_split, "propose", lambda *args: asked.append(1) or split(*args))
            run(TopDownGreedy(assignment="seeds"), matrix, JustK(matrix, 10))
        return len(asked)

    assert 2 * levels(-1000) < levels(1000)


@pytest.mark.long
@pytest.mark.parametrize(
    ("assignment", "loss", "within"),
    [("weighted", 6.61, 0.25), ("penalty", 24.9, 2), ("seeds", 7.55, 0.25)],
)
def test_adult_gives_the_losses_measured_independently(assignment, loss, within):
    matrix = adult()
    labels = run(TopDownGreedy(assignment=assignment), matrix, JustK(matrix, 10))
    assert gcp(matrix, labels) == pytest.approx(loss, abs=within)
