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
from clustering_cases import asked_of, cases, classes_of, in_order
from shoal.search.kernels import value_chains
from shoal.search.kernels.closeness import TargetArrays, count_members, runs_of
from shoal.search.targets import least_size
from shoal.tables.kernels import around_extremes, from_subsets
from shoal.tables.kernels.exchange import Aim, _excess_if, _refresh, membership
from shoal_papers.baselines.tcloseness_t_first import _in_runs, subsets

EVERYBODY = 10**6
NOBODY = np.zeros(0, dtype=np.int32)


def ground_of(asked):
    if asked.distance == "equal":
        return naive.equal_ground(asked.count)
    if asked.distance == "ordered":
        return naive.ordered_ground(asked.count, range(asked.count))
    return naive.tree_ground(list(asked.parent), asked.count)


@given(cases(most=12), st.data())
@settings(max_examples=200)
def test_excess_of_classes_is_the_cheapest_transport_beyond_t(case, data):
    drawn = data.draw(st.lists(st.integers(0, 2), min_size=case.records, max_size=case.records))
    labels = np.unique(drawn, return_inverse=True)[1].astype(np.int32)
    classes = classes_of(labels)
    found = case.targets.excesses(labels, len(classes))
    assert found.tolist() == [naive_clustering.excess(case.asked, members) for members in classes]
    for asked in case.asked:
        table, *mine = (
            naive.shares({(r, asked.values[r]) for r in of}, asked.count)
            for of in (range(case.records), *classes)
        )
        for members, shares in zip(classes, mine, strict=True):
            distance = naive_clustering.distance_to_table(asked, members)
            assert distance == naive.earth_movers_distance(shares, table, ground_of(asked))


@given(cases(least=4), st.integers(2, 4), st.booleans(), st.data())
@settings(max_examples=300)
def test_k_first_and_mdav_are_those_of_the_plain_twin(case, k, repeated, data):
    people = list(range(case.records))
    if repeated:
        drawn = [data.draw(st.integers(0, case.records)) for _ in people]
        people = np.unique(drawn, return_inverse=True)[1].tolist()
    assume(len(set(people)) >= k)
    who = np.array(people, dtype=np.int32) if repeated else NOBODY
    labels = around_extremes.around_extremes(case.points, who, k, EVERYBODY, *case.targets.arrays)
    assert classes_of(labels) == in_order(
        naive_clustering.around_extremes(case.plain, people, k, case.asked)
    )


@given(cases(least=4), st.integers(2, 4), st.booleans(), st.data())
@settings(max_examples=300)
def test_classes_from_groups_are_those_of_the_plain_twin(case, k, follow, data):
    group = data.draw(st.lists(st.integers(0, k - 1), min_size=case.records, max_size=case.records))
    uniform = data.draw(
        st.lists(st.floats(0, 0.99), min_size=case.records // k, max_size=case.records // k)
    )
    groups = (NOBODY, np.array(group, np.int32), k, EVERYBODY if follow else 0, follow)
    labels = from_subsets.from_groups(case.points, *groups, np.array(uniform), *case.targets.arrays)
    classes, left = naive_clustering.from_groups(case.plain, group, k, case.asked, uniform, follow)
    assert classes_of(labels) == in_order(classes)
    assert np.flatnonzero(labels < 0).tolist() == left


@given(cases(least=3), st.integers(1, 4), st.data())
@settings(max_examples=200)
def test_merging_is_that_of_the_plain_twin_and_ends_close_enough(case, k, data):
    labels = np.array(data.draw(st.permutations(range(case.records))), dtype=np.int32) // k
    count = int(labels.max()) + 1
    merged = value_chains.merge_far(case.points, labels, count, *case.targets.arrays)
    expected = naive_clustering.merged(case.plain, classes_of(labels), case.asked)
    assert classes_of(merged) == in_order(expected)
    assert all(naive_clustering.excess(case.asked, members) <= 1e-12 for members in expected)


@given(cases(least=3, attributes=1), st.integers(1, 4))
@settings(max_examples=200)
def test_one_record_of_each_run_is_that_of_the_plain_twin(case, k):
    assume(case.columns and case.records >= k)
    count = subsets(case.records, k, case.limits[0])
    runs = naive_clustering.in_runs(case.columns[0].codes.tolist(), count)
    run_of = _in_runs(case.columns[0].codes, count)
    assert [np.flatnonzero(run_of == run).tolist() for run in range(count)] == in_order(runs)
    labels = from_subsets.from_subsets(case.points, run_of, count, count // 2)
    assert classes_of(labels) == in_order(naive_clustering.one_from_each(case.plain, runs))


@given(cases(least=4, most=16), st.data())
@settings(max_examples=300)
def test_the_swap_formula_is_the_distance_measured_anew(case, data):
    """Every member replaced by every other record, on every kind of attribute."""
    size = data.draw(st.integers(1, case.records - 1))
    members, others = np.arange(size), np.arange(size, case.records)
    labels = np.where(np.arange(case.records) < size, 0, 1).astype(np.int32)
    unit = case.targets.excesses(labels, 2)
    assert unit[0] == naive_clustering.excess(case.asked, members.tolist())
    targets, n = TargetArrays(*case.targets.arrays), case.records
    aim = Aim(np.zeros((n, 1)), NOBODY, 1, 1.0)
    runs = runs_of(n, 2, len(targets.limit))
    counts = np.zeros((2, len(targets.prefix_sums)), np.int64)
    found = _excesses_after(aim, membership(labels, 2, 1), runs, counts, targets)
    for r, s in product(members, others):
        swapped = [s if m == r else m for m in members.tolist()]
        expected = naive_clustering.total_excess(case.asked, swapped)
        assert found[r, s] == pytest.approx(expected, abs=1e-11)


@njit
def _excesses_after(aim, own, runs, counts, targets):
    """The excess of class 0, whose records come first, after each exchange."""
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
    [(0.01, 49), (0.05, 10), (0.09, 6), (0.1, 5), (0.13, 4), (0.2, 3), (0.21, 3), (0.25, 2)],
)
def test_class_sizes_of_t_first_on_1080_records_follow_from_the_formula(t, size):
    assert subsets(1080, 1, t) == size
    assert subsets(1080, 7, t) == max(size, 7)


@given(cases(least=2, most=9, attributes=1), st.integers(1, 4))
@settings(max_examples=150)
def test_no_class_smaller_than_the_least_size_is_close_enough(case, k):
    assume(case.columns and case.records >= k)
    least = least_size(case.targets, k, case.records)
    assert k <= least <= case.records
    asked = asked_of(case.columns[0], case.limits[0])
    for size in range(k, least):
        for members in combinations(range(case.records), size):
            assert naive_clustering.distance_to_table(asked, list(members)) > case.limits[0] - 1e-9
