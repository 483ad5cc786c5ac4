"""Who works on a table that is too large for one process: an engine that schedules its tasks.

The engine's workers see the folder beside the table or the release that `open` makes for codes and
results. It is its owner's alone, as what lies in it is personal, and is deleted in the end; that
of a driver that was killed is deleted by the next run that writes there.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from shoal.connectors.outputs import draft_beside
from shoal.data import room
from shoal.data.room import SharedRoom, Workers
from shoal.errors import InputError, of_extra

LIMIT = 2_000_000_000
"""Bytes of memory for the driver and for each task, unless --memory says more or less."""

ENGINES = ("spark",)
MOST_SHARDS = 4096

_asked: "ContextVar[Engine | None]" = ContextVar("engine", default=None)


@dataclass
class Engine:
    """What was asked for.

    start: makes workers when the first table is opened, and says how they end. most: records that a
    task cuts to the end; by default, as many as the limit and the cores ask for. shards: streams
    that people are divided among.
    """

    name: str
    start: Callable[[ExitStack], Workers]
    most: int | None = None
    shards: int | None = None
    _open: ExitStack = field(default_factory=ExitStack)
    _workers: Workers | None = None

    @property
    def limit(self) -> int:
        """Bytes of memory for the driver, and for each task."""
        return room.limit() or LIMIT

    def room(self, beside: str | Path) -> SharedRoom:
        """A place for a table's codes. beside: whose folder all workers see."""
        if self._workers is None:
            self._workers = self.start(self._open)
        draft = draft_beside(Path(beside).absolute(), f"output '{beside}'", is_folder=True)
        try:
            folder = self._open.enter_context(draft)
        except InputError:
            raise InputError(
                f"engine: beside '{beside}' no folder can be made for codes, which all workers see;"
                " make it writable, or name a table elsewhere"
            ) from None
        return SharedRoom(self.limit, folder, self._workers, self.most)


def asked() -> Engine | None:
    """The engine that works on tables; None where this process does."""
    return _asked.get()


@contextmanager
def using(name: str | Engine | None) -> Iterator[None]:
    """An engine works on tables inside the block; raises InputError for a name that none has."""
    engine = _named(name) if isinstance(name, str) else name
    token = _asked.set(engine)
    try:
        yield
    except InputError as refused:
        if engine is None:
            raise
        raise _about_engine(refused) from None
    finally:
        _asked.reset(token)
        if engine is not None:
            engine._open.close()


def _named(text: str) -> Engine:
    name, colon, shards = text.partition(":")
    if name not in ENGINES:
        raise InputError(f"engine '{name}': is not known; choose {' or '.join(ENGINES)}")
    if colon and not (re.fullmatch("[0-9]{1,4}", shards) and 1 <= int(shards) <= MOST_SHARDS):
        raise InputError(f"engine '{text}': needs a number of shards from 1 to {MOST_SHARDS}")
    return Engine(name, _start_spark, shards=int(shards) if colon else None)


def _about_engine(refused: InputError) -> InputError:
    """A refusal past memory in the words of an engine, which is refused the same."""
    remedy = "leave out --memory"
    return InputError.from_findings(
        [
            f"engine:{line.removeprefix('memory:').replace(remedy, 'leave out --engine')}"
            if remedy in line and line.startswith("memory:")
            else line
            for line in refused.said
        ]
    )


def _start_spark(ending: ExitStack) -> Workers:
    with of_extra("engine 'spark': needs Java 17 with PySpark", "spark"):
        from shoal.connectors.spark import SparkWorkers
    workers = SparkWorkers.started()
    ending.callback(workers.close)
    return workers
