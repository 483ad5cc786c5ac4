"""Stream methods against plain Python, and the bounds that every method keeps to."""

from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_waiting
import naive_windows
from naive_castle import castle
from shoal.data.stream import KINDS, Arrivals, Emissions, Space
from shoal.policy import registry
from shoal.policy.binding.table import bind_stream
from shoal.streams.core import StreamCore
from shoal.testing.methods import OnlyPeople
from stream_cases import ADVERSARIAL, cases, policy_of, streams
from thorough import comparators_long, examples

METHODS = sorted(m.name for m in registry.methods().values() if m.verb == "stream")
SETTINGS = {
    "fads": {"c0": 1.0, "tau": 1.0},
    "fads-tuple": {"lifetime": 6},
    "faanst": {"keep": 4, "tau": 1.0},
    "castle": {"keep": 4, "beta": 3, "mu": 2},
    "b-castle": {"keep": 4, "beta": 3, "mu": 2, "alpha": 6},
    "swaf": {"c0": 1.0},
    "sky": {"c0": 1.0},
    "zhou": {"c0": 1.0, "mu": 2},
}
MOST_KEPT = {
    "fads": lambda delta: ceil(delta / 3),
    "fads-tuple": lambda delta: 7,
    "faanst": lambda delta: 4,
    "castle": lambda delta: 4,
    "b-castle": lambda delta: 4,
    "swaf": lambda delta: ceil(delta / 3),
    "zhou": lambda delta: ceil(delta / 3),
    "sky": lambda delta: 8 * ceil(delta / 3) + 1,
}
ENTROPY = {"model": "l-diversity", "attribute": "ill", "l": 2, "kind": "entropy"}

QUASI = ["who", "age", "pay", "town", "ill", "note"]


def decisions(method, own, values, people, k, seed, chunk, **parameters):
    """(record, kind, members of its cluster or None) of each record, in order of leaving."""
    asked = registry.methods()[method].implementation(**parameters)
    publisher, released = asked.start(own, OnlyPeople(k), seed), []
    for at in range(0, len(values), chunk):
        part = slice(at, at + chunk)
        released += publisher.push(
            Arrivals(np.arange(len(values))[part], values[part], people[part])
        )
    released += publisher.flush()
    if not released:
        return []
    found = Emissions.joined(released)
    is_new = found.kind == KINDS.index("new")
    members = {
        int(c): tuple(sorted(found.seq[is_new & (found.cluster == c)].tolist())) for c in found.made
    }
    return [
        (int(s), KINDS[kind], members.get(int(c)))
        for s, kind, c in zip(found.seq, found.kind, found.cluster, strict=True)
    ]


def the_space() -> Space:
    return Space.of(bind_stream(QUASI, policy_of()).schema)


def adversarial(kind, n):
    """The records of an adversarial stream as a method sees them."""
    own, frame = the_space(), ADVERSARIAL[kind](n)
    people = np.unique(frame["who"].to_list(), return_inverse=True)[1].astype(np.int64)
    return own.encode(frame)[0], people


def assert_decided_alike(method, twin, case, chunk, neighbour=None, **more):
    """The method decides as its plain twin, which has a parameter less: neighbour."""
    values, people, k, delta, seed = case
    own, more = the_space(), {"delta": delta, **more}
    beside = {} if neighbour is None else {"neighbour": neighbour}
    found = decisions(method, own, values, people, k, seed, chunk, **more, **beside)
    assert found == twin(own, values, people.tolist(), k, **more, seed=seed)


