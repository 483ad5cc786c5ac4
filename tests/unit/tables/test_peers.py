"""Methods that cut a table from above or below: their plain twins, promises and known figures."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from naive_peers import (
    DistinctValues,
    JustK,
    bottom_up,
    classes_of,
    greedy_sides,
    relaxed_mondrian,
    strict_mondrian,
)
from peer_cases import discernibility, gcp, matrices, matrix_of_adult, run
from shoal.data.partition import Matrix
from shoal.search.segments import costs_of, marks_of, repair, rows_of
from shoal.tables.methods.mondrian import Mondrian
from shoal_papers.baselines import top_down_greedy
from shoal_papers.baselines.bottom_up import BottomUp
from shoal_papers.baselines.kernels import greedy_split
from shoal_papers.baselines.mondrian_relaxed import MondrianRelaxed
from shoal_papers.baselines.top_down_greedy import RULES, TopDownGreedy, _lopsided

DRAWN = {
    Mondrian: {
        "cut": st.sampled_from(["median", "nearest"]),
        "trees": st.sampled_from(["order", "children"]),
    },
    MondrianRelaxed: {"ties": st.sampled_from(["rows", "codes"])},
    TopDownGreedy: {"assignment": st.sampled_from(list(RULES)), "rounds": st.integers(1, 6)},
    BottomUp: {
        "neighbour": st.sampled_from(["added", "union", "box"]),
        "block": st.sampled_from([0, 8, 20]),
    },
}
every_method = pytest.mark.parametrize("method", DRAWN)
ks = st.integers(1, 6)


def diverse(data, matrix: Matrix, k: int) -> DistinctValues:
    """Two sensitive values in every class, which all records together have."""
    values = st.lists(st.integers(0, 3), min_size=matrix.records, max_size=matrix.records)
    promise = DistinctValues(matrix, k, np.array(data.draw(values)), 2)
    assume(promise.keeps(list(range(matrix.records))))
    return promise


TWINS = {
    Mondrian: lambda method, *given: strict_mondrian(*given, method.cut, method.trees),
    MondrianRelaxed: lambda method, *given: relaxed_mondrian(*given, method.ties),
    BottomUp: lambda method, *given: bottom_up(*given, method.neighbour, method.block),
}


@pytest.mark.parametrize("method", TWINS)
@given(data=st.data(), matrix=matrices(), k=ks, beyond=st.sampled_from(["k", "more", "values"]))
@settings(max_examples=300)
def test_classes_are_those_of_the_plain_twin(method, data, matrix, k, beyond):
    assume(matrix.people >= k)
    drawn = data.draw(st.builds(method, **DRAWN[method]))
    promise = diverse(data, matrix, k) if beyond == "values" else JustK(matrix, k, beyond == "more")
    assert run(drawn, matrix, promise).tolist() == TWINS[method](drawn, matrix, promise).tolist()


@every_method
@given(data=st.data(), matrix=matrices(least=8), k=ks)
@settings(max_examples=100)
def test_a_promise_beyond_k_is_kept_by_every_cut_or_after_the_repair(method, data, matrix, k):
    promise = diverse(data, matrix, k)
    drawn = data.draw(st.builds(method, **DRAWN[method]))
    partition = drawn.partition(matrix, promise, np.random.default_rng(0))
    repaired = repair(matrix, partition, promise)
    assert all(promise.keeps(members) for members in classes_of(repaired.labels))
    assert method is BottomUp or repaired is partition


@pytest.mark.parametrize("method", [MondrianRelaxed, TopDownGreedy, BottomUp])
@given(data=st.data(), matrix=matrices(people=False), k=ks)
@settings(max_examples=200)
def test_classes_hold_at_most_2k_minus_1_records(method, data, matrix, k):
    assume(matrix.records >= k)
    whole = {"block": st.just(0)} if method is BottomUp else {}
    drawn = data.draw(st.builds(method, **DRAWN[method] | whole))
    sizes = [len(members) for members in classes_of(run(drawn, matrix, JustK(matrix, k)))]
    assert max(sizes) <= max(2 * k - 1, 1)


@given(matrices(people=False), ks)
@settings(max_examples=200)
def test_with_nearest_cuts_no_class_is_larger_than_the_bound_of_the_paper(matrix, k):
    assume(matrix.people >= k)
    labels = run(Mondrian(cut="nearest"), matrix, JustK(matrix, k))
    copies = max(Counter(map(tuple, matrix.codes.tolist())).values())
    assert np.bincount(labels).max() <= 2 * matrix.attributes * (k - 1) + copies


@pytest.mark.parametrize("method", [Mondrian, MondrianRelaxed])
@given(matrix=matrices(people=False), k=ks, data=st.data())
@settings(max_examples=200)
def test_the_order_of_the_records_changes_no_cell(method, matrix, k, data):
    assume(matrix.people >= k)
    by_code = {"ties": st.just("codes")} if method is MondrianRelaxed else {}
    drawn = data.draw(st.builds(method, **DRAWN[method] | by_code))
    order = data.draw(st.permutations(range(matrix.records)))

    def shown(given: Matrix) -> list:
        labels = run(drawn, given, JustK(given, k))
        return sorted(sorted(given.codes[members].tolist()) for members in classes_of(labels))

    assert shown(replace(matrix, codes=matrix.codes[order])) == shown(matrix)


# Top-down greedy, split by split


def one_split(matrix: Matrix, k: int, method: TopDownGreedy) -> tuple[set[int], set[int]] | None:
    """The two sides of all records, in the table's order: draws just below 1 leave it so."""
    n, d = matrix.codes.shape
    rows, cut_at = rows_of(matrix), np.zeros(n, dtype=np.int64)
    how = (d, k, method.rounds, RULES[method.assignment], np.full(n, 1 - 1e-9))
    first, ends = np.array([0]), np.array([n])
    parts = greedy_split.propose(
        rows, first, ends, *how, costs_of(matrix), marks_of(matrix), cut_at
    )
    records = rows[:, d].tolist()
    return (set(records[: cut_at[0]]), set(records[cut_at[0] :])) if parts[0] else None


