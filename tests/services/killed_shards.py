"""Publishes a stream in shards, and is killed at one place.

killed_shards.py FOLDER PLACE CALL ENGINE

FOLDER holds `in`, `policy.json` and what is written. PLACE is a key of PLACES, or `none`; CALL says
at which time of coming there. ENGINE: `spark`, or `here` for tasks in this process.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.connectors import engines
from shoal.connectors.engines import Engine
from shoal.data.room import SharedRoom, run_task
from shoal.policy.policy import Policy
from shoal.streams import sharded
from shoal.streams.checkpoint import Checkpoint
from shoal.streams.options import StreamOptions
from shoal.streams.run import stream_file
from shoal.streams.shard_files import BatchFolder

SHARDS, BATCH_BYTES = 3, 5_000
PLACES: dict[str, tuple[Any, str, bool]] = {
    "tasks done": (SharedRoom, "each", True),
    "before the commit": (Checkpoint, "commit", False),
    "after the commit": (Checkpoint, "commit", True),
    "rows put": (BatchFolder, "put", True),
    "before the manifest": (BatchFolder, "certify", False),
    "after the manifest": (BatchFolder, "certify", True),
}
"""A function of the driver, and whether it is killed behind it."""


@dataclass
class Here:
    """Tasks in this process, one after the other."""

    cores: int = 2

    def run(self, job: str, count: int) -> Sequence[str]:
        return [run_task(job, number) for number in range(count)]


def main(folder: Path, place: str, call: int, engine: str) -> None:
    if place in PLACES:
        _kill_at(*PLACES[place], call)
    sharded.BATCH_BYTES = BATCH_BYTES
    policy = Policy.load(folder / "policy.json")
    asked = options(folder)
    here = Engine("spark", lambda ending: Here(), shards=SHARDS)
    with engines.using(here if engine == "here" else f"{engine}:{SHARDS}"):
        stream_file(asked, policy, progress=print)


def options(folder: Path) -> StreamOptions:
    checkpoint = folder / "state"
    return StreamOptions(f"{folder}/in", f"{folder}/out/", checkpoint)


def _kill_at(owner: Any, name: str, is_behind: bool, call: int) -> None:
    usual: Callable[..., Any] = getattr(owner, name)
    calls = 0

    def killed(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call and not is_behind:
            os.kill(os.getpid(), signal.SIGKILL)
        found = usual(*given, **named)
        if calls == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(owner, name, killed)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4])
