"""What parties send each other: the closed list of message kinds, the frame, and limits.

Whatever a peer sends is parsed here first: limits on size, depth, count, order and type.

Promise: what does not keep the limits that the agreement declares ends the run before it is
written to the journal or used, with one line that names the party and the kind of message. Nothing
here allocates more than the message has bytes, or waits.

Not all that is wrong can be seen in one message: that a step breaks a promise, or that somebody is
in common who is not in this table, is found where the message is used, before anything is
published.
"""

import json
import re
import struct
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from shoal.data.regular_files import distinct_keys
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


# Limits: what a peer sends is parsed before anything else is done with it.


MOST_GREETING = 1 << 20  # bytes
MOST_DEPTH = 3  # of lists and mappings in each other
_ROOMY = 1 << 28  # bytes; up to here a frame that is too long is still read, to say what it is
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"?')  # up to the end where it stays open
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_OPENS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NONCE = re.compile(r"[0-9a-f]{16}")
_HASH = re.compile(r"[0-9a-f]{64}")
_KINDS = frozenset(int(kind) for kind in MessageKind)
_ORDER = {kind: place for place, kind in enumerate(MessageKind) if kind not in NOT_JOURNALED}
_ORDER |= dict.fromkeys(OF_ROUNDS, _ORDER[MessageKind.BATCH])  # they alternate


@dataclass(frozen=True)
class Limit:
    """What a party may send as messages of one kind.

    least, most: bytes of a message, or of all its pieces. count: messages. unit: what the length is
    a multiple of. check: called with the content, or all pieces of it; raises ValueError, or
    PartyError about "another party", where it can't be right.
    """

    most: int
    least: int = 0
    count: int = 1
    unit: int = 1
    in_pieces: bool = False
    check: Callable[[bytes], object] | None = None


@dataclass(frozen=True)
class Terms:
    """What the agreement says about messages.

    hash: what every message carries. limits: what this party takes, by sender and kind. owners,
    ahead: no round has a winner or steps beyond. helper: the party that learns no result.
    in_pieces: of which kinds a message comes after its length.
    """

    hash: bytes
    limits: Mapping[str, Mapping[MessageKind, Limit]]
    owners: int = 2
    ahead: int = 1
    helper: str | None = None
    in_pieces: Collection[MessageKind] = ()

    @property
    def most_frame(self) -> int:
        """Bytes of a frame, beyond which it is not read at all."""
        most = [limit.most for limits in self.limits.values() for limit in limits.values()]
        return max([_ROOMY, *(FRAME_HEAD + size for size in most)])


