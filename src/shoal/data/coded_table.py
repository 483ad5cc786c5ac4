"""A table that is too large to be held as a frame: every column as codes alone."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.data.encoding import EncodedAttribute, EncodedTable
from shoal.data.partition import Cut
from shoal.data.recoding import GlobalRecoding, cells_of_classes, ends_by_label, texts_of_classes
from shoal.data.room import Room, blocks, needs_whole
from shoal.data.schema import Render
from shoal.data.table import Column, Table


class Blank(NamedTuple):
    """What reads as the empty text in a column: cells without a value, and empty texts."""

    missing: bool = False
    empty: bool = False


class CodedTable(Table):
    """A table whose columns are codes, which may lie in files, beside their distinct texts.

    What asks for its frame can't be done within a limit on memory, and is refused.
    """

    def __init__(
        self,
        columns: Mapping[str, Column],
        records: int,
        room: Room,
        dtypes: Mapping[str, pl.DataType] | None = None,
        blanks: Mapping[str, Blank] | None = None,
    ) -> None:
        known = {
            "_columns": dict(columns),
            "names": list(columns),
            "_records": records,
            "_room": room,
            "_dtypes": dict(dtypes or {}),
            "_blanks": dict(blanks or {}),
        }
        for name, value in known.items():
            object.__setattr__(self, name, value)

    _records: int
    _room: Room
    _dtypes: dict[str, pl.DataType]
    _blanks: dict[str, Blank]

    @property
    def frame(self) -> pl.DataFrame:
        raise needs_whole("all its records are asked for at once")

    @property
    def records(self) -> int:
        return self._records

    @property
    def room(self) -> Room:
        return self._room

    def dtype(self, name: str) -> pl.DataType:
        return self._dtypes.get(name, pl.String())

    def blank(self, name: str) -> Blank:
        """What reads as the empty text in a column."""
        return self._blanks.get(name, Blank())

    def is_restorable(self, name: str) -> bool:
        """Whether `cells` are what the column came with, whatever its records hold."""
        dtype, blank = self.dtype(name), self.blank(name)
        is_known = self.is_text(name) or dtype.is_integer() or dtype.is_float()
        return is_known and not (blank.missing and blank.empty)

    def cells(self, name: str) -> pl.Series:
        """The distinct cells of a column, of the type it came in."""
        texts = pl.Series(name, self._columns[name].cells, dtype=pl.String)
        if self.blank(name).missing:
            texts = texts.replace("", None)
        return texts if self.is_text(name) else texts.cast(self.dtype(name))

    def same_cells(self, one: str, other: str) -> bool:
        first, second = self._columns[one], self._columns[other]
        return first.cells == second.cells and all(
            np.array_equal(first.codes[rows], second.codes[rows]) for rows in blocks(self.records)
        )

    def with_column(self, column: Column) -> "CodedTable":
        columns = {**self._columns, column.name: column}
        return CodedTable(columns, self.records, self.room, self._dtypes, self._blanks)

    def without(self, names: Sequence[str]) -> "CodedTable":
        kept = {name: column for name, column in self._columns.items() if name not in names}
        return CodedTable(kept, self.records, self.room, self._dtypes, self._blanks)

    def part(self, codes: Mapping[str, np.ndarray]) -> "CodedTable":
        """Some of its columns, of some of its records. codes: theirs, (m,) of each column."""
        columns = {name: replace(self._columns[name], codes=some) for name, some in codes.items()}
        records = len(next(iter(codes.values()), ()))
        return CodedTable(columns, records, self.room, self._dtypes, self._blanks)

    def encode(self, names: Iterable[str]) -> None:
        """All columns are encoded."""

    def follows(self, name: str, source: str) -> bool:
        of, by = self._columns[name], self._columns[source]
        shown = np.full(len(by.cells), -1, dtype=np.int64)
        for rows in blocks(self.records):
            codes = by.codes[rows]
            shown[codes] = of.codes[rows]
            if not np.array_equal(shown[codes], of.codes[rows]):
                return False
        again = (shown[by.codes[rows]] == of.codes[rows] for rows in blocks(self.records))
        return all(bool(same.all()) for same in again)


# A release that is too large to be held: its distinct cells, and which of them each record shows.
#
# It is written block by block, so that only one block is ever a frame.


CLASSES = 1 << 18
"""Classes whose spans are found at once."""


Rows = slice | np.ndarray
Codes = Callable[[Rows], np.ndarray]
"""What the records of a block show, or any others."""


@dataclass(frozen=True)
class ShownColumn:
    """One published column.

    cells: the distinct cells, as they are written. codes: (rows) -> (m,) which of them the records
    of a block show. suppressed: which cell says nothing; -1 where no record shows that.
    """

    name: str
    cells: pl.Series
    codes: Codes
    suppressed: int = -1

    def block(self, rows: slice) -> pl.Series:
        return self.cells.gather(self.codes(rows)).alias(self.name)

    def is_suppressed(self, rows: Rows) -> np.ndarray:
        """(m,) bool."""
        return self.codes(rows) == self.suppressed


def as_is(column: Column, cells: pl.Series) -> ShownColumn:
    """A column that shows what the original holds."""
    return ShownColumn(column.name, cells, partial(_of_block, column.codes))


def hidden_where(
    column: ShownColumn, starred: Codes, mark: str | None, records: int
) -> ShownColumn:
    """The column with the mark (no value where it is None) in the records that are starred."""
    cells = column.cells.cast(pl.String) if mark is not None else column.cells
    shown = pl.concat([cells, pl.Series([mark], dtype=cells.dtype)])
    return _occurring(
        column.name, shown, partial(_hidden, column.codes, starred, len(cells)), records
    )


def _occurring(
    name: str, cells: pl.Series, codes: Codes, records: int, suppressed: int | None = None
) -> ShownColumn:
    """A column without the cells that no record shows: they must not decide how others are written.

    suppressed: which cell says nothing, if any.
    """
    occurs = np.zeros(len(cells), dtype=bool)
    for rows in blocks(records):
        occurs[codes(rows)] = True
    place = (np.cumsum(occurs) - 1).astype(np.uint32)
    mark = -1 if suppressed is None or not occurs[suppressed] else int(place[suppressed])
    kept = cells.filter(pl.Series(occurs))
    if not occurs[: len(kept)].all():
        codes = partial(_renumbered, place, codes)
    return ShownColumn(name, kept, codes, mark)


def in_order(column: ShownColumn, order: np.ndarray) -> ShownColumn:
    """The column with its rows in another order. order: (n,) the row behind each."""
    return replace(column, codes=partial(_in_order, column.codes, order))


@dataclass(frozen=True)
class ShownTable:
    """A release that is too large to be held as a frame."""

    columns: list[ShownColumn]
    records: int

    @property
    def frame(self) -> pl.DataFrame:
        raise needs_whole("all its records are asked for at once")

    def blocks(self) -> Iterator[pl.DataFrame]:
        """The release, block by block; one block without rows where there is no record."""
        for rows in blocks(self.records) if self.records else [slice(0, 0)]:
            yield pl.DataFrame([column.block(rows) for column in self.columns])


def of_kept(values: np.ndarray, suppressed: np.ndarray, records: int, room: Room) -> np.ndarray:
    """(m,) int32, the values of the records that are not suppressed."""
    found, begun = room.array(records, np.int32), 0
    for rows in blocks(len(suppressed)):
        some = values[rows][~suppressed[rows]]
        found[begun : begun + len(some)] = some
        begun += len(some)
    return found


def local_columns(
    columns: np.ndarray,
    starts: np.ndarray,
    labels: np.ndarray,
    encoded: EncodedTable,
    render: Render,
    room: Room,
) -> Iterator[ShownColumn]:
    """The published quasi-identifiers of classes that are runs of columns; see `Partition`."""
    for j, attribute in enumerate(encoded.attributes):
        if len(np.unique(attribute.positions)) == len(attribute.positions):
            lo, hi = _ends_of_runs(columns[j], starts, attribute)
        else:  # texts share a position, so that only their ranks tell which are shown
            lo, hi = ends_by_label(attribute, labels, len(starts) - 1)
        texts, cell = cells_of_classes(*texts_of_classes(lo, hi, attribute, render), render)
        yield _of_places(attribute, texts, cell, (labels,), render, room)


def _ends_of_runs(
    positions: np.ndarray, starts: np.ndarray, attribute: EncodedAttribute
) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest rank of each class; (classes,) int32 both."""
    classes = len(starts) - 1
    lo, hi = np.empty(classes, dtype=np.int32), np.empty(classes, dtype=np.int32)
    for first in range(0, classes, CLASSES):
        ends = starts[first : first + CLASSES + 1]
        run = positions[ends[0] : ends[-1]]
        at, some = ends[:-1] - ends[0], slice(first, first + len(ends) - 1)
        for found, least in ((lo, np.minimum), (hi, np.maximum)):
            # each position is that of one rank, and both ascend
            found[some] = np.searchsorted(attribute.positions, least.reduceat(run, at))
    return lo, hi


