"""How many cores a run may use. Nothing that it publishes depends on them.

The number is known to the whole run, not passed from hand to hand: a method's result is the same
for any number, so it is not a parameter of a method.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral
from typing import TypeVar

from shoal.errors import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")

POLARS_THREADS = "POLARS_MAX_THREADS"
LARGE = 1 << 16
"""Records from which threads are worth starting."""

MOST_THREADS = 256
"""However few cores there are."""

_asked: ContextVar[int | None] = ContextVar("threads", default=None)


def available() -> int:
    """The cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads() -> int:
    """How many threads may work at once; at least 1."""
    return _asked.get() or available()


@contextmanager
def using(asked: int | None) -> Iterator[None]:
    """This number of threads in the block, or the process's cores. InputError for 0 or too many."""
    if asked is not None and (isinstance(asked, bool) or not isinstance(asked, Integral)):
        raise InputError("threads: must be a whole number; give 1 or more, or leave it out")
    if asked is not None and asked < 1:
        raise InputError(f"threads: {asked} can't work; give 1 or more, or leave it out")
    if asked is not None and asked > (most := max(MOST_THREADS, available())):
        raise InputError(f"threads: more than {most} only wait for one another; give fewer")
    if asked is not None and "polars" not in sys.modules:
        os.environ.setdefault(POLARS_THREADS, str(asked))  # it counts cores when it is loaded
    token = _asked.set(asked)
    try:
        yield
    finally:
        _asked.reset(token)


def side_by_side(
    function: Callable[[Item], Result], items: Iterable[Item], records: int
) -> list[Result]:
    """The function of each item, in their order, on as many threads as may work.

    For functions that spend their time in NumPy or a kernel, which hold no lock of Python's.
    records: of the table; a small one is done before a thread has started.
    """
    items = list(items)
    workers = min(threads(), len(items)) if records >= LARGE else 1
    if workers < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))


@contextmanager
def beside(function: Callable[[Item], Result], item: Item) -> Iterator[Callable[[], Result]]:
    """The function at work while the block runs, if two threads may; yields what gives its result.

    With one thread it is done before the block.
    """
    if threads() == 1:
        done = function(item)
        yield lambda: done
        return
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(function, item).result
