"""`shoal reproduce fads`: what is run, and how verdicts come about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shoal.reproduce import reproduce_paper
from shoal.reproduce.fads import (
    CASTLE,
    CLAIMS,
    FADS,
    PAPER,
    curve,
    equal_then_lower,
    grid,
    hardly_moves,
    is_lower_everywhere,
    moves,
)
from shoal.reproduce.paper import View
from shoal.reproduce.rows import ROWS, RowFile
from shoal.reproduce.verdict_report import judge

COMMITTED = Path(__file__).parents[2] / "papers" / "fads" / "results.json"


@pytest.fixture(scope="module")
def quick(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("quick")
    reproduce_paper("fads", out, quick=True, progress=lambda stage: None)
    return out / "fads"


def test_a_quick_run_measures_every_point_and_judges_every_claim(quick):
    rows = list(RowFile(quick / ROWS).load().values())
    assert len(rows) == len(grid(quick=True))
    assert {figure.name + ".svg" for figure in PAPER.figures} <= {
        path.name for path in quick.iterdir()
    }
    assert all(claim.about in (quick / "verdicts.md").read_text() for claim in CLAIMS)


def test_every_record_leaves_once_and_only_faanst_is_late(quick):
    for row in RowFile(quick / ROWS).load().values():
        assert (
            sum(row[kind] for kind in ("new", "reuse", "suppress", "hold", "drop"))
            == row["records"]
        )
        assert row["longest"] <= row["delta"] or row["method"] == "faanst"
        assert 0 <= row["loss"] <= 1


def view(experiment: str, x: str, fads: dict, castle: dict) -> View:
    rows = {FADS: fads, CASTLE: castle}
    return View(
        {
            curve(n, experiment, 1): [{x: at, "loss": y, "delta": 10} for at, y in rows[n].items()]
            for n in rows
        }
        | {
            f"{FADS} by tau": [
                {"tau": 0.2, "loss": 0.5},
                {"tau": 0.4, "loss": 0.3},
                {"tau": 0.6, "loss": 0.305},
            ]
        }
    )


def test_judges_tell_kept_claims_from_broken_ones():
    sizes = view("size", "records", {5: 0.4, 10: 0.3, 20: 0.2}, {5: 0.44, 10: 0.36, 20: 0.25})
    assert [holds for holds, _ in equal_then_lower(sizes)] == [True, False, True]
    assert [holds for holds, _ in moves("size", "records", 1, -1)(sizes)] == [True, True]
    ks = view("k", "k", {10: 0.2, 50: 0.3}, {10: 0.1, 50: 0.4})
    assert [holds for holds, _ in is_lower_everywhere("k", "k", 1, CASTLE)(ks)] == [False, True]
    assert [holds for holds, _ in hardly_moves("tau", 0.01, 0.4)(ks)] == [True]
    assert [holds for holds, _ in hardly_moves("tau", 0.01, 0.2)(ks)] == [False]


def test_the_committed_results_are_of_a_full_run_and_their_verdicts_are_those_of_today():
    content = json.loads(COMMITTED.read_text())
    assert not content["is_quick"]
    assert len(content["rows"]) == len(grid(quick=False))
    verdicts = [
        (j.reading.name, claim.about, str(finding.verdict))
        for j in judge(PAPER, content["rows"])
        for claim, finding in zip(CLAIMS, j.findings, strict=True)
    ]
    assert verdicts == [(v["reading"], v["about"], v["verdict"]) for v in content["verdicts"]]
