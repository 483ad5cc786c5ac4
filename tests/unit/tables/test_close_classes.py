"""Building classes towards t-closeness and around centres, against plain twins."""

import math
from dataclasses import replace
from itertools import combinations, permutations, product
from unittest import mock

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numba import njit

import naive
import naive_clustering
from clustering_cases import asked_of, cases, classes_of, in_order
from naive_partition import box_loss
from peer_cases import matrices
from sample_policies import content_of
from shoal.data.classes import SensitiveColumn
from shoal.data.table import Table
from shoal.policy.binding.table import bound_table
from shoal.policy.policy import Policy
from shoal.search.clustering import least_size, points_of, sensitive_points
from shoal.search.kernels import value_chains
from shoal.search.kernels.closeness import TargetArrays, count_members, runs_of
from shoal.search.segments import costs_of
from shoal.tables.kernels import around_extremes, exchange, from_subsets, unassigned_pool
from shoal.tables.kernels.exchange import Aim, _excess_if, _refresh, membership
from shoal_papers.baselines.kernels import fuzzy_centres, greedy_clusters, one_pass
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
    sparse = data.draw(st.sampled_from((0, 8)), "nodes are sorted, or counted")
    with mock.patch("shoal.search.clustering.SPARSE", sparse):
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


# Exchanges, and records that are handed out


def energy(case, labels, weight):
    classes = classes_of(labels)
    beyond = sum(naive_clustering.total_excess(case.asked, members) for members in classes)
    return naive_clustering.squared_error(case.plain, classes) + weight * beyond


def exchanged(case, labels, weight, who=NOBODY, k=1):
    """What is beyond the limits after exchanges between any two classes, and the moves made."""
    numbers = np.arange(labels.max() + 1, dtype=np.int32)
    pairs = np.where(numbers[None, :] > numbers[:, None], numbers[None, :], np.int32(-1))
    rows = np.ascontiguousarray(case.points.T)
    return exchange.exchange(rows, who, k, labels, pairs, weight, 1000, *case.targets.arrays)


@given(cases(least=4), st.integers(1, 4), st.sampled_from([0.0, 1.0, 1e4]), st.data())
@settings(max_examples=200)
def test_exchanges_keep_sizes_and_end_where_no_exchange_gains(case, k, weight, data):
    labels = np.array(data.draw(st.permutations(range(case.records))), dtype=np.int32) // k
    before, sizes = energy(case, labels, weight), np.bincount(labels)
    excess, moved = exchanged(case, labels, weight)
    after, classes = energy(case, labels, weight), classes_of(labels)
    assert np.bincount(labels).tolist() == sizes.tolist()
    beyond = [naive_clustering.total_excess(case.asked, members) for members in classes]
    assert excess == pytest.approx(beyond, abs=1e-9)
    assert after <= before + 1e-9
    assert (after < before) == (moved > 0)
    room = 1e-7 * (1 + weight)
    for r, s in combinations(range(case.records), 2):
        if labels[r] != labels[s]:
            swapped = labels.copy()
            swapped[r], swapped[s] = labels[s], labels[r]
            assert energy(case, swapped, weight) >= after - room


@given(cases(least=4), st.integers(1, 4), st.data())
@settings(max_examples=100)
def test_exchanges_give_every_class_its_people(case, k, data):
    people = st.lists(st.integers(0, case.records), min_size=case.records, max_size=case.records)
    who = np.unique(data.draw(people), return_inverse=True)[1].astype(np.int32)
    labels = np.array(data.draw(st.permutations(range(case.records))), dtype=np.int32) // k

    def lacking():
        return [max(0, k - len(set(who[members]))) for members in classes_of(labels)]

    before = lacking()
    excess, _ = exchanged(case, labels, 1e6, who, k)
    after, classes = lacking(), classes_of(labels)
    beyond = [naive_clustering.total_excess(case.asked, members) for members in classes]
    assert excess == pytest.approx(np.add(after, beyond), abs=1e-9)
    if not case.columns:
        assert sum(after) <= sum(before)


