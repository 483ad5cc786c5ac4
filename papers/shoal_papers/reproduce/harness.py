"""Runs a paper's grid, one row after the other, and writes down what came out.

Each row is on disk before the next one starts. A run that was interrupted or killed goes on where
it stopped; rows that other settings, another version, other code or other data gave are left alone
and measured anew under their own fingerprint.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from shoal.connectors.files import atomic_write
from shoal.errors import InputError
from shoal.version import VERSION
from shoal_papers.reproduce import verdict_report
from shoal_papers.reproduce.drawing import draw
from shoal_papers.reproduce.paper import Bench, Paper, Row, Setting
from shoal_papers.reproduce.rows import ROWS, RowFile, as_csv, fingerprint
from shoal_papers.reproduce.source import PACKAGES, source_hash
from shoal_papers.reproduce.verdict_report import Provenance

Progress = Callable[[str], None]


def run(
    paper: Paper, out: Path, *, quick: bool, data: Path | None, fresh: bool, progress: Progress
) -> list[Path]:
    """Measures what is not measured yet, and writes tables, figures and verdicts into `out`."""
    progress(f"{paper.name}: reading the data")
    bench = paper.bench(data, quick)
    provenance = Provenance(VERSION, last_commit(), source_hash(paper.code), bench.data, quick)
    _make_folder(out)
    file = RowFile(out / ROWS)
    if fresh:
        file.clear()
    rows = measured(paper.grid(quick), bench, file, provenance, _named(progress, paper.name))
    progress(f"{paper.name}: judging and drawing")
    return [file.path, *written(out, paper, provenance, rows)]


def measured(
    grid: Sequence[Setting], bench: Bench, file: RowFile, provenance: Provenance, progress: Progress
) -> list[Row]:
    """A row for every setting, in the order of the grid."""
    finished = file.load()
    surroundings = {
        "shoal": provenance.shoal,
        "source": provenance.source,
        "data": provenance.data.sha256,
    }
    surroundings["records"] = str(provenance.data.records)
    marks = [fingerprint(setting, surroundings) for setting in grid]
    missing = sum(mark not in finished for mark in marks)
    if finished:
        progress(f"{len(grid) - missing} of {len(grid)} runs are finished already")
    for i, (mark, setting) in enumerate(zip(marks, grid, strict=True)):
        if mark not in finished:
            progress(f"run {i + 1} of {len(grid)}: {_words(setting)}")
            finished[mark] = {**setting, **bench.measure(setting)}
            file.append(mark, finished[mark])
    return [finished[mark] for mark in marks]


def _words(setting: Setting) -> str:
    """The setting on one line: texts speak for themselves, numbers need their name."""
    words = (
        value if isinstance(value, str) else f"{name} = {value}" for name, value in setting.items()
    )
    return ", ".join(word for word in words if word)


def written(out: Path, paper: Paper, provenance: Provenance, rows: Sequence[Row]) -> Iterator[Path]:
    """Judges the rows, and writes tables, figures and verdicts into `out`; the files."""
    judged = verdict_report.judge(paper, rows)
    yield _whole(out / "results.csv", as_csv(rows))
    yield _whole(out / "results.json", verdict_report.as_json(paper, provenance, rows, judged))
    for figure in paper.figures:
        yield _whole(out / f"{figure.name}.svg", draw(figure, judged[0].view, provenance.note))
    yield _whole(out / "verdicts.md", verdict_report.as_markdown(paper, provenance, judged))


def _whole(path: Path, text: str) -> Path:
    with atomic_write(str(path)) as draft:
        draft.write_text(text, encoding="utf-8")
    return path


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as failed:
        raise InputError(
            f"output '{out}': no folder can be made there ({failed.strerror}); name another one"
        ) from None


def _named(progress: Progress, name: str) -> Progress:
    return lambda stage: progress(f"{name}: {stage}")


def last_commit() -> str | None:
    """The last commit that changed Shoal or this package, None outside a checkout."""
    here, changed = str(Path(__file__).parent), map(str, PACKAGES.values())
    command = ["git", "-C", here, "log", "-1", "--format=%h", "--", *changed]
    try:
        said = subprocess.run(
            command, capture_output=True, text=True, timeout=10, check=True
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
    return said or None
