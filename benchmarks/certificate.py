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
    " resampled to ten million records), with the share of it that only the certificate needs, and"
    " of `verify` over `publish`: from the two files, with the policy, and beside the original."
    " The floor of a verification is what hashing the release takes, and reading it once."
)
SIZES = {"Adult": 0, "10,000,000 records": 10_000_000}
K = 10
BOTH = "the certificate in it, and verify of the two files"
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
        settings(asked, rows=asked.rows or "Adult and 10,000,000", k=K, seed=0, threads=1),
        figures,
        notes=[
            (
                "`verify` of the two files reads the release, hashes it and groups its rows; with"
                " the policy it is an audit, and beside the original an audit that compares every"
                " cell with the truth. Starting Python and importing is in none of the figures."
            ),
            (
                "Finding classes takes so little on large tables that reading the release once is"
                " already above the target; what trusts the hash alone would be below it, but would"
                " find no figure that was forged together with it."
            ),
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
    certificate = [sum(run["certificate"].values()) for run in runs]
    alone = [run["verify"]["alone"] for run in runs]
    shares = {
        BOTH: [a + b for a, b in zip(certificate, alone, strict=True)],
        "the certificate in it": certificate,
        "verify, the two files": alone,
        "floor: only hashing the release": [run["floor"]["hash"] for run in runs],
        "floor: only reading it as text, by Polars": [run["floor"]["read"] for run in runs],
        "verify, with the policy": [run["verify"]["policy"] for run in runs],
        "verify, beside the original": [run["verify"]["original"] for run in runs],
    }
    figures = [Figure(f"{words}: publish", "CPU s", tuple(run["publish"] for run in runs))]
    for what, seconds in shares.items():
        share = tuple(
            100 * spent / run["publish"] for spent, run in zip(seconds, runs, strict=True)
        )
        target = TARGET if what == BOTH else None
        figures.append(Figure(f"{words}: {what}", "% of publish", share, target))
    return figures
