"""Numbers and dates as a policy says that its files write them, and as Shoal reads them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, partial

import numpy as np
import polars as pl

from shoal.data.derived import PARTS, Spans, spans_of_bins, spans_of_dates, spans_of_numbers
from shoal.data.findings import listed_rows
from shoal.data.hierarchies.dates import is_period
from shoal.data.notation import Notation, PublishedNumbers, advice_on, map_cells
from shoal.data.numbers import MOST_EXACT, exact_text, parse_numbers
from shoal.data.release import read_column
from shoal.data.schema import Attribute, Kind, Render, Role, Schema, Shown
from shoal.data.table import as_text, encode_text
from shoal.errors import InputError
from shoal.policy.model import AttributePolicy, PolicyModel

TEXTS = (pl.String, pl.Categorical, pl.Enum)
_SHOWN = ("quasi", "sensitive", "plain")
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
        (declared.role in _SHOWN or declared.is_weight)
        and declared.type != "date"
        and (is_plain or _maker(declared) == "bins")
    )


def is_date(declared: AttributePolicy) -> bool:
    """Whether a column's texts are dates."""
    return declared.role in _SHOWN and (declared.type == "date" or _maker(declared) == "dates")


def _maker(declared: AttributePolicy) -> str | None:
    if not isinstance(declared.hierarchy, dict):
        return None
    return next(iter(declared.hierarchy))


