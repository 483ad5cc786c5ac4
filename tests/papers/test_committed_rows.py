"""What is committed under papers/ is what today's code measures on the same data."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shoal_papers.reproduce import papers
from shoal_papers.reproduce.committed import cheapest, differing, is_current, load
from shoal_papers.reproduce.source import source_hash
from shoal_papers.reproduce.verdict_report import judge
from thorough import LONG, long_where

PAPERS = Path(__file__).parents[2] / "papers"
FOLDERS = {name: PAPERS / name.replace("-", "_") for name in papers()}
COSTLY = ("fusion", "crp", "joint")  # among the slices
SLICE = {"fusion": 2}  # each row of it starts parties in processes of their own

# with other seeds: which rows, how many of them, which columns, and how far off these may be, as a
# share; fusion draws no random number, and neither does what `size` of crp measures
OTHER_SEEDS = {
    "crp": ({"experiment": "growth", "data": "invented", "increments": 1}, 2, ("gcp", "classes")),
    "fads": ({"experiment": "size", "group": 1, "records": 2500, "k": 100}, 3, ("loss",)),
    "joint": ({"k": 83, "seed": 0, "asked": "marginal"}, 1, ("mean_size", "gcp", "joint")),
    "rounded-partition": ({"order": "frequency", "k": 50}, 2, ("classes", "dm", "cm", "gcp")),
    "tcloseness": (
        {"k": 30, "t": 0.3, "seeds": "many"},
        1,
        ("mean_size_smallest", "il_middle", "sse_percent_middle"),
    ),
}
ELSEWHERE = {  # numbers of a page that no row holds
    "fusion": {"2011", "15,060"},  # the year of a paper; the test records of Adult
    "rounded-partition": {"400,682", "579,908"},  # what rows said before they were corrected
}
OFF = {"crp": 0.05, "fads": 0.1, "joint": 0.1, "rounded-partition": 0.0, "tcloseness": 0.05}


def bench_of(name, data_folder, committed):
    """The paper's bench on the data of its committed rows, with one repeat."""
    bench = papers()[name].bench(data_folder, False)
    assert bench.data.sha256 == committed.data.sha256
    return replace(bench, repeats=1) if hasattr(bench, "repeats") else bench


@pytest.mark.parametrize("name", long_where(COSTLY.__contains__, FOLDERS))
def test_a_slice_of_each_paper_is_measured_as_committed(name, data_folder):
    committed, rows = load(FOLDERS[name])
    bench = bench_of(name, data_folder, committed)
    for row in cheapest(rows)[: SLICE.get(name, 3)]:
        assert differing(row, bench.measure(row)) == []


def outside(row, found, columns, off) -> list[str]:
    """The columns that lie farther from the committed row than its share."""
    return [c for c in columns if abs(found[c] - row[c]) > off * abs(row[c]) + 1e-9]


@pytest.mark.long
@pytest.mark.parametrize("name", OTHER_SEEDS)
def test_with_other_seeds_a_slice_lies_where_the_committed_rows_say(name, data_folder, monkeypatch):
    chosen, many, columns = OTHER_SEEDS[name]
    committed, rows = load(FOLDERS[name])
    bench = bench_of(name, data_folder, committed)
    seeded = np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed: seeded(np.append(seed, 1_000)))
    for row in cheapest(row for row in rows if chosen.items() <= row.items())[:many]:
        found = bench.measure(row)
        assert outside(row, found, columns, OFF[name]) == [], (row, found)
        for column in columns:  # so that a row that says something else is noticed
            moved = row | {column: row[column] * (1 + 3 * OFF[name]) + 1}
            assert outside(moved, found, columns, OFF[name]) == [column]
        if OFF[name]:
            assert differing(row, found), "the other seeds changed nothing"


@pytest.mark.parametrize("name", FOLDERS)
def test_the_committed_rows_carry_the_hash_of_todays_code(name):
    committed, _ = load(FOLDERS[name])
    assert committed.commit
    assert len(committed.source) == 16
    if not is_current(papers()[name], committed):
        stale = (
            f"the rows of {name} are of older code: python papers/again.py {name} --seconds 60"
            " measures some of them again, and notes it"
        )
        # the slice above is measured anyway; whoever changes what methods publish runs all tests
        (pytest.fail if LONG else pytest.skip)(stale)


@pytest.mark.parametrize("name", FOLDERS)
def test_the_committed_verdicts_follow_from_the_rows_of_a_full_run(name):
    paper, content = papers()[name], json.loads((FOLDERS[name] / "results.json").read_text())
    assert not content["is_quick"]
    assert len(content["rows"]) == len(paper.grid(False))
    assert content["verdicts"] == [
        {
            "reading": j.reading.name,
            "about": claim.about,
            "verdict": finding.verdict,
            "numbers": finding.numbers,
        }
        for j in judge(paper, content["rows"])
        for claim, finding in zip(paper.claims, j.findings, strict=True)
    ]


@pytest.mark.parametrize("name", FOLDERS)
def test_each_number_of_a_page_is_in_its_results(name):
    """Those of three digits or more, as shares also in %, in ms or in millions."""
    page = (FOLDERS[name] / "README.md").read_text()
    results = json.loads((FOLDERS[name] / "results.json").read_text())
    known = np.array([len(results["rows"]), *numbers_in(results)])
    stated = long_numbers(page) - ELSEWHERE.get(name, set())
    assert [number for number in stated if not is_among(number, known)] == []
    changed = [number[:-1] + str((int(number[-1]) + 5) % 10) for number in stated]
    assert sum(not is_among(number, known) for number in changed) > len(changed) / 5


def long_numbers(page: str) -> set[str]:
    """Without those of links, of code, and of names such as that of a volume."""
    words = re.sub(r"`[^`]*`|\]\([^)]*\)", "", page)
    found = re.findall(r"(?<![\w.,:(-])\(?((?:[\d,]*\d)?(?:\.\d+)?)(?![\w:]|[.,]\d|-\d)", words)
    return {number for number in found if len(re.sub(r"[,.]", "", number).lstrip("0")) >= 3}


def numbers_in(content: object) -> Iterator[float]:
    if isinstance(content, dict | list):
        for part in content.values() if isinstance(content, dict) else content:
            yield from numbers_in(part)
    elif isinstance(content, str):
        yield from (float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*\.?\d*|\.\d+", content))
    elif isinstance(content, int | float):
        yield float(content)


def is_among(number: str, known: np.ndarray) -> bool:
    """Whether one of them rounds to it."""
    half = 0.5001 * 10.0 ** -len(number.partition(".")[2])
    stated = float(number.replace(",", ""))
    return any(np.abs(known * unit - stated).min() <= half for unit in (1, 100, 1000, 1e-6))


def test_a_row_that_comes_out_otherwise_is_noticed_but_for_its_times():
    row = {"k": 5, "gcp": 0.25, "seconds": 1.0, "seconds_most": 2.0}
    assert differing(row, row | {"seconds": 3.0, "seconds_most": 4.0}) == []
    assert differing(row, row | {"gcp": 0.2500001}) == ["gcp"]
    assert differing(row, row | {"k": 6}) == ["k"]


def test_code_that_measured_rows_again_is_current(tmp_path):
    content = json.loads((FOLDERS["joint"] / "results.json").read_text())
    (tmp_path / "results.json").write_text(json.dumps(content | {"source": "0" * 16}))
    paper = papers()["joint"]
    committed, _ = load(tmp_path)
    committed = replace(committed, again=None)
    assert not is_current(paper, committed)
    assert is_current(replace(paper, code=()), replace(committed, source=source_hash(())))
