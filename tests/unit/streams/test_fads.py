"""FADS: its kernels against plain Python, and its rules one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_streams
from shoal.data.stream import Arrivals, Space
from shoal.errors import PromiseError
from shoal.policy.binding.table import bind_stream
from shoal.streams.kernels import grown_clusters, nearest_clusters
from shoal.streams.methods.fads import NEIGHBOURS, PROBES, REACH, ROUNDS, TRIES, Fads
from stream_cases import OnlyK, broken_rules, policy_of, run, stream_of


def space() -> Space:
    return Space.of(bind_stream(["who", "age", "pay", "town", "ill", "note"], policy_of()).schema)


@st.composite
def buffers(draw):
    n = draw(st.integers(1, 30))
    few = draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    high = 4 if few else 101
    values = np.column_stack(
        [rng.integers(0, high, n), rng.integers(-5, 6, n), rng.integers(0, 6, n)]
    ).astype(float)
    dense = np.zeros(0, np.int32)
    if draw(st.booleans()):
        people = rng.integers(0, draw(st.integers(1, 12)), n)
        dense = np.unique(people, return_inverse=True)[1].astype(np.int32)
    return values, dense, rng.permutation(n), draw(st.integers(2, 6))


@pytest.mark.parametrize("rule", ["knn", "grow", "near", "paper"])
@settings(max_examples=80)
@given(case=buffers())
def test_condensing_is_what_plain_python_finds(rule, case):
    values, people, picks, k = case
    rules = {"knn": nearest_clusters.BY_NEAREST, "paper": nearest_clusters.OWN_ONLY}
    own = space()
    near, leaf = own.scaled_positions(values), own.leaf(values)
    costs, given = naive_streams.Costs(near, leaf, *own.costs), (near, leaf, people, picks, k)
    asked, more = (people.tolist(), picks.tolist(), k), {}
    if rule == "grow":
        labels, count = grown_clusters.grown(*given, *own.costs)
    elif rule == "near":
        labels, count = grown_clusters.grown_near(*given, 2, *own.costs)
        more = {"reach": 2}
    else:
        labels, count = nearest_clusters.nearest(*given, rules[rule], *own.costs)
    kind = "knn" if rule in rules else rule
    plain, made = naive_streams.condensed(costs, *asked, kind, rule == "paper", **more)
    assert count == made
    assert [None if c < 0 else c for c in labels.tolist()] == plain
    if count:
        nearest_clusters.join(near, leaf, np.zeros(0, np.int32), labels, count, *own.costs)
        assert labels.tolist() == naive_streams.joined(costs, plain, made)


@settings(max_examples=80)
@given(case=buffers(), tries=st.integers(1, 3), rounds=st.integers(1, 3))
def test_regrouping_is_what_plain_python_finds_and_loses_no_more(case, tries, rounds):
    values, people, picks, k = case
    own = space()
    near, leaf = own.scaled_positions(values), own.leaf(values)
    costs = naive_streams.Costs(near, leaf, *own.costs)
    labels, count = nearest_clusters.nearest(
        near, leaf, people, picks, k, nearest_clusters.BY_NEAREST, *own.costs
    )
    plain = [None if c < 0 else c for c in labels.tolist()]
    before = labels.copy()
    grown_clusters.regrouped(near, leaf, people, labels, k, tries, rounds, *own.costs)
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


@pytest.mark.parametrize("neighbour", NEIGHBOURS)
@settings(max_examples=60)
@given(case=buffers())
def test_the_clusters_of_a_release_are_what_plain_python_finds(neighbour, case):
    values, people, _, k = case
    own, n = space(), len(values)
    publisher = Fads(delta=max(n, k), neighbour=neighbour).start(own, OnlyK(k), 5)
    who = people.astype(np.int64) if len(people) else np.arange(n)
    released = [*publisher.push(Arrivals(np.arange(n), values, who)), *publisher.flush()]
    rng = np.random.default_rng([5, 2, 0])
    rng.random(n)  # drawn for ties between clusters that cover
    picks = rng.permutation(n).tolist()
    costs = naive_streams.Costs(own.scaled_positions(values), own.leaf(values), *own.costs)
    numbers = [] if len(set(who.tolist())) == n else who.tolist()
    order = naive_streams.rarest_first(costs, picks[:PROBES], n) if neighbour != "knn" else None
    labels, count = naive_streams.condensed(
        costs, numbers, picks, k, neighbour, reach=REACH, order=order
    )
    if neighbour == "near":
        labels = naive_streams.regrouped(costs, numbers, labels, count, k, TRIES, ROUNDS, order)
    wanted = naive_streams.joined(costs, labels, count) if count else [-1] * n
    assert [c for one in released for c in one.cluster.tolist()] == wanted


@settings(max_examples=60)
@given(seed=st.integers(0, 999), boxes=st.integers(1, 12), n=st.integers(1, 20))
def test_covering_is_what_plain_python_finds(seed, boxes, n):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 6, (n, 3)).astype(float)
    ends = np.sort(rng.integers(0, 7, (boxes, 3, 2)), axis=2).astype(float)
    loss, draws = np.sort(rng.integers(0, 3, boxes)).astype(float), rng.random(n)
    lo, hi = (np.ascontiguousarray(ends[:, :, end].T) for end in (0, 1))
    found = nearest_clusters.covering(values, lo, hi, loss, draws)
    assert found.tolist() == naive_streams.covering(
        values.tolist(), ends.tolist(), loss.tolist(), draws.tolist()
    )


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


def test_strict_release_reuses_a_cluster_only_for_k_people_at_once():
    frame = stream_of(300)
    found = run(policy_of(delta=60, tau=1.0, strict_release=True), frame)
    people = {}
    for shown in found.trace:
        if shown["row"] is not None and shown["kind"] != "suppress":
            cells = tuple(found.rows[shown["row"]][name] for name in ("age", "pay", "town"))
            people.setdefault((shown["release"], cells), set()).add(frame["who"][shown["seq"]])
    assert min(len(who) for who in people.values()) >= 3
    assert any(shown["kind"] == "reuse" for shown in found.trace)


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
            publisher = Fads(delta=300, refine=refine).start(own, OnlyK(5), 1)
            (release,) = publisher.push(Arrivals(np.arange(300), values, people))
            loss = own.published_bounds(release.lo, release.hi)[2]
            sizes = np.bincount(release.cluster[release.cluster >= 0])
            found[refine] = (loss * sizes).sum(), sorted(sizes.tolist())
            for number in release.made:
                assert len(set(release.people[release.cluster == number].tolist())) >= 5
        assert found[effort][1] == found["none"][1]
        assert found[effort][0] < found["none"][0]
