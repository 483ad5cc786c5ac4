"""What the cells of a column say, whatever its name, found once from its distinct cells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl

from shoal.data.column_words import words_of
from shoal.data.notation import Notation, PublishedNumbers, map_cells
from shoal.data.numbers import FARTHEST
from shoal.data.table import Column, Table

NO_VALUE = ("", "?", "*", "NA", "N/A", "n/a", "NULL", "null", "nan", "NaN")
NO_NUMBER = ("None", "-")  # among numbers and dates; elsewhere they may be answers
MOST_PLACEHOLDERS = 3
PLACEHOLDERS = [sign * (10**n - 1) for n in (5, 4, 3, 2, 1) for sign in (-1, 1)] + [-1, -88, -77]
FEWEST = 10  # distinct numbers or dates beside which another cell is in doubt
_ISO = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$"
_DIGITS = r"^\d+$"


@dataclass(frozen=True)
class ColumnCells:
    """A column's distinct cells that hold a value.

    cells: as they are written. values: the same without blanks around them. absent: cells that
    seem to stand for no value. doubtful: those of them that somebody has to confirm, with how many
    records hold each. filled: records with a value. records: all of the table.
    """

    name: str
    cells: pl.Series
    values: pl.Series
    absent: tuple[str, ...]
    filled: int
    records: int
    doubtful: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, column: Column) -> ColumnCells:
        cells = pl.Series(column.name, column.cells, dtype=pl.String)
        values = cells.str.strip_chars()
        is_value, counts = ~values.is_in(NO_VALUE), column.counts()
        is_doubtful = _are_placeholders(values)
        fewer = is_value & ~is_doubtful & ~values.is_in(NO_NUMBER)
        numbers = _numbers(values.filter(fewer))
        if numbers is not None or _are_iso_days(values.filter(fewer)):
            is_value = fewer
            if numbers is not None:
                far = values.filter(fewer).filter(pl.Series(_far(numbers)))
                is_doubtful |= values.is_in(far.implode())
            is_value &= ~is_doubtful
        else:
            is_doubtful &= False
        doubtful = {cells[i]: int(counts[i]) for i in is_doubtful.arg_true()}
        filled = int(counts[is_value.to_numpy()].sum())
        absent = tuple(cells.filter(~is_value & (values != "*")).to_list())
        kept = cells.filter(is_value), values.filter(is_value)
        return cls(column.name, *kept, absent, filled, len(column.codes), doubtful)

    def is_value(self, column: Column) -> np.ndarray:
        """(column's cells,) bool, which of them hold a value. column: the one these are of."""
        cells = pl.Series(column.cells, dtype=pl.String)
        return cells.is_in(self.cells.implode()).to_numpy()

    @cached_property
    def words(self) -> list[str]:
        return words_of(self.name)

    @property
    def distinct(self) -> int:
        return len(self.cells)

    @property
    def repeats(self) -> bool:
        return self.filled > self.distinct

    @property
    def all_differ(self) -> bool:
        return 1 < self.distinct == self.filled

    @cached_property
    def numbers(self) -> np.ndarray | None:
        """(distinct,) float64; None where some are not numbers, or too far out for a domain."""
        return _numbers(self.values)

    @cached_property
    def are_whole(self) -> bool:
        """Whether they are numbers without fractions."""
        return self.numbers is not None and bool((self.numbers == np.rint(self.numbers)).all())

    @property
    def are_iso_days(self) -> bool:
        """Whether they are dates or time stamps as ISO 8601 writes them."""
        return _are_iso_days(self.values)

    @cached_property
    def form(self) -> str:
        """The form that nearly all of them have, a key of `_FORMS`; empty where there is none."""
        for form, (pattern, is_sure) in _FORMS.items():
            fits = self.values.str.contains(f"^(?:{pattern})$")
            if fits.sum() >= NEARLY_ALL * self.distinct and is_sure(self.values.filter(fits)):
                return form
        return ""

    @property
    def are_phrases(self) -> bool:
        """Whether most of them have several words."""
        return bool(2 * self.values.str.contains(r"\p{L}\s+\S").sum() > self.distinct)

    @cached_property
    def code_length(self) -> int | None:
        """Digits of numbers that begin with zeros, as codes do; None for others."""
        if not self.values.str.contains(r"^0\d").any():
            return None
        lengths = self.values.str.len_chars()
        is_code = self.values.str.contains(_DIGITS).all() and lengths.n_unique() == 1
        return int(lengths[0]) if is_code else None

    @property
    def are_mostly_unique(self) -> bool:
        """Whether more than half of the records have a value that is in no other."""
        return 2 * self.distinct - self.filled > self.filled / 2

    @property
    def counts_records(self) -> bool:
        """Whether they are whole numbers one after the other, one for each record."""
        if not self.all_differ or not self.are_whole or self.filled < self.records:
            return False
        assert self.numbers is not None
        return bool(self.numbers.max() - self.numbers.min() + 1 == self.distinct)


NEARLY_ALL = 0.9


def _are_ibans(values: pl.Series) -> bool:
    """Whether their check digits are right, as those of one text in 97 are by chance."""
    some = (value.replace(" ", "") for value in values.head(20))
    return all(int("".join(str(int(s, 36)) for s in v[4:] + v[:4])) % 97 == 1 for v in some)


def _some(pattern: str) -> Callable[[pl.Series], bool]:
    """Whether a fifth of them have this."""
    return lambda values: bool(values.str.contains(pattern).sum() >= 0.2 * len(values))


_FORMS: dict[str, tuple[str, Callable[[pl.Series], bool]]] = {
    "e-mail": (r"[^@\s]+@[^@\s]+\.[^@\s]+", lambda values: True),
    "iban": (r"[A-Z]{2}\d{2} ?(?:[A-Z\d]{4} ?){2,7}[A-Z\d]{0,4}", _are_ibans),
    "phone": (r"(?:\+|0)\d{0,3}[ ()/.-]*(?:\d[ ()/.-]*){6,12}", _some(r"^\+|\d[ /()-]+\d")),
    "icd": (r"[A-Z]\d[\dAB](?:\.[\dA-Z-]{1,4})?[!*+]?", _some(r"\.")),
    "atc": (r"[A-DG-JL-NPRSV]\d{2}[A-Z]{2}\d{2}", lambda values: True),
}
"""By form, its pattern, and what else must be true of those that fit it."""


def _are_placeholders(values: pl.Series) -> pl.Series:
    """(values,) bool, up to three texts without a digit where all of many others have one."""
    is_word = ~values.str.contains(r"\d") & ~values.is_in([*NO_VALUE, *NO_NUMBER])
    is_few = is_word.sum() <= MOST_PLACEHOLDERS and values.str.contains(r"\d").sum() >= FEWEST
    return is_word & is_few


def _far(numbers: np.ndarray) -> np.ndarray:
    """(numbers,) bool, those such as -99, 999 and -1 that no other comes near."""
    is_far = np.zeros(len(numbers), dtype=bool)
    for number in PLACEHOLDERS:
        others = numbers[~is_far & (numbers != number)]
        if len(others) >= FEWEST:
            low, high = others.min(), others.max()
            is_outside = number < 0 <= low or number > high + (high - low)
            is_far |= (numbers == number) & is_outside
    return is_far


def _numbers(values: pl.Series) -> np.ndarray | None:
    numbers = values.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    is_number = len(numbers) > 0 and bool((np.abs(numbers) < FARTHEST / 100).all())
    return numbers if is_number else None


def _are_iso_days(values: pl.Series) -> bool:
    if not len(values) or not values.str.contains(_ISO).all():
        return False
    return not values.str.head(10).str.to_date("%Y-%m-%d", strict=False).has_nulls()


# Labels that are spans of numbers, such as `[0-10)`, `10-19`, `<5`, `80+`; put in their order.


_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_BRACKETS = re.compile(rf"[\[(]\s*({_NUMBER})\s*(?:,|;|-|–|\.\.)\s*({_NUMBER})\s*[\])]")
_SPAN = re.compile(rf"({_NUMBER})\s*(?:-|–|\.\.|to)\s*({_NUMBER})")
_BELOW = re.compile(rf"(<|<=|≤)\s*({_NUMBER})")
_ABOVE = re.compile(rf"(>|>=|≥)\s*({_NUMBER})|({_NUMBER})\s*\+")
_ONE = re.compile(_NUMBER)


def in_order(labels: Iterable[str]) -> list[str] | None:
    """The labels by their lower ends; None where some is not a span, or two are the same."""
    ends = {label: _ends(label.strip()) for label in labels}
    spans = {label: span for label, span in ends.items() if span is not None}
    if len(spans) < len(ends) or len(set(spans.values())) < max(len(spans), 2):
        return None
    if not any(low < high for low, high in spans.values()):
        return None
    return sorted(spans, key=spans.__getitem__)


def _ends(label: str) -> tuple[float, float] | None:
    span = _BRACKETS.fullmatch(label) or _SPAN.fullmatch(label)
    if span is not None:
        low, high = float(span[1]), float(span[2])
        return (low, high) if low < high else None
    below = _BELOW.fullmatch(label)
    if below is not None:
        return float("-inf"), float(below[2])
    above = _ABOVE.fullmatch(label)
    if above is not None:
        return float(above[2] or above[3]), float("inf")
    return (float(label), float(label)) if _ONE.fullmatch(label) else None


# How numbers and dates are written, found in the cells: decimal marks, groups of digits, local
# forms of dates.
#
# A table has one way to write numbers and one form of dates besides ISO: those are what the
# policy's block `read` can say. Where cells leave it open, or columns disagree, a question says
# so.


_DAYS = {
    "%d.%m.%Y": r"\d{1,2}\.\d{1,2}\.\d{4}",
    "%d/%m/%Y": r"\d{1,2}/\d{1,2}/\d{4}",
    "%m/%d/%Y": r"\d{1,2}/\d{1,2}/\d{4}",
}
_CLOCKS = {"": "", " %H:%M": r" \d{1,2}:\d{2}", " %H:%M:%S": r" \d{1,2}:\d{2}:\d{2}"}
_COMMAS = r"^[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?$"
_GROUPED_BY_COMMAS = r"^[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?$"
_GROUPS = r"^[+-]?\d{1,3}(,\d{3})+$"
_POINTS = r"^[+-]?\d*\.\d+$"

WHICH_FIRST = "day or month first? 'read' takes its dates for {}"
OTHER_FORM = "its dates are not written as those of other columns; which are to be converted?"
DECIMAL_OR_GROUPS = "does its comma mark decimals or group digits? 'read' takes it for a decimal"
OTHER_MARK = "its numbers have a decimal comma, those of others a point; which are to be converted?"


@dataclass(frozen=True)
class FoundNotation:
    """read: what to say in the policy's block `read`. questions: by column."""

    read: dict[str, str] = field(default_factory=dict)
    questions: dict[str, str] = field(default_factory=dict)


def notation_in(table: Table, known: Iterable[str] = ()) -> FoundNotation:
    """How cells write numbers and dates. known: keys of `read` that are said already."""
    read: dict[str, str] = {}
    questions: dict[str, str] = {}
    kinds = table.frame.schema
    texts = {}
    for name in (name for name in table.names if kinds[name] == pl.String):
        values = pl.Series(table.column(name).cells, dtype=pl.String).str.strip_chars()
        values = values.filter(~values.is_in([*NO_VALUE, *NO_NUMBER]) & ~_are_placeholders(values))
        if len(values):
            texts[name] = values
    if "dates" not in known:
        _find_dates(texts, read, questions)
    if not {"decimal", "thousands"} & {*known}:
        _find_commas(texts, read, questions)
    return FoundNotation(read, questions)


def as_read(frame: pl.DataFrame, notation: Notation) -> pl.DataFrame:
    """Columns of numbers and dates in this notation, as Shoal reads them."""
    numbers = PublishedNumbers.of(notation, None)
    readers: list[Callable[[str], str | None]] = []
    if not notation.has_plain_numbers:
        readers.append(lambda cell: numbers.translated(cell, notation.plain))
    if notation.dates is not None:
        readers.append(notation.day)
    for name, dtype in frame.schema.items():
        for reader in readers if dtype == pl.String else ():
            cells, lost = map_cells(frame[name], reader)
            left = pl.Series(lost, dtype=pl.String).str.strip_chars().unique()
            left = left.filter(~left.is_in([*NO_VALUE, *NO_NUMBER]))
            if len(left) <= MOST_PLACEHOLDERS and not left.str.contains(r"\d").any():
                frame = frame.with_columns(cells.alias(name))
                break
    return frame


def _find_dates(
    texts: dict[str, pl.Series], read: dict[str, str], questions: dict[str, str]
) -> None:
    fitting = {name: _forms(values) for name, values in texts.items()}
    fitting = {name: forms for name, forms in fitting.items() if forms}
    if not fitting:
        return
    # the form that most columns have; of two that fit as many, the first: day before month
    form, _ = Counter(form for forms in fitting.values() for form in forms).most_common(1)[0]
    read["dates"] = form
    agreed = set.intersection(*(set(forms) for forms in fitting.values() if form in forms))
    for name, forms in fitting.items():
        if form not in forms:
            questions[name] = OTHER_FORM
        elif len(agreed) > 1:
            questions[name] = WHICH_FIRST.format(form)


def _forms(values: pl.Series) -> list[str]:
    """The forms that all of these texts have, days that are none left out."""
    return [
        day + clock
        for day, digits in _DAYS.items()
        for clock, time in _CLOCKS.items()
        if re.fullmatch(digits + time, values[0])  # most columns end here
        and values.str.contains(f"^{digits}{time}$").all()
        and not _stamps(values, day, clock).has_nulls()
    ]


def _stamps(values: pl.Series, day: str, clock: str) -> pl.Series:
    if clock:
        return values.str.to_datetime(day + clock, strict=False)
    return values.str.to_date(day, strict=False)


def _have_both(values: pl.Series) -> bool:
    """Whether a number has a comma and a point, so that one of them groups its digits."""
    return bool((values.str.contains(",") & values.str.contains(r"\.")).any())


def _find_commas(
    texts: dict[str, pl.Series], read: dict[str, str], questions: dict[str, str]
) -> None:
    with_commas = {
        name: values
        for name, values in texts.items()
        if values.str.contains(_COMMAS).all() and values.str.contains(",").any()
    }
    if not with_commas:
        if any(
            _have_both(values) and values.str.contains(_GROUPED_BY_COMMAS).all()
            for values in texts.values()
        ):
            read["thousands"] = ","
        return
    if any(values.str.contains(_POINTS).all() for values in texts.values()):
        questions.update(dict.fromkeys(with_commas, OTHER_MARK))
        return
    read["decimal"] = ","
    if any(_have_both(values) for values in with_commas.values()):
        read["thousands"] = "."
    is_sure = not all(
        values.filter(values.str.contains(",")).str.contains(_GROUPS).all()
        for values in with_commas.values()
    )
    if not is_sure:
        questions.update(dict.fromkeys(with_commas, DECIMAL_OR_GROUPS))
