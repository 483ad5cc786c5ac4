"""Processes that are measured: CPU seconds and peak memory, as the system counted them for that
process alone.

A process inherits the peak memory of the one that started it, so a launcher of a few megabytes
stands between. One that is to have one thread gets one core, since Shoal starts a thread for each.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SHOAL = (sys.executable, "-m", "shoal")
_LAUNCHER = """
import os, resource, sys
if os.environ.get("POLARS_MAX_THREADS") == "1" and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
number = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, used = os.wait4(number, 0)
with open(sys.argv[1], "w") as file:
    code = os.waitstatus_to_exitcode(status)
    file.write(f"{code} {used.ru_utime + used.ru_stime} {used.ru_maxrss}")
"""
_PEAK_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Usage:
    """seconds: CPU, user and system. peak: largest resident size, bytes. output: what it
    printed.
    """

    seconds: float
    peak: int
    output: str

    @property
    def said(self) -> dict[str, Any]:
        """What a script of ours reported, as JSON on its last line."""
        return json.loads(self.output.splitlines()[-1])


# what a user has who installed it: .pyc files are kept, whatever the environment of this run says
_INHERITED = {
    name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
}


def run(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, timeout: float | None = None
) -> Usage:
    """Runs a command to its end; raises RuntimeError with its last words where it fails or takes
    too long.
    """
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        report = Path(folder) / "usage"
        # -E: variables that are meant for the child, such as an empty cache, must not meet the
        # launcher
        launched = subprocess.Popen(
            [sys.executable, "-S", "-E", "-c", _LAUNCHER, str(report), *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**_INHERITED, **(env or {})},
            cwd=folder,
            start_new_session=True,
        )
        try:
            output, errors = launched.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(launched.pid, signal.SIGKILL)
            launched.communicate()
            raise RuntimeError(f"not done after {timeout:g} s of wall time") from None
        except BaseException:
            os.killpg(launched.pid, signal.SIGKILL)
            launched.communicate()
            raise
        status, seconds, peak = report.read_text().split() if report.exists() else ("-1", "0", "0")
    if int(status) != 0:
        last = (errors.strip().splitlines() or ["no word"])[-1]
        raise RuntimeError(f"ended with status {status}: {last}")
    return Usage(float(seconds), int(peak) * _PEAK_UNIT, output)


def script(name: str, *arguments: object, env: Mapping[str, str] | None = None) -> Usage:
    """Runs a script of this folder."""
    return run([sys.executable, str(HERE / name), *map(str, arguments)], env=env)


def shoal(*arguments: object, env: Mapping[str, str] | None = None) -> Usage:
    """Runs the command as a user does, in a process of its own."""
    return run([*SHOAL, *map(str, arguments)], env=env)
