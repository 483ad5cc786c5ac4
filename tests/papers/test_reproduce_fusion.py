"""`shoal reproduce fusion`: what is run, and how verdicts come about."""

from __future__ import annotations

import pytest

from shoal.reproduce.fusion import (
    CLAIMS,
    OWN,
    QIDS,
    STEPWISE,
    curve,
    error_rises,
    fewer_rounds,
    grid,
    same_table,
    takes_less_time,
    time_falls,
)
from shoal.reproduce.fusion_bench import bench
from shoal.reproduce.paper import Verdict, View


def view(own: list[float], base: list[float], column: str = "seconds") -> View:
    def rows(values):
        return [{"k": k, column: value} for k, value in zip((20, 50, 100), values, strict=True)]

    curves = {curve(OWN, qids, 3): rows(own) for qids in QIDS} | {
        curve(STEPWISE, qids, 3): rows(base) for qids in QIDS
    }
    return View(curves | {"BE": [{"k": 20, "error": 14.0}]})


def test_judges_tell_kept_claims_from_broken_ones():
    assert takes_less_time(view([1, 1, 1], [2, 1, 3])).verdict == Verdict.HOLDS
    assert takes_less_time(view([1, 1, 1], [2, 1, 0.5])).verdict == Verdict.IN_PART
    assert takes_less_time(view([3, 3, 3], [2, 1, 0.5])).verdict == Verdict.FAILS
    assert time_falls(view([3, 2, 1], [0, 0, 0])).verdict == Verdict.HOLDS
    assert time_falls(view([1, 2, 3], [0, 0, 0])).verdict == Verdict.FAILS
    assert fewer_rounds(view([2, 2, 2], [5, 3, 2], "rounds")).verdict == Verdict.HOLDS
    assert fewer_rounds(view([6, 6, 6], [5, 3, 2], "rounds")).verdict == Verdict.FAILS
    assert error_rises(view([15, 14, 16], [15, 14, 16], "error")).verdict == Verdict.HOLDS
    assert error_rises(view([17, 14, 16], [15, 14, 16], "error")).verdict == Verdict.FAILS


def test_the_same_table_is_judged_by_groups_and_steps():
    both = view([1, 2, 3], [1, 2, 3], "groups").curves
    steps = {
        name: [row | {"steps": 2, "groups": row.get("groups", 0)} for row in rows]
        for name, rows in both.items()
    }
    assert same_table(View(steps)).verdict == Verdict.HOLDS


def test_no_setting_is_run_twice_and_every_claim_has_a_name_of_its_own():
    settings = [tuple(sorted(setting.items())) for setting in grid(False)]
    assert len(set(settings)) == len(settings)
    assert len({claim.about for claim in CLAIMS}) == len(CLAIMS)


@pytest.mark.parametrize("parties", [2, 3])
def test_one_run_measures_rounds_bytes_and_the_classifier(parties):
    measured = bench(None, True)
    setting = {"method": OWN, "parties": parties, "qids": "QID5", "delay": 0, "k": 20}
    row = measured.measure(setting)
    assert row["groups"] > 1
    assert 0 < row["rounds"] <= row["steps"]
    assert row["batch_bytes"] + row["shares_bytes"] > 0
    assert 0 < row["error"] < 50
    assert measured.measure(setting | {"method": "original"})["error"] < 50
