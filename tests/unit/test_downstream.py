"""Downstream utility: models trained on a release and asked about original records, counts over
ranges.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.cli.main import status_of
from shoal.data.schema import Attribute, Kind, Role
from shoal.utility.downstream import Spans, prediction_errors, query_error

TREE = {"tree": {"north": ["a", "b"], "south": ["c", "d"]}}
POLICY = {
    "version": 1,
    "attributes": {
        "at": {"role": "quasi", "hierarchy": TREE},
        "age": {"role": "quasi", "type": "number", "domain": [0, 99]},
        "buys": {"role": "plain"},
    },
    "promises": [{"model": "k-anonymity", "k": 5}],
    "label": "buys",
}


@pytest.fixture(scope="module")
def frame():
    """Whoever is older than 50, or lives in the south, buys; the age alone tells most."""
    rng = np.random.default_rng(0)
    age, at = rng.integers(0, 100, 900), rng.choice([*"abcd"], 900)
    buys = np.where((age > 50) ^ np.isin(at, ["c"]), "yes", "no")
    return pl.DataFrame({"at": at, "age": age, "buys": buys})


def test_a_release_that_tells_everything_is_learned_from_like_the_original(frame):
    told = shoal.audit(frame, POLICY, frame, downstream=True)["downstream"]
    assert told["label"] == "buys"
    for errors in told["models"].values():
        assert errors["released"] == errors["original"]
    assert told["models"]["tree"]["original"] < 0.05 < told["majority"]
    assert told["query_error"] == {"mean": 0.0, "median": 0.0}


def test_a_release_that_tells_nothing_leaves_the_most_frequent_answer(frame):
    released = frame.with_columns(at=pl.lit("*"), age=pl.lit("[0, 99]"))
    told = shoal.audit(released, POLICY, frame, downstream=True)["downstream"]
    for errors in told["models"].values():
        assert errors["released"] == pytest.approx(told["majority"], abs=0.06)


def test_what_is_kept_can_be_learned_and_what_is_gone_can_not(frame):
    by_age = frame.with_columns(at=pl.lit("*"))
    coarse = frame.with_columns(
        at=pl.lit("*"),
        age=pl.when(pl.col("age") > 50).then(pl.lit("[51, 99]")).otherwise(pl.lit("[0, 50]")),
    )
    for released in (by_age, coarse):
        errors = shoal.audit(released, POLICY, frame, downstream=True)["downstream"]["models"][
            "tree"
        ]
        assert 0.15 < errors["released"] < 0.35


def test_suppressed_records_are_not_learned_from(frame):
    wrong = frame.with_columns(
        buys=pl.when(pl.col("buys") == "yes").then(pl.lit("no")).otherwise(pl.lit("yes"))
    )
    columns = [
        Spans(
            Attribute("age", Role.QUASI, Kind.NUMBER, (0, 99)),
            *(frame["age"].cast(float).to_numpy(),) * 3,
        )
    ]
    label = (wrong["buys"] == "yes").cast(int).to_numpy()
    nobody = prediction_errors(columns, label, np.zeros(900, dtype=bool), 0)
    assert all(errors["released"] == 1.0 for errors in nobody["models"].values())


def test_counts_take_values_as_spread_evenly_over_their_cell():
    """One record in [0, 10], asked for ranges between 2 and 6: wrong by what lies outside of
    them.
    """
    attribute = Attribute("x", Role.QUASI, Kind.NUMBER, (0.0, 10.0))
    values = np.array([2.0, 6.0])
    errors = query_error([Spans(attribute, np.zeros(2), np.full(2, 10.0), values)], 0)
    # range [2, 6] holds both, estimated 0.4 of 2; range [2, 2] or [6, 6] holds one, estimated none
    assert errors["median"] in (0.6, 1.0)
    assert 0.6 < errors["mean"] < 1.0


def test_missing_values_lie_in_no_range():
    attribute = Attribute("x", Role.QUASI, Kind.NUMBER, (0.0, 1.0))
    column = np.array([np.nan, 1.0, 1.0])
    assert query_error([Spans(attribute, column, column, column)], 0) == {
        "mean": 0.0,
        "median": 0.0,
    }


def test_it_needs_the_original_in_order(frame):
    with pytest.raises(shoal.InputError, match="original"):
        shoal.audit(frame, POLICY, downstream=True)
    with pytest.raises(shoal.InputError, match="unshuffled"):
        shoal.audit(frame, POLICY | {"render": {"order": "shuffled"}}, frame, downstream=True)


def test_without_scikit_learn_the_extra_is_named(frame, monkeypatch):
    for name in [*sys.modules]:
        if name.split(".")[0] == "sklearn":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(shoal.MissingExtraError, match=r"pip install '\.\[ml\]'"):
        shoal.audit(frame, POLICY, frame, downstream=True)


def test_the_command_says_it_on_the_screen_in_the_certificate_and_in_the_report(
    frame, tmp_path, capsys
):
    frame.write_csv(tmp_path / "in.csv")
    (tmp_path / "policy.json").write_text(json.dumps(POLICY))
    names = {
        name: str(tmp_path / name)
        for name in ("in.csv", "policy.json", "out.csv", "r.html", "c.json")
    }
    assert (
        status_of(
            ["publish", names["in.csv"], "-p", names["policy.json"], "-o", names["out.csv"], "-q"]
        )
        == 0
    )
    audit = [
        "audit",
        names["out.csv"],
        "-p",
        names["policy.json"],
        "--downstream",
        "--report",
        names["r.html"],
    ]
    assert status_of(audit) == 2
    assert status_of([*audit, "--original", names["in.csv"], "-o", names["c.json"]]) == 0
    assert "trained on the release" in capsys.readouterr().err
    assert "trained on the release" in (tmp_path / "r.html").read_text()
    assert json.loads((tmp_path / "c.json").read_text())["downstream"]["label"] == "buys"
