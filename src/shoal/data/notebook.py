"""How a result shows itself in a notebook: a few escaped tables and sentences.

Everything is escaped, and there is no script, link, image or style sheet, so that a notebook which
does not trust its outputs shows the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from shoal.data.printable import readable

if TYPE_CHECKING:  # certificates are read by commands that need no table
    import polars as pl

MOST_ROWS = 10
MOST_LETTERS = 80  # of a cell


class Figures:
    """A dataclass that shows its figures: in a line, and as a table in a notebook. Of a collection
    it is how many there are, so that no value of the data is shown.
    """

    def _figures(self) -> list[tuple[str, object]]:
        held = ((name, getattr(self, name)) for name in self.__dataclass_fields__)  # type: ignore[attr-defined]
        return [
            (name, value if isinstance(value, int | float | str) else len(value))
            for name, value in held
            if isinstance(value, int | float | str | list | tuple | dict | set)
        ]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={str(value)[:MOST_LETTERS]}" for name, value in self._figures())
        return f"<{type(self).__name__} {shown}>"

    def _repr_html_(self) -> str:
        heads, cells = zip(*self._figures(), strict=True)
        return section(table(heads, [cells]))


def section(*parts: str) -> str:
    """Parts made by the functions here, one below the other."""
    return f"<div>{''.join(parts)}</div>"


def sentence(text: str, *, strong: bool = False) -> str:
    """A line of text."""
    shown = escape(readable(text))
    return f"<p><strong>{shown}</strong></p>" if strong else f"<p>{shown}</p>"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows of cells below their heads."""
    head = "".join(f"<th>{escape(readable(name))}</th>" for name in heads)
    body = "".join(
        f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in cells)}</tr>" for cells in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def first_rows(frame: pl.DataFrame) -> str:
    """The first rows of what was published, and how many there are."""
    shown = frame.head(MOST_ROWS)
    size = f"{frame.height:,} rows, {frame.width:,} columns"
    caption = size if shown.height == frame.height else f"The first {MOST_ROWS} of {size}"
    return sentence(f"{caption}.") + table(frame.columns, shown.rows())


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    text = readable(text)
    return escape(text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…")
