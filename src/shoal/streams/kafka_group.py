"""A topic of several partitions, shared by the members of a group: each publishes some of them.

Promise: one transaction commits a step of a partition: its rows, the offset in the source and the
name of the snapshot to resume from. A process that is assigned a partition first starts a
transactional producer under the partition's id and only then reads what was committed last. So the
partition's previous owner can commit nothing more, whether it knows of the change or not: its
producer is fenced, and the broker refuses offsets from processes that have left the group.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from shoal.connectors.feeds import ANY_FIELDS, rows_of_json
from shoal.data.person_names import names_of
from shoal.data.schema import Fields
from shoal.data.stream import Piece
from shoal.errors import CheckpointError, InputError
from shoal.protocols import Place, Source
from shoal.streams import kafka
from shoal.streams.kafka import Arrived, Topic

SESSION = 15_000
"""Milliseconds without a sign of life after which a member's partitions go to others."""
LOOKED = 100
"""Messages of each partition whose keys are checked before a new stream starts."""


@dataclass(frozen=True)
class Mark:
    """What the broker keeps beside a partition's offset, as the metadata of the commit.

    step: the last that was committed. digest: SHA-256 of its snapshot. ended: nothing follows.
    """

    step: int
    digest: str
    ended: bool

    def __str__(self) -> str:
        return f"shoal/1 {self.step} {self.digest} {'ended' if self.ended else 'open'}"

    @classmethod
    def parsed(cls, text: str) -> Mark:
        """Raises ValueError where another program wrote it."""
        form, step, digest, state = text.split(" ")
        if form != "shoal/1" or state not in ("ended", "open"):
            raise ValueError("another form")
        return cls(int(step), digest, state == "ended")


class Group:
    """The consumer group of a stream from one topic into another with as many partitions."""

    def __init__(self, source: str, sink: str) -> None:
        self.source, self.sink = Topic.of(source), Topic.of(sink)
        self.name = f"shoal:{self.source.name}:{self.sink.name}"
        self._kafka = kafka.client()
        self._reader = kafka.consumer_of(self.source, self.name)

    def joined(self, opened: Callable[[int], int], dropped: Callable[[int], None]) -> Member:
        more = {
            "session.timeout.ms": SESSION,
            "heartbeat.interval.ms": SESSION // 5,
            "partition.assignment.strategy": "cooperative-sticky",
        }
        consumer = kafka.consumer_of(self.source, self.name, **more)
        return Member(self.source, consumer, opened, dropped)

    def committed(self, partition: int) -> tuple[int, Mark] | None:
        """A partition's offset and mark, None where no step was ever committed."""
        at = self._kafka.TopicPartition(self.source.name, partition)
        with kafka.answering(self.source):
            found = self._reader.committed([at], timeout=kafka.WAIT)[0]
        if found.error is not None:
            raise kafka.unreachable(self.source)
        if found.offset < 0:
            return None
        try:
            return found.offset, Mark.parsed(found.metadata or "")
        except ValueError:
            raise CheckpointError(
                f"group '{self.name}': another program has set its offset in partition {partition};"
                " publish into a new topic, which starts a new stream"
            ) from None

    def bounds(self, partition: int) -> tuple[int, int]:
        """The first offset of a source's partition, and the one after its last message."""
        at = self._kafka.TopicPartition(self.source.name, partition)
        with kafka.answering(self.source):
            first, end = self._reader.get_watermark_offsets(at, timeout=kafka.WAIT)
        return first, end

    def sink_holds_rows(self, partition: int) -> bool:
        return bool(kafka.first_messages(self.sink, partition, 1, self.name).lines)

    def close(self) -> None:
        self._reader.close()


