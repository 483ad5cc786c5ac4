"""Kafka topics as source and sink of a stream: `kafka://host:port/topic`, one JSON object a
message.

Here the source has one partition, and rows go to partition 0; `kafka_group.py` has the partitions
that several processes share. What a step puts into a topic is one transaction, which also stores
the number of the step at the broker: asked again for a step that is stored there, it does nothing.
Readers must use `isolation.level=read_committed`.
"""

import re
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from shoal.connectors.feeds import ANY_FIELDS, PIECE, names_of_json, rows_of_json
from shoal.connectors.location import TOPIC
from shoal.data.schema import Fields
from shoal.data.stream import Piece
from shoal.errors import CheckpointError, InputError, MissingExtraError, PartyError
from shoal.protocols import Place, Source

_NAME = re.compile(r"kafka://(?P<servers>[^/]+)/(?P<topic>[A-Za-z0-9._-]+)$")
PATIENCE = 0.2
"""Seconds without a message after which what has come is worked on."""
MOST = 50_000
"""Messages that are read at a time."""
AT_ONCE = 100
"""Messages after which their bytes are counted: few at the broker may unpack to many."""
WAIT = 30
"""Seconds that a broker may take to answer."""
WRITING = {
    "linger.ms": 20,
    "compression.type": "lz4",
    "message.max.bytes": 1_000_000_000,  # the broker's limit counts, not the client's
}
"""Settings of producers."""


@dataclass(frozen=True)
class Topic:
    """servers: `host:port`, several parted by commas."""

    servers: str
    name: str

    @classmethod
    def of(cls, text: str) -> "Topic":
        found = _NAME.match(text)
        if found is None:
            raise InputError(f"topic '{text}': is not a topic; write kafka://host:port/topic")
        return cls(found["servers"], found["topic"])

    def __str__(self) -> str:
        return f"{TOPIC}{self.servers}/{self.name}"


def client() -> Any:
    """Kafka's client library; raises MissingExtraError where it is not installed."""
    try:
        import confluent_kafka
    except ImportError:
        raise MissingExtraError.of("a topic needs confluent-kafka", "kafka") from None
    return confluent_kafka


def partitions_of_topic(address: str) -> int:
    """How many partitions a topic has, 0 where it is not there."""
    topic = Topic.of(address)
    with closing(consumer_of(topic, "shoal")) as consumer, answering(topic):
        found = consumer.list_topics(topic.name, timeout=WAIT).topics[topic.name]
    return 0 if found.error is not None else len(found.partitions)


class TopicFeed(Source):
    """The committed messages of a topic, in order."""

    def __init__(self, text: str, following: bool = False, fields: Fields = ANY_FIELDS) -> None:
        self._topic, self._fields, self._kafka = Topic.of(text), fields, client()
        partitions = partitions_of_topic(text)
        if partitions != 1:
            what = (
                f"has {partitions} partitions now; run the command again"
                if partitions
                else "is not there; create it, or correct its name"
            )
            raise InputError(f"source '{self._topic}': {what}")
        self._consumer = consumer_of(self._topic, "shoal")
        with answering(self._topic):
            first, end = self._consumer.get_watermark_offsets(self._at(0), timeout=WAIT)
        self._end = None if following else end
        self._offset, self._records = first, 0
        self._created = _identity_of(self._topic)
        self._new: set[str] = set()
        self._consumer.assign([self._at(self._offset)])
        self.names = self._first_names()

    def _at(self, offset: int) -> Any:
        return self._kafka.TopicPartition(self._topic.name, 0, offset)

    def _first_names(self) -> list[str]:
        """The names of the first object; the stream begins when it has come.

        A message without a value, as topics keep for what was deleted, is not an object.
        """
        while True:
            lines, _, at_end = self._messages(1)
            if any(lines):
                break
            if at_end:
                raise no_messages(self._topic)
        self._consumer.assign([self._at(self._offset)])
        first = names_in(lines[0], self._topic)
        self._first = frozenset(first)
        return self._fields.names(first)

    def _messages(self, most: int) -> tuple[list[bytes], int, bool]:
        """Messages, the offset after them, and whether the topic ends there."""
        lines: list[bytes] = []
        after, at_end = self._offset, self._end is not None and self._offset >= self._end
        room = PIECE
        while len(lines) < most and room > 0 and not at_end:
            batch, size = arriving(self._consumer, most - len(lines))
            room -= size
            for message in batch:
                error = message.error()
                if error is None:
                    lines.append(message.value() or b"")
                    after = message.offset() + 1
                elif error.code() != self._kafka.KafkaError._PARTITION_EOF:
                    raise unreachable(self._topic)
                elif self._end is not None:
                    # after the last message there may be marks of transactions
                    at_end = True
            if not batch:
                break
            if self._end is None and any(m.error() is not None for m in batch):
                break
        return lines, after, at_end

    def read(self) -> Piece:
        lines, after, at_end = self._messages(MOST)
        frame, places, bad, count = rows_of_json(lines, self.names, self._fields, self._new)
        bad = [(self._records + at, why) for at, why in bad]
        new = frozenset(self._new - self._first)
        piece = Piece(frame, self._records + places, bad, at_end, new)
        self._offset, self._records = after, self._records + count
        return piece

    @property
    def place(self) -> Place:
        """The next offset, and how many records came before it."""
        return {"offset": self._offset, "records": self._records, "topic": self._created}

    def go_to(self, place: Place) -> None:
        """Goes on at an offset; raises CheckpointError where the topic does not reach it."""
        first, end = self._consumer.get_watermark_offsets(self._at(0), timeout=WAIT)
        is_same = None in (self._created, place.get("topic")) or self._created == place["topic"]
        if not is_same or not first <= place["offset"] <= end:
            raise CheckpointError(
                f"source '{self._topic}': no longer holds the place where the checkpoint stopped;"
                " give the same topic"
            )
        self._offset, self._records = place["offset"], place["records"]
        self._consumer.assign([self._at(self._offset)])

    def close(self) -> None:
        self._consumer.close()


