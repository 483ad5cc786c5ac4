"""Commands as processes that start at once and are killed at random."""

import random
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from stream_processes import in_small_pieces
from warm_interpreters import SHOAL

LONGEST = 120.0  # seconds that nothing of a trial may need


class Command:
    """One `shoal` command in a folder; what it says goes to a file there."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._error = folder / "stderr"
        with open(self._error, "wb") as said:
            order = in_small_pieces(*arguments)
            self.process = subprocess.Popen(order, cwd=folder, stderr=said)

    def status(self, seconds: float = LONGEST) -> int:
        """How it ends; raises AssertionError where it does not."""
        if not self.ended_within(seconds):
            self.kill()
            raise AssertionError("a command did not end")
        return self.process.returncode

    def ended_within(self, seconds: float) -> bool:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.process.returncode is not None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def said(self) -> str:
        return self._error.read_text()


def killed(start: Callable[[], Command], rng: random.Random, usual: float, kills: int) -> int:
    """Starts a command again and again, killed `kills` times; how it ended at last."""
    for _ in range(kills):
        command = start()
        if command.ended_within(rng.uniform(0, usual)):
            return command.status()
        command.kill()
    return start().status()


def timed(start: Callable[[], Command]) -> float:
    """Seconds that a command takes, which must end well."""
    subprocess.run([*SHOAL, "--version"], stdout=subprocess.DEVNULL)  # what it is forked from
    begun = time.monotonic()
    command = start()
    assert command.status() == 0, command.said
    return time.monotonic() - begun


def flip_a_bit(rng: random.Random, folders: list[Path]) -> Path:
    """Damages one bit of one file below these folders; returns which."""
    files = sorted(
        path
        for folder in folders
        for path in ([folder] if folder.is_file() else folder.rglob("*"))
        if path.is_file() and path.stat().st_size
    )
    path = rng.choice(files)
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)
    return path
