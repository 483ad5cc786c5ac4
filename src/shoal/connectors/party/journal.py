"""A party's journal: all it sent, received and decided, so that it can resume after a kill.

Entries are chained by hash and only ever appended. A torn last entry, of a writer that died, is cut
off; anything else that does not fit is damage and refused. Private to its party: it holds the
party's secret number and masked ids.
"""

from __future__ import annotations

import hashlib
import os
import struct
import threading
from pathlib import Path
from typing import NamedTuple

from shoal.errors import PartyError

_HEAD = struct.Struct("<I32s")
_BODY = struct.Struct("<c16sI")  # what, the other party's name, number
MOST_NAME = 16


class Entry(NamedTuple):
    """Where an entry's content is in the file."""

    start: int
    length: int


class Journal:
    """Entries by (what, party, number); reading them back is how a run is resumed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._entries: dict[tuple[bytes, str, int], Entry] = {}
        self._chain = bytes(32)
        self.resumed = path.exists() and path.stat().st_size > 0
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self._file = os.fdopen(descriptor, "r+b")
        self._file.truncate(self._read())
        self._file.seek(0, os.SEEK_END)

    def __contains__(self, key: tuple[bytes, str, int]) -> bool:
        with self._lock:
            return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, what: bytes, party: str = "", number: int = 0) -> bytes | None:
        """The content of an entry, None where there is none."""
        with self._lock:
            entry = self._entries.get((what, party, number))
            if entry is None:
                return None
            return os.pread(self._file.fileno(), entry.length, entry.start)

    def count(self, what: bytes, party: str = "") -> int:
        """How many entries 0, 1, ... of a kind there are."""
        number = 0
        while (what, party, number) in self:
            number += 1
        return number

    def append(self, what: bytes, content: bytes, party: str = "", number: int = 0) -> None:
        """Writes an entry; it is on disk when this returns."""
        body = _BODY.pack(what, party.encode(), number)
        with self._lock:
            self._chain = hashlib.sha256(self._chain + body + content).digest()
            start = self._file.seek(0, os.SEEK_END) + _HEAD.size + len(body)
            self._file.write(_HEAD.pack(len(body) + len(content), self._chain) + body + content)
            self._file.flush()
            os.fsync(self._file.fileno())
            self._entries[what, party, number] = Entry(start, len(content))

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _read(self) -> int:
        """Reads all whole entries; returns where the last one ends."""
        size = os.fstat(self._file.fileno()).st_size
        at = 0
        self._file.seek(0)
        while at + _HEAD.size <= size:
            length, chain = _HEAD.unpack(self._file.read(_HEAD.size))
            content = self._file.read(length)
            if len(content) < length:
                break
            expected = hashlib.sha256(self._chain + content).digest()
            if chain != expected:
                raise PartyError(
                    f"journal '{self._path}': is damaged; without it the run can't go on, agree"
                    " anew and begin again"
                )
            what, name, number = _BODY.unpack_from(content)
            start = at + _HEAD.size + _BODY.size
            self._entries[what, name.rstrip(b"\0").decode(), number] = Entry(
                start, length - _BODY.size
            )
            self._chain = expected
            at += _HEAD.size + length
        return at
