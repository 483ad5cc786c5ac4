"""The order of published rows: it follows from what they show, so it tells nothing of the input.

Quasi-identifiers are compared first, in the policy's order, then the other columns from left to
right. In each, no value comes first, then numbers and spans by their ends (after a mean, too), then
text by code point; the suppression mark is last, and so are suppressed records. Equal rows are
interchangeable.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.data.numbers import parse_numbers
from shoal.data.release import PublishedColumn, number_ends
from shoal.data.room import IN_MEMORY, Room, blocks
from shoal.data.schema import Render
from shoal.data.table import Column, Table, as_text, encode_text

EMPTY, NUMBER, TEXT, MARK = range(4)
KEY_BITS = 62


class RankedColumn(NamedTuple):
    """codes: (rows) -> which distinct cell each of these rows shows. ranks: (cells,) int64."""

    codes: Callable[[slice | np.ndarray], np.ndarray]
    ranks: np.ndarray

    @classmethod
    def of(cls, column: Column | PublishedColumn, render: Render) -> "RankedColumn":
        cells = column.texts if isinstance(column, Column) else column.cells
        texts = pl.Series(column.name, cells, pl.String)
        return cls(column.codes.__getitem__, cell_ranks(texts, render))


class Followed(NamedTuple):
    """A column that rows are sorted by, more or less.

    codes: (n,) the distinct cell of the original behind each published row. middles: (cells,)
    float64, where its rows would stand on average. correlation: Spearman's, with the number of the
    row.
    """

    name: str
    codes: np.ndarray
    middles: np.ndarray
    correlation: float

    @property
    def place(self) -> np.ndarray:
        """(n,) float64, where the person behind each published row would stand."""
        return self.middles[self.codes]


def published_order(
    frame: pl.DataFrame,
    quasi: Sequence[str],
    render: Render,
    original: Table | None = None,
    labels: np.ndarray | None = None,
) -> np.ndarray:
    """(n,) int64, the row of the frame behind each published one, as `render.order` says.

    original: the table that some columns are of, so that these are encoded once. labels: (n,)
    int32, equal where rows show the same in every quasi-identifier, by their class, or -1.
    """
    if render.order == "input":
        return np.arange(frame.height)
    names = by_importance(frame.columns, quasi)
    columns = [_ranked(frame[name], render, original) for name in names]
    if labels is not None and set(names[: len(quasi)]) == set(quasi):
        columns = [_by_class(columns[: len(quasi)], labels), *columns[len(quasi) :]]
    return ascending(columns, frame.height, IN_MEMORY)


def _by_class(columns: Sequence[RankedColumn], labels: np.ndarray) -> RankedColumn:
    """What classes show in some columns together."""
    count = int(labels.max(initial=-1)) + 1
    some = np.zeros(count + 1, dtype=np.int64)  # a row of each, the last place for those in none
    some[labels] = np.arange(len(labels))
    shown = [RankedColumn(column.codes(some).__getitem__, column.ranks) for column in columns]
    order = ascending(shown, count + 1, IN_MEMORY)
    differs = np.zeros(count + 1, dtype=bool)
    for column in shown:
        differs[1:] |= np.diff(column.ranks[column.codes(order)]) != 0
    ranks = np.empty(count + 1, dtype=np.int64)
    ranks[order] = np.cumsum(differs)
    return RankedColumn(labels.__getitem__, ranks)


def is_in_order(table: Table, quasi: Sequence[str], render: Render) -> bool:
    """Whether the rows of a release are sorted by their quasi-identifiers."""
    columns = [RankedColumn.of(table.column(name), render) for name in quasi]
    order = ascending(columns, table.records, table.room)
    return all(bool((np.diff(order[rows]) == 1).all()) for rows in blocks(table.records))


def by_importance(names: Sequence[str], quasi: Sequence[str]) -> list[str]:
    """The published columns in the order in which rows are compared."""
    return [*quasi, *(name for name in names if name not in quasi)]


def cell_ranks(cells: pl.Series, render: Render) -> np.ndarray:
    """(cells,) int64, the place of each cell among all of them; equal texts have the same."""
    text = as_text(cells)
    lo = parse_numbers(text)
    hi = lo.copy()
    others = np.flatnonzero(np.isnan(lo))
    spans = number_ends(tuple(text.gather(others).to_list()), render, after_means=True)
    for ends, found in zip((lo, hi), spans, strict=True):
        ends[others] = parse_numbers(found)
    kind = np.where(np.isnan(lo) | np.isnan(hi), TEXT, NUMBER)
    kind[(text == "").to_numpy()], kind[(text == render.suppressed).to_numpy()] = EMPTY, MARK
    lo[kind != NUMBER] = hi[kind != NUMBER] = 0
    alphabetic = _alphabetic(text)
    order = np.lexsort((alphabetic, hi, lo, kind))
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.cumsum(np.diff(alphabetic[order], prepend=alphabetic[order[:1]]) != 0)
    return ranks


def _alphabetic(texts: pl.Series) -> np.ndarray:
    """(texts,) int64, the place of each in the alphabet; those of a column are in order already."""
    if (texts.slice(1) > texts.slice(0, max(len(texts) - 1, 0))).all():
        return np.arange(len(texts))
    return encode_text(texts).codes.astype(np.int64)


def ascending(columns: Sequence[RankedColumn], records: int, room: Room) -> np.ndarray:
    """(n,) int64, the rows in ascending order, compared by the first column first.

    Few columns at a time make a key of one number, from the last ones on; with the row behind the
    key, all that is left is to sort numbers.
    """
    bits = records.bit_length()
    order = None
    for group in _groups(columns, KEY_BITS - bits):
        key = room.array(records, np.int64)
        for some in blocks(records):
            rows = some if order is None else order[some]
            number = np.zeros(some.stop - some.start, dtype=np.int64)
            for column in group:
                number *= len(column.ranks)
                number += column.ranks[column.codes(rows)]
            key[some] = (number << bits) | np.arange(some.start, some.stop)
        key.sort()
        for some in blocks(records):
            place = key[some] & ((1 << bits) - 1)
            key[some] = place if order is None else order[place]
        order = key
    return np.arange(records) if order is None else order


def _groups(columns: Sequence[RankedColumn], bits: int) -> list[list[RankedColumn]]:
    """The columns in groups whose keys fit into this number of bits, the last group first."""
    groups: list[list[RankedColumn]] = []
    size = 1
    for column in reversed(columns):
        if not groups or size * len(column.ranks) > 1 << bits:
            groups.append([])
            size = 1
        groups[-1].insert(0, column)
        size *= max(len(column.ranks), 1)
    return groups


def _ranked(series: pl.Series, render: Render, original: Table | None) -> RankedColumn:
    if isinstance(series.dtype, pl.Enum):
        cells = pl.concat([series.dtype.categories, pl.Series([""])])
        codes = series.to_physical().cast(pl.UInt32).fill_null(len(cells) - 1).to_numpy()
        return RankedColumn(codes.__getitem__, cell_ranks(cells, render))
    name = series.name
    if original is not None and name in original.names and series.equals(original.series(name)):
        return RankedColumn.of(original.column(name), render)
    return RankedColumn.of(encode_text(series), render)
