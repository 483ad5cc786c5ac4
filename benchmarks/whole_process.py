"""Whole process: `shoal publish` from CSV to CSV against Polars reading and writing the same
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
    " jitter, 6 quasi-identifiers and one sensitive column, k = 10), against a Polars process that"
    " reads the same input, its types guessed, and writes the published table, held in memory, as"
    " CSV. One thread each; CPU seconds and peak memory of the whole process, start included."
)
ROWS = (1_000_000, 10_000_000)
SETTINGS = {"default": (), "preset=paper": ("--set", "preset=paper")}
MOST_SECONDS, MOST_SECONDS_OF_LARGE, MOST_MEMORY = 3.0, 2.2, 3.0
SEED = 1
K = 10


def measure(asked: Asked) -> Result:
    sizes = (asked.rows,) if asked.rows else ROWS
    found = Result(
        "whole_process",
        TITLE,
        CLAIM,
        settings(asked, rows=list(sizes), k=K, seed=SEED, threads=1),
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
        ],
    )
    for rows in sizes:
        found.figures += _sized(rows, asked)
    return found


def _sized(rows: int, asked: Asked) -> list[Figure]:
    used: dict[str, list[processes.Usage]] = {name: [] for name in SETTINGS}
    polars: list[tuple[float, int]] = []
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name:
        folder = Path(name)
        source, published, again = folder / "in.csv", folder / "published.csv", folder / "again.csv"
        policy = policy_file(folder / "policy.json", adult.policy(adult.SIX, k=K))
        asked.say(f"whole_process: making {rows:,} records")
        processes.script("inputs.py", "table", source, rows, ",".join([*adult.SIX, "income"]))
        # compiled, cached
        processes.shoal("publish", source, "-p", policy, "-o", published, "-q", env=ONE_THREAD)
        processes.script("inputs.py", "arrow", folder / "published.arrow", published)
        for turn in range(asked.repeats):
            asked.say(f"whole_process: {rows:,} records, turn {turn + 1} of {asked.repeats}")
            for label, more in SETTINGS.items():
                arguments = (
                    "publish",
                    source,
                    "-p",
                    policy,
                    "-o",
                    published,
                    "-q",
                    "--replace",
                    *more,
                )
                used[label].append(processes.shoal(*arguments, env=ONE_THREAD))
            bare = processes.script(
                "polars_floor.py", source, folder / "published.arrow", again, env=ONE_THREAD
            )
            polars.append((bare.seconds - bare.said["loading"], bare.said["peak_reading"]))
    most = MOST_SECONDS_OF_LARGE if rows >= ROWS[-1] else MOST_SECONDS
    return _figures(f"{rows:,} records", used, polars, most)


def _figures(
    size: str,
    used: dict[str, list[processes.Usage]],
    polars: list[tuple[float, int]],
    most_seconds: float,
) -> list[Figure]:
    seconds, peak = (list(values) for values in zip(*polars, strict=True))
    figures = [
        Figure(f"{size}: Polars, read and write", "CPU s", tuple(seconds)),
        Figure(f"{size}: Polars, peak memory of reading", "MB", tuple(p / 1e6 for p in peak)),
    ]
    for label, runs in used.items():
        ours, peaks = [run.seconds for run in runs], [run.peak for run in runs]
        figures += [
            Figure(f"{size}: shoal publish, {label}", "CPU s", tuple(ours)),
            Figure(
                f"{size}: {label} over Polars, CPU", "times", ratios(ours, seconds), most_seconds
            ),
            Figure(
                f"{size}: shoal publish, {label}, peak memory", "MB", tuple(p / 1e6 for p in peaks)
            ),
            Figure(
                f"{size}: {label} over Polars, peak memory",
                "times",
                ratios(peaks, peak),
                MOST_MEMORY,
            ),
        ]
    return figures
