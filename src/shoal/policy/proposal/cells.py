"""What the cells of a column say, whatever its name, found once from its distinct cells."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl

from shoal.data.column_words import words_of
from shoal.data.numbers import FARTHEST
from shoal.data.table import Column, Table, as_text
from shoal.data.warnings import SIGN_OF_NO_VALUE, ReleaseWarning

NO_VALUE = ("", "?", "*", "NA", "N/A", "n/a", "NULL", "null", "nan", "NaN")
NO_NUMBER = ("None", "-")  # among numbers and dates; elsewhere they may be answers
NO_ANSWER = (
    *("k.a.", "k. a.", "keine angabe", "keine angaben", "ohne angabe", "n.a.", "n. a.", "#n/a"),
    *("#nv", "n/d", "n.d.", "n. d.", "s/d", "sin datos", "no data", "not available", "not stated"),
)
"""Texts, in small letters, that are asked about among texts, too. Words that may be an answer, such
as `unknown`, `unbekannt` or `none`, are not among them.
"""
MOST_PLACEHOLDERS = 3
PLACEHOLDERS = [sign * (10**n - 1) for n in (5, 4, 3, 2, 1) for sign in (-1, 1)] + [-1, -88, -77]
FEWEST = 10  # distinct numbers or dates beside which another cell is in doubt
NEARLY_ALL = 0.9  # share of texts that have a form
_ISO = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$"
_DIGITS = r"^\d+$"
_CELL = "cell"


def signs_of_no_value(
    table: Table, names: Iterable[str], missing: Collection[str]
) -> list[ReleaseWarning]:
    """The columns of these names where a usual sign for no value is taken for a value: all but
    those that are listed as missing.
    """
    found = []
    for name in names:
        cells = table.frame[name]
        signs = [] if cells.dtype.is_numeric() else [one for one in NO_VALUE if one not in missing]
        doubted = ColumnCells.of(table.column(name)).doubtful.items()
        doubtful = sum(count for sign, count in doubted if sign not in missing)
        if records := int(as_text(cells).is_in(signs).sum()) + doubtful:
            text = (
                f"'{name}': a usual sign for no value stands in {records} records, and is published"
                " as a value; read such cells as missing (na_values= in pandas, null_values= in"
                " Polars), or list them in missing_values="
            )
            found.append(ReleaseWarning(SIGN_OF_NO_VALUE, text, name))
    return found


@dataclass(frozen=True)
class ColumnCells:
    """A column's distinct cells that hold a value.

    cells: as they are written. values: the same without blanks around them. absent: cells that
    seem to stand for no value. doubtful: those of them that somebody has to confirm, with how many
    records hold each. filled: records with a value. records: all of the table. odd: records whose
    value is none of the numbers or dates that nearly all others are.
    """

    name: str
    cells: pl.Series
    values: pl.Series
    absent: tuple[str, ...]
    filled: int
    records: int
    doubtful: Mapping[str, int] = field(default_factory=dict)
    odd: int = 0

    @classmethod
    def of(cls, column: Column) -> "ColumnCells":
        cells = pl.Series(column.name, column.cells, dtype=pl.String)
        values = cells.str.strip_chars()
        is_value, counts = ~values.is_in(NO_VALUE), column.counts()
        is_doubtful = are_placeholders(values)
        fewer = is_value & ~is_doubtful & ~values.is_in(NO_NUMBER)
        numbers = _numbers(values.filter(fewer))
        if numbers is not None or _are_iso_days(values.filter(fewer)):
            is_value = fewer
            if numbers is not None:
                far = values.filter(fewer).filter(pl.Series(_far(numbers)))
                is_doubtful |= values.is_in(far.implode())
            odd = 0
        else:
            is_doubtful = values.str.to_lowercase().is_in(NO_ANSWER)
            odd = int(counts[(fewer & ~_form_of_most(values, fewer)).to_numpy()].sum())
        is_value &= ~is_doubtful
        doubtful = {cells[i]: int(counts[i]) for i in is_doubtful.arg_true()}
        filled = int(counts[is_value.to_numpy()].sum())
        absent = tuple(cells.filter(~is_value & (values != "*")).to_list())
        kept = cells.filter(is_value), values.filter(is_value)
        return cls(column.name, *kept, absent, filled, len(column.codes), doubtful, odd)

    def is_value(self, column: Column) -> np.ndarray:
        """(column's cells,) bool, which of them hold a value. column: the one these are of."""
        return column.texts.is_in(self.cells.implode()).to_numpy()

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
    def are_texts(self) -> bool:
        """Whether they are neither numbers nor dates."""
        return self.numbers is None and not self.are_iso_days

    @cached_property
    def are_iso_days(self) -> bool:
        """Whether they are dates or time stamps as ISO 8601 writes them."""
        return _are_iso_days(self.values)

    @cached_property
    def form(self) -> str:
        """The form that nearly all of them have, a key of `_FORMS`; empty where there is none."""
        frame = self.values.to_frame(_CELL)
        fits = {f: pl.col(_CELL).str.contains(f"^(?:{p})$") for f, (p, _) in _FORMS.items()}
        counts = frame.select(**{form: fit.sum() for form, fit in fits.items()}).row(0)
        for (form, fit), count in zip(fits.items(), counts, strict=True):
            if count >= NEARLY_ALL * self.distinct and _FORMS[form][1](frame.filter(fit)[_CELL]):
                return form
        return ""

    @property
    def unread(self) -> str:
        """What they seem to be although they are read as text; empty where nothing is open."""
        if self.odd:
            return ODD.format(self.odd)
        for seems, pattern in () if self.numbers is not None else _UNREAD.items():
            odd = self.distinct - int(self.values.str.contains(f"^(?:{pattern})$").sum())
            if are_few(odd, self.distinct):
                return UNREAD.format(seems)
        return ""

    @property
    def are_phrases(self) -> bool:
        """Whether most of them have several words."""
        return bool(2 * self.values.str.contains(r"\p{L}\s+\S").sum() > self.distinct)

    @property
    def are_sentences(self) -> bool:
        """Whether most of them have as many words as a sentence, however often each occurs."""
        long = self.values.str.contains(r"^\S*\p{L}\S*(?:\s+\S*\p{L}\S*){3}")
        return bool(2 * long.sum() > self.distinct)

    @cached_property
    def have_leading_zeros(self) -> bool:
        """Whether they are numbers as codes are: some begin with a zero before another digit."""
        return self.numbers is not None and bool(self.values.str.contains(r"^0\d").any())

    @cached_property
    def code_length(self) -> int | None:
        """Digits of codes that begin with zeros and have equally many; None for others."""
        if not self.have_leading_zeros:
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

ODD = "cells that are not numbers or dates as all others are: {}; can they be corrected?"
UNREAD = "its cells look like {}, but are read as texts; can they be written plainly?"
_GROUPED = r"(?:\p{Nd}+|\p{Nd}{1,3}(?:[.,'’\s]\p{Nd}{3})+)(?:[.,](?:\p{Nd}+|[-–—]+))?"
_UNIT = r"(?:\p{Sc}|CHF|EUR|USD|GBP|CNY|RMB|JPY|S?Fr\.|元|円|万|%|‰|kg|cm)"
_DAY_CLOCK = r"(?:,?[ T]+\d{1,2}:\d\d.*)?"
_UNREAD = {
    "numbers with another decimal mark than others, or with two": r"[-+]?\d+(?:[.,]\d+)?",
    "amounts with a unit, a sign or digits of another script": (
        rf"\(?[-+−]?\s*{_UNIT}?\s*[-+−]?{_GROUPED}\s*{_UNIT}?\s*[-−]?\)?"
    ),
    "dates of another form": (
        r"(?:\p{L}+\.?,? )?\d{1,2}(?:st|nd|rd|th)?(?:[./ -]|de)*\p{L}{3,}\.?(?:[./ -]|de)*\d{2,4}"
        + _DAY_CLOCK
        + r"|\d{1,2}[./-]\d{1,2}[./-]\d{2}"
        + _DAY_CLOCK
        + r"|(?:明治|大正|昭和|平成|令和|[MTSHR])(?:\d{1,2}|元)[年./-]\d{1,2}[月./-]\d{1,2}日?"
    ),
    "times": r"\d{1,3}:\d\d(?::\d\d)?(?: ?[AaPp]\.?[Mm]\.?)?|\d{1,2}[时時]\d{1,2}分",
}
"""By what they seem to be, the pattern of cells that `read` has no form for."""


def are_placeholders(values: pl.Series) -> pl.Series:
    """(values,) bool, up to three texts without a digit where all of many others have one."""
    has_digit = values.str.contains(r"\d")
    if has_digit.sum() < FEWEST:
        return has_digit & False
    is_word = ~has_digit & ~values.is_in([*NO_VALUE, *NO_NUMBER])
    return is_word & (is_word.sum() <= MOST_PLACEHOLDERS)


def are_few(odd: int, values: int) -> bool:
    """Whether so few texts are odd that all others show what the values are."""
    return odd == 0 < values or (odd <= MOST_PLACEHOLDERS and values - odd >= FEWEST)


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
    numbers = values.cast(pl.Float64, strict=False).to_numpy()  # NaN where there is none
    is_number = len(numbers) > 0 and bool((np.abs(numbers) < FARTHEST / 100).all())
    return numbers if is_number else None


def may_be_days(cells: Iterable[str]) -> bool:
    """Whether one of these texts begins as an ISO date does."""
    return any(re.match(r"\s*\d{4}-", cell) for cell in cells)


def _are_iso_days(values: pl.Series) -> bool:
    return len(values) > 0 and bool(_is_iso_day(values).all())


def _is_iso_day(values: pl.Series) -> pl.Series:
    is_written = values.str.contains(_ISO)
    if not is_written.any():
        return is_written
    days = values.str.head(10).str.to_date("%Y-%m-%d", strict=False)
    return is_written & days.is_not_null()


def _form_of_most(values: pl.Series, kept: pl.Series) -> pl.Series:
    """(values,) bool, the numbers where nearly all of those kept are, or dates; else all."""
    for is_one in (values.cast(pl.Float64, strict=False).is_not_null(), _is_iso_day(values)):
        if are_few(int((kept & ~is_one).sum()), int(kept.sum())):
            return is_one
    return pl.repeat(True, len(values), dtype=pl.Boolean, eager=True)


# Labels that are spans of numbers, such as `[0-10)`, `10-19`, `<5`, `80+`; put in their order.


_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_BRACKETS = re.compile(rf"[\[(\]]\s*({_NUMBER})\s*(?:,|;|-|–|\.\.)\s*({_NUMBER})\s*[\])\[]")
_SPAN = re.compile(rf"({_NUMBER})\s*(?:-|–|\.\.|to)\s*({_NUMBER})")
_BELOW = re.compile(rf"(<|<=|≤)\s*({_NUMBER})")
_ABOVE = re.compile(rf"(>|>=|≥)\s*({_NUMBER})|({_NUMBER})\s*\+")
_ONE = re.compile(_NUMBER)


def in_order(labels: Iterable[str]) -> list[str] | None:
    """The labels by their lower ends; None where some is not a span, or two are the same."""
    spans = ends_of_spans(labels)
    if spans is None or len(set(spans.values())) < max(len(spans), 2):
        return None
    return sorted(spans, key=spans.__getitem__)


def ends_of_spans(labels: Iterable[str]) -> dict[str, tuple[float, float]] | None:
    """The ends by label, infinite where it is open; None where some is neither a number nor a
    span, or none is a span.
    """
    ends = {label: span_ends(label.strip()) for label in labels}
    spans = {label: span for label, span in ends.items() if span is not None}
    is_any = any(low < high for low, high in spans.values())
    return spans if is_any and len(spans) == len(ends) else None


def span_ends(label: str) -> tuple[float, float] | None:
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