def global_columns(
    cut: Cut, rounds: np.ndarray, encoded: EncodedTable, render: Render, room: Room
) -> Iterator[ShownColumn]:
    """The published quasi-identifiers of a global recoding.

    rounds: (n,) int8, which round of the cut each record shows, -1 where it is suppressed.
    """
    recoding = GlobalRecoding.of(cut, rounds, encoded.attributes, render)
    for j, attribute in enumerate(encoded.attributes):
        texts, cell = recoding.cells(j, attribute, render)
        places = (rounds, attribute.codes)
        yield _of_places(attribute, texts, cell[:, attribute.rank_of_code], places, render, room)


def _of_places(
    attribute: EncodedAttribute,
    texts: list[str],
    cell: np.ndarray,
    places: tuple[np.ndarray, ...],
    render: Render,
    room: Room,
) -> ShownColumn:
    """A column of these texts. cell: which of them each place shows. places: (n,) its indexes, of
    each record.
    """
    held = room.array(cell.shape, np.min_scalar_type(len(texts)))
    held[:] = cell
    # a class whose members all lack the value publishes just that: no value
    cells = pl.Series([text or None for text in texts], dtype=pl.String)
    codes, mark = partial(_looked_up, held, places), texts.index(render.suppressed)
    return _occurring(attribute.attribute.name, cells, codes, len(places[0]), mark)


# What `ShownColumn.codes` are made of: functions with names, so that other processes can be given
# them, and the arrays that they look into.


def _of_block(codes: np.ndarray, rows: Rows) -> np.ndarray:
    return codes[rows]


def _looked_up(cell: np.ndarray, places: tuple[np.ndarray, ...], rows: Rows) -> np.ndarray:
    found: np.ndarray = cell[tuple(place[rows] for place in places)]
    return found


def _in_order(codes: Codes, order: np.ndarray, rows: Rows) -> np.ndarray:
    return codes(order[rows])


def _hidden(codes: Codes, starred: Codes, last: int, rows: Rows) -> np.ndarray:
    return np.where(starred(rows), last, codes(rows)).astype(np.uint32)


def _renumbered(place: np.ndarray, codes: Codes, rows: Rows) -> np.ndarray:
    found: np.ndarray = place[codes(rows)]
    return found
