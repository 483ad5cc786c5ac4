"""What a compressed file may unpack to, judged before memory is taken for it."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterable
from itertools import chain
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

ROWS, COLUMNS = 1 << 20, 1 << 14
"""What a sheet holds."""

_ROW, _CELL = (re.compile(rb"<(?:[\w.-]+:)?%s[\s/>]" % name) for name in (b"row", b"c"))
_CELL_PLACE = re.compile(rb"\sr\s*=\s*[\"']([A-Za-z]{1,3})(\d+)")
_ROW_PLACE = re.compile(rb"\sr\s*=\s*[\"'](\d+)")


def cells_of(blocks: Iterable[bytes]) -> tuple[int, int]:
    """The cells between the corners of a sheet, and those that are written. blocks: of its XML.

    Cells without a place of their own follow one another, so they count as rows and columns.
    """
    last_row = last_column = written = loose_rows = loose_cells = 0
    before = b""
    for block in chain(blocks, [b"<"]):
        whole = before + block
        cut = max(whole.rfind(b"<"), 0)  # between two elements
        block, before = whole[:cut], whole[cut:]
        cells, rows = len(_CELL.findall(block)), len(_ROW.findall(block))
        cell_places, row_places = _CELL_PLACE.findall(block), _ROW_PLACE.findall(block)
        written += cells
        loose_cells += max(cells - len(cell_places), 0)
        loose_rows += max(rows - len(row_places), 0)
        numbers = [*row_places, *(digits for _, digits in cell_places)]
        last_row = max([last_row, *(int(digits[:9]) for digits in numbers)])
        letters = {letters.upper() for letters, _ in cell_places}
        last_column = max([last_column, *map(_column_number, letters)])
    size = min(last_row + loose_rows, ROWS) * min(last_column + loose_cells, COLUMNS)
    return size, written


def most_cells(written: int) -> int:
    """The cells that may lie between the corners of a sheet."""
    return max(FREE_CELLS, SPARSENESS * written)


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - ord("A") + 1
    return number
