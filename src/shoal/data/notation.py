"""How numbers and dates are written in a table: decimal marks, groups of digits, forms of dates.

Inside, numbers have a decimal point and dates are ISO. A table is translated when it is read, by
its distinct cells, and what is published is translated back, so that nothing between the two knows
of commas.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property

import polars as pl

from shoal.data.schema import Render

_ALIKE = ("'’", " \u00a0\u2009\u202f")
THOUSANDS = (".", ",", *"".join(_ALIKE))
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_ISO_STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?")
_CLOCK = re.compile(r"%-?[HIMSfpcXT]")
_BINS = Render(intervals="[{lo}, {hi})")


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
            return text if _is_iso(text) else None
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


def advice_on(numbers: list[str], asked: Notation) -> str | None:
    """How --read makes numbers of all these texts, which are none as it was asked; None where it
    can't.
    """
    for one in NOTATIONS:
        if asked in (PLAIN, Notation(one.decimal, asked.thousands, asked.dates)) and all(
            re.fullmatch(one.number, number.strip()) for number in numbers
        ):
            said = [] if one.decimal == asked.decimal else [f"--read decimal={one.decimal}"]
            if one.thousands is not None:
                option = f"thousands={one.thousands}"
                said.append("--read " + (option if one.thousands in ".," else f'"{option}"'))
            return f"their digits are written otherwise: say {' '.join(said)}" if said else None
    return None


def _is_iso(text: str) -> bool:
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class PublishedNumbers:
    """Cells of a column of numbers: a number, an interval, a mean before an interval, or bins."""

    patterns: tuple[re.Pattern[str], ...]

    @classmethod
    def of(cls, notation: Notation, render: Render | None) -> "PublishedNumbers":
        """render: how intervals are written; None for a column of plain numbers."""
        number = rf"(\s*)({notation.number})(\s*)"
        patterns = [number]
        for form in [] if render is None else [render, _BINS]:
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
