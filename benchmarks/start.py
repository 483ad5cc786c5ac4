"""Start: the help, a small table from file to file, and the first runs of all verbs."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import adult
import processes
from inputs import policy_file
from measure import Asked, Figure, Result, settings

TITLE = "Start"
CLAIM = (
    "CPU seconds of the whole process: the help; Adult (30,162 records, 8 quasi-identifiers, k ="
    " 10) from CSV to CSV with audit and certificate, once everything is compiled; and the same on"
    " a machine that never ran it; and there each verb on its bundled sample (1,000 records)."
)
K = 10
SEED = 7
# each with its sample, and how long its first run may take, on an idle core at most that long
VERBS = (
    ("publish", "patients", 6.0),
    ("stream", "purchases", 10.0),
    ("republish", "wearables", 10.0),
    ("fuse", "bank", 10.0),
    ("compare", "patients", 20.0),
)
IMPORTS = "import numpy, numba, polars"


def measure(asked: Asked) -> Result:
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name:
        folder = Path(name)
        figures = [*help_and_floor(asked.repeats), *_samples(folder, asked), *_adult(folder, asked)]
    return Result(
        "start",
        TITLE,
        CLAIM,
        settings(asked, rows=asked.rows or "Adult", k=K, seed=0, threads="as a user gets them"),
        figures,
        notes=[
            (
                "First run: NUMBA_CACHE_DIR and PYTHONPYCACHEPREFIX lead to empty folders, so every"
                " kernel and every Python file, the standard library's included, is compiled anew:"
                " more than a fresh machine has to do, since pip compiles what it installs. With"
                " only the kernels missing it is the next line."
            ),
            (
                "First runs of the samples: only the kernels are missing. Plain Python goes through"
                " loops that it finishes sooner than they would be compiled, so little is compiled;"
                " `shoal compare` compiles in two processes, so that its clock shows half of the"
                " seconds. The targets are of clock on two idle cores. `shoal fuse`: three"
                " processes, all seconds added."
            ),
            (
                "Taken in an environment with what `pip install shoal` brings. Where SciPy is"
                " beside, Numba imports part of it: a tenth of a second more in every process."
            ),
            f"The bare interpreter and `python -c '{IMPORTS}'` show what nobody can go below.",
        ],
    )


def help_and_floor(repeats: int) -> list[Figure]:
    processes.shoal("--help")  # .pyc files
    shown = tuple(processes.shoal("--help").seconds for _ in range(repeats))
    bare = tuple(processes.run([sys.executable, "-c", "pass"]).seconds for _ in range(repeats))
    libraries = tuple(
        processes.run([sys.executable, "-c", IMPORTS]).seconds for _ in range(repeats)
    )
    return [
        Figure("python, nothing else", "CPU s", bare),
        Figure("python with NumPy, Numba and Polars imported", "CPU s", libraries),
        Figure("shoal --help", "CPU s", shown, 0.3),
    ]


def _samples(folder: Path, asked: Asked) -> list[Figure]:
    """The first run of each verb on its sample, and the next; kernels alone are not compiled."""
    for sample in ("patients", "purchases", "wearables", "bank"):
        processes.shoal("sample", sample, "--seed", SEED, "-o", folder / f"{sample}.csv", "-q")
    figures = []
    for verb, sample, seconds in VERBS:
        asked.say(f"start: first runs of shoal {verb}")
        first: list[float] = []
        next_ones: list[float] = []
        for _ in range(asked.repeats):
            with tempfile.TemporaryDirectory(dir=folder) as fresh:
                for turn, runs in enumerate((first, next_ones)):
                    command = _command(verb, folder / sample, Path(fresh) / str(turn))
                    env = {"NUMBA_CACHE_DIR": f"{fresh}/kernels"}
                    runs.append(processes.shoal(*command, env=env).seconds)
        figures += [
            Figure(f"shoal {verb}, {sample}, first run", "CPU s", tuple(first), seconds),
            Figure(f"shoal {verb}, {sample}, second run", "CPU s", tuple(next_ones)),
        ]
    return figures


def _command(verb: str, sample: Path, out: Path) -> list[object]:
    out.mkdir()
    table, policy = f"{sample}.csv", f"{sample}.policy.yaml"
    if verb == "fuse":
        return [verb, f"{sample}.parties.yaml", "-o", out / "out.csv", "-q"]
    asked: dict[str, list[object]] = {
        "publish": ["-o", out / "out.csv"],
        "stream": ["-o", out / "out.csv", "--checkpoint", out / "state"],
        "republish": ["--ledger", out / "ledger"],
        "compare": [],
    }
    return [verb, table, "-p", policy, *asked[verb], "-q"]


def _adult(folder: Path, asked: Asked) -> list[Figure]:
    source, out = folder / "adult.csv", folder / "published.csv"
    processes.script(
        "inputs.py", "table", source, asked.rows or 0, ",".join([*adult.EIGHT, "income"])
    )
    policy = policy_file(folder / "policy.json", adult.policy(adult.EIGHT, k=K))
    publish = ("publish", source, "-p", policy, "-o", out, "-q", "--replace")

    def first(*empty: str) -> float:
        with tempfile.TemporaryDirectory(dir=folder) as fresh:
            return processes.shoal(
                *publish, env={variable: f"{fresh}/{variable}" for variable in empty}
            ).seconds

    asked.say("start: first runs")
    from_nothing, from_kernels = [], []
    for _ in range(asked.repeats):
        from_nothing.append(first("NUMBA_CACHE_DIR", "PYTHONPYCACHEPREFIX"))
        from_kernels.append(first("NUMBA_CACHE_DIR"))
    asked.say("start: warm runs")
    processes.shoal(*publish)
    warm = tuple(processes.shoal(*publish).seconds for _ in range(asked.repeats))
    return [
        Figure("Adult from file to file, warm", "CPU s", warm, 0.9),
        Figure("the same, first run, nothing compiled", "CPU s", tuple(from_nothing), 6.0),
        Figure(
            "the same, first run, only the kernels not compiled", "CPU s", tuple(from_kernels), 6.0
        ),
    ]
