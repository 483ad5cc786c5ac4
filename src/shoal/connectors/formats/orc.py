"""Apache ORC: columns with types, which are read whole by PyArrow and never written.

What texts and bytes unpack to is known before from the statistics that a file holds of them, in
Protocol Buffers (orc_proto.proto), and what these unpack to from the blocks that they are in.
"""

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from shoal.connectors import typed
from shoal.connectors.formats import Asked, Format, SourceFile
from shoal.data.regular_files import CELL, SHORT, most_unpacked, require_room
from shoal.data.table import Table
from shoal.data.warnings import nan_remarks
from shoal.errors import InputError, of_extra

ROWS = 4096
"""Records that are unpacked before their size is looked at again."""


class Orc(Format):
    """ORC, which PyArrow reads."""

    label = "ORC"
    media_type = "application/vnd.apache.orc"
    magic = b"ORC"
    has_types = True
    is_typed = True
    is_compressed = True
    is_written = False

    def read(self, asked: Asked) -> SourceFile:
        path, reading = asked.path, asked.reading
        where = f"file '{path}'"
        with of_extra(f"{where}: needs PyArrow, of the extra 'spark'", "spark"):
            import pyarrow as pa
            from pyarrow import dataset, orc
        damaged = InputError(f"{where}: {typed.INCOMPLETE.format('orc')}")
        most = most_unpacked(Path(path).stat().st_size, reading.unpacked)
        try:
            with open(path, "rb") as file:
                require_room(_end_unpacked(file), most, where)
                footer = orc.ORCFile(file)
                schema, cells = footer.schema, footer.nrows * len(footer.schema)
                if len({*schema.names}) < len(schema):
                    raise InputError(f"{where}: two columns have one name; rename one of them")
                require_room(CELL * cells, most, where)
            with typed.table_errors(path, ".orc", where):
                names = pl.DataFrame(schema.empty_table()).schema
                left = typed.unread(names, where, reading)
            kept = [name for name in names if name not in left]
            fields = pa.schema(
                field for field, name in zip(schema, names, strict=True) if name not in left
            )
            tail = footer.reader.serialized_file_tail()
            require_room(CELL * cells + _long_texts(tail, fields.names, footer.nrows), most, where)
            batches, size = [], 0
            # one at a time, none ahead
            options = {"batch_readahead": 0, "fragment_readahead": 0, "use_threads": False}
            table = dataset.dataset(path, format="orc")
            for batch in table.to_batches(columns=fields.names, batch_size=ROWS, **options):
                size += batch.nbytes
                require_room(size, most, where)
                batch.validate(full=True)  # Polars takes every text for UTF-8
                batches.append(batch)
            with typed.table_errors(path, ".orc", where):
                frame = pl.DataFrame(pl.from_arrow(pa.Table.from_batches(batches, fields)))
            records = sum(batch.num_rows for batch in batches)
            blank = pl.repeat(None, records, dtype=pl.String, eager=True)
            frame.columns = kept
            columns = [blank.alias(name) if name in left else frame[name] for name in names]
            frame = pl.DataFrame(columns)
        except (pa.ArrowException, UnicodeDecodeError, LookupError, TypeError) as failed:
            if "nanosecond" in str(failed):
                raise InputError(f"{where}: holds {typed.BEYOND_NANOSECONDS}") from None
            raise damaged from None
        except OSError as failed:
            if failed.errno is not None:  # the system's: said by whoever opens files
                raise
            raise damaged from None
        remarks = nan_remarks(typed.nan_counts(frame, reading))
        return SourceFile(Table(typed.plain(frame, where, reading)), remarks=remarks, unread=left)


# Numbers of fields.

FOOTER, TYPES, STATISTICS = 2, 4, 7
CHILDREN, NAMES = 2, 3
OF_TEXTS, OF_BYTES = 4, 8
FOOTER_SIZE, COMPRESSION, BLOCK_SIZE, METADATA_SIZE = 1, 2, 3, 5

BLOCK = 1 << 18
"""Bytes that a block unpacks to at most where a file does not say."""


def _end_unpacked(file: BinaryIO) -> int:
    """The bytes at most to which the end of a file unpacks, which is read whole to open it: it may
    hold the longest text of each column. Raises LookupError where that is not to be found.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 256, 0))
    last = file.read()
    length = last[-1] + 1
    said = _fields(last[-length:-1])
    numbers = {n: [v for v in said.get(n, []) if isinstance(v, int)][-1:] for n in range(6)}
    packed = sum(numbers[FOOTER_SIZE] + numbers[METADATA_SIZE])
    if packed + length > size:
        raise LookupError
    if not sum(numbers[COMPRESSION]):
        return packed
    file.seek(size - length - packed)
    end = file.read(packed)
    unpacked = at = 0
    while at < packed:
        head = int.from_bytes(end[at : at + 3], "little")
        unpacked += head >> 1 if head & 1 else (numbers[BLOCK_SIZE] or [BLOCK])[0]
        at += 3 + (head >> 1)
    return unpacked


def _long_texts(tail: bytes, read: Collection[str], records: int) -> int:
    """The bytes of texts beyond `SHORT` each, by the statistics of the columns that are read.

    tail: the end of a file, unpacked. A column is followed by those that lie in it.
    """
    (footer,) = (_fields(part) for part in _fields(tail)[FOOTER])
    root = _fields(footer[TYPES][0])
    first = [child for part in root.get(CHILDREN, []) for child in _numbers(part)]
    stats = [_fields(part) for part in footer.get(STATISTICS, [])]
    long = 0
    for name, at, end in zip(root.get(NAMES, []), first, [*first[1:], len(stats)], strict=False):
        if name.decode() in read:
            sums = map(_length_of_texts, stats[at:end])
            long += sum(max(length - SHORT * records, 0) for length in sums)
    return long


def _length_of_texts(statistics: dict[int, list[Any]]) -> int:
    parts = [_fields(part).get(3, []) for part in statistics.get(OF_TEXTS, [])]
    parts += [_fields(part).get(1, []) for part in statistics.get(OF_BYTES, [])]
    return sum(number >> 1 ^ -(number & 1) for part in parts for number in part)


def _fields(message: bytes) -> dict[int, list[Any]]:
    """The fields of a message by their numbers."""
    found: dict[int, list[Any]] = {}
    at = 0
    while at < len(message):
        key, at = _number(message, at)
        value: Any
        if key & 7 == 0:
            value, at = _number(message, at)
        else:
            size, at = _number(message, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
            value, at = message[at : at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def _numbers(packed: bytes | int) -> list[int]:
    """The numbers that are written in a row, or the one that is."""
    if isinstance(packed, int):
        return [packed]
    found, at = [], 0
    while at < len(packed):
        number, at = _number(packed, at)
        found.append(number)
    return found


def _number(message: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends."""
    number = shift = 0
    while message[at] >= 128:
        number |= (message[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return (number | message[at] << shift) & ((1 << 64) - 1), at + 1


FORMATS = (Orc(".orc"),)
