"""Databases: `shoal publish` from table to table, against copying the same cells out and in."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import adult
import processes
from inputs import policy_file
from measure import ONE_THREAD, ROOT, Asked, Figure, Result, ratios, settings

TITLE = "From table to table"
CLAIM = (
    "`shoal publish` inside a database, audited in its transaction (records resampled from Adult"
    " with jitter, 6 quasi-identifiers and one sensitive column, k = 10), against a process that"
    " reads the original, in the order of its key, and the release, as text, and writes the"
    " release once more, all by the same driver. One thread; CPU seconds of the whole client"
    " process, start included."
)
ROWS = 200_000
K, SEED = 10, 1


def measure(asked: Asked) -> Result:
    rows = asked.rows or ROWS
    found = Result(
        "database",
        TITLE,
        CLAIM,
        settings(asked, rows=rows, k=K, seed=SEED, threads=1),
        notes=[
            "What the PostgreSQL server does itself is not counted.",
            "The server is PostgreSQL of Debian's packages on a socket, with fsync off.",
        ],
    )
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name, _places(Path(name)) as places:
        folder = Path(name)
        source = folder / "in.csv"
        processes.script("inputs.py", "table", source, rows, ",".join([*adult.SIX, "income"]))
        policy = policy_file(
            folder / "policy.json", adult.policy(adult.SIX, k=K) | {"other": "drop"}
        )
        files = (str(source), str(folder / "out.csv"))
        for label, (original, release, again) in places.items():
            asked.say(f"database: {label}")
            processes.script("database_floor.py", "load", source, original)
            found.figures += _compared(label, files, (original, release, again), policy, asked)
    return found


def _compared(
    label: str, files: tuple[str, str], tables: tuple[str, str, str], policy: Path, asked: Asked
) -> list[Figure]:
    original, release, again = tables
    plain: list[float] = []
    inside: list[float] = []
    floor: list[float] = []
    for turn in range(asked.repeats + 1):
        publish = ("-p", policy, "-q", "-o")
        runs = (
            processes.shoal("publish", files[0], *publish, files[1], "--replace", env=ONE_THREAD),
            processes.shoal("publish", original, *publish, release, "--replace", env=ONE_THREAD),
            processes.script("database_floor.py", "copy", original, release, again, env=ONE_THREAD),
        )
        if turn:  # the first one compiles
            for kept, run in zip((plain, inside, floor), runs, strict=True):
                kept.append(run.seconds)
    return [
        Figure(f"{label}: copied out and in", "CPU s", tuple(floor)),
        Figure(f"{label}: shoal publish", "CPU s", tuple(inside)),
        Figure(f"{label}: shoal publish over the copy", "times", ratios(inside, floor)),
        Figure(f"{label}: over shoal publish from CSV to CSV", "times", ratios(inside, plain)),
    ]


@contextmanager
def _places(folder: Path) -> Iterator[dict[str, tuple[str, str, str]]]:
    """The addresses of an original, of its release and of a copy of that, by database."""
    sys.path.append(str(ROOT / "tests"))
    from postgres_server import server, why_not

    names = ("original", "released", "copied")
    sqlite = tuple(f"sqlite:////{str(folder).lstrip('/')}/{name}.db?table=t" for name in names)
    if why_not():
        raise SystemExit(f"database: {why_not()}")
    with server() as running:
        yield {"PostgreSQL": tuple(map(running.url, names)), "SQLite": sqlite}  # type: ignore[dict-item]
