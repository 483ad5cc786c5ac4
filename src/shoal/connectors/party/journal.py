"""A party's journal: all it sent, received and decided, so that it can resume after a kill.

Promise: what is read back is what was written, or the file is refused. Only a torn end, which a
writer leaves that dies within its last entry, is dropped; `torn` says so. Private to its party: it
holds the party's secret number and masked ids.

The file is a row of entries, nothing before, between or after them. An entry is a head and a body:

    head  4 bytes   "SHJ2"
          4         length of the body, little-endian, as all numbers
          32        SHA-256 of the hash in the head before (zeros for the first one) and the body
          4         CRC-32 of the 40 bytes before it
    body  1         what it is
          16        the other party's name, filled up with zeros
          4         number
          the rest  content

A head has a check of its own, so a wrong length is not taken for a torn end. The end is torn where
the file stops within a head or a body; whatever else does not fit is damage.
"""

import hashlib
import os
import struct
import threading
import zlib
from pathlib import Path
from typing import NamedTuple

from shoal.connectors.outputs import take_lock
from shoal.errors import PartyError

_MARK = b"SHJ2"
_HEAD = struct.Struct("<4sI32s")  # mark, length of the body, the chain's hash
_CHECK = struct.Struct("<I")
_HEAD_SIZE = _HEAD.size + _CHECK.size
_BODY = struct.Struct("<c16sI")  # what, the other party's name, number
MOST_NAME = 16


class Entry(NamedTuple):
    """Where an entry's content is in the file."""

    start: int
    length: int


class Journal:
    """Entries by (what, party, number); reading them back is how a run is resumed.

    torn: bytes of a last entry that was not written to its end, and is dropped.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._entries: dict[tuple[bytes, str, int], Entry] = {}
        self._chain = bytes(32)
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)
        try:
            if not take_lock(self._file):
                raise PartyError(
                    f"journal '{path}': is in use; the party runs already, wait for it or end it"
                )
            size = os.fstat(self._file.fileno()).st_size
            self._end = self._read(size)
        except PartyError:
            self._file.close()
            raise
        self.torn = size - self._end
        self._file.truncate(self._end)

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
        """Writes an entry; it is on disk when this returns.

        Raises PartyError where it can't be written, and leaves the journal without it.
        """
        body = _BODY.pack(what, party.encode(), number) + content
        with self._lock:
            chain = hashlib.sha256(self._chain + body).digest()
            head = _HEAD.pack(_MARK, len(body), chain)
            self._write(head + _CHECK.pack(zlib.crc32(head)) + body)
            start = self._end + _HEAD_SIZE + _BODY.size
            self._entries[what, party, number] = Entry(start, len(content))
            self._end = start + len(content)
            self._chain = chain

    def close(self) -> None:
        """Closes the file, after an entry that is being written."""
        with self._lock:
            self._file.close()

    def _write(self, entry: bytes) -> None:
        try:
            written = 0
            while written < len(entry):
                written += os.pwrite(self._file.fileno(), entry[written:], self._end + written)
            os.fsync(self._file.fileno())
        except OSError as failed:
            self._file.truncate(self._end)  # what comes next must not follow half an entry
            raise PartyError(
                f"journal '{self._path}': can't be written ({failed.strerror}); make room and start"
                " the party again, it resumes"
            ) from None

    # Reading

    def _read(self, size: int) -> int:
        """Reads all whole entries; returns where the last one ends."""
        at = 0
        while at < size:
            head = os.pread(self._file.fileno(), _HEAD_SIZE, at)
            if len(head) < _HEAD_SIZE and head[: len(_MARK)] == _MARK[: len(head)]:
                return at
            if not _is_head(head):
                raise self._damaged(at)
            _, length, chain = _HEAD.unpack_from(head)
            body = os.pread(self._file.fileno(), length, at + _HEAD_SIZE)
            if len(body) < length:
                if _has_head(body):
                    raise self._damaged(at)
                return at
            self._note(at, body, chain)
            at += _HEAD_SIZE + length
        return at

    def _note(self, at: int, body: bytes, chain: bytes) -> None:
        if len(body) < _BODY.size or chain != hashlib.sha256(self._chain + body).digest():
            raise self._damaged(at)
        what, name, number = _BODY.unpack_from(body)
        start = at + _HEAD_SIZE + _BODY.size
        key = (what, name.rstrip(b"\0").decode(errors="replace"), number)
        self._entries[key] = Entry(start, len(body) - _BODY.size)
        self._chain = chain

    def _damaged(self, at: int) -> PartyError:
        return PartyError(
            f"journal '{self._path}': is damaged at byte {at}, and the run can't go on without it;"
            " make a new agreement and begin again"
        )


def _is_head(head: bytes) -> bool:
    return (
        len(head) == _HEAD_SIZE
        and head.startswith(_MARK)
        and _CHECK.unpack_from(head, _HEAD.size)[0] == zlib.crc32(head[: _HEAD.size])
    )


def _has_head(content: bytes) -> bool:
    at = content.find(_MARK)
    while at >= 0:
        if _is_head(content[at : at + _HEAD_SIZE]):
            return True
        at = content.find(_MARK, at + 1)
    return False
