"""Tables in files: read whole, written whole or not at all.

Delimited text and workbooks are read as text, cell by cell. Parquet, Arrow and JSON lines keep
their types.
"""

import codecs
import errno
import gzip
import hashlib
import os
import shutil
import sys
import tempfile
from bisect import bisect_left
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, cast

import polars as pl

from shoal.connectors import delimited, parquet_parts
from shoal.connectors.dialect import AS_FOUND, Dialect, Reading, default_dialect
from shoal.connectors.location import PARQUET, Format, Location, is_taken
from shoal.connectors.outputs import draft_beside
from shoal.connectors.typed import (
    check_keys,
    check_texts,
    objects,
    plain,
    require_keys_shared,
    require_unfolded,
    table_errors,
    without_records,
)
from shoal.data import cores
from shoal.data.regular_files import is_packed, is_pipe, require_regular, sync, unchanged, unpacked
from shoal.data.table import Table
from shoal.data.warnings import ReleaseWarning
from shoal.errors import InputError, system_error

ROW_GROUP = 1 << 20
"""Records of a row group, whether a table is written at once or block by block."""


@dataclass(frozen=True)
class SourceFile:
    """A table as it was read, with the hash of its bytes.

    dialect: of delimited text, as which the table was read; None of other formats. second: the hash
    of the table of sensitive values, where a release of two tables was read. remarks: on rows that
    are nobody, or may be. contradicted: records whose derived numbers their cells contradict, None
    where the policy asks for none.
    """

    table: Table
    sha256: str
    dialect: Dialect | None = None
    second: str | None = None
    remarks: tuple[ReleaseWarning, ...] = ()
    contradicted: int | None = None

    @property
    def frame(self) -> pl.DataFrame:
        """Its records; raises InputError where they don't fit into memory."""
        return self.table.frame


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
    place = Location(path)
    kind = place.kind_to_read
    if place.is_standard:
        content = sys.stdin.buffer.read()
        source = _parsed(
            content, path, kind, categorical, reading, hashlib.sha256(content).hexdigest()
        )
    else:
        source = read_as(path, kind, categorical, reading)
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

        frame, digest = read_table(place.address, reading)
        return SourceFile(Table(frame), digest)
    if place.is_many:
        return _read_parts(path, reading)
    kind = place.kind if kind is None else Format(kind)
    require_regular(path, "file", or_pipe=not (kind.is_columnar or kind.is_workbook))
    try:
        if is_pipe(path):  # can be read only once
            piped = Path(path).read_bytes()
            digest = hashlib.sha256(piped).hexdigest()
            return _parsed(piped, str(path), kind, categorical, reading, digest)
        with unchanged(path), cores.beside(file_sha256, path) as hashed:
            source = _read_regular(str(path), kind, categorical, reading)
            return replace(source, sha256=hashed())
    except OSError as failed:
        raise unreadable(path, failed) from None


def _read_regular(
    path: str, kind: Format, categorical: Collection[str], reading: Reading
) -> SourceFile:
    """A table in a regular file, its hash left out."""
    if kind.is_columnar:
        require_unfolded([path], kind, f"file '{path}'", reading.unpacked)
        if kind.is_parquet:
            parquet_parts.refuse_versions(Path(path))
        return SourceFile(Table(_typed(path, kind, reading)), "")
    if kind.is_workbook:
        from shoal.connectors import workbooks

        frame, remarks = workbooks.read(path, reading)
        return SourceFile(Table(frame), "", remarks=remarks)
    is_whole = kind.is_json or is_packed(path)
    content = Path(path).read_bytes() if is_whole else Path(path)
    return _parsed(content, path, kind, categorical, reading, "")


def _read_parts(path: str | Path, reading: Reading) -> SourceFile:
    parts = parquet_parts.parts_of(path)
    try:
        with ExitStack() as kept:
            for part in parts:
                kept.enter_context(unchanged(part.path))
            hashes = parquet_parts.hashes(parts)
            parquet_parts.check_named(path, parts, hashes)
            most = [part.path for part in parts]
            require_unfolded(most, PARQUET, f"folder '{path}'", reading.unpacked)
            frames = [_typed(str(part.path), PARQUET, reading) for part in parts]
        digest = parquet_parts.digest(parts, hashes)
        return SourceFile(Table(parquet_parts.joined(frames, parts)), digest)
    except OSError as failed:
        raise unreadable(path, failed) from None


def unreadable(path: str | Path, failed: OSError) -> InputError:
    """The error where a file can't be opened or read; raises MemoryError where memory is short."""
    if failed.errno == errno.ENOMEM:
        raise MemoryError from None
    return InputError(
        f"file '{path}': can't be read ({failed.strerror}); check the name and permissions"
    )


def table_sha256(path: str | Path) -> str:
    """The hash that `read` gives a table in a file, in several or in a database."""
    place = Location(path)
    if place.is_table:
        return read_as(path).sha256
    if place.is_many:
        return parquet_parts.digest(parquet_parts.parts_of(path))
    return file_sha256(path)


