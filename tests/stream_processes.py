"""Streams as real processes, killed again and again."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable


def killed_until_done(
    start: Callable[[], subprocess.Popen],
    within: tuple[float, float],
    times: int,
    patience: float = 60,
    seed: int = 5,
) -> None:
    """Starts a process and kills it at an instant `within` these seconds, `times` over at most,
    until it ends well.

    It is killed once at least.
    """
    instants, kills = random.Random(seed), 0
    while True:
        process = start()
        try:
            assert (
                process.wait(timeout=instants.uniform(*within) if kills < times else patience) == 0
            )
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
    assert kills
