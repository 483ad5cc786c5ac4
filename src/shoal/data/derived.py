"""What follows from published cells: the ends of what each shows, their middle, its mean."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Context, Decimal, localcontext

import numpy as np

from shoal.data.notation import PLAIN, PublishedNumbers
from shoal.data.numbers import EXACT_DIGITS, exact_text, plain_text
from shoal.data.release import PublishedColumn
from shoal.data.schema import Render

PARTS = ("lo", "hi", "mid", "mean")
_EXACT = Context(prec=EXACT_DIGITS)
_NUMBER = f"({PLAIN.number})"
_BIN = re.compile(rf"\[{_NUMBER}, {_NUMBER}\)")
_VALUE = re.compile(_NUMBER)
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)([T ].*)?")
_MONTH = re.compile(r"(\d{4})-(\d\d)")
_QUARTER = re.compile(r"(\d{4})-Q([1-4])")
_YEAR = re.compile(r"\d{4}")
_DECADE = re.compile(r"(\d{3})0s")
_NOTHING = ("", "", "")


@dataclass(frozen=True)
class Spans:
    """By distinct cell, the texts of what it shows; "" where it does not show it.

    Dates are ISO, numbers have a decimal point.
    """

    lo: Sequence[str]
    hi: Sequence[str]
    mid: Sequence[str]
    mean: Sequence[str]

    def part(self, name: str) -> Sequence[str]:
        """One of `PARTS`."""
        return getattr(self, name)


def spans_of_numbers(column: PublishedColumn, render: Render) -> Spans:
    """The ends of numbers and intervals, their middle, and the means that are shown.

    They are taken from the cells' own digits: a float may have fewer.
    """
    nothing = [""] * len(column.cells)
    of_cell = PublishedNumbers.of(PLAIN, render)
    shown = [
        _numbers_in(cell, of_cell) if np.isfinite(least) else _NOTHING
        for cell, least in zip(column.cells, column.lo, strict=True)
    ]
    means = nothing if column.means is None else [numbers[0] for numbers in shown]
    if column.observed_bounds is not None:  # a mean alone hides its interval
        return Spans(nothing, nothing, nothing, means)
    lo, hi = [numbers[-2] for numbers in shown], [numbers[-1] for numbers in shown]
    return Spans(lo, hi, [_middle(*ends) for ends in zip(lo, hi, strict=True)], means)


def spans_of_bins(cells: Sequence[str]) -> Spans:
    """The ends of bins, of which the upper one is excluded, and of values."""
    ends = [_bin_ends(cell) for cell in cells]
    return _spans(ends, [_middle(*pair) for pair in ends])


def spans_of_dates(cells: Sequence[str]) -> Spans:
    """The first and last day of days and calendar periods, and the day in the middle."""
    ends = [_days(cell) for cell in cells]
    middles = [
        "" if days is None else (days[0] + (days[1] - days[0]) // 2).isoformat() for days in ends
    ]
    texts = [("", "") if d is None else (d[0].isoformat(), d[1].isoformat()) for d in ends]
    return _spans(texts, middles)


def _spans(ends: Sequence[tuple[str, str]], middles: Sequence[str]) -> Spans:
    return Spans([lo for lo, _ in ends], [hi for _, hi in ends], middles, [""] * len(ends))


def _numbers_in(cell: str, published: PublishedNumbers) -> tuple[str, str, str]:
    """Mean, least and greatest number that a cell shows, "" for none; a value is all three."""
    texts = [exact_text(number) for number in published.numbers(cell)]
    if len(texts) == 3:
        return texts[0], texts[1], texts[2]
    if len(texts) == 2:
        return "", texts[0], texts[1]
    return (texts[0], texts[0], texts[0]) if texts else _NOTHING


def _middle(lo: str, hi: str) -> str:
    if not lo or not hi:
        return ""
    with localcontext(_EXACT):
        return plain_text((Decimal(lo) + Decimal(hi)) / 2)


def _bin_ends(cell: str) -> tuple[str, str]:
    text = cell.strip()
    if _VALUE.fullmatch(text):
        return text, text
    found = _BIN.fullmatch(text)
    return ("", "") if found is None else (found[1], found[2])


def _days(cell: str) -> tuple[date, date] | None:
    """First and last day of what a cell of the maker `dates` names; None where it is not a date."""
    text = cell.strip()
    try:
        if found := _DAY.fullmatch(text):
            day = date.fromisoformat(found[1])
            return day, day
        if found := _MONTH.fullmatch(text):
            return _months(int(found[1]), int(found[2]), 1)
        if found := _QUARTER.fullmatch(text):
            return _months(int(found[1]), 3 * int(found[2]) - 2, 3)
        if _YEAR.fullmatch(text):
            return _months(int(text), 1, 12)
        if found := _DECADE.fullmatch(text):
            return date(10 * int(found[1]), 1, 1), date(10 * int(found[1]) + 9, 12, 31)
    except ValueError:
        pass
    return None


def _months(year: int, month: int, count: int) -> tuple[date, date]:
    """So many months from one on, all in the same year."""
    after = month + count
    last = date(year, 12, 31) if after > 12 else date(year, after, 1) - timedelta(days=1)
    return date(year, month, 1), last
