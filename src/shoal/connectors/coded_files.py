"""Tables in files that are too large for memory: read by pieces as codes, written by blocks."""

import gzip
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from shoal.connectors import delimited, files, formats
from shoal.connectors.dialect import UTF8, Dialect, Reading
from shoal.connectors.formats import Format, SourceFile, parquet_arrow
from shoal.connectors.location import PARQUET, Location
from shoal.connectors.record_ends import PIECE, Pieces
from shoal.connectors.typed import (
    nan_counts,
    plain,
    require_unfolded,
    table_errors,
    without_records,
)
from shoal.data import cores, regular_files, warnings
from shoal.data.coded_table import Blank, CodedTable
from shoal.data.room import Room, blocks, needs_whole, spooled
from shoal.data.table import Column, Table
from shoal.errors import InputError, library_errors_as

PARQUET_ROWS = 1 << 17
"""Records of a Parquet file that are held at once, beside what decoding them takes."""


def read_coded(path: str | Path, kind: str | None, reading: Reading, room: Room) -> SourceFile:
    """The table in a file of the given format, by default that of its name.

    Raises InputError where it is wrong, or can only be read as a whole.
    """
    place = Location(path)
    kind = place.kind_to_read if kind is None else formats.format_of(kind)
    if place.is_many:
        raise needs_whole(f"'{path}': a folder or several files are read")
    if not kind.fits_past_memory:
        raise needs_whole(f"'{path}': files of the format {kind[1:]} are read")
    regular_files.require_regular(path, "file")
    if place.is_standard or regular_files.is_pipe(path):
        raise needs_whole("what comes from a pipe is read")
    try:
        with regular_files.unchanged(path):
            return _read_regular(path, kind, reading, room)
    except OSError as failed:
        raise files.unreadable(path, failed) from None


def _read_regular(path: str | Path, kind: Format, reading: Reading, room: Room) -> SourceFile:
    if kind.is_parquet:
        with cores.beside(files.file_sha256, path) as hashed:
            require_unfolded([path], kind, f"file '{path}'", reading.unpacked)
            table, nans = _read_parquet(path, reading, room)
            return SourceFile(table, hashed(), remarks=warnings.nan_remarks(nans))
    if not regular_files.is_packed(path):
        return _read_delimited(Path(path), str(path), kind, reading, room)
    with _unpacked(path, room, reading.unpacked) as plain:
        source = _read_delimited(plain, str(path), kind, reading, room)
    return replace(source, sha256=files.file_sha256(path))


@contextmanager
def _unpacked(path: str | Path, room: Room, allowed: int | None) -> Iterator[Path]:
    """A file that is compressed as a plain one, which has no name in any folder."""
    most = regular_files.most_unpacked(os.stat(path).st_size, allowed)
    with spooled(room.folder) as (plain, named):
        try:
            with gzip.open(path, "rb") as packed:
                while block := packed.read(1 << 20):
                    regular_files.require_room(plain.tell() + len(block), most, f"file '{path}'")
                    plain.write(block)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise InputError(f"file '{path}': its compression is damaged; fetch it again") from None
        plain.flush()
        yield named


