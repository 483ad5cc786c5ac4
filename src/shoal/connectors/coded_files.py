"""Tables in files that are too large for memory: read by pieces as codes, or a file by each of many
processes, and written by blocks.
"""

import gzip
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from shoal.connectors import delimited, files, formats, parquet_parts, release_drafts, typed
from shoal.connectors.dialect import AS_FOUND, UTF8, Dialect, Reading
from shoal.connectors.formats import Format, SourceFile, parquet_arrow
from shoal.connectors.location import PARQUET, Location
from shoal.connectors.parquet_parts import Part
from shoal.connectors.record_ends import PIECE, Pieces
from shoal.data import coded_table, cores, regular_files, warnings
from shoal.data.coded_table import CodedTable, GrowingTable, ShownColumn
from shoal.data.room import Room, SharedRoom, blocks, needs_whole, new_file, spooled
from shoal.data.table import Column, Table
from shoal.errors import InputError

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
    with regular_files.readable(f"file '{path}'", "the"), regular_files.unchanged(path):
        return _read_regular(path, kind, reading, room)


def _read_regular(path: str | Path, kind: Format, reading: Reading, room: Room) -> SourceFile:
    if kind.is_parquet:
        nans = Counter[str]()
        with cores.beside(files.file_sha256, path) as hashed:
            table = _read_parquet(path, reading, room, nans)
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
    text = delimited.begin(content, path, kind, reading)
    dialect, header = text.dialect, text.header
    if text.above or dialect.encoding != UTF8 or isinstance(text.content, bytes):
        raise needs_whole(f"'{path}': text in {dialect.encoding}, or below a title, is read")
    limit = room.limit or PIECE * 32
    pieces = Pieces(content, min(PIECE, max(limit // 32, 1)), path=path)
    growing = GrowingTable({name: pl.String() for name in header}, room)
    for frame in _frames_of(pieces, text, list(growing.dtypes().values())):
        growing.add(frame)
    return SourceFile(growing.table(), pieces.sha256, dialect)


def _frames_of(
    pieces: Pieces, text: delimited.BegunText, dtypes: Sequence[pl.DataType]
) -> Iterator[pl.DataFrame]:
    """The records of a delimited text, piece by piece. dtypes: of the columns, in their order."""
    return text.frames((pieces.head + piece for piece in _ahead(iter(pieces))), dtypes)


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


def _read_parquet(path: str | Path, reading: Reading, room: Room, nans: Counter[str]) -> CodedTable:
    """The table. nans: counts the cells that are NaN, by column."""
    with typed.table_errors(path, PARQUET, f"file '{path}'"):
        schema = dict(pl.read_parquet_schema(path))
        growing = GrowingTable(schema, room)
        dtypes = growing.dtypes()
        texts = [pl.col(name).cast(pl.String).cast(dtypes[name]) for name in schema]
        for frame in _of_parquet(path, reading, nans):
            growing.add(delimited.with_moments_as_text(frame).select(texts))
    return growing.table()


def _of_parquet(path: str | Path, reading: Reading, nans: Counter[str]) -> Iterator[pl.DataFrame]:
    """The records of a file, some at a time. nans: as of `_read_parquet`."""
    where = f"file '{path}'"
    with typed.table_errors(path, PARQUET, where):
        typed.require_unfolded([path], PARQUET, where, reading.unpacked)
        typed.plain(typed.without_records(pl.read_parquet_schema(path)), where)
        scanned = pl.scan_parquet(path, glob=False, low_memory=True)
        for frame in scanned.collect_batches(chunk_size=PARQUET_ROWS, maintain_order=True):
            nans += typed.nan_counts(frame, reading)
            yield typed.plain(frame, where)


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


# Every nth row of a table that does not fit into memory, read piece by piece.


def read_sampled(path: str, every: int, reading: Reading) -> tuple[SourceFile, int]:
    """The first row of the table in a file, and then one in `every`; and how many rows the whole
    table has. Raises InputError where it is wrong.

    Whatever its size, no more is held than the sample and a piece. A sample overstates who is
    alone: a person's other rows, and those who look alike, may be left out.
    """
    kind = Location(path).kind_to_read
    with regular_files.readable(f"file '{path}'", "the"):
        if kind.is_parquet:
            with cores.beside(files.file_sha256, path) as hashed:
                frame, rows = _every(_of_parquet(path, reading, Counter()), every)
                return SourceFile(Table(frame), hashed()), rows
        if not kind.is_delimited or regular_files.is_packed(path):
            raise InputError(
                f"file '{path}': is too large to be read as a whole, and only plain delimited text"
                " and Parquet are sampled; convert it"
            )
        text = delimited.begin(Path(path), path, kind, reading)
        if text.above or text.dialect.encoding != UTF8:
            raise InputError(
                f"file '{path}': is too large to be read as a whole; write it as UTF-8 text without"
                " a title, or as Parquet"
            )
        pieces = Pieces(Path(path), PIECE, path=path)
        texts = [pl.String()] * len(text.header)
        frame, rows = _every(_frames_of(pieces, text, texts), every)
        return SourceFile(Table(frame), pieces.sha256, text.dialect), rows


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


# Folders of Parquet files, read and written by many processes: a file is a task.
#
# Records have the order of their files by name, as where one process reads the folder. Each task
# finds the distinct texts of its file and numbers them; what they are in the whole table is decided
# once all are known.


def is_readable(path: str | Path) -> bool:
    """Whether a table is files of Parquet, which many processes can read, or is not there."""
    if Location(path).is_many or not Path(path).exists():
        return True
    return Path(path).suffix.lower() == PARQUET


def read_spread(path: str | Path, room: SharedRoom, unpacked: int | None = None) -> SourceFile:
    """The table in a folder, or in the files that a pattern names; raises InputError.

    unpacked: the bytes that each file may unpack to, where they were said.
    """
    many = Location(path).is_many
    with regular_files.readable(f"file '{path}'", "the"):
        _ = many or os.stat(path)
    parts = parquet_parts.parts_of(path) if many else [Part(Path(path), Path(path).name)]
    reading = replace(AS_FOUND, unpacked=unpacked)
    found = room.each(partial(_read_part, room.limit, reading), parts)
    each = zip(parts, found, strict=True)
    parts = [replace(part, sha256=source.sha256) for part, source in each]
    parquet_parts.check_named(path, parts)
    tables = [cast(CodedTable, source.table) for source in found]
    schemas = [{name: table.dtype(name) for name in table.names} for table in tables]
    parquet_parts.check_alike(schemas, parts)
    whole = _joined(tables, parts, room)
    digest = parquet_parts.digest(parts) if many else parts[0].sha256
    return SourceFile(whole, digest)


def _read_part(limit: int, reading: Reading, part: Part) -> SourceFile:
    return read_coded(part.path, PARQUET, reading, Room(limit))


def _joined(tables: list[CodedTable], parts: list[Part], room: SharedRoom) -> CodedTable:
    """All records, one file after the other, with the columns that the folders' names hold."""
    records = sum(table.records for table in tables)
    first = tables[0]
    columns, blanks = {}, {}
    for name in first.names:
        of_parts = [table.column(name) for table in tables]
        blanks[name] = coded_table.Blank(
            any(table.blank(name).missing for table in tables),
            any(table.blank(name).empty for table in tables),
        )
        columns[name] = _one_column(of_parts, records, room)
    dtypes = {name: first.dtype(name) for name in first.names}
    for key in parts[0].keys:
        texts = [dict(part.values)[key] for part in parts]
        of_parts = [
            Column(key, np.broadcast_to(np.uint8(0), table.records), pl.Series(key, [text or ""]))
            for text, table in zip(texts, tables, strict=True)
        ]
        columns[key] = _one_column(of_parts, records, room)
        dtypes[key] = pl.String()
        filled = [text for text, table in zip(texts, tables, strict=True) if table.records]
        blanks[key] = coded_table.Blank(None in filled, "" in filled)
    return CodedTable(columns, records, room, dtypes, blanks)


def _one_column(of_parts: list[Column], records: int, room: SharedRoom) -> Column:
    """A column of all files. Codes are into the sorted distinct texts of all."""
    name = of_parts[0].name
    texts = [c.texts if len(c.codes) else c.texts.clear() for c in of_parts]
    cells = pl.concat(texts).unique().sort()
    held = int(cells.str.len_bytes().sum()) + coded_table.TEXT_BYTES * len(cells)
    coded_table.require_few(name, f"{len(cells)} different texts", held, room.limit)
    enum = pl.Enum(cells)
    dtype = np.min_scalar_type(max(len(cells) - 1, 0))
    codes = room.array(records, dtype)
    begun = 0
    for some, column in zip(texts, of_parts, strict=True):
        place = some.cast(enum).to_physical().to_numpy().astype(dtype)
        for rows in blocks(len(column.codes)):
            codes[begun + rows.start : begun + rows.stop] = place[column.codes[rows]]
        begun += len(column.codes)
    return Column(name, codes, cells, of_parts[0].was_number)


def write_spread(
    columns: Sequence[ShownColumn],
    records: int,
    draft: Path,
    metadata: dict[str, str],
    room: SharedRoom,
) -> None:
    """The release as the files of a folder, those that one process writes.

    A task writes under a name that nobody else has. Only the file of the attempt that succeeded is
    moved into the draft.
    """
    write = partial(_write_part, list(columns), metadata, room.folder)
    begun = range(0, max(records, 1), release_drafts.RECORDS)
    spans = [slice(first, min(first + release_drafts.RECORDS, records)) for first in begun]
    for number, written in enumerate(room.each(write, spans)):
        Path(written).rename(draft / f"part-{number:05d}{PARQUET}")


def _write_part(
    columns: list[ShownColumn], metadata: dict[str, str], folder: Path, rows: slice
) -> str:
    frame = pl.DataFrame([column.block(rows) for column in columns])
    path = new_file(folder)
    files.write(frame, path, PARQUET, metadata=metadata)
    return str(path)
