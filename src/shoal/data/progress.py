"""How long work says what it is doing, and whether loops are being compiled."""

import inspect
import sys
from collections.abc import Callable

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


def _to_standard_error(stage: str) -> None:
    print(f"progress: {stage}", file=sys.stderr, flush=True)


def tell(progress: Progress, stage: str, done: int, total: int) -> None:
    """Says the stage, and to whoever takes them how many units are done and how many there are."""
    if _takes_counts(progress):
        progress(stage, done=done, total=total)  # type: ignore[call-arg]
    else:
        progress(stage)


def _takes_counts(progress: Progress) -> bool:
    try:
        return {"done", "total"} <= inspect.signature(progress).parameters.keys()
    except (TypeError, ValueError):  # some built-in functions tell nothing of themselves
        return False


# Whether loops are being compiled now, so that a person who waits learns why.


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
