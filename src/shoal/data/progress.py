"""How long work says what it is doing."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], None]


def no_progress(stage: str) -> None:
    """Progress that nobody watches."""
