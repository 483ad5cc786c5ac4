"""The benchmarks: the harness works on tiny tables, and what is committed says how it was
measured.
"""

import importlib
import json
import math
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = RESULTS / "README.md"
COMMITTED = sorted(RESULTS.glob("*.json"))
SETTINGS = set("commit python shoal numba numpy polars cpu data data_sha256 repeats rows".split())


@pytest.fixture
def module(monkeypatch):
    """Imports a module of benchmarks/, as its scripts do; forgotten afterwards."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if (ROOT / "benchmarks" / f"{name}.py").is_file():
            del sys.modules[name]


# in this process, of kernels, of whole commands, beside a published time, and more
NAMES = ("quality", "kernel", "whole_process", "waiting", "threads", "past_memory", "linked")
NAMES += ("audit", "tcloseness", "full_domain", "attack_cost", "returning", "beside", "one_person")
NAMES += ("certificate", "distinct_rows")


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_runs_on_a_tiny_table_and_says_how(name, module, data_folder, tmp_path):
    page = tmp_path / "page.md"
    where = ["--results", str(tmp_path), "--page", str(page)]
    module("run").main(["--only", name, "--rows", "300", "--repeats", "1", *where])
    content = json.loads((tmp_path / f"{name}.json").read_text())
    assert set(content["settings"]) >= SETTINGS
    assert content["figures"]
    assert all(math.isfinite(figure["median"]) for figure in content["figures"])
    assert content["title"] in page.read_text()


@pytest.mark.long
def test_the_cost_of_starting_is_that_of_the_process_alone(module):
    by_name = {figure.what: figure.median for figure in module("start").help_and_floor(repeats=1)}
    assert 0 < by_name["python, nothing else"] < by_name["shoal --help"]


def test_small_tables_never_replace_the_committed_figures(module):
    with pytest.raises(SystemExit):
        module("run").main(["--only", "kernel", "--rows", "300"])


def test_a_command_that_fails_or_hangs_is_reported(module):
    processes = module("processes")
    with pytest.raises(RuntimeError, match="status 3"):
        processes.run([sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(RuntimeError, match="not done"):
        processes.run([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.5)


def test_a_target_is_judged_by_the_median(module):
    Figure = module("measure").Figure
    assert Figure("x", "times", (1.0, 3.9, 9.0), 4.0).kept
    assert not Figure("x", "times", (4.0, 5.0, 1.0), 4.0, "below").kept
    assert Figure("x", "times", (60.0,), 50.0, "at least").kept
    assert Figure("x", "times", (60.0,)).kept is None


# Peers: what they publish, read by our definitions


def groups(cells: dict[str, str], records: int = 10) -> list[dict]:
    return [{"cells": cells, "records": records}]


@pytest.fixture
def peers(module, data_folder):
    adult = module("adult")
    return module("peers"), adult.declared(adult.policy(adult.EIGHT, 10), adult.complete())


def whole_and_single(policy: dict) -> tuple[dict[str, str], dict[str, str]]:
    """Cells that say nothing, and cells that say everything."""
    whole, single = {}, {}
    for name, attribute in policy["attributes"].items():
        if "order" in attribute:
            whole[name], single[name] = ",".join(attribute["order"]), attribute["order"][0]
        elif "domain" in attribute:
            least, most = attribute["domain"]
            whole[name], single[name] = f"{least}-{most}", str(least)
    return whole, single


def test_a_peers_cells_lose_all_or_nothing_by_both_readings(peers):
    import shoal

    module, policy = peers
    for cells, loss in zip(whole_and_single(policy), (1.0, 0.0), strict=True):
        audited = shoal.audit(
            module.as_release(groups(cells), policy), shoal.Policy.from_dict(policy)
        )
        assert audited["utility"]["gcp"] == pytest.approx(loss)
        assert module.loss_of_sets(groups(cells), policy) == pytest.approx(loss)


def test_a_set_of_two_far_apart_is_a_span_of_all_and_a_set_of_two(peers):
    import shoal

    module, policy = peers
    _, cells = whole_and_single(policy)
    order = policy["attributes"]["occupation"]["order"]
    cells["occupation"] = f"{order[-1]},{order[0]}"
    audited = shoal.audit(module.as_release(groups(cells), policy), shoal.Policy.from_dict(policy))
    assert audited["utility"]["gcp"] == pytest.approx(1 / 8)
    assert module.loss_of_sets(groups(cells), policy) == pytest.approx(1 / 13 / 8)


# What is committed


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_a_committed_result_names_its_settings_and_judges_rightly(path):
    content = json.loads(path.read_text())
    assert content["name"] == path.stem
    assert set(content["settings"]) >= SETTINGS
    assert "seed" in content["settings"] or "seeds" in content["settings"]
    for figure in content["figures"]:
        assert figure["least"] <= figure["median"] <= figure["most"]
        if "target" in figure:
            median, target = figure["median"], figure["target"]
            judged = {
                "at most": median <= target,
                "below": median < target,
                "at least": median >= target,
            }
            assert figure["kept"] == judged[figure["sense"]], figure["what"]


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_a_committed_result_names_no_place_of_the_machine(path):
    assert "/tmp" not in path.read_text()
    assert str(ROOT) not in path.read_text()


def test_the_page_shows_the_committed_results(module, data_folder):
    run = module("run")
    assert {path.stem for path in COMMITTED} <= set(run.NAMES)
    assert module("page").draw(run.committed(RESULTS)) == PAGE.read_text()
    assert module("summary").draw(run.committed(RESULTS)) == run.SUMMARY.read_text()


@pytest.mark.long
def test_the_engine_of_the_stream_benchmark_measures_loss_speed_and_floor(module, data_folder):
    found = module("streams").engine("fads", "{}", 100, 2000, 1)
    assert all(0.1 < loss < 0.5 for loss in found["loss"])
    assert found["speed"][0] > 0
    assert found["floor"][0] > 0


@pytest.mark.long
def test_the_engine_of_the_reconstructed_streams_measures_loss_and_speed(module, data_folder):
    found = module("stream_trees").engine("swaf", "{}", 5, 100, 600)
    assert all(0 < loss < 1 for loss in found["loss"])
    assert all(speed > 0 for speed in found["speed"])


# Loss against time


def points(module, **losses: list[float]) -> list:
    """Points at k = 10 on Adult, by method; the first is the default."""
    Point = module("refinement").Point
    made = [
        Point("Adult, ordered", 300, 10, name.replace("_", "-"), "", 0, runs, [0.5] * len(runs))
        for name, runs in losses.items()
    ]
    made[0].is_default = True
    return made


def test_the_default_is_judged_against_the_least_of_ours_and_not_of_a_peer(module, data_folder):
    found = points(
        module, rounded_partition=[4.6, 4.4, 4.5], mdav=[4.0], mondrian=[9.0], anonypy=[1.0]
    )
    aim, ratio = module("refinement").judged(found)
    assert (aim.median, aim.target) == (4.5, 4.63)
    assert ratio.median == pytest.approx(4.5 / 4.0)
    assert not ratio.kept
    assert "mdav" in ratio.what


def test_a_table_of_losses_marks_the_default_and_shows_the_spread(module, data_folder):
    rows = [p.as_row() for p in points(module, rounded_partition=[4.6, 4.4, 4.5], mdav=[5.0])]
    rows.append({"data": "Adult, ordered", "k": 10, "records": 300, "line": "floor", "loss": 1.38})
    text = list(module("curves").tables(rows))
    assert "| rounded-partition | **4.5, 4.4 to 4.6 (0.5)** |" in text
    assert "| mdav | 5 (0.5) |" in text
    assert "| floor | 1.38 |" in text


def test_no_classes_lose_less_than_the_nearest_records_say(module, data_folder):
    import numpy as np

    from shoal.data.partition import Matrix, Partition
    from shoal.search.segments import loss_of

    rng = np.random.default_rng(1)
    columns = rng.integers(0, 50, (3, 60)).astype(np.int32)
    matrix = Matrix.from_columns(columns.T.copy(), [1 / 49] * 3)
    least, _ = module("near_bound").least_losses(matrix, (1, 4))[4]
    assert module("near_bound").least_losses(matrix, (1,))[1][0] == 0
    for _ in range(20):  # any classes of four
        classes = Partition(rng.permutation(np.repeat(np.arange(15, dtype=np.int32), 4)), 15)
        assert 100 * loss_of(matrix, classes) / matrix.codes.size >= least


def test_every_picture_of_the_page_is_there_and_is_svg(module, data_folder):
    rows = [r for result in module("run").committed(RESULTS) for r in result["rows"] if "data" in r]
    for name in {module("curves").file_name(row["data"]) for row in rows}:
        assert (PAGE.parent / name).read_text().rstrip().endswith("</svg>")
        assert f"]({name})" in PAGE.read_text()
