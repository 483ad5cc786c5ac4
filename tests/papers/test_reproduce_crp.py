"""`shoal reproduce crp`: what is run, and how verdicts come about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shoal.reproduce import reproduce_paper
from shoal.reproduce.crp import (
    CLAIMS,
    CRP,
    K_PPRP,
    METHODS,
    PAPER,
    STATIC_2,
    grid,
    grows,
    is_fewer,
    lie_close,
    only_leaks,
    stays_flat,
)
from shoal.reproduce.paper import Verdict, View
from shoal.reproduce.republication_bench import _operations
from shoal.reproduce.rows import ROWS, RowFile
from shoal.reproduce.verdict_report import judge

COMMITTED = Path(__file__).parents[2] / "papers" / "crp" / "results.json"


@pytest.fixture(scope="module")
def quick(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("quick")
    reproduce_paper("crp", out, quick=True, progress=lambda stage: None)
    return out / "crp"


def test_a_quick_run_measures_every_method_after_every_increment(quick):
    rows = list(RowFile(quick / ROWS).load().values())
    assert {(row["method"], row["increments"]) for row in rows} == {
        (m, i) for m, _ in METHODS.values() for i in (1, 2)
    }
    assert {figure.name + ".svg" for figure in PAPER.figures} <= {
        path.name for path in quick.iterdir()
    }
    assert all(claim.about in (quick / "verdicts.md").read_text() for claim in CLAIMS)


def test_only_static_2_leaks_and_only_safe_methods_leave_nobody_alone(quick):
    for row in RowFile(quick / ROWS).load().values():
        assert (row["leaks"] > 0) == (row["method"] == "static-2")
        assert (row["people_in_small_cells"] > 0) == (row["method"] in ("static-2", "k-pprp"))
        assert row["records"] == 150 * (row["increments"] + 1)


def rows(column: str, *values: float) -> list[dict]:
    return [{"increments": i + 1, column: value} for i, value in enumerate(values)]


def test_judges_tell_kept_claims_from_broken_ones():
    leaking = {STATIC_2: rows("leaks", 3, 5), CRP: rows("leaks", 0, 0)}
    assert only_leaks(STATIC_2)(View(leaking)).verdict == Verdict.HOLDS
    assert only_leaks(CRP)(View(leaking)).verdict == Verdict.FAILS
    seconds = {CRP: rows("seconds", 1.0, 1.9), K_PPRP: rows("seconds", 1.0, 2.1)}
    assert stays_flat(CRP)(View(seconds)).verdict == Verdict.HOLDS
    assert stays_flat(K_PPRP)(View(seconds)).verdict == Verdict.FAILS
    assert grows(K_PPRP)(View(seconds)).verdict == Verdict.HOLDS
    close = {CRP: rows("operations", 100, 100), K_PPRP: rows("operations", 120, 130)}
    assert lie_close(CRP, K_PPRP)(View(close)).verdict == Verdict.IN_PART
    assert is_fewer(CRP, K_PPRP, "operations")(View(close)).verdict == Verdict.HOLDS
    assert is_fewer(K_PPRP, CRP, "operations")(View(close)).verdict == Verdict.FAILS


def test_an_operation_is_a_cell_coarsened_anew():
    before = {1: ("[1, 2]", "3", "[4, 5]")}
    after = {1: ("[1, 2]", "[3, 4]", "[4, 6]"), 2: ("7", "[1, 2]", "8")}
    assert _operations(before, after) == 3


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
