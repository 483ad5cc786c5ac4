"""Numbers and dates as a policy says that its files write them, and as Shoal reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import polars as pl

from shoal.data.derived import PARTS, Spans, spans_of_bins, spans_of_dates, spans_of_numbers
from shoal.data.findings import listed_rows
from shoal.data.hierarchies.dates import is_period
from shoal.data.notation import Notation, PublishedNumbers, map_cells
from shoal.data.numbers import MOST_EXACT, exact_text, parse_numbers
from shoal.data.release import read_column
from shoal.data.schema import Attribute, Kind, Render, Role, Schema, Shown
from shoal.data.table import encode_text
from shoal.errors import InputError
from shoal.policy.model import AttributePolicy
from shoal.policy.policy import Policy

TEXTS = (pl.String, pl.Categorical, pl.Enum)
_SHOWN = ("quasi", "sensitive", "plain")
NO_SOURCES: Mapping[str, str] = {}
Translate = Callable[[str], str | None]


def translated_columns(
    policy: Policy, names: list[str], sources: Mapping[str, str] = NO_SOURCES
) -> dict[str, AttributePolicy]:
    """Those columns whose cells are written otherwise than Shoal reads them, as they are declared.

    sources: what derived columns are of; they are written alike.
    """
    known, notation = policy.model.attributes, policy.notation
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
    return declared.role in _SHOWN and (
        (declared.kind is Kind.NUMBER and declared.hierarchy is None) or _maker(declared) == "bins"
    )


def is_date(declared: AttributePolicy) -> bool:
    """Whether a column's texts are dates."""
    return declared.role in _SHOWN and _maker(declared) == "dates"


def _maker(declared: AttributePolicy) -> str | None:
    if not isinstance(declared.hierarchy, dict):
        return None
    return next(iter(declared.hierarchy))


def read_original(frame: pl.DataFrame, policy: Policy) -> tuple[pl.DataFrame, list[str]]:
    """The table with decimal points and ISO dates, and findings about cells that are neither."""
    return _read(frame, policy, policy.notation, None)


def read_published(
    frame: pl.DataFrame, policy: Policy, sources: Mapping[str, str]
) -> tuple[pl.DataFrame, list[str]]:
    """A release with decimal points and ISO dates; its cells may be intervals, means or nodes."""
    return _read(frame, policy, policy.notation.written, policy.render, sources)


def _read(
    frame: pl.DataFrame,
    policy: Policy,
    notation: Notation,
    render: Render | None,
    sources: Mapping[str, str] = NO_SOURCES,
) -> tuple[pl.DataFrame, list[str]]:
    findings: list[str] = []
    for name, declared in translated_columns(policy, frame.columns, sources).items():
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
        cells, lost = map_cells(column, translate)
        frame = frame.with_columns(cells.alias(name))
        odd = [cell for cell in lost if policy.is_value(cell) and _is_odd(cell, declared, render)]
        if odd and is_number(declared) and _are_grouped(odd, notation):
            remedy = "their thousands have points: say --read thousands=."
        if odd:
            rows = column.cast(pl.String).is_in(odd).arg_true().to_list()
            told = remedy.format("it" if len(rows) == 1 else "them")
            findings.append(f"attribute '{name}': {_not_such(rows, *what)}; {told}")
    return frame, findings


def _are_grouped(cells: list[str], notation: Notation) -> bool:
    """Whether cells are numbers once points group their digits."""
    if notation.thousands is not None or notation.decimal == ".":
        return False
    grouped = re.compile(replace(notation, thousands=".").number)
    return all(grouped.fullmatch(cell.strip()) for cell in cells)


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


def written(
    frame: pl.DataFrame, policy: Policy, sources: Mapping[str, str] = NO_SOURCES
) -> pl.DataFrame:
    """A release as it is published: with the policy's decimal mark and form of dates."""
    notation = policy.notation.written
    for name, declared in translated_columns(policy, frame.columns, sources).items():
        if frame[name].dtype not in TEXTS:
            continue
        translate: Translate = notation.own_day
        if is_number(declared):
            numbers = PublishedNumbers.of(Notation(), policy.render)
            translate = partial(numbers.translated, translate=notation.own)
        frame = frame.with_columns(map_cells(frame[name], translate)[0].alias(name))
    return frame


