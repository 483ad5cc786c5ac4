"""What a person sees while something long is running."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shoal.data.compiling import watched_compiler

PATIENCE = 1.5  # seconds of silence before progress shows
REPEAT = 10.0  # seconds until a stage that lasts is said again
COMPILER = "numba.core.dispatcher"
COMPILING = "compiling for this machine, once ('shoal warmup' does it beforehand)"


@contextmanager
def shown(quiet: bool) -> Iterator[Callable[[str], None]]:
    """A function that takes the name of each stage; shows it on standard error once the work takes
    long.

    On a terminal a spinner with the elapsed time, elsewhere a line per stage and every ten seconds.
    """
    if quiet:
        yield lambda stage: None
        return
    watcher = _Watcher()
    watcher.start()
    try:
        yield watcher.enter
    finally:
        watcher.stop()


class _Watcher(threading.Thread):
    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._stage, self._told = "starting", ""
        self._since = self._told_at = time.monotonic()
        self._over = threading.Event()
        self._compiling: Callable[[], int] | None = None

    def enter(self, stage: str, done: int | None = None, total: int | None = None) -> None:
        is_said = total is None or done is None or " of " in stage
        self._stage = stage if is_said else f"{stage}, {done} of {total} done"

    def stop(self) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        if self._over.wait(PATIENCE):
            return
        if sys.stderr.isatty():
            self._spin()
        while not self._over.wait(0.2):
            self._tell()

    def _doing(self) -> str:
        if self._compiling is None and COMPILER in sys.modules:  # else nothing compiles, or not yet
            self._compiling = watched_compiler()
        return (
            f"{self._stage}; {COMPILING}"
            if self._compiling is not None and self._compiling() > 0
            else self._stage
        )

    def _spin(self) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(self._doing(), total=None)
            while not self._over.wait(0.2):
                bar.update(task, description=self._doing())

    def _tell(self) -> None:
        doing, now = self._doing(), time.monotonic()
        is_new = doing not in (self._told, self._told.removesuffix(f"; {COMPILING}"))
        if is_new or now - self._told_at >= REPEAT:
            self._told, self._told_at = doing, now
            print(
                f"shoal: {doing} ({now - self._since:.0f} s)",
                file=sys.stderr,
                flush=True,
            )
