"""`shoal reproduce fads`: what is run, and how verdicts come about."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.data.stream import Arrivals
from shoal_papers.reproduce.fads import PAPER, grid
from shoal_papers.reproduce.fads_claims import (
    CASTLE,
    CLAIMS,
    FADS,
    c0_costs_time,
    c0_curve,
    c0_lowers_loss,
    curve,
    equal_then_lower,
    fluctuates,
    has_knee,
    is_linear,
    is_lower,
    moves,
    rises_less,
    tau_hardly_moves_loss,
    time_over_k,
)
from shoal_papers.reproduce.paper import View
from shoal_papers.reproduce.rows import ROWS, RowFile
from shoal_papers.reproduce.stream_bench import _KAndL


@pytest.mark.long
def test_a_quick_run_measures_every_point_and_judges_every_claim(quick):
    rows = list(RowFile(quick / ROWS).load().values())
    assert len(rows) == len(grid(quick=True))
    assert {figure.name + ".svg" for figure in PAPER.figures} <= {
        path.name for path in quick.iterdir()
    }
    assert all(claim.about in (quick / "verdicts.md").read_text() for claim in CLAIMS)


@pytest.mark.long
def test_every_record_leaves_once_and_only_faanst_is_late(quick):
    for row in RowFile(quick / ROWS).load().values():
        assert (
            sum(row[kind] for kind in ("new", "reuse", "suppress", "hold", "drop"))
            == row["records"]
        )
        assert row["longest"] <= row["delta"] or row["method"] == "faanst"
        assert 0 <= row["loss"] <= 1


def view(experiment: str, x: str, fads: dict, castle: dict, y: str = "loss") -> View:
    rows = {FADS: fads, CASTLE: castle}
    return View(
        {
            curve(n, experiment, 1): [{"delta": 10, x: at, y: value} for at, value in row.items()]
            for n, row in rows.items()
        }
    )


def kept(parts):
    return [holds for holds, _ in parts]


def test_judges_of_loss_tell_kept_claims_from_broken_ones():
    sizes = view("size", "records", {5: 0.4, 10: 0.3, 20: 0.2}, {5: 0.44, 10: 0.36, 20: 0.25})
    assert kept(equal_then_lower(sizes)) == [True, False, True]
    assert kept(moves("size", "records", 1, -1)(sizes)) == [True, True]
    ks = view("k", "k", {10: 0.2, 50: 0.3}, {10: 0.1, 50: 0.4})
    assert kept(is_lower("k", "k", 1, CASTLE)(ks)) == [False, True]
    deltas = view(
        "delta",
        "delta",
        {1000: 0.5, 10_000: 0.3, 15_000: 0.29},
        {1000: 0.5, 10_000: 0.3, 15_000: 0.2},
    )
    assert kept(has_knee(deltas)) == [True, False]


def test_one_step_against_a_direction_breaks_a_claim_though_the_ends_agree():
    sizes = view("size", "records", {5: 0.4, 10: 0.41, 20: 0.2}, {5: 0.4, 10: 0.3, 20: 0.2})
    assert kept(moves("size", "records", 1, -1)(sizes)) == [False, True]


def test_judges_of_time_tell_kept_claims_from_broken_ones():
    sizes = {1000: 1.0, 2000: 2.0, 4000: 4.0}
    square = {n: seconds**2 for n, seconds in sizes.items()}
    assert kept(is_linear(view("size", "records", sizes, square, "seconds"))) == [True, True]
    assert kept(is_linear(view("size", "records", square, sizes, "seconds"))) == [False, False]
    bent = {1000: 1.0, 2000: 1.0, 4000: 4.0}
    assert kept(
        rises_less("size", "records", 0.2)(view("size", "records", sizes, square, "seconds"))
    ) == [True, True]
    assert kept(
        rises_less("size", "records", 0.2)(view("size", "records", bent, square, "seconds"))
    ) == [True, False]
    ks = view("k", "k", {10: 3.0, 50: 2.0, 100: 1.0}, {10: 0.5, 50: 1.0, 100: 1.2}, "seconds")
    assert kept(time_over_k(ks)) == [True, True, True]
    ks = view("k", "k", {10: 3.0, 50: 2.0, 100: 2.5}, {10: 0.9, 50: 1.0, 100: 1.3}, "seconds")
    assert kept(time_over_k(ks)) == [False, False, False]


def test_a_time_fluctuates_if_it_rises_and_falls_beyond_its_spread():
    def few(*middles):
        rows = [
            {"k": k, "seconds_least": s - 0.1, "seconds_most": s + 0.1}
            for k, s in zip((10, 20, 30), middles, strict=True)
        ]
        return View({f"{CASTLE} by few k": rows})

    assert kept(fluctuates(few(1.0, 2.0, 1.0))) == [True, True]
    assert kept(fluctuates(few(1.0, 2.0, 1.9))) == [True, False]


def test_judges_of_c0_and_tau():
    def rows(c0, losses, seconds):
        return [
            {"c0": c0, "records": n, "loss": loss, "seconds": s}
            for n, loss, s in zip((5, 10), losses, seconds, strict=True)
        ]

    by_c0 = View(
        {
            c0_curve(1): rows(1, (0.3, 0.3), (1.0, 1.0)),
            c0_curve(10): rows(10, (0.295, 0.31), (1.3, 1.1)),
        }
    )
    assert kept(c0_lowers_loss(by_c0)) == [True, False]
    assert kept(c0_costs_time(by_c0)) == [True, False]
    for losses, holds in (((0.3, 0.305), True), ((0.3, 0.32), False)):
        by_tau = [{"tau": t, "loss": x} for t, x in zip((0.2, 0.4), losses, strict=True)]
        assert kept(tau_hardly_moves_loss(View({f"{FADS} by tau": by_tau}))) == [holds]


def test_a_cluster_of_the_diverse_reading_has_so_many_distinct_values():
    arrivals = Arrivals(np.arange(4), np.zeros((4, 1)), np.arange(4))
    promises = _KAndL(2, 2, np.array([0, 0, 1, 2]))
    labels = np.array([0, 0, 1, 1])
    assert promises.holds(arrivals, labels, 2).tolist() == [False, True]
    assert promises.holds(arrivals, np.array([0, -1, 0, 1]), 2).tolist() == [True, False]
