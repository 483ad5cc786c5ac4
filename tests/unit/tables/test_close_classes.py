"""Building classes towards t-closeness, against plain twins."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numba import njit

import naive
import naive_clustering
from clustering_cases import Case, asked_of, cases, classes_of, in_order
from naive_clustering import Asked
from shoal.search.kernels import value_chains
from shoal.search.kernels.closeness import TargetArrays, count_members, runs_of
from shoal.search.targets import least_size
from shoal.tables.kernels import around_extremes, from_subsets
from shoal.tables.kernels.exchange import Aim, _excess_if, _refresh, membership
from shoal_papers.baselines.tcloseness_t_first import _in_runs, subsets

EVERYBODY = 10**6
NOBODY = np.zeros(0, dtype=np.int32)


@given(cases(most=12), st.data())
@settings(max_examples=200, deadline=None)
def test_excess_of_classes_is_the_cheapest_transport_beyond_t(case, data):
    labels = np.array(
        data.draw(st.lists(st.integers(0, 2), min_size=case.records, max_size=case.records)),
        np.int32,
    )
    labels = np.unique(labels, return_inverse=True)[1].astype(np.int32)
    found = case.targets.excesses(labels, int(labels.max()) + 1)
    for c, members in enumerate(classes_of(labels)):
        assert found[c] == naive_clustering.excess(case.asked, members)
    for column, asked in zip(case.columns, case.asked, strict=True):
        ground = {
            "equal": naive.equal_ground,
            "ordered": lambda places: naive.ordered_ground(places, range(places)),
        }.get(column.distance)
        truth = (
            ground(asked.count) if ground else naive.tree_ground(list(asked.parent), asked.count)
        )
        table = naive.shares(set(enumerate(asked.values)), asked.count)
        for members in classes_of(labels):
            mine = naive.shares({(r, asked.values[r]) for r in members}, asked.count)
            assert naive_clustering.distance_to_table(
                asked, members
            ) == naive.earth_movers_distance(mine, table, truth)


@given(cases(least=4), st.integers(2, 4), st.booleans(), st.data())
@settings(max_examples=300, deadline=None)
def test_k_first_and_mdav_are_those_of_the_plain_twin(case, k, repeated, data):
    people = list(range(case.records))
    if repeated:
        drawn = data.draw(
            st.lists(st.integers(0, case.records), min_size=case.records, max_size=case.records)
        )
        people = np.unique(drawn, return_inverse=True)[1].tolist()
    assume(len(set(people)) >= k)
    who = np.array(people, dtype=np.int32) if repeated else NOBODY
    labels = around_extremes.around_extremes(case.points, who, k, EVERYBODY, *case.targets.arrays)
    assert classes_of(labels) == in_order(
        naive_clustering.around_extremes(case.plain, people, k, case.asked)
    )


@given(cases(least=4), st.integers(2, 4), st.booleans(), st.data())
@settings(max_examples=300, deadline=None)
def test_classes_from_groups_are_those_of_the_plain_twin(case, k, follow, data):
    group = data.draw(st.lists(st.integers(0, k - 1), min_size=case.records, max_size=case.records))
    uniform = data.draw(
        st.lists(st.floats(0, 0.99), min_size=case.records // k, max_size=case.records // k)
    )
    most = EVERYBODY if follow else 0
    labels = from_subsets.from_groups(
        case.points,
        NOBODY,
        np.array(group, np.int32),
        k,
        most,
        follow,
        np.array(uniform),
        *case.targets.arrays,
    )
    classes, left = naive_clustering.from_groups(case.plain, group, k, case.asked, uniform, follow)
    assert classes_of(labels) == in_order(classes)
    assert np.flatnonzero(labels < 0).tolist() == left


@given(cases(least=3), st.integers(1, 4), st.data())
@settings(max_examples=200, deadline=None)
def test_merging_is_that_of_the_plain_twin_and_ends_close_enough(case, k, data):
    labels = np.array(data.draw(st.permutations(range(case.records))), dtype=np.int32) // k
    merged = value_chains.merge_far(
        case.points, labels, int(labels.max()) + 1, *case.targets.arrays
    )
    expected = naive_clustering.merged(case.plain, classes_of(labels), case.asked)
    assert classes_of(merged) == in_order(expected)
    assert all(naive_clustering.excess(case.asked, members) <= 1e-12 for members in expected)


@given(cases(least=4, limits=st.just(0.0)), st.integers(2, 4))
@settings(max_examples=50, deadline=None)
def test_the_distance_never_rises_while_a_class_swaps(case, k):
    assume(case.columns)
    members, left = list(range(k)), list(range(k, case.records))
    seen = [naive_clustering.excess(case.asked, members)]
    seen += naive_clustering.swapped(
        case.plain, list(range(case.records)), members, left, case.asked, None
    )
    assert seen == sorted(seen, reverse=True)


@given(cases(least=3, attributes=1), st.integers(1, 4))
@settings(max_examples=200, deadline=None)
def test_one_record_of_each_run_is_that_of_the_plain_twin(case, k):
    assume(case.columns and case.records >= k)
    count = subsets(case.records, k, case.limits[0])
    runs = naive_clustering.in_runs(case.columns[0].codes.tolist(), count)
    run_of = _in_runs(case.columns[0].codes, count)
    assert [np.flatnonzero(run_of == run).tolist() for run in range(count)] == in_order(runs)
    labels = from_subsets.from_subsets(case.points, run_of, count, count // 2)
    assert classes_of(labels) == in_order(naive_clustering.one_from_each(case.plain, runs))


@given(cases(least=4, most=16), st.data())
@settings(max_examples=300, deadline=None)
def test_the_swap_formula_is_the_distance_measured_anew(case, data):
    """Every member replaced by every other record, on every kind of attribute."""
    size = data.draw(st.integers(1, case.records - 1))
    members, others = np.arange(size), np.arange(size, case.records)
    labels = np.where(np.arange(case.records) < size, 0, 1).astype(np.int32)
    unit = case.targets.excesses(labels, 2)
    assert unit[0] == naive_clustering.excess(case.asked, members.tolist())
    found = _exchanged(case, labels)
    for r, s in product(members, others):
        swapped = [s if m == r else m for m in members.tolist()]
        assert found[r, s] == pytest.approx(
            naive_clustering.total_excess(case.asked, swapped), abs=1e-11
        )


def _exchanged(case: Case, labels: np.ndarray) -> dict:
    """The excess of class 0 after each exchange, as the kernel of exchanges computes it."""
    size = int((labels == 0).sum())
    targets, n = TargetArrays(*case.targets.arrays), len(labels)
    aim = Aim(np.zeros((n, 1)), np.zeros(0, np.int32), 1, 1.0)
    runs = runs_of(n, 2, len(targets.limit))
    counts = np.zeros((2, len(targets.prefix_sums)), np.int64)
    found = _excesses_after(aim, membership(labels, 2, 1), runs, counts, targets)
    return {(r, s): found[r, s] for r in range(size) for s in range(size, len(labels))}


@njit
def _excesses_after(aim, own, runs, counts, targets):
    """The records of class 0 come first."""
    n = len(own.members)
    _refresh(0, aim, own, runs, counts, targets)
    count_members(1, own.members, own.start, 0, counts[0], targets)
    found = np.zeros((n, n))
    for r in range(own.start[1]):
        for s in range(own.start[1], n):
            found[r, s] = _excess_if(0, r, s, own, runs, counts[0], targets)
    return found


@pytest.mark.parametrize(
    ("t", "size"),
    [
        (0.01, 49),
        (0.05, 10),
        (0.09, 6),
        (0.1, 5),
        (0.13, 4),
        (0.15, 4),
        (0.17, 3),
        (0.2, 3),
        (0.21, 3),
        (0.25, 2),
        (0.3, 2),
    ],
)
def test_class_sizes_of_t_first_on_1080_records_follow_from_the_formula(t, size):
    assert subsets(1080, 1, t) == size
    assert subsets(1080, 7, t) == max(size, 7)


def distances_of_subsets(n: int, k: int) -> list[float]:
    asked = Asked(list(range(n)), n, 0.0)
    return [
        naive_clustering.distance_to_table(asked, list(members))
        for members in combinations(range(n), k)
    ]


@pytest.mark.parametrize(("n", "k"), [(n, k) for n in range(2, 11) for k in range(1, n + 1)])
def test_no_class_of_k_different_values_is_closer_than_proposition_1_says(n, k):
    from fractions import Fraction

    bound = Fraction((n + k) * (n - k), 4 * n * (n - 1) * k)
    least = min(distances_of_subsets(n, k))
    assert least >= bound
    if n % k == 0 and (n // k) % 2 == 1:
        assert least == bound


@pytest.mark.parametrize(
    ("n", "k"), [(n, k) for n in range(2, 13) for k in range(1, n + 1) if n % k == 0]
)
def test_one_value_from_each_equal_run_is_as_close_as_proposition_2_says(n, k):
    from fractions import Fraction

    asked, each = Asked(list(range(n)), n, 0.0), n // k
    runs = [range(run * each, (run + 1) * each) for run in range(k)]
    bound = Fraction(n - k, 2 * (n - 1) * k)
    assert (
        max(naive_clustering.distance_to_table(asked, list(members)) for members in product(*runs))
        == bound
    )


@given(cases(least=2, most=9, attributes=1), st.integers(1, 4))
@settings(max_examples=150, deadline=None)
def test_no_class_smaller_than_the_least_size_is_close_enough(case, k):
    assume(case.columns and case.records >= k)
    least = least_size(case.targets, k, case.records)
    assert k <= least <= case.records
    asked = asked_of(case.columns[0], case.limits[0])
    for size in range(k, least):
        for members in combinations(range(case.records), size):
            assert naive_clustering.distance_to_table(asked, list(members)) > case.limits[0] - 1e-9
