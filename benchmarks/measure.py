"""What every benchmark shares: figures with their spread and target, and where they were
measured.
"""

from __future__ import annotations

import hashlib
import os
import platform
import statistics
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import adult

ROOT = Path(__file__).resolve().parent.parent
SHARED = (
    "two cores, shared with other work: compare CPU seconds and ratios of one run, never wall time"
)
ONE_THREAD = {"POLARS_MAX_THREADS": "1", "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

Say = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """What a run was asked for. rows: None takes each benchmark's own sizes."""

    rows: int | None = None
    repeats: int = 3
    say: Say = print


@dataclass(frozen=True)
class Figure:
    """One measured quantity, its runs, and the target beside it.

    sense: how the median must lie to `target`: at most, below, at least.
    """

    what: str
    unit: str
    runs: tuple[float, ...]
    target: float | None = None
    sense: str = "at most"

    @property
    def median(self) -> float:
        return statistics.median(self.runs)

    @property
    def kept(self) -> bool | None:
        """Whether the median, as shown, keeps the target; None without one."""
        if self.target is None:
            return None
        shown = rounded(self.median)
        return {
            "at most": shown <= self.target,
            "below": shown < self.target,
            "at least": shown >= self.target,
        }[self.sense]

    def as_json(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "what": self.what,
            "unit": self.unit,
            "median": rounded(self.median),
            "least": rounded(min(self.runs)),
            "most": rounded(max(self.runs)),
            "runs": [rounded(run) for run in self.runs],
        }
        if self.target is not None:
            content |= {"target": self.target, "sense": self.sense, "kept": self.kept}
        return content


@dataclass
class Result:
    """What one benchmark found. rows: a table of its own where figures alone don't tell it."""

    name: str
    title: str
    claim: str
    settings: dict[str, Any]
    figures: list[Figure] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "figures": [figure.as_json() for figure in self.figures]}


def rounded(value: float) -> float:
    """Four significant digits: more would only be noise."""
    return float(f"{value:.4g}")


def ratios(above: Sequence[float], below: Sequence[float]) -> tuple[float, ...]:
    """Run by run, since runs that alternate share their moment."""
    return tuple(a / b for a, b in zip(above, below, strict=True))


def settings(asked: Asked, **more: Any) -> dict[str, Any]:
    """Commit, versions, machine and data, and what the benchmark adds."""
    return {
        "commit": _git("rev-parse", "--short", "HEAD"),
        "uncommitted_source": bool(_git("status", "--porcelain", "--", "src")),
        "python": platform.python_version(),
        **{name: version(name) for name in ("shoal", "numba", "numpy", "polars")},
        "system": platform.system(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "machine": SHARED,
        "data": "Adult, complete training records",
        "data_sha256": (
            hashlib.sha256((adult.DATA / "adult" / "adult.data").read_bytes()).hexdigest()[:16]
        ),
        "repeats": asked.repeats,
        **more,
    }


def load() -> str:
    """How busy the machine was in the end, as a note."""
    busy = f"{os.getloadavg()[0]:.0f}" if hasattr(os, "getloadavg") else "unknown"
    return (
        f"Load average when this was done: {busy} on {os.cpu_count()} cores. Caches that are shared"
        " make CPU seconds longer than on an idle machine, too."
    )


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()
