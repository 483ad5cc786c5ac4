"""`shoal reproduce tcloseness`: what is run, and how verdicts come about."""

import json
from pathlib import Path

import pytest

from shoal_papers.reproduce import reproduce_paper
from shoal_papers.reproduce.closeness_bench import bench
from shoal_papers.reproduce.paper import Figure, Verdict, View
from shoal_papers.reproduce.rows import ROWS, RowFile
from shoal_papers.reproduce.tcloseness import (
    CLAIMS,
    K_FIRST,
    KS,
    METHODS,
    OURS,
    PAPER,
    PAPERS,
    READINGS,
    SPREAD,
    TS,
    at_most,
    curve,
    falls_mostly_before,
    falls_with_t,
    grid,
    keeps_promises,
    rises_with_k,
    takes_less_time,
)
from shoal_papers.reproduce.verdict_report import judge

COMMITTED = Path(__file__).parents[2] / "papers" / "tcloseness" / "results.json"


@pytest.mark.long
def test_a_quick_run_writes_rows_tables_figures_and_verdicts_for_every_setting(quick):
    rows = list(RowFile(quick / ROWS).load().values())
    asked = {(row["method"], row["parameters"], row["k"], row["t"]) for row in rows}
    words = ("method", "parameters", "k", "t")
    assert asked == {tuple(map(setting.get, words)) for setting in grid(quick=True)}
    assert {figure.name + ".svg" for figure in PAPER.figures} <= {
        path.name for path in quick.iterdir()
    }
    assert all(claim.about in (quick / "verdicts.md").read_text() for claim in CLAIMS)


@pytest.mark.long
def test_every_row_is_a_release_that_keeps_its_promises_and_states_both_losses(quick):
    for row in RowFile(quick / ROWS).load().values():
        for suffix in ("", "_smallest", "_middle"):
            assert row[f"least_size{suffix}"] >= row["k"]
            assert row[f"closeness{suffix}"] <= row["t"]
            assert 0 < row[f"sse_percent{suffix}"] <= 100 + 1e-9
            assert row[f"il{suffix}"] > 0
        assert row["sse_percent"] <= row["sse_percent_middle"]
        assert row["mean_size_smallest"] <= row["mean_size"]


@pytest.mark.long
def test_a_run_that_stops_goes_on_with_what_is_missing(quick, tmp_path):
    lines = (quick / ROWS).read_bytes().splitlines(keepends=True)
    (tmp_path / "tcloseness").mkdir()
    (tmp_path / "tcloseness" / ROWS).write_bytes(b"".join(lines[:-2]) + lines[-2][:20])
    said = []
    reproduce_paper("tcloseness", tmp_path, quick=True, progress=said.append)
    assert any(f"{len(lines) - 2} of {len(lines)} runs are finished" in stage for stage in said)
    assert len(RowFile(tmp_path / "tcloseness" / ROWS).load()) == len(lines)


@pytest.mark.long
def test_figures_that_name_their_curves_draw_no_other(quick):
    drawn = (quick / "figure_1.svg").read_text()
    assert all(curve(PAPERS, k) in drawn for k in KS)
    assert OURS not in drawn
    beside = (quick / "methods_size.svg").read_text()
    assert all((label in beside) == (label != SPREAD) for label in METHODS)
    assert Figure("f", "f", "x", "y", "x", "y").points(View({"a": [{"x": 1, "y": 2}]})) == {
        "a": {1: 2}
    }


def test_every_reading_has_every_curve_and_is_in_the_grid():
    asked = grid(quick=False)
    drawn = sum(seeds == "many" for _, _, seeds in METHODS.values())  # on three scales
    assert len(asked) == (len(METHODS) + 2 * drawn) * len(KS) * len(TS)
    for reading in READINGS:
        assert set(reading.curves) == {curve(label, k) for label in METHODS for k in KS}
        assert all(
            any(common.items() <= setting.items() for setting in asked)
            for common in reading.curves.values()
        )


# Judges


def view(heights, label=PAPERS, **others) -> View:
    """heights(k, t) of the column y for a method; those of others by their labels."""
    every = {label: heights, **others}
    return View(
        {
            curve(name, k): [{"t": t, "y": given(k, t)} for t in TS]
            for name, given in every.items()
            for k in KS
        }
    )


FALLS, RISES, BENDS = falls_with_t("y"), rises_with_k("y"), falls_mostly_before("y", 0.15)


