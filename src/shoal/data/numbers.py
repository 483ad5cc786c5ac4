"""Numbers and dates as they are written in tables, with which decimal marks, groups of digits and
forms of dates; numbers are read, scaled to whole positions, and written again.

Inside, numbers have a decimal point and dates are ISO. A table is translated when it is read, by
its distinct cells, and what is published is translated back, so that nothing between the two knows
of commas.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal, InvalidOperation, localcontext
from functools import cached_property
from math import fsum, inf
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.data.hierarchies.dates import time_of
from shoal.data.schema import Render
from shoal.data.table import FEW, Column

# Positions stay well inside int32, so that differences and a far-off one for missing values fit.
MOST_POSITIONS = 1 << 29

FARTHEST = 1e100
"""How far from 0 a number may lie, so that distances and squared errors stay finite."""

MOST_EXACT = 1 << 53
"""Whole numbers below this are exact in every program that reads them."""


INDISTINCT = "with numbers of more digits than can be told apart"


def parse_numbers(cells: Sequence[str] | pl.Series) -> np.ndarray:
    """Decimal numbers as float64, NaN for every other text."""
    text = cells if isinstance(cells, pl.Series) else pl.Series(cells, dtype=pl.String)
    if len(cells) > FEW or any(cell != cell.strip() for cell in cells):
        text = text.str.strip_chars()
    return text.cast(pl.Float64, strict=False).to_numpy().copy()


def fall_together(values: np.ndarray, cells: Sequence[str] | pl.Series) -> np.ndarray:
    """(cells,) bool: different numbers that are the same to a computer's 53 bits."""
    alike = np.zeros(len(values), dtype=bool)
    order = np.argsort(values, kind="stable")
    for i in np.flatnonzero(values[order[1:]] == values[order[:-1]]):
        pair = order[[i, i + 1]]
        if len({_exact(cells[j].strip()) for j in pair.tolist()}) > 1:
            alike[pair] = True
    return alike


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


