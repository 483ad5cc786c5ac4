"""How numbers and dates are written, found in the cells: decimal marks, groups of digits, local
forms of dates.

A table has one way to write numbers and one form of dates besides ISO: those are what the policy's
block `read` can say. Where cells leave it open, or columns disagree, a question says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import polars as pl

from shoal.advise.proposal.cells import NO_NUMBER, NO_VALUE
from shoal.data.notation import Notation, PublishedNumbers, map_cells
from shoal.data.table import Column, Table

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
    texts = {name: _values(table.column(name)) for name in table.names if kinds[name] == pl.String}
    texts = {name: values for name, values in texts.items() if len(values)}
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
            if {cell.strip() for cell in lost} <= {*NO_VALUE, *NO_NUMBER}:
                frame = frame.with_columns(cells.alias(name))
                break
    return frame


def _values(column: Column) -> pl.Series:
    values = pl.Series(column.cells, dtype=pl.String).str.strip_chars()
    return values.filter(~values.is_in([*NO_VALUE, *NO_NUMBER]))


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
