"""The command line: rooms in turn, until the time or the number of trials is over."""

import argparse
import itertools
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import TextIO

from soak import kills, ledgers, memory, peers, streams
from warm_interpreters import WarmInterpreters

Trial = Callable[[random.Random, Path], str]
SAY_EVERY = 60.0  # seconds between two counts
ROOMS: dict[str, Trial] = {
    "kills": kills.trial,
    "peers": peers.trial,
    "streams": streams.trial,
    "ledgers": ledgers.trial,
    "memory": memory.trial,
}


def one_trial(room: str, seed: int, number: int) -> tuple[str, str]:
    """What came of one trial, and what is wrong; the folder of one that failed stays."""
    folder = Path(mkdtemp(prefix=f"shoal-soak-{room}-"))
    try:
        outcome = ROOMS[room](random.Random(f"{seed}/{room}/{number}"), folder)
    except AssertionError as failed:
        return "FAILED", f"{failed}; see {folder}"
    shutil.rmtree(folder)
    return outcome, ""


def soak(
    rooms: Sequence[str], seed: int, first: int, trials: int | None, minutes: float
) -> Counter[str]:
    """Trials of each room in turn; how often each outcome came. Says at once what fails."""
    outcomes: Counter[str] = Counter()
    begun = said = time.monotonic()
    for number in itertools.count(first):
        seconds = time.monotonic() - begun
        if seconds >= minutes * 60 if trials is None else number - first >= trials:
            return outcomes
        if begun + seconds - said > SAY_EVERY:
            said = begun + seconds
            print(f"after {seconds:.0f} s:", file=sys.stderr)
            show(outcomes, sys.stderr)
        for room in rooms:
            outcome, wrong = one_trial(room, seed, number)
            outcomes[f"{room}: {outcome}"] += 1
            if wrong:
                print(f"{room}, trial {number}: {wrong}", flush=True)
                again = f"python -m soak --only {room} --seed {seed} --first {number} --trials 1"
                print(f"    again: {again}", flush=True)
    raise AssertionError("counting has no end")


def show(outcomes: Counter[str], where: TextIO) -> None:
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:6} {outcome}", file=where, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--trials", type=int, help="of each room, instead of a time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first trial")
    parser.add_argument("--only", choices=ROOMS, action="append", help="a room; repeatable")
    asked = parser.parse_args(arguments)
    outcomes = soak(asked.only or list(ROOMS), asked.seed, asked.first, asked.trials, asked.minutes)
    show(outcomes, sys.stdout)
    return int(any(outcome.endswith("FAILED") for outcome in outcomes))


if __name__ == "__main__":
    WarmInterpreters().replace(SimpleNamespace(setattr=setattr))
    sys.exit(main())
