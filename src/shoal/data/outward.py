"""Domains of numbers that go beyond what was seen, so that they show nobody's own value."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np

from shoal.data.single_ends import step_of

OLDEST = 120


def outward_domain(numbers: np.ndarray, words: Sequence[str] = ()) -> list[int | float]:
    """Least and greatest number that is possible, as far as those that are seen tell.

    A column named `age` within 0 to 120 takes just that. Others end at multiples of a step, a
    twentieth of what is seen or a little more: one step further out where that is the seen extreme
    itself, but not below 0 where nothing is. numbers: (n,) float64, at least two different ones.
    words: of the column's name.
    """
    least, greatest = float(numbers.min()), float(numbers.max())
    if "age" in words and least >= 0 and greatest <= OLDEST:
        return [0, OLDEST]
    step = Decimal(f"{step_of(greatest - least):.0e}")
    if (numbers == np.rint(numbers)).all():
        step = max(step, Decimal(1))
    low, high = Decimal(str(least)), Decimal(str(greatest))
    below = (low / step).to_integral_value(ROUND_FLOOR) * step
    above = (high / step).to_integral_value(ROUND_CEILING) * step
    below -= step if below == low else 0
    above += step if above == high else 0
    return [_short(max(below, Decimal(0)) if least >= 0 else below), _short(above)]


def _short(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)
