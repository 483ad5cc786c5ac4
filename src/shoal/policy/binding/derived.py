"""Columns of a release that follow from its cells: `age_lo`, `age_hi`, `age_mid`, `age_mean`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from shoal.data.derived import PARTS, Spans, spans_of_bins, spans_of_dates, spans_of_numbers
from shoal.data.numbers import MOST_EXACT, exact_text, parse_numbers
from shoal.data.release import read_column
from shoal.data.schema import Attribute, Kind, Role, Schema, Shown
from shoal.data.table import encode_text
from shoal.errors import InputError
from shoal.policy.binding.notation import is_date, is_number
from shoal.policy.model import AttributePolicy
from shoal.policy.policy import Policy


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