@given(cases(least=3), st.integers(1, 4), st.sampled_from([0.0, 1.0, 1e4]), st.data())
@settings(max_examples=150)
def test_a_record_handed_out_joins_the_class_where_it_costs_least(case, classes, weight, data):
    assume(case.records > classes)
    labels = np.arange(case.records, dtype=np.int32) % classes
    leftover = data.draw(st.integers(classes, case.records - 1))
    labels[leftover] = -1

    def cost(c):
        joined = labels.copy()
        joined[leftover] = c
        return energy(case, joined, weight)

    costs = [*map(cost, range(classes))]
    unassigned_pool.assign_leftovers(
        np.ascontiguousarray(case.points.T), labels, classes, weight, *case.targets.arrays
    )
    assert costs[labels[leftover]] <= min(costs) + 1e-9 * (1 + weight)


@given(cases(least=2), st.integers(1, 6), st.integers(1, 6))
@settings(max_examples=100)
def test_near_classes_list_every_pair_of_neighbours_once(case, classes, q):
    assume(case.records >= classes)
    labels = np.arange(case.records, dtype=np.int32) % classes
    near = exchange.near_classes(np.ascontiguousarray(case.points.T), labels, classes, q)
    pairs = [frozenset((a, b)) for a in range(classes) for b in near[a].tolist() if b >= 0]
    assert len(pairs) == len(set(pairs))
    means = [naive_clustering.mean_of(case.plain, members) for members in classes_of(labels)]
    for a, b in permutations(range(classes), 2):
        apart = [naive_clustering.squared_distance(means[a], mean) for mean in means]
        nearer = sum(apart[c] <= apart[b] + 1e-9 for c in range(classes) if c != a)
        assert nearer > q or frozenset((a, b)) in pairs


# Centres, and the points that they lie between

UNIFORM = st.floats(0, 0.99)


@given(cases(least=2), st.integers(1, 5), st.data())
@settings(max_examples=150)
def test_k_means_ends_where_every_record_is_at_its_nearest_mean(case, k, data):
    uniform = np.array(data.draw(st.lists(UNIFORM, min_size=k, max_size=k)))
    group = from_subsets.k_means(case.points, k, uniform, 1000)
    assert ((group >= 0) & (group < k)).all()
    means = {
        g: naive_clustering.mean_of(case.plain, np.flatnonzero(group == g).tolist())
        for g in set(group.tolist())
    }
    for r, point in enumerate(case.plain):
        apart = {g: naive_clustering.squared_distance(point, mean) for g, mean in means.items()}
        assert apart[group[r]] <= min(apart.values()) + 1e-9


def test_k_means_pp_draws_far_centres():
    points = np.array([[0.0, 0.0, 0.0, 100.0, 100.0, 50.0]])
    group = from_subsets.k_means(points, 3, np.array([0.0, 0.99, 0.5]), 100)
    assert len(set(group.tolist())) == 3
    assert group[0] == group[1] == group[2]
    assert group[3] == group[4]


@given(cases(least=3), st.integers(1, 3), st.data())
@settings(max_examples=100)
def test_fuzzy_shares_add_up_and_groups_are_equally_large(case, k, data):
    uniform = np.array(data.draw(st.lists(UNIFORM, min_size=k, max_size=k)))
    share = fuzzy_centres.fuzzy_shares(case.points, k, uniform, 2.0, 50)
    assert share.sum(axis=1) == pytest.approx(np.ones(case.records))
    group = fuzzy_centres.equal_groups(np.argsort(-share.ravel(), kind="stable"), k, case.records)
    sizes = np.bincount(group, minlength=k)
    assert sizes.sum() == case.records
    assert sizes.max() - sizes.min() <= 1


