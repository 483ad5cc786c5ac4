"""Cells that a spreadsheet would take for formulas, and a way to write them so that it does not.

A spreadsheet that opens delimited text computes what begins with `=`, `+`, `-`, `@`, a tab or a
carriage return, and a formula can send data away. Numbers such as -5 don't count as formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl

from shoal.data.table import Table

FORMULA = r"^[=+\-@\t\r]"
QUOTED = r"^'*[=+\-@\t\r]"  # what is escaped: with quotes before it, so that it is one-to-one
ESCAPED = r"^'+[=+\-@\t\r]"
Rewrite = Callable[[pl.Expr], pl.Expr]
NUMBER = r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$"


def formula_cells(frame: pl.DataFrame) -> dict[str, int]:
    """How many cells of each column read as formulas, and its name as one more; none left out."""
    counts = {name: _count(frame[name]) for name in frame.columns}
    for name in frame.columns:
        counts[name] += _count(pl.Series([name]))
    return {name: count for name, count in counts.items() if count}


def escaped(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame as text with a `'` before every cell and name that reads as a formula.

    One-to-one: what begins with quotes and then such a sign gets one more quote.
    """
    return _rewritten(frame, _needs_escape, lambda text: pl.lit("'") + text)


def unescaped(frame: pl.DataFrame) -> pl.DataFrame:
    """What `escaped` was given; only of what `formula_cells` finds nothing in."""
    return _rewritten(frame, _is_escaped, lambda text: text.str.slice(1))


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


def _is_escaped(text: pl.Expr) -> pl.Expr:
    return text.str.contains(ESCAPED)


def _count(series: pl.Series) -> int:
    """Cells that read as formulas; of categories, each is looked at once."""
    if series.dtype not in _TEXTS:
        return 0
    if (
        isinstance(series.dtype, pl.Enum)
        and not series.dtype.categories.str.contains(FORMULA).any()
    ):
        return 0  # what no record can hold need not be counted
    counted = series.value_counts(name="n") if series.dtype != pl.String else None
    text = series if counted is None else counted[series.name].cast(pl.String)
    odd = text.str.contains(FORMULA)
    if not odd.any():
        return 0
    odd = (odd & ~text.str.contains(NUMBER)).fill_null(False)
    return int(odd.sum() if counted is None else counted.filter(odd)["n"].sum())


def formula_sentences(frame: pl.DataFrame) -> Iterator[str]:
    """What to tell the publisher of delimited text, a sentence for each column."""
    return _sentences(formula_cells(frame))


def formula_sentences_of(table: Table) -> Iterator[str]:
    """What to tell the publisher of a table that may be held as codes alone."""
    counts = {}
    for name in table.names:
        cells, records = table.texts(name)
        odd = cells.str.contains(FORMULA) & ~cells.str.contains(NUMBER)
        counts[name] = int(records[odd.to_numpy()].sum()) + _count(pl.Series([name]))
    return _sentences({name: count for name, count in counts.items() if count})


def _sentences(counts: dict[str, int]) -> Iterator[str]:
    for name, count in counts.items():
        cells = (
            "1 cell reads as a spreadsheet formula"
            if count == 1
            else f"{count} cells read as spreadsheet formulas"
        )
        yield f"column '{name}': {cells}; see 'write: formulas'"
