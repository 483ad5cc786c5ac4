"""How a table writes numbers and dates, found from its cells.

A table has one way to write numbers and one form of dates besides ISO: those are what the policy's
block `read` can say. Where cells leave it open, or columns disagree, a question says so.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import polars as pl

from shoal.data.numbers import NOTATIONS, PLAIN, THOUSANDS, Notation, PublishedNumbers, map_cells
from shoal.data.table import Column, Table
from shoal.policy.proposal.cells import TextsOf, are_few, are_no_numbers, are_numbers, are_signs

_DAYS = {
    "%d.%m.%Y": r"\d{1,2}\.\d{1,2}\.\d{4}",
    "%d/%m/%Y": r"\d{1,2}/\d{1,2}/\d{4}",
    "%m/%d/%Y": r"\d{1,2}/\d{1,2}/\d{4}",
    "%d-%m-%Y": r"\d{1,2}-\d{1,2}-\d{4}",
    "%m-%d-%Y": r"\d{1,2}-\d{1,2}-\d{4}",
    "%Y/%m/%d": r"\d{4}/\d{1,2}/\d{1,2}",
    "%Y.%m.%d": r"\d{4}\.\d{1,2}\.\d{1,2}",
    "%Y年%m月%d日": r"\d{4}年\d{1,2}月\d{1,2}日",
    "%Y%m%d": r"(?:19|20)\d{6}",
    "%d-%b-%Y": r"\d{1,2}-[A-Za-z]{3}-\d{4}",
    "%d %b %Y": r"\d{1,2} [A-Za-z]{3} \d{4}",
    "%d %B %Y": r"\d{1,2} [A-Za-z]{3,9} \d{4}",
    "%b %d, %Y": r"[A-Za-z]{3} \d{1,2}, \d{4}",
    "%B %d, %Y": r"[A-Za-z]{3,9} \d{1,2}, \d{4}",
}
_HOURS = r" \d{1,2}:\d{2}"
_CLOCKS = {
    "": "",
    " %H:%M": _HOURS,
    " %H:%M:%S": rf"{_HOURS}:\d{{2}}",
    " %I:%M %p": rf"{_HOURS} [AaPp][Mm]",
    " %I:%M:%S %p": rf"{_HOURS}:\d{{2}} [AaPp][Mm]",
}
_DATE_FORMS = {
    day + clock: digits + time for day, digits in _DAYS.items() for clock, time in _CLOCKS.items()
}
_ANY_DATE = re.compile(f"(?:{'|'.join(_DAYS.values())})(?:{'|'.join(_CLOCKS.values())})")
_MARKED = rf"^[-+]?[0-9]*[{re.escape(''.join(THOUSANDS))}][0-9].*[0-9]?$"
_POINTS = r"^[-+]?(?:[1-9]\d{0,2}\.\d{3}|\d{1,3})$"
"""Numbers with a point, and those below a thousand, that may be written with groups of digits."""
LOOKED_AT = 5
Form = TypeVar("Form", str, Notation)

_OTHER_FIRST = str.maketrans("dm", "md")
WHICH_FIRST = "day or month first? 'read' takes its dates for {}"
OTHER_FORM = "its {} are not written as those of other columns; which are to be converted?"
DECIMAL_OR_GROUPS = "does its comma mark decimals or group digits? 'read' takes it for a decimal"
POINT_OR_GROUPS = "does its point mark decimals or group digits? 'read' takes it for a decimal"
NUMBERS_OR_CODES = "are they numbers with groups of digits, or codes? 'read' takes them for numbers"


DECIMAL_OR_GROUP: Mapping[str, Sequence[Mapping[str, str | None]]] = {
    ",": ({"decimal": ",", "thousands": None}, {"thousands": ","}),
    ".": ({"decimal": ".", "thousands": None}, {"decimal": ",", "thousands": "."}),
}
"""By mark, what `read` says where it is of decimals, and where it groups digits."""


@dataclass(frozen=True)
class FoundNotation:
    """read: what to say in the policy's block `read`. questions: by column."""

    read: dict[str, str] = field(default_factory=dict)
    questions: dict[str, str] = field(default_factory=dict)

    def answers(self, question: str) -> Sequence[Mapping[str, str | None]]:
        """What `read` may say that decides a question; nothing where cells are to be changed."""
        form = self.read.get("dates", "")
        if question == WHICH_FIRST.format(form):
            return [{"dates": form}, {"dates": form.translate(_OTHER_FIRST)}]
        mark = {DECIMAL_OR_GROUPS: ",", POINT_OR_GROUPS: "."}.get(question)
        return DECIMAL_OR_GROUP[mark] if mark else []


def notation_in(table: Table, said: Mapping[str, Any] | None = None) -> FoundNotation:
    """How cells write numbers and dates. said: what is known of the block `read` already."""
    said = said or {}
    found = FoundNotation()
    are_texts = [name for name in table.names if table.dtype(name) == pl.String]
    columns = TextsOf.of_each([*map(table.column, are_texts)])
    texts = {name: _with_value(one) for name, one in zip(are_texts, columns, strict=True)}
    texts = {name: values for name, values in texts.items() if len(values)}
    if "dates" not in said:
        _find_dates(texts, found)
    if not {"decimal", "thousands"} <= said.keys():
        _find_numbers(texts, said, found)
    return found


def columns_as_read(
    table: Table, names: Collection[str], said: Mapping[str, Any] | None = None
) -> tuple[dict[str, Column], FoundNotation]:
    """The columns of these names, numbers and dates as Shoal reads them where nothing is open, and
    how they are written. said: as for `notation_in`.
    """
    some = table.without([name for name in table.names if name not in names])
    found = notation_in(some, said)
    known = {**(said or {}), **found.read}
    notation = Notation(known.get("decimal", "."), known.get("thousands"), known.get("dates"))
    columns = {}
    for name in some.names:
        column = columns[name] = some.column(name)
        if name not in found.questions and not column.was_number:
            texts = as_read(column.texts.alias(name).to_frame(), notation)[name]
            columns[name] = replace(column, texts=texts)
    return columns, found


