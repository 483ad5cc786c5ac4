"""A topic of several partitions, shared by the members of a group: each publishes some of them.

Promise: one transaction commits a step of a partition: its rows, the offset in the source and the
name of the snapshot to resume from. A process that is assigned a partition first starts a
transactional producer under the partition's id and only then reads what was committed last. So the
partition's previous owner can commit nothing more, whether it knows of the change or not: its
producer is fenced, and the broker refuses offsets from processes that have left the group.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from shoal.errors import CheckpointError, InputError
from shoal.streams import kafka
from shoal.streams.kafka import Topic

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


class TransactionLost(Exception):
    """A step was not committed, or nobody knows whether it was; the partition must be reopened.

    fenced: another process has the partition now.
    """

    def __init__(self, fenced: bool) -> None:
        super().__init__("a transaction was lost")
        self.fenced = fenced


@dataclass
class Arrived:
    """Messages of a partition, in order; offsets, keys and lines (their values) of each."""

    offsets: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    at_end: bool = False

    def take(self, message: Any) -> None:
        """Adds a message of the client library, unless it was added before: if a partition is
        taken away and given back meanwhile, its messages come twice.
        """
        if self.offsets and message.offset() <= self.offsets[-1]:
            return
        self.offsets.append(message.offset())
        self.keys.append(message.key())
        self.lines.append(message.value() or b"")

    def add(self, later: Arrived, first: int) -> None:
        """Adds later messages, except those before the offset `first`."""
        known = bisect_left(later.offsets, first)
        self.offsets += later.offsets[known:]
        self.keys += later.keys[known:]
        self.lines += later.lines[known:]
        self.at_end |= later.at_end


class Group:
    """The consumer group of a stream from one topic into another with as many partitions."""

    def __init__(self, source: str, sink: str) -> None:
        self.source, self.sink = Topic.of(source), Topic.of(sink)
        self.name = f"shoal:{self.source.name}:{self.sink.name}"
        self._kafka = kafka.client()
        self._reader = self._consumer(self.source, {"group.id": self.name})

    def _consumer(self, topic: Topic, more: dict[str, Any]) -> Any:
        return self._kafka.Consumer(
            {
                "bootstrap.servers": topic.servers,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "logger": kafka.quiet(),
                **more,
            }
        )

    def joined(self, opened: Callable[[int], int], dropped: Callable[[int], None]) -> Member:
        """Lets this process join the group."""
        more = {
            "group.id": self.name,
            "session.timeout.ms": SESSION,
            "heartbeat.interval.ms": SESSION // 5,
            "partition.assignment.strategy": "cooperative-sticky",
        }
        return Member(self.source, self._consumer(self.source, more), opened, dropped)

    def writer(self, partition: int, member: Member) -> Writer:
        """The only one that may commit steps of a partition from now on."""
        return Writer(self, partition, member)

    def committed(self, partition: int) -> tuple[int, Mark] | None:
        """A partition's offset and mark, None where no step was ever committed."""
        at = self._kafka.TopicPartition(self.source.name, partition)
        try:
            found = self._reader.committed([at], timeout=kafka.WAIT)[0]
        except self._kafka.KafkaException:
            raise kafka.unreachable(self.source) from None
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
        try:
            first, end = self._reader.get_watermark_offsets(at, timeout=kafka.WAIT)
        except self._kafka.KafkaException:
            raise kafka.unreachable(self.source) from None
        return first, end

    def first_of_source(self, partition: int) -> Arrived:
        """The first messages of a partition, at most LOOKED."""
        return self._first(self.source, partition, LOOKED)

    def sink_holds_rows(self, partition: int) -> bool:
        """Whether a partition of the sink holds any row."""
        return bool(self._first(self.sink, partition, 1).lines)

    def _first(self, topic: Topic, partition: int, most: int) -> Arrived:
        consumer = self._consumer(topic, {"group.id": f"{self.name}:look"})
        begin, found = self._kafka.OFFSET_BEGINNING, Arrived()
        try:
            consumer.assign([self._kafka.TopicPartition(topic.name, partition, begin)])
            while len(found.lines) < most:
                message = consumer.poll(kafka.WAIT)
                if message is None:
                    raise kafka.unreachable(topic)
                if message.error() is None:
                    found.take(message)
                elif message.error().code() == self._kafka.KafkaError._PARTITION_EOF:
                    break
                else:
                    raise kafka.unreachable(topic)
        except self._kafka.KafkaException:
            raise kafka.unreachable(topic) from None
        finally:
            consumer.close()
        return found

    def close(self) -> None:
        """Closes the connection to the broker."""
        self._reader.close()


def partitions_of_topic(address: str) -> int:
    """How many partitions a topic has, 0 where it is not there."""
    topic, client = Topic.of(address), kafka.client()
    consumer = client.Consumer(
        {"bootstrap.servers": topic.servers, "group.id": "shoal", "logger": kafka.quiet()}
    )
    try:
        found = consumer.list_topics(topic.name, timeout=kafka.WAIT).topics[topic.name]
    except client.KafkaException:
        raise kafka.unreachable(topic) from None
    finally:
        consumer.close()
    return 0 if found.error is not None else len(found.partitions)


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
        try:
            messages = self._consumer.consume(kafka.MOST, timeout=kafka.PATIENCE)
        except self._kafka.KafkaException:
            raise kafka.unreachable(self._topic) from None
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
        """Continues to read at another offset."""
        self._consumer.seek(self._at(partition, offset))

    def pause(self, partition: int) -> None:
        """Stops reading a partition that has ended."""
        self._consumer.pause([self._at(partition, 0)])

    def rejoin(self) -> None:
        """Leaves the group and comes back as a new member."""
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
    """The transactions of one partition. The next writer of the partition fences this one off."""

    def __init__(self, group: Group, partition: int, member: Member) -> None:
        self._group, self._partition, self._member = group, partition, member
        self._kafka = kafka.client()
        self._producer = self._kafka.Producer(
            {
                "bootstrap.servers": group.sink.servers,
                "transactional.id": f"{group.name}:{partition}",
                "logger": kafka.quiet(),
                **kafka.WRITING,
            }
        )
        try:
            self._producer.init_transactions(kafka.WAIT)
        except self._kafka.KafkaException:
            raise kafka.unreachable(group.sink) from None

    def commit(self, rows: bytes, offset: int, mark: Mark) -> None:
        """Commits all rows of a step, its offset and its mark; or raises TransactionLost.

        Raises InputError where the broker refuses rows for their size.
        """
        reached = self._kafka.TopicPartition(
            self._group.source.name, self._partition, offset, str(mark)
        )
        refused: list[int] = []
        try:
            self._producer.begin_transaction()
            kafka.produce_rows(self._producer, self._group.sink, self._partition, rows, refused)
            metadata = self._member.metadata
            self._producer.send_offsets_to_transaction([reached], metadata, kafka.WAIT)
            self._producer.commit_transaction(kafka.WAIT)
        except self._kafka.KafkaException as failed:
            is_fenced = bool(failed.args[0].fatal())
            if not is_fenced:
                kafka.refuse_too_large(self._producer, self._group.sink, refused)
            raise TransactionLost(is_fenced) from None


def gone(topic: Topic, partition: int) -> CheckpointError:
    """Says that messages were deleted before they were read."""
    return CheckpointError(
        f"source '{topic}': partition {partition} no longer holds the message at which the stream"
        " stopped; name the same topic, and let it keep messages until they are read"
    )
