"""Attacks on streams: a private trace tells whose row is whose."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import polars as pl
import pytest

import shoal as package
from shoal.errors import InputError
from shoal.samples import purchases

AUDIT = ("audit", "out.csv", "-p", "policy.yaml", "--original", "p.csv", "--trace", "t.jsonl")


@pytest.fixture
def shop(tmp_path, monkeypatch, shoal):
    """A published stream with its source and its trace."""
    monkeypatch.chdir(tmp_path)
    purchases.generate(600, 1).write_csv("p.csv")
    Path("policy.yaml").write_text(purchases.POLICY.replace("delta: 1000", "delta: 200"))
    done = shoal("stream", "p.csv", "-p", "policy.yaml", "-o", "out.csv", "--trace", "t.jsonl")
    assert done.status == 0
    return tmp_path


def section(name="c.json"):
    return json.loads(Path(name).read_text())["attacks"]


def test_a_stream_is_attacked_by_its_trace(shop, shoal):
    found = shoal(*AUDIT, "--attack", "all", "-o", "c.json", "-q")
    assert found.status == 0
    assert set(section()["skipped"]) == {"intersection", "population"}
    assert section()["control"]["kind"] == "none"
    assert "does not publish one table" in section()["control"]["reason"]


def test_shares_of_people_count_people_not_purchases(shop, shoal):
    shoal(*AUDIT, "--attack", "homogeneity,singling-out", "-o", "c.json", "-q")
    source, trace = pl.read_csv("p.csv"), pl.read_ndjson("t.jsonl").sort("row")
    out = pl.read_csv("out.csv")
    cells = out.select("age", "income", "city", "channel").rows()
    who = source["customer"].to_list()
    members, values = defaultdict(set), out["category"].to_list()
    for row, seq in enumerate(trace["seq"]):
        members[cells[row], values[row]].add(who[seq])
    alone = set().union(*(people for people in members.values() if len(people) == 1))
    everybody = len(set(who))
    measured = section()["singling-out"]["alone"]["category"]
    assert measured["share"] == pytest.approx(len(alone) / everybody, abs=5e-5)
    assert section()["people"] == everybody < len(who)


def test_the_same_attacks_from_python(shop, shoal):
    shoal(*AUDIT, "--attack", "linkability,inference", "-o", "c.json", "-q")
    names = ["linkability", "inference"]
    tables = pl.read_csv("out.csv", infer_schema=False), pl.read_csv("p.csv", infer_schema=False)
    found = package.attack_stream(tables[0], "policy.yaml", tables[1], "t.jsonl", names)["attacks"]
    assert {**found, "seconds": 0} == {**section(), "seconds": 0}


def test_a_stream_beside_a_table_of_the_same_records_is_intersected(shop, shoal):
    """Every row of the source in order, in classes by the parity of age: some stand among few."""
    source = pl.read_csv("p.csv")
    cells = pl.when(pl.col("age") % 2 == 0).then(pl.lit("[16, 94]")).otherwise(pl.lit("[16, 95]"))
    source.drop("customer").with_columns(
        age=cells, income=pl.lit("*"), city=pl.lit("*"), channel=pl.lit("*")
    ).write_csv("other.csv")
    found = shoal(*AUDIT, "--attack", "intersection", "--earlier", "other.csv", "-o", "c.json")
    assert found.status == 0, found.err
    assert section()["intersection"]["aligned_by"] == "order"
    assert section()["intersection"]["linked"]["below_k"]["share"] > 0


def test_a_stream_with_thresholds_is_refused_before_it_starts(shop, shoal):
    Path("strict.yaml").write_text(Path("policy.yaml").read_text() + "accept: {alone: 0.1}\n")
    found = shoal("stream", "p.csv", "-p", "strict.yaml", "-o", "new.csv")
    assert found.status == 2
    assert "leave it out for 'stream'" in found.err


def test_a_trace_of_another_stream_is_refused(shop):
    table = pl.read_csv("p.csv", infer_schema=False)
    with pytest.raises(InputError, match="trace"):
        package.attack_stream(table[:10], "policy.yaml", table, "t.jsonl")
