"""Cells that a spreadsheet would take for formulas, and a way to write them so that it does not.

A spreadsheet that opens delimited text computes what begins with `=`, `+`, `-`, `@`, a tab or a
carriage return, and a formula can send data away. Numbers such as -5 don't count as formulas.
"""

from collections.abc import Callable, Iterator

import polars as pl

from shoal.data.language import inflected
from shoal.data.table import Table

FORMULA = r"^[=+\-@\t\r]"
QUOTED = r"^'*[=+\-@\t\r]"  # what is escaped: with quotes before it, so that it is one-to-one
ESCAPED = r"^'+[=+\-@\t\r]"
Rewrite = Callable[[pl.Expr], pl.Expr]
NUMBER = r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$"


def formula_cells(table: Table) -> dict[str, int]:
    """How many cells of each column read as formulas, and its name as one more; none left out."""
    names = table.names
    counts = dict(
        zip(names, _are_formulas(pl.Series(names, dtype=pl.String)).cast(int), strict=True)
    )
    for name in filter(table.is_text, counts):
        column = table.column(name)
        odd = _are_formulas(column.texts)
        counts[name] += int(column.counts()[odd.to_numpy()].sum())
    return {name: count for name, count in counts.items() if count}


def escaped(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame as text with a `'` before every cell and name that reads as a formula.

    One-to-one: what begins with quotes and then such a sign gets one more quote.
    """
    return _rewritten(frame, _needs_escape, lambda text: pl.lit("'") + text)


def unescaped(frame: pl.DataFrame) -> pl.DataFrame:
    """What `escaped` was given; only of what `formula_cells` finds nothing in."""
    return _rewritten(
        frame, lambda text: text.str.contains(ESCAPED), lambda text: text.str.slice(1)
    )


def _rewritten(frame: pl.DataFrame, where: Rewrite, change: Rewrite) -> pl.DataFrame:
    """The frame with its cells and names changed where they are to be."""
    columns = []
    for name, dtype in frame.schema.items():
        text = pl.col(name)
        if dtype in _TEXTS:
            text = text.cast(pl.String)
            text = pl.when(where(text)).then(change(text)).otherwise(text)
        (new,) = pl.select(
            pl.when(where(pl.lit(name))).then(change(pl.lit(name))).otherwise(pl.lit(name))
        ).to_series()
        columns.append(text.alias(new))
    return frame.select(columns)


_TEXTS = (pl.String, pl.Categorical, pl.Enum)


def _needs_escape(text: pl.Expr) -> pl.Expr:
    return text.str.contains(QUOTED) & ~text.str.contains(NUMBER)


def _are_formulas(cells: pl.Series) -> pl.Series:
    begin = cells.str.contains(FORMULA)
    return begin & ~cells.str.contains(NUMBER) if begin.any() else begin


def formula_sentences(table: Table) -> Iterator[str]:
    """What the publisher of delimited text is warned of, a sentence for each column."""
    for name, count in formula_cells(table).items():
        cells = "{} [cell reads as a spreadsheet formula|cells read as spreadsheet formulas]"
        yield f"column '{name}': {inflected(cells, count)}; see 'write: formulas'"