@dataclass(frozen=True)
class CellNotation:
    """How cells of a policy's files are written; Shoal reads decimal points and ISO dates."""

    model: PolicyModel

    @cached_property
    def render(self) -> Render:
        """How intervals and the suppression mark of a release are written."""
        return Render(self.model.render.intervals, self.model.render.suppressed)

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
            if is_number(declared):
                what = ("a number", "numbers", f"with the decimal mark '{notation.decimal}'")
                remedy = "correct {}, or say what the mark is, such as --read decimal=."
                numbers = PublishedNumbers.of(notation, render)
                translate = partial(numbers.translated, translate=notation.plain)
            else:
                what = ("a date", "dates", f"like {notation.dates}")
                remedy = (
                    "correct {}, say how dates are written, such as --read dates=%d/%m/%Y, or list"
                    " the text under 'missing_values'"
                )
            cells, lost = map_cells(column, partial(self._unless_missing, translate))
            frame = frame.with_columns(cells.alias(name))
            odd = [
                cell
                for cell in lost
                if self.model.is_value(cell) and _is_odd(cell, declared, render)
            ]
            if odd and is_number(declared):
                remedy = advice_on(odd, notation) or remedy
            if odd:
                rows = column.cast(pl.String).is_in(odd).arg_true().to_list()
                told = remedy.format("it" if len(rows) == 1 else "them")
                findings.append(f"attribute '{name}': {_not_such(rows, *what)}; {told}")
        return frame, findings

    def _unless_missing(self, translate: Translate, cell: str) -> str | None:
        """A cell in Shoal's own notation; a text for no value as it stands in the file."""
        return cell if cell in self.model.missing_values else translate(cell)

    def written(self, frame: pl.DataFrame) -> pl.DataFrame:
        """A release as it is published: with the policy's decimal mark and form of dates."""
        notation = self.model.read.notation.written
        for name, declared in translated_columns(self.model, frame.columns, self._sources).items():
            if frame[name].dtype not in TEXTS:
                continue
            translate: Translate = notation.own_day
            if is_number(declared):
                numbers = PublishedNumbers.of(Notation(), self.render)
                translate = partial(numbers.translated, translate=notation.own)
            frame = frame.with_columns(map_cells(frame[name], translate)[0].alias(name))
        return frame

    def typed(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The release with declared numbers as Int64 or Float64, and days as Date.

        Columns that show anything else, such as intervals or a text for missing values, stay text.
        So do numbers in bins that would not read as they are written, such as `07` or `2` beside
        `1.5`: the leaves of a hierarchy are texts.
        """
        declared = self.model.attributes
        for name in frame.columns:
            attribute = declared.get(self._sources.get(name, name))
            column = frame[name]
            if attribute is None or column.dtype not in TEXTS:
                continue
            text = column.cast(pl.String)
            if is_number(attribute):
                numbers = as_numbers(text)
                is_leaf = attribute.hierarchy is not None and name not in self._sources
                if not is_leaf or as_text(numbers).equals(as_text(text)):
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
            names = ", ".join(f"'{name}'" for name in absent)
            raise InputError(
                f"columns {names}: asked for by 'write: numbers', not in the release; audit with"
                " the policy that it was published under"
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
            spans = self._number_spans(cells, declared)
        return [_gathered(spans, one, column.codes) for one in asked]

    def _number_spans(self, cells: pl.Series, declared: AttributePolicy) -> Spans:
        attribute = Attribute(cells.name, Role.QUASI, Kind.NUMBER, shown=Shown(declared.render))
        schema = Schema((), missing_values=tuple(self.model.missing_values), render=self.render)
        return spans_of_numbers(read_column(attribute, encode_text(cells), schema), self.render)


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
    return shows_mean if part == "mean" else not Shown(declared.render).hides_span


def check_derived(names: list[str], model: PolicyModel) -> list[str]:
    """Findings about columns that have the name of a derived one, or means that nothing shows."""
    known = {*names, *model.attributes}
    asked = derived_columns(model)
    findings = [
        f"write: column '{column.name}' exists; rename it"
        for column in asked
        if column.name in known
    ]
    if "mean" in model.write.numbers and not any(c.part == "mean" for c in asked):
        findings.append("write: 'mean' needs a number with 'render: mean' or 'render: both'")
    return findings


def _same(shown: pl.Series, expected: pl.Series) -> pl.Series:
    """Whether cells are the same number, day or text; nothing is the same as nothing."""
    text = shown.cast(pl.String).fill_null("")
    expected = expected.fill_null("")
    mine, theirs = (cells.cast(pl.Float64, strict=False) for cells in (text, expected))
    # farther out, one float stands for several whole numbers
    alike = (mine == theirs) & (mine.abs() < MOST_EXACT)
    return (_plain(text) == _plain(expected)) | alike.fill_null(False)


def _plain(cells: pl.Series) -> pl.Series:
    """Numbers without exponents and without zeros at their end; other text as it is."""
    distinct = tuple(cells.unique().to_list())
    is_number = np.isfinite(parse_numbers(distinct))
    plain = [
        exact_text(cell) if number else cell
        for cell, number in zip(distinct, is_number.tolist(), strict=True)
    ]
    return cells.replace(list(distinct), plain)


def _gathered(spans: Spans, asked: Derived, codes: object) -> pl.Series:
    texts = pl.Series(asked.name, [text or None for text in spans.part(asked.part)], pl.String)
    return texts.gather(codes)  # type: ignore[arg-type]


# Columns of a release as numbers and dates, for formats that have types.


_DAY = r"^\d{4}-\d\d-\d\d$"


def as_numbers(text: pl.Series) -> pl.Series:
    """Texts as whole numbers or floats; as they are where some are none, or would lose digits."""
    if text.dtype not in TEXTS:
        return text
    numbers = text.str.strip_chars().replace("", None).cast(pl.Float64, strict=False)
    if _says_more(text, numbers) or not bool(numbers.drop_nulls().is_finite().all()):
        return text
    values = numbers.drop_nulls().to_numpy()
    is_large = np.abs(values) >= MOST_EXACT
    if not is_large.any() and (np.floor(values) == values).all():
        return numbers.cast(pl.Int64)
    return text if is_large.any() and _loses_digits(text) else numbers


def _loses_digits(text: pl.Series) -> bool:
    """Whether some number is another one as a float."""
    cells = [cell.strip() for cell in text.drop_nulls().unique().to_list()]
    return any(cell and Decimal(cell) != Decimal(float(cell)) for cell in cells)


def _days(text: pl.Series) -> pl.Series:
    filled = text.replace("", None).drop_nulls()
    if not bool(filled.str.contains(_DAY).all()):
        return text
    days = text.replace("", None).str.to_date("%Y-%m-%d", strict=False)
    return text if _says_more(text, days) else days


def _says_more(text: pl.Series, values: pl.Series) -> bool:
    """Whether some cell that is not empty has no such value."""
    return bool(((text.fill_null("") != "") & values.is_null()).any())
