"""Sources of a stream: files, growing files and standard input, read piece by piece from any
position.

A piece holds whole records only. What can't be read as a record is named by its place and the
reason, never by its content, and reading continues after it.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
import select
import stat
import sys
import time
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, BinaryIO

import numpy as np
import polars as pl

from shoal.connectors import delimited, page_sizes, record_ends, typed
from shoal.connectors.formats import Format
from shoal.connectors.location import STANDARD, Location
from shoal.data import regular_files
from shoal.data.schema import Fields
from shoal.data.stream import Piece
from shoal.errors import TWICE, CheckpointError, InputError, library_errors_as
from shoal.protocols import Place, Source

PIECE = 8 << 20
"""Bytes that are read at a time."""

LONGEST = 64 << 20
"""A longer line is not a record; it is skipped without being held."""

PATIENCE = 0.2
"""Seconds that a pipe is waited for before what has come is worked on, however steadily it
trickles.
"""

SLICE = 65_536
"""Records that are read at a time from formats that count records."""


MOST_FIELDS = 1000
"""Fields beyond the policy's that are noted."""

LOOKED_AT, MOST_LOOKED_AT, LONGEST_LOOKED_AT = 2_000, 100, 100
"""Records of a piece, fields and characters of dropped fields that may number people."""


DROP_OTHERS = (
    "add 'other: drop' to the policy; a stream that was begun without 'other' and has not ended"
    " resumes with it, and takes these records where they are appended; else publish them by a new"
    " stream"
)
NEW_STREAM = f"publish these records by a new stream, which takes all fields of its first ({TWICE})"

ANY_FIELDS = Fields()