def _read_delimited(
    content: Path, path: str, kind: str, reading: Reading, room: Room
) -> SourceFile:
    beginning = delimited.begin(content, path, kind, reading)
    dialect, header = beginning.dialect, beginning.header
    if beginning.above or dialect.encoding != UTF8 or isinstance(beginning.content, bytes):
        raise needs_whole(f"'{path}': text in {dialect.encoding}, or below a title, is read")
    limit = room.limit or PIECE * 32
    pieces = Pieces(content, min(PIECE, max(limit // 32, 1)), path=path)
    growing = GrowingTable({name: pl.String() for name in header}, room)
    for frame in frames_of(pieces, beginning, list(growing.dtypes().values())):
        growing.add(frame)
    return SourceFile(growing.table(), pieces.sha256, dialect)


def frames_of(
    pieces: Pieces, beginning: delimited.Beginning, dtypes: Sequence[pl.DataType]
) -> Iterator[pl.DataFrame]:
    """The records of a delimited text, piece by piece; raises InputError where it is wrong.

    dtypes: of the columns, in their order.
    """
    separator, header = beginning.dialect.delimiter, beginning.header
    content, path = pieces.content, pieces.path
    begun = 0
    blank: np.ndarray | None = None

    def blank_rows() -> np.ndarray:
        """The rows of the whole text that are blank lines; raises InputError where it is wrong."""
        delimited.check_quotes(content, path, separator)
        delimited.check_encoding(content, path)
        rows = delimited.check_rows(content, path, separator, len(header))
        return np.array(rows, dtype=np.int64)

    for piece in _ahead(iter(pieces)):
        try:
            if b'"' in piece:
                delimited.check_quotes(pieces.head + piece, path, separator)
            with library_errors_as("is not a table"):
                frame = pl.read_csv(
                    pieces.head + piece,
                    separator=separator,
                    infer_schema=False,
                    schema_overrides=list(dtypes),
                    low_memory=True,
                )
        except InputError:  # about a piece, whose rows have other numbers
            blank_rows()
            raise delimited.unreadable(path) from None
        delimited.name_columns(frame, header, path)
        start = begun
        begun += frame.height
        # rows are looked at one by one only where a cell may be missing
        if frame.height and frame[frame.columns[-1]].null_count():
            blank = blank_rows() if blank is None else blank
            if len(header) > 1:
                here = blank[(blank >= start) & (blank < begun)]
                frame = delimited.without_rows(frame, here - start)
        yield frame


def _ahead(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Each piece, the next one read and hashed while one is parsed, if two threads may work."""
    if cores.threads() == 1:
        yield from pieces
        return
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, pieces, None)
        while (piece := coming.result()) is not None:
            coming = pool.submit(next, pieces, None)
            yield piece


def _read_parquet(
    path: str | Path, reading: Reading, room: Room
) -> tuple[CodedTable, Counter[str]]:
    """The table, and how many cells are NaN, by column."""
    nans = Counter[str]()
    with table_errors(path, PARQUET, f"file '{path}'"):
        schema = dict(pl.read_parquet_schema(path))
        plain(without_records(schema), f"file '{path}'")
        growing = GrowingTable(schema, room)
        dtypes = growing.dtypes()
        texts = [pl.col(name).cast(pl.String).cast(dtypes[name]) for name in schema]
        scanned = pl.scan_parquet(path, glob=False, low_memory=True)
        for frame in scanned.collect_batches(chunk_size=PARQUET_ROWS, maintain_order=True):
            nans += nan_counts(frame, reading)
            frame = delimited.with_moments_as_text(plain(frame, f"file '{path}'"))
            growing.add(frame.select(texts))
    return growing.table(), nans


def write_blocks(
    blocks: Iterator[pl.DataFrame],
    draft: Path,
    kind: str,
    compressed: bool,
    dialect: Dialect,
    metadata: dict[str, str],
) -> None:
    """Write a table block by block: the bytes that `files.write` gives the whole of it."""
    is_parquet = formats.format_of(kind).is_parquet
    with files.draft_file(draft, compressed and not is_parquet) as file:
        if is_parquet:
            _write_parquet(blocks, file, metadata)
            return
        for number, block in enumerate(blocks):
            delimited.write(block, file, dialect, number == 0)


def _write_parquet(
    blocks: Iterator[pl.DataFrame], file: BinaryIO, metadata: dict[str, str]
) -> None:
    first = next(blocks)

    def rows(
        columns: list[str] | None, predicate: pl.Expr | None, most: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        yield first
        yield from blocks

    try:
        register_io_source(rows, schema=first.schema).sink_parquet(
            file, metadata=metadata, row_group_size=parquet_arrow.ROW_GROUP, maintain_order=True
        )
    except pl.exceptions.ComputeError:  # what the disk refuses, in another's words
        raise OSError from None


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


# Every nth row of a table that does not fit into memory, read piece by piece.


def read_sampled(path: str, every: int, reading: Reading) -> tuple[SourceFile, int]:
    """The first row of the table in a file, and then one in `every`; and how many rows the whole
    table has. Raises InputError where it is wrong.

    Whatever its size, no more is held than the sample and a piece. A sample overstates who is
    alone: a person's other rows, and those who look alike, may be left out.
    """
    kind = Location(path).kind_to_read
    try:
        if kind.is_parquet:
            with cores.beside(files.file_sha256, path) as hashed:
                frame, rows = _every(_of_parquet(path), every)
                return SourceFile(Table(frame), hashed()), rows
        if not kind.is_delimited or regular_files.is_packed(path):
            raise InputError(
                f"file '{path}': is too large to be read as a whole, and only plain delimited text"
                " and Parquet are sampled; convert it"
            )
        beginning = delimited.begin(Path(path), path, kind, reading)
        if beginning.above or beginning.dialect.encoding != UTF8:
            raise InputError(
                f"file '{path}': is too large to be read as a whole; write it as UTF-8 text without"
                " a title, or as Parquet"
            )
        pieces = Pieces(Path(path), PIECE, path=path)
        texts = [pl.String()] * len(beginning.header)
        frame, rows = _every(frames_of(pieces, beginning, texts), every)
        return SourceFile(Table(frame), pieces.sha256, beginning.dialect), rows
    except OSError as failed:
        raise files.unreadable(path, failed) from None


def _every(frames: Iterator[pl.DataFrame], every: int) -> tuple[pl.DataFrame, int]:
    """One row in `every` of all that come, and how many came."""
    kept: list[pl.DataFrame] = []
    rows = 0
    for frame in frames:
        offset = -rows % every
        if offset < frame.height or not kept:
            kept.append(frame.gather_every(every, offset))
        rows += frame.height
    if not rows:
        raise InputError("file: holds no records; publish a table with at least k people")
    return pl.concat(kept), rows


def _of_parquet(path: str) -> Iterator[pl.DataFrame]:
    with table_errors(path, PARQUET, f"file '{path}'"):
        require_unfolded([path], ".parquet", f"file '{path}'")
        plain(without_records(pl.read_parquet_schema(path)), f"file '{path}'")
        scanned = pl.scan_parquet(path, glob=False, low_memory=True)
        yield from scanned.collect_batches(chunk_size=PARQUET_ROWS, maintain_order=True)
