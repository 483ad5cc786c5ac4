"""Whole process: `shoal publish` from file to file against Polars reading and writing the same
files.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import adult
import processes
from inputs import policy_file
from measure import ONE_THREAD, Asked, Figure, Result, ratios, settings

TITLE = "From file to file"
CLAIM = (
    "`shoal publish` from CSV to CSV, with audit and certificate (records resampled from Adult with"
    " jitter, 8 quasi-identifiers and one sensitive column, k = 10), against a Polars process that"
    " reads the same input, its types guessed, and writes the published table, held in memory, as"
    " CSV. One thread each; CPU seconds and peak memory of the whole process, start included."
)
# records, what is sensitive, times of Polars at most
CASES = ((1_000_000, "income", 2.6), (10_000_000, "income", 1.9), (1_000_000, "amounts", 3.5))
OF_PARQUET, MOST_SECONDS_OF_PARQUET, MOST_MEMORY = 1_000_000, 3.0, 3.0
SEED = 1
K = 10
COLUMNS = ",".join([*adult.EIGHT, "income"])


def measure(asked: Asked) -> Result:
    found = Result(
        "whole_process",
        TITLE,
        CLAIM,
        settings(asked, rows=asked.rows or [case[0] for case in CASES], k=K, seed=SEED, threads=1),
        notes=[
            (
                "Shoal reads the input, hashes it, encodes, partitions, recodes, writes, reads the"
                " written file back, hashes and audits it, and compares it with the original."
                " Polars only reads one table and writes the other."
            ),
            (
                "How the published table came to be in memory is not counted: the seconds of"
                " loading it are taken off, and Polars' peak is that of reading the input, before"
                " it. Holding both tables would cost it more."
            ),
            "Amounts: whole cents, of a million records 630,000 different ones.",
        ],
    )
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name:
        for rows, sensitive, most in CASES:
            found.figures += _over_polars(asked.rows or rows, sensitive, most, Path(name), asked)
        found.figures.append(_parquet(asked.rows or OF_PARQUET, Path(name), asked))
    return found


def _over_polars(
    rows: int, sensitive: str, most: float, folder: Path, asked: Asked
) -> list[Figure]:
    what = f"{rows:,} records, {sensitive}"
    source, published, again = folder / "in.csv", folder / "published.csv", folder / "again.csv"
    asked.say(f"whole_process: making {what}")
    kind = "table" if sensitive == "income" else sensitive
    processes.script("inputs.py", kind, source, rows, COLUMNS)
    _published(source, published)  # compiled, cached
    processes.script("inputs.py", "arrow", folder / "published.arrow", published)
    used: list[processes.Usage] = []
    seconds, peaks = [], []
    for turn in range(asked.repeats):
        asked.say(f"whole_process: {what}, turn {turn + 1} of {asked.repeats}")
        used.append(_published(source, published))
        bare = processes.script(
            "polars_floor.py", source, folder / "published.arrow", again, env=ONE_THREAD
        )
        seconds.append(bare.seconds - bare.said["loading"])
        peaks.append(bare.said["peak_reading"])
    ours, memory = [run.seconds for run in used], [run.peak for run in used]
    return [
        Figure(f"{what}: Polars, read and write", "CPU s", tuple(seconds)),
        Figure(f"{what}: Polars, peak memory of reading", "MB", tuple(p / 1e6 for p in peaks)),
        Figure(f"{what}: shoal publish", "CPU s", tuple(ours)),
        Figure(f"{what}: over Polars, CPU", "times", ratios(ours, seconds), most),
        Figure(f"{what}: shoal publish, peak memory", "MB", tuple(p / 1e6 for p in memory)),
        Figure(f"{what}: over Polars, peak memory", "times", ratios(memory, peaks), MOST_MEMORY),
    ]


def _parquet(rows: int, folder: Path, asked: Asked) -> Figure:
    source, published = folder / "in.parquet", folder / "published.parquet"
    adult.records(rows, [*adult.EIGHT, "income"]).write_parquet(source)
    _published(source, published)
    asked.say(f"whole_process: {rows:,} records, Parquet")
    runs = tuple(_published(source, published).seconds for _ in range(asked.repeats))
    what = f"{rows:,} records, income: shoal publish, Parquet to Parquet"
    return Figure(what, "CPU s", runs, MOST_SECONDS_OF_PARQUET)


def _published(source: Path, out: Path) -> processes.Usage:
    policy = policy_file(source.with_name("policy.json"), adult.policy(adult.EIGHT, k=K))
    command = ("publish", source, "-p", policy, "-o", out, "-q", "--replace")
    return processes.shoal(*command, env=ONE_THREAD)