class TextFeed:
    """CSV, TSV or JSON lines, plain or compressed, from a file or standard input.

    Its place is a byte of the unpacked text and a number of records. Going on reads the text before
    it again and refuses it where it has changed.
    """

    def __init__(
        self, path: str, kind: Format, following: bool = False, fields: Fields = ANY_FIELDS
    ) -> None:
        self._path, self._kind, self._following = path, kind, following
        self._fields = fields
        self._file, self._is_pipe = _opened(path)
        self._rest, self._offset, self._records, self._is_passing = b"", 0, 0, False
        self._hash = hashlib.sha256()
        self._separator = "\t" if kind == ".tsv" else ","
        self.names: list[str] = []
        self._first: frozenset[str] = frozenset()
        self._new: set[str] = set()
        if kind.is_json:
            self._json_names()
        else:
            self._header()

    def read(self) -> Piece:
        """The next records; an empty piece at the end, or where nothing has come yet."""
        while True:
            fresh = self._fresh(PIECE)
            self._rest += self._behind_the_line(fresh or b"")
            at_end = fresh == b"" and not self._following
            found = self._found(at_end, self._fields.record_lines)
            if not len(found) and len(self._rest) > LONGEST:
                if b"\n" not in self._rest:
                    return self._passed_over()
                found = self._found(at_end, 1)
            if len(found) or not fresh:
                break
        cut = int(found.ends[-1]) if len(found) else 0
        text, self._rest = self._rest[:cut], self._rest[cut:]
        self._took(text)
        frame, places, bad, count = self._parsed(text, found)
        bad = [(self._records + at, why) for at, why in bad]
        new = frozenset(self._new - self._first)
        piece = Piece(frame, self._records + places, bad, at_end, new)
        self._records += count
        return piece

    def _found(self, at_end: bool, most_lines: int) -> Found:
        """Whole records at the beginning of what was read."""
        text = np.frombuffer(self._rest, dtype=np.uint8)
        if self._kind.is_json:
            ends = np.flatnonzero(text == record_ends.BREAK) + 1
            if at_end and len(text) and (not len(ends) or ends[-1] < len(text)):
                ends = np.append(ends, len(text))
            return Found(ends, np.zeros(len(ends), np.int8), np.zeros(len(ends), np.int64))
        most = self._rest.count(b"\n") + 1
        found = Found(np.empty(most, np.int64), np.empty(most, np.int8), np.empty(most, np.int64))
        separator, columns = ord(self._separator), len(self.names)
        count = record_ends.ends_of(
            text, separator, columns, most_lines, at_end, found.ends, found.kinds, found.cells
        )
        return Found(found.ends[:count], found.kinds[:count], found.cells[:count])

    def _behind_the_line(self, fresh: bytes) -> bytes:
        """What belongs to records: all of it, but for the end of a line that is passed over."""
        if not self._is_passing:
            return fresh
        end = fresh.find(b"\n") + 1
        self._is_passing = not end
        self._took(fresh[: end or len(fresh)])
        return fresh[end:] if end else b""

    def _passed_over(self) -> Piece:
        """A line that is too long counts as a bad record; the rest of it is dropped as it comes."""
        self._took(self._rest)
        self._rest, self._is_passing = b"", True
        self._records += 1
        why = f"is a line longer than {LONGEST >> 20} MB"
        return Piece(_frame_of([], self.names), np.zeros(0, np.int64), [(self._records - 1, why)])

    def _fresh(self, most: int) -> bytes | None:
        """More text; empty at the end of the file, None where a pipe has nothing for the moment."""
        if not self._is_pipe:
            with regular_files.readable(f"source '{self._path}'"):
                try:
                    fresh = self._file.read(most)
                except (OSError, EOFError, zlib.error):
                    if not isinstance(self._file, gzip.GzipFile):
                        raise
                    raise InputError(
                        f"source '{self._path}': its compression is damaged; fetch it again"
                    ) from None
            if not fresh and self._following:
                self._require_still_there()
            return fresh
        found, until = b"", time.monotonic() + PATIENCE
        while len(found) < most and (left := until - time.monotonic()) > 0:
            if not select.select([self._file], [], [], left)[0]:
                break
            more = self._file.read(most - len(found))
            if not more:
                return found
            found += more
        return found or None

    def _require_still_there(self) -> None:
        """Raises InputError where a file that grows is shorter than before, or another one."""
        opened, named = os.fstat(self._file.fileno()), None
        with suppress(FileNotFoundError):
            named = os.stat(self._path)
        is_same = named is not None and os.path.samestat(named, opened)
        if not is_same or opened.st_size < self._file.tell():
            what = "has become shorter" if is_same else "was moved away or replaced"
            raise InputError(
                f"source '{self._path}': {what} while it was followed; give the source as it was,"
                f" only longer. A new checkpoint publishes from the beginning: {TWICE}"
            )

    def _took(self, text: bytes) -> None:
        self._offset += len(text)
        self._hash.update(text)

    def _read_a_line(self, longest: int) -> None:
        """Waits for the end of the first line, or of a text that is not followed; raises InputError
        where the line takes more than `longest` bytes.
        """
        pieces: list[bytes] = []
        length = 0
        while length <= longest and not (pieces and b"\n" in pieces[-1]):
            fresh = self._fresh(1 << 16)
            if fresh:
                pieces.append(fresh)
                length += len(fresh)
            elif fresh == b"":
                if not self._following:
                    break
                time.sleep(PATIENCE)
        self._rest = b"".join(pieces)
        if length > longest and self._rest.find(b"\n", 0, longest) < 0:
            what = "an object" if self._kind.is_json else "the names"
            raise InputError(
                f"source '{self._path}': its first line is longer than {longest >> 20} MB; begin"
                f" with {what}, in a line of its own"
            )

    def _header(self) -> None:
        self._read_a_line(delimited.HEAD)
        end = self._rest.find(b"\n") + 1
        line, self._rest = self._rest[: end or None], self._rest[end or len(self._rest) :]
        try:
            text = line.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError:
            raise InputError(
                f"source '{self._path}': its first line is not UTF-8; convert it"
            ) from None
        if not text.strip():
            raise InputError(
                f"source '{self._path}': is empty; the first line must name the columns"
            )
        if "\r" in text or "\0" in text:
            raise InputError(
                f"source '{self._path}': its first line holds a carriage return or a null"
                " character; end lines with \\n or \\r\\n, and write UTF-8"
            )
        try:
            rows = {sep: next(csv.reader([text], delimiter=sep)) for sep in ",;\t|"}
        except csv.Error:
            raise InputError(
                f"source '{self._path}': its first line can't be read as column names; check its"
                " quotes"
            ) from None
        if self._kind != ".tsv":
            self._separator = max(rows, key=lambda sep: len(rows[sep]))
        self.names = delimited.with_outer_names(rows[self._separator])
        if "" in self.names or len({*self.names}) < len(self.names):
            raise InputError(
                f"source '{self._path}': every column needs a name of its own in the first line"
            )
        self._took(line)

    def _json_names(self) -> None:
        """The names of the first object and those that the policy needs."""
        self._read_a_line(LONGEST)
        for line in self._rest.splitlines():
            if (first := names_of_json(line)) is not None:
                self.names, self._first = self._fields.names(first), frozenset(first)
                return
        what = "its first line is not a JSON object" if self._rest.strip() else "is empty"
        raise InputError(f"source '{self._path}': {what}; write one object a line")

    def _parsed(
        self, text: bytes, found: Found
    ) -> tuple[pl.DataFrame, np.ndarray, list[tuple[int, str]], int]:
        """Frame, the place of each row among these records, what is bad, how many there were."""
        if self._kind.is_json:
            lines = [line for line in text.split(b"\n") if line.strip()]
            return rows_of_json(lines, self.names, self._fields, self._new)
        found = self._readable(text, found)
        place = np.cumsum(found.kinds != record_ends.BLANK) - 1
        reasons = {
            record_ends.BROKEN: "a quote is left open",
            NOT_TEXT: "is not UTF-8",
            NO_ROW: "can't be read as a row",
        }
        fine = (record_ends.WHOLE, record_ends.ODD, record_ends.BLANK)
        bad = []
        for i in np.flatnonzero(~np.isin(found.kinds, fine)):
            ragged = (
                f"has {found.cells[i]} cells, not {len(self.names)}; give it those that the first"
                " line names, and quote cells that hold a separator; a new column needs a new"
                f" stream ({TWICE})"
            )
            bad.append((int(place[i]), reasons.get(int(found.kinds[i]), ragged)))
        whole, odd = (
            np.flatnonzero(found.kinds == kind) for kind in (record_ends.WHOLE, record_ends.ODD)
        )
        frame, places = self._plain_rows(text, found, whole), place[whole]
        if len(odd):
            rows = [self._cells(part) for part in found.texts(text, odd)]
            places = np.concatenate([places, place[odd]])
            order = np.argsort(places)
            frame, places = pl.concat([frame, _frame_of(rows, self.names)])[order], places[order]
        return frame, places, bad, int(place[-1]) + 1 if len(place) else 0

    def _readable(self, text: bytes, found: Found) -> Found:
        """The parsed records; those not text, or whose odd cells can't be split, are named so."""
        kinds = found.kinds.copy()
        try:
            text.decode()
        except UnicodeDecodeError:
            good = np.flatnonzero((kinds == record_ends.WHOLE) | (kinds == record_ends.ODD))
            parts = found.texts(text, good)
            kinds[good[[not delimited.is_utf8(part) for part in parts]]] = NOT_TEXT
        odd = np.flatnonzero(kinds == record_ends.ODD)
        unfit = [len(self._cells(part)) != len(self.names) for part in found.texts(text, odd)]
        kinds[odd[unfit]] = NO_ROW
        return Found(found.ends, kinds, found.cells)

    def _plain_rows(self, text: bytes, found: Found, rows: np.ndarray) -> pl.DataFrame:
        if len(rows) < len(found):
            text = found.only(text, rows)
        mixed = (
            f"source '{self._path}': its rows can't be separated; quote cells that hold line breaks"
        )
        with library_errors_as(mixed):
            frame = pl.read_csv(
                text,
                has_header=False,
                separator=self._separator,
                infer_schema=False,
                schema=dict.fromkeys(self.names, pl.String),
                raise_if_empty=False,
            )
        if frame.height != len(rows):
            raise InputError(mixed)
        if b'""' in text:  # an empty cell is an empty cell, in quotes or not
            frame = frame.with_columns(pl.all().replace("", None))
        return frame

    def _cells(self, record: bytes) -> list[str | None]:
        """The cells of a record with quotes in odd places; none where it can't be read."""
        try:
            cells = next(csv.reader([record.decode()], delimiter=self._separator))
            return [cell or None for cell in cells]
        except csv.Error:
            return []

    @property
    def place(self) -> Place:
        """Where the next record begins, and what was read before it."""
        return {
            "offset": self._offset,
            "records": self._records,
            "passing": self._is_passing,
            "sha256": self._hash.hexdigest(),
        }

    def go_to(self, place: Place) -> None:
        """Reads up to a place reached before; raises CheckpointError where the text differs."""
        left = place["offset"] - self._offset
        ahead, self._rest = self._rest[:left], self._rest[left:] if left <= len(self._rest) else b""
        while True:
            self._took(ahead)
            left -= len(ahead)
            if not left:
                break
            more = self._fresh(min(left, PIECE))
            if more == b"":
                break
            ahead = more or b""
        if left or self._hash.hexdigest() != place["sha256"]:
            again = (
                "feed it again from its beginning"
                if self._path == STANDARD
                else "give the same source"
            )
            raise CheckpointError(
                f"source '{self._path}': is not the one that the checkpoint was made with, up to "
                f"where it stopped; {again}. A new checkpoint publishes from the beginning: {TWICE}"
            )
        self._records, self._is_passing = place["records"], place["passing"]
        self._rest = self._behind_the_line(self._rest)

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def close(self) -> None:
        if self._path != STANDARD:
            self._file.close()


