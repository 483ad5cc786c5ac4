"""Warm up methods before they are timed; on a new machine, in two processes at once.

Numba compiles one function at a time in a process, and keeps the code on disk. So once something
has to be compiled, a second process warms up the same methods from the last one on: where the two
meet, each loads what the other has compiled.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread
from typing import cast

from shoal.advise.compared_methods import label_of
from shoal.data import cores
from shoal.data.classes import Classes
from shoal.data.matrix import Matrix
from shoal.data.progress import Progress
from shoal.data.uncompiled import always
from shoal.errors import InfeasibleError, InputError
from shoal.policy.policy import Policy
from shoal.recoding.recode import find_classes


@dataclass(frozen=True)
class Trial:
    """A few records, on which every one of these methods runs once.

    compiled: whether all their loops are compiled, or only those that can't run without.
    """

    matrix: Matrix
    whole_table: Classes
    policies: tuple[Policy, ...]
    compiled: bool = True

    def run(self, policy: Policy) -> None:
        # whoever asks for the method gets the reason
        with always(self.compiled), suppress(InfeasibleError, InputError):
            find_classes(self.matrix, self.whole_table, policy)


def warm_up(trial: Trial, progress: Progress) -> None:
    """Runs every method once, so that nothing compiles or loads while time is taken."""
    waiting = list(trial.policies)
    with _helped(trial, waiting):
        while waiting:
            policy = waiting.pop(0)
            progress(f"warming up {label_of(policy)}")
            trial.run(policy)


@contextmanager
def _helped(trial: Trial, waiting: Sequence[Policy]) -> Iterator[None]:
    """Starts the second process when something is compiled while other methods still wait."""
    from numba.core import event

    helpers: list[subprocess.Popen[bytes]] = []

    class Compiling(event.Listener):
        is_first = cores.threads() > 1 and not getattr(sys, "frozen", False)

        def on_start(self, event: object) -> None:
            if self.is_first and waiting:
                self.is_first = False
                with suppress(OSError, pickle.PicklingError, AttributeError, TypeError):
                    helpers.append(_start(pickle.dumps(trial)))  # at worst, nobody helps

        def on_end(self, event: object) -> None: ...

    try:
        with event.install_listener("numba:compile", Compiling()):
            yield
    finally:
        for helper in helpers:
            helper.kill()
            helper.wait()


def _start(trial: bytes) -> subprocess.Popen[bytes]:
    helper = subprocess.Popen(
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    Thread(target=helper.communicate, args=(trial,), daemon=True).start()
    return helper


def main() -> None:
    trial = cast(Trial, pickle.load(sys.stdin.buffer))
    for policy in reversed(trial.policies):
        trial.run(policy)


if __name__ == "__main__":
    main()
