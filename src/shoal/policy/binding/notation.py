"""Numbers and dates as a policy says that its files write them, and as Shoal reads them; and what
follows from published cells: the ends of what each shows, their middle, its mean.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal, localcontext
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.data.findings import listed_rows
from shoal.data.hierarchies.dates import is_period
from shoal.data.numbers import (
    BINS,
    EXACT,
    MOST_EXACT,
    PLAIN,
    Notation,
    PublishedNumbers,
    advice_on,
    exact_text,
    loses_digits,
    map_cells,
    parse_numbers,
    plain_text,
)
from shoal.data.release import PublishedColumn, read_column
from shoal.data.schema import Attribute, Kind, Render, Role, Schema, Shown
from shoal.data.table import as_text, encode_text
from shoal.errors import InputError
from shoal.policy.consistency import named_as
from shoal.policy.model import SHOWN, AttributePolicy, PolicyModel

PARTS = ("lo", "hi", "mid", "mean")
COMPUTED = ("mid", "mean")
_SHOWN_DAY = re.compile(r"(\d{4}-\d\d-\d\d)([T ].*)?")
_MONTH = re.compile(r"(\d{4})-(\d\d)")
_QUARTER = re.compile(r"(\d{4})-Q([1-4])")
_YEAR = re.compile(r"\d{4}")
_DECADE = re.compile(r"(\d{3})0s")
_DAY = r"^\d{4}-\d\d-\d\d$"


class Span(NamedTuple):
    """What a cell shows, in texts; "" for what it does not show. The parts are those of `PARTS`.

    Dates are ISO, numbers have a decimal point.
    """

    lo: str = ""
    hi: str = ""
    mid: str = ""
    mean: str = ""

    @classmethod
    def between(cls, lo: str, hi: str) -> "Span":
        """From one number to another, "" for an end that is open; such a span has no middle."""
        if not lo or not hi:
            return cls(lo, hi)
        with localcontext(EXACT):
            return cls(lo, hi, plain_text((Decimal(lo) + Decimal(hi)) / 2))


def spans_of_numbers(column: PublishedColumn, render: Render) -> list[Span]:
    """The ends of numbers and intervals, their middle, and the means that are shown.

    They are taken from the cells' own digits: a float may have fewer.
    """
    published = PublishedNumbers.of(PLAIN, render)
    spans = []
    for cell, least in zip(column.cells, column.lo, strict=True):
        texts = [exact_text(one) for one in published.numbers(cell)] if np.isfinite(least) else []
        has_mean = column.means is not None and len(texts) in (1, 3)
        is_open = column.observed_bounds is None  # else a mean alone hides its interval
        span = Span.between(*_ends(texts)) if is_open else Span()
        spans.append(span._replace(mean=texts[0]) if has_mean else span)
    return spans


def spans_of_bins(cells: Sequence[str]) -> list[Span]:
    """The ends of bins, of which the upper one is excluded, and of values."""
    shown = PublishedNumbers.of(PLAIN, BINS)
    return [Span.between(*_ends(shown.numbers(cell))) for cell in cells]


def _ends(numbers: Sequence[str]) -> Sequence[str]:
    """The ends of a cell by its numbers: of one value, of an interval, or of a mean before it."""
    if not numbers:
        return "", ""
    return numbers[-2:] if numbers[1:] else (numbers[0], numbers[0])


def spans_of_dates(cells: Sequence[str]) -> list[Span]:
    """The first and last day of days and calendar periods, and the day in the middle."""
    return [Span() if days is None else _span_of_days(*days) for days in map(_shown_days, cells)]


def _span_of_days(first: date, last: date) -> Span:
    middle = first + (last - first) // 2
    return Span(first.isoformat(), last.isoformat(), middle.isoformat())


def _shown_days(cell: str) -> tuple[date, date] | None:
    """First and last day of what a cell of the maker `dates` names; None where it is not a date."""
    text = cell.strip()
    try:
        if found := _SHOWN_DAY.fullmatch(text):
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


TEXTS = (pl.String, pl.Categorical, pl.Enum)
NO_SOURCES: Mapping[str, str] = {}
Translate = Callable[[str], str | None]


def translated_columns(
    model: PolicyModel, names: list[str], sources: Mapping[str, str] = NO_SOURCES
) -> dict[str, AttributePolicy]:
    """Those columns whose cells are written otherwise than Shoal reads them, as they are declared.

    sources: what derived columns are of; they are written alike.
    """
    known, notation = model.attributes, model.read.notation
    columns = {name: known.get(sources.get(name, name)) for name in names}
    return {
        name: declared
        for name, declared in columns.items()
        if declared is not None
        and (
            (not notation.has_plain_numbers and is_number(declared))
            or (notation.dates is not None and is_date(declared))
        )
    }


def is_number(declared: AttributePolicy) -> bool:
    """Whether a column's texts are numbers: declared as such, or parted into bins."""
    is_plain = declared.kind is Kind.NUMBER and declared.hierarchy is None
    return (
        (declared.role in SHOWN or declared.is_weight)
        and declared.type != "date"
        and (is_plain or declared.maker == "bins")
    )