NOT_TEXT, NO_ROW = 10, 11


@dataclass(frozen=True)
class Found:
    """Records in a text, as `record_ends.ends_of` finds them."""

    ends: np.ndarray
    kinds: np.ndarray
    cells: np.ndarray

    def __len__(self) -> int:
        return len(self.ends)

    def texts(self, text: bytes, rows: np.ndarray) -> list[bytes]:
        """The text of some records."""
        starts = np.append(0, self.ends[:-1])
        return [
            text[a:b] for a, b in zip(starts[rows].tolist(), self.ends[rows].tolist(), strict=True)
        ]

    def only(self, text: bytes, rows: np.ndarray) -> bytes:
        """The text of some records, one after the other."""
        kept = np.zeros(len(self), dtype=bool)
        kept[rows] = True
        return np.frombuffer(text, np.uint8)[
            np.repeat(kept, np.diff(self.ends, prepend=0))
        ].tobytes()


def _frame_of(rows: list[list[str | None]], names: list[str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def names_of_json(line: bytes) -> list[str] | None:
    """The names that an object has, None where there is no object."""
    try:
        found = json.loads(line.removeprefix(BOM_UTF8).decode())
    except (ValueError, RecursionError):
        return None
    return list(found) if isinstance(found, dict) and all(map(typed.is_text, found)) else None


def rows_of_json(
    lines: list[bytes],
    names: list[str],
    fields: Fields = ANY_FIELDS,
    dropped: set[str] | None = None,
) -> tuple[pl.DataFrame, np.ndarray, list[tuple[int, str]], int]:
    """Objects, one a line, as text columns: numbers as they are written, null where a name that is
    not needed is absent. dropped: gets the fields that are left out. Where nobody is named, these
    stand in further columns, as they may number people.
    """
    rows: list[list[str | None]] = []
    beside: list[dict[str, str | None]] = []
    places: list[int] = []
    bad: list[tuple[int, str]] = []
    known = set(names)
    for at, line in enumerate(lines):
        try:
            found = json.loads(
                line.removeprefix(BOM_UTF8).decode(),  # bytes may be UTF-16, or half a character
                parse_int=str,
                parse_float=_Decimal,
                parse_constant=int,  # NaN and Infinity are no JSON: a ValueError
                object_pairs_hook=regular_files.distinct_keys,
            )
        except regular_files.RepeatedKey:
            bad.append((at, "names a key twice"))
            continue
        except (ValueError, RecursionError):
            bad.append((at, "is not a JSON object"))
            continue
        if not isinstance(found, dict):
            bad.append((at, "is not a JSON object"))
            continue
        unknown = found.keys() - known
        is_dropped = fields.other == "drop"
        if is_dropped and dropped is not None and len(dropped) < MOST_FIELDS:
            dropped |= {name for name in unknown if typed.is_text(name)}
        if unknown and not is_dropped:
            lack = "which neither the first record nor the policy has"
            remedy = NEW_STREAM if fields.other == "plain" else DROP_OTHERS
            bad.append((at, f"has {_listed(unknown)}, {lack}; {remedy}"))
        elif fields.needed - found.keys():
            bad.append((at, f"lacks {_listed(fields.needed - found.keys())}"))
        elif any(isinstance(found.get(name), _Decimal) for name in fields.people):
            bad.append((at, "names its person by a decimal, which is another text for a number"))
        elif any(isinstance(found.get(name), dict | list) for name in names):
            bad.append((at, "holds lists or objects"))
        elif b"\\u" in line and not all(typed.is_text(found.get(name)) for name in names):
            bad.append((at, "holds null characters or halves of characters"))
        else:
            rows.append([_plain(found.get(name)) for name in names])
            places.append(at)
            if not fields.people and len(beside) < LOOKED_AT:
                beside.append(
                    {name: _short(found[name]) for name in unknown if typed.is_text(name)}
                )
    further = list(dict.fromkeys(chain.from_iterable(beside)))[:MOST_LOOKED_AT]
    cells = [[one.get(name) for name in further] for one in beside]
    frame = pl.concat([_frame_of(rows, names), _frame_of(cells, further)], how="horizontal")
    return frame, np.array(places, dtype=np.int64), bad, len(lines)


def _listed(names: Iterable[str]) -> str:
    """Names as text, also where a name holds half a character."""
    return ", ".join(f"'{name}'" for name in sorted(names)).encode(errors="replace").decode()


class _Decimal(str):
    """A number that is written with a point or an exponent."""


def _plain(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value or None


def _short(value: Any) -> str | None:
    """What may number people; no free text, and nothing that no text can hold."""
    text = str(_plain(value) or "")
    return text if 0 < len(text) <= LONGEST_LOOKED_AT and typed.is_text(text) else None


class TableFeed:
    """Parquet or Arrow: a slice of records at a time; types are kept."""

    def __init__(self, path: str, kind: Format) -> None:
        self._path, self._at = path, 0
        self._errors = partial(typed.table_errors, path, kind, f"source '{path}'")
        incomplete = f"source '{path}': {typed.INCOMPLETE.format(kind[1:])}"
        with regular_files.readable(f"source '{path}'"), self._errors(), open(path, "rb") as file:
            self._table = typed.scanned(path, kind)
            self._most = regular_files.most_unpacked(os.stat(path).st_size)
            schema = self._table.collect_schema()
            self.names = schema.names()
            for records, unpacked in page_sizes.unpacked_parts(path, kind, incomplete):
                self._require_room(typed.beyond_short(unpacked, records, schema))
            self._sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        typed.plain(typed.without_records(schema), f"source '{path}'")

    def read(self) -> Piece:
        with self._errors():
            frame = self._table.slice(self._at, SLICE).collect()
            self._require_room(frame.select(typed.long_texts(frame.schema)).item())
        frame = typed.plain(frame, f"source '{self._path}'")
        position = np.arange(self._at, self._at + frame.height)
        self._at += frame.height
        return Piece(frame, position, [], not frame.height)

    def _require_room(self, size: int) -> None:
        if size > self._most:
            raise InputError(
                f"source '{self._path}': its texts unpack to more than {self._most / 1e6:.0f} MB at"
                " a time; write it as .csv, or without the long ones"
            )

    @property
    def place(self) -> Place:
        """How many records were read, and of which file."""
        return {"records": self._at, "sha256": self._sha256}

    def go_to(self, place: Place) -> None:
        """Skips records; raises CheckpointError where the file is another one."""
        if place["sha256"] != self._sha256:
            raise CheckpointError(
                f"source '{self._path}': is not the one that the checkpoint was made with; give the"
                f" same source. A new checkpoint publishes from the beginning: {TWICE}"
            )
        self._at = place["records"]

    @property
    def sha256(self) -> str:
        return self._sha256

    def close(self) -> None:
        """Nothing is held open."""


def feed_of(path: str, following: bool = False, fields: Fields = ANY_FIELDS) -> Source:
    """The source by its name; raises InputError where it can't be read."""
    place = Location(path)
    kind = place.kind_to_read
    if not kind.is_streamed or place.is_many:
        raise InputError(
            f"source '{path}': a stream reads one file piece by piece; give text, .parquet or"
            " .arrow"
        )
    if not place.is_standard:
        regular_files.require_regular(path, "source", or_pipe=not kind.is_columnar)
    if kind.is_columnar:
        if following:
            raise InputError(
                f"source '{path}': a {kind[1:]} file does not grow; leave out --follow"
            )
        return TableFeed(path, kind)
    if following and (place.is_packed or place.is_standard):
        raise InputError(
            f"source '{path}': can't be followed; give a plain file, or leave out --follow"
        )
    return TextFeed(path, kind, following, fields)


def _opened(path: str) -> tuple[BinaryIO, bool]:
    """The file, and whether it is a pipe that must not be waited for."""
    if path == STANDARD:
        try:
            return open(sys.stdin.fileno(), "rb", buffering=0, closefd=False), os.name == "posix"
        except (OSError, ValueError):  # not a real one
            return sys.stdin.buffer, False
    with regular_files.readable(f"source '{path}'"):
        if stat.S_ISFIFO(os.stat(path).st_mode) and not path.endswith(".gz"):
            return open(path, "rb", buffering=0), True
        file = open(path, "rb")  # noqa: SIM115
        if file.peek(2)[:2] == b"\x1f\x8b":
            return gzip.open(file), False  # type: ignore[return-value]
        return file, False
