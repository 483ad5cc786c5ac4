"""Attacks on streams: a private trace tells whose row is whose."""

import json
from collections import defaultdict
from pathlib import Path

import polars as pl
import pytest
import yaml

import naive_attacks as naive
import shoal as package
from sample_policies import PURCHASES
from shoal.errors import InputError
from shoal.samples import purchases

ATTACK = ("attack", "out.csv", "-p", "policy.yaml", "--original", "p.csv", "--trace", "t.jsonl")


@pytest.fixture
def shop(folder, shoal):
    """A published stream with its source and its trace."""
    purchases.generate(600, 1).write_csv("p.csv")
    Path("policy.yaml").write_text(PURCHASES.replace("delta: 1000", "delta: 200"))
    shoal("stream", "p.csv", "-p", "policy.yaml", "-o", "out.csv", "--trace", "t.jsonl", status=0)
    return folder


def section():
    return json.loads(Path("c.json").read_text())["attacks"]


def test_a_stream_is_attacked_by_its_trace(shop, shoal):
    shoal(*ATTACK, "--attack", "all", "-o", "c.json", "-q", status=0)
    assert set(section()["skipped"]) == {"intersection", "population"}
    assert section()["control"]["kind"] == "none"
    assert "does not publish one table" in section()["control"]["reason"]


def test_shares_of_people_count_people_not_purchases(shop, shoal):
    shoal(*ATTACK, "--attack", "homogeneity,singling-out", "-o", "c.json", "-q")
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


def test_frames_of_a_stream_are_audited_by_the_default_method_as_its_files_are(shop):
    policy = yaml.safe_load(Path("policy.yaml").read_text())
    del policy["method"]
    out, source = (pl.read_csv(name, infer_schema=False) for name in ("out.csv", "p.csv"))
    by_file = package.audit("out.csv", policy, "p.csv", trace="t.jsonl")
    assert by_file.holds
    by_frame = package.audit(out, policy, source, trace="t.jsonl")
    assert by_frame["faults"] == by_file["faults"]


def test_other_people_are_a_streams_control(shop, shoal):
    purchases.generate(200, 2).write_csv("others.csv")
    names = ("--attack", "linkability,membership", "--control", "others.csv")
    assert shoal(*ATTACK, *names, "-o", "c.json", "-q").status == 0
    assert section()["control"]["kind"] == "given"
    assert section()["membership"]["advantage"] is not None
    out, source, others = (
        pl.read_csv(name, infer_schema=False) for name in ("out.csv", "p.csv", "others.csv")
    )
    asked = {"attacks": ["linkability", "membership"], "trace": "t.jsonl", "control": others}
    found = package.attack(out, "policy.yaml", source, **asked)
    assert {**found["attacks"], "seconds": 0} == {**section(), "seconds": 0}


def test_a_stream_beside_a_table_of_the_same_records_is_intersected(shop, shoal):
    """Every row of the source in order, in classes by the parity of age: some stand among few."""
    source = pl.read_csv("p.csv")
    cells = pl.when(pl.col("age") % 2 == 0).then(pl.lit("[16, 94]")).otherwise(pl.lit("[16, 95]"))
    source.drop("customer").with_columns(
        age=cells, income=pl.lit("*"), city=pl.lit("*"), channel=pl.lit("*")
    ).write_csv("other.csv")
    text = Path("policy.yaml").read_text() + "render: {order: input}\n"
    Path("ordered.yaml").write_text(text)
    Path("others.yaml").write_text("releases: [{release: other.csv, policy: ordered.yaml}]")
    shoal(*ATTACK, "--attack", "intersection", "--others", "others.yaml", "-o", "c.json", status=0)
    assert section()["intersection"]["aligned_by"] == "order"
    assert section()["intersection"]["linked"]["below_k"]["share"] > 0


def test_a_stream_with_thresholds_is_refused_before_it_starts(shop, shoal):
    Path("strict.yaml").write_text(Path("policy.yaml").read_text() + "accept: {alone: 0.1}\n")
    found = shoal("stream", "p.csv", "-p", "strict.yaml", "-o", "new.csv", status=2)
    assert "leave it out for 'stream'" in found.err


def test_a_trace_of_another_stream_is_refused(shop):
    table = pl.read_csv("p.csv", infer_schema=False)
    with pytest.raises(InputError, match="trace"):
        package.attack(table[:10], "policy.yaml", table, trace="t.jsonl")


def test_two_streams_of_the_same_records_are_joined_by_their_traces(shop, shoal):
    text = Path("policy.yaml").read_text()
    Path("short.yaml").write_text(text.replace("delta: 200", "delta: 100"))
    again = ("stream", "p.csv", "-p", "short.yaml", "-o", "two.csv")
    assert shoal(*again, "--trace", "two.jsonl").status == 0
    Path("others.yaml").write_text("releases: [{release: two.csv, trace: two.jsonl}]")
    shoal(*ATTACK, "--attack", "intersection", "--others", "others.yaml", "-o", "c.json", status=0)
    who = pl.read_csv("p.csv")["customer"].to_list()
    rows = [by_record("out.csv", "t.jsonl"), by_record("two.csv", "two.jsonl")]
    own = defaultdict(list)
    for seq, (_, value) in rows[0].items():
        own[who[seq]].append(value)
    files = [[(who[seq], *shown) for seq, shown in part.items()] for part in rows]
    joint = [(who[seq], (label, rows[1][seq][0]), value) for seq, (label, value) in rows[0].items()]
    together = section()["intersection"]
    assert together["aligned_by"] == "trace"
    one, other = (together[key]["attributes"]["category"] for key in ("linked", "unlinked"))
    shares = [one["certain"]["share"], one["right"]["share"]]
    assert shares == pytest.approx(naive.linked(joint, 10)[2:], abs=6e-5)
    shares = [other["certain"]["share"], other["right"]["share"]]
    assert shares == pytest.approx(naive.unlinked(files[0], files[1:], own), abs=6e-5)


def by_record(released, trace):
    """What a stream shows of each record of its source: its class and its value."""
    shown = pl.read_csv(released, infer_schema=False)
    cells = shown.select("age", "income", "city", "channel").rows()
    order = pl.read_ndjson(trace).sort("row")["seq"]
    return dict(zip(order, zip(cells, shown["category"], strict=True), strict=True))
