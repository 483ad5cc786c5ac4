"""CASTLE and B-CASTLE against plain Python."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from naive_castle import castle
from sample_policies import content_of
from shoal.data.stream import KINDS, Arrivals, Emissions, Space
from shoal.policy import registry
from shoal.policy.binding.table import bind_stream
from stream_cases import OnlyK, cases, policy_of


@pytest.mark.parametrize("method", ["castle", "b-castle"])
@settings(max_examples=60)
@given(case=cases(), mu=st.integers(1, 4), chunk=st.integers(1, 30))
def test_decisions_are_those_of_plain_python(method, case, mu, chunk):
    values, people, k, delta, beta, seed = case
    problem, _ = bind_stream(["who", "age", "pay", "town", "ill", "note"], policy_of())
    own = Space.of(problem.schema)
    more = {"alpha": 6} if method == "b-castle" else {}
    asked = registry.methods()[method].implementation(delta=delta, beta=beta, mu=mu, keep=0, **more)
    publisher, released = asked.start(own, OnlyK(k), seed), []
    for at in range(0, len(values), chunk):
        part = slice(at, at + chunk)
        released += publisher.push(
            Arrivals(np.arange(len(values))[part], values[part], people[part])
        )
    released += publisher.flush()
    found = Emissions.joined(released)
    members = {c: tuple(found.seq[found.cluster == c].tolist()) for c in found.made.tolist()}
    new = {
        c: tuple(
            s
            for s, kind in zip(found.seq, found.kind, strict=True)
            if KINDS[kind] == "new" and s in set(m)
        )
        for c, m in members.items()
    }
    told = [
        (int(s), KINDS[kind], tuple(sorted(new[int(c)])) if KINDS[kind] == "new" else None)
        for s, kind, c in zip(found.seq, found.kind, found.cluster, strict=True)
    ]
    plain = castle(
        own,
        values,
        people.tolist(),
        k,
        delta,
        beta,
        mu,
        seed,
        full=6 if method == "b-castle" else 0,
    )
    assert told == [
        (i, kind, None if m is None else tuple(sorted(int(x) for x in m))) for i, kind, m in plain
    ]


def test_a_cluster_is_asked_about_those_whom_a_cap_keeps_in_it():
    """Once the places of records that left are taken again, their order is not that of arrival."""
    told = (
        "2 50 e 2,1 0 a 0,0 0 f 2,2 100 d 1,2 0 c 0,0 50 c 0,1 100 c 0,0 100 a 0,2 100 e 0,2 0 e"
        " 1,2 0 a 1"
    )
    told += ",1 0 a 1,2 0 a 0"
    tree = {"tree": {"north": ["a", "b", {"far": ["c", "d"]}], "south": ["e", "f"]}}
    policy = content_of(
        {
            "who": {"role": "subject"},
            "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
            "town": {"role": "quasi", "hierarchy": tree},
            "ill": {"role": "sensitive"},
        },
        2,
        {"model": "t-closeness", "attributes": ["ill"], "t": 0.5},
        {"model": "subject-share", "share": 0.5},
        method={"name": "castle", "delta": 10, "snap": 1, "keep": 0},
        seed=951,
    )
    names = ["who", "age", "town", "ill"]
    values = ["0"] * 14 + ["1"] * 11 + ["2"] * 2
    reference = pl.DataFrame(
        [(f"r{i}", "0", "a", value) for i, value in enumerate(values)], schema=names, orient="row"
    )
    stream = shoal.stream(policy, reference=reference)
    for record in told.split(","):  # one by one, so that every release is measured by itself
        stream.push(pl.DataFrame([record.split()], schema=names, orient="row"))
    stream.flush()
