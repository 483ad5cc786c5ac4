"""Comparisons at a threshold, without rounding."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

ROOM = 2**62
"""Integers below this never overflow int64 when two of them are added."""

NEARLY = 1e-9
"""Values closer to a threshold than this are compared with exact integers."""


def sign(left: np.ndarray, right: np.ndarray, factor: Fraction) -> np.ndarray:
    """-1, 0 or 1 where left is below, equal to or above factor * right, elementwise; (m,) int8.

    left, right: (m,) whole numbers >= 0, int64 or Python integers (object). Exact in all cases: the
    products are 64-bit integers where they fit, else Python integers wherever floats can't tell.
    """
    if not len(left):
        return np.zeros(0, dtype=np.int8)
    p, q = factor.numerator, factor.denominator
    fits = left.dtype != object and max(q * int(left.max()), p * int(right.max())) < ROOM
    if fits:
        return np.sign(left * q - right * p).astype(np.int8)
    lower, upper = left.astype(np.float64), right.astype(np.float64) * float(factor)
    result = np.sign(lower - upper).astype(np.int8)
    for i in np.flatnonzero(np.abs(lower - upper) <= NEARLY * np.maximum(lower, upper)):
        difference = q * int(left[i]) - p * int(right[i])
        result[i] = (difference > 0) - (difference < 0)
    return result
