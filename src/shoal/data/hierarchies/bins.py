"""Numbers in intervals."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, localcontext
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from shoal.data.hierarchies.edits import is_whole
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.hierarchies.paths import refuse_values_without_leaf
from shoal.data.numbers import EXACT, plain_text
from shoal.data.option import parameter
from shoal.errors import InputError

MOST_DIGITS = 320

TAKES = (
    "hierarchy maker 'bins' takes ascending bounds, such as [0, 20, 40], or {width: 10, start: 0,"
    " factor: 2, levels: 3}"
)


@dataclass(frozen=True)
class Bins:
    """`17 -> [0, 20) -> *`: the leaves are the values, the groups half-open intervals.

    Either between given edges, one level; or `levels` levels of intervals that begin at `start`,
    the first of them `width` wide and every further one `factor` times as wide as the one below. A
    value below the first edge or `start`, at or above the last edge, or no decimal number, is an
    error.
    """

    kind: ClassVar[str] = "bins"
    by_value: ClassVar[bool] = True
    unmatched_message: ClassVar[str] = (
        "[is not a number or lies|are not numbers or lie] outside the bins; widen these (those of a"
        " width begin at 'start'), or correct the data"
    )

    edges: tuple[Decimal, ...] = parameter("bounds of the intervals, ascending", default=())
    width: Decimal | None = parameter("width of the narrowest intervals", default=None)
    start: Decimal = parameter("where the first interval begins", default=Decimal(0))
    factor: int = parameter("intervals of one level in one of the next", default=2, low=2)
    levels: int = parameter("levels of intervals", default=1, low=1, high=64)

    @classmethod
    def from_spec(cls, argument: Any) -> "Bins":
        """`{bins: [0, 20, 40, 60]}` or `{bins: {width: 10, start: 0, factor: 2, levels: 3}}`."""
        if isinstance(argument, list | tuple):
            return cls(edges=_edges(argument))
        if isinstance(argument, dict):
            return _of_mapping(argument)
        raise InputError(TAKES)

    def values_without_leaf(self, values: np.ndarray) -> np.ndarray:
        """Which values are not numbers or lie outside the bins; (n,) bool."""
        return np.array([not self._holds(_number(value)) for value in values], dtype=bool)

    def make(self, values: np.ndarray) -> Hierarchy:
        """Every distinct value under its intervals, by number; without values the root alone."""
        refuse_values_without_leaf(self, values)
        numbers = sorted((Decimal(value), value) for value in set(values))
        with localcontext(EXACT):
            paths = [[value, *self._intervals(number), "*"] for number, value in numbers]
        return Hierarchy.from_paths(paths or [["*"]])

    def _holds(self, number: Decimal | None) -> bool:
        if number is None:
            return False
        return self.edges[0] <= number < self.edges[-1] if self.edges else number >= self.start

    def _intervals(self, number: Decimal) -> list[str]:
        if self.edges:
            i = bisect_right(self.edges, number)
            return [_interval(self.edges[i - 1], self.edges[i])]
        assert self.width is not None
        labels, width = [], self.width
        for _ in range(self.levels):
            low = self.start + (number - self.start) // width * width
            labels.append(_interval(low, low + width))
            width *= self.factor
        return labels


def _of_mapping(argument: dict[str, Any]) -> Bins:
    known = ("width", "start", "factor", "levels")
    problems = [f"unknown key '{key}'" for key in argument if key not in known]
    width, start = _number(argument.get("width")), _number(argument.get("start", 0))
    factor, levels = argument.get("factor", 2), argument.get("levels", 1)
    if width is None or width <= 0:
        problems.append("'width' must be a number above 0")
    if start is None:
        problems.append("'start' must be a number")
    if not is_whole(factor, 2, 1_000_000):
        problems.append("'factor' must be a whole number of at least 2")
    if not is_whole(levels, 1, 64):
        problems.append("'levels' must be a whole number from 1 to 64")
    if problems or start is None:
        raise InputError(f"{TAKES}: {'; '.join(problems)}")
    return Bins(width=width, start=start, factor=factor, levels=levels)


def _edges(argument: Sequence[Any]) -> tuple[Decimal, ...]:
    edges = [_number(edge) for edge in argument]
    known = tuple(edge for edge in edges if edge is not None)
    if len(known) < max(len(edges), 2) or any(low >= high for low, high in pairwise(known)):
        raise InputError(TAKES)
    return known


def _number(text: Any) -> Decimal | None:
    """The decimal number in a text or of a YAML number; None where it is none or has no end."""
    if isinstance(text, bool) or not isinstance(text, str | int | float) or "_" in str(text):
        return None
    try:
        number = Decimal(str(text))
    except InvalidOperation:
        return None
    if not number.is_finite():
        return None
    _, digits, exponent = number.as_tuple()
    return (
        number if isinstance(exponent, int) and abs(exponent) + len(digits) <= MOST_DIGITS else None
    )


def _interval(low: Decimal, high: Decimal) -> str:
    return f"[{plain_text(low)}, {plain_text(high)})"
