"""What the pages of Parquet and the buffers of Arrow unpack to, by what is written before them.

Nothing is unpacked. Only these parts are read; readers fail, without memory, on a page that unpacks
to another size than it says.

- Apache Parquet (parquet.thrift, in Thrift's compact protocol): the fields in `FOOTER` and `PAGE`.
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

RECORDS, GROUPS = 3, 4  # FileMetaData; a RowGroup's records are its field 3, too
COLUMNS = 1  # RowGroup
METADATA = 3  # ColumnChunk
PACKED_SIZE, DATA_PAGE, DICTIONARY_PAGE = 7, 9, 11  # ColumnMetaData
UNPACKED, PACKED = 2, 3  # PageHeader

NUMBER: Mapping[int, Any] = {}
COLUMN = {PACKED_SIZE: NUMBER, DATA_PAGE: NUMBER, DICTIONARY_PAGE: NUMBER}
FOOTER = {RECORDS: NUMBER, GROUPS: {COLUMNS: {METADATA: COLUMN}, RECORDS: NUMBER}}
PAGE = {UNPACKED: NUMBER, PACKED: NUMBER}


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
    unread = len(content)
    for group in groups:
        unpacked = 0
        for chunk in group[COLUMNS]:
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

    def struct(self, wanted: Mapping[int, Any]) -> dict[int, Any]:
        """The wanted fields by their ids; of lists and structs their own wanted fields."""
        found: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            kind = head & 15
            field = field + (head >> 4) if head >> 4 else self._signed()
            value = self._value(kind, wanted.get(field, NUMBER)) if kind > 2 else None
            if field in wanted:
                _require(field not in found)
                found[field] = value
        return found

    def _value(self, kind: int, wanted: Mapping[int, Any]) -> Any:
        if kind in (4, 5, 6):
            return self._signed()
        if kind in (9, 10):
            return self._list(wanted)
        if kind == 12:
            return self.struct(wanted)
        # a byte or, in a list, a truth value; a floating-point number; bytes
        skipped = self._unsigned() if kind == 8 else {1: 1, 2: 1, 3: 1, 7: 8}[kind]
        self.at += skipped
        return None

    def _list(self, wanted: Mapping[int, Any]) -> list[Any]:
        head = self._byte()
        count = head >> 4 if head < 0xF0 else self._unsigned()
        found = []
        for _ in range(count):
            value = self._value(head & 15, wanted)
            if wanted:
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
        is_marked = bytes(message[:4]) == b"\xff\xff\xff\xff"  # since format version 5
        header = _Flat.root(message[8 if is_marked else 4 :]).table(2)
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
        return self._at_offset(self.place(field))

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
