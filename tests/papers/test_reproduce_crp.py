"""`shoal reproduce crp`: what is run, and how verdicts come about."""

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.partition import Matrix
from shoal.errors import InputError
from shoal.search.clustering import points_of
from shoal_papers.reproduce import axial_windows, mixed_bench
from shoal_papers.reproduce.crp import (
    METHODS,
    PAPER,
    QUICK_FACTORS,
    QUICK_KNOWN,
    QUICK_SIZES,
    RETURNING,
)
from shoal_papers.reproduce.crp_claims import (
    CLAIMS,
    CRP,
    GROWING,
    K_PPRP,
    STATIC_1,
    STATIC_2,
    by_size,
    gains_with_size,
    growing,
    grows,
    is_fewer,
    lie_close,
    loses_more_when_wide,
    moves_with_size,
    only_leaks,
    stays_flat,
)
from shoal_papers.reproduce.paper import Verdict, View
from shoal_papers.reproduce.republication_bench import (
    GROWTH,
    IMPACT,
    MIXED,
    MOVEMENT,
    QUICK_MONTHS,
    RETURN,
    SIZE,
    _operations,
    classes_of,
)
from shoal_papers.reproduce.returning_bench import alone
from shoal_papers.reproduce.rows import ROWS, RowFile
from shoal_papers.reproduce.wearer_tables import QUASI, stretched


def measured(quick: Path, experiment: str) -> list[dict]:
    found = RowFile(quick / ROWS).load().values()
    return [dict(row) for row in found if row["experiment"] == experiment]


@pytest.mark.long
def test_a_quick_run_measures_every_method_everywhere(quick):
    assert {(row["method"], row["increments"]) for row in measured(quick, GROWTH)} == {
        (m, i) for m, _ in METHODS.values() for i in (1, 2)
    }
    assert {row["size"] for row in measured(quick, SIZE)} == set(QUICK_SIZES)
    assert len(measured(quick, RETURN)) == len(RETURNING) * QUICK_MONTHS
    assert len(measured(quick, IMPACT)) == len(QUASI) * len(QUICK_FACTORS)
    assert len(measured(quick, MIXED)) == len(mixed_bench.DISTANCES) * len(QUICK_SIZES)
    assert len(measured(quick, MOVEMENT)) == len(QUICK_KNOWN)
    assert {figure.name + ".svg" for figure in PAPER.figures} <= {
        path.name for path in quick.iterdir()
    }
    assert all(claim.about in (quick / "verdicts.md").read_text() for claim in CLAIMS)


@pytest.mark.long
def test_only_static_2_leaks_and_only_safe_methods_leave_nobody_alone(quick):
    for row in measured(quick, GROWTH):
        assert (row["leaks"] > 0) == (row["method"] == "static-2")
        assert (row["people_in_small_cells"] > 0) == (row["method"] in ("static-2", "k-pprp"))
        assert row["records"] == 150 * (row["increments"] + 1)


@pytest.mark.long
def test_an_attribute_loses_less_where_its_impact_factor_is_greater(quick):
    own = {(row["attribute"], row["factor"]): row["own_loss"] for row in measured(quick, IMPACT)}
    assert all(own[name, 4] < own[name, 1] for name in QUASI)


def samples(*runs: tuple[str, str, int]) -> pl.DataFrame:
    """Series of one person and activity each, whose axes count the instants."""
    rows = [(body, kind) for body, kind, length in runs for _ in range(length)]
    frame = pl.DataFrame(rows, schema=["body", "activity"], orient="row")
    instants = pl.Series(np.arange(frame.height))
    who = {"age": 30, "height": 170, "weight": 60}
    axes = dict.fromkeys(axial_windows.AXES, instants)
    return frame.with_columns(**{n: pl.lit(v) for n, v in who.items()}, **axes)


