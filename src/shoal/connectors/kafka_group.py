"""A topic of several partitions, shared by the members of a group: each publishes some of them.

Promise: a step of a partition is one transaction: its rows, the place in the source and the name
of the snapshot to go on from. Whoever is assigned a partition begins a transactional producer whose
id is the partition's, and only then reads what was committed last. So whoever had it before can
commit nothing more, whether it knows of the change or not: its producer is fenced, and the broker
refuses the places of a member that the group no longer counts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from shoal.connectors import kafka
from shoal.connectors.kafka import Topic
from shoal.errors import CheckpointError, InputError

SESSION = 15_000
"""Milliseconds without a sign of life after which a member's partitions go to others."""
LOOKED = 100
"""Messages of each partition whose keys are looked at before anything is begun."""


@dataclass(frozen=True)
class Mark:
    """What the broker keeps beside a partition's place.

    step: the last that was committed. digest: SHA-256 of its snapshot. ended: nothing follows.
    """

    step: int
    digest: str
    ended: bool

    def __str__(self) -> str:
        return f"shoal/1 {self.step} {self.digest} {'ended' if self.ended else 'open'}"

    @classmethod
    def parsed(cls, text: str) -> Mark:
        """Raises ValueError where somebody else has written it."""
        form, step, digest, state = text.split(" ")
        if form != "shoal/1" or state not in ("ended", "open"):
            raise ValueError("another form")
        return cls(int(step), digest, state == "ended")


class TransactionLost(Exception):
    """A step was not committed, or nobody knows; the partition must be opened again.

    fenced: because somebody else has it now.
    """

    def __init__(self, fenced: bool) -> None:
        super().__init__("a transaction was lost")
        self.fenced = fenced


@dataclass
class Arrived:
    """Messages of a partition, in order. offsets: the place of each."""

    offsets: list[int] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    at_end: bool = False

    def take(self, message: Any) -> None:
        """One more, as the client hands it out."""
        self.offsets.append(message.offset())
        self.keys.append(message.key())
        self.lines.append(message.value() or b"")

    def add(self, later: Arrived, place: int) -> None:
        """Takes up what has come later, but for messages in front of a place."""
        known = bisect_left(later.offsets, place)
        self.offsets += later.offsets[known:]
        self.keys += later.keys[known:]
        self.lines += later.lines[known:]
        self.at_end |= later.at_end


class Group:
    """What the broker knows of one stream: from a topic into another with as many partitions."""

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
        """This process as one of the group."""
        more = {
            "group.id": self.name,
            "session.timeout.ms": SESSION,
            "heartbeat.interval.ms": SESSION // 5,
            "partition.assignment.strategy": "cooperative-sticky",
        }
        return Member(self.source, self._consumer(self.source, more), opened, dropped)

    def writer(self, partition: int, member: Member) -> Writer:
        """The one that may commit steps of a partition from here on."""
        return Writer(self, partition, member)

    def committed(self, partition: int) -> tuple[int, Mark] | None:
        """A partition's place and what is kept beside it, None where no step ever was committed."""
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
                f"group '{self.name}': something else than Shoal has set its place in partition"
                f" {partition}; publish into a new topic, which begins a new stream"
            ) from None

    def bounds(self, partition: int) -> tuple[int, int]:
        """The first place of a source's partition, and the one behind its last message."""
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
        """Whether somebody has written into a partition of the sink."""
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
        """Leaves the broker."""
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

    opened: called with a partition that is assigned; returns the place to read on from. dropped:
    called with one that others have from now on. Both are called within `poll`, never in the middle
    of a step.
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
        except BaseException as failed:  # the client's own code calls: `poll` tells it
            self._failed = failed

    def _on_revoke(self, consumer: Any, revoked: list[Any]) -> None:
        for one in revoked:
            self._dropped(one.partition)
        consumer.incremental_unassign(revoked)

    def _at(self, partition: int, offset: int) -> Any:
        return self._kafka.TopicPartition(self._topic.name, partition, offset)

    def poll(self) -> dict[int, Arrived]:
        """What has come, by partition; joins and leaves partitions as the group decides."""
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
        """Raises what a user must act on; of all else the client takes care."""
        code, known = error.code(), self._kafka.KafkaError
        if code in (known._AUTO_OFFSET_RESET, known.OFFSET_OUT_OF_RANGE):
            raise gone(self._topic, partition)
        if code == known.UNKNOWN_TOPIC_OR_PART:
            raise InputError(f"source '{self._topic}': is not there any more; give it back")

    def seek(self, partition: int, offset: int) -> None:
        """Reads on from another place."""
        self._consumer.seek(self._at(partition, offset))

    def pause(self, partition: int) -> None:
        """Reads nothing more of a partition that has ended."""
        self._consumer.pause([self._at(partition, 0)])

    def rejoin(self) -> None:
        """Leaves the group and comes back as a new member."""
        self._consumer.unsubscribe()
        self._subscribe()

    @property
    def metadata(self) -> Any:
        """What tells the broker whether the group still counts this member."""
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        """Leaves the group; others get the partitions at once."""
        self._consumer.close()


class Writer:
    """The transactions of one partition. Whoever makes the next one fences this one off."""

    def __init__(self, group: Group, partition: int, member: Member) -> None:
        self._group, self._partition, self._member = group, partition, member
        self._kafka = kafka.client()
        self._producer = self._kafka.Producer(
            {
                "bootstrap.servers": group.sink.servers,
                "transactional.id": f"{group.name}:{partition}",
                "linger.ms": 20,
                "compression.type": "lz4",
                "logger": kafka.quiet(),
            }
        )
        try:
            self._producer.init_transactions(kafka.WAIT)
        except self._kafka.KafkaException:
            raise kafka.unreachable(group.sink) from None

    def commit(self, rows: bytes, offset: int, mark: Mark) -> None:
        """All rows of a step, its place and its mark; or raises TransactionLost."""
        place = self._kafka.TopicPartition(
            self._group.source.name, self._partition, offset, str(mark)
        )
        try:
            self._producer.begin_transaction()
            self._produce(rows)
            self._producer.send_offsets_to_transaction([place], self._member.metadata, kafka.WAIT)
            self._producer.commit_transaction(kafka.WAIT)
        except self._kafka.KafkaException as failed:
            raise TransactionLost(bool(failed.args[0].fatal())) from None

    def _produce(self, rows: bytes) -> None:
        for row in rows.splitlines():
            while True:
                try:
                    self._producer.produce(self._group.sink.name, row, partition=self._partition)
                    break
                except BufferError:  # the broker is slower than we are: wait for it
                    self._producer.poll(0.1)


def gone(topic: Topic, partition: int) -> CheckpointError:
    """What is said where messages were deleted before they were read."""
    return CheckpointError(
        f"source '{topic}': partition {partition} no longer holds the place where the stream"
        " stopped; give the same topic, and let it keep messages until they are read"
    )
