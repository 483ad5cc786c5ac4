"""`shoal reproduce fads`: what is run, and how verdicts come about."""

import numpy as np
import pytest

from shoal.data.stream import REUSE, Arrivals
from shoal.streams.methods.castle import Castle
from shoal.streams.methods.fads import Fads
from shoal_papers.reproduce.comparisons import counting
from shoal_papers.reproduce.fads import PAPER, grid
from shoal_papers.reproduce.fads_claims import (
    CASTLE,
    CLAIMS,
    FADS,
    c0_costs_time,
    c0_curve,
    c0_lowers_loss,
    compares_less,
    curve,
    equal_then_lower,
    fluctuates,
    has_knee,
    is_linear,
    is_lower,
    keeps_bounded,
    methods_of,
    moves,
    printed,
    rises_less,
    tau_hardly_moves_loss,
    time_over_k,
)
from shoal_papers.reproduce.paper import View
from shoal_papers.reproduce.rows import ROWS, RowFile
from shoal_papers.reproduce.stream_bench import QUICK_RECORDS, _KAlone, _KAndL, bench


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
        assert sum(row[kind] for kind in ("new", "reuse", "suppress", "hold", "drop")) == row.get(
            "stream", row["records"]
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
    grows = is_linear("size", 1, "seconds", FADS, CASTLE)
    assert kept(grows(view("size", "records", sizes, square, "seconds"))) == [True, True]
    assert kept(grows(view("size", "records", square, sizes, "seconds"))) == [False, False]
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


def test_much_faster_is_half_the_comparisons_at_every_point():
    ks = view("k", "k", {10: 10, 50: 6}, {10: 20, 50: 11}, "comparisons")
    as_printed = View({printed(name): rows for name, rows in ks.curves.items()})
    assert kept(compares_less("k", "k", 1)(as_printed)) == [True, False]


@pytest.mark.parametrize(
    ("kept_by_fads", "kept_by_others", "holds"),
    [((70, 100), (5, 9), True), ((70, 101), (5, 9), False), ((70, 100), (9, 9), False)],
)
def test_clusters_are_bounded_where_only_those_of_fads_are(kept_by_fads, kept_by_others, holds):
    curves = {
        curve(name, "long", group): [
            {"delta": 10_000, "k": 100, "records": records, "kept": clusters}
            for records, clusters in zip(
                (1000, 2000), kept_by_fads if name == FADS else kept_by_others, strict=True
            )
        ]
        for group in (1, 2)
        for name in methods_of(group)
    }
    assert all(kept(keeps_bounded(View(curves)))) is holds


# What is counted and measured


def test_fads_compares_records_with_kept_clusters_and_each_first_record_with_those_left():
    space, values = bench(None, quick=True)._part(1, 4, 700)
    seq, k = np.arange(700), 10
    publisher = Fads(preset="paper", tau=1.0, delta=200).start(space, _KAlone(k), 1)
    with counting() as made:
        released = [*publisher.push(Arrivals(seq, values, seq)), *publisher.flush()]
    expected = live = 0
    for one in released:
        expected += len(one.seq) * live
        left = int((one.kind != REUSE).sum())
        for _ in one.made:
            expected += left - 1
            left -= k
        expected += left * len(one.made)
        live = len(one.live)
    assert sum(made) == expected
    assert any((one.kind == REUSE).any() for one in released)


def test_arrivals_that_castle_takes_together_are_counted_as_one_by_one():
    space, values = bench(None, quick=True)._part(1, 4, 600)
    seq = np.arange(600)
    counts = []
    for piece in (1, 7, 600):
        publisher = Castle(delta=150, beta=8, keep=0).start(space, _KAlone(10), 1)
        with counting() as made:
            for at in range(0, 600, piece):
                part = slice(at, at + piece)
                list(publisher.push(Arrivals(seq[part], values[part], seq[part])))
            list(publisher.flush())
        counts.append(sum(made))
    assert counts[0] == counts[1] == counts[2] > 600


SETTING = {
    "group": 2,
    "method": "fads",
    "parameters": "preset=paper,tau=0.5,c0=1",
    "attributes": 2,
    "k": 10,
    "delta": 300,
}


def test_a_row_of_several_seeds_has_the_mean_and_each_of_their_losses():
    row = bench(None, quick=True).measure({**SETTING, "records": 700, "seeds": 3})
    losses = [row[f"loss_{seed}"] for seed in (1, 2, 3)]
    assert row["loss"] == pytest.approx(sum(losses) / 3)
    assert (row["loss_least"], row["loss_most"]) == (min(losses), max(losses))
    assert len(set(losses)) > 1
    for counted in ("comparisons", "kept"):
        assert row[f"{counted}_least"] <= row[counted] <= row[f"{counted}_most"]
    assert row["comparisons_least"] < row["comparisons_most"]
    one = bench(None, quick=True).measure({**SETTING, "records": 700})
    assert one["loss"] == losses[0]
    assert "comparisons" not in one


def test_a_running_mean_is_over_the_first_records_of_the_whole_stream():
    """As every full buffer is released as it would be if the stream ended there."""
    quick = bench(None, quick=True)
    first = quick.measure({**SETTING, "records": 600, "stream": 900})
    assert first["loss"] == quick.measure({**SETTING, "records": 600})["loss"]
    early = quick.measure({**SETTING, "records": 100, "stream": 900})
    assert early["loss"] < quick.measure({**SETTING, "records": 100})["loss"]


def test_a_long_stream_is_the_table_in_file_order_and_then_shuffled():
    order = bench(None, quick=True)._order(2 * QUICK_RECORDS + 5)
    first, second = order[:QUICK_RECORDS], order[QUICK_RECORDS : 2 * QUICK_RECORDS]
    assert np.array_equal(first, np.arange(QUICK_RECORDS))
    assert np.array_equal(np.sort(second), first)
    assert not np.array_equal(second, first)
    assert len(order) == 2 * QUICK_RECORDS + 5


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
