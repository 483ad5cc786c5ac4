"""Faults in words: a sentence for each kind, and never the key that programs read."""

import functools
import json
import re
from pathlib import Path

import polars as pl
import pytest

import shoal
from sample_policies import content_of
from shoal.auditor.verdict import require_kept
from shoal.cli.main import status_of
from shoal.data.certificate import Certificate
from shoal.data.warnings import FAULTS, fault_sentence, fault_sentences
from shoal.errors import PromiseError
from shoal.reports.text import summary, worst_columns

KEYS = re.compile(r"\b(?:[a-z]+_[a-z_]+|uncovered|overheld|unshuffled|needless)\b")


@functools.cache
def published() -> Certificate:
    frame = pl.DataFrame({"age": [20, 20, 30, 40], "job": ["x", "x", "y", "y"]})
    age = {"role": "quasi", "type": "number", "domain": [0, 100]}
    return shoal.publish(frame, content_of({"age": age, "job": "quasi"}, 2)).certificate


def certificate_with(**faults: int) -> Certificate:
    return published().extended(faults=faults)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("name", [*FAULTS, "unheard_of"])
def test_no_key_is_shown_to_people(name, count):
    certificate = certificate_with(**{name: count})
    lines = [line for line in summary(certificate).splitlines() if "DOES NOT HOLD" in line]
    assert lines == [f"{fault_sentence(name, count)}: DOES NOT HOLD"]
    with pytest.raises(PromiseError) as refused:
        require_kept(certificate, "nothing was written")
    for text in (*lines, str(refused.value)):
        assert not KEYS.search(text.replace("delta", ""))
    assert str(count) in lines[0] or count == 1


def test_every_fault_that_an_audit_or_a_trace_counts_has_words(folder):
    for command in (
        "sample purchases -n 500 -o in.csv -q",
        "stream in.csv -p in.policy.yaml -o out.csv --trace t.jsonl -q",
        "audit out.csv -p in.policy.yaml --original in.csv --trace t.jsonl -o a.json -q",
    ):
        assert status_of(command.split()) == 0
    counted = set(json.loads(Path("a.json").read_text())["faults"])
    assert "weak_first" in counted
    # where there are such columns, or no trace; and of linked tables
    beside = {"not_removed", "derived", "unrounded", "unmatched", "not_starred"}
    linked = {"orphans", "extra_rows", "odd_days", "matched", "invented"}
    linked |= {"repeated_keys", "original_keys", "ordered_keys", "kept_keys", "kept_order"}
    assert counted | beside | linked == set(FAULTS)


def test_a_column_that_is_still_there_is_named():
    faulty = certificate_with(not_removed=1).extended(
        columns=[
            {"name": "age", "role": "quasi", "technique": "interval", "loss": 0.1},
            {"name": "name", "role": "identifier", "technique": "as-is", "loss": None},
        ]
    )
    expected = ["the policy removes 'name', the release still holds it"]
    assert list(fault_sentences(faulty)) == expected
    assert list(fault_sentences(certificate_with(not_removed=0))) == []


def test_the_summary_names_the_columns_above_the_mean_worst_first():
    """Means of 0, 5, 10, 60 and 25 %: 20 % on average, and two columns above it."""
    losses = {"a": 0.0, "b": 0.05, "c": 0.1, "d": 0.6, "e": 0.25}
    columns = [{"name": name, "loss": loss} for name, loss in losses.items()]
    columns.append({"name": "plain", "loss": None})
    certificate = certificate_with().extended(
        columns=columns, utility={**certificate_with()["utility"], "gcp": 0.2}
    )
    assert worst_columns(certificate) == [("d", 0.6), ("e", 0.25)]
    assert "information loss (gcp) 20.00 %, most in d 60.0 %, e 25.0 %" in summary(certificate)
    alike = certificate.extended(columns=[{"name": n, "loss": 0.2} for n in "abc"])
    assert "information loss (gcp) 20.00 %\n" in summary(alike) + "\n"