@pytest.mark.parametrize(
    ("judged", "heights", "verdict"),
    [
        (FALLS, lambda k, t: k - t, Verdict.HOLDS),
        (FALLS, lambda k, t: k, Verdict.HOLDS),
        (FALLS, lambda k, t: k + t, Verdict.FAILS),
        (FALLS, lambda k, t: -abs(t - 0.15), Verdict.IN_PART),
        (RISES, lambda k, t: k, Verdict.HOLDS),
        (RISES, lambda k, t: -k, Verdict.FAILS),
        (RISES, lambda k, t: k if t < 0.2 else -k, Verdict.IN_PART),
        # more before than after
        (BENDS, lambda k, t: max(0.15 - t, 0), Verdict.HOLDS),
        (BENDS, lambda k, t: -max(t - 0.15, 0), Verdict.FAILS),
        (BENDS, lambda k, t: (k - 15) * (0.15 - t), Verdict.IN_PART),
    ],
)
def test_curves_are_judged_by_every_step(judged, heights, verdict):
    assert judged(view(heights)).verdict is verdict


@pytest.mark.parametrize(
    ("seconds", "spread", "along", "verdict"),
    [
        (lambda k, t: -t, 0.0, "t", Verdict.HOLDS),
        (lambda k, t: t, 0.0, "t", Verdict.FAILS),
        (lambda k, t: t, 0.1, "t", Verdict.HOLDS),  # every step lies within the spread
        (lambda k, t: -k, 0.0, "k", Verdict.HOLDS),
        (lambda k, t: k if t < 0.2 else -k, 0.0, "k", Verdict.IN_PART),
    ],
)
def test_only_steps_of_time_beyond_the_spread_count(seconds, spread, along, verdict):
    rows = {
        curve(PAPERS, k): [
            {"t": t, "seconds_least": seconds(k, t) - spread, "seconds_most": seconds(k, t)}
            for t in TS
        ]
        for k in KS
    }
    assert takes_less_time(along)(View(rows)).verdict is verdict


def test_a_method_is_at_most_the_better_of_two_cell_by_cell():
    both = {PAPERS: lambda k, t: k, K_FIRST: lambda k, t: 20}
    found = view(lambda k, t: min(k, 20) * 1.01, OURS, **both)
    assert at_most(OURS, (PAPERS, K_FIRST), ("y",), 0.02)(found).verdict is Verdict.HOLDS
    assert at_most(OURS, (PAPERS, K_FIRST), ("y",))(found).verdict is Verdict.FAILS
    assert at_most(OURS, (PAPERS,), ("y",))(found).verdict is Verdict.IN_PART
    assert "not at k = 5, t = 0.05" in at_most(OURS, (PAPERS,), ("y",))(found).numbers


def test_a_release_beyond_t_or_below_k_breaks_the_promise():
    def rows(k, least, far):
        return [{"t": t, "least_size": least, "closeness": far(t)} for t in TS]

    kept = View({curve(label, k): rows(k, k, lambda t: t) for label in METHODS for k in KS})
    far = View({curve(label, k): rows(k, k, lambda t: t + 1e-9) for label in METHODS for k in KS})
    small = View({curve(label, k): rows(k, 7, lambda t: t) for label in METHODS for k in KS})
    assert [keeps_promises(v).verdict for v in (kept, far, small)] == [
        Verdict.HOLDS,
        Verdict.FAILS,
        Verdict.IN_PART,
    ]


# What is committed, and Census


def test_on_census_ours_is_at_most_the_better_of_both_in_every_committed_cell():
    """Neither the best error nor the smallest classes of 50 runs are better by more than 2 %."""
    rows = json.loads(COMMITTED.read_text())["rows"]
    for reading in judge(PAPER, rows):
        named = {
            claim.about: finding
            for claim, finding in zip(PAPER.claims, reading.findings, strict=True)
        }
        assert named["ours"].verdict is Verdict.HOLDS
        assert named["promise"].verdict is Verdict.HOLDS


@pytest.mark.long
def test_a_cell_of_census_is_measured_as_committed(data_folder):
    content = json.loads(COMMITTED.read_text())
    setting = {"method": "tcloseness-k-first", "parameters": "", "seeds": "one", "k": 20, "t": 0.2}
    (row,) = [row for row in content["rows"] if setting.items() <= row.items()]
    found = bench(data_folder, quick=False).measure(setting)
    for name in ("least_size", "mean_size", "closeness", "il", "sse", "sse_percent"):
        assert found[name] == pytest.approx(row[name]), name
