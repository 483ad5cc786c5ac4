"""What `SHOAL_LONG=1` adds: the cases that the tests leave out to end within ten minutes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

Case = TypeVar("Case")

LONG = os.environ.get("SHOAL_LONG") == "1"


def every(step: int, cases: Iterable[Case], first: int = 0) -> list[Case]:
    """Every so many'th case, from `first` on; all of them with SHOAL_LONG=1."""
    return list(cases) if LONG else list(cases)[first % step :: step]


def in_turn(turn: int, cases: Sequence[Case]) -> Sequence[Case]:
    """One of the cases, the next one each turn; all of them with SHOAL_LONG=1."""
    return cases if LONG else [cases[turn % len(cases)]]


def examples(few: int, many: int) -> int:
    """How many examples of a property: `few`, but `many` with SHOAL_LONG=1."""
    return many if LONG else few