def as_read(frame: pl.DataFrame, notation: Notation) -> pl.DataFrame:
    """Columns that are nearly all numbers or dates of this notation, as Shoal reads them."""
    numbers = PublishedNumbers.of(notation, None)
    readers: list[Callable[[str], str | None]] = []
    if notation.dates is not None:
        readers.append(notation.day)
    if not notation.has_plain_numbers:
        readers.append(lambda cell: numbers.translated(cell, notation.plain))
    read = []
    for column in frame.iter_columns() if readers else ():
        for reader in readers if column.dtype == pl.String else ():
            cells, lost = map_cells(column, reader)
            values = _with_value(TextsOf.alone(column.drop_nulls().unique())).values
            if are_few(int(values.is_in([cell.strip() for cell in lost]).sum()), len(values)):
                read.append(cells.alias(column.name))
                break
    return frame.with_columns(read) if read else frame


def _with_value(texts: TextsOf) -> TextsOf:
    is_value = ~texts(are_signs) & ~texts(are_no_numbers)
    return texts.only(is_value & ~texts.are_placeholders)


def _find_dates(texts: Mapping[str, TextsOf], found: FoundNotation) -> None:
    fitting = {name: forms for name, values in texts.items() if (forms := _forms(values))}
    if not fitting:
        return
    form = found.read["dates"] = _most_common(fitting)
    agreed = set.intersection(*(set(forms) for forms in fitting.values() if form in forms))
    is_open = len({one.replace("%B", "%b") for one in agreed}) > 1
    for name, forms in fitting.items():
        if form not in forms:
            found.questions[name] = OTHER_FORM.format("dates")
        elif is_open:
            found.questions[name] = WHICH_FIRST.format(form)


def _forms(texts: TextsOf) -> list[str]:
    """The forms of dates that most of these texts have, all but few."""
    some = texts.every(max(len(texts) // LOOKED_AT, 1))
    if not any(map(_ANY_DATE.fullmatch, some)):  # as in most columns
        return []
    values = texts.values
    odd = {
        form: len(values) - int((values.str.contains(f"^{digits}$") & _is_day(values, form)).sum())
        for form, digits in _DATE_FORMS.items()
        if any(re.fullmatch(digits, value) for value in some)
    }
    return _best(odd, len(values))


def _is_day(values: pl.Series, form: str) -> pl.Series:
    read = values.str.to_datetime if ":" in form else values.str.to_date
    return read(form, strict=False).is_not_null()


def _find_numbers(
    texts: Mapping[str, TextsOf], said: Mapping[str, Any], found: FoundNotation
) -> None:
    notations = [
        one
        for one in NOTATIONS
        if one == PLAIN
        or (
            said.get("decimal", one.decimal) == one.decimal
            and said.get("thousands", one.thousands) in (one.thousands, *one.groups)
        )
    ]
    fitting = {name: _notations(values, notations) for name, values in texts.items()}
    plain = [name for name, forms in fitting.items() if PLAIN in forms]
    for name in plain if not {"decimal", "thousands"} & said.keys() else ():
        if may_be_groups(texts[name]):
            found.questions[name] = POINT_OR_GROUPS
    fitting = {name: forms for name, forms in fitting.items() if forms and PLAIN not in forms}
    if not fitting:
        return
    chosen = _most_common(fitting)
    if chosen.decimal == "," and any(texts[name].have(r"\.").any() for name in plain):
        found.questions.update(dict.fromkeys(fitting, OTHER_FORM.format("numbers")))
        return
    if chosen.decimal == "," and "decimal" not in said:
        found.read["decimal"] = ","
    if chosen.thousands is not None and "thousands" not in said:
        found.read["thousands"] = chosen.thousands
    agreed = set.intersection(*(set(forms) for forms in fitting.values() if chosen in forms))
    is_open = chosen.decimal == "," and any(one.thousands == "," for one in agreed)
    for name, forms in fitting.items():
        if chosen not in forms:
            found.questions[name] = OTHER_FORM.format("numbers")
        elif is_open:
            found.questions[name] = DECIMAL_OR_GROUPS
        elif texts[name].have(r"^\d+(\s\d+){2,}$").all():
            found.questions[name] = NUMBERS_OR_CODES


def may_be_groups(texts: TextsOf) -> bool:
    """Whether the points of all these numbers, if some have one, could part groups of digits."""
    return bool(texts.have(_POINTS).all() and texts.have(r"\.").any())


def _notations(texts: TextsOf, notations: list[Notation]) -> list[Notation]:
    """Those that most of these texts have, all but few; none where no text has a mark."""
    if not texts.have(_MARKED).any():
        return []
    if texts(are_numbers).all():
        return [PLAIN]
    odd = {one: int((~texts.have(f"^(?:{one.number})$")).sum()) for one in notations}
    return _best(odd, len(texts))


def _best(odd: Mapping[Form, int], values: int) -> list[Form]:
    """The forms with fewest odd texts, where those are few.

    odd: by form, how many of the texts have another.
    """
    fewest = min(odd.values(), default=values)
    return [form for form, other in odd.items() if other == fewest and are_few(fewest, values)]


def _most_common(fitting: Mapping[str, list[Form]]) -> Form:
    """The form that most columns have; of those that as many have, the first."""
    return Counter(form for forms in fitting.values() for form in forms).most_common(1)[0][0]
