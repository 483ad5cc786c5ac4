"""Commands as processes that start at once: forked from a server that has imported everything."""

import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "soak.processes",
        "party_processes",
        "warm_parties",
        "shoal.cli.main",
        "shoal.streams.run",
        "shoal.ledgers.republish",
        "shoal.fusion.party",
        "grpc",
        "nacl.bindings",
    ]
)
LONGEST = 120.0  # seconds that nothing of a trial may need


class Command:
    """One `shoal` command in a folder; what it says goes to a file there."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._error = folder / "stderr"
        self.process = _CONTEXT.Process(
            target=_run, args=(str(folder), str(self._error), arguments), daemon=True
        )
        self.process.start()

    def status(self, seconds: float = LONGEST) -> int:
        """How it ends; raises AssertionError where it does not."""
        self.process.join(seconds)
        if self.process.is_alive():
            self.kill()
            raise AssertionError("a command did not end")
        return self.process.exitcode

    def ended_within(self, seconds: float) -> bool:
        self.process.join(seconds)
        return not self.process.is_alive()

    def kill(self) -> None:
        self.process.kill()
        self.process.join()

    @property
    def said(self) -> str:
        return self._error.read_text()


def _run(folder: str, error: str, arguments: tuple[str, ...]) -> None:
    os.chdir(folder)
    handle = os.open(error, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    os.dup2(handle, 2)
    import shoal.connectors.feeds as feeds
    from shoal.cli.main import status_of

    feeds.PIECE = 20_000  # several steps of few records
    status = status_of(list(arguments))
    sys.stderr.flush()
    os._exit(status)


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
