"""Counts and times for Prometheus, in a text file that its node exporter collects: no value of the
data. Every figure has the label `run`, the file's name, so that figures of several files differ.
"""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from shoal.connectors import files
from shoal.data.warnings import ReleaseWarning, warn
from shoal.errors import InputError

SUFFIX = ".prom"
HELP = "# HELP shoal_"
STOPPED = 130  # the status of a run that the same command resumes

Figure = float | None | Mapping[str, float]
"""A number, None where there is none yet, or one for each `state`."""

Figures = Mapping[str, tuple[str, Figure]]
"""What a metric counts, and its figure, by its name behind `shoal_`."""

_asked: ContextVar[tuple[Path, dict[str, str], list[str]] | None]
_asked = ContextVar("metrics", default=None)
"""The file, what it holds by name, and why it could not be written, while that lasts."""


def are_asked() -> bool:
    return _asked.get() is not None


@contextmanager
def using(path: Path | None) -> Iterator[None]:
    """What is noted inside the block goes to this file, and at its end how it ended.

    Figures of the run before stay until they are noted again, but for its success. A run that a
    user stopped and that the same command resumes has not failed.
    """
    if path is None:
        yield
        return
    if path.suffix != SUFFIX:
        raise InputError(f"--metrics '{path}': exporters read {SUFFIX} alone; end its name with it")
    files.check_writable(str(path))
    token = _asked.set((path, _earlier(path), []))
    has_succeeded, success = True, "Whether the run ended well; absent until then."
    try:
        began = {"run_started_timestamp_seconds": ("When the run began.", time.time())}
        note({**began, "run_success": (success, None)})  # who is killed changes nothing more
        yield
    except BaseException as end:
        status = getattr(end, "exit_code", getattr(end, "code", 1))
        has_succeeded = status in (0, STOPPED)
        raise
    finally:
        ended = {"run_ended_timestamp_seconds": ("When the run ended.", time.time())}
        note({**ended, "run_success": (success, float(has_succeeded))})
        _asked.reset(token)


def _earlier(path: Path) -> dict[str, str]:
    """The lines of each figure that an earlier run left in the file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return {}
    return {part.split(" ", 1)[0]: f"{HELP}{part}" for part in text.split(HELP)[1:]}


def note(figures: Figures) -> None:
    """Adds figures of the run to its file, replaced whole. A disk that refuses it stops no run;
    that is said, and the file removed, since old figures would hide how this run does.
    """
    asked = _asked.get()
    if asked is None:
        return
    path, known, lost = asked
    run = re.sub(r'[\\"\n]', "_", path.stem)
    for name, (words, figure) in figures.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines = [f"{HELP}{name} {words}", f"# TYPE shoal_{name} {kind}"]
        if isinstance(figure, Mapping):
            lines += [
                f'shoal_{name}{{run="{run}",state="{state}"}} {value}'
                for state, value in figure.items()
            ]
        elif figure is not None:
            lines.append(f'shoal_{name}{{run="{run}"}} {figure}')
        known[name] = "\n".join([*lines, ""])
    try:
        with files.atomic_write(str(path)) as draft:
            draft.write_text("".join(known.values()), encoding="utf-8")
        lost.clear()
        with suppress(OSError):  # the exporter is another user, whatever umask guards a checkpoint
            path.chmod(0o644)
    except (OSError, InputError) as failed:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        if not lost:
            lost.append(getattr(failed, "strerror", None) or "no space or no permission")
            left = "and its old figures stay" if path.exists() else "so the file is removed"
            text = f"metrics '{path}': can't be written ({lost[0]}), {left}; free some space"
            warn(ReleaseWarning("metrics", text))
