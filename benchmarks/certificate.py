"""Certificates: what writing one adds to publishing, and what verifying it takes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import adult
import processes
from inputs import policy_file
from measure import ONE_THREAD, Asked, Figure, Result, settings

TITLE = "Certificates"
CLAIM = (
    "CPU seconds of `publish` in one warm process (Adult, 8 quasi-identifiers, k = 10, and the same"
    " resampled to a million records), with the share of it that only the certificate needs, and of"
    " `verify` over `publish`: from the two files, with the policy, and beside the original."
)
SIZES = {"Adult": 0, "1,000,000 records": 1_000_000}
K = 10
TARGET = 3.0


def measure(asked: Asked) -> Result:
    sizes = SIZES if asked.rows is None else {f"{asked.rows:,} records": asked.rows}
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name:
        figures = [
            figure
            for words, rows in sizes.items()
            for figure in _figures(Path(name), asked, words, rows)
        ]
    return Result(
        "certificate",
        TITLE,
        CLAIM,
        settings(asked, rows=asked.rows or "Adult and 1,000,000", k=K, seed=0, threads=1),
        figures,
        notes=[
            (
                "`verify` of the two files reads the release, hashes it and groups its rows; with"
                " the policy it is an audit, and beside the original an audit that compares every"
                " cell with the truth. Starting Python and importing is in none of the figures."
            )
        ],
    )


def _figures(folder: Path, asked: Asked, words: str, rows: int) -> list[Figure]:
    source, out = folder / f"{rows}.csv", folder / f"{rows}.out.csv"
    processes.script("inputs.py", "table", source, rows, ",".join([*adult.EIGHT, "income"]))
    policy = policy_file(folder / "policy.json", adult.policy(adult.EIGHT, k=K))
    runs = []
    for turn in range(asked.repeats):
        asked.say(f"certificate: {words}, turn {turn + 1} of {asked.repeats}")
        call = ("certificate_call.py", source, policy, out)
        runs.append(processes.script(*call, env=ONE_THREAD).said)
    shares = {
        "the certificate in it": [sum(run["certificate"].values()) for run in runs],
        "verify, the two files": [run["verify"]["alone"] for run in runs],
        "verify, with the policy": [run["verify"]["policy"] for run in runs],
        "verify, beside the original": [run["verify"]["original"] for run in runs],
    }
    figures = [Figure(f"{words}: publish", "CPU s", tuple(run["publish"] for run in runs))]
    for what, seconds in shares.items():
        share = tuple(
            100 * spent / run["publish"] for spent, run in zip(seconds, runs, strict=True)
        )
        is_asked = what in ("the certificate in it", "verify, the two files")
        figures.append(
            Figure(f"{words}: {what}", "% of publish", share, TARGET if is_asked else None)
        )
    return figures
