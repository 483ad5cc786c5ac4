"""Which promises a stream can keep, and that it refuses the others before its first record."""

from collections import defaultdict
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import shoal
from sample_policies import content_of
from shoal.errors import InputError
from shoal.policy import registry
from shoal.streams.clusters import within_share
from stream_cases import TREE, policy_of, run, stream_of
from thorough import comparators_long, every

KEPT = (
    {"model": "l-diversity", "attribute": "ill", "l": 2},
    {"model": "p-sensitive-k-anonymity", "attributes": ["ill"], "p": 2, "k": 3},
    {"model": "k-l-diversity", "attributes": ["ill"], "k": 3, "l": 2},
)
SHARES = (
    {"model": "l-diversity", "attribute": "ill", "l": 2, "kind": "entropy"},
    {"model": "l-diversity", "attribute": "ill", "l": 2, "kind": "recursive", "c": 2},
    {"model": "alpha-k-anonymity", "attribute": "ill", "alpha": 0.6, "k": 3},
)
OF_THE_TABLE = (
    {"model": "t-closeness", "attributes": ["ill"], "t": 0.3},
    {"model": "beta-likeness", "attributes": ["ill"], "beta": 2},
    {"model": "delta-disclosure", "attributes": ["ill"], "delta": 2},
    {"model": "average-risk", "threshold": 0.5},
    {"model": "sample-uniqueness", "threshold": 0.1},
    {"model": "population-uniqueness", "threshold": 0.5, "fraction": 0.1, "estimator": "pitman"},
    {"model": "k-map", "k": 2, "population": "people.csv"},
    {"model": "delta-presence", "delta_max": 0.9, "population": "people.csv"},
)


SHARE = {"model": "subject-share", "share": 0.4}
METHODS = sorted(m.name for m in registry.methods().values() if m.verb == "stream")


def named(promise):
    return promise["model"] + promise.get("kind", "")


@pytest.mark.parametrize("promise", OF_THE_TABLE, ids=named)
@pytest.mark.parametrize("subject", [True, False])
def test_what_compares_with_a_whole_table_or_population_is_refused(promise, subject, folder):
    stream_of(20).unique("who", keep="first", maintain_order=True).write_csv("people.csv")
    frame = stream_of(60)
    remedy = "name a table to compare with" if promise["model"] == "t-closeness" else "leave it out"
    with pytest.raises(InputError, match=f"promise '{promise['model']}': .*{remedy}"):
        run(policy_of(more=[promise], delta=20, subject=subject), frame)
    if promise["model"] != "t-closeness":
        with pytest.raises(InputError, match="leave it out"):
            shoal.stream(
                policy_of(more=[promise], delta=20, subject=subject), reference=frame
            ).push(frame)


@pytest.mark.parametrize("method", comparators_long(METHODS))
@pytest.mark.parametrize("promise", [*SHARES, *KEPT, SHARE], ids=named)
def test_every_class_of_the_published_stream_keeps_them_at_every_moment(method, promise):
    """People have several records; with few different cells, clusters share looks and people."""
    cases = (
        (0, 9, True, {}),
        (1, 5, True, {}),
        (2, 60, False, {"tick": 6}),
        (3, 9, False, {"strict_release": True}),
    )
    # half of them for each, so that each method and each promise meets all
    turn = METHODS.index(method) + [*SHARES, *KEPT, SHARE].index(promise)
    for seed, people, alike, more in every(2, cases, first=turn):
        known = {p.name for p in registry.methods()[method].parameters}
        frame = stream_of(80, seed, people=people)
        if alike:
            frame = frame.with_columns(pl.lit("40").alias("age"), pl.lit("1.5").alias("pay"))
        settings = {name: value for name, value in more.items() if name in known}
        policy = policy_of(method, more=[promise], delta=20, seed=seed, **settings)
        found = run(policy, frame, chunk=17)
        assert seed or run(policy, frame, 31, restart=True).bytes == found.bytes
        members, changed = defaultdict(list), set()
        shown = sorted((t for t in found.trace if t["row"] is not None), key=lambda t: t["row"])
        for (at, row), following in zip_longest(zip(shown, found.rows, strict=True), shown[1:]):
            cells = row["age"], row["pay"], row["town"]
            if at["kind"] != "suppress" and set(cells) != {"*"}:  # these show no value either
                members[cells].append((frame["who"][at["seq"]], row["ill"]))
                changed.add(cells)
            if following is None or following["release"] > at["release"]:
                assert all(keeps(promise, members[cells]) for cells in changed)
                changed.clear()