@given(cases(least=2), st.integers(1, 5), st.data())
@settings(max_examples=150)
def test_one_pass_k_means_makes_as_many_classes_as_there_can_be(case, k, data):
    assume(case.records >= k)
    order = np.array(data.draw(st.permutations(range(case.records))))
    sizes = np.bincount(one_pass.one_pass(case.points, order, k))
    assert len(sizes) == case.records // k
    assert sizes.min() >= k


@given(matrices(least=2, most=14), st.integers(1, 4), st.data())
@settings(max_examples=150)
def test_k_member_is_that_of_the_plain_twin(matrix, k, data):
    assume(matrix.people >= k)
    who = np.zeros(0, dtype=np.int32) if matrix.subjects is None else matrix.subjects
    people = list(range(matrix.records)) if matrix.subjects is None else matrix.subjects.tolist()
    first = data.draw(st.integers(0, matrix.records - 1))
    labels = greedy_clusters.k_member(matrix.codes, who, k, first, costs_of(matrix))
    expected = naive_clustering.k_member(
        lambda m: box_loss(matrix, m), matrix.records, people, k, first
    )
    assert classes_of(labels) == in_order(expected)


@given(matrices(least=2))
@settings(max_examples=150)
def test_squared_distances_of_points_are_the_squared_losses_of_the_box_of_two(matrix):
    points = points_of(matrix, "range").T.tolist()
    for r in range(min(matrix.records, 6)):
        alone = (
            replace(
                matrix, codes=matrix.codes[:, [j]], scale=matrix.scale[[j]], base=matrix.base[[j]]
            )
            for j in range(matrix.attributes)
        )
        squares = sum(box_loss(one, [0, r]) ** 2 for one in alone)
        found = naive_clustering.squared_distance(points[0], points[r])
        assert found == pytest.approx(squares, abs=1e-9)


@given(matrices(least=2))
@settings(max_examples=100)
def test_deviation_gives_every_attribute_that_varies_the_same_variance(matrix):
    whole = float(points_of(matrix, "deviation").var(axis=1).sum())
    varying = sum(
        len(np.unique(matrix.codes[:, j])) > 1 and (matrix.base[j] >= 0 or matrix.scale[j] > 0)
        for j in range(matrix.attributes)
    )
    assert whole == pytest.approx(varying)


def test_raw_distances_are_those_of_the_numbers_whatever_their_decimals_and_weights():
    shown = [(20.25, 1000), (21.5, 1300), (60.75, 1010), (24.0, 4900)]
    frame = pl.DataFrame(shown, schema=["age", "income"], orient="row").cast(pl.String)
    attributes = {
        "age": {"role": "quasi", "type": "number", "domain": [0, 100], "weight": 3},
        "income": {"role": "quasi", "type": "number"},
    }
    bound = bound_table(Table(frame), Policy.from_dict(content_of(attributes)))
    points = points_of(bound.matrix(), "raw")
    assert points.var(axis=1).sum() == pytest.approx(2)
    apart = [math.dist(points[:, 0], points[:, r]) for r in (1, 2, 3)]
    assert [a / apart[0] for a in apart] == pytest.approx(
        [math.dist(shown[0], shown[r]) / math.dist(shown[0], shown[1]) for r in (1, 2, 3)]
    )


def test_raw_sensitive_numbers_stay_as_far_apart_as_they_are():
    shown = np.array([[1.0, 100.0], [2.0, 300.0], [4.0, 100.0]])
    columns = tuple(
        SensitiveColumn(f"s{s}", codes.astype(np.int32), len(values), "ordered", numbers=values)
        for s in range(2)
        for values, codes in [np.unique(shown[:, s], return_inverse=True)]
    )
    codes = np.stack([column.codes for column in columns], axis=1)
    points = sensitive_points(columns, codes, "raw")
    assert points[1].var() / points[0].var() == pytest.approx(shown[:, 1].var() / shown[:, 0].var())
    assert sensitive_points(columns, codes).var(axis=1) == pytest.approx([1, 1])