class Parser:
    """Takes the messages of one party, in order."""

    def __init__(self, sender: str, limits: Mapping[MessageKind, Limit]) -> None:
        self._sender = sender
        self._limits = {MessageKind.BYE: Limit(len(DONE), check=_check_goodbye), **limits}
        self._counts: Counter[MessageKind] = Counter()
        self._last: MessageKind | None = None
        self._missing = 0  # bytes of a message that comes in pieces
        self._pieces: list[bytes] = []  # of one that is to be checked when it is whole

    def take(self, number: int, content: bytes) -> MessageKind:
        """The kind of a message that may come now; raises PartyError for any other."""
        if number not in _KINDS:
            raise PartyError(
                f"party '{self._sender}', message of kind {number}: is none that Shoal has; the run"
                " ends, run the same version everywhere"
            )
        kind = MessageKind(number)
        limit = self._limits.get(kind)
        if limit is None:
            raise refused(self._sender, kind, "is not for this party")
        if kind not in _ORDER:
            self._check(kind, limit, content)
            return kind
        self._check_order(kind)
        if self._missing:
            self._take_piece(kind, limit, content)
        else:
            self._take_first(kind, limit, content)
        self._last = kind
        return kind

    def _check_order(self, kind: MessageKind) -> None:
        if self._last is not None and (
            _ORDER[kind] < _ORDER[self._last] or (self._missing and kind != self._last)
        ):
            after = self._last.name.lower()
            raise refused(self._sender, kind, f"comes out of order, after '{after}'")

    def _take_first(self, kind: MessageKind, limit: Limit, content: bytes) -> None:
        self._counts[kind] += 1
        if self._counts[kind] > limit.count:
            raise refused(self._sender, kind, f"comes more often than {limit.count} times")
        if not limit.in_pieces:
            self._check(kind, limit, content)
            return
        if len(content) != LENGTH.size:
            raise refused(self._sender, kind, "does not begin with its length")
        (length,) = LENGTH.unpack(content)
        self._check_length(kind, limit, length)
        self._missing = length

    def _take_piece(self, kind: MessageKind, limit: Limit, content: bytes) -> None:
        if len(content) != min(PIECE, self._missing):
            raise refused(self._sender, kind, "has a piece of another length than it said")
        self._missing -= len(content)
        if limit.check is None:
            return
        self._pieces.append(content)
        if not self._missing:
            whole, self._pieces = b"".join(self._pieces), []
            self._check_content(kind, limit, whole)

    def _check(self, kind: MessageKind, limit: Limit, content: bytes) -> None:
        self._check_length(kind, limit, len(content))
        self._check_content(kind, limit, content)

    def _check_length(self, kind: MessageKind, limit: Limit, length: int) -> None:
        if not limit.least <= length <= limit.most or length % limit.unit:
            raise refused(
                self._sender,
                kind,
                f"is {length} bytes long; {limit.least} to {limit.most} are possible"
                + (f", in units of {limit.unit}" if limit.unit > 1 else ""),
            )

    def _check_content(self, kind: MessageKind, limit: Limit, content: bytes) -> None:
        if limit.check is None:
            return
        try:
            with said_by(self._sender, kind):
                limit.check(content)
        except ValueError:
            raise refused(self._sender, kind, "can't be read") from None


def _check_goodbye(content: bytes) -> None:
    if content not in (b"", DONE):
        raise ValueError


# Greetings


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
    def unpack(cls, packed: bytes, sender: str, terms: Terms) -> "tuple[str, Greeting]":
        """The agreement's hash in hexadecimal, and the greeting; raises PartyError."""
        try:
            agreement, nonce, received, results = parse_json(packed, MOST_GREETING)
            if not (_is_text(agreement, _HASH) and _is_text(nonce, _NONCE) and is_count(received)):
                raise ValueError
            if type(results) is not list or (results and sender == terms.helper):
                raise ValueError
            for winner, steps in results:
                is_owner = is_count(winner) and winner < terms.owners
                if not (is_owner and is_count(steps) and steps <= terms.ahead):
                    raise ValueError
        except (ValueError, TypeError):
            raise PartyError(
                f"party '{sender}', greeting: can't be read; the run ends, run the same version"
                " everywhere"
            ) from None
        return agreement, cls(nonce, received, tuple((winner, steps) for winner, steps in results))


# JSON of others


def parse_json(content: bytes, most: int) -> Any:
    """JSON of whole numbers, texts, lists and mappings; raises ValueError for any other.

    Also where it is too long or too deep, repeats a key, or has a text that is not Unicode.
    """
    if len(content) > most or _depth(content) > MOST_DEPTH:
        raise ValueError
    value = json.loads(  # of a fraction or no number, `int` raises ValueError
        content.decode(), parse_float=int, parse_constant=int, object_pairs_hook=distinct_keys
    )
    if _SURROGATE.search(content):
        json.dumps(value, ensure_ascii=False).encode()  # fails for half a pair
    return value


def is_count(value: Any) -> bool:
    """Whether it is a whole number from 0 on; True and False are none."""
    return type(value) is int and value >= 0


def _depth(content: bytes) -> int:
    brackets = _TEXT.sub(b"", content).translate(None, delete=_NO_BRACKETS)
    opens = np.frombuffer(brackets.translate(_OPENS), dtype=np.int8)
    return int(np.cumsum(opens, dtype=np.int32).max(initial=0))


def _is_text(value: Any, form: re.Pattern[str]) -> bool:
    return type(value) is str and form.fullmatch(value) is not None