@given(matrices(least=2), ks, st.builds(TopDownGreedy, **DRAWN[TopDownGreedy]))
@settings(max_examples=300)
def test_a_split_is_that_of_the_plain_twin(matrix, k, method):
    assume(matrix.records >= 2 * k)
    everybody = list(range(matrix.records))
    expected = greedy_sides(matrix, everybody, k, method.rounds, method.assignment)
    assert one_split(matrix, k, method) == (expected and (set(expected[0]), set(expected[1])))


def test_less_than_a_sixteenth_on_one_side_is_lopsided():
    starts, ends = np.zeros(3, dtype=np.int64), np.full(3, 160)
    assert _lopsided(starts, ends, np.array([2, 2, 0]), np.array([9])).all()
    assert not _lopsided(starts[:1], ends[:1], np.array([2]), np.array([10])).any()


def test_deep_down_lopsided_splits_give_way_to_halves(monkeypatch):
    """Twenty attributes with ever nearer outliers: the farthest is nearly alone each time."""
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


# Adult


@pytest.mark.parametrize(
    ("method", "classes", "squares", "loss"),
    [
        (Mondrian(), 1865, 580_900, 9.36),
        (Mondrian(cut="nearest"), 2102, 465_028, 6.85),
        (MondrianRelaxed(), 2048, 444_618, 12.18),
    ],
    ids=str,
)
def test_adult_gives_the_figures_measured_independently(adult, method, classes, squares, loss):
    """With plain arrays, before; codes of equal frequency may differ, which moves strict cuts."""
    matrix, is_exact = matrix_of_adult(adult), isinstance(method, MondrianRelaxed)
    labels = run(method, matrix, JustK(matrix, 10))
    assert labels.max() + 1 == pytest.approx(classes, abs=0 if is_exact else 10)
    assert discernibility(labels) == pytest.approx(squares, rel=0 if is_exact else 0.003)
    assert gcp(matrix, labels) == pytest.approx(loss, abs=0.05)


@pytest.mark.long
@pytest.mark.parametrize(
    ("assignment", "loss", "within"),
    [("weighted", 6.61, 0.25), ("penalty", 24.9, 2), ("seeds", 7.55, 0.25)],
)
def test_adult_loses_by_top_down_greedy_what_was_measured_independently(
    adult, assignment, loss, within
):
    matrix = matrix_of_adult(adult)
    labels = run(TopDownGreedy(assignment=assignment), matrix, JustK(matrix, 10))
    assert gcp(matrix, labels) == pytest.approx(loss, abs=within)


@pytest.mark.long
def test_adult_loses_little_by_blocks_and_less_than_by_median_cuts(adult):
    matrix = matrix_of_adult(adult)
    blocked, whole = (
        gcp(matrix, run(BottomUp(block=block), matrix, JustK(matrix, 10))) for block in (2048, 0)
    )
    assert whole < blocked < 1.1 * whole
    assert whole < 6.85  # the nearest median cut
