"""How long work says what it is doing."""

from __future__ import annotations

import inspect
from collections.abc import Callable

Progress = Callable[[str], None]
"""Takes the name of each stage; one with parameters `done` and `total` gets both by name where
they are known."""


def no_progress(stage: str) -> None:
    """Progress that nobody watches."""


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
