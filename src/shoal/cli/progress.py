"""What a person sees while something long is running."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 1.5  # seconds of silence before progress shows


@contextmanager
def shown(quiet: bool) -> Iterator[Callable[[str], None]]:
    """A function that takes the name of each stage; shows it on standard error once the work takes long.

    On a terminal a spinner with the elapsed time, elsewhere one line per stage.
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
        self._since = time.monotonic()
        self._over = threading.Event()

    def enter(self, stage: str) -> None:
        self._stage = stage

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

    def _spin(self) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(self._stage, total=None)
            while not self._over.wait(0.2):
                bar.update(task, description=self._stage)

    def _tell(self) -> None:
        if self._stage != self._told:
            self._told = self._stage
            print(f"shoal: {self._stage} ({time.monotonic() - self._since:.0f} s)", file=sys.stderr, flush=True)
