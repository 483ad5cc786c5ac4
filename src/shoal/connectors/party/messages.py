"""What parties send each other: the closed list of message kinds, and the frame."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from shoal.errors import PartyError

_FRAME = struct.Struct("<32sBI")  # the agreement's hash, kind, number
FRAME_HEAD = _FRAME.size
LENGTH = struct.Struct("<Q")
PIECE = 1 << 20  # bytes; a longer message is sent in pieces of this size
DONE = b"done"  # the goodbye of a party that has everything
_ANOTHER = "another party: "


class MessageKind(IntEnum):
    """What a message is; the list is closed, and in the order in which a party sends them."""

    ROLL = 1  # number of records, and whether the party has the label
    KEY = 13  # the key for ids, where owners trust a helper
    MASKED = 2  # masked ids on their way through the parties
    GATHERED = 3  # masked ids for the collector
    COMMON = 4  # the masked ids that all owners have
    ATOMS = 16  # the hash of what the ledger says of the people in common
    LABEL = 5  # the class of every row
    SENSITIVE = 15  # as PLAIN, but before the rounds, for groups that must be diverse
    PACE = 19  # a ping, or how many steps are planned ahead
    BIDS = 6  # bids in the clear; tests only
    BATCH = 7  # steps, and the child of every row under them
    PROPOSAL = 17  # what a party would do, for the owner who judges it
    VERDICT = 18  # what of a proposal that owner does not refuse
    END = 10  # no more rounds
    HULLS = 14  # what narrows every group, where the method has that
    PLAIN = 8  # columns that are published unchanged
    SEAL = 9  # the hash of the finished table
    SHARES = 11  # shares of a secure round; not journaled
    BYE = 12  # the party leaves: either done, or failed (then without content)


OF_ROUNDS = (MessageKind.BIDS, MessageKind.BATCH, MessageKind.PROPOSAL, MessageKind.VERDICT)
NOT_JOURNALED = (MessageKind.SHARES, MessageKind.BYE)


class LinkLost(Exception):
    """The session broke; another one can follow."""


def pack_frame(agreement: bytes, kind: MessageKind, number: int, content: bytes = b"") -> bytes:
    """A message as it is sent and journaled."""
    return _FRAME.pack(agreement, kind, number) + content


def unpack_head(frame: bytes) -> tuple[bytes, int, int]:
    """Agreement, kind and number of a message."""
    return _FRAME.unpack_from(frame)


def refused(sender: str, kind: MessageKind, what: str) -> PartyError:
    """The end of a run: what is wrong with a message of this party."""
    return PartyError(
        f"party '{sender}', message '{kind.name.lower()}': {what}; the run ends, run the same"
        " version everywhere"
    )


@contextmanager
def said_by(sender: str, kind: MessageKind) -> Iterator[None]:
    """Names the party and the message in what is raised about "another party"."""
    try:
        yield
    except PartyError as wrong:
        text = wrong.said[0]
        if not text.startswith(_ANOTHER):
            raise
        named = f"party '{sender}', message '{kind.name.lower()}': "
        raise PartyError(named + text.removeprefix(_ANOTHER)) from None
