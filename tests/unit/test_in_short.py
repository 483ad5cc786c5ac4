"""The five lines: what a board member reads before any measure is named."""

from __future__ import annotations

import re

import polars as pl
import pytest

import shoal
from shoal.data.certificate import Certificate
from shoal.reports.in_short import in_short

MEASURES = re.compile(r"\b(gcp|discernibility|penalty|prosecutor|quasi|generalized|equivalence)\b")


def policy(**more) -> dict:
    return {
        "version": 1,
        "attributes": {
            "name": {"role": "identifier"},
            "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
            "job": {"role": "quasi"},
            "ill": {"role": "sensitive"},
            "debt": {"role": "sensitive"},
            "note": {"role": "plain"},
        },
        "promises": [
            {"model": "k-anonymity", "k": 2},
            {"model": "l-diversity", "attribute": "ill", "l": 2, "kind": "distinct"},
        ],
        "method": {"name": "mondrian"},
        **more,
    }


@pytest.fixture
def certificate() -> Certificate:
    """Ages 20, 30 | 40, 60: spans of 10 and 20 in 100: 15 % of age is lost, nothing of job."""
    frame = pl.DataFrame(
        {
            "name": list("abcd"),
            "age": [20, 30, 40, 60],
            "job": ["x", "x", "y", "y"],
            "ill": ["flu", "hiv", "flu", "hiv"],
            "debt": list("wxyz"),
            "note": list("pqrs"),
        }
    )
    return shoal.publish(frame, policy()).certificate


def test_the_lines_of_a_small_release(certificate):
    assert {line.about: line.says for line in in_short(certificate)} == {
        "Published": ("4 records, each taken to be a person, in 5 columns. Removed: name."),
        "Protected": (
            "Whoever knows age and job of a person finds at least 2 records that look alike, and so"
            " picks the right one at most 50.0 % of the time. Among them, ill has at least 2"
            " values."
        ),
        "Lost": (
            "7.5 % of the detail of what an attacker could know, most of it in age (15.0 %). As in"
            " the original: ill, debt and note."
        ),
        "Not promised": (
            "No promise was asked for debt, so it may be learned of a person. Who knows more, such"
            " as note, or has another release of the same people may recognise somebody. What is"
            " true of a whole group is true of everybody in it."
        ),
        "Open": (
            "Whether every record is a person of its own: the policy names no column for that."
            " age: 100 % of published ends are one person's true value; 'round: 5' hides them."
            " Whether an attacker could know more than the policy says is its author's judgement."
        ),
    }


def test_no_measure_is_named(certificate):
    for line in in_short(certificate):
        assert not MEASURES.search(line.says)


def test_what_does_not_hold_and_what_was_not_checked_is_said(certificate):
    broken = [dict(promise) for promise in certificate["promises"]]
    broken[0] |= {"holds": False, "asked": 5}
    lines = dict(in_short(certificate.extended(promises=broken, faults={"not_removed": 1})))
    assert lines["Protected"].startswith("Not kept: k-anonymity asked for 5, found was 2.")
    assert "The policy removes 1 column that the release still holds." in lines["Open"]
    assert "The cells were not compared with an original." in lines["Open"]


def test_sets_that_hold_alone_are_named_together(certificate):
    together = {
        "attributes": ["age", "job"],
        "asked": 2,
        "min": 1,
        "alone": 1,
        "below": 1,
        "people": 4,
    }
    lines = dict(in_short(certificate.extended(together=together)))
    expected = "Whoever knows age and job together may be left with fewer than 2."
    assert lines["Not promised"].startswith(expected)


def test_a_certificate_of_the_first_schema_has_five_lines_too(certificate):
    old = Certificate({**certificate, "schema": "shoal.certificate/1"})
    lines = dict(in_short(old))
    assert lines["Published"] == "4 records of 4 people."
    assert lines["Protected"].startswith("Whoever knows all that an attacker could know of a")
