"""`shoal reproduce joint`: what is run, what the attack counts, and how verdicts come about."""

import numpy as np
import pytest

from shoal_papers.reproduce.joint import CLAIMS, JOINT, MARGINAL, PAPER, READINGS, curve, grid
from shoal_papers.reproduce.joint_bench import attacked, policy_of
from shoal_papers.reproduce.paper import Verdict, View
from shoal_papers.reproduce.rows import ROWS, RowFile


@pytest.mark.long
def test_a_quick_run_writes_rows_figures_and_verdicts(quick):
    rows = list(RowFile(quick / ROWS).load().values())
    assert [{key: row[key] for key in ("asked", "t", "k", "seed")} for row in rows] == grid(True)
    assert {figure.name + ".svg" for figure in PAPER.figures} <= {p.name for p in quick.iterdir()}
    assert all(claim.about in (quick / "verdicts.md").read_text() for claim in CLAIMS)
    for row in rows:
        assert row["mean_size"] >= row["k"]
        assert 0 <= row["sure"] <= 1
        assert row["gain_above"] == pytest.approx(row["gain"] - row["gain_by_chance"])
        if row["asked"] == JOINT:
            assert row["joint"] <= row["t"]


def test_the_attack_counts_as_by_hand():
    # two classes of four; quarters and values of all eight
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    quarter = np.array([0, 0, 1, 1, 0, 0, 1, 1])
    above = np.array([True, True, True, False, False, False, True, False])
    sure, gain = attacked(labels, quarter, above)
    assert sure == 0.5  # quarter 0 of both classes agrees
    # there 1 and 0 instead of 1/2; quarter 1 is as the table
    assert gain == (4 * 0.5 + 4 * 0.0) / 8


def test_only_the_joint_promise_says_joint():
    setting = {"k": 5, "t": 0.1}
    asked = {
        kind: policy_of({**setting, "asked": kind}).model.promises[1] for kind in (MARGINAL, JOINT)
    }
    assert asked[JOINT] == asked[MARGINAL] | {"joint": True}


def row(asked, t, k, gain, size, gcp=0.5, joint=0.3):
    chance = {"gain_by_chance": 0.1, "sure": gain, "sure_by_chance": 0.1}
    figures = {"gain": gain, "mean_size": size, "gcp": gcp, "joint": joint}
    return {"asked": asked, "t": t, "k": k, **figures, **chance}


def test_verdicts_follow_the_control_of_each_release():
    view = View(
        {
            curve(MARGINAL, 0.05): [
                row(MARGINAL, 0.05, 5, 0.2, 5.0),
                row(MARGINAL, 0.05, 20, 0.15, 20),
            ],
            curve(JOINT, 0.2): [
                row(JOINT, 0.2, 5, 0.05, 20.5, gcp=0.52),
                row(JOINT, 0.2, 20, 0.12, 20),
            ],
        }
    )
    verdicts = {claim.about: claim.judge(view).verdict for claim in CLAIMS}
    assert verdicts == {
        "marginal, together": Verdict.HOLDS,
        "marginal, gain": Verdict.HOLDS,
        "marginal, sure": Verdict.HOLDS,
        "joint, gain": Verdict.IN_PART,
        "joint, sure": Verdict.IN_PART,
        "cost, loss": Verdict.HOLDS,
        "cost, size": Verdict.HOLDS,
    }
    dear = View(
        {
            curve(MARGINAL, 0.05): [row(MARGINAL, 0.05, 5, 0.2, 20)],
            curve(JOINT, 0.2): [row(JOINT, 0.2, 5, 0.05, 20, gcp=0.6)],
        }
    )
    (cost,) = [claim for claim in CLAIMS if claim.about == "cost, loss"]
    assert cost.judge(dear).verdict is Verdict.FAILS


def test_seeds_are_readings_and_those_that_were_not_run_are_left_out():
    rows = [row(MARGINAL, 0.05, 5, 0.2, 5.0) | {"seed": 0}]
    assert [reading.view(rows) is not None for reading in READINGS] == [True, *[False] * 4]


def test_a_claim_without_a_release_to_judge_it_by_does_not_hold():
    verdicts = {claim.judge(View({})).verdict for claim in CLAIMS}
    assert verdicts == {Verdict.IN_PART}
