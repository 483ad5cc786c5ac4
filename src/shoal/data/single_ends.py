"""Ends of published intervals that are the true value of exactly one person of their class."""

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import NamedTuple

import numpy as np

from shoal.data.classes import Classes
from shoal.data.encoding import EncodedAttribute
from shoal.data.numbers import number_text, parse_numbers
from shoal.data.release import PublishedColumn, Release
from shoal.data.room import IN_MEMORY, blocks
from shoal.data.schema import Kind, Render
from shoal.data.truth import Truth
from shoal.data.warnings import ReleaseWarning

SINGLE_ENDS = "single-ends"
NOT_KNOWN: Mapping[str, np.ndarray] = {}
BINS = "A hierarchy of 'bins' hides them"
TOLERATED = 0.5
"""The share above which such ends are warned of."""


class Ends(NamedTuple):
    """How many classes show an interval, and how many of its ends are one person's own value."""

    intervals: int
    single: int


def single_ends(release: Release, truth: Truth) -> dict[str, Ends]:
    """By number without a hierarchy, the ends of its intervals."""
    return {
        encoded.attribute.name: _ends(published, truth.values(encoded), release.classes)
        for published, encoded in zip(release.columns, truth.encoded.attributes, strict=True)
        if encoded.attribute.kind is Kind.NUMBER and encoded.attribute.hierarchy is None
    }


def shares_of_ends(parts: Sequence[Mapping[str, Ends]]) -> dict[str, float]:
    """The share of all ends, over the parts of a release; 0 without any interval."""
    shares = {}
    for name in parts[0] if parts else ():
        intervals, single = map(sum, zip(*(part[name] for part in parts), strict=True))
        shares[name] = single / (2 * intervals) if intervals else 0.0
    return shares


def _ends(published: PublishedColumn, values: np.ndarray, classes: Classes) -> Ends:
    is_interval = np.isfinite(published.lo) & np.isfinite(published.hi)
    is_interval &= published.lo < published.hi
    shows_interval = np.zeros(classes.count + 1, dtype=bool)  # last, for records in no class
    # NaN equals no value, so nobody is at the end of a cell that is not an interval
    ends = np.where(is_interval, np.stack([published.lo, published.hi]), np.nan)
    at_end = np.empty((2, len(values)), dtype=bool)
    for rows in blocks(len(values)):
        cells = published.codes[rows]
        shows_interval[classes.labels[rows][IN_MEMORY.gather(is_interval, cells)]] = True
        for end in (0, 1):
            at_end[end, rows] = values[rows] == IN_MEMORY.gather(ends[end], cells)
    intervals = np.count_nonzero(shows_interval[:-1])
    return Ends(int(intervals), sum(_shown_alone(classes, rows) for rows in at_end))


def _shown_alone(classes: Classes, at_end: np.ndarray) -> int:
    """In how many classes exactly one person has a value at the end of the interval."""
    rows = np.flatnonzero(at_end)
    labels = classes.labels[rows].astype(np.int64)
    rows, labels = rows[labels >= 0], labels[labels >= 0]
    if classes.subjects is not None and len(rows):
        people = classes.subjects[rows].astype(np.int64)
        width = int(people.max()) + 1
        labels = np.unique(labels * width + people) // width  # each person of a class once
    return int((np.bincount(labels) == 1).sum())


def single_end_warnings(
    shares: Mapping[str, float],
    published: Mapping[str, PublishedColumn],
    values: Mapping[str, np.ndarray] = NOT_KNOWN,
    hides: str = BINS,
) -> list[ReleaseWarning]:
    """One for each column of which more than half of the ends are somebody's own value.

    published: those columns, of which the widths advise a step; none where what made the release
    takes no `round`. values: by column, the different numbers that may be ends, if they are known.
    hides: what else helps, under the method that made the release.
    """
    return [
        ReleaseWarning(
            SINGLE_ENDS,
            f"{100 * share:.0f} % of the ends of ranges are one person's {name}."
            f" {_way_out(published.get(name), values.get(name)) or hides}",
            name,
            figures=f"{100 * share:.0f}",
        )
        for name, share in shares.items()
        if share > TOLERATED
    ]


def _way_out(published: PublishedColumn | None, values: np.ndarray | None) -> str | None:
    step = None if published is None else _step_that_helps(published, values)
    if step is None:
        return None
    # a rounded end may be somebody's value by chance
    return f"Rounding to {number_text(step)} leaves fewer"


def _step_that_helps(published: PublishedColumn, values: np.ndarray | None) -> float | None:
    """The least usual step up to the usual range of which at most half of the values are multiples:
    an end that is one stays where it is.
    """
    widths = published.hi - published.lo
    widths = widths[(widths > 0) & np.isfinite(widths)]
    step, greatest = rounding(widths), float(np.median(widths))
    while values is not None and 2 * _are_multiples(values, step).sum() > len(values) + 1:
        step = float(f"{step_of(20.2 * step):.12g}")
        if step > greatest:
            return None
    return step


def possible_ends(encoded: EncodedAttribute) -> np.ndarray:
    """The numbers of the original that its own `round` leaves where they are."""
    values, step = encoded.values, encoded.attribute.round
    return values if step is None else values[_are_multiples(values, step)]


def _are_multiples(values: np.ndarray, step: float) -> np.ndarray:
    """(values,) bool, which are multiples of a step, as far as floats tell."""
    times = values / step
    return np.abs(times - np.rint(times)) < 1e-6


def rounding(spread: np.ndarray, part: float = 5) -> float:
    """The step of `round` for ranges of these widths: about a fifth of the median, or another part.

    A few extreme widths don't change it. Whole ones get no step up to 1, of which whole numbers
    are multiples. spread: (n,) float64, at least one above 0.
    """
    step = float(f"{step_of(float(np.median(spread)) * 20 / part):.12g}")
    return max(step, 2.0) if step == 1.0 or (spread == np.rint(spread)).all() else step


def step_of(width: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is at least a twentieth of a width."""
    if width <= 0:
        return 1.0
    power = 10.0 ** int(np.floor(np.log10(width / 20)))
    return next(power * m for m in (1, 2, 5, 10, 20) if power * m >= width / 20 * (1 - 1e-12))


# Domains of numbers that go beyond what was seen, so that they show nobody's own value.


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


def number_steps(rows: np.ndarray, step: float | None, render: Render) -> np.ndarray:
    """The values of a number, ascending, each with the range that readers see of it alone.

    rows: (values, steps) text, a value first. step: what ends are rounded to; None shows values.
    """
    rows = rows[np.argsort(parse_numbers(rows[:, 0].tolist()), kind="stable")]
    if not step:
        return rows
    numbers = parse_numbers(rows[:, 0].tolist())
    ends = zip(np.floor(numbers / step) * step, np.ceil(numbers / step) * step, strict=True)
    pairs = [(number_text(lo), number_text(hi)) for lo, hi in ends]
    seen = [lo if lo == hi else render.intervals.format(lo=lo, hi=hi) for lo, hi in pairs]
    return np.column_stack([rows[:, :1], np.array(seen, dtype=object), rows[:, 1:]])
