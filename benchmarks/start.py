"""Start: the help, a small table from file to file, and the first run of all."""

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
    " a machine that never ran it."
)
K = 10
IMPORTS = "import numpy, numba, polars"


def measure(asked: Asked) -> Result:
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name:
        folder = Path(name)
        figures = [*help_and_floor(asked.repeats), *_adult(folder, asked)]
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


def _adult(folder: Path, asked: Asked) -> list[Figure]:
    source, out = folder / "adult.csv", folder / "published.csv"
    processes.script(
        "inputs.py", "table", source, asked.rows or 0, ",".join([*adult.EIGHT, "income"])
    )
    policy = policy_file(folder / "policy.json", adult.policy(adult.EIGHT, k=K))
    publish = ("publish", source, "-p", policy, "-o", out, "-q")

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
        Figure("Adult from file to file, warm", "CPU s", warm, 1.5),
        Figure("the same, first run, nothing compiled", "CPU s", tuple(from_nothing), 6.0),
        Figure(
            "the same, first run, only the kernels not compiled", "CPU s", tuple(from_kernels), 6.0
        ),
    ]
