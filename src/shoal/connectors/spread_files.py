"""Folders of Parquet files, read and written by many processes: a file is a task.

Records have the order of their files by name, as where one process reads the folder. Each task
finds the distinct texts of its file and numbers them; what they are in the whole table is decided
once all are known.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import polars as pl

from shoal.connectors import coded_files, dialect, files, parquet_parts, release_drafts
from shoal.connectors.location import PARQUET, Location
from shoal.connectors.parquet_parts import Part
from shoal.data.coded_table import TEXT_BYTES, Blank, CodedTable, ShownColumn, require_few
from shoal.data.room import Room, SharedRoom, blocks, new_file
from shoal.data.table import Column
from shoal.errors import InputError


def is_readable(path: str | Path) -> bool:
    """Whether a table is files of Parquet, which many processes can read, or is not there."""
    if Location(path).is_many or not Path(path).exists():
        return True
    return Path(path).suffix.lower() == PARQUET


def read_spread(
    path: str | Path, room: SharedRoom, unpacked: int | None = None
) -> files.SourceFile:
    """The table in a folder, or in the files that a pattern names; raises InputError.

    unpacked: the bytes that each file may unpack to, where they were said.
    """
    many = Location(path).is_many
    if not (many or Path(path).exists()):
        raise InputError(
            f"file '{path}': can't be read (No such file or directory); check the name and"
            " permissions"
        )
    parts = parquet_parts.parts_of(path) if many else [Part(Path(path), Path(path).name)]
    reading = replace(dialect.AS_FOUND, unpacked=unpacked)
    found = room.each(partial(_read_part, room.limit, reading), parts)
    hashes = [source.sha256 for source in found]
    parquet_parts.check_named(path, parts, hashes)
    tables = [cast(CodedTable, source.table) for source in found]
    schemas = [{name: table.dtype(name) for name in table.names} for table in tables]
    parquet_parts.check_alike(schemas, parts)
    whole = _joined(tables, parts, room)
    digest = parquet_parts.digest(parts, hashes) if many else hashes[0]
    return files.SourceFile(whole, digest)


def _read_part(limit: int, reading: dialect.Reading, part: Part) -> files.SourceFile:
    return coded_files.read_coded(part.path, PARQUET, reading, Room(limit))


def _joined(tables: list[CodedTable], parts: list[Part], room: SharedRoom) -> CodedTable:
    """All records, one file after the other, with the columns that the folders' names hold."""
    records = sum(table.records for table in tables)
    first = tables[0]
    columns, blanks = {}, {}
    for name in first.names:
        of_parts = [table.column(name) for table in tables]
        blanks[name] = Blank(
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
        blanks[key] = Blank(None in filled, "" in filled)
    return CodedTable(columns, records, room, dtypes, blanks)


def _one_column(of_parts: list[Column], records: int, room: SharedRoom) -> Column:
    """A column of all files. Codes are into the sorted distinct texts of all."""
    name = of_parts[0].name
    texts = [c.texts if len(c.codes) else c.texts.clear() for c in of_parts]
    cells = pl.concat(texts).unique().sort()
    held = int(cells.str.len_bytes().sum()) + TEXT_BYTES * len(cells)
    require_few(name, f"{len(cells)} different texts", held, room.limit)
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
