"""Committed rows: missing ones are added, others measured again, and all are judged and drawn anew.

Rows keep the commit and the hash of the code that measured them. Where that code has changed since,
rows are measured again: all columns but times have to come out the same, and the hash of today's
code is noted beside the other one, with how many rows it was tried on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import isclose
from pathlib import Path
from typing import Any

from shoal.errors import InputError
from shoal_papers.reproduce.harness import last_commit, measured, written
from shoal_papers.reproduce.paper import Bench, DataSet, Paper, Row
from shoal_papers.reproduce.rows import ROWS, RowFile
from shoal_papers.reproduce.source import source_hash
from shoal_papers.reproduce.verdict_report import Again, Provenance

CLOCK = ("seconds", "scoring", "secure_rounds", "instructions", "delay", "repeats")
"""How the columns begin that no run repeats exactly."""

Progress = Callable[[str], None]


def load(folder: Path) -> tuple[Provenance, list[Row]]:
    """Where the rows of a paper's folder come from, and the rows."""
    content = json.loads((folder / "results.json").read_text("utf-8"))
    again = content.get("again")
    provenance = Provenance(
        content["shoal"],
        content["commit"],
        content["source"],
        DataSet(**content["data"]),
        content["is_quick"],
        Again(**again) if again else None,
    )
    return provenance, content["rows"]


def is_current(paper: Paper, provenance: Provenance) -> bool:
    """Whether the rows were measured, or some of them again, with today's code."""
    today = source_hash(paper.code)
    again = provenance.again
    return today == provenance.source or (again is not None and today == again.source)


def differing(row: Row, found: Row) -> list[str]:
    """The columns, times aside, in which a row comes out otherwise."""
    return sorted(
        column
        for column in row.keys() & found.keys()
        if not column.startswith(CLOCK) and not _equal(row[column], found[column])
    )


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float | int):
        return isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return bool(one == other)


def cheapest(rows: Iterable[Row]) -> list[Row]:
    """The rows, those that took least time first, each time one of every method."""
    waiting = sorted(rows, key=lambda row: row.get("seconds", 0) * row.get("repeats", 1))
    ordered: list[Row] = []
    while waiting:
        first = {row.get("method", ""): row for row in reversed(waiting)}
        taken = {id(row) for row in first.values()}
        ordered += [row for row in waiting if id(row) in taken]
        waiting = [row for row in waiting if id(row) not in taken]
    return ordered


def renew(
    paper: Paper, folder: Path, data: Path | None, seconds: float, progress: Progress
) -> list[Path]:
    """Adds the rows that the grid asks for and the folder lacks, measures others again for so many
    CPU seconds, and writes all files anew; without seconds, only what is there is judged and drawn.

    Raises InputError where a row comes out otherwise than it was committed.
    """
    provenance, rows = load(folder)
    if seconds:
        bench = paper.bench(data, False)
        if bench.data.sha256 != provenance.data.sha256:
            raise InputError(f"paper '{paper.name}': its rows were measured on other data")
        known, missing = _in_grid(paper, rows)
        today = replace(provenance, source=source_hash(paper.code))
        added = RowFile(folder / ROWS)  # so that they are not lost where this is interrupted
        known += measured(missing, bench, added, today, progress)
        repeated = sum(1 for _ in _repeated(bench, rows, seconds))
        progress(f"{paper.name}: {repeated} rows came out as committed")
        earlier = provenance.again.added if provenance.again else 0
        again = Again(last_commit(), source_hash(paper.code), earlier + len(missing), repeated)
        provenance, rows = replace(provenance, again=again), _ordered(paper, known)
        added.clear()
    paths = list(written(folder, paper, provenance, rows))
    for table in folder.glob("*.csv"):
        table.unlink()  # the rows are in results.json
    return [path for path in paths if path.exists()]


def _in_grid(paper: Paper, rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The rows that the grid asks for, and the settings that have none."""
    known: list[Row] = []
    missing: list[Row] = []
    for setting in paper.grid(False):
        found = [row for row in rows if setting.items() <= row.items()]
        (known if found else missing).append(found[0] if found else setting)
    return known, missing


def _ordered(paper: Paper, rows: Sequence[Row]) -> list[Row]:
    return _in_grid(paper, rows)[0]


def _repeated(bench: Bench, rows: Sequence[Row], seconds: float) -> Iterator[Row]:
    """The rows that fit into so many CPU seconds, each measured again; raises InputError."""
    once: Any = bench
    if hasattr(bench, "repeats"):
        once = replace(once, repeats=1)
    started = _used()
    for row in cheapest(rows):
        if _used() - started > seconds:
            return
        columns = differing(row, once.measure(row))
        if columns:
            raise InputError(
                f"{', '.join(columns)} of a committed row come out otherwise: {dict(row)}"
            )
        yield row


def _used() -> float:
    """CPU seconds of this process and of those that it started and that have ended."""
    return sum(os.times()[:4])
