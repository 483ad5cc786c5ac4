"""A large text file in pieces of whole records, hashed as it is read.

A record ends at a line break outside quotes, and a break is outside quotes where the text before it
has an even number of them: RFC 4180 doubles every quote inside a quoted cell. That is how Polars
parts records, too, so that the records of all pieces are those of the whole file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from shoal.errors import InputError

PIECE = 32 << 20
"""Bytes of a piece, as far as records allow."""

LONGEST = 256 << 20
"""A piece without the end of a record may grow so far before it is refused."""

_BREAK, _QUOTE = b"\n", b'"'


class Pieces:
    """The pieces of a file; `sha256` and `size` are those of the whole file once all were read.

    path: what the file is called, where its content lies elsewhere. head: the first record, its
    break
    included, which names the columns. Every piece after it holds whole records; only the very last
    may lack its break.
    """

    def __init__(
        self, content: str | Path, piece: int = PIECE, longest: int = LONGEST, path: str = ""
    ) -> None:
        self.head = b""
        self.size = 0
        self._content, self._path = Path(content), path or str(content)
        self._piece, self._longest = piece, max(longest, piece)
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def __iter__(self) -> Iterator[bytes]:
        """The records behind the first one, piece by piece.

        Raises InputError where no record ends within `longest` bytes.
        """
        self.head, self.size, self._hash = b"", 0, hashlib.sha256()
        rest = b""
        with open(self._content, "rb") as file:
            while read := file.read(self._piece):
                self._hash.update(read)
                self.size += len(read)
                text = rest + read
                end = last_end(text)
                if not end and len(text) > self._longest:
                    raise InputError(
                        f"file '{self._path}': holds a record of more than"
                        f" {self._longest >> 20} MB; a quote may be left open"
                    )
                whole, rest = self._without_head(text[:end]), text[end:]
                if whole:
                    yield whole
        if rest := self._without_head(rest):
            yield rest

    def _without_head(self, text: bytes) -> bytes:
        """The text behind the first record, which is kept apart."""
        if self.head or not text:
            return text
        end = first_end(text) or len(text)
        self.head = text[:end]
        return text[end:]


def last_end(text: bytes) -> int:
    """Where the last whole record of a text ends that begins with a record; 0 without one."""
    is_odd = text.count(_QUOTE) % 2
    end, at = len(text), text.rfind(_BREAK)
    while at >= 0:
        is_odd ^= text.count(_QUOTE, at, end) % 2  # now of the text before this break
        if not is_odd:
            return at + 1
        # up to the quote before it, every break is inside the same cell
        end = text.rfind(_QUOTE, 0, at)
        is_odd, at = 0, text.rfind(_BREAK, 0, end)
    return 0


def first_end(text: bytes) -> int:
    """Where the first record of a text ends; 0 where it does not."""
    is_odd, begun = 0, 0
    at = text.find(_BREAK)
    while at >= 0:
        is_odd ^= text.count(_QUOTE, begun, at) % 2
        if not is_odd:
            return at + 1
        begun = text.find(_QUOTE, at)  # up to there, every break is inside the same cell
        at = text.find(_BREAK, begun) if begun >= 0 else -1
    return 0
