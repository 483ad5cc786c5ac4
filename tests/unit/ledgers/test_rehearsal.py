"""What would be published by other methods, and by other settings of `sticky`."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import shoal
from republish_cases import POLICY, append, wearers
from shoal.data.certificate import Certificate
from shoal.ledgers import what_if
from sticky_cases import policy


def months() -> list[pl.DataFrame]:
    rng = np.random.default_rng(3)
    return [
        wearers(40, 1)
        .with_columns(age=pl.Series(rng.integers(15, 80, 40)))
        .filter(pl.Series(rng.random(40) < 0.85))
        for _ in range(4)
    ]


@pytest.fixture(scope="module")
def rehearsed() -> dict[tuple, shoal.Rehearsal]:
    """By mode, size and patience; what the policy says of values over time does not matter."""
    found = shoal.rehearse(months(), policy(k=3, size=6, patience=1))
    return {(r.mode, r.size, r.patience): r for r in found}


@pytest.mark.parametrize("mode", ["lockstep", "together", "carried"])
def test_a_ledger_publishes_what_was_rehearsed(tmp_path, rehearsed, mode):
    asked = policy(mode, k=3, size=6, patience=1)
    found = rehearsed[mode, 6, 1 if mode == "lockstep" else None]
    published = 0
    for frame in months():
        done = append(tmp_path / "L", frame, asked)
        if done.certificate is not None:
            own = done.certificate["panel"]["carried"]
            published += done.certificate["records"]["out"] - own
            loss = done.certificate["utility"]["gcp"]
    assert found.arrived == sum(frame.height for frame in months())
    assert (found.published, found.gcp) == (published, pytest.approx(loss))
    assert found.share == published / found.arrived


@pytest.mark.parametrize("is_first", [True, False])
def test_increments_may_differ_in_columns_that_nobody_needs(is_first):
    asked = POLICY | {"other": "drop"}
    first, second, *_ = months()
    wider = (first if is_first else second).with_columns(more=pl.lit("x"))
    assert shoal.rehearse([wider, second] if is_first else [first, wider], asked)


def test_the_command_shows_every_setting_and_begins_nothing(folder, shoal):
    policy("together", k=3).save("p.yaml")
    for number, frame in enumerate(months()):
        frame.write_csv(f"{number}.csv")
    order = ["republish", "3.csv", "-p", "p.yaml", "--ledger", "L", "--what-if", "-q"]
    for number in (1, 2):
        order += ["--earlier", f"{number}.csv"]
    shown = shoal(*order).out.splitlines()
    assert shown[0].split() == ["over", "time", "mode", "size", "patience", *shown[0].split()[-3:]]
    assert [line.split()[:3] for line in shown if line.startswith("fresh")] == [
        ["fresh", "together", "3"],
        ["fresh", "together", "5"],
        ["fresh", "together", "6"],
    ]
    rows = json.loads(shoal(*order, "--json").out)
    assert len(rows) == len(shown) - 1
    assert {row["mode"]: row["over_time"] for row in rows} == {
        "lockstep": "any",
        "together": "fresh",
        "carried": "steady",
    }
    assert not list(folder.glob("L*"))


def test_earlier_increments_are_for_asking_what_if(folder, shoal):
    policy(k=3).save("p.yaml")
    wearers(30, 1).write_csv("a.csv")
    stated = shoal("republish", "a.csv", "-p", "p.yaml", "--ledger", "L", "--earlier", "a.csv")
    assert stated.status == 2
    assert "--earlier: belongs to --what-if" in stated.err
    assert not list(folder.glob("L*"))


def test_without_a_sensitive_column_groups_are_rehearsed_in_step():
    asked = policy(k=3).model.model_dump(exclude_unset=True)
    asked["attributes"]["activity"] = {"role": "drop"}
    found = shoal.rehearse(months(), shoal.Policy.from_dict(asked))
    assert {one.mode for one in found} == {"lockstep"}
    assert any(one.published for one in found)


# What if: whatever would not be published says why

STICKY = {**POLICY, "method": {"name": "sticky"}}


@pytest.fixture
def ledger(folder):
    shoal.republish(wearers(60, 1), STICKY, "L")
    return "L"


@pytest.mark.parametrize("rows", [0, 1])
def test_every_method_that_publishes_nothing_says_why(ledger, rows):
    found = what_if.what_if(wearers(60, 2).head(rows), STICKY, ledger)
    assert {one.method for one in found if not one.told and one.outcome != "published"} == set()


def test_a_release_that_would_break_a_promise_names_it(ledger, monkeypatch):
    audited = what_if.write_and_audit

    def broken(*given):
        done = audited(*given)
        promises = [{**p, "holds": False} for p in done.certificate["promises"]]
        return replace(done, certificate=Certificate({**done.certificate, "promises": promises}))

    monkeypatch.setattr(what_if, "write_and_audit", broken)
    found = what_if.what_if(wearers(60, 2), STICKY, ledger)
    (sticky,) = [one for one in found if one.method == "sticky"]
    assert sticky.outcome == "withheld"
    assert "promise 'k-anonymity' does not hold on the release" in sticky.told[0]
