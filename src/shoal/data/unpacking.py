"""What a compressed file may unpack to, judged before memory is taken for it."""

import gzip
import io
import zlib
from pathlib import Path

from shoal.errors import InputError

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
    most = most_unpacked(len(content), allowed)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            size = 0
            while block := file.read(1 << 20):
                size += len(block)
                require_room(size, most, what)
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        raise InputError(f"{what}: its compression is damaged; fetch it again") from None


CELL = 2
"""What a cell of Parquet or Arrow takes as text, at its least: a character and a delimiter."""


SHORT = 32
"""Bytes of a cell's text that are not counted besides: releases repeat short texts in long runs."""


def require_room(size: int, most: int, what: str) -> None:
    """Raises InputError where more than `most` bytes were unpacked."""
    if size > most:
        raise InputError(
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
