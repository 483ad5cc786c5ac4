"""What needs no broker: where keys belong, whose key is their own, and a folder that many share."""

import json
import os
import zlib
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import CheckpointError, InputError
from shoal.policy.policy import Policy
from shoal.streams import kafka
from shoal.streams.checkpoint import NAME, SharedCheckpoint, SharedStream
from shoal.streams.kafka import Topic, names_in
from shoal.streams.kafka_group import (
    NOT_ITS_KEY,
    Arrived,
    Keyed,
    Mark,
    PartitionFeed,
    murmur2,
    partitions_of,
)
from shoal.streams.options import StreamOptions
from shoal.streams.partitions import _require_fit
from shoal.streams.publishing import StreamRequest
from stream_cases import policy_of

# from the tests of Kafka's own client for Java
OF_JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


def test_murmur2_is_that_of_java():
    assert murmur2(list(OF_JAVA)).view(np.int32).tolist() == list(OF_JAVA.values())


def naive_murmur2(key: bytes) -> int:
    """As Java's client has it, byte by byte."""
    whole, found = 0xFFFFFFFF, 0x9747B28C ^ len(key)
    for at in range(0, len(key) - 3, 4):
        word = int.from_bytes(key[at : at + 4], "little") * 0x5BD1E995 & whole
        word = (word ^ word >> 24) * 0x5BD1E995 & whole
        found = found * 0x5BD1E995 & whole ^ word
    if rest := key[len(key) - len(key) % 4 :]:
        found = (found ^ int.from_bytes(rest, "little")) * 0x5BD1E995 & whole
    found = (found ^ found >> 13) * 0x5BD1E995 & whole
    return found ^ found >> 15


PLAIN = {"murmur2": lambda key: naive_murmur2(key) & 0x7FFFFFFF, "crc32": zlib.crc32}


@given(st.lists(st.binary(max_size=20)), st.integers(1, 50), st.sampled_from([*PLAIN]))
def test_every_key_goes_where_the_plain_rule_sends_it(keys, count, partitioner):
    expected = [PLAIN[partitioner](key) % count for key in keys]
    assert partitions_of(keys, count, partitioner).tolist() == expected


def feed(partition: int = 0, partitions: int = 1) -> PartitionFeed:
    keyed = Keyed("who", "murmur2", partitions)
    return PartitionFeed(Topic("broker:9", "t"), partition, ["who", "age"], keyed)


def arrived(*messages: tuple[bytes | None, object], first: int = 0) -> Arrived:
    lines = [json.dumps({"who": who, "age": 7}).encode() for _, who in messages]
    offsets = list(range(first, first + len(lines)))
    return Arrived(offsets, [key for key, _ in messages], lines)


def read(feed: PartitionFeed, *messages: tuple[bytes | None, object], first: int = 0):
    feed.add(arrived(*messages, first=first))
    return feed.read()


def test_a_key_is_the_person_s_name_as_people_are_compared():
    piece = read(
        feed(),
        (b"ann", "ann"),
        (b"17", 17),
        (b"ann", " ann "),  # the same person, written with blanks
        (b" ann", " ann"),  # would be sent elsewhere than 'ann'
        ("\u00e9".encode(), "e\u0301"),
        (b"\xff", "bob"),
        (None, "bob"),
        (b"bob", "ann"),
    )
    assert piece.frame["who"].to_list() == ["ann", "17", " ann ", "e\u0301"]
    assert piece.position.tolist() == [0, 1, 2, 4]
    assert piece.bad == [(at, NOT_ITS_KEY) for at in (3, 5, 6, 7)]


def test_who_has_no_subject_is_left_to_the_stream_which_says_so():
    piece = read(feed(), (b"ann", "ann"), (None, None), (b"x", None))
    assert piece.position.tolist() == [0, 1, 2]
    assert not piece.bad


def test_a_topic_that_is_keyed_by_something_else_is_refused_at_once():
    with pytest.raises(InputError, match="begins with are not keyed by 'who'"):
        read(feed(), (b"1", "ann"), (b"2", "bob"))
    later = feed()
    read(later, (b"ann", "ann"))
    assert len(read(later, (b"1", "ann"), first=1).bad) == 1


def test_a_person_whom_several_columns_name_has_no_key():
    content = policy_of("fads").model.model_dump(exclude_unset=True)
    content["attributes"] |= {"who": {"role": "identifier"}, "note": {"role": "identifier"}}
    policy = Policy.from_dict({**content, "subject": ["who", "note"]})
    with pytest.raises(InputError) as refused:
        _require_fit(StreamRequest(StreamOptions("kafka://broker/in", "out.csv"), policy), 3)
    said = "policy, subject: a message has one key, and 'who + note' is of several columns; join"
    assert any(finding.startswith(said) for finding in refused.value.findings)


def test_a_person_in_the_wrong_partition_stops_the_stream():
    own, good = name_in(1), name_in(2)
    assert read(feed(1, 3), (own.encode(), own)).frame.height == 1
    with pytest.raises(InputError, match="1 of 2 records in partition 2 belong in another one"):
        read(feed(2, 3), (own.encode(), own), (good.encode(), good))


