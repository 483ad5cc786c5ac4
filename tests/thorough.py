"""What `make test-all` adds: the cases that `make test` leaves out to end within minutes."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import pytest

from shoal.policy import registry

Case = TypeVar("Case")

LONG = os.environ.get("SHOAL_LONG") == "1"


def every(step: int, cases: Iterable[Case], first: int = 0) -> list[Case]:
    """Every `step`th case, from `first` on; all of them with SHOAL_LONG=1."""
    return list(cases) if LONG else list(cases)[first % step :: step]


def in_turn(turn: int, cases: Sequence[Case]) -> Sequence[Case]:
    """One of the cases, the next one each turn; all of them with SHOAL_LONG=1."""
    return cases if LONG else [cases[turn % len(cases)]]


def examples(few: int, many: int) -> int:
    """How many examples of a property: `few`, but `many` with SHOAL_LONG=1."""
    return many if LONG else few


def long_where(is_long: Callable[[Case], bool], cases: Iterable[Case]) -> list[Any]:
    """The cases as parameters of a test, marked `long` where they are."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=[pytest.mark.long] if is_long(case) else [],
        )
        for case in cases
    ]


def long_but(chosen: Case, cases: Iterable[Case]) -> list[Any]:
    """The cases as parameters of a test, all but the chosen one marked `long`."""
    return long_where(lambda case: case != chosen, cases)


def comparators_long(methods: Iterable[Any]) -> list[Any]:
    """Registered methods or their names as parameters; those of papers, with which nobody
    publishes, are marked `long`.
    """
    names = {method.name for method in registry.methods().values() if method.is_comparator}
    return long_where(lambda method: getattr(method, "name", method) in names, methods)
