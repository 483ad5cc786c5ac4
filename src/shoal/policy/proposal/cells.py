"""What the cells of a column say, whatever its name, found once from its distinct cells."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import groupby

import numpy as np
import polars as pl

from shoal.data.column_words import words_of
from shoal.data.numbers import FARTHEST
from shoal.data.table import Column, Table
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
TOGETHER = 100_000
"""Texts of several columns that are looked at together."""


def signs_of_no_value(
    table: Table, names: Iterable[str], missing: Collection[str]
) -> list[ReleaseWarning]:
    """A warning for each column of these names where a usual sign for no value is taken for a
    value: all but those that are listed as missing.
    """
    found = []
    columns = [*map(table.column, names)]
    for column, texts in zip(columns, TextsOf.of_each(columns), strict=True):
        signs = {*ColumnCells.of(column, texts).absent}.difference(missing)
        if not signs:
            continue
        if records := int(column.counts()[column.texts.is_in([*signs]).to_numpy()].sum()):
            text = (
                f"attribute '{column.name}': a usual sign for no value stands in {records} records,"
                " and is published as a value; list them in missing_values=, or in a policy file"
                " under 'missing_values'"
            )
            found.append(ReleaseWarning(SIGN_OF_NO_VALUE, text, column.name))
    return found


class Texts:
    """Distinct texts of many columns, about which each question is asked once for all: Polars takes
    longer to start than to look at those of one column.

    values: the texts without blanks around them.
    """

    def __init__(self, texts: pl.Series) -> None:
        self.texts = texts
        self.values = texts.str.strip_chars()
        self._answers: dict[object, np.ndarray] = {}

    @cached_property
    def for_python(self) -> list[str]:
        return self.values.to_list()

    def answers(self, question: "Question") -> np.ndarray:
        """(texts,) what is true of each."""
        if question not in self._answers:
            self._answers[question] = question(self.values).to_numpy()
        return self._answers[question]


@dataclass(frozen=True)
class TextsOf:
    """Some of these texts, those of one column. rows: (distinct,) int64, ascending."""

    all: Texts
    rows: np.ndarray

    @classmethod
    def alone(cls, texts: pl.Series) -> "TextsOf":
        return cls(Texts(texts), np.arange(len(texts)))

    @classmethod
    def of_each(cls, columns: Sequence[Column]) -> "Iterator[TextsOf]":
        """Those of each column, put together as far as they are few."""
        ends = np.cumsum([len(column.texts) for column in columns])
        for _, group in groupby(zip(columns, ends, strict=True), lambda one: one[1] // TOGETHER):
            texts = [column.texts.alias(_CELL) for column, _ in group]
            together, end = Texts(pl.concat(texts, rechunk=True)), 0
            for size in map(len, texts):
                begin, end = end, end + size
                yield cls(together, np.arange(begin, end))

    def __len__(self) -> int:
        return len(self.rows)

    def __call__(self, question: "Question") -> np.ndarray:
        """(distinct,) what is true of each."""
        return self.all.answers(question)[self.rows]

    def have(self, pattern: str) -> np.ndarray:
        """(distinct,) bool, which of them have this."""
        return self(_having(pattern))

    def only(self, kept: np.ndarray) -> "TextsOf":
        return self if kept.all() else TextsOf(self.all, self.rows[kept])

    def every(self, step: int) -> list[str]:
        """The first of them and others at this distance, without blanks around them."""
        return [self.all.for_python[row] for row in self.rows[::step]]

    @property
    def values(self) -> pl.Series:
        return self._among(self.all.values)

    @property
    def texts(self) -> pl.Series:
        return self._among(self.all.texts)

    @property
    def are_placeholders(self) -> np.ndarray:
        """(distinct,) bool, up to three texts without a digit where all of many others have one."""
        has_digit = self.have(r"\d")
        if has_digit.sum() < FEWEST:
            return has_digit & False
        is_word = ~has_digit & ~self(are_signs) & ~self(are_no_numbers)
        return is_word & (is_word.sum() <= MOST_PLACEHOLDERS)

    def _among(self, texts: pl.Series) -> pl.Series:
        if len(self.rows) and self.rows[-1] - self.rows[0] + 1 == len(self.rows):
            return texts.slice(int(self.rows[0]), len(self.rows))
        return texts.gather(self.rows)


Question = Callable[[pl.Series], pl.Series]


@cache
def _having(pattern: str) -> Question:
    return lambda values: values.str.contains(pattern)


def are_signs(values: pl.Series) -> pl.Series:
    return values.is_in(NO_VALUE)


def are_no_numbers(values: pl.Series) -> pl.Series:
    return values.is_in(NO_NUMBER)


def are_no_answers(values: pl.Series) -> pl.Series:
    return values.str.to_lowercase().is_in(NO_ANSWER)


def as_numbers(values: pl.Series) -> pl.Series:
    """NaN where there is none."""
    return values.cast(pl.Float64, strict=False).fill_null(np.nan)


def are_numbers(values: pl.Series) -> pl.Series:
    return values.cast(pl.Float64, strict=False).is_not_null()


def are_iso_days(values: pl.Series) -> pl.Series:
    is_written = values.str.contains(_ISO)
    if not is_written.any():
        return is_written
    days = values.str.head(10).str.to_date("%Y-%m-%d", strict=False)
    return is_written & days.is_not_null()


@dataclass(frozen=True)
class ColumnCells:
    """A column's distinct cells that hold a value.

    kept: their texts. absent: cells that seem to stand for no value. doubtful: those of them that
    somebody has to confirm, with how many records hold each. filled: records with a value. records:
    all of the table. odd: records whose value is none of the numbers or dates that nearly all
    others are.
    """

    name: str
    kept: TextsOf
    absent: tuple[str, ...]
    filled: int
    records: int
    doubtful: Mapping[str, int] = field(default_factory=dict)
    odd: int = 0

    @classmethod
    def of(cls, column: Column, texts: TextsOf | None = None) -> "ColumnCells":
        texts = TextsOf.alone(column.texts) if texts is None else texts
        is_value, counts = ~texts(are_signs), column.counts()
        is_doubtful = texts.are_placeholders
        fewer = is_value & ~is_doubtful & ~texts(are_no_numbers)
        numbers = _all_numbers(texts(as_numbers)[fewer])
        odd = 0
        if numbers is not None or _are_all(texts(are_iso_days)[fewer]):
            is_value = fewer
            if numbers is not None:
                is_doubtful[fewer] = _far(numbers)
        else:
            is_doubtful = texts(are_no_answers)
            odd = int(counts[fewer & ~_form_of_most(texts, fewer)].sum())
        is_value = is_value & ~is_doubtful
        cells = column.cells if not is_value.all() else ()
        doubtful = {cells[i]: int(counts[i]) for i in np.flatnonzero(is_doubtful)}
        absent = [cells[i] for i in np.flatnonzero(~is_value & ~texts.have(r"^\*$"))]
        filled = int(counts[is_value].sum())
        kept = texts.only(is_value)
        return cls(column.name, kept, tuple(absent), filled, len(column.codes), doubtful, odd)

    def is_value(self, column: Column) -> np.ndarray:
        """(column's cells,) bool, which of them hold a value. column: the one these are of."""
        return column.texts.is_in(self.cells.implode()).to_numpy()

    @cached_property
    def cells(self) -> pl.Series:
        """As they are written."""
        return self.kept.texts.alias(self.name)

    @cached_property
    def values(self) -> pl.Series:
        """The cells without blanks around them."""
        return self.kept.values.alias(self.name)

    @cached_property
    def words(self) -> list[str]:
        return words_of(self.name)

    @property
    def distinct(self) -> int:
        return len(self.kept)

    @property
    def repeats(self) -> bool:
        return self.filled > self.distinct

    @property
    def all_differ(self) -> bool:
        return 1 < self.distinct == self.filled

    @cached_property
    def numbers(self) -> np.ndarray | None:
        """(distinct,) float64; None where some are not numbers, or too far out for a domain."""
        return _all_numbers(self.kept(as_numbers))

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
        return _are_all(self.kept(are_iso_days))

    @cached_property
    def form(self) -> str:
        """The form that nearly all of them have, a key of `_FORMS`; empty where there is none."""
        for form, (pattern, is_form) in _FORMS.items():
            fits = self.kept.have(f"^(?:{pattern})$")
            is_nearly_all = fits.sum() >= NEARLY_ALL * self.distinct
            if is_nearly_all and is_form(self.kept.only(fits).values):
                return form
        return ""

    @property
    def unread(self) -> str:
        """What they seem to be although they are read as text; empty where nothing is open."""
        if self.odd:
            return ODD.format(self.odd)
        for seems, pattern in () if self.numbers is not None else _UNREAD.items():
            odd = self.distinct - int(self.kept.have(f"^(?:{pattern})$").sum())
            if are_few(odd, self.distinct):
                return UNREAD.format(seems)
        return ""

    @property
    def are_phrases(self) -> bool:
        """Whether most of them have several words."""
        return self._are_mostly(r"\p{L}\s+\S")

    @property
    def are_sentences(self) -> bool:
        """Whether most of them have as many words as a sentence, however often each occurs."""
        return self._are_mostly(r"^\S*\p{L}\S*(?:\s+\S*\p{L}\S*){3}")

    def _are_mostly(self, pattern: str) -> bool:
        return bool(2 * self.kept.have(pattern).sum() > self.distinct)

    @cached_property
    def have_leading_zeros(self) -> bool:
        """Whether they are numbers as codes are: some begin with a zero before another digit."""
        return self.numbers is not None and bool(self.kept.have(r"^0\d").any())

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


def are_few(odd: int, values: int) -> bool:
    """Whether so few texts are odd that all others show what the values are."""
    return odd == 0 < values or (odd <= MOST_PLACEHOLDERS and values - odd >= FEWEST)


def _far(numbers: np.ndarray) -> np.ndarray:
    """(numbers,) bool, those such as -99, 999 and -1 that no other comes near."""
    is_far = np.zeros(len(numbers), dtype=bool)
    ends = (numbers.min(), numbers.max())
    for number in PLACEHOLDERS:
        if number not in ends:  # others lie on both sides
            continue
        others = numbers[~is_far & (numbers != number)]
        if len(others) >= FEWEST:
            low, high = others.min(), others.max()
            is_outside = number < 0 <= low or number > high + (high - low)
            is_far |= (numbers == number) & is_outside
            ends = (numbers[~is_far].min(), numbers[~is_far].max())
    return is_far


def _all_numbers(numbers: np.ndarray) -> np.ndarray | None:
    """These, unless some are none, or too far out for a domain."""
    return numbers if _are_all(np.abs(numbers) < FARTHEST / 100) else None


def may_be_days(cells: Iterable[str]) -> bool:
    """Whether one of these texts begins as an ISO date does."""
    return any(re.match(r"\s*\d{4}-", cell) for cell in cells)


def _are_all(answers: np.ndarray) -> bool:
    return len(answers) > 0 and bool(answers.all())


def _form_of_most(texts: TextsOf, kept: np.ndarray) -> np.ndarray:
    """(distinct,) bool, the numbers where nearly all of those kept are, or dates; else all."""
    for is_one in (texts(are_numbers), texts(are_iso_days)):
        if are_few(int((kept & ~is_one).sum()), int(kept.sum())):
            return is_one
    return np.ones(len(kept), dtype=bool)


# Labels that are spans of numbers, such as `[0-10)`, `10-19`, `<5`, `80+`; put in their order.


_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_BRACKETS = re.compile(rf"[\[(\]]\s*({_NUMBER})\s*(?:,|;|-|–|\.\.)\s*({_NUMBER})\s*[\])\[]")
_SPAN = re.compile(rf"({_NUMBER})\s*(?:-|–|\.\.|to)\s*({_NUMBER})")
_BELOW = re.compile(rf"(<|<=|≤)\s*({_NUMBER})")
_ABOVE = re.compile(rf"(>|>=|≥)\s*({_NUMBER})|({_NUMBER})\s*\+")
_ONE = re.compile(_NUMBER)


def in_order(labels: Iterable[str]) -> list[str] | None:
    """The labels by their lower ends; None where some is not a span, or two are the same."""
    spans = ends_of_spans(labels) or {}
    are_two = len(set(spans.values())) >= max(len(spans), 2)
    return sorted(spans, key=spans.__getitem__) if are_two else None


def ends_of_spans(labels: Iterable[str]) -> dict[str, tuple[float, float]] | None:
    """The ends by label, infinite where open; None unless all are numbers or spans, one a span."""
    ends = {label: span_ends(label.strip()) for label in labels}
    spans = {label: span for label, span in ends.items() if span is not None}
    is_any = any(low < high for low, high in spans.values())
    return spans if is_any and len(spans) == len(ends) else None


def span_ends(label: str) -> tuple[float, float] | None:
    span = _BRACKETS.fullmatch(label) or _SPAN.fullmatch(label)
    if span is not None:
        low, high = float(span[1]), float(span[2])
        return (low, high) if low < high else None
    if below := _BELOW.fullmatch(label):
        return float("-inf"), float(below[2])
    if above := _ABOVE.fullmatch(label):
        return float(above[2] or above[3]), float("inf")
    return (float(label), float(label)) if _ONE.fullmatch(label) else None
