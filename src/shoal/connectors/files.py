"""Tables in files: read whole, written whole or not at all.

Delimited text and workbooks are read as text, cell by cell. Parquet, Arrow and JSON lines keep
their types.
"""

import gzip
import hashlib
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import polars as pl

from shoal.connectors import delimited, formats, outputs, parquet_parts, typed
from shoal.connectors.dialect import AS_FOUND, Dialect, Reading
from shoal.connectors.formats import Asked, Form, Format, parquet_arrow
from shoal.connectors.formats import SourceFile as SourceFile
from shoal.connectors.location import PARQUET, Location, is_taken
from shoal.data import cores, regular_files, warnings
from shoal.data.regular_files import file_sha256 as file_sha256
from shoal.data.table import Table
from shoal.errors import InputError, os_errors_as_input_errors, system_error


def read(
    path: str,
    categorical: Collection[str] = (),
    *,
    allow_empty: bool = False,
    reading: Reading = AS_FOUND,
) -> SourceFile:
    """The table in a file, or on standard input for `-`; raises InputError where it is wrong.

    categorical: columns of few distinct values, of which text is then held once per value.
    allow_empty: whether a header without records is a table, too. A folder, or a pattern such as
    `part-*.parquet`, is one table in several Parquet files.
    """
    source = read_as(path, None, categorical, reading)
    if not source.table.records and not allow_empty:
        raise InputError(f"file '{path}': holds no records; publish a table with at least k people")
    return source


def read_as(
    path: str | Path,
    kind: str | None = None,
    categorical: Collection[str] = (),
    reading: Reading = AS_FOUND,
) -> SourceFile:
    """A table in a file of the given format, whatever its name; by default, the name says it."""
    place = Location(path)
    if place.is_table:
        from shoal.connectors.database.release_tables import read_table

        return read_table(place.address, reading)
    kind = place.kind_to_read if kind is None else formats.format_of(kind)
    if not place.is_standard:
        regular_files.require_regular(path, "file", or_pipe=kind.is_text)
    with regular_files.readable(f"file '{path}'", "the"):
        if place.is_many:
            return _read_parts(path, reading)
        if place.is_standard or regular_files.is_pipe(path):  # can be read only once
            piped = sys.stdin.buffer.read() if place.is_standard else Path(path).read_bytes()
            digest = hashlib.sha256(piped).hexdigest()
            return _parsed(Asked(piped, str(path), categorical, reading), kind, digest)
        with regular_files.unchanged(path), cores.beside(file_sha256, path) as hashed:
            is_whole = kind.is_text and regular_files.is_packed(path)
            content = Path(path).read_bytes() if is_whole else Path(path)
            source = _parsed(Asked(content, str(path), categorical, reading), kind, "")
            return replace(source, sha256=hashed())


def _read_parts(path: str | Path, reading: Reading) -> SourceFile:
    parts = parquet_parts.parts_of(path)
    with ExitStack() as kept:
        for part in parts:
            kept.enter_context(regular_files.unchanged(part.path))
        parts = parquet_parts.hashed(parts)
        parquet_parts.check_named(path, parts)
        most = [part.path for part in parts]
        typed.require_unfolded(most, PARQUET, f"folder '{path}'", reading.unpacked)
        read = [parquet_arrow.read_columns(str(part.path), PARQUET, reading) for part in parts]
    table = Table(parquet_parts.joined([frame for frame, _, _ in read], parts))
    remarks = warnings.nan_remarks(sum((nans for _, _, nans in read), Counter[str]()))
    digest = parquet_parts.digest(parts)
    return SourceFile(table, digest, remarks=remarks, unread=read[0][1])


LINES = 8  # of a table that is not read yet


class Beginning(NamedTuple):
    """How a file begins as it is written: a workbook's visible sheets, the first lines, and which
    of these, from 1, names the columns where the first is a title.
    """

    sheets: list[str]
    lines: list[list[str]]
    below_title: int | None


def beginning(path: str, reading: Reading) -> Beginning:
    """How the file of a table begins; raises InputError where it can't be told."""
    kind = Location(path).kind_to_read
    sheets: list[str] = []
    lines: list[list[str]] = []
    if kind.has_sheets:
        from shoal.connectors import workbooks  # which a plain file does not need

        sheets, lines = workbooks.first_rows(path, reading, LINES)
    elif kind.is_delimited and not regular_files.is_packed(path):
        lines = [[line] for line in delimited.first_lines(path, reading, LINES)]
    return Beginning(sheets, lines, _below_title(lines, kind.has_sheets))


def _below_title(lines: list[list[str]], is_workbook: bool) -> int | None:
    """Which line, from 1, seems to name the columns where the first is a title: has one cell."""
    if not is_workbook:  # lines of text
        whole = "".join(text for (text,) in lines)
        between = max(";,|\t", key=whole.count)
        lines = [text.split(between) for (text,) in lines]
    filled = [sum(map(bool, line)) for line in lines]
    return filled.index(max(filled)) + 1 if filled and filled[0] == 1 and max(filled) > 2 else None


def table_sha256(path: str | Path) -> str:
    """The hash that `read` gives a table in a file, in several or in a database."""
    place = Location(path)
    if place.is_table:
        from shoal.connectors.database.tables import RowsChanged

        try:
            return read_as(path).sha256
        except RowsChanged as changed:
            return changed.sha256
    if place.is_many:
        return parquet_parts.digest(parquet_parts.hashed(parquet_parts.parts_of(path)))
    return file_sha256(path)


