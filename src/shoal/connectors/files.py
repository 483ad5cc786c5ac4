"""Tables in files: read whole, written whole or not at all.

CSV and TSV are read as text, cell by cell, so that what is published is what was written: no guess
turns a postcode into a number. Parquet, Arrow and JSON lines keep their types.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import polars as pl

from shoal.data.regular_files import is_pipe, require_regular
from shoal.errors import InputError

try:
    import fcntl
except ImportError:  # not on Windows, where drafts of killed runs stay
    fcntl = None  # type: ignore[assignment]

FORMATS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".arrow", ".jsonl", ".jsonl.gz")
STANDARD = "-"
_MOST_NAMED = 5
DRAFT_BYTES = 8  # of a random name


@dataclass(frozen=True)
class SourceFile:
    """A table as it was read, with the hash of its bytes."""

    frame: pl.DataFrame
    sha256: str


def format_of(path: str) -> str:
    """The format by suffix, without compression; standard input and output are CSV."""
    if path == STANDARD:
        return ".csv"
    name = Path(path).name.lower()
    for suffix in FORMATS:
        if name.endswith(suffix):
            return suffix.removesuffix(".gz")
    raise InputError(f"file '{path}': unknown format; use one of {', '.join(FORMATS)}")


def is_typed(kind: str) -> bool:
    """Whether a format keeps numbers and no value apart from text."""
    return kind in (".parquet", ".arrow", ".jsonl")


def read(path: str, categorical: Collection[str] = (), *, allow_empty: bool = False) -> SourceFile:
    """The table in a file, or on standard input for `-`; raises InputError where it is wrong.

    categorical: columns of few distinct values, of which text is then held once per value.
    allow_empty: whether a header without records is a table, too.
    """
    kind = format_of(path)
    if path == STANDARD:
        content = sys.stdin.buffer.read()
        source = SourceFile(
            _parsed(content, path, kind, categorical), hashlib.sha256(content).hexdigest()
        )
    else:
        source = read_as(path, kind, categorical)
    if not source.frame.height and not allow_empty:
        raise InputError(f"file '{path}': holds no records; publish a table with at least k people")
    return source


def read_as(path: str | Path, kind: str, categorical: Collection[str] = ()) -> SourceFile:
    """A table in a file of the given format, whatever its name."""
    require_regular(path, "file", or_pipe=kind not in (".parquet", ".arrow"))
    try:
        if is_pipe(path):  # can be read only once
            piped = Path(path).read_bytes()
            digest = hashlib.sha256(piped).hexdigest()
            return SourceFile(_parsed(piped, str(path), kind, categorical), digest)
        digest = file_sha256(path)
        if kind in (".parquet", ".arrow"):
            return SourceFile(_typed(str(path), kind), digest)
        with open(path, "rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        content = Path(path).read_bytes() if packed or kind == ".jsonl" else Path(path)
    except OSError as failed:
        raise InputError(
            f"file '{path}': can't be read ({failed.strerror}); check the name and permissions"
        ) from None
    return SourceFile(_parsed(content, str(path), kind, categorical), digest)


def file_sha256(path: str | Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def atomic_write(path: str, is_private: bool = False) -> Iterator[Path]:
    """A path beside `path` to write to, moved into place if the block succeeds, else removed.

    For `-` the content goes to standard output at the end. is_private: it stays its owner's alone.
    What a killed run left behind of the same target is removed first.
    """
    target = Path(tempfile.gettempdir()) / "standard-output" if path == STANDARD else Path(path)
    if target.is_dir() or not target.parent.is_dir() or not os.access(target.parent, os.W_OK):
        raise InputError(
            f"output '{path}': can't be written; name a file in a folder that exists and is"
            " writable"
        )
    _sweep_drafts(target)
    draft, lock = _locked_draft(target, path)
    try:
        yield draft
        _take_place(draft, target, path, is_private)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
        os.close(lock)


def _locked_draft(target: Path, path: str) -> tuple[Path, int]:
    """A new draft and the descriptor whose lock says that its writer lives."""
    while True:
        # a fresh name that nobody could have prepared, and readable by its owner alone until it
        # takes its place
        draft = target.parent / f".{target.name}.{secrets.token_hex(DRAFT_BYTES)}.part"
        try:
            lock = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except OSError as failed:
            raise InputError(
                f"output '{path}': writing failed ({failed.strerror or 'no room or no right'})"
            ) from None
        if fcntl is None:
            return draft, lock
        with suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(lock).st_nlink:
            return draft, lock
        os.close(lock)  # swept away by another run between its making and its lock


def _sweep_drafts(target: Path) -> None:
    """Removes the drafts of this target whose writers died: the system has freed their locks."""
    if fcntl is None:
        return
    form = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{{2 * DRAFT_BYTES}}}\.part")
    try:
        names = [name for name in os.listdir(target.parent) if form.fullmatch(name)]
    except OSError:
        return  # a folder that may be written to, but not listed
    for name in names:
        draft = target.parent / name
        with suppress(OSError):  # another's, or one that is locked
            handle = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                draft.unlink()
            finally:
                os.close(handle)


def _take_place(draft: Path, target: Path, path: str, is_private: bool) -> None:
    try:
        if path == STANDARD:
            _copy_to_standard_output(draft)
        else:
            if not is_private:
                draft.chmod(0o666 & ~_umask())
            _sync(draft)
            os.replace(draft, target)
            _sync(target.parent)
    except OSError as failed:
        raise InputError(
            f"output '{path}': writing failed ({failed.strerror or 'no space or no permission'})"
        ) from None


def _umask() -> int:
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


def write(frame: pl.DataFrame, draft: Path, kind: str, compressed: bool = False) -> None:
    """Write a frame in the given format."""
    try:
        with open(draft, "wb") as file:
            if compressed:
                # no name and no time in the header: the same table gives the same bytes
                with gzip.GzipFile(
                    filename="", fileobj=file, mode="wb", mtime=0, compresslevel=6
                ) as packed:
                    _write(frame, packed, kind)  # type: ignore[arg-type]
            else:
                _write(frame, file, kind)
    except OSError as failed:
        why = failed.strerror or "no space or no permission"
        raise InputError(
            f"output: writing failed ({why}); free some space or name another place"
        ) from None


def _write(frame: pl.DataFrame, file: BinaryIO, kind: str) -> None:
    if kind in (".parquet", ".arrow"):
        # a dictionary would carry along values that no cell shows
        categorical = [
            name for name, dtype in frame.schema.items() if dtype in (pl.Enum, pl.Categorical)
        ]
        frame = frame.with_columns(pl.col(name).cast(pl.String) for name in categorical)
    if kind == ".parquet":
        try:
            frame.write_parquet(file)
        except (
            pl.exceptions.ComputeError
        ):  # what the disk refuses, in another's words: plain cells can be written
            raise OSError from None
    elif kind == ".arrow":
        frame.write_ipc(file)
    elif kind == ".jsonl":
        frame.write_ndjson(file)
    else:
        frame.write_csv(file, separator="\t" if kind == ".tsv" else ",")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unpacked(content: bytes, path: str) -> bytes:
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError):
        raise InputError(f"file '{path}': its compression is damaged; fetch it again") from None


def _typed(path: str, kind: str) -> pl.DataFrame:
    try:
        with open(path, "rb") as file:  # a name is a name, whatever characters it holds
            frame = pl.read_parquet(file) if kind == ".parquet" else pl.read_ipc(file)
    except pl.exceptions.PolarsError:
        raise InputError(
            f"file '{path}': is not a complete {kind[1:]} file; write it again"
        ) from None
    check_plain(frame, f"file '{path}'")
    return frame


def _parsed(
    content: bytes | Path, path: str, kind: str, categorical: Collection[str]
) -> pl.DataFrame:
    """The table in some bytes, or in a plain text file that is too large to be held twice."""
    if isinstance(content, bytes):
        content = _unpacked(content, path)
        if kind == ".jsonl":
            return _json_lines(content, path)
    return _delimited(content, path, kind, categorical)


def _json_lines(content: bytes, path: str) -> pl.DataFrame:
    try:
        frame = (
            pl.read_ndjson(content, infer_schema_length=None) if content.strip() else pl.DataFrame()
        )
    except pl.exceptions.PolarsError:
        raise InputError(
            f"file '{path}': a line is not a JSON object like the others; write one object a line"
        ) from None
    check_plain(frame, f"file '{path}'")
    return frame


def check_plain(frame: pl.DataFrame, where: str) -> None:
    """Raises InputError where a column holds what has no one text: lists, objects, bytes."""
    odd = [
        name
        for name, dtype in frame.schema.items()
        if dtype.is_nested() or dtype in (pl.Binary, pl.Object)
    ]
    if odd:
        raise InputError(
            f"{where}: columns {', '.join(odd)} hold lists, objects or bytes; give plain values"
        )


def _places(header: list[str], name: str) -> str:
    """The numbers of the columns with this name, from 1, as text."""
    *others, last = (number for number, text in enumerate(header, 1) if text == name)
    return f"{', '.join(map(str, others))} and {last}"


def _delimited(
    content: bytes | Path, path: str, kind: str, categorical: Collection[str]
) -> pl.DataFrame:
    header, separator = _header(content, path, kind)
    repeated = sorted({name for name in header if header.count(name) > 1})
    # the first line may be a record, so its cells are not shown
    findings = [
        f"file '{path}': columns {_places(header, name)} have the same name; rename all but one, or"
        " give the file a first line with names"
        for name in repeated
    ]
    if "" in header:
        number = header.index("") + 1
        findings.append(
            f"file '{path}': column {number} has no name; the first line must name every column"
        )
    if findings:
        raise InputError.from_findings(findings)
    try:
        categories = {name: pl.Categorical for name in header if name in categorical}
        frame = pl.read_csv(
            content,
            separator=separator,
            infer_schema=False,
            schema_overrides=categories,
            glob=False,
            low_memory=True,
        )
    except pl.exceptions.PolarsError:
        _check_encoding(content, path)
        _check_rows(content, path, separator, len(header))
        raise InputError(
            f"file '{path}': can't be read as {kind[1:]}; a quote may be left open"
        ) from None
    if len(header) != frame.width:
        raise InputError(
            f"file '{path}': its first line can't be read as column names; begin with the names"
        )
    frame.columns = header  # Polars leaves doubled quotes in names as they are
    # a row that is too short shows as a missing last cell: only then is each row looked at
    if frame.height and frame[frame.columns[-1]].null_count():
        blank = _check_rows(content, path, separator, len(header))
        if blank and len(header) > 1:
            kept = np.ones(frame.height, dtype=bool)
            kept[blank] = False
            frame = frame.filter(pl.Series(kept))
    return frame


def delimiter_of(head: bytes, kind: str) -> str:
    """What parts the cells of a delimited text, by its first line."""
    return _header(head, "", kind)[1]


def _opened(content: bytes | Path) -> BinaryIO:
    return io.BytesIO(content) if isinstance(content, bytes) else open(content, "rb")


def _check_encoding(content: bytes | Path, path: str) -> None:
    """Raises InputError with the first line that is not UTF-8."""
    with _opened(content) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                raise InputError(
                    f"file '{path}': line {number} is not UTF-8; convert the file, for instance"
                    " with iconv"
                ) from None


def is_utf8(text: bytes) -> bool:
    """Whether bytes are text."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _header(content: bytes | Path, path: str, kind: str) -> tuple[list[str], str]:
    """The column names, and what parts the cells."""
    with _opened(content) as file:
        text = file.read(1 << 20)
    start = text.decode("utf-8-sig", errors="ignore")
    if not start.strip():
        raise InputError(f"file '{path}': is empty; the first line must name the columns")
    if "\0" in start:
        raise InputError(
            f"file '{path}': is not UTF-8 text, or holds null characters; convert it, for instance"
            " with iconv"
        )
    if not is_utf8(text.partition(b"\n")[0]):
        _check_encoding(content, path)
    if start.lower().startswith("sep="):
        raise InputError(
            f"file '{path}': begins with a spreadsheet's 'sep=' line; remove that line"
        )
    names = _first_row(start, "\t" if kind == ".tsv" else ",", path)
    if kind == ".csv" and len(names) == 1:
        others = [(separator, _first_row(start, separator, path)) for separator in ";\t|"]
        separator, split = max(others, key=lambda other: len(other[1]))
        if len(split) > 1:
            return split, separator
    return names, "\t" if kind == ".tsv" else ","


def _first_row(text: str, separator: str, path: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error:
        raise InputError(
            f"file '{path}': its first line can't be read as column names; check its quotes"
        ) from None


def _check_rows(content: bytes | Path, path: str, separator: str, columns: int) -> list[int]:
    """0-based rows that are blank lines; raises InputError for rows of too few or many cells."""
    blank: list[int] = []
    ragged: list[str] = []
    count = 0
    try:
        with io.TextIOWrapper(_opened(content), "utf-8-sig", newline="") as text:
            reader = csv.reader(text, delimiter=separator)
            next(reader)
            for row, cells in enumerate(reader):
                if not cells:
                    blank.append(row)
                elif len(cells) != columns:
                    count += 1
                    if len(ragged) < _MOST_NAMED:
                        ragged.append(str(row + 1))
    except csv.Error:
        raise InputError(
            f"file '{path}': holds a cell too long to be one; a quote may be left open"
        ) from None
    if count:
        more = ", ..." if count > len(ragged) else ""
        raise InputError(
            f"file '{path}': {count} row{'s' if count > 1 else ''} with more or fewer than the"
            f" header's {columns} cells (row {', '.join(ragged)}{more}); fix them, or quote cells"
            " that hold the separator"
        )
    return blank