@pytest.mark.parametrize("method", comparators_long(METHODS))
def test_a_heavy_user_costs_the_others_nothing(method):
    """One of 41 people has half of all records, too many for any class."""
    frame = stream_of(240, 5, people=40).with_columns(
        pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.lit("heavy")).otherwise("who").alias("who")
    )
    found = run(
        policy_of(method, more=[{"model": "subject-share", "share": 0.34}], delta=60),
        frame,
        chunk=17,
    )
    starred = [frame["who"][t["seq"]] for t in found.trace if t["kind"] == "suppress"]
    assert len(starred) - starred.count("heavy") <= 24
    assert starred.count("heavy") < 115


def test_clusters_that_are_forgotten_are_not_made_again_where_they_could_share_people():
    """All records are alike; castle keeps no cluster that loses 0, so nothing else shows them."""
    found = run(
        policy_of("castle", more=[SHARES[0]], delta=20), stream_of(100, 3, people=6, constant=True)
    )
    assert {t["kind"] for t in found.trace} == {"new", "suppress"}
    assert len({t["class"] for t in found.trace if t["kind"] == "new"}) == 1


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), max_size=25),
    st.lists(st.integers(0, 4), max_size=8),
    st.sampled_from(["0.2", "0.25", "0.34", "0.5", "1.0"]),
)
def test_as_many_records_stay_as_a_share_allows(records, before, share):
    """Against every number that everybody might be allowed; each person's earliest stay."""
    share = Fraction(share)
    if before and max(before.count(p) for p in before) > share * len(before):
        before = []
    labels, people = ([r[i] for r in records] for i in (0, 1))
    found = within_share(
        share, np.array(labels, np.int64), np.array(people, np.int64), np.array(before, np.int64)
    )
    for cluster in set(labels):
        there = [i for i, label in enumerate(labels) if label == cluster]
        known = before if cluster == 0 else []
        best = []
        for most in range(len(there) + len(known) + 1):
            stays, owned = [], {p: known.count(p) for p in range(5)}
            for i in there:
                if owned[people[i]] < most:
                    owned[people[i]] += 1
                    stays.append(i)
            if all(owned[p] <= share * (len(known) + len(stays)) for p in owned):
                best = max(best, stays, key=len)
        assert [i for i in there if found[i]] == best


def keeps(promise, records) -> bool:
    """Whether a class of these records, each a person and a value, keeps the promise."""
    pairs = set(records)
    counts = naive.frequencies(pairs)
    if "share" in promise:
        owners = [person for person, _ in records]
        return 5 * max(owners.count(person) for person in set(owners)) <= 2 * len(owners)
    people = len({person for person, _ in pairs})
    if promise.get("kind") == "entropy":
        return naive.is_entropy_diverse(counts.values(), 2)
    if promise.get("kind") == "recursive":
        return naive.is_recursive_diverse(counts.values(), 2, 2)
    if "alpha" in promise:
        return people >= 3 and max(counts.values()) <= 0.6 * people
    return people >= 3 and len(counts) >= 2


def test_the_reference_orders_values_for_an_audit_as_for_the_stream(folder, shoal):
    """The stream never shows 'd'; an audit without the original orders as the reference does."""
    frame = stream_of(120).drop("note")
    ill = pl.Series("ill", [f"{'abc'[i % 3]}" for i in range(120)])
    frame.with_columns(ill).write_csv("stream.csv")
    frame.with_columns(pl.Series("ill", ["abcd"[i % 4] for i in range(120)])).write_csv("ref.csv")
    close = {"model": "t-closeness", "attributes": ["ill"], "t": 0.5}
    content = policy_of(more=[close], delta=40).model.model_dump(exclude_unset=True)
    del content["attributes"]["note"]
    content["attributes"]["ill"] = {"role": "sensitive", "type": "ordinal", "order": "alphabetical"}
    Path("p.yaml").write_text(yaml.safe_dump(content | {"reference": "ref.csv"}))
    shoal("stream", "stream.csv", "-p", "p.yaml", "-o", "out.csv", "--checkpoint", "ck", status=0)
    shoal("audit", "out.csv", "-p", "p.yaml", status=0)
    assert shoal("verify", "out.csv", "-p", "p.yaml").status == 0


def test_a_cluster_of_castle_is_asked_about_those_whom_a_cap_keeps_in_it():
    """Once the places of records that left are taken again, their order is not that of arrival."""
    shown = (
        "2 50 e 2,1 0 a 0,0 0 f 2,2 100 d 1,2 0 c 0,0 50 c 0,1 100 c 0,0 100 a 0,2 100 e 0,2 0 e"
        " 1,2 0 a 1,1 0 a 1,2 0 a 0"
    )
    policy = content_of(
        {
            "who": "subject",
            "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
            "town": {"role": "quasi", "hierarchy": TREE},
            "ill": "sensitive",
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
    for record in shown.split(","):  # one by one, so that every release is measured by itself
        stream.push(pl.DataFrame([record.split()], schema=names, orient="row"))
    stream.flush()