TWINS = {
    "fads": naive_windows.fads,
    "fads-tuple": naive_windows.fads_tuple,
    "faanst": naive_windows.faanst,
    "swaf": naive_waiting.swaf,
    "zhou": naive_waiting.swaf,
    "sky": naive_waiting.sky,
    "castle": castle,
    "b-castle": castle,
}
CLUSTERS = {"beta": st.integers(1, 5), "mu": st.integers(1, 4), "keep": st.just(0)}
DRAWN = {
    "fads": {
        "neighbour": st.just("knn"),
        "tau": st.sampled_from([0.0, 0.2, 0.6, 1.0]),
        "c0": st.sampled_from([1.0, 1.5]),
        "strict_release": st.booleans(),
        "leftovers": st.sampled_from(["star", "hold", "drop"]),
    },
    "fads-tuple": {"lifetime": st.integers(0, 15)},
    "faanst": {
        "tau": st.sampled_from([0.1, 0.5, 1.0]),
        "delay": st.sampled_from(["none", "passive", "proactive"]),
        "rounds": st.integers(1, 4),
        "keep": st.integers(1, 9),
    },
    "swaf": {"c0": st.sampled_from([1.0, 1.5]), "split": st.sampled_from(["median", "density"])},
    "zhou": {"c0": st.just(1.0), "mu": st.integers(1, 4)},
    "sky": {"c0": st.sampled_from([1.0, 1.5]), "cut": st.sampled_from(["middle", "median"])},
    "castle": CLUSTERS,
    "b-castle": {**CLUSTERS, "alpha": st.just(6)},
}


@pytest.mark.parametrize("method", TWINS)
@settings(max_examples=120, deadline=None)
@given(case=cases(), chunk=st.integers(1, 30), data=st.data())
def test_a_method_decides_as_plain_python(method, case, chunk, data):
    more = data.draw(st.fixed_dictionaries(DRAWN[method]))
    assert_decided_alike(method, TWINS[method], case, chunk, **more)


@pytest.mark.parametrize("kind", sorted(set(ADVERSARIAL) - {"missing"}))
def test_adversarial_streams_are_decided_as_plain_python_does(kind):
    buffer = {"tau": 0.5, "c0": 1.0, "strict_release": False, "leftovers": "star"}
    window = {"tau": 0.5, "rounds": 5, "keep": 6}
    for n, delta in ((50, 12), (12, 12), (13, 12), (30, 3)):
        case = (*adversarial(kind, n), 3, delta, 1)
        assert_decided_alike("fads", naive_windows.fads, case, 7, neighbour="knn", **buffer)
        assert_decided_alike("fads-tuple", naive_windows.fads_tuple, case, 7, lifetime=9)
        for delay in ("none", "passive", "proactive"):
            assert_decided_alike("faanst", naive_windows.faanst, case, 7, **window, delay=delay)


@pytest.mark.parametrize("method", comparators_long(METHODS))
@pytest.mark.parametrize("more", [(), (ENTROPY,)], ids=["k", "entropy"])
@settings(max_examples=examples(4, 12), deadline=None)
@given(
    frame=streams(),
    delta=st.sampled_from([5, 12, 25]),
    chunk=st.integers(1, 20),
    ticked=st.booleans(),
)
def test_state_never_outgrows_what_the_parameters_allow(method, more, frame, delta, chunk, ticked):
    """I8, behind every chunk: records, clusters, candidates, tau as the mean of mu losses."""
    known = {p.name for p in registry.methods()[method].parameters}
    parameters = (
        SETTINGS[method] | {"delta": delta} | ({"tick": 3} if ticked and "tick" in known else {})
    )
    core = StreamCore(policy_of(method, more=more, **parameters), frame.columns)
    most, published = MOST_KEPT[method](delta), []
    for at in range(0, frame.height, chunk):
        part = frame[at : at + chunk]
        batch, wrong = core.push(part, at + np.arange(part.height))
        assert not wrong
        state = core.snapshot()
        assert core.waiting == len(state["held_seq"]) <= delta
        if "publisher/reusable.number" in state:
            assert len(state["publisher/reusable.number"]) <= most
        assert state["cells"].height <= most + len(state.get("due/live", ()))
        if more:
            remembered = state["promises/members"]
            cells = set(remembered["\0cells"]) if remembered.height else set()
            assert cells <= set(state["promises/live"]["cells"])
            assert state["promises/live"].height <= most + len(state.get("due/live", ()))
        if "publisher/buffer.seq" in state:
            assert len(state["publisher/buffer.seq"]) <= delta
        if method in ("castle", "b-castle"):
            assert (state["publisher/held.born"] >= 0).sum() <= 3
            assert len(state["publisher/losses"]) <= 2
        if batch is not None:
            published += core.space.published_bounds(batch.decided.lo, batch.decided.hi)[2].tolist()
        if "castle" in method and not ticked and published:
            assert np.mean(state["publisher/losses"]) == pytest.approx(np.mean(published[-2:]))