@contextmanager
def atomic_write(path: str, is_private: bool = False, replace: bool = True) -> Iterator[Path]:
    """A path beside `path` to write to, moved into place if the block succeeds, else removed.

    For `-` the content goes to standard output at the end. is_private: it stays its owner's alone.
    replace: whether a file there gives way, also one that has appeared meanwhile. What a killed run
    left behind of the same target is removed first.
    """
    check_writable(path, replace)
    target = _target_of(path)
    with outputs.draft_beside(target, f"output '{path}'") as draft:
        yield draft
        check_writable(path, replace)
        _take_place(draft, target, path, is_private)


def write_text(path: str | Path, text: str) -> None:
    """The text as a file, whole or not at all."""
    with atomic_write(str(path)) as draft:
        draft.write_text(text, encoding="utf-8")


def check_writable(path: str, replace: bool = True) -> None:
    """Raises InputError where no file can be written. replace: whether one there gives way."""
    place = Location(path)
    if place.is_table:
        raise InputError(
            f"output '{place.address.shown}': this command writes no table in a database;"
            " name a file"
        )
    place.refuse_unknown_scheme("output", "written to")
    InputError.raise_for(outputs.in_ledgers(path))
    target = _target_of(path)
    if (
        path.endswith("/")
        or (target.exists() and not target.is_file())  # a folder, a pipe or a device
        or not target.parent.is_dir()
        or not os.access(target.parent, os.W_OK)
    ):
        raise InputError(
            f"output '{path}': can't be written; name a file in a folder that exists and is"
            " writable"
        )
    if not (replace or place.is_standard) and target.exists():
        raise is_taken(f"output '{path}'", "file")


def _target_of(path: str) -> Path:
    if Location(path).is_standard:
        return Path(tempfile.gettempdir()) / "standard-output"
    return Path(path)


def _take_place(draft: Path, target: Path, path: str, is_private: bool) -> None:
    remedy = "free some space or name another place"
    with os_errors_as_input_errors(f"output '{path}'", remedy, "writing"):
        if Location(path).is_standard:
            _copy_to_standard_output(draft)
            return
        if not is_private:
            draft.chmod(0o666 & ~umask())
        regular_files.sync(draft)
        os.replace(draft, target)
        regular_files.sync(target.parent)


def umask() -> int:
    """The rights that this process's new files lack."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def open_to_readers(folder: Path) -> None:
    """A draft is its owner's alone; what is published follows the owner's rule for new files."""
    mask = umask()
    folder.chmod(0o777 & ~mask)
    for path in folder.rglob("*"):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)


def move_into_place(
    draft: Path, place: Path, exchange: Callable[[Path, Path], None] | None = None
) -> None:
    """All of a folder on disk, then there by one rename or exchange, then that on disk."""
    for path in draft.rglob("*"):
        regular_files.sync(path)
    regular_files.sync(draft)
    (exchange or os.rename)(draft, place)
    regular_files.sync(place.parent)


def _copy_to_standard_output(draft: Path) -> None:
    try:
        with open(draft, "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # what is left in the buffer must not be tried again when Python ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise InputError(
            "standard output: was closed before all was written; keep its reader open"
        ) from None


class EvenWrites:
    """A file that is written to in pieces of one size: what packs them gives the same bytes for the
    same content, however it was handed over.
    """

    SIZE = 1 << 20

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file, self._held = file, bytearray()

    def write(self, content: bytes) -> int:
        self._held += content
        while len(self._held) >= self.SIZE:
            self._file.write(self._held[: self.SIZE])
            del self._held[: self.SIZE]
        return len(content)

    def flush(self) -> None:
        """Hands over what is left, once all was written."""
        self._file.write(self._held)
        self._held.clear()


def write(
    frame: pl.DataFrame,
    draft: Path,
    kind: str | None = None,
    compressed: bool = False,
    dialect: Dialect | None = None,
    metadata: dict[str, str] | None = None,
) -> None:
    """Write a frame in the given format; by default, the draft's name says it.

    dialect: of delimited text; None for the default. metadata: what Parquet keeps beside the table.
    """
    with draft_file(draft, compressed) as file:
        formats.format_of(kind or Location(draft).kind).write(frame, file, Form(dialect, metadata))


def write_table(frame: pl.DataFrame, output: str | Path, is_private: bool = False) -> None:
    """Writes a frame whole to a file or `-`, by its name. is_private: its owner's alone."""
    place = Location(output)
    kind = place.kind_to_write
    with atomic_write(place, is_private) as draft:
        write(frame, draft, kind, place.is_packed)


@contextmanager
def draft_file(draft: Path, compressed: bool) -> Iterator[BinaryIO]:
    """A draft to write to; raises InputError where writing fails."""
    try:
        with open(draft, "wb") as file:
            if not compressed:
                yield file
                return
            # no name and no time in the header: the same table gives the same bytes
            with gzip.GzipFile(
                filename="", fileobj=file, mode="wb", mtime=0, compresslevel=6
            ) as packed:
                even = EvenWrites(packed)
                yield cast(BinaryIO, even)
                even.flush()
    except OSError as failed:
        number = system_error(failed)
        why = "no space or no permission" if number is None else os.strerror(number)
        raise InputError(
            f"output: writing failed ({why}); free some space or name another place"
        ) from None


def _parsed(asked: Asked, kind: Format, digest: str) -> SourceFile:
    """The table in some bytes of text, or in a file that need not be unpacked."""
    if isinstance(asked.content, bytes):
        where = f"file '{asked.path}'"
        asked = asked._replace(
            content=regular_files.unpacked(asked.content, where, asked.reading.unpacked)
        )
    return replace(kind.read(asked), sha256=digest)
