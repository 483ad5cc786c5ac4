"""The records of one partition, each keyed by the person whom it is about.

Each partition counts its people separately, so a person must be in one partition only: a message's
key must be its subject's name, and its partition the one that the producers' rule gives that key.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from shoal.connectors.feeds import ANY_FIELDS, rows_of_json
from shoal.data.person_names import names_of
from shoal.data.schema import Fields
from shoal.data.stream import Piece
from shoal.errors import InputError
from shoal.streams.kafka import Topic
from shoal.streams.kafka_group import Arrived

NOT_ITS_KEY = "its message's key is not its subject"


@dataclass(frozen=True)
class Keyed:
    """How people are assigned to partitions. subject: the column that names them."""

    subject: str
    partitioner: str
    partitions: int


class PartitionFeed:
    """The committed messages of one partition, as the group's member receives them.

    keyed: None where every record is a person of its own, who may be in any partition.
    """

    def __init__(
        self,
        topic: Topic,
        partition: int,
        names: list[str],
        keyed: Keyed | None,
        fields: Fields = ANY_FIELDS,
    ) -> None:
        self._topic, self._partition, self._keyed, self._fields = topic, partition, keyed, fields
        self.names = names
        self._offset, self._records, self._waiting = 0, 0, Arrived()

    def add(self, arrived: Arrived) -> None:
        """Takes in new messages, except those that were read already."""
        self._waiting.add(arrived, self._offset)

    def read(self) -> Piece:
        """The next records; raises InputError where a person could be in two partitions."""
        waiting, self._waiting = self._waiting, Arrived()
        frame, places, bad, count = rows_of_json(waiting.lines, self.names, self._fields)
        if self._keyed is not None and frame.height:
            keys = [waiting.keys[at] for at in places.tolist()]
            own = self._have_own_key(keys, frame[self._keyed.subject])
            self._require_place([key for key, is_own in zip(keys, own, strict=True) if is_own])
            own |= frame[self._keyed.subject].is_null().to_numpy()  # refused as such later
            bad = sorted([*bad, *((int(at), NOT_ITS_KEY) for at in places[~own])])
            frame, places = frame.filter(pl.Series(own)), places[own]
        piece = Piece(
            frame,
            self._records + places,
            [(self._records + at, why) for at, why in bad],
            waiting.at_end,
        )
        if count:
            self._offset, self._records = waiting.offsets[-1] + 1, self._records + count
        return piece

    def _have_own_key(self, keys: list[bytes | None], subjects: pl.Series) -> np.ndarray:
        """(n,) bool: whether the key is the record's subject, as names of people are compared."""
        texts = pl.Series([_text(key) for key in keys], dtype=pl.String)
        own = (texts == names_of(subjects)).fill_null(False).to_numpy().copy()
        if not self._records and len(own) and not own.any():
            assert self._keyed is not None
            raise InputError(
                f"source '{self._topic}': the messages that partition {self._partition} begins with"
                f" are not keyed by '{self._keyed.subject}'; key each message by its person, so"
                " that nobody is in two partitions"
            )
        return own

    def _require_place(self, keys: list[bytes | None]) -> None:
        keyed = self._keyed
        assert keyed is not None
        known = [key for key in keys if key]
        misplaced = self._misplaced(known, keyed.partitioner)
        if not misplaced:
            return
        others = [
            name
            for name in PARTITIONERS
            if name != keyed.partitioner and not self._misplaced(known, name)
        ]
        way_out = (
            f"all are where {others[0]} sends them: use --partitioner {others[0]}"
            if others
            else "let all producers use one rule, and a topic whose number of partitions never"
            " changed"
        )
        records = "record" if len(keys) == 1 else "records"
        raise InputError(
            f"source '{self._topic}': {misplaced} of {len(keys)} {records} in partition"
            f" {self._partition} belong in another one by their key ({keyed.partitioner} of"
            f" {keyed.partitions}), so a person could be in two; {way_out}"
        )

    def _misplaced(self, keys: list[bytes], partitioner: str) -> int:
        assert self._keyed is not None
        found = partitions_of(keys, self._keyed.partitions, partitioner)
        return int((found != self._partition).sum())

    @property
    def place(self) -> dict[str, Any]:
        """The next offset, and how many records of the partition came before it."""
        return {"offset": self._offset, "records": self._records}

    def go_to(self, place: dict[str, Any]) -> None:
        """Continues at an offset, without the messages that came for another one."""
        self._offset, self._records = place["offset"], place["records"]
        self._waiting = Arrived()

    @property
    def sha256(self) -> None:
        """A partition has no hash."""

    def close(self) -> None:
        """Closes nothing: the group's member does the reading."""


def _text(key: bytes | None) -> str | None:
    try:
        return None if key is None else key.decode()
    except UnicodeDecodeError:
        return None


# Which partition a key belongs in, as Kafka's clients compute it from the key's bytes.
#
# murmur2: what Java's producers do, and librdkafka's `murmur2` and `murmur2_random`. crc32:
# librdkafka's own (`consistent`, `consistent_random`), so the default of Python's and C#'s
# clients.


PARTITIONERS = ("murmur2", "crc32")
_SEED = np.uint32(0x9747B28C)
_FACTOR = np.uint32(0x5BD1E995)


def partitions_of(keys: list[bytes], count: int, partitioner: str) -> np.ndarray:
    """(n,) int64, the partition of each key in a topic of `count` partitions."""
    if partitioner == "crc32":
        hashed = np.array([zlib.crc32(key) for key in keys], dtype=np.int64)
    else:
        hashed = (murmur2(keys) & np.uint32(0x7FFFFFFF)).astype(np.int64)
    return hashed % count


def murmur2(keys: list[bytes]) -> np.ndarray:
    """(n,) uint32, MurmurHash2 with Kafka's seed."""
    hashed = np.zeros(len(keys), dtype=np.uint32)
    lengths = np.array([len(key) for key in keys], dtype=np.int64)
    for length in np.unique(lengths).tolist():
        alike = np.flatnonzero(lengths == length)
        joined = b"".join([keys[at] for at in alike.tolist()])
        hashed[alike] = _of_one_length(
            np.frombuffer(joined, dtype=np.uint8).reshape(len(alike), length)
        )
    return hashed


def _of_one_length(keys: np.ndarray) -> np.ndarray:
    """keys: (n, length) uint8. The arithmetic is unsigned 32-bit and wraps around."""
    length = keys.shape[1]
    whole = length - length % 4
    words = np.ascontiguousarray(keys[:, :whole]).view("<u4").astype(np.uint32)
    found = np.full(len(keys), _SEED ^ np.uint32(length), dtype=np.uint32)
    for word in words.T:
        mixed = word * _FACTOR
        mixed ^= mixed >> np.uint32(24)
        found = (found * _FACTOR) ^ (mixed * _FACTOR)
    if whole < length:
        for place in range(length - whole - 1, -1, -1):
            found ^= keys[:, whole + place].astype(np.uint32) << np.uint32(8 * place)
        found *= _FACTOR
    found ^= found >> np.uint32(13)
    found *= _FACTOR
    found ^= found >> np.uint32(15)
    return found
