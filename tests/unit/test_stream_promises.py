"""Which promises a stream can keep, and that it refuses the others before its first record."""

from __future__ import annotations

from collections import defaultdict
from itertools import zip_longest

import polars as pl
import pytest

import naive
import shoal
from shoal.errors import InputError
from stream_cases import policy_of, run, stream_of

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


def named(promise):
    return promise["model"] + promise.get("kind", "")


@pytest.mark.parametrize("promise", OF_THE_TABLE, ids=named)
@pytest.mark.parametrize("subject", [True, False])
def test_what_compares_with_a_whole_table_or_population_is_refused(promise, subject, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stream_of(20).write_csv("people.csv")
    frame = stream_of(60)
    with pytest.raises(InputError, match=f"promise '{promise['model']}': .*leave it out"):
        run(policy_of(more=[promise], delta=20, subject=subject), frame)
    refused = "share people" if promise["model"] == "t-closeness" else "leave it out"
    if subject or promise["model"] != "t-closeness":
        with pytest.raises(InputError, match=refused):
            shoal.stream(policy_of(more=[promise], delta=20, subject=subject), reference=frame).push(frame)


@pytest.mark.parametrize("promise", SHARES, ids=named)
def test_shares_are_refused_where_clusters_with_equal_cells_could_share_people(promise):
    with pytest.raises(InputError, match="share people"):
        run(policy_of(more=[promise], delta=20), stream_of(60))


@pytest.mark.parametrize("promise", [*SHARES, *KEPT], ids=named)
def test_every_class_of_the_published_stream_keeps_them_at_every_moment(promise):
    """Few different cells, so that clusters look alike; where shares are promised, every record is its own person."""
    for seed in range(4):
        frame = stream_of(200, seed, people=9).with_columns(pl.lit("40").alias("age"), pl.lit("1.5").alias("pay"))
        found = run(policy_of(more=[promise], delta=20, seed=seed, subject=promise in KEPT, neighbour="knn"), frame)
        members = defaultdict(set)
        told = sorted((t for t in found.trace if t["row"] is not None), key=lambda t: t["row"])
        for (at, row), following in zip_longest(zip(told, found.rows, strict=True), told[1:]):
            person = frame["who"][at["seq"]] if promise in KEPT else at["seq"]
            if at["kind"] != "suppress":
                members[row["age"], row["pay"], row["town"]].add((person, row["ill"]))
            if following is None or following["release"] > at["release"]:
                assert all(keeps(promise, pairs) for pairs in members.values())


def keeps(promise, pairs) -> bool:
    """Whether a class of these pairs of person and value keeps the promise."""
    counts = naive.frequencies(pairs)
    people = len({person for person, _ in pairs})
    if promise.get("kind") == "entropy":
        return naive.is_entropy_diverse(counts.values(), 2)
    if promise.get("kind") == "recursive":
        return naive.is_recursive_diverse(counts.values(), 2, 2)
    if "alpha" in promise:
        return people >= 3 and max(counts.values()) <= 0.6 * people
    return people >= 3 and len(counts) >= 2
