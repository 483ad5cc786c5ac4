"""How long work says what it is doing, and whether loops are being compiled."""

import inspect
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache

COMPILING = "compiling for this machine, once ('shoal warmup' does it beforehand)"

Progress = Callable[[str], None]
"""Takes the name of each stage; one with parameters `done` and `total` gets both by name where
they are known."""


def no_progress(stage: str) -> None:
    """Progress that nobody watches."""


def watched(progress: Progress | bool) -> Progress:
    """What is told of each stage; `True` writes the stages to standard error."""
    if callable(progress):
        return progress
    return _to_standard_error if progress else no_progress


def _to_standard_error(stage: str, done: int | None = None, total: int | None = None) -> None:
    with suppress(OSError):  # the work goes on where nobody can watch it
        print(f"progress: {counted(stage, done, total)}", file=sys.stderr, flush=True)


MOST_TOLD = 1_000

in_python = False
"""Whether the public names are used, and not the command line, which itself says what it does."""


@cache
def say_compiling() -> None:
    """Writes to standard error, once in a process, why a first call takes so long."""
    with suppress(OSError):
        print(f"shoal: {COMPILING}", file=sys.stderr, flush=True)


def tell(progress: Progress, stage: str, done: int, total: int) -> None:
    """Says the stage, with how many units are done and how many there are where these are taken; of
    very many units, says only some.
    """
    if done % (1 + total // MOST_TOLD):
        return
    if _takes_counts(progress):
        progress(stage, done=done, total=total)  # type: ignore[call-arg]
    else:
        progress(stage)


def counted(stage: str, done: int | None, total: int | None) -> str:
    """The stage with how much of it is done, where that is known and it does not say so."""
    is_said = total is None or done is None or " of " in stage
    return stage if is_said else f"{stage}, {done} of {total} done"


def _takes_counts(progress: Progress) -> bool:
    try:
        return {"done", "total"} <= inspect.signature(progress).parameters.keys()
    except (TypeError, ValueError):  # some built-in functions tell nothing of themselves
        return False


# Whether loops are being compiled now, so that a person who waits learns why.


COMPILER = "numba.core.dispatcher"


class CompilerWatch:
    """Whether Numba compiles something, as soon as it is loaded, which this does not do."""

    def __init__(self) -> None:
        self._compiling: Callable[[], int] | None = None

    @property
    def is_compiling(self) -> bool:
        if self._compiling is None and COMPILER in sys.modules:
            self._compiling = watched_compiler()
        return self._compiling is not None and self._compiling() > 0


def watched_compiler() -> Callable[[], int]:
    """A function that tells how many functions Numba is compiling now; what comes from its cache is
    not compiled.
    """
    from numba.core import event

    class Compiling(event.Listener):
        functions = 0

        def on_start(self, event: object) -> None:
            self.functions += 1

        def on_end(self, event: object) -> None:
            self.functions = max(self.functions - 1, 0)  # one may have begun before this listened

    listener = Compiling()
    event.register("numba:compile", listener)
    return lambda: listener.functions