def run_entries(begins: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All entries of some runs: which of the runs each belongs to, and the entry; (m,) int64."""
    run = np.repeat(np.arange(len(lengths)), lengths)
    return run, np.arange(len(run)) + (begins - (np.cumsum(lengths) - lengths))[run]


def alike(columns: Iterable[np.ndarray], records: int) -> np.ndarray:
    """(n,) int64 dense numbers, equal where records are equal in every one of these columns."""
    key, room = np.zeros(records, dtype=np.int64), 1
    for column in columns:
        least, greatest = int(column.min(initial=0)), int(column.max(initial=0))
        many = greatest - least + 1
        if room > (1 << 62) // many:
            key = np.unique(key, return_inverse=True)[1].reshape(-1)
            room = records
        key = key * many + (column.astype(np.int64) - least)
        room *= many
    return np.unique(key, return_inverse=True)[1].reshape(-1)


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


def loses_digits(text: pl.Series) -> bool:
    """Whether some number shows other digits as a float."""
    distinct = text.drop_nulls().unique()
    cells = map(_exact, distinct.filter(distinct != distinct.cast(pl.Float64).cast(pl.String)))
    return any(
        cell is None or (cell.is_finite() and cell != Decimal(repr(float(cell)))) for cell in cells
    )


def _exact(text: str) -> Decimal | None:
    """The number that a text writes; None where its exponent is beyond those of decimals."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


EXACT_DIGITS = 800
EXACT = Context(prec=EXACT_DIGITS)
"""Wide enough for any finite double beside any other, so that no end is ever rounded."""

LEAST_DECIMAL = 324
"""The place of the last decimal that a float has."""


def observed_domain(column: Column, step: float | None) -> tuple[float, float] | None:
    """Least and greatest number of a column, moved outward to multiples of a step if there is one;
    None where it has none.
    """
    values = parse_numbers(column.texts)
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


_ALIKE = ("'’", " \u00a0\u2009\u202f")
THOUSANDS = (".", ",", *"".join(_ALIKE))
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_ISO_STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?")
_CLOCK = re.compile(r"%-?[HIMSfpcXT]")
BINS = Render(intervals="[{lo}, {hi})")


@dataclass(frozen=True)
class Notation:
    """decimal: the decimal mark. thousands: what groups digits, None for nothing; a blank stands
    for blanks of any width, and an apostrophe for the curved one. dates: a strptime form, None for
    ISO.
    """

    decimal: str = "."
    thousands: str | None = None
    dates: str | None = None

    @property
    def has_plain_numbers(self) -> bool:
        return self.decimal == "." and self.thousands is None

    @property
    def written(self) -> "Notation":
        """As numbers are published: digits are not grouped."""
        return Notation(self.decimal, None, self.dates)

    @cached_property
    def number(self) -> str:
        """The pattern of a number, without blanks around it."""
        mark = re.escape(self.decimal)
        # `12,` is a number where points are decimal, but commas may part what follows
        whole, tail = "[0-9]+", (f"{mark}[0-9]*" if self.decimal == "." else f"{mark}[0-9]+")
        if self.thousands is not None:
            whole = f"(?:[1-9][0-9]{{0,2}}(?:[{self.groups}][0-9]{{3}})+|[0-9]+)"
        return f"[-+]?(?:{whole}(?:{tail})?|{mark}[0-9]+)(?:[eE][-+]?[0-9]+)?"

    @property
    def groups(self) -> str:
        """All marks that group digits; empty where none does."""
        mark = self.thousands or ""
        return next((alike for alike in _ALIKE if mark and mark in alike), mark)

    def plain(self, number: str) -> str:
        """A number with a decimal point and without groups."""
        if self.thousands is not None:
            number = re.sub(f"[{self.groups}]", "", number)
        return number.replace(self.decimal, ".")

    def own(self, number: str) -> str:
        """A plain number as it is written here, digits not grouped."""
        return number.replace(".", self.decimal)

    def day(self, text: str) -> str | None:
        """A date or time stamp in ISO; None where the text is none."""
        assert self.dates is not None
        try:
            stamp = datetime.strptime(text.strip(), self.dates)
        except ValueError:
            return text if time_of(text) is not None else None
        return stamp.isoformat() if _CLOCK.search(self.dates) else stamp.date().isoformat()

    def own_day(self, text: str) -> str:
        """An ISO date or stamp in this form; other text, such as a month, as it is."""
        if self.dates is None:
            return text
        has_clock = _CLOCK.search(self.dates) is not None
        if not (_ISO_STAMP if has_clock else _ISO_DAY).fullmatch(text):
            return text
        try:
            stamp = datetime.fromisoformat(text) if has_clock else date.fromisoformat(text)
        except ValueError:
            return text
        return stamp.strftime(self.dates.replace("%Y", f"{stamp.year:04}"))  # else "10"


PLAIN = Notation()
NOTATIONS = [Notation(d, t) for t in (None, ",", ".", "'", " ") for d in ".," if d != t]


MIXED = (
    "its numbers are written in several ways, such as with decimal points and commas; write all"
    " alike"
)


def advice_on(numbers: Collection[str], asked: Notation) -> str | None:
    """How --read makes numbers of all texts of a column, some of which are none as it was asked;
    None where it can't, and some are none at all.
    """
    fitting = [one for one in NOTATIONS if _are_of(numbers, one)]
    if not fitting and all(any(_are_of([one], way) for way in NOTATIONS) for one in numbers):
        return MIXED
    fitting = [
        one
        for one in fitting
        if asked in (PLAIN, Notation(one.decimal, asked.thousands, asked.dates))
    ]
    groups = [one for one in fitting[1:] if one.thousands == fitting[0].decimal]
    ways = [" ".join(_options(one, asked)) for one in (*fitting[:1], *groups[:1])]
    if not all(ways) or not ways:
        return None
    is_open = "its commas mark decimals or group digits"
    told = is_open if groups else "their digits are written otherwise"
    return f"{told}: say {' or '.join(ways)} (in a policy under 'read')"


def _are_of(numbers: Iterable[str], notation: Notation) -> bool:
    return all(re.fullmatch(notation.number, number.strip()) for number in numbers)


def _options(one: Notation, asked: Notation) -> list[str]:
    said = [] if one.decimal == asked.decimal else [f"--read decimal={one.decimal}"]
    if one.thousands is not None:
        option = f"thousands={one.thousands}"
        said.append("--read " + (option if one.thousands in ".," else f'"{option}"'))
    return said


@dataclass(frozen=True)
class PublishedNumbers:
    """Cells of a column of numbers: a number, an interval, a mean before an interval, or bins."""

    patterns: tuple[re.Pattern[str], ...]

    @classmethod
    def of(cls, notation: Notation, render: Render | None) -> "PublishedNumbers":
        """render: how intervals are written; None for a column of plain numbers."""
        number = rf"(\s*)({notation.number})(\s*)"
        patterns = [number]
        for form in [] if render is None else [render, BINS]:
            head, middle, tail = map(re.escape, form.parts)
            end = f"({notation.number})"
            rest = rf"{head}\s*){end}(\s*{middle}\s*){end}(\s*{tail})"
            patterns += [f"({rest}", f"(){end}( {rest}"]
        return cls(tuple(re.compile(pattern) for pattern in patterns))

    def translated(self, cell: str, translate: Callable[[str], str]) -> str | None:
        """The cell with its numbers translated; None where it is not one of these."""
        parts = self._parts(cell)
        if parts is None:
            return None
        return "".join(translate(p) if i % 2 else p for i, p in enumerate(parts))

    def numbers(self, cell: str) -> tuple[str, ...]:
        """The numbers of a cell as they stand in it: a value or mean, an interval's ends, or all
        three; none where it is not one of these.
        """
        return (self._parts(cell) or ())[1::2]

    def _parts(self, cell: str) -> tuple[str, ...] | None:
        """Text and numbers, which alternate, beginning with text."""
        matches = (pattern.fullmatch(cell) for pattern in self.patterns)
        match = next((found for found in matches if found is not None), None)
        return None if match is None else match.groups()


def map_cells(
    column: pl.Series, translate: Callable[[str], str | None]
) -> tuple[pl.Series, list[str]]:
    """The column with every distinct cell translated, and the cells that can't be.

    These stay as they are, like missing values.
    """
    text = column.cast(pl.String)
    distinct = text.drop_nulls().unique().sort().to_list()
    texts = [translate(cell) for cell in distinct]
    lost = [cell for cell, new in zip(distinct, texts, strict=True) if new is None]
    changed = {c: new for c, new in zip(distinct, texts, strict=True) if new not in (None, c)}
    if not changed:
        return text, lost
    return text.replace(list(changed), list(changed.values())), lost


@np.errstate(over="ignore", invalid="ignore")
def computed_of_those_above(
    cells: np.ndarray, digits: Sequence[int], numbers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which of the last cells of a column are computed of those above them, (last, last) bool by
    the row where those below the data begin and by row, the last one first: a sum that is beyond
    all of them, or their mean or number, which none of them is; and their least or greatest.

    cells: (last,) float64, the last one first, NaN where there is no number. digits: those behind
    the point of each. numbers: (n,) float64, all of the column, NaN where there is none.
    """
    above, below = numbers[: -len(cells)], numbers[-len(cells) : -1]

    def so_far(merge: np.ufunc, one: np.ndarray, more: np.ndarray, start: float) -> np.ndarray:
        """(last, 1): merged of all above each of the last cells."""
        first = merge.reduce(one, initial=start)
        return merge.accumulate(np.append(first, more))[::-1, None]

    def are(found: np.ndarray) -> np.ndarray:
        return np.abs(cells - found) <= near

    near = 0.5001 * 10.0 ** -np.array(digits) + 1e-9 * np.abs(cells)
    sums = so_far(np.add, np.nan_to_num(above), np.nan_to_num(below), 0)
    count = so_far(np.add, np.isfinite(above) * 1, np.isfinite(below) * 1, 0)
    low, high = so_far(np.fmin, above, below, np.inf), so_far(np.fmax, above, below, -np.inf)
    # a grand total leaves out the subtotals above
    is_sum = (are(sums) | are(sums / 2)) & ((cells > high) | (cells < low)) & (count > 2)
    is_counter = cells == high + 1
    is_middle = are(sums / np.maximum(count, 1)) | (are(count) & ~is_counter)
    is_middle &= count >= len(cells)
    for place in np.flatnonzero(is_middle.any(axis=0)):
        is_middle[:, place] &= (numbers == cells[place]).sum() == 1
    return is_sum | is_middle, are(low) | are(high)


MANY_IN_ALL = 20
MOST_OF_SPREAD = 0.05
"""The greatest error of a mean, by the spread of its column, that hardly any number is within."""


class Parts(NamedTuple):
    """Rows that lack values, (m,) ascending, the first rows and the ends of what each may be
    computed of, above it and below it, up to the next that lacks the same, and a number of what
    they lack.
    """

    rows: np.ndarray
    parts: tuple[tuple[np.ndarray, np.ndarray], ...]
    forms: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, lacking: np.ndarray, records: int) -> "Parts":
        """Rows of a table. lacking: (m,) whole numbers, equal where the same is lacking."""
        forms = np.unique(lacking, return_inverse=True)[1]
        order = np.argsort(forms, kind="stable")
        is_alike, sorted_rows = np.diff(forms[order]) == 0, rows[order]
        begins = np.zeros(len(rows), dtype=np.int64)
        ends = begins + records
        begins[order[1:]] = np.where(is_alike, sorted_rows[:-1] + 1, 0)
        ends[order[:-1]] = np.where(is_alike, sorted_rows[1:], ends[:1])
        return cls(rows, ((begins, rows), (rows + 1, ends)), forms)

    @np.errstate(over="ignore", invalid="ignore")
    def computed_in(self, texts: pl.Series, codes: np.ndarray) -> np.ndarray:
        """(m,) int64, 1 where a row holds the sum of its part or of all other rows, beyond all
        their numbers, or, as others that lack the same, its mean or number; -1 where it holds
        another number. texts, codes: of a column, as of `Texts`.
        """
        numbers = np.append(parse_numbers(texts)[codes], 0)
        cells = numbers[self.rows]
        if not np.isfinite(cells).any():
            return np.zeros(len(cells), dtype=np.int64)
        is_number = np.isfinite(numbers)
        most_error = MOST_OF_SPREAD * numbers[is_number].std()
        numbers[~is_number] = 0
        of_each = (numbers, numbers != 0, is_number)
        sums, counts, held = (np.append(0, np.cumsum(one)) for one in of_each)
        near = 1e-6 + 1e-9 * np.abs(sums[-1])
        # all that a grand total is of hold it, too, and may hold subtotals
        found = np.abs(np.outer((2, 3), cells) - sums[-1]).min(axis=0) < near
        found &= (counts[-1] > MANY_IN_ALL) & (cells == numbers.max()) & (cells > 0)
        digits = texts.str.extract(r"[.,](\d+)$").str.len_chars().fill_null(0).to_numpy()
        half = 0.5001 / 10.0 ** digits[codes[self.rows]]
        alike = np.bincount(self.forms)[self.forms]
        may_be_mean = (alike > 2) & (half <= most_error)
        for begins, ends in self.parts:
            part, count, all_held = (one[ends] - one[begins] for one in (sums, counts, held))
            greatest = np.maximum.reduceat(numbers, np.stack([begins, ends], axis=1).ravel())[::2]
            is_sum = (np.abs(cells - part) < near) & (cells > greatest)
            found |= is_sum & (count >= np.where(alike > 1, 3, MANY_IN_ALL))
            is_mean = may_be_mean & (np.abs(cells * all_held - part) <= half * all_held)
            found |= (is_mean | ((alike > 2) & (cells == ends - begins))) & (ends - begins > 2)
        return np.where(found, 1, -np.isfinite(cells).astype(np.int64))

    def computed(self, sums: np.ndarray) -> np.ndarray:
        """The rows most of whose numbers are computed, as in nearly all rows that lack the same."""
        is_usual = np.bincount(self.forms, sums > 0) >= 0.75 * np.bincount(self.forms)
        return self.rows[(sums > 0) & is_usual[self.forms]]