def is_date(declared: AttributePolicy) -> bool:
    """Whether a column's texts are dates."""
    return declared.role in SHOWN and (declared.type == "date" or declared.maker == "dates")


@dataclass(frozen=True)
class CellNotation:
    """How cells of a policy's files are written; Shoal reads decimal points and ISO dates."""

    model: PolicyModel

    @cached_property
    def render(self) -> Render:
        """How intervals and the suppression mark of a release are written."""
        asked = self.model.render
        return Render(asked.intervals, asked.suppressed, missing=self.model.missing_numbers)

    @cached_property
    def derived(self) -> "list[Derived]":
        """All derived columns that are asked for, in the order in which they are written."""
        return derived_columns(self.model)

    @cached_property
    def _sources(self) -> dict[str, str]:
        return {column.name: column.source for column in self.derived}

    def read_original(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
        """A table with decimal points and ISO dates, and findings about cells that are neither."""
        return self._read(frame, self.model.read.notation, None, NO_SOURCES)

    def read_published(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
        """A release so read; its cells may be intervals, means or nodes as well."""
        return self._read(frame, self.model.read.notation.written, self.render, self._sources)

    def _read(
        self,
        frame: pl.DataFrame,
        notation: Notation,
        render: Render | None,
        sources: Mapping[str, str],
    ) -> tuple[pl.DataFrame, list[str]]:
        findings: list[str] = []
        for name, declared in translated_columns(self.model, frame.columns, sources).items():
            column = frame[name]
            if column.dtype not in TEXTS:
                continue  # numbers and dates of a type of their own
            translate = _day_reader(notation, render)
            remedy = "correct {}, list the text under 'missing_values', or say"
            if is_number(declared):
                what = ("a number", "numbers", f"with the decimal mark '{notation.decimal}'")
                other = "," if notation.decimal == "." else "."
                remedy += f" what the mark is, such as --read decimal={other}"
                numbers = PublishedNumbers.of(notation, render)
                translate = partial(numbers.translated, translate=notation.plain)
            else:
                what = ("a date", "dates", f"like {notation.dates}")
                remedy += " how dates are written, such as --read dates=%d/%m/%Y"
            cells, lost = map_cells(column, partial(self._unless_missing, translate))
            frame = frame.with_columns(cells.alias(name))
            texts, values = column.cast(pl.String), filter(self.model.is_value, lost)
            odd = [cell for cell in values if _is_odd(cell, declared, render)]
            if odd and is_number(declared):
                known = odd if render else filter(self.model.is_value, texts.drop_nulls())
                remedy = advice_on({*known}, notation) or remedy
            if odd:
                rows = texts.is_in(odd).arg_true().to_list()
                told = remedy.format("it" if len(rows) == 1 else "them")
                findings.append(f"attribute '{name}': {_not_such(rows, *what)}; {told}")
        return frame, findings

    def _unless_missing(self, translate: Translate, cell: str) -> str | None:
        """A cell in Shoal's own notation; a text for no value as it stands in the file."""
        return cell if cell in self.model.missing_texts else translate(cell)

    def written(self, frame: pl.DataFrame, numbers_too: bool = False) -> pl.DataFrame:
        """A release with the policy's decimal mark, `numbers_too` where text is read, and dates."""
        notation = self.model.read.notation.written
        marked = (*TEXTS, pl.Float64, pl.Float32, pl.Decimal) if numbers_too else TEXTS
        for name, declared in translated_columns(self.model, frame.columns, self._sources).items():
            if frame[name].dtype not in marked:
                continue
            translate: Translate = notation.own_day
            if is_number(declared):
                numbers = PublishedNumbers.of(Notation(), self.render)
                translate = partial(numbers.translated, translate=notation.own)
            frame = frame.with_columns(map_cells(frame[name], translate)[0].alias(name))
        return frame

    def typed(self, frame: pl.DataFrame, single_alone: bool = False) -> pl.DataFrame:
        """The release with declared numbers as Int64 or Float64, and days as Date.

        single_alone: only in its derived columns, and where a class shows one number alone.
        Columns that show anything else, such as intervals or a text for missing values, stay text.
        So do numbers in bins that would not read as they are written, such as `07` or `2` beside
        `1.5`: the leaves of a hierarchy are texts. So do those where other cells than in the text
        would stand for no value, such as -9.00 if -9 does.
        """
        declared, none = self.model.attributes, self.model.missing_texts
        for name in frame.columns:
            attribute = declared.get(self._sources.get(name, name))
            column = frame[name]
            if attribute is None or column.dtype not in TEXTS:
                continue
            if single_alone and name not in self._sources and not _shows_one(attribute):
                continue
            text = column.cast(pl.String)
            if is_number(attribute):
                part = next((c.part for c in self.derived if c.name == name), attribute.render)
                numbers = as_numbers(text, part in COMPUTED)
                is_leaf = attribute.hierarchy is not None and name not in self._sources
                cells = (as_text(column) for column in (text, numbers))
                before, after = cells if is_leaf else (one.is_in(none) for one in cells)
                if before.equals(after):
                    frame = frame.with_columns(numbers)
            elif is_date(attribute):
                frame = frame.with_columns(_days(text))
        return frame

    def with_derived(self, frame: pl.DataFrame) -> pl.DataFrame:
        """A release with its derived columns, each behind the one it is of, as text."""
        asked = self.derived
        columns: list[pl.Series] = []
        for name in frame.columns:
            columns.append(frame[name])
            mine = [column for column in asked if column.source == name]
            columns += self._computed(frame[name], mine)
        return pl.DataFrame(columns)

    def without_derived(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, int | None]:
        """A release without its derived columns, and how many records its cells contradict.

        None where the policy asks for none. Raises InputError where the release lacks some of them.
        """
        asked = [c for c in self.derived if c.source in frame.columns]
        if not asked:
            return frame, None
        absent = [column.name for column in asked if column.name not in frame.columns]
        if absent:
            raise InputError(
                f"{named_as('column', absent)}: asked for by 'write: numbers', not in the release;"
                " audit with the policy that it was published under"
            )
        differs = pl.repeat(False, frame.height, dtype=pl.Boolean, eager=True)
        for column in asked:
            (expected,) = self._computed(frame[column.source], [column])
            differs |= ~_same(frame[column.name], expected)
        return frame.drop([column.name for column in asked]), int(differs.sum())

    def _computed(self, cells: pl.Series, asked: "list[Derived]") -> list[pl.Series]:
        """The derived columns of one column, by its distinct cells."""
        if not asked:
            return []
        column = encode_text(cells)
        declared = self.model.attributes[asked[0].source]
        if is_date(declared):
            spans = spans_of_dates(column.cells)
        elif declared.hierarchy is not None:
            spans = spans_of_bins(column.cells)
        else:
            attribute = Attribute(cells.name, Role.QUASI, Kind.NUMBER, shown=Shown(declared.render))
            schema = Schema((), missing_values=tuple(self.model.missing_texts), render=self.render)
            spans = spans_of_numbers(read_column(attribute, column, schema), self.render)
        texts = [[getattr(span, one.part) or None for span in spans] for one in asked]
        return [
            pl.Series(one.name, own, pl.String).gather(pl.Series(column.codes))
            for one, own in zip(asked, texts, strict=True)
        ]


def _is_odd(cell: str, declared: AttributePolicy, render: Render | None) -> bool:
    """Whether a cell that can't be read is a fault: nodes of a release may be any text."""
    if render is None or not is_number(declared):
        return render is None
    # what would be read as a plain number or interval, were it left as it is
    return PublishedNumbers.of(Notation(), render).translated(cell, str) is not None


def _day_reader(notation: Notation, render: Render | None) -> Translate:
    """A release also shows periods, which are written alike in every form of dates."""
    if render is None:
        return notation.day
    return lambda cell: cell if is_period(cell) else notation.day(cell)


def _not_such(rows: list[int], one: str, many: str, like: str) -> str:
    """Cells of these rows are not what their column holds, one or many of it."""
    cells = f"1 cell is not {one}" if len(rows) == 1 else f"{len(rows)} cells are not {many}"
    return f"{cells} {like} ({listed_rows(rows)})"


# Columns of a release that follow from its cells: `age_lo`, `age_hi`, `age_mid`, `age_mean`.


@dataclass(frozen=True)
class Derived:
    """One such column: its name, what it is of, and which of `PARTS`. kind: number or date."""

    name: str
    source: str
    part: str
    kind: str


def derived_columns(model: PolicyModel) -> list[Derived]:
    """All that the policy asks for, in the order in which they are written."""
    return [
        Derived(f"{name}_{part}", name, part, "date" if is_date(declared) else "number")
        for name, declared in model.attributes.items()
        for part in PARTS
        if part in model.write.numbers and _has(declared, part)
    ]


def _has(declared: AttributePolicy, part: str) -> bool:
    """Whether the cells of a column show such a part."""
    if declared.role != "quasi" or not (is_number(declared) or is_date(declared)):
        return False
    shows_mean = declared.render in ("mean", "both")
    return shows_mean if part == "mean" else not _shows_one(declared)


def _shows_one(declared: AttributePolicy) -> bool:
    """Whether a class shows one value alone, such as a mean."""
    return declared.role == "quasi" and Shown(declared.render).hides_span


def check_derived(names: list[str], model: PolicyModel) -> list[str]:
    """Findings about columns that have the name of a derived one, or means that nothing shows."""
    known = {*names, *model.attributes}
    asked = derived_columns(model)
    taken = [column.name for column in asked if column.name in known]
    findings = [f"write: column '{name}' exists; rename it" for name in taken]
    if "mean" in model.write.numbers and not any(c.part == "mean" for c in asked):
        findings.append("write: 'mean' needs a number with 'render: mean' or 'render: both'")
    return findings


def _same(shown: pl.Series, expected: pl.Series) -> pl.Series:
    """Whether cells are the same number, day or text; nothing is the same as nothing."""
    text, expected = shown.cast(pl.String).fill_null(""), expected.fill_null("")
    mine, theirs = (cells.cast(pl.Float64, strict=False) for cells in (text, expected))
    # farther out, one float stands for several whole numbers
    alike = (mine == theirs) & (mine.abs() < MOST_EXACT)
    return (_plain(text) == _plain(expected)) | alike.fill_null(False)


def _plain(cells: pl.Series) -> pl.Series:
    """Numbers without exponents and without zeros at their end; other text as it is."""
    distinct = tuple(cells.unique().to_list())
    are_numbers = np.isfinite(parse_numbers(distinct)).tolist()
    both = zip(distinct, are_numbers, strict=True)
    plain = [exact_text(cell) if number else cell for cell, number in both]
    return cells.replace(list(distinct), plain)


# Columns of a release as numbers and dates, for formats that have types.


def as_numbers(text: pl.Series, are_computed: bool = False) -> pl.Series:
    """Texts as whole numbers or floats; as they are where some are none, or would lose digits.

    are_computed: such as means, which a float rounds up to 2**53.
    """
    if text.dtype not in TEXTS:
        return text
    cells = text.str.strip_chars().replace("", None)
    numbers = cells.cast(pl.Float64, strict=False)
    if _says_more(cells, numbers) or bool(numbers.is_nan().any()):
        return text
    whole = cells.cast(pl.Int64, strict=False)
    if as_text(whole).equals(as_text(cells)):
        return whole
    is_exact = numbers.abs() < MOST_EXACT
    if not (are_computed and is_exact.all()) and loses_digits(cells):
        return text
    return numbers.cast(pl.Int64) if (is_exact & (numbers.floor() == numbers)).all() else numbers


def _days(text: pl.Series) -> pl.Series:
    filled = text.replace("", None).drop_nulls()
    if not bool(filled.str.contains(_DAY).all()):
        return text
    days = text.replace("", None).str.to_date("%Y-%m-%d", strict=False)
    return text if _says_more(text, days) else days


def _says_more(text: pl.Series, values: pl.Series) -> bool:
    """Whether some cell that is not empty has no such value."""
    return bool(((text.fill_null("") != "") & values.is_null()).any())
