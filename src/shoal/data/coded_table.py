"""A table that is too large for a frame: every column as codes alone, taken in piece by piece."""

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
from shoal.errors import InputError


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
        dtypes: Mapping[str, pl.DataType],
        blanks: Mapping[str, Blank],
    ) -> None:
        vars(self).update(_columns=dict(columns), names=list(columns), _records=records)
        vars(self).update(_room=room, _dtypes=dtypes, _blanks=blanks)

    _records: int
    _room: Room
    _dtypes: Mapping[str, pl.DataType]
    _blanks: Mapping[str, Blank]

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
    return ShownColumn(column.name, cells, column.codes.__getitem__)


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


# Columns of a file as codes, taken in piece by piece: only distinct texts are held in memory.
#
# Codes are numbers of first sight while a file is read, and are renumbered by sorted text at the
# end, so that nothing depends on the pieces. They lie in the Room, in segments that are as narrow
# as the texts met so far allow.


SEGMENT = 1 << 20
"""Records of a segment."""

TEXT_BYTES = 120
"""What a distinct text takes beside its characters, in every place that holds it."""

SHARE = 8
"""The distinct texts of a column may take one part of the limit in this number."""


def require_few(name: str, texts: str, held: int, limit: int) -> None:
    """Raises InputError where a column's distinct texts take too much of the memory.

    texts: how many there are, in words. held: bytes that they take.
    """
    if held > max(limit // SHARE, 1 << 16):
        raise InputError(
            f"memory: column '{name}' has {texts}, too many to be held in an eighth of the limit;"
            f" leave the column out, or allow {SHARE * held / 1e6:.0f} MB and more"
        )


class GrowingTable:
    """A table that grows by frames of text, the same columns in each."""

    def __init__(self, schema: dict[str, pl.DataType], room: Room) -> None:
        self._room, self._schema, self._records = room, schema, 0
        self._columns = {name: _GrowingColumn(name, room) for name in schema}

    def dtypes(self) -> dict[str, pl.Categorical]:
        """The types that the columns of each frame must have."""
        return {name: column.dtype for name, column in self._columns.items()}

    def add(self, frame: pl.DataFrame) -> None:
        """Takes records in; raises InputError where a column has too many distinct texts."""
        self._records += frame.height
        for name, column in self._columns.items():
            column.add(frame[name])

    def table(self) -> CodedTable:
        """All records; nothing can be added after it."""
        columns, blanks = {}, {name: column.blank for name, column in self._columns.items()}
        for name in list(self._columns):
            columns[name] = self._columns.pop(name).finished(self._schema[name].is_numeric())
        return CodedTable(columns, self._records, self._room, self._schema, blanks)


class _GrowingColumn:
    """The codes of one column so far. Missing values read as the empty text."""

    def __init__(self, name: str, room: Room) -> None:
        self.name, self._room = name, room
        # its own categories: held here, so that their numbers stay what they are
        self.dtype = pl.Categorical(pl.Categories.random("shoal"))
        self._number_of = np.full(1024, -1, dtype=np.int64)
        self._texts: list[pl.Series] = []
        self._distinct = self._bytes = 0
        self._missing = -1
        self._segments: list[np.ndarray] = []
        self._filled = SEGMENT

    def add(self, cells: pl.Series) -> None:
        physical = cells.to_physical()
        is_missing = physical.is_null().to_numpy() if physical.null_count() else None
        numbers = (
            physical.fill_null(0).to_numpy() if is_missing is not None else physical.to_numpy()
        )
        known = numbers if is_missing is None else numbers[~is_missing]
        self._learn(cells if is_missing is None else cells.drop_nulls(), known)
        codes = self._number_of[numbers] if len(known) else np.zeros(len(cells), dtype=np.int64)
        if is_missing is not None:
            if self._missing < 0:
                self._missing = self._number(pl.Series([""], dtype=pl.String))
            codes[is_missing] = self._missing
        self._keep(codes)

    @property
    def blank(self) -> Blank:
        empty = sum(int((texts == "").sum()) for texts in self._texts)
        return Blank(self._missing >= 0, empty > int(self._missing >= 0))

    def _learn(self, cells: pl.Series, numbers: np.ndarray) -> None:
        """Numbers the categories that are met for the first time, in the order of their rows."""
        most = int(numbers.max(initial=0)) + 1
        if most > len(self._number_of):
            more = np.full(max(most, 2 * len(self._number_of)), -1, dtype=np.int64)
            more[: len(self._number_of)] = self._number_of
            self._number_of = more
        fresh = np.flatnonzero(self._number_of[numbers] < 0)
        if len(fresh):
            categories, first = np.unique(numbers[fresh], return_index=True)
            texts = cells.gather(fresh[first]).cast(pl.String)
            begun = self._number(texts)
            self._number_of[categories] = np.arange(begun, self._distinct)

    def _number(self, texts: pl.Series) -> int:
        """The number of the first of these new texts; raises InputError if they are too many."""
        begun = self._distinct
        self._texts.append(texts)
        self._distinct += len(texts)
        self._bytes += int(texts.str.len_bytes().sum()) + TEXT_BYTES * len(texts)
        limit = self._room.limit
        if limit is not None:
            require_few(self.name, f"{self._distinct} different texts or more", self._bytes, limit)
        return begun

    def _keep(self, codes: np.ndarray) -> None:
        dtype = np.min_scalar_type(max(self._distinct - 1, 0))
        begun = 0
        while begun < len(codes):
            if self._filled == SEGMENT:
                self._segments.append(self._room.array(SEGMENT, dtype))
                self._filled = 0
            elif self._segments[-1].dtype.itemsize < dtype.itemsize:
                wider = self._room.array(SEGMENT, dtype)
                wider[: self._filled] = self._segments[-1][: self._filled]
                self._segments[-1] = wider
            some = codes[begun : begun + SEGMENT - self._filled]
            self._segments[-1][self._filled : self._filled + len(some)] = some
            self._filled += len(some)
            begun += len(some)

    def finished(self, was_number: bool) -> Column:
        """The column, its codes renumbered by sorted text."""
        texts = pl.concat(self._texts) if self._texts else pl.Series([], dtype=pl.String)
        cells = texts.unique().sort()
        renumbered = texts.cast(pl.Enum(cells)).to_physical().to_numpy()
        dtype = np.min_scalar_type(max(len(cells) - 1, 0))
        renumbered = renumbered.astype(dtype)
        records = max(len(self._segments) - 1, 0) * SEGMENT
        records += self._filled if self._segments else 0
        codes = self._room.array(records, dtype)
        for number in range(len(self._segments)):
            start = number * SEGMENT
            segment = self._segments[number][: records - start]
            for rows in blocks(len(segment)):
                codes[start + rows.start : start + rows.stop] = renumbered[segment[rows]]
            self._segments[number] = segment[:0].copy()  # its room is free again
        return Column(self.name, codes, cells, was_number)