def name_in(partition: int) -> str:
    """Somebody whose records belong in this of three partitions."""
    names = [str(number) for number in range(99)]
    found = partitions_of([name.encode() for name in names], 3, "murmur2")
    return names[found.tolist().index(partition)]


def handed_out(**parts: object) -> Mock:
    """A message as the client hands it out."""
    return Mock(**{f"{name}.return_value": part for name, part in parts.items()})


def test_messages_that_come_twice_at_once_are_taken_once():
    """A partition may leave a process and come back while messages are handed out."""
    found = Arrived()
    for offset in (5, 6, 7, 5, 6, 7, 9):
        found.take(handed_out(offset=offset, key=b"k", value=b"{}"))
    assert found.offsets == [5, 6, 7, 9]
    assert len(found.keys) == len(found.lines) == 4


def test_what_was_taken_before_is_not_taken_again():
    one = feed()
    read(one, (b"ann", "ann"), (b"bob", "bob"), first=10)
    assert one.place == {"offset": 12, "records": 2}
    piece = read(one, (b"ann", "ann"), (b"bob", "bob"), (b"cis", "cis"), first=10)
    assert piece.frame["who"].to_list() == ["cis"]
    assert one.place == {"offset": 13, "records": 3}
    assert not read(one, (b"ann", "ann"), first=10).frame.height
    one.add(Arrived(at_end=True))
    assert one.read().at_end
    assert not one.read().at_end


@given(st.integers(0, 10**9), st.text("0123456789abcdef", min_size=64, max_size=64), st.booleans())
def test_a_mark_is_read_as_it_was_written(step, digest, ended):
    mark = Mark(step, digest, ended)
    assert Mark.parsed(str(mark)) == mark


@pytest.mark.parametrize("text", ["", "shoal/2 1 ab open", "shoal/1 1 ab", "shoal/1 1 ab shut"])
def test_somebody_else_s_mark_is_not_taken_for_ours(text):
    with pytest.raises(ValueError, match=r"."):
        Mark.parsed(text)


@pytest.fixture
def shared(tmp_path) -> SharedCheckpoint:
    checkpoint = SharedCheckpoint(tmp_path / "partition-2", durable=False)
    checkpoint.make()
    return checkpoint


def test_one_who_lost_the_partition_replaces_no_snapshot_and_removes_none(shared):
    first = shared.save(1, {"step": 1})
    ours = shared.save(2, {"step": 2, "who": "ours"})
    stale = shared.save(2, {"step": 2, "who": "stale"})
    shared.forget(1, {first})  # what the other one did last, late
    assert shared.load_step(2, ours)["who"] == "ours"
    shared.forget(2, {ours, first})
    assert shared.load_step(1, first) == {"step": 1}
    with pytest.raises(CheckpointError, match="lacks the snapshot of step 2"):
        shared.load_step(2, stale)
    assert shared.newest_step == 2


def test_a_snapshot_that_is_not_what_the_broker_names_is_refused(shared):
    digest = shared.save(3, {"step": 3})
    path = next(shared.folder.glob("snapshot-3-*"))
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="is damaged"):
        shared.load_step(3, digest)


def test_bytes_put_late_change_nothing_behind_them(shared):
    path = shared.folder / "dead-letters.jsonl"
    shared.put(path, 0, b"one\n")
    shared.put(path, 4, b"two\n")
    shared.put(path, 0, b"one\n")
    assert path.read_bytes() == b"one\ntwo\n"
    assert os.stat(path).st_mode & 0o077 == 0


def test_who_comes_second_takes_what_the_first_has_begun(tmp_path):
    first = SharedStream("in", "out", 3, ["a", "b"], "murmur2", "x")
    second = SharedStream("in", "out", 3, ["b", "a"], "murmur2", "x")
    assert SharedStream.read(tmp_path / "ck") is None
    assert first.begin(tmp_path / "ck") == first
    assert second.begin(tmp_path / "ck") == first
    assert [path.name for path in (tmp_path / "ck").iterdir()] == [NAME]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": "shoal.shared-stream/9"}'])
def test_a_damaged_description_is_refused(tmp_path, text):
    (tmp_path / NAME).write_text(text)
    with pytest.raises(CheckpointError, match="is damaged or of another version"):
        SharedStream.read(tmp_path)


@pytest.mark.parametrize("message", [b'{"a": ' + b"[" * 990 + b"]" * 990 + b"}", b"[]", b"\xff"])
def test_a_first_message_that_is_no_object_is_refused(message):
    with pytest.raises(InputError, match="first message is not a JSON object"):
        names_in(message, Topic("here:9092", "visits"))


def test_messages_are_read_by_their_bytes_however_small_they_are_at_the_broker():
    message = handed_out(key=b"ann", value=bytes(1 << 20), headers=None)
    consumer = SimpleNamespace(consume=lambda count, timeout: [message] * count)
    found, size = kafka.arriving(consumer, kafka.MOST)
    assert (len(found), size) == (kafka.AT_ONCE, kafka.AT_ONCE * ((1 << 20) + 3))
    assert len(kafka.arriving(consumer, 7)[0]) == 7
