"""CASTLE and B-CASTLE against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive_castle import castle
from shoal.data.space import Space
from shoal.data.stream import KINDS, Arrivals, Emissions
from shoal.jobs import registry
from stream_cases import OnlyK, cases, policy_of


@pytest.mark.parametrize("method", ["castle", "b-castle"])
@settings(max_examples=60)
@given(case=cases(), mu=st.integers(1, 4), chunk=st.integers(1, 30))
def test_decisions_are_those_of_plain_python(method, case, mu, chunk):
    values, people, k, delta, beta, seed = case
    schema, _ = policy_of().bind_stream(["who", "age", "pay", "town", "ill", "note"])
    own = Space.of(schema)
    more = {"alpha": 6} if method == "b-castle" else {}
    asked = registry.methods()[method].implementation(delta=delta, beta=beta, mu=mu, keep=0, **more)
    publisher, released = asked.start(own, OnlyK(k), seed), []
    for at in range(0, len(values), chunk):
        part = slice(at, at + chunk)
        released += publisher.push(Arrivals(np.arange(len(values))[part], values[part], people[part]))
    released += publisher.flush()
    found = Emissions.joined(released)
    members = {c: tuple(found.seq[found.cluster == c].tolist()) for c in found.made.tolist()}
    new = {c: tuple(s for s, kind in zip(found.seq, found.kind, strict=True) if KINDS[kind] == "new" and s in set(m))
           for c, m in members.items()}  # fmt: skip
    told = [
        (int(s), KINDS[kind], tuple(sorted(new[int(c)])) if KINDS[kind] == "new" else None)
        for s, kind, c in zip(found.seq, found.kind, found.cluster, strict=True)
    ]
    plain = castle(own, values, people.tolist(), k, delta, beta, mu, seed, full=6 if method == "b-castle" else 0)
    assert told == [(i, kind, None if m is None else tuple(sorted(int(x) for x in m))) for i, kind, m in plain]