def file_sha256(path: str | Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def atomic_write(path: str, is_private: bool = False) -> Iterator[Path]:
    """A path beside `path` to write to, moved into place if the block succeeds, else removed.

    For `-` the content goes to standard output at the end. is_private: it stays its owner's alone.
    What a killed run left behind of the same target is removed first.
    """
    check_writable(path)
    target = _target_of(path)
    with draft_beside(target, path) as draft:
        yield draft
        _take_place(draft, target, path, is_private)


def check_writable(path: str, replace: bool = True) -> None:
    """Raises InputError where no file of this name can be written.

    replace: whether a file that is there already gives way.
    """
    place = Location(path)
    if place.is_table:
        raise InputError(
            f"output '{place.address.shown}': this command writes no table in a database;"
            " name a file"
        )
    place.refuse_unknown_scheme("output", "written to")
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
    return (
        Path(tempfile.gettempdir()) / "standard-output"
        if Location(path).is_standard
        else Path(path)
    )


def _take_place(draft: Path, target: Path, path: str, is_private: bool) -> None:
    try:
        if Location(path).is_standard:
            _copy_to_standard_output(draft)
        else:
            if not is_private:
                draft.chmod(0o666 & ~umask())
            sync(draft)
            os.replace(draft, target)
            sync(target.parent)
    except OSError as failed:
        raise InputError(
            f"output '{path}': writing failed ({failed.strerror or 'no space or no permission'})"
        ) from None


def umask() -> int:
    """The rights that this process's new files lack."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


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
        _write(frame, file, Format(kind or Location(draft).kind), dialect, metadata)


def write_table(frame: pl.DataFrame, output: str | Path, is_private: bool = False) -> None:
    """Writes a frame whole to a file or standard output, in the format of its name.

    is_private: it stays its owner's alone.
    """
    place = Location(output)
    kind = place.kind
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


def _write(
    frame: pl.DataFrame,
    file: BinaryIO,
    kind: Format,
    dialect: Dialect | None,
    metadata: dict[str, str] | None,
) -> None:
    if kind.is_columnar:
        # a dictionary would carry along values that no cell shows
        categorical = [
            name for name, dtype in frame.schema.items() if dtype in (pl.Enum, pl.Categorical)
        ]
        frame = frame.with_columns(pl.col(name).cast(pl.String) for name in categorical)
    if kind.is_parquet:
        try:
            frame.write_parquet(file, metadata=metadata, row_group_size=ROW_GROUP)
        except pl.exceptions.ComputeError:
            # what the disk refuses, in another's words: plain cells can be written
            raise OSError from None
    elif kind.is_columnar:
        frame.write_ipc(file)
    elif kind.is_json:
        frame.write_ndjson(file)
    elif kind.is_workbook:
        from shoal.connectors import workbooks

        workbooks.write({workbooks.SHEET: frame}, file)
    else:
        delimited.write(frame, file, dialect or default_dialect(kind))


def _typed(path: str, kind: str, reading: Reading) -> pl.DataFrame:
    # a name is a name, whatever characters it holds
    with table_errors(path, kind, f"file '{path}'"), open(path, "rb") as file:
        table = pl.scan_parquet(file) if kind == PARQUET else pl.scan_ipc(file)
        schema = table.collect_schema()
        names = without_records(schema)
        kept = plain(names, f"file '{path}'", reading)
        # a short file may hold very long lists, so those that nobody needs are not even looked at
        unread = [
            name
            for name in names.columns
            if kept[name].dtype != names[name].dtype
            and (names[name].dtype != schema[name] or _holds_lists(schema[name]))
        ]
        frame = table.with_columns(pl.lit(None, pl.String).alias(name) for name in unread).collect()
    return plain(frame, f"file '{path}'", reading)


def _holds_lists(dtype: pl.DataType) -> bool:
    if isinstance(dtype, pl.Struct):
        return any(_holds_lists(field.dtype) for field in dtype.fields)  # type: ignore[arg-type]
    return isinstance(dtype, pl.List | pl.Array)


def _parsed(
    content: bytes | Path,
    path: str,
    kind: Format,
    categorical: Collection[str],
    reading: Reading,
    digest: str,
) -> SourceFile:
    """The table in some bytes, or in a plain text file that is too large to be held twice."""
    if isinstance(content, bytes):
        content = unpacked(content, f"file '{path}'", reading.unpacked)
        if kind.is_json:
            return SourceFile(Table(_json_lines(content, path, reading)), digest)
    table, dialect = delimited.read(content, path, kind, categorical, reading)
    return SourceFile(table, digest, dialect)


def _json_lines(content: bytes, path: str, reading: Reading) -> pl.DataFrame:
    content = content.removeprefix(codecs.BOM_UTF8)
    require_keys_shared(content, f"file '{path}'", reading.unpacked)
    frame = objects(content)
    if frame is None:
        lines = content.split(b"\n")
        upto = range(len(lines) + 1)
        bad = bisect_left(upto, True, key=lambda n: objects(b"\n".join(lines[:n])) is None)
        raise InputError(
            f"file '{path}': line {bad} is not a JSON object like the others; write one object a"
            " line"
        )
    table = plain(frame, f"file '{path}'", reading)
    check_texts(content, table, f"file '{path}'", reading)
    check_keys(content, table, f"file '{path}'")
    return table