def _identity_of(topic: Topic) -> str | None:
    """What distinguishes a topic from a later one of the same name; None where the broker
    does not say. Offsets begin again in the later one, so a place in it means other records.
    """
    kafka = client()
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": topic.servers, "logger": quiet()})
    try:
        asked = admin.describe_topics(kafka.TopicCollection([topic.name]), request_timeout=WAIT)
        return str(asked[topic.name].result(WAIT).topic_id)
    except kafka.KafkaException:
        return None


class TopicSink:
    """A topic that takes each step once.

    identity: names this stream at the broker, the same after every restart. step: the last that its
    checkpoint has committed; 0 for a new one, which needs a topic without rows. Raises
    CheckpointError where the broker knows another step: what was put could be put a second time.
    """

    def __init__(self, text: str, identity: str, step: int) -> None:
        self._topic, kafka = Topic.of(text), client()
        self._group = f"shoal-{identity}"
        self._consumer = consumer_of(self._topic, self._group)
        self._writer = Transactions(self._topic, self._group)
        self._step = kafka.TopicPartition(self._topic.name, 0)
        with answering(self._topic):
            found = self._consumer.committed([self._step], timeout=WAIT)[0].offset
            self._require_as_left(found, step)
        self._done = max(found, 0)

    def _require_as_left(self, found: int, step: int) -> None:
        """found: the step that the broker knows, negative where it knows none.

        Brokers forget it a week after it was committed, and when the topic is deleted.
        """
        if step == 0 and self._holds_rows():
            raise CheckpointError(
                f"output '{self._topic}': holds rows already, and the checkpoint is new; name a"
                " fresh topic, or the checkpoint that it belongs to"
            )
        if step == 0 or (found >= 0 and found in (step - 1, step)):
            return
        if found >= 0 or step > 1 or self._holds_rows():  # the first may not have been put yet
            raise CheckpointError(
                f"output '{self._topic}': is not as the stream left it, or the broker has forgotten"
                " how far it was, or the checkpoint is an earlier one; begin a new stream in a new"
                " topic, and remove readers' access to the old one"
            )

    def _holds_rows(self) -> bool:
        """Whether a careful reader finds any row where ours go."""
        return bool(first_messages(self._topic, 0, 1, self._group).lines)

    def put(self, step: int, rows: bytes) -> None:
        """All rows of a step, and its number, in one transaction; nothing if the broker has it."""
        if step <= self._done:
            return
        reached = client().TopicPartition(self._topic.name, 0, step)
        try:
            self._writer.commit(0, rows, reached, self._consumer.consumer_group_metadata())
        except TransactionLost:
            raise unreachable(self._topic) from None
        self._done = step

    def close(self) -> None:
        """Leaves the broker; what was put is committed there."""
        self._consumer.close()


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

    def add(self, later: "Arrived", first: int) -> None:
        """Adds later messages, except those before the offset `first`."""
        known = bisect_left(later.offsets, first)
        self.offsets += later.offsets[known:]
        self.keys += later.keys[known:]
        self.lines += later.lines[known:]
        self.at_end |= later.at_end


def consumer_of(topic: Topic, group: str, **more: Any) -> Any:
    """A reader of what is committed in a topic, which does not commit how far it has read."""
    return client().Consumer(
        {
            "bootstrap.servers": topic.servers,
            "group.id": group,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
            "logger": quiet(),
            **more,
        }
    )


