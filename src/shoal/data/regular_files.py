"""What is read from elsewhere is judged first: it is a file, and not a device or a pipe, which may
never end or can be read only once; it unpacks to what memory can take; and no key of a JSON object
stands in it twice.
"""

import errno
import hashlib
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote

from shoal.errors import InputError, TooLargeError


def path_text(path: object, what: str, instead: str = "") -> str:
    """The path as text; raises InputError for what is no path, such as a frame, or can be none.

    The message names the type alone: the text of a frame holds cells of the data. instead: what it
    says of a way that takes a frame.
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            f"{what}: a path is needed, this is of type {type(path).__name__}{instead}"
        )
    require_name(str(path), what)
    return str(path)


LONGEST_NAME = 255
"""Bytes of a file's name; a path may have several such."""
LONGEST_PATH = 4095


def require_name(path: str, what: str = "file") -> None:
    """Raises InputError for what no file can be called, or certificates can't; addresses may be
    long.
    """
    if not path.isascii() and any("\ud800" <= sign <= "\udfff" for sign in path):
        raise InputError(f"{what}: its name is not UTF-8; rename it")
    has_scheme = "://" in path
    longest = max(map(len, path.encode().split(b"/")))
    is_long = longest > LONGEST_NAME or len(path.encode()) > LONGEST_PATH
    if "\0" in (unquote(path) if has_scheme else path) or (is_long and not has_scheme):
        raise InputError(
            f"{what}: a name of more than {LONGEST_NAME} bytes, or {LONGEST_PATH} with its folders,"
            " or with a null character, can't be a file's; give it a shorter one"
        )


def require_regular(path: str | Path, what: str, or_pipe: bool = False) -> None:
    """Raises InputError where a path is a device, a socket or, unless `or_pipe`, a pipe.

    What does not exist, and folders, are left to whoever opens them: they know what to say.
    """
    path_text(path, what)
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode) or (or_pipe and stat.S_ISFIFO(mode)):
        return
    raise InputError(f"{what} '{path}': is not a regular file; name a file")


@contextmanager
def readable(what: str, whose: str = "its") -> Iterator[None]:
    """Raises InputError where the block can't read what a message names like this, and MemoryError
    where memory is short. whose: the name that is to be checked.
    """
    try:
        yield
    except OSError as failed:
        if failed.errno == errno.ENOMEM:
            raise MemoryError from None
        raise InputError(
            f"{what}: can't be read ({failed.strerror}); check {whose} name and permissions"
        ) from None


def is_pipe(path: str | Path) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False


@contextmanager
def unchanged(path: str | Path) -> Iterator[None]:
    """Raises InputError where a file was written to or replaced while the block read it.

    A table is opened several times, for its names, its records and its hash: those must be of one.
    """
    before = _stamp(path)
    yield
    if _stamp(path) != before:
        raise InputError(
            f"file '{path}': was changed while it was read; run again once whoever writes it is"
            " done"
        )


def _stamp(path: str | Path) -> tuple[int, ...]:
    """What changes when the content does; empty where there is no such file."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def file_sha256(path: str | Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# What outlives a crash of the machine.


def absent_folders(path: Path) -> list[Path]:
    """Those that are to be made for a folder, itself first."""
    return [folder for folder in (path, *path.parents) if not folder.exists()]


def sync(path: Path) -> None:
    """Returns once a file or folder is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


PACKED = b"\x1f\x8b"

# Bytes.

FREE = 64 << 20
"""Bytes that any file may unpack to."""

RATIO = 100
"""Beyond that, how many times its own size a file may unpack to; text of tables reaches 5 to 30."""

MOST = 4 << 30
"""What a file may unpack to at most, if nothing else is said (`unpacked` of `read`)."""


def most_unpacked(packed: int, allowed: int | None = None) -> int:
    """The bytes that a file of `packed` bytes may unpack to. allowed: what its reader has said."""
    return allowed or min(max(FREE, RATIO * packed), MOST)


def is_packed(path: str | Path) -> bool:
    """Whether a file is what gzip has packed."""
    with open(path, "rb") as file:
        return file.read(2) == PACKED


def unpacked(content: bytes, what: str, allowed: int | None = None) -> bytes:
    """The text of what gzip has packed, and other content as it is; raises InputError where it is
    damaged, or unpacks to more than it may.

    what: how a message begins, such as `file 'a.csv.gz'`.
    """
    if not content.startswith(PACKED):
        return content
    most, size = most_unpacked(len(content), allowed), 0
    try:
        for block in _blocks(content):
            size += len(block)
            require_room(size, most, what)
        return b"".join(_blocks(content))
    except zlib.error:
        raise InputError(f"{what}: its compression is damaged; fetch it again") from None


_PADDING = re.compile(rb"\0*")
_PIECES = 1 << 9, 1 << 11  # bytes, the first of a member and the largest


def _blocks(content: bytes) -> Iterator[bytes]:
    """What gzip has packed, in one member or many, as a stream writes them. Each member is handed
    little more than it has: whatever is behind its end is copied. Raises zlib.error.
    """
    at = 0
    while at < len(content):
        member, piece = zlib.decompressobj(wbits=31), _PIECES[0]
        while not member.eof:
            if at >= len(content):
                raise zlib.error
            block = content[at : at + piece]
            yield member.decompress(block)
            at += len(block) - len(member.unused_data)
            piece = min(2 * piece, _PIECES[1])
        at = _PADDING.match(content, at).end()  # type: ignore[union-attr]


CELL = 2
"""What a cell of Parquet or Arrow takes as text, at its least: a character and a delimiter."""


SHORT = 32
"""Bytes of a cell's text that are not counted besides: releases repeat short texts in long runs."""


def require_room(size: int, most: int, what: str) -> None:
    """Raises TooLargeError where more than `most` bytes were unpacked."""
    if size > most:
        raise TooLargeError(
            f"{what}: unpacks to more than {most / 1e6:.0f} MB; if you know why, say how much it"
            " may be, such as --read unpacked=16GB, or unpack it first"
        )


# Cells of a workbook's sheet, of which its readers hold all between the corners.


FREE_CELLS = 5_000_000
"""Cells between the corners, whatever they hold."""

SPARSENESS = 4
"""Where there are more, one of this number must be written."""


def most_cells(written: int) -> int:
    """The cells that may lie between the corners of a sheet."""
    return max(FREE_CELLS, SPARSENESS * written)


Json: TypeAlias = dict[str, Any]
"""An object of JSON, or what YAML and TOML write instead."""


class RepeatedKey(ValueError):
    """An object that names a key twice: programs differ in which of the two values they read."""

    problem = "a key is named a second time"


def distinct_keys(pairs: list[tuple[str, Any]]) -> Json:
    """What `json` reads as an object; raises RepeatedKey."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RepeatedKey
    return found