class Member:
    """One process of the group: reads the partitions that it is assigned.

    opened: called with a partition that was assigned to this process; returns the offset to read
    from. dropped: called with a partition that was taken away. Both are called within `poll`, never
    in the middle of a step.
    """

    def __init__(
        self,
        topic: Topic,
        consumer: Any,
        opened: Callable[[int], int],
        dropped: Callable[[int], None],
    ) -> None:
        self._topic, self._consumer, self._kafka = topic, consumer, kafka.client()
        self._opened, self._dropped = opened, dropped
        self._failed: BaseException | None = None
        self._subscribe()

    def _subscribe(self) -> None:
        self._consumer.subscribe(
            [self._topic.name],
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_revoke,
        )

    def _on_assign(self, consumer: Any, assigned: list[Any]) -> None:
        try:
            places = [self._at(one.partition, self._opened(one.partition)) for one in assigned]
            consumer.incremental_assign(places)
        except BaseException as failed:  # the client library would swallow it: `poll` raises it
            self._failed = failed

    def _on_revoke(self, consumer: Any, revoked: list[Any]) -> None:
        for one in revoked:
            self._dropped(one.partition)
        consumer.incremental_unassign(revoked)

    def _at(self, partition: int, offset: int) -> Any:
        return self._kafka.TopicPartition(self._topic.name, partition, offset)

    def poll(self) -> dict[int, Arrived]:
        """New messages by partition. Takes and gives up partitions as the group decides."""
        found: dict[int, Arrived] = {}
        with kafka.answering(self._topic):
            messages, _ = kafka.arriving(self._consumer, kafka.MOST)
        if self._failed is not None:
            raise self._failed
        for message in messages:
            error = message.error()
            if error is not None and error.code() != self._kafka.KafkaError._PARTITION_EOF:
                self._judge(error, message.partition())
                continue
            arrived = found.setdefault(message.partition(), Arrived())
            if error is not None:
                arrived.at_end = True
                continue
            arrived.take(message)
        return found

    def _judge(self, error: Any, partition: int) -> None:
        """Raises what a user must act on; the client library recovers from all other errors."""
        code, known = error.code(), self._kafka.KafkaError
        if code in (known._AUTO_OFFSET_RESET, known.OFFSET_OUT_OF_RANGE):
            raise gone(self._topic, partition)
        if code == known.UNKNOWN_TOPIC_OR_PART:
            raise InputError(f"source '{self._topic}': does not exist any more; restore it")

    def seek(self, partition: int, offset: int) -> None:
        self._consumer.seek(self._at(partition, offset))

    def pause(self, partition: int) -> None:
        """Stops reading a partition that has ended."""
        self._consumer.pause([self._at(partition, 0)])

    def rejoin(self) -> None:
        self._consumer.unsubscribe()
        self._subscribe()

    @property
    def metadata(self) -> Any:
        """By which the broker checks that this process is still in the group."""
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        """Leaves the group, which hands the partitions to others at once."""
        self._consumer.close()


class Writer:
    """The only one that may commit steps of a partition, until its next writer fences it off."""

    def __init__(self, group: Group, partition: int, member: Member) -> None:
        self._group, self._partition, self._member = group, partition, member
        self._transactions = kafka.Transactions(group.sink, f"{group.name}:{partition}")

    def commit(self, rows: bytes, offset: int, mark: Mark) -> None:
        """Commits all rows of a step, its offset and its mark, as `Transactions` does."""
        source, partition = self._group.source.name, self._partition
        reached = kafka.client().TopicPartition(source, partition, offset, str(mark))
        self._transactions.commit(partition, rows, reached, self._member.metadata)


def gone(topic: Topic, partition: int) -> CheckpointError:
    return CheckpointError(
        f"source '{topic}': partition {partition} no longer holds the message at which the stream"
        " stopped; name the same topic, and let it keep messages until they are read"
    )


# The records of one partition, each keyed by the person whom it is about.
#
# Each partition counts its people separately, so a person must be in one partition only: a
# message's key must be its subject's name, and its partition the one that the producers' rule gives
# that key.


NOT_ITS_KEY = "its message's key is not its subject"


@dataclass(frozen=True)
class Keyed:
    """How people are assigned to partitions. subject: the column that names them."""

    subject: str
    partitioner: str
    partitions: int


class PartitionFeed(Source):
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
        if (keyed := self._keyed) is not None and frame.height:
            keys = [waiting.keys[at] for at in places.tolist()]
            own = self._have_own_key(keyed, keys, frame[keyed.subject])
            self._require_place(
                keyed, [key for key, is_own in zip(keys, own, strict=True) if is_own]
            )
            own |= frame[keyed.subject].is_null().to_numpy()  # refused as such later
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

    def _have_own_key(
        self, keyed: Keyed, keys: list[bytes | None], subjects: pl.Series
    ) -> np.ndarray:
        """(n,) bool: whether the key is the record's subject, as names of people are compared."""
        texts = pl.Series([_text(key) for key in keys], dtype=pl.String)
        own = (texts == names_of(subjects)).fill_null(False).to_numpy().copy()
        if not self._records and len(own) and not own.any():
            raise InputError(
                f"source '{self._topic}': the messages that partition {self._partition} begins with"
                f" are not keyed by '{keyed.subject}'; key each message by its person, so"
                " that nobody is in two partitions"
            )
        return own

    def _require_place(self, keyed: Keyed, keys: list[bytes | None]) -> None:
        known = [key for key in keys if key]

        def count_misplaced(partitioner: str) -> int:
            found = partitions_of(known, keyed.partitions, partitioner)
            return int((found != self._partition).sum())

        misplaced = count_misplaced(keyed.partitioner)
        if not misplaced:
            return
        others = [
            name
            for name in ("murmur2", "crc32")
            if name != keyed.partitioner and not count_misplaced(name)
        ]
        way_out = (
            f"all are where {others[0]} sends them: use --read partitioner={others[0]}"
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

    @property
    def place(self) -> Place:
        """The next offset, and how many records of the partition came before it."""
        return {"offset": self._offset, "records": self._records}

    def go_to(self, place: Place) -> None:
        """Continues at an offset, without the messages that came for another one."""
        self._offset, self._records = place["offset"], place["records"]
        self._waiting = Arrived()


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