def test_a_window_is_whole_and_of_one_person_and_one_activity():
    length = axial_windows.SAMPLES
    short = ("a", "walks", length - 1)
    frame = samples(("a", "sits", 2 * length + 5), short, ("b", "sits", length))
    found = axial_windows.windows(frame)
    assert found.select("body", "activity").rows() == [("a", "sits")] * 2 + [("b", "sits")]
    first = np.arange(length)
    starts = [0, length, 3 * length + 4]
    assert found["mean_z4"].to_list() == [start + first.mean() for start in starts]
    assert found["sd_x1"].to_list() == [round(float(first.std(ddof=1)), 1)] * 3


def test_a_series_that_is_not_the_known_one_is_refused(tmp_path):
    path = tmp_path / axial_windows.SERIES
    path.parent.mkdir()
    with gzip.open(path, "wt") as series:
        series.write("user;age\na;30\n")
    with pytest.raises(InputError, match="SHA-256 is not"):
        axial_windows.read(tmp_path)


def test_movement_names_whoever_moves_like_no_other():
    def moving(*people: tuple[str, float]) -> pl.DataFrame:
        features = {name: [value for _, value in people] for name in axial_windows.FEATURES}
        return pl.DataFrame({"body": [body for body, _ in people], **features})

    known = moving(("a", 0.0), ("b", 9.0), ("b", 10.0))
    later = moving(("a", 1.0), ("a", 0.5), ("b", 8.0), ("b", 2.0))
    assert axial_windows.named(known, later) == {"named": 0.75, "chance": 0.5}


def test_distances_between_categories_are_what_they_are_called():
    """Of leaves a and b under one node, and c."""
    tree = Hierarchy.from_paths([("a", "ab", "*"), ("b", "ab", "*"), ("c", "*")])
    matrix = Matrix.from_columns(np.array([[0], [1], [2]]), [tree])
    claimed = {
        mixed_bench.NODE: (0.5, 1.0),
        mixed_bench.RANK: (0.5, 0.5),
        mixed_bench.MISMATCH: (1.0, 1.0),
        mixed_bench.NUMBERS: (0.0, 0.0),
    }
    for distance, apart in claimed.items():
        points = points_of(mixed_bench.seen_by(matrix, distance), "range")
        steps = np.sqrt((np.diff(points, axis=1) ** 2).sum(axis=0))
        assert np.allclose(steps, apart), distance


@pytest.mark.long
def test_people_who_return_are_found_unless_they_stay_with_their_group(quick):
    last = [row for row in measured(quick, RETURN) if row["increments"] == QUICK_MONTHS - 1]
    for row in last:
        assert (row["alone"] > 0) == (row["method"] == "crp")
        assert (row["published"] == 1.0) == (row["method"] == "crp")


def test_a_figure_has_at_most_seven_curves_of_the_main_reading():
    main = PAPER.readings[0].curves
    for figure in PAPER.figures:
        assert 1 <= len(figure.curves) <= 7
        assert set(figure.curves) <= set(main)


def test_people_are_alone_who_share_all_their_classes_with_too_few():
    a, b, later = (0, "[1, 2]"), (0, "3"), (1, "[1, 2]")
    histories = {"x": {a}, "y": {a, later}, "z": {a, later}, "v": {b}}
    assert alone(histories, 2) == 1  # v; y and z hide one another, and x
    assert alone(histories, 3) == 3


def test_classes_are_alike_as_by_hand():
    box = {"age": "[1, 2]", "height": "3", "weight": "4"}
    frame = pl.DataFrame(
        [
            box | {"activity": "sits", "body": "a"},
            box | {"activity": "walks", "body": "a"},
            box | {"age": "1", "activity": "sits", "body": "a"},
            box | {"age": "1", "activity": "sits", "body": "b"},
        ]
    )
    assert classes_of(frame).rows() == [(0.0, 0.0, 1.0), (1.0, 1.0, 0.0)]
    assert classes_of(frame.drop("body"))["one_body"].sum() == 0


def test_a_wider_scale_keeps_bodies_alike_and_doubles_them():
    frame = pl.DataFrame(
        {"body": ["a", "b", "a"], "age": [20, 30, 20], "height": 170, "weight": 70}
    )
    wide = stretched(frame, 2)
    assert wide.row(0) == wide.row(2)
    for name in ("age", "height", "weight"):
        assert (wide[name] - 2 * frame[name]).is_in([0, 1]).all()
    assert stretched(frame, 1) is frame