def arriving(consumer: Any, most: int) -> tuple[list[Any], int]:
    """Messages that come within `PATIENCE`, and their bytes: `most`, or some beyond `PIECE`."""
    found: list[Any] = []
    size, until = 0, time.monotonic() + PATIENCE
    while len(found) < most and size < PIECE and (left := until - time.monotonic()) > 0:
        batch = consumer.consume(min(most - len(found), AT_ONCE), timeout=left)
        found += batch
        size += sum(map(_size, batch))
    return found, size


def _size(message: Any) -> int:
    headers = (value for _, value in message.headers() or ())
    return sum(len(part or b"") for part in (message.key(), message.value(), *headers))


def first_messages(topic: Topic, partition: int, most: int, group: str) -> Arrived:
    """The first `most` messages of a partition, or all of them."""
    kafka, found = client(), Arrived()
    with closing(consumer_of(topic, f"{group}:look")) as consumer, answering(topic):
        consumer.assign([kafka.TopicPartition(topic.name, partition, kafka.OFFSET_BEGINNING)])
        while len(found.lines) < most:
            message = consumer.poll(WAIT)
            if message is None:
                raise unreachable(topic)
            if message.error() is None:
                found.take(message)
            elif message.error().code() == kafka.KafkaError._PARTITION_EOF:
                break
            else:
                raise unreachable(topic)
    return found


class TransactionLost(Exception):
    """A step is perhaps not committed: reopen the partition. fenced: another process has it."""

    def __init__(self, fenced: bool) -> None:
        super().__init__("a transaction was lost")
        self.fenced = fenced


class Transactions:
    """Writes into a topic by transactions. The next writer of this identity fences this one off."""

    def __init__(self, topic: Topic, identity: str) -> None:
        self._topic, self._kafka = topic, client()
        servers = {"bootstrap.servers": topic.servers, "logger": quiet()}
        self._producer = self._kafka.Producer({**servers, **WRITING, "transactional.id": identity})
        with answering(topic):
            self._producer.init_transactions(WAIT)

    def commit(self, partition: int, rows: bytes, reached: Any, metadata: Any) -> None:
        """Commits all rows of a step with the offset that was reached; or raises TransactionLost.

        metadata: of the group whose offset it is. Raises InputError where the broker refuses rows
        for their size.
        """
        refused: list[int] = []
        try:
            self._producer.begin_transaction()
            produce_rows(self._producer, self._topic, partition, rows, refused)
            self._producer.send_offsets_to_transaction([reached], metadata, WAIT)
            self._producer.commit_transaction(WAIT)
        except self._kafka.KafkaException as failed:
            is_fenced = bool(failed.args[0].fatal())
            if not is_fenced:
                refuse_too_large(self._producer, self._topic, refused)
            raise TransactionLost(is_fenced) from None


def names_in(message: bytes, topic: Topic) -> list[str]:
    """The columns of a source, as its first message names them; raises InputError."""
    if (found := names_of_json(message)) is None:
        raise InputError(
            f"source '{topic}': its first message is not a JSON object; put one into each message"
        )
    return found


def produce_rows(
    producer: Any, topic: Topic, partition: int, rows: bytes, refused: list[int]
) -> None:
    """Hands a message for each line to a producer, which adds codes of errors to `refused`."""

    def note(error: Any, _: Any) -> None:
        if error is not None:
            refused.append(error.code())

    for row in rows.splitlines():
        while True:
            try:
                producer.produce(topic.name, row, partition=partition, on_delivery=note)
                break
            except BufferError:  # the broker is slower than we are: wait for it
                producer.poll(0.1)


def refuse_too_large(producer: Any, topic: Topic, refused: list[int]) -> None:
    """Raises InputError where the broker refused messages for their size: trying again won't help.

    refused: as `produce_rows` left it.
    """
    # a refusal fails the transaction as soon as it arrives, and may not have been noted before
    producer.flush(1)
    if client().KafkaError.MSG_SIZE_TOO_LARGE in refused:
        raise InputError(
            f"output '{topic}': the broker refuses rows as too large; raise 'max.message.bytes' of"
            " the topic, or 'message.max.bytes' of the broker, and run the command again"
        )


def no_messages(topic: Topic) -> InputError:
    return InputError(f"source '{topic}': holds no message with a value; put records into it first")


def unreachable(topic: Topic) -> PartyError:
    return PartyError(
        f"topic '{topic}': its broker does not answer; start it, or correct the address"
    )


@contextmanager
def answering(topic: Topic) -> Iterator[None]:
    """Whatever the client library raises in the block means that the broker does not answer."""
    try:
        yield
    except client().KafkaException:
        raise unreachable(topic) from None


def quiet() -> Any:
    """A logger that keeps the client's messages away from standard error."""
    import logging

    logger = logging.getLogger("shoal.kafka")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger
