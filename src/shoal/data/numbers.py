"""Numbers as they are written in tables: read, scaled to whole positions, and written again."""

from collections.abc import Iterable
from decimal import Context, Decimal, localcontext
from math import fsum, inf

import numpy as np
import polars as pl

from shoal.data.table import Column

# Positions stay well inside int32, so that differences and a far-off one for missing values fit.
MOST_POSITIONS = 1 << 29

FARTHEST = 1e100
"""How far from 0 a number may lie, so that distances and squared errors stay finite."""

MOST_EXACT = 1 << 53
"""Whole numbers below this are exact in every program that reads them."""


def parse_numbers(cells: tuple[str, ...]) -> np.ndarray:
    """Decimal numbers as float64, NaN for every other text."""
    text = pl.Series(cells, dtype=pl.String).str.strip_chars()
    return text.cast(pl.Float64, strict=False).to_numpy().copy()


def exact_sum(numbers: Iterable[float]) -> float:
    """The sum, correctly rounded: the same in any order and under any version of Python.

    `sum` rounds otherwise since Python 3.12. Infinite where a float can't hold it.
    """
    try:
        return fsum(numbers)
    except OverflowError:
        return inf


def weighted_sum(weights: np.ndarray, values: np.ndarray) -> float:
    """The sum of weight times value over two (n,) arrays, the same on every processor.

    The last digits of `np.dot` depend on the processor that its library picks a kernel for.
    """
    return exact_sum((weights * values).tolist())


def places_among(ascending: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """(n,) where each of these stands among ascending numbers, -1 for one that is not there."""
    if not len(ascending):
        return np.full(len(asked), -1)
    at = np.minimum(np.searchsorted(ascending, asked), len(ascending) - 1)
    return np.where(ascending[at] == asked, at, -1)


def alike(columns: Iterable[np.ndarray], records: int) -> np.ndarray:
    """(n,) int64 dense numbers, equal where records are equal in every one of these columns."""
    key = np.zeros(records, dtype=np.int64)
    for column in columns:
        least, greatest = int(column.min(initial=0)), int(column.max(initial=0))
        key = key * (greatest - least + 1) + (column.astype(np.int64) - least)
        key = np.unique(key, return_inverse=True)[1].reshape(-1)
    return key


def mean_decimals(texts: Iterable[str]) -> int:
    """Decimals of a published mean: two more than the values have.

    At most ten after the zeros of the smallest value.
    """
    numbers = [number for number in (Decimal(text.strip()) for text in texts) if number.is_finite()]
    longest = max([0, *(-int(number.as_tuple().exponent) for number in numbers)])
    zeros = max([0, *(-number.adjusted() - 1 for number in numbers if number)])
    return min(longest + 2, zeros + 10, LEAST_DECIMAL)


CERTAIN_DIGITS = 15
"""Two different numbers of as many digits are never the same float."""


def is_long(texts: Iterable[str]) -> np.ndarray:
    """(texts,) bool, numbers whose digits a float may not tell apart from another's."""
    listed = list(texts)
    if max(map(len, listed), default=0) <= CERTAIN_DIGITS:
        return np.zeros(len(listed), dtype=bool)
    numbers = pl.Series(listed, dtype=pl.String).str.replace(r"[eE].*", "")
    digits = numbers.str.replace_all(r"\D", "").str.strip_chars_start("0")
    return (digits.str.len_chars() > CERTAIN_DIGITS).to_numpy()


EXACT_DIGITS = 800
EXACT = Context(prec=EXACT_DIGITS)
"""Wide enough for any finite double beside any other, so that no end is ever rounded."""

LEAST_DECIMAL = 324
"""The place of the last decimal that a float has."""


def observed_domain(column: Column, step: float | None = None) -> tuple[float, float] | None:
    """Least and greatest number of a column, moved outward to multiples of a step if there is one;
    None where it has none.
    """
    values = parse_numbers(column.cells)
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    least, greatest = float(values.min()), float(values.max())
    if step is None:
        return least, greatest
    return float(multiple_below(least, step)), -float(multiple_below(-greatest, step))


def multiple_below(number: float | Decimal, step: float) -> Decimal:
    """The greatest multiple of a step that is not above a number."""
    exact, unit = Decimal(str(number)), Decimal(str(step))
    with localcontext(EXACT):
        multiple = exact // unit * unit  # rounded towards 0
        return multiple - unit if multiple > exact else multiple


def position_unit(values: np.ndarray, width: float) -> float:
    """The step between neighbouring positions: exact for whole numbers and short decimals."""
    for decimals in range(7):
        unit = 10.0**-decimals
        if width / unit < MOST_POSITIONS and np.allclose(
            values / unit, np.rint(values / unit), rtol=0, atol=1e-6
        ):
            return unit
    return width / MOST_POSITIONS if width > 0 else 1.0


def number_text(number: float) -> str:
    return str(int(number)) if number == int(number) else format(Decimal(str(number)), "f")


def plain_text(number: Decimal) -> str:
    """A number without exponent and without trailing zeros."""
    text = format(number, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def exact_text(text: str) -> str:
    """A number that was read, digit by digit, as `plain_text` writes it.

    Where its exponent alone puts it below what a float holds, its float: a few letters must not
    ask for gigabytes of zeros.
    """
    number = Decimal(text.strip())
    if abs(int(number.as_tuple().exponent)) > EXACT_DIGITS + len(text):
        return number_text(float(number))
    return plain_text(number)
