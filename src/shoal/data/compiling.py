"""Whether loops are being compiled now, so that a person who waits learns why."""

from __future__ import annotations

from collections.abc import Callable


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
