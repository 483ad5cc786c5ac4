"""Streams as real processes, killed again and again."""

import json
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from shoal.policy import registry
from warm_interpreters import COMMAND

SMALL_PIECES = f"import sys, shoal.connectors.feeds as f; f.PIECE = 20_000; {COMMAND}"
"""What an interpreter runs as a command: a stream in several steps of few records each."""

METHODS = sorted(method.name for method in registry.methods().values() if method.verb == "stream")


def killed_at_work(
    start: Callable[[], subprocess.Popen], checkpoint: Path, times: int, seed: int = 5
) -> None:
    """Kills a stream at most `times` times, each time soon after it has committed another step, and
    lets it end at last.

    It is killed once at least.
    """
    instants, seen, kills = random.Random(seed), 0, 0
    for _ in range(times):
        process = start()
        while process.poll() is None and commits(checkpoint) <= seen:
            time.sleep(0.005)
        time.sleep(instants.uniform(0, 0.05))
        kills += process.poll() is None
        process.kill()
        process.wait()
        seen = commits(checkpoint)
    assert kills
    assert start().wait(timeout=120) == 0


def commits(checkpoint: Path) -> int:
    """The steps that a stream has committed, by its status."""
    status = checkpoint / "status.json"
    return json.loads(status.read_text())["commits"] if status.exists() else 0
