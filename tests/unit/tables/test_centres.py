"""k-means++, fuzzy c-means, one-pass k-means and k-member, and the points they measure between."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import naive_clustering
from clustering_cases import cases, classes_of, in_order
from naive_partition import box_loss
from peer_cases import matrices
from shoal.data.classes import SensitiveColumn
from shoal.data.table import Table
from shoal.policy.binding.table import bind
from shoal.policy.policy import Policy
from shoal.search.points import points_of, sensitive_points
from shoal.search.segments import costs_of
from shoal.tables.kernels import from_subsets
from shoal_papers.baselines.kernels import fuzzy_centres, greedy_clusters, one_pass

UNIFORM = st.floats(0, 0.99)


@given(cases(least=2), st.integers(1, 5), st.data())
@settings(max_examples=150, deadline=None)
def test_k_means_ends_where_every_record_is_at_its_nearest_mean(case, k, data):
    uniform = np.array(data.draw(st.lists(UNIFORM, min_size=k, max_size=k)))
    group = from_subsets.k_means(case.points, k, uniform, 1000)
    assert ((group >= 0) & (group < k)).all()
    means = {
        g: naive_clustering.mean_of(case.plain, np.flatnonzero(group == g).tolist())
        for g in set(group.tolist())
    }
    for r in range(case.records):
        own = naive_clustering.squared_distance(case.plain[r], means[group[r]])
        assert (
            own
            <= min(
                naive_clustering.squared_distance(case.plain[r], mean) for mean in means.values()
            )
            + 1e-9
        )


def test_k_means_pp_draws_far_centres():
    points = np.array([[0.0, 0.0, 0.0, 100.0, 100.0, 50.0]])
    group = from_subsets.k_means(points, 3, np.array([0.0, 0.99, 0.5]), 100)
    assert len(set(group.tolist())) == 3
    assert group[0] == group[1] == group[2]
    assert group[3] == group[4]


@given(cases(least=3), st.integers(1, 3), st.data())
@settings(max_examples=100, deadline=None)
def test_fuzzy_shares_add_up_and_groups_are_equally_large(case, k, data):
    uniform = np.array(data.draw(st.lists(UNIFORM, min_size=k, max_size=k)))
    share = fuzzy_centres.fuzzy_shares(case.points, k, uniform, 2.0, 50)
    assert share.sum(axis=1) == pytest.approx(np.ones(case.records))
    group = fuzzy_centres.equal_groups(np.argsort(-share.ravel(), kind="stable"), k, case.records)
    sizes = np.bincount(group, minlength=k)
    assert sizes.sum() == case.records
    assert sizes.max() - sizes.min() <= 1


@given(cases(least=2), st.integers(1, 5), st.data())
@settings(max_examples=150, deadline=None)
def test_one_pass_k_means_makes_as_many_classes_as_there_can_be(case, k, data):
    assume(case.records >= k)
    order = np.array(data.draw(st.permutations(range(case.records))))
    sizes = np.bincount(one_pass.one_pass(case.points, order, k))
    assert len(sizes) == case.records // k
    assert sizes.min() >= k


@given(matrices(least=2, most=14), st.integers(1, 4), st.data())
@settings(max_examples=150, deadline=None)
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
@settings(max_examples=150, deadline=None)
def test_squared_distances_of_points_are_the_squared_losses_of_the_box_of_two(matrix):
    points = points_of(matrix, "range").T.tolist()
    for r in range(min(matrix.records, 6)):
        squares = 0.0
        for j in range(matrix.attributes):
            one = type(matrix)(
                **{
                    **matrix.__dict__,
                    "codes": matrix.codes[:, [j]],
                    "scale": matrix.scale[[j]],
                    "base": matrix.base[[j]],
                }
            )
            squares += box_loss(one, [0, r]) ** 2
        assert naive_clustering.squared_distance(points[0], points[r]) == pytest.approx(
            squares, abs=1e-9
        )


@given(matrices(least=2))
@settings(max_examples=100, deadline=None)
def test_deviation_gives_every_attribute_that_varies_the_same_variance(matrix):
    whole = float(points_of(matrix, "deviation").var(axis=1).sum())
    varying = sum(
        len(np.unique(matrix.codes[:, j])) > 1 and (matrix.base[j] >= 0 or matrix.scale[j] > 0)
        for j in range(matrix.attributes)
    )
    assert whole == pytest.approx(varying)


def test_raw_distances_are_those_of_the_numbers_whatever_their_decimals_and_weights():
    told = [(20.25, 1000), (21.5, 1300), (60.75, 1010), (24.0, 4900)]
    frame = pl.DataFrame(told, schema=["age", "income"], orient="row").cast(pl.String)
    attributes = {
        "age": {"role": "quasi", "type": "number", "domain": [0, 100], "weight": 3},
        "income": {"role": "quasi", "type": "number"},
    }
    promises = [{"model": "k-anonymity", "k": 2}]
    policy = Policy.from_dict({"version": 1, "attributes": attributes, "promises": promises})
    bound, _ = bind(Table(frame), policy)
    points = points_of(bound.matrix(), "raw")
    assert points.var(axis=1).sum() == pytest.approx(2)
    apart = [math.dist(points[:, 0], points[:, r]) for r in (1, 2, 3)]
    assert [a / apart[0] for a in apart] == pytest.approx(
        [math.dist(told[0], told[r]) / math.dist(told[0], told[1]) for r in (1, 2, 3)]
    )


def test_raw_sensitive_numbers_stay_as_far_apart_as_they_are():
    told = np.array([[1.0, 100.0], [2.0, 300.0], [4.0, 100.0]])
    columns = tuple(
        SensitiveColumn(f"s{s}", codes.astype(np.int32), len(values), "ordered", numbers=values)
        for s in range(2)
        for values, codes in [np.unique(told[:, s], return_inverse=True)]
    )
    codes = np.stack([column.codes for column in columns], axis=1)
    points = sensitive_points(columns, codes, "raw")
    assert points[1].var() / points[0].var() == pytest.approx(told[:, 1].var() / told[:, 0].var())
    assert sensitive_points(columns, codes).var(axis=1) == pytest.approx([1, 1])
