"""`shoal` commands as processes of their own."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from warm_interpreters import SHOAL

HOW_TO = Path(__file__).resolve().parents[1] / "docs" / "how-to"
Process = subprocess.Popen[str]


def started(folder: Path, *order: str, **more) -> Process:
    """A command that runs in a folder, and what it says as an error is kept."""
    command = [*SHOAL, *order]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, **more)


@contextmanager
def running(folder: Path, *order: str, **more) -> Iterator[Process]:
    """A command that runs in a folder, at most until the block ends."""
    process = started(folder, *order, **more)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def ended(folder: Path, *order: str) -> subprocess.CompletedProcess[str]:
    """A command that has run in a folder, and what it said."""
    return subprocess.run([*SHOAL, *order], cwd=folder, capture_output=True, text=True)


def how_to(name: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A script of the how-tos that has run in a folder, with the command as this very source has
    it.
    """
    programs = folder / "bin"
    programs.mkdir()
    for program, call in (("shoal", "-m shoal "), ("python3", "")):
        (programs / program).write_text(f'#!/bin/sh\nexec "{sys.executable}" {call}"$@"\n')
        (programs / program).chmod(0o755)
    paths = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    found = subprocess.run(
        ["sh", str(HOW_TO / name)],
        cwd=folder,
        env={**os.environ, **environment, "PATH": paths},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr
    return found


def until(happens: Callable[[], Any], process: Process, seconds: int = 60) -> Any:
    """What happens at last while the command runs."""
    for _ in range(seconds * 100):
        if found := happens():
            return found
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    raise AssertionError("it never came")
