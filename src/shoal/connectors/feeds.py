"""Sources of a stream: files, growing files and standard input, read piece by piece from any position.

A piece holds whole records only. What can't be read as a record is named by its place and the reason,
never by its content, and reading goes on behind it.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import select
import sys
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
import polars as pl

from shoal.connectors.files import STANDARD, check_plain, format_of
from shoal.errors import CheckpointError, InputError

PIECE = 8 << 20
"""Bytes that are read at a time."""

LONGEST = 64 << 20
"""A record longer than this is none: a quote was left open."""

PATIENCE = 0.2
"""Seconds that a pipe may be silent before what has come is worked on."""

SLICE = 65_536
"""Records that are read at a time from formats that count records."""


@dataclass(frozen=True)
class Piece:
    """Records in order. position: (n,) int64, place of each among all records of the source, 0-based.

    bad: place and reason of what is no record. at_end: nothing will ever follow. An empty piece that is
    not the end says that nothing more has come yet.
    """

    frame: pl.DataFrame
    position: np.ndarray
    bad: list[tuple[int, str]] = field(default_factory=list)
    at_end: bool = False


class TextFeed:
    """CSV, TSV or JSON lines, plain or compressed, from a file or standard input.

    Its place is a byte of the unpacked text and a number of records. Going on reads the text before it
    again and refuses it where it has changed.
    """

    def __init__(self, path: str, kind: str, following: bool = False) -> None:
        self._path, self._kind, self._following = path, kind, following
        self._file, self._is_pipe = _opened(path)
        self._rest, self._offset, self._records = b"", 0, 0
        self._hash = hashlib.sha256()
        self._separator = "\t" if kind == ".tsv" else ","
        self.names: list[str] = []
        self._ended = False
        if kind == ".jsonl":
            self._json_names()
        else:
            self._header()

    def read(self) -> Piece:
        """The next records; an empty piece at the end, or where nothing has come yet."""
        while True:
            fresh = self._fresh(PIECE)
            self._rest += fresh or b""
            at_end = fresh == b"" and not self._following
            cut = len(self._rest) if at_end else self._last_end()
            if cut or not fresh:
                break
            if len(self._rest) > LONGEST:
                raise InputError(f"source '{self._path}': a record is longer than {LONGEST >> 20} MB; "
                                 "a quote may be left open")  # fmt: skip
        text, self._rest = self._rest[:cut], self._rest[cut:]
        self._took(text)
        frame, places, bad, count = self._parsed(text)
        piece = Piece(frame, self._records + places, [(self._records + at, why) for at, why in bad], at_end)
        self._records += count
        return piece

    def _fresh(self, most: int) -> bytes | None:
        """More text; empty at the end of the file, None where a pipe has nothing for the moment."""
        if not self._is_pipe:
            return self._file.read(most)
        found = b""
        while len(found) < most and select.select([self._file], [], [], PATIENCE)[0]:
            more = self._file.read(most - len(found))
            if not more:
                return found
            found += more
        return found or None

    def _took(self, text: bytes) -> None:
        self._offset += len(text)
        self._hash.update(text)

    def _last_end(self) -> int:
        """Where the last whole record ends: behind a line break outside of quotes."""
        end = self._rest.rfind(b"\n") + 1
        if self._kind == ".jsonl":
            return end
        while end and self._rest.count(b'"', 0, end) % 2:
            end = self._rest.rfind(b"\n", 0, end - 1) + 1
        return end

    def _header(self) -> None:
        end = 0
        while not end:
            fresh = self._fresh(1 << 16)
            self._rest += fresh or b""
            end = self._rest.find(b"\n") + 1
            if fresh == b"":
                break
        line, self._rest = self._rest[: end or None], self._rest[end or len(self._rest) :]
        try:
            text = line.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError:
            raise InputError(f"source '{self._path}': its first line is not UTF-8; convert it") from None
        if not text.strip():
            raise InputError(f"source '{self._path}': is empty; the first line must name the columns")
        if self._kind == ".csv":
            self._separator = max(",;\t|", key=lambda sep: len(next(csv.reader([text], delimiter=sep))))
        self.names = next(csv.reader([text], delimiter=self._separator))
        repeated = sorted({name for name in self.names if self.names.count(name) > 1})
        if repeated or "" in self.names:
            raise InputError(f"source '{self._path}': every column needs a name of its own in the first line")
        self._took(line)

    def _json_names(self) -> None:
        """The names of the first object; later ones may lack some, and then have no value there."""
        while b"\n" not in self._rest:
            fresh = self._fresh(1 << 16)
            if fresh == b"":
                break
            self._rest += fresh or b""
        for line in self._rest.splitlines():
            try:
                first = json.loads(line)
            except ValueError:
                continue
            if isinstance(first, dict):
                self.names = list(first)
                return
        raise InputError(f"source '{self._path}': its first line is no JSON object; write one object a line")

    def _parsed(self, text: bytes) -> tuple[pl.DataFrame, np.ndarray, list[tuple[int, str]], int]:
        """Frame, the place of each of its rows in this text, what is bad, and how many records there were."""
        if self._kind == ".jsonl":
            return self._from_json(text)
        try:
            frame = pl.read_csv(
                text, has_header=False, separator=self._separator, infer_schema=False,
                schema=dict.fromkeys(self.names, pl.String), raise_if_empty=False,
            )  # fmt: skip
            whole = not frame.height or not frame[self.names[-1]].null_count()
        except pl.exceptions.PolarsError:
            whole = False
        if not whole:
            return self._row_by_row(text)
        if b'""' in text:  # an empty cell is an empty cell, in quotes or not
            frame = frame.with_columns(pl.all().replace("", None))
        return frame, np.arange(frame.height), [], frame.height

    def _row_by_row(self, text: bytes) -> tuple[pl.DataFrame, np.ndarray, list[tuple[int, str]], int]:
        rows: list[list[str | None]] = []
        places: list[int] = []
        bad: list[tuple[int, str]] = []
        count = 0
        reader = csv.reader(
            io.TextIOWrapper(io.BytesIO(text), "utf-8", errors="surrogateescape", newline=""), delimiter=self._separator
        )
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                break
            except csv.Error:
                bad.append((count, "can't be read as a row"))
                count += 1
                continue
            if not cells:
                continue
            if len(cells) != len(self.names):
                bad.append((count, f"has {len(cells)} cells, not {len(self.names)}"))
            elif any("\udc80" <= c <= "\udcff" for cell in cells for c in cell):
                bad.append((count, "is not UTF-8"))
            else:
                rows.append([cell or None for cell in cells])
                places.append(count)
            count += 1
        frame = pl.DataFrame(rows, schema=dict.fromkeys(self.names, pl.String), orient="row")
        return frame, np.array(places, dtype=np.int64), bad, count

    def _from_json(self, text: bytes) -> tuple[pl.DataFrame, np.ndarray, list[tuple[int, str]], int]:
        return rows_of_json([line for line in text.split(b"\n") if line.strip()], self.names)

    @property
    def place(self) -> dict[str, Any]:
        """Where the next record begins, and what was read before it."""
        return {"offset": self._offset, "records": self._records, "sha256": self._hash.hexdigest()}

    def go_to(self, place: dict[str, Any]) -> None:
        """Reads up to a place that was reached before; raises CheckpointError where the text differs."""
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
            raise CheckpointError(f"source '{self._path}': is not the one that the checkpoint was made with, up to "
                                  "where it stopped; give the same source, or begin a new checkpoint")  # fmt: skip
        self._records = place["records"]

    @property
    def sha256(self) -> str:
        """Of all that was read, unpacked."""
        return self._hash.hexdigest()

    def close(self) -> None:
        if self._path != STANDARD:
            self._file.close()


def rows_of_json(lines: list[bytes], names: list[str]) -> tuple[pl.DataFrame, np.ndarray, list[tuple[int, str]], int]:
    """Objects, one a line, as text columns: numbers as they are written, null where a name is absent."""
    rows: list[list[str | None]] = []
    places: list[int] = []
    bad: list[tuple[int, str]] = []
    known = set(names)
    for at, line in enumerate(lines):
        try:
            found = json.loads(line, parse_int=str, parse_float=str, parse_constant=str)
        except (ValueError, RecursionError):
            bad.append((at, "is no JSON object"))
            continue
        if not isinstance(found, dict):
            bad.append((at, "is no JSON object"))
        elif found.keys() - known:
            bad.append((at, "has a name that the first record has not"))
        elif any(isinstance(value, dict | list) for value in found.values()):
            bad.append((at, "holds lists or objects"))
        else:
            rows.append([_plain(found.get(name)) for name in names])
            places.append(at)
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    return frame, np.array(places, dtype=np.int64), bad, len(lines)


def _plain(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value or None


class TableFeed:
    """Parquet or Arrow: a slice of records at a time; types are kept."""

    def __init__(self, path: str, kind: str) -> None:
        self._path, self._at = path, 0
        try:
            self._table = pl.scan_parquet(path) if kind == ".parquet" else pl.scan_ipc(path)
            self.names = self._table.collect_schema().names()
            with open(path, "rb") as file:
                self._sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        except (OSError, pl.exceptions.PolarsError):
            raise InputError(f"source '{path}': is no whole {kind[1:]} file; check its name and rights") from None

    def read(self) -> Piece:
        """The next records."""
        frame = self._table.slice(self._at, SLICE).collect()
        check_plain(frame, f"source '{self._path}'")
        position = np.arange(self._at, self._at + frame.height)
        self._at += frame.height
        return Piece(frame, position, [], not frame.height)

    @property
    def place(self) -> dict[str, Any]:
        """How many records were read, and of which file."""
        return {"records": self._at, "sha256": self._sha256}

    def go_to(self, place: dict[str, Any]) -> None:
        """Skips records; raises CheckpointError where the file is another one."""
        if place["sha256"] != self._sha256:
            raise CheckpointError(f"source '{self._path}': is not the one that the checkpoint was made with; give the "
                                  "same source, or begin a new checkpoint")  # fmt: skip
        self._at = place["records"]

    @property
    def sha256(self) -> str:
        return self._sha256

    def close(self) -> None:
        """Nothing is held open."""


Feed = TextFeed | TableFeed


def feed_of(path: str, following: bool = False) -> Feed:
    """The source by its name; raises InputError where it can't be read."""
    kind = format_of(path)
    if kind in (".parquet", ".arrow"):
        if following:
            raise InputError(f"source '{path}': a {kind[1:]} file does not grow; leave out --follow")
        return TableFeed(path, kind)
    if following and (path.endswith(".gz") or path == STANDARD):
        raise InputError(f"source '{path}': can't be followed; give a plain file, or leave out --follow")
    return TextFeed(path, kind, following)


def _opened(path: str) -> tuple[BinaryIO, bool]:
    """The file, and whether it is a pipe that must not be waited for."""
    if path == STANDARD:
        try:
            return open(sys.stdin.fileno(), "rb", buffering=0, closefd=False), os.name == "posix"  # type: ignore[return-value]
        except (OSError, ValueError):  # not a real one
            return sys.stdin.buffer, False
    try:
        file = open(path, "rb")  # noqa: SIM115
        if file.peek(2)[:2] == b"\x1f\x8b":
            return gzip.open(file), False  # type: ignore[return-value]
        return file, False
    except OSError as failed:
        raise InputError(f"source '{path}': can't be read ({failed.strerror}); check its name and rights") from None
