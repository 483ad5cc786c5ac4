"""What the pages of Parquet and the buffers of Arrow unpack to, by what is written before them.

Nothing is unpacked. Only these parts are read; readers fail, without memory, on a page that unpacks
to another size than it says.

- Apache Parquet (parquet.thrift, in Thrift's compact protocol): FileMetaData (`FOOTER`) and each
  PageHeader (`PAGE`); what counts are the fields that have names here.
- Apache Arrow (File.fbs and Message.fbs, in FlatBuffers): the footer's blocks, each record batch's
  length, buffers and compression, and the int64 at the beginning of each compressed buffer.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shoal.errors import InputError

Parts = Iterator[tuple[int, int]]
"""The records of each row group or batch, and the bytes to which its pages or buffers unpack."""

# Thrift: kinds of values, of which a struct is a mapping from its fields' ids, and a list has one.
# Polars takes each field for the kind that the format says, whatever kind is written.

TRUTH, BYTE, I16, I32, I64, TEXT, LIST, STRUCT = 1, 3, 4, 5, 6, 8, 9, 12
Shape = int | Mapping[int, Any] | list[Any]


def _all(kind: Shape, *fields: int) -> dict[int, Shape]:
    return dict.fromkeys(fields, kind)


NOTE = _all(TEXT, 1, 2)
TIME = {1: TRUTH, 2: _all({}, 1, 2, 3)}
LOGICAL_TYPE = _all({}, 1, 2, 3, 4, 6, 11, 12, 13, 14, 15) | {
    5: _all(I32, 1, 2),
    7: TIME,
    8: TIME,
    10: {1: BYTE, 2: TRUTH},
    16: {1: BYTE},
    17: {1: TEXT},
    18: {1: TEXT, 2: I32},
}
SCHEMA = _all(I32, 1, 2, 3, 5, 6, 7, 8, 9) | {4: TEXT, 10: LOGICAL_TYPE}
STATISTICS = _all(TEXT, 1, 2, 5, 6) | _all(I64, 3, 4) | _all(TRUTH, 7, 8)

PACKED_SIZE, DATA_PAGE, DICTIONARY_PAGE = 7, 9, 11
COLUMN = _all(I32, 1, 4, 15) | _all(I64, 5, PACKED_SIZE, DATA_PAGE, 10, DICTIONARY_PAGE, 14)
COLUMN |= {2: [I32], 3: [TEXT], 8: [NOTE], 12: STATISTICS, 13: [_all(I32, 1, 2, 3)]}
COLUMN |= {16: {1: I64, 2: [I64], 3: [I64]}, 17: {1: {}, 2: [I32]}}

METADATA, ENCRYPTION = 3, 8
CHUNK = _all(TEXT, 1, 9) | _all(I64, 2, 4, 6) | _all(I32, 5, 7)
CHUNK |= {METADATA: COLUMN, ENCRYPTION: {}}

COLUMNS, RECORDS, GROUPS = 1, 3, 4
GROUP: dict[int, Shape] = {
    COLUMNS: [CHUNK],
    2: I64,
    RECORDS: I64,
    4: [{1: I32, 2: TRUTH, 3: TRUTH}],
}
GROUP |= {5: I64, 6: I64, 7: I16}
FOOTER: dict[int, Shape] = {
    1: I32,
    2: [SCHEMA],
    RECORDS: I64,
    GROUPS: [GROUP],
    5: [NOTE],
    6: TEXT,
    7: [{1: {}}],
}
FOOTER |= {ENCRYPTION: {}, 9: TEXT}

UNPACKED, PACKED = 2, 3
PAGE = _all(I32, 1, UNPACKED, PACKED, 4) | {
    5: _all(I32, 1, 2, 3, 4) | {5: STATISTICS},
    6: {},
    7: {1: I32, 2: I32, 3: TRUTH},
    8: _all(I32, 1, 2, 3, 4, 5, 6) | {7: TRUTH, 8: STATISTICS},
}


def unpacked_parts(path: str | Path, kind: str, damaged: str) -> Parts:
    """Each part of a file that is unpacked at once; raises InputError, which says `damaged`, where
    the file can't be walked. The time grows as the file does, whatever its offsets say.
    """
    try:
        with open(path, "rb") as file:
            content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        yield from (_row_groups if kind == ".parquet" else _batches)(content)
    except (LookupError, OverflowError, RecursionError, TypeError, ValueError, struct.error):
        raise InputError(damaged) from None


def _row_groups(content: memoryview) -> Parts:
    length, magic = struct.unpack("<I4s", content[-8:])
    _require(magic == b"PAR1" and length <= len(content) - 8)  # PARE: the footer is encrypted
    footer = _Compact(content[-8 - length : -8]).struct(FOOTER)
    groups = footer[GROUPS]
    _require(sum(group[RECORDS] for group in groups) == footer[RECORDS])
    _require(ENCRYPTION not in footer)
    unread = len(content)
    for group in groups:
        unpacked = 0
        for chunk in group[COLUMNS]:
            _require(ENCRYPTION not in chunk)
            column = chunk[METADATA]
            first, size = column.get(DICTIONARY_PAGE, column[DATA_PAGE]), column[PACKED_SIZE]
            unread -= size
            _require(first >= 0 and size >= 0 and unread >= 0)
            unpacked += _pages(content[first : first + size], size)
        _require(group[RECORDS] >= 0)
        yield group[RECORDS], unpacked


def _pages(content: memoryview, size: int) -> int:
    """The bytes to which a column chunk's pages unpack."""
    pages = _Compact(content)
    unpacked = 0
    while pages.at < size:
        header = pages.struct(PAGE)
        _require(header[UNPACKED] >= 0 and header[PACKED] >= 0)
        unpacked += header[UNPACKED]
        pages.at += header[PACKED]
    _require(pages.at == size)
    return unpacked


