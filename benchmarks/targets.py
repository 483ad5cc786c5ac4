"""The targets for speed and loss, all of them or by parts; what was missed is printed first.

python targets.py [files|sizes|start|stream|wide|closeness|search ...] [--repeats N]

`make bench` records them as it does the others, but for `files` and `stream`, which it has already.

CPU seconds (user and system) of whole processes on one thread unless said otherwise; records of
Adult, or resampled from it; k = 10. Takes about 15 minutes on an idle core.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import adult
import numpy as np
import polars as pl
import processes
import refinement
import streams
import whole_process
from inputs import policy_file
from measure import ONE_THREAD, Asked, Figure, Result, load, ratios, rounded, settings
from refinement_tables import Data

TITLE = "Targets for speed and loss"
CLAIM = (
    "CPU seconds (user and system) of whole processes on one thread, or of searches alone, on Adult"
    " and on records resampled from it; k = 10. Tables of a million records are published twice."
)
K, SEED = 10, 1
TWICE = 2  # runs of what takes long
HUGE = 1_000_000
LEAST_OF_OURS_AT = (100_000, 200_000, 300_000, HUGE)
GRID = [round(25_000 * 1.1**step) for step in range(39)]  # up to 935,000 records
# distance, records, t, CPU s, loss (%)
CLOSENESS = (
    ("equal", 100_000, 0.1, 20, 24.86),
    ("equal", 100_000, 0.2, 20, 19.64),
    ("equal", 100_000, 0.3, 20, 14.10),
    ("equal", 300_000, 0.1, 20, 25.24),
    ("equal", 300_000, 0.2, 20, None),
    ("equal", 300_000, 0.3, 20, 14.39),
    ("equal", HUGE, 0.1, 20, None),
    ("equal", HUGE, 0.2, 20, None),
    ("equal", HUGE, 0.3, 20, 13.73),
    ("ordered", 100_000, 0.2, 20, 2.68),
    ("ordered", 100_000, 0.3, 20, 1.63),
    ("ordered", 300_000, 0.2, 20, None),
    ("ordered", 300_000, 0.3, 20, None),
    ("ordered", HUGE, 0.2, 20, 1.32),
    ("ordered", HUGE, 0.3, 20, 0.434),
    ("hierarchies", HUGE, 0.2, 60, None),
    ("people", HUGE, 0.2, 60, None),
    ("attributes", HUGE, 0.2, 60, None),
)
WARM = 60_000  # records of a run that compiles what large tables need
THOROUGH = ((5, 6, 4.30), (20, 24, 4.17))  # seconds asked for, CPU s, loss (%)


@dataclass(frozen=True)
class Bench:
    """Runs commands in a folder of their own. repeats: runs of everything, after one to compile."""

    folder: Path
    repeats: int

    @property
    def asked(self) -> Asked:
        return Asked(None, self.repeats, say)

    def write(self, frame: pl.DataFrame, policy: dict[str, Any]) -> tuple[Path, Path]:
        frame.write_csv(self.folder / "in.csv")
        return self.folder / "in.csv", policy_file(self.folder / "policy.json", policy)

    def publish(
        self, source: Path, policy: Path, *more: object, empty: Sequence[str] = ()
    ) -> Published:
        """empty: environment variables of caches, which lead to empty folders then."""
        out = self.folder / f"out{source.suffix}"
        with tempfile.TemporaryDirectory(dir=self.folder) as fresh:
            asked = ("publish", source, "-p", policy, "-o", out, "-q", "--replace", *more)
            env = ONE_THREAD | {variable: f"{fresh}/{variable}" for variable in empty}
            used = processes.shoal(*asked, env=env)
        certificate = json.loads(out.with_name(f"{out.name}.certificate.json").read_text())
        return Published(used.seconds, used.peak / 1e6, 100 * certificate["utility"]["gcp"], out)

    def runs(self, source: Path, policy: Path, *more: object) -> list[Published]:
        self.publish(source, policy, *more)
        return [self.publish(source, policy, *more) for _ in range(self.repeats)]


@dataclass(frozen=True)
class Published:
    """seconds: CPU. peak: MB. loss: gcp in %."""

    seconds: float
    peak: float
    loss: float
    out: Path


def _figures(
    what: str, runs: Sequence[Published], seconds: float | None, loss: float | None = None
) -> Iterator[Figure]:
    yield Figure(what, "CPU s", tuple(run.seconds for run in runs), seconds)
    yield Figure(f"{what}: gcp", "%", tuple(run.loss for run in runs), loss)


def files(bench: Bench) -> Iterator[Figure]:
    """One table from file to file, near what reading and writing take."""
    return iter(whole_process.measure(bench.asked).figures)


def sizes(bench: Bench) -> Iterator[Figure]:
    """The default beside our other methods and efforts, and how its time grows; methods alone."""
    frame = adult.resampled(HUGE, columns=[*adult.EIGHT, "income"])
    for rows in LEAST_OF_OURS_AT:
        say(f"sizes: every method, {rows:,} records")
        points = refinement.points_of(Data("Adult", frame.head(rows)), K)
        (default,) = (point for point in points if point.is_default)
        within = 1.1 * statistics.median(default.seconds)
        least = min(
            (point for point in points if statistics.median(point.seconds) <= within),
            key=lambda point: point.loss,
        )
        what = f"{rows:,} records: default over the least of ours in its time ({least.name})"
        yield Figure(what, "times", (rounded(default.loss) / rounded(least.loss),), 1.0)
    yield Figure(f"{HUGE:,} records: default, gcp", "%", tuple(default.losses), 0.53)
    (full,) = (p for p in points if p.name == "rounded-partition refine=full")
    yield Figure(f"{HUGE:,} records: refine=full, gcp", "%", tuple(full.losses), 0.48)
    yield Figure(f"{HUGE:,} records: refine=full, search", "CPU s", tuple(full.seconds), 4.0)
    say("sizes: the default on a grid")
    seconds = [_seconds_of_default(frame.head(rows), bench.repeats) for rows in GRID]
    steps = ratios(seconds[1:], seconds[:-1])
    worst = int(np.argmax(steps))
    what = f"default, search: tenth more records, worst step (at {GRID[worst + 1]:,})"
    yield Figure(what, "times", (steps[worst],), 1.5)


def _seconds_of_default(frame: pl.DataFrame, repeats: int) -> float:
    given = refinement.given_of(Data("Adult", frame), K)
    return min(refinement.run(given, given.policy)[1] for _ in range(repeats))


def start(bench: Bench) -> Iterator[Figure]:
    """Small tables, and all kernels compiled at once."""
    say("start: Adult")
    frame = adult.records(None, [*adult.EIGHT, "income"])
    runs = bench.runs(*bench.write(frame, adult.policy(adult.EIGHT, K)))
    yield from _figures("Adult, a later run", runs, 1.25, 4.60)
    say("start: the README's sample")
    source, policy = bench.folder / "patients.csv", bench.folder / "patients.policy.yaml"
    processes.shoal("sample", "patients", "-n", 1000, "--seed", 7, "-o", source, "-q")
    yield from _figures("README sample", bench.runs(source, policy), 0.5)
    report = "--report", bench.folder / "report.html"
    yield from _figures("README sample with --report", bench.runs(source, policy, *report), 0.8)
    say("start: warmup")
    spent = tuple(_warmed_up(bench.folder) for _ in range(TWICE))
    yield Figure("shoal warmup, nothing compiled", "CPU s", spent, 45)


def _warmed_up(folder: Path) -> float:
    """CPU seconds of compiling all loops."""
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        return processes.shoal("warmup", "-q", env=ONE_THREAD | {"NUMBA_CACHE_DIR": fresh}).seconds


def stream(bench: Bench) -> Iterator[Figure]:
    """Streams with a checkpoint and the measure of the whole."""
    return iter(streams.whole(bench.asked, streams.ROWS))


def wide(bench: Bench) -> Iterator[Figure]:
    """Many columns: whole numbers from 0 to 99, and the large census."""
    for records, columns, most in ((1_000, 300, 7), (500, 1_503, 15)):
        say(f"wide: {columns:,} columns")
        drawn = np.random.default_rng(SEED).integers(0, 100, (records, columns))
        frame = pl.DataFrame(drawn, [f"c{j}" for j in range(columns)], orient="row")
        runs = bench.runs(*bench.write(frame, Data("wide", frame).policy(K)))
        yield from _figures(f"{records:,} records, {columns:,} quasi-identifiers", runs, most)
    say("wide: census income")
    path = adult.DATA / "census_income_kdd" / "census-income.data.gz"
    frame = pl.read_csv(path, has_header=False)
    frame = frame.drop(frame.columns[24], frame.columns[41])  # weight, income
    runs = bench.runs(*bench.write(frame, Data("census", frame).policy(K)))
    yield from _figures("Census income, 40 quasi-identifiers", runs, 9)


def closeness(bench: Bench) -> Iterator[Figure]:
    """t-closeness of occupation beside 7 quasi-identifiers; what is large runs twice."""
    first, empty = bench.write(*_close("equal", None, 0.2)), ("NUMBA_CACHE_DIR",)
    spent = tuple(bench.publish(*first, empty=empty).seconds for _ in range(TWICE))
    yield Figure("t-closeness on Adult, first run, kernels not compiled", "CPU s", spent, 9)
    for distance in dict.fromkeys(case[0] for case in CLOSENESS):
        bench.publish(*bench.write(*_close(distance, WARM, 0.2)))
        for of, rows, t, seconds, loss in CLOSENESS:
            if of == distance:
                say(f"closeness: {of}, {rows:,} records, t = {t}")
                source, policy = bench.write(*_close(of, rows, t))
                repeats = bench.repeats if rows < HUGE else TWICE
                runs = [bench.publish(source, policy) for _ in range(repeats)]
                yield from _figures(f"{of}, {rows:,} records, t = {t}", runs, seconds, loss)


def _close(distance: str, rows: int | None, t: float) -> tuple[pl.DataFrame, dict[str, Any]]:
    """distance: equal; ordered, by frequency; or equal with `hierarchies`, two rows to a person
    (`people`), or a second sensitive column (`attributes`).
    """
    frame = adult.records(rows)
    over_trees = distance == "hierarchies"
    policy = adult.over_hierarchies(K) if over_trees else adult.policy(adult.EIGHT, K)
    attributes, sensitive = policy["attributes"], ["occupation"]
    for about in attributes.values():
        if over_trees and "hierarchy" in about:
            about["hierarchy"] = str(adult.DATA / about["hierarchy"])
    attributes["income"] = {"role": "drop"}
    attributes["occupation"] = {"role": "sensitive"}
    if distance == "ordered":
        attributes["occupation"]["order"] = "frequency"
    if distance == "attributes":
        attributes["income"], sensitive = {"role": "sensitive"}, ["occupation", "income"]
    if distance == "people":
        frame = frame.with_columns(who=pl.int_range(pl.len()) // 2)
        attributes["who"] = {"role": "subject"}
    policy["promises"].append({"model": "t-closeness", "attributes": sensitive, "t": t})
    return frame.select([*attributes]), policy


def search(bench: Bench) -> Iterator[Figure]:
    """The searches on Adult, methods alone."""
    say("search: Adult")
    data = Data("Adult, ordered", adult.records(None, [*adult.EIGHT, "income"]))
    given = refinement.given_of(data, K)
    refinement.run(given, given.policy)
    default = [refinement.run(given, given.policy, seed) for seed in range(bench.repeats)]
    yield Figure("Adult, default: search", "CPU s", tuple(run[1] for run in default), 0.43)
    yield Figure("Adult, default: gcp", "%", tuple(run[0] for run in default), 4.60)
    for asked, seconds, loss in THOROUGH:
        for method in refinement.METHODS:
            say(f"search: {method}, {asked} s")
            point = refinement.thorough(data, K, method, asked, given)
            yield Figure(f"Adult, {point.name}", "CPU s", tuple(point.seconds), seconds)
            yield Figure(f"Adult, {point.name}: gcp", "%", tuple(point.losses), loss)


PARTS: dict[str, Callable[[Bench], Iterator[Figure]]] = {
    part.__name__: part for part in (files, sizes, start, stream, wide, closeness, search)
}


RECORDED_ELSEWHERE = ("files", "stream")


def measure(asked: Asked) -> Result:
    """Always of full size: the targets are of these tables."""
    parts = [part for part in PARTS if part not in RECORDED_ELSEWHERE]
    figures = [figure for part in parts for figure in measured(part, asked.repeats)]
    return Result("targets", TITLE, CLAIM, settings(asked, rows="Adult", k=K, seed=SEED), figures)


def measured(part: str, repeats: int) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        for figure in PARTS[part](Bench(Path(folder), repeats)):
            say(shown(figure))
            yield figure


def shown(figure: Figure) -> str:
    spread = f"{figure.median:.4g} ({min(figure.runs):.4g} to {max(figure.runs):.4g})"
    target = "" if figure.target is None else f"{figure.sense} {figure.target:g}"
    verdict = {True: "kept", False: "MISSED", None: ""}[figure.kept]
    return f"{verdict:7}{figure.what:76}{spread:32}{figure.unit:18}{target}".rstrip()


def say(stage: str) -> None:
    print(stage, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    # Python 3.11 takes the empty list for a choice where none is named
    parts = [*PARTS, []]
    parser.add_argument("parts", nargs="*", choices=parts, help="all where none is named")
    parser.add_argument("--repeats", type=int, default=3, help="runs of everything")
    asked = parser.parse_args()
    found = [figure for part in asked.parts or PARTS for figure in measured(part, asked.repeats)]
    for figure in sorted(found, key=lambda one: (one.kept is not False, one.kept is None)):
        print(shown(figure))
    print(load())


if __name__ == "__main__":
    main()
