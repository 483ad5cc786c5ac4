"""What is read is a file: not a device or a pipe, which may never end or can be read only once."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from shoal.errors import InputError


def path_text(path: object, what: str) -> str:
    """The path as text; raises InputError for what is no path, such as a frame.

    The message names the type alone: the text of a frame holds cells of the data.
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"{what}: a path is needed, this is of type {type(path).__name__}")
    return str(path)


LONGEST_NAME = 255
"""Bytes of a file's name; a path may have several such."""


def require_name(path: str) -> None:
    """Raises InputError for what no file can be called, or certificates can't; addresses may be
    long.
    """
    if any("\ud800" <= sign <= "\udfff" for sign in path):
        raise InputError("file: its name is not UTF-8; rename it")
    has_scheme = "://" in path
    is_long = any(len(name.encode()) > LONGEST_NAME for name in path.split("/"))
    if "\0" in (unquote(path) if has_scheme else path) or (is_long and not has_scheme):
        raise InputError(
            f"file: a name of more than {LONGEST_NAME} bytes, or with a null character, can't be a"
            " file's; give it a shorter one"
        )


def require_regular(path: str | Path, what: str, or_pipe: bool = False) -> None:
    """Raises InputError where a path is a device, a socket or, unless `or_pipe`, a pipe.

    What does not exist, and folders, are left to whoever opens them: they know what to say.
    """
    require_name(path_text(path, what))
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode) or (or_pipe and stat.S_ISFIFO(mode)):
        return
    raise InputError(f"{what} '{path}': is not a regular file; name a file")


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Raises InputError where the block can't read what a message names like this."""
    try:
        yield
    except OSError as failed:
        raise InputError(
            f"{what}: can't be read ({failed.strerror}); check its name and permissions"
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


# What outlives a crash of the machine.


def sync(path: Path) -> None:
    """Returns once a file or folder is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