class _Compact:
    """Values in Thrift's compact protocol, one after the other."""

    def __init__(self, content: memoryview) -> None:
        self._content, self.at = content, 0

    def struct(self, shape: Mapping[int, Shape]) -> dict[int, Any]:
        """The fields of a shape by their ids; others are skipped. Of texts only that there is one.

        Raises ValueError where a field is there twice, or is of another kind.
        """
        found: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._signed()
            _require(0 < field < 1 << 15)
            kind = TRUTH if head & 15 == 2 else head & 15
            value = self._value(kind, shape.get(field)) if kind != TRUTH else None
            if field in shape:
                _require(field not in found and kind == _kind(shape[field]))
                found[field] = value
        return found

    def _value(self, kind: int, shape: Shape | None) -> Any:
        if kind in (I16, I32, I64):
            return self._signed()
        if kind in (LIST, 10):  # 10: a set
            return self._list(shape[0] if isinstance(shape, list) else None)
        if kind == STRUCT:
            return self.struct(shape if isinstance(shape, Mapping) else {})
        # a byte or, in a list, a truth value; a floating-point number
        skipped = self._unsigned() if kind == TEXT else {1: 1, 2: 1, 3: 1, 7: 8}[kind]
        self.at += skipped
        return None

    def _list(self, shape: Shape | None) -> list[Any]:
        head = self._byte()
        kind, count = head & 15, head >> 4 if head < 0xF0 else self._unsigned()
        _require(shape is None or not count or kind == _kind(shape))
        found = []
        for _ in range(count):
            value = self._value(kind, shape)
            if isinstance(shape, Mapping):
                found.append(value)
        return found

    def _signed(self) -> int:
        number = self._unsigned()
        return number >> 1 ^ -(number & 1)

    def _unsigned(self) -> int:
        number = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        raise ValueError

    def _byte(self) -> int:
        self.at += 1
        return self._content[self.at - 1]


def _kind(shape: Shape) -> int:
    return STRUCT if isinstance(shape, Mapping) else LIST if isinstance(shape, list) else shape


def _batches(content: memoryview) -> Parts:
    length, magic = struct.unpack("<I6s", content[-10:])
    _require(magic == b"ARROW1" and length <= len(content) - 10)
    footer = _Flat.root(content[-10 - length : -10])
    dictionaries, batches = footer.structs(2, "<qi4xq"), footer.structs(3, "<qi4xq")
    unread = len(content)
    for number, (first, described, size) in enumerate(dictionaries + batches):
        unread -= described + size
        _require(first >= 0 and described >= 0 and size >= 0 and unread >= 0)
        message = content[first : first + described]
        # messages are marked before their lengths, but for old files
        begins = 8 if bytes(message[:4]) == b"\xff\xff\xff\xff" else 4
        _require(struct.unpack_from("<I", message, begins - 4)[0] == described - begins)
        header = _Flat.root(message[begins:]).table(2)
        is_dictionary = number < len(dictionaries)
        batch = header.table(1) if is_dictionary else header
        body = content[first + described : first + described + size]
        unpacked = sum(_buffers(body, batch)) if batch.place(3) else 0
        records = 0 if is_dictionary or not batch.place(0) else batch.number("<q", batch.place(0))
        _require(records >= 0)
        yield records, unpacked


def _buffers(body: memoryview, batch: _Flat) -> Iterator[int]:
    """The bytes to which each compressed buffer unpacks; one that says -1 is not compressed."""
    for offset, length in batch.structs(2, "<qq"):
        if length:
            _require(offset >= 0)
            (size,) = struct.unpack_from("<q", body, offset)
            _require(size >= -1)
            yield size if size >= 0 else length


class _Flat:
    """A table of FlatBuffers."""

    def __init__(self, content: memoryview, at: int) -> None:
        self._content, self._at = content, at

    @classmethod
    def root(cls, content: memoryview) -> _Flat:
        return cls(content, 0)._at_offset(0)

    def place(self, field: int) -> int:
        """Where a field stands; 0 where the table lacks it."""
        fields = self._at - self.number("<i", self._at)
        if 4 + 2 * field >= self.number("<H", fields):
            return 0
        offset = self.number("<H", fields + 4 + 2 * field)
        return self._at + offset if offset else 0

    def number(self, form: str, at: int) -> int:
        _require(at >= 0)
        return struct.unpack_from(form, self._content, at)[0]

    def table(self, field: int) -> _Flat:
        at = self.place(field)
        _require(at > 0)
        return self._at_offset(at)

    def structs(self, field: int, form: str) -> list[tuple[int, ...]]:
        """All structs of a vector; none where the table lacks it."""
        if not self.place(field):
            return []
        first = self.table(field)._at + 4
        size = self.number("<I", first - 4) * struct.calcsize(form)
        _require(first + size <= len(self._content))
        return list(struct.iter_unpack(form, self._content[first : first + size]))

    def _at_offset(self, at: int) -> _Flat:
        return _Flat(self._content, at + self.number("<I", at))


def _require(is_whole: bool) -> None:
    if not is_whole:
        raise ValueError