def rows(column: str, *values: float) -> list[dict]:
    return [{"increments": i + 1, column: value} for i, value in enumerate(values)]


def timed(*spans: tuple[float, float, float]) -> list[dict]:
    return [
        {"increments": i, "seconds_least": a, "seconds": b, "seconds_most": c}
        for i, (a, b, c) in enumerate(spans)
    ]


def test_time_that_grows_may_waver_within_its_spread():
    grown, wavering, falling, small = (
        [(1, 1, 1), (2, 2, 2)],
        [(1, 1, 3), (1, 2, 3), (1, 1.9, 3)],
        [(1, 1, 1), (3, 3, 3), (2, 2, 2)],
        [(1, 1, 1), (1.4, 1.4, 1.4)],
    )
    verdicts = [
        grows(CRP)(View({CRP: timed(*s)})).verdict for s in (grown, wavering, falling, small)
    ]
    assert verdicts == [Verdict.HOLDS, Verdict.HOLDS, Verdict.FAILS, Verdict.FAILS]


def sized(column: str, *values: float) -> list[dict]:
    return [{"size": 10 * (i + 1), column: value} for i, value in enumerate(values)]


def test_curves_over_sizes_are_judged_step_by_step():
    def falls(*values: float) -> Verdict:
        return moves_with_size(CRP, "gcp", -1)(View({CRP: sized("gcp", *values)})).verdict

    assert falls(0.3, 0.2, 0.2) == Verdict.HOLDS
    assert falls(0.3, 0.4, 0.2) == Verdict.IN_PART
    assert falls(0.2, 0.3) == Verdict.FAILS
    assert falls(0.0, 0.0) == Verdict.FAILS, "what never moves does not fall"
    curves = {CRP: sized("gcp", 0.9, 0.5), STATIC_1: sized("gcp", 1.0, 1.0)}
    assert gains_with_size(CRP, STATIC_1)(View(curves)).verdict == Verdict.HOLDS
    assert gains_with_size(STATIC_1, CRP)(View(curves)).verdict == Verdict.FAILS
    wide = {by_size(CRP): sized("gcp", 1, 1), by_size(CRP, 2): sized("gcp", 2, 1)}
    assert loses_more_when_wide("gcp")(View(wide)).verdict == Verdict.IN_PART


def test_claims_about_increments_see_the_curves_over_increments_alone():
    seen = []
    curves = {name: [] for name in (*GROWING, by_size(CRP))}
    growing(lambda view: seen.extend(view.curves))(View(curves))
    assert set(seen) == set(GROWING)


def test_judges_tell_kept_claims_from_broken_ones():
    leaking = {STATIC_2: rows("leaks", 3, 5), CRP: rows("leaks", 0, 0)}
    assert only_leaks(STATIC_2)(View(leaking)).verdict == Verdict.HOLDS
    assert only_leaks(CRP)(View(leaking)).verdict == Verdict.FAILS
    seconds = {CRP: rows("seconds", 1.0, 1.9), K_PPRP: rows("seconds", 1.0, 2.1)}
    assert stays_flat(CRP)(View(seconds)).verdict == Verdict.HOLDS
    assert stays_flat(K_PPRP)(View(seconds)).verdict == Verdict.FAILS
    close = {CRP: rows("operations", 100, 100), K_PPRP: rows("operations", 120, 130)}
    assert lie_close(CRP, K_PPRP)(View(close)).verdict == Verdict.IN_PART
    assert is_fewer(CRP, "operations", K_PPRP)(View(close)).verdict == Verdict.HOLDS
    assert is_fewer(K_PPRP, "operations", CRP)(View(close)).verdict == Verdict.FAILS


def test_an_operation_is_a_cell_coarsened_anew():
    before = {1: ("[1, 2]", "3", "[4, 5]")}
    after = {1: ("[1, 2]", "[3, 4]", "[4, 6]"), 2: ("7", "[1, 2]", "8")}
    assert _operations(before, after) == 3
