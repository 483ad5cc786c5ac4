"""Counts and times for Prometheus, in a text file that its node exporter collects: no value of the
data. Every figure has the label `run`, the file's name, so that figures of several files differ.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from shoal.connectors import files
from shoal.errors import InputError

SUFFIX = ".prom"

Figure = float | None | Mapping[str, float]
"""A number, None where there is none yet, or one for each `state`."""

Figures = Mapping[str, tuple[str, Figure]]
"""What a metric counts, and its figure, by its name behind `shoal_`."""

_asked: ContextVar[tuple[Path, dict[str, tuple[str, Figure]]] | None]
_asked = ContextVar("metrics", default=None)


def are_asked() -> bool:
    """Whether what is noted goes to a file."""
    return _asked.get() is not None


@contextmanager
def using(path: Path | None) -> Iterator[None]:
    """What is noted inside the block goes to this file, and at its end how it ended."""
    if path is None:
        yield
        return
    if path.suffix != SUFFIX:
        raise InputError(f"--metrics '{path}': exporters read {SUFFIX} alone; end its name with it")
    files.check_writable(str(path))
    token = _asked.set((path, {}))
    started, has_succeeded = time.time(), True
    try:
        note({"run_started_timestamp_seconds": ("When the run began.", started)})
        yield
    except BaseException as end:
        has_succeeded = getattr(end, "exit_code", 1) == 0
        raise
    finally:
        now = time.time()
        note(
            {
                "run_success": ("Whether the run ended with status 0.", float(has_succeeded)),
                "run_ended_timestamp_seconds": ("When the run ended.", now),
            }
        )
        _asked.reset(token)


def note(figures: Figures) -> None:
    """Adds figures of the run to its file, replaced whole; a disk that refuses it stops no run."""
    asked = _asked.get()
    if asked is None:
        return
    path, known = asked
    known.update(figures)
    run = re.sub(r'[\\"\n]', "_", path.stem)
    lines = []
    for name, (words, figure) in known.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# HELP shoal_{name} {words}", f"# TYPE shoal_{name} {kind}"]
        if isinstance(figure, Mapping):
            lines += [
                f'shoal_{name}{{run="{run}",state="{state}"}} {value}'
                for state, value in figure.items()
            ]
        elif figure is not None:
            lines.append(f'shoal_{name}{{run="{run}"}} {figure}')
    with suppress(OSError, InputError), files.atomic_write(str(path)) as draft:
        draft.write_text("\n".join([*lines, ""]), encoding="utf-8")
