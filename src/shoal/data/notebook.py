"""How a result shows itself, printed or in a notebook: a few escaped tables and sentences.

Everything is escaped, and there is no script, link, image or style sheet, so that a notebook which
does not trust its outputs shows the same.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape, unescape
from typing import TYPE_CHECKING, Any

from shoal.data.language import readable

if TYPE_CHECKING:  # certificates are read by commands that need no table
    import narwhals as nw

MOST_ROWS = 10
MOST_LETTERS = 80  # of a cell
_PARTS = re.compile(r"<table>.*?</table>|<p>.*?</p>")
_CELLS = re.compile(r"<t[hd]>(.*?)</t[hd]>")
_TAGS = re.compile(r"<[^>]*>")


class Figures:
    """A result that shows its figures: in a line, and as tables where printed or in a notebook.

    A collection is none; in a notebook, one of dataclasses is a table of their figures. A field of
    `repr=False` is never shown, so that no value of the data is.
    """

    def _figures(self) -> Mapping[str, object]:
        return figures_of(self)

    def __repr__(self) -> str:
        figures = self._figures().items()
        shown = ", ".join(f"{name}={str(_short(value))[:MOST_LETTERS]}" for name, value in figures)
        return f"<{type(self).__name__} {shown}>"

    def __str__(self) -> str:
        return as_text(self._repr_html_())

    def _repr_html_(self) -> str:
        held = [value for _, value in _held(self)]
        inner = [_figures_table([*map(_shown, value)]) for value in held if _are_data(value)]
        others = [value._repr_html_() for value in held if hasattr(value, "_repr_html_")]
        return section(_figures_table([self._figures()]), *inner, *others)


def figures_of(held: object) -> dict[str, object]:
    """The figures of a dataclass by the names of its fields."""
    return {
        name: value for name, value in _held(held) if isinstance(value, int | float | str | None)
    }


def _held(held: Any) -> list[tuple[str, Any]]:
    shown = [one.name for one in fields(held) if one.repr] if is_dataclass(held) else []
    return [(name, getattr(held, name)) for name in shown]


def _shown(held: object) -> Mapping[str, object]:
    return held._figures() if isinstance(held, Figures) else figures_of(held)


def _are_data(value: object) -> bool:
    """Whether it is some dataclasses."""
    return isinstance(value, list | tuple) and bool(value) and all(map(is_dataclass, value))


def _figures_table(rows: Sequence[Mapping[str, object]]) -> str:
    heads = [*dict.fromkeys(name for row in rows for name in row)]
    shown = [name.replace("_", " ") for name in heads]
    return table(shown, [[_short(row.get(name)) for name in heads] for row in rows])


def _short(value: object) -> object:
    """A figure as a summary writes it: six digits of one that was measured."""
    return f"{value:.6g}" if isinstance(value, float) else value


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


def as_text(shown: str) -> str:
    """What `section` made, in lines: the cells of a column begin below one another."""
    lines = []
    for part in _PARTS.findall(shown):
        rows = [_CELLS.findall(row) for row in part.split("<tr>")[1:]]
        rows = [[unescape(cell) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append("  ".join(cells).rstrip())
        if not rows:
            lines.append(unescape(_TAGS.sub("", part)))
    return "\n".join(lines)


def first_rows(frame: "nw.DataFrame[Any]") -> str:
    """The first rows of what was published, and how many there are."""
    shown = frame.head(MOST_ROWS)
    rows, columns = frame.shape
    size = f"{rows:,} rows, {columns:,} columns"
    caption = size if rows <= MOST_ROWS else f"The first {MOST_ROWS} of {size}"
    return sentence(f"{caption}.") + table(frame.columns, shown.rows())


def _cell(value: object) -> str:
    is_missing = type(value).__name__ in ("NoneType", "NAType", "NaTType") or value != value
    text = "" if is_missing else readable(str(value))
    return escape(text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…")