# Columns of a release that follow from its cells: `age_lo`, `age_hi`, `age_mid`, `age_mean`.


@dataclass(frozen=True)
class Derived:
    """One such column: its name, what it is of, and which of `PARTS`. kind: number or date."""

    name: str
    source: str
    part: str
    kind: str


def derived_columns(policy: Policy) -> list[Derived]:
    """All that the policy asks for, in the order in which they are written."""
    return [
        Derived(f"{name}_{part}", name, part, "date" if is_date(declared) else "number")
        for name, declared in policy.model.attributes.items()
        for part in PARTS
        if part in policy.model.write.numbers and _has(declared, part)
    ]


def _has(declared: AttributePolicy, part: str) -> bool:
    """Whether the cells of a column show such a part."""
    if declared.role != "quasi" or not (is_number(declared) or is_date(declared)):
        return False
    return declared.render != "range" if part == "mean" else declared.render != "mean"


def check_derived(names: list[str], policy: Policy) -> list[str]:
    """Findings about columns that have the name of a derived one, or means that nothing shows."""
    known = {*names, *policy.model.attributes}
    asked = derived_columns(policy)
    findings = [
        f"write: column '{column.name}' exists; rename it"
        for column in asked
        if column.name in known
    ]
    if "mean" in policy.model.write.numbers and not any(c.part == "mean" for c in asked):
        findings.append("write: 'mean' needs a number with 'render: mean' or 'render: both'")
    return findings


def with_derived(frame: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """A release with its derived columns, each behind the one it is of, as text."""
    asked = derived_columns(policy)
    columns: list[pl.Series] = []
    for name in frame.columns:
        columns.append(frame[name])
        mine = [column for column in asked if column.source == name]
        columns += _computed(frame[name], mine, policy)
    return pl.DataFrame(columns)


def without_derived(frame: pl.DataFrame, policy: Policy) -> tuple[pl.DataFrame, int | None]:
    """A release without its derived columns, and how many records its cells contradict.

    None where the policy asks for none. Raises InputError where the release lacks some of them.
    """
    asked = [c for c in derived_columns(policy) if c.source in frame.columns]
    if not asked:
        return frame, None
    absent = [column.name for column in asked if column.name not in frame.columns]
    if absent:
        names = ", ".join(f"'{name}'" for name in absent)
        raise InputError(
            f"columns {names}: asked for by 'write: numbers', not in the release; audit with the"
            " policy that it was published under"
        )
    differs = pl.repeat(False, frame.height, dtype=pl.Boolean, eager=True)
    for column in asked:
        (expected,) = _computed(frame[column.source], [column], policy)
        differs |= ~_same(frame[column.name], expected)
    return frame.drop([column.name for column in asked]), int(differs.sum())


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


def _computed(cells: pl.Series, asked: list[Derived], policy: Policy) -> list[pl.Series]:
    """The derived columns of one column, by its distinct cells."""
    if not asked:
        return []
    column = encode_text(cells)
    declared = policy.model.attributes[asked[0].source]
    if is_date(declared):
        spans = spans_of_dates(column.cells)
    elif declared.hierarchy is not None:
        spans = spans_of_bins(column.cells)
    else:
        spans = _number_spans(cells, declared, policy)
    return [_gathered(spans, one, column.codes) for one in asked]


def _number_spans(cells: pl.Series, declared: AttributePolicy, policy: Policy) -> Spans:
    attribute = Attribute(cells.name, Role.QUASI, Kind.NUMBER, shown=Shown(declared.render))
    schema = Schema((), missing_values=tuple(policy.model.missing_values), render=policy.render)
    return spans_of_numbers(read_column(attribute, encode_text(cells), schema), policy.render)


def _gathered(spans: Spans, asked: Derived, codes: object) -> pl.Series:
    texts = pl.Series(asked.name, [text or None for text in spans.part(asked.part)], pl.String)
    return texts.gather(codes)  # type: ignore[arg-type]
