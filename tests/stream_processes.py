"""Streams as real processes, killed again and again."""

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from sample_policies import PURCHASES
from shoal.policy import registry
from shoal.samples import purchases
from warm_interpreters import COMMAND

METHODS = sorted(method.name for method in registry.methods().values() if method.verb == "stream")


def open_shop(folder: Path, rows: int, delta: int = 300) -> None:
    """Purchases as p.csv, and policy.yaml."""
    purchases.generate(rows, 2).write_csv(folder / "p.csv")
    (folder / "policy.yaml").write_text(PURCHASES.replace("delta: 1000", f"delta: {delta}"))


def in_small_pieces(*words: str, piece: int = 20_000) -> list[str]:
    """What runs a command, of a stream in several steps of few records each."""
    code = f"import sys, shoal.connectors.feeds as f; f.PIECE = {piece}; {COMMAND}"
    return [sys.executable, "-c", code, *words]


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
