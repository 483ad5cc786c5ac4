"""What parties send each other: the closed list of message kinds, the frame, and the greeting."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from enum import IntEnum

_FRAME = struct.Struct("<32sBI")  # the agreement's hash, kind, number
FRAME_HEAD = _FRAME.size
LENGTH = struct.Struct("<Q")
PIECE = 1 << 20  # bytes; a longer message is sent in pieces of this size


class MessageKind(IntEnum):
    """What a message is; the list is closed."""

    ROLL = 1  # number of records, and whether the party has the label
    MASKED = 2  # masked ids on their way through the parties
    GATHERED = 3  # masked ids for the collector
    COMMON = 4  # the masked ids that all owners have
    LABEL = 5  # the class of every row
    BIDS = 6  # bids in the clear; tests only
    BATCH = 7  # steps, and the child of every row under them
    PLAIN = 8  # columns that are published unchanged
    SEAL = 9  # the hash of the finished table
    END = 10  # no more rounds
    SHARES = 11  # shares of a secure round; not journaled
    BYE = 12  # the party leaves: either done, or failed (then without content)
    KEY = 13  # the key for ids, where owners trust a helper


class LinkLost(Exception):
    """The session broke; another one can follow."""


def pack_frame(agreement: bytes, kind: MessageKind, number: int, content: bytes = b"") -> bytes:
    """A message as it is sent and journaled."""
    return _FRAME.pack(agreement, kind, number) + content


def unpack_head(frame: bytes) -> tuple[bytes, int, int]:
    """Agreement, kind and number of a message."""
    return _FRAME.unpack_from(frame)


@dataclass(frozen=True)
class Greeting:
    """How a party opens a session.

    nonce: fresh after every break. received: how many messages it has from the party greeted.
    results: winner and number of steps of every round that it knows.
    """

    nonce: str
    received: int
    results: tuple[tuple[int, int], ...]

    def packed(self, agreement: bytes) -> bytes:
        return json.dumps([agreement.hex(), self.nonce, self.received, self.results]).encode()

    @classmethod
    def unpack(cls, packed: bytes) -> tuple[str, Greeting]:
        """The agreement's hash in hexadecimal, and the greeting."""
        agreement, nonce, received, results = json.loads(packed)
        rounds = tuple((int(winner), int(steps)) for winner, steps in results)
        return agreement, cls(nonce, int(received), rounds)
