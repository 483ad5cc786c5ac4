"""FADS: its kernels against plain Python, and its rules one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_streams
import naive_windows
from shoal.data.stream import Arrivals, Space
from shoal.errors import PromiseError
from shoal.policy.binding.table import bind_stream
from shoal.streams.kernels import grown_clusters, nearest_clusters
from shoal.streams.methods.fads import NEIGHBOURS, PROBES, REACH, ROUNDS, TRIES, Fads
from shoal.testing.methods import OnlyPeople
from stream_cases import broken_rules, cases, policy_of, run, stream_of


def space() -> Space:
    return Space.of(bind_stream(["who", "age", "pay", "town", "ill", "note"], policy_of()).schema)


@pytest.mark.parametrize("rule", [*NEIGHBOURS, "paper"])
@settings(max_examples=120)
@given(case=cases())
def test_the_clusters_of_a_release_are_what_plain_python_finds(rule, case):
    values, people, k, _, seed = case
    own, n = space(), len(values)
    neighbour, chosen = (
        ("knn", {"preset": "paper"}) if rule == "paper" else (rule, {"neighbour": rule})
    )
    publisher = Fads(delta=max(n, k), **chosen).start(own, OnlyPeople(k), seed)
    released = [*publisher.push(Arrivals(np.arange(n), values, people)), *publisher.flush()]
    rng = np.random.default_rng([seed, 2, 0])
    rng.random(n)  # drawn for ties between clusters that cover
    picks = rng.permutation(n).tolist()
    costs = naive_streams.Costs(own.scaled_positions(values), own.leaf(values), *own.costs)
    numbers = [] if len(set(people.tolist())) == n else people.tolist()
    order = naive_streams.rarest_first(costs, picks[:PROBES], n) if neighbour != "knn" else None
    labels, count = naive_streams.condensed(
        costs, numbers, picks, k, neighbour, rule == "paper", reach=REACH, order=order
    )
    if neighbour == "near":
        labels = naive_streams.regrouped(costs, numbers, labels, count, k, TRIES, ROUNDS, order)
    wanted = naive_streams.joined(costs, labels, count) if count else [-1] * n
    assert [c for one in released for c in one.cluster.tolist()] == wanted


@settings(max_examples=80)
@given(case=cases(), tries=st.integers(1, 3), rounds=st.integers(1, 3))
def test_regrouping_is_what_plain_python_finds_and_loses_no_more(case, tries, rounds):
    values, who, k, _, seed = case
    own, people = space(), np.zeros(0, np.int32)
    if len(set(who.tolist())) < len(who):
        people = np.unique(who, return_inverse=True)[1].astype(np.int32)
    near, leaf = own.scaled_positions(values), own.leaf(values)
    costs = naive_streams.Costs(near, leaf, *own.costs)
    picks = np.random.default_rng(seed).permutation(len(values))
    labels, count = nearest_clusters.nearest(
        near, leaf, people, picks, k, nearest_clusters.BY_NEAREST, *own.costs
    )
    before = labels.copy()
    grown_clusters.regrouped(near, leaf, people, labels, k, tries, rounds, *own.costs)
    plain = [None if c < 0 else c for c in before.tolist()]
    wanted = naive_streams.regrouped(costs, people.tolist(), plain, count, k, tries, rounds)
    assert [None if c < 0 else c for c in labels.tolist()] == wanted
    loss = [
        sum(costs.of(np.flatnonzero(found == c).tolist()) for c in range(count))
        for found in (labels, before)
    ]
    assert loss[0] <= loss[1]
    for c in range(count):
        members = np.flatnonzero(labels == c)
        assert len(members) == k
        assert not len(people) or len(set(people[members].tolist())) == k


@settings(max_examples=60)
@given(seed=st.integers(0, 999), boxes=st.integers(1, 12), n=st.integers(1, 20))
def test_covering_is_what_plain_python_finds(seed, boxes, n):
    """Of few losses, so that several clusters lose equally little and one is drawn."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 6, (n, 3)).astype(float)
    lo, hi = np.sort(rng.integers(0, 7, (2, boxes, 3)), axis=0).astype(float)
    loss, draws = np.sort(rng.integers(0, 3, boxes)).astype(float), rng.random(n)
    found = nearest_clusters.covering(
        values, np.ascontiguousarray(lo.T), np.ascontiguousarray(hi.T), loss, draws
    )
    clusters = [{"number": c, "lo": lo[c], "hi": hi[c], "loss": loss[c]} for c in range(boxes)]
    used = [
        naive_windows.least_covering(clusters, row, draw)
        for row, draw in zip(values, draws, strict=True)
    ]
    assert found.tolist() == [-1 if one is None else one["number"] for one in used]


def test_a_missing_number_that_suppresses_is_covered_by_nothing():
    lo, hi = np.full((1, 1), -np.inf), np.full((1, 1), np.inf)
    assert nearest_clusters.covering(
        np.array([[np.nan]]), lo, hi, np.zeros(1), np.zeros(1)
    ).tolist() == [-1]


def test_the_paper_lets_members_share_people_and_strict_does_not():
    """Reading D3: with few people, some cluster of the paper's has fewer than k of them."""
    frame = stream_of(300, people=8)
    with pytest.raises(PromiseError, match="does not hold in a new class"):
        run(policy_of(k=6, delta=100, preset="paper"), frame)
    assert broken_rules(run(policy_of(k=6, delta=100), frame), frame, k=6) == []


@pytest.mark.parametrize("effort", ["light", "full"])
def test_refining_loses_less_and_keeps_sizes_and_people(effort):
    """In one release: as many clusters of the same sizes, of k people each, with less loss."""
    own, rng = space(), np.random.default_rng(3)
    values = np.column_stack(
        [rng.integers(0, 101, 300), rng.integers(-5, 6, 300), rng.integers(0, 6, 300)]
    ).astype(float)
    for people in (np.arange(300), rng.integers(0, 120, 300)):
        found = {}
        for refine in ("none", effort):
            publisher = Fads(delta=300, refine=refine).start(own, OnlyPeople(5), 1)
            (release,) = publisher.push(Arrivals(np.arange(300), values, people))
            loss = own.published_bounds(release.lo, release.hi)[2]
            sizes = np.bincount(release.cluster[release.cluster >= 0])
            found[refine] = (loss * sizes).sum(), sorted(sizes.tolist())
            for number in release.made:
                assert len(set(release.people[release.cluster == number].tolist())) >= 5
        assert found[effort][1] == found["none"][1]
        assert found[effort][0] < found["none"][0]
