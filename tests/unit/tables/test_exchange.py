"""Exchange between classes: what it may change, and that it only gains."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import naive_clustering
from clustering_cases import cases, classes_of
from shoal.tables.kernels import exchange, unassigned_pool

NOBODY = np.zeros(0, dtype=np.int32)


def energy(case, labels, weight):
    classes = classes_of(labels)
    beyond = sum(naive_clustering.total_excess(case.asked, members) for members in classes)
    return naive_clustering.squared_error(case.plain, classes) + weight * beyond


def all_pairs(classes: int) -> np.ndarray:
    numbers = np.arange(classes, dtype=np.int32)
    return np.where(numbers[None, :] > numbers[:, None], numbers[None, :], np.int32(-1))


@given(cases(least=4), st.integers(1, 4), st.sampled_from([0.0, 1.0, 1e4]), st.data())
@settings(max_examples=200, deadline=None)
def test_exchanges_keep_sizes_and_end_where_no_exchange_gains(case, k, weight, data):
    labels = np.array(data.draw(st.permutations(range(case.records))), dtype=np.int32) // k
    before, sizes = energy(case, labels, weight), np.bincount(labels)
    rows, classes = np.ascontiguousarray(case.points.T), len(sizes)
    excess, moved = exchange.exchange(
        rows, NOBODY, 1, labels, all_pairs(classes), weight, 1000, *case.targets.arrays
    )
    after = energy(case, labels, weight)
    assert np.bincount(labels).tolist() == sizes.tolist()
    assert excess == pytest.approx(
        [naive_clustering.total_excess(case.asked, m) for m in classes_of(labels)], abs=1e-9
    )
    assert after <= before + 1e-9
    assert (after < before) == (moved > 0)
    room = 1e-7 * (1 + weight)
    for r in range(case.records):
        for s in range(r):
            if labels[r] != labels[s]:
                swapped = labels.copy()
                swapped[r], swapped[s] = labels[s], labels[r]
                assert energy(case, swapped, weight) >= after - room


@given(cases(least=4), st.integers(1, 4), st.data())
@settings(max_examples=100, deadline=None)
def test_exchanges_give_every_class_its_people(case, k, data):
    drawn = data.draw(
        st.lists(st.integers(0, case.records), min_size=case.records, max_size=case.records)
    )
    who = np.unique(drawn, return_inverse=True)[1].astype(np.int32)
    labels = np.array(data.draw(st.permutations(range(case.records))), dtype=np.int32) // k
    lacking = sum(max(0, k - len(set(who[members]))) for members in classes_of(labels))
    rows, classes = np.ascontiguousarray(case.points.T), int(labels.max()) + 1
    excess, _ = exchange.exchange(
        rows, who, k, labels, all_pairs(classes), 1e6, 1000, *case.targets.arrays
    )
    after = [max(0, k - len(set(who[members]))) for members in classes_of(labels)]
    beyond = [naive_clustering.total_excess(case.asked, members) for members in classes_of(labels)]
    assert excess == pytest.approx(np.add(after, beyond), abs=1e-9)
    if not case.columns:
        assert sum(after) <= lacking


@given(cases(least=3), st.integers(1, 4), st.sampled_from([0.0, 1.0, 1e4]), st.data())
@settings(max_examples=150, deadline=None)
def test_a_record_handed_out_joins_the_class_where_it_costs_least(case, classes, weight, data):
    assume(case.records > classes)
    labels = np.arange(case.records, dtype=np.int32) % classes
    leftover = data.draw(st.integers(classes, case.records - 1))
    labels[leftover] = -1
    costs = []
    for c in range(classes):
        joined = labels.copy()
        joined[leftover] = c
        costs.append(energy(case, joined, weight))
    unassigned_pool.assign_leftovers(
        np.ascontiguousarray(case.points.T), labels, classes, weight, *case.targets.arrays
    )
    assert costs[labels[leftover]] <= min(costs) + 1e-9 * (1 + weight)


@given(cases(least=2), st.integers(1, 6), st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_near_classes_list_every_pair_of_neighbours_once(case, classes, q):
    assume(case.records >= classes)
    labels = np.arange(case.records, dtype=np.int32) % classes
    near = exchange.near_classes(np.ascontiguousarray(case.points.T), labels, classes, q)
    pairs = [frozenset((a, b)) for a in range(classes) for b in near[a].tolist() if b >= 0]
    assert len(pairs) == len(set(pairs))
    means = [naive_clustering.mean_of(case.plain, members) for members in classes_of(labels)]
    for a in range(classes):
        apart = sorted(
            (naive_clustering.squared_distance(means[a], means[b]), b)
            for b in range(classes)
            if b != a
        )
        for _, b in [
            pair for pair in apart[:q] if len(apart) > q and pair[0] < apart[q][0] - 1e-9
        ] or []:
            assert frozenset((a, b)) in pairs
