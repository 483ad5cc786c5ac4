"""Topics of several partitions on a real broker: members come, are killed, stall and leave, and
every row is in its partition once, as if nothing had happened.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from kafka_broker import committed, put, topic
from sample_policies import PURCHASES
from shoal.errors import CheckpointError
from shoal.samples import purchases
from shoal.streams import kafka, kafka_group
from shoal.streams.stream_status import stream_status
from thorough import LONG
from warm_interpreters import COMMAND

pytest.importorskip(
    "confluent_kafka", reason="Kafka's client is not installed: pip install '.[kafka]'"
)
PARTITIONS = 3
ROWS, ROUNDS = (9000, 12) if LONG else (1000, 2)
SESSION = 2000
MEMBER = f"""
import sys
import shoal.streams.kafka as k, shoal.streams.kafka_group as g
k.MOST, g.SESSION = 50, {SESSION}
{COMMAND}"""


def keyed(rows: int, seed: int = 2) -> list[tuple[str, str]]:
    """Purchases, each under the key of its customer."""
    lines = purchases.generate(rows, seed).write_ndjson().splitlines()
    return [(str(json.loads(line)["customer"]), line) for line in lines]


@pytest.fixture
def shop(folder):
    (folder / "policy.yaml").write_text(PURCHASES.replace("delta: 1000", "delta: 200"))
    return folder


class Members:
    """Processes of one group; each is started by the same command."""

    def __init__(self, source: str, sink: str) -> None:
        self.command = [sys.executable, "-c", MEMBER, "stream", source, "-p", "policy.yaml", "-q"]
        self.command += ["-o", sink, "--checkpoint", "ck"]
        self.running: list[subprocess.Popen] = []

    def start(self, *more: str) -> subprocess.Popen:
        self.running.append(subprocess.Popen([*self.command, *more]))
        return self.running[-1]

    def kill(self, member: subprocess.Popen) -> None:
        member.kill()
        member.wait()
        self.running.remove(member)

    def finish(self) -> None:
        for member in self.running:
            assert member.wait(120) == 0

    def __enter__(self) -> Members:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.running:
            member.kill()
            member.wait()


def until_read(group: kafka_group.Group, patience: float = 120) -> None:
    """Waits until the members have committed everything that is in the source."""
    ends = [group.bounds(one)[1] for one in range(PARTITIONS)]
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        found = [group.committed(one) for one in range(PARTITIONS)]
        if all(one is not None and one[0] >= end for one, end in zip(found, ends, strict=True)):
            return
        time.sleep(0.1)
    raise AssertionError("the members do not go on")


def publish_alone(shoal) -> int:
    """Publishes one partition's records as a stream of their own; returns the exit status."""
    Path("alone.jsonl").unlink(missing_ok=True)
    return shoal("stream", "p.jsonl", "-p", "policy.yaml", "-q", "-o", "alone.jsonl").status


def test_members_killed_stalled_and_added_publish_every_row_once(broker, shop, shoal):
    """Each round puts records, disturbs a member while it works on them, and waits for the rest."""
    source, sink = (topic(broker, name, PARTITIONS) for name in ("parts.in", "parts.out"))
    messages, went = keyed(ROWS), []
    cuts = [round(ROWS * step / (ROUNDS + 1)) for step in range(ROUNDS + 2)]
    parts = [messages[a:b] for a, b in pairwise(cuts)]
    moments = random.Random(7)
    group = kafka_group.Group(source, sink)
    went += put(broker, "parts.in", parts[0])
    with Members(source, sink) as members:
        members.start("--follow")
        members.start("--follow")
        until_read(group)
        for number, part in enumerate(parts[1:]):
            victim = moments.choice(members.running)
            members.start("--follow")
            went += put(broker, "parts.in", part)
            time.sleep(moments.uniform(0, 1))
            if number % 3 == 1:  # as good as dead for the group, but it comes back
                victim.send_signal(signal.SIGSTOP)
                until_read(group)
                victim.send_signal(signal.SIGCONT)
            else:
                members.kill(victim)
                until_read(group)
        for member in list(members.running)[1:]:
            members.kill(member)
        leaver = members.running.pop()
        leaver.send_signal(signal.SIGINT)
        assert leaver.wait(60) == 130
        members.start()
        members.start()
        members.finish()
    group.close()
    resumed = 0
    for partition in range(PARTITIONS):
        Path("p.jsonl").write_text("".join(f"{v}\n" for at, v in went if at == partition))
        assert publish_alone(shoal) == 0
        rows = committed(broker, "parts.out", partition)
        assert rows == Path("alone.jsonl").read_text().splitlines()
        Path("rows.jsonl").write_text("\n".join(rows))
        assert shoal("audit", "rows.jsonl", "-p", "policy.yaml", "-q").status == 0
        certificate = json.loads(Path(f"ck/partition-{partition}/certificate.json").read_text())
        assert certificate["records"]["out"] == len(rows)
        events = stream_status(f"ck/partition-{partition}")["log"]["events"]
        resumed += sum(event["kind"] == "resumed" for event in events)
    assert resumed > ROUNDS
    whole = json.loads(Path("ck/certificate.json").read_text())
    assert whole["records"]["out"] == ROWS
    assert whole["stream"]["closed"]
    assert [one["partition"] for one in whole["stream"]["partitions"]] == [0, 1, 2]
    shown = shoal("stream-status", "ck", status=0)
    assert shown.out.count("every release so far keeps every promise") == PARTITIONS
    assert list(json.loads(shoal("stream-status", "ck", "--json").out)) == [
        "partition-0",
        "partition-1",
        "partition-2",
    ]
    with pytest.raises(CheckpointError, match="a status for each of its 3 partitions"):
        stream_status("ck")


@pytest.fixture
def streamed(broker, shop, shoal, request):
    """A topic of two partitions, filled, and a function that publishes it."""
    name = request.node.name[:150].replace("[", ".").replace("]", "")
    source, sink = (topic(broker, f"{name}.{end}", 2) for end in ("in", "out"))

    def stream(*more: str, policy: str = "policy.yaml"):
        command = ["stream", source, "-p", policy, "-q", "-o", sink, "--checkpoint", "ck"]
        return shoal(*command, *more)

    stream.source, stream.sink, stream.broker = f"{name}.in", f"{name}.out", broker
    return stream


def test_keys_that_do_not_say_who_it_is_are_refused(streamed, shop):
    messages = keyed(300)
    put(streamed.broker, streamed.source, [(None, line) for _, line in messages])
    found = streamed()
    assert found.status == 2
    assert "not keyed by 'customer'" in found.err
    assert not any(committed(streamed.broker, streamed.sink, one) for one in (0, 1))


def test_a_partitioner_is_named_where_another_one_was_asked(streamed, shop):
    put(streamed.broker, streamed.source, keyed(600), partitioner="consistent")
    found = streamed()
    assert found.status == 2
    assert "all are where crc32 sends them: use --read partitioner=crc32" in found.err
    assert not Path("ck").exists()
    assert streamed("--read", "partitioner=crc32").status == 0


def test_who_brings_another_policy_is_refused_before_it_gets_a_partition(streamed, shop):
    """Its partitions would promise something else, and nobody would tell until the end."""
    put(streamed.broker, streamed.source, keyed(300))
    assert streamed().status == 0
    marks = list(Path("ck").rglob("snapshot-*"))
    Path("weak.yaml").write_text(Path("policy.yaml").read_text().replace("k: 10", "k: 2"))
    found = streamed(policy="weak.yaml")
    assert (found.status, "was made under another policy" in found.err) == (2, True)
    assert list(Path("ck").rglob("snapshot-*")) == marks
    found = streamed("--follow")  # would wait for ever, and publish nothing
    assert (found.status, "has ended, since it was published without" in found.err) == (2, True)


def test_bad_keys_are_set_aside_and_a_lost_state_is_never_begun_anew(streamed, shop):
    messages = keyed(600)
    messages[500] = (None, messages[500][1])
    put(streamed.broker, streamed.source, messages[:-1], partitioner="consistent")
    assert streamed("--read", "partitioner=crc32").status == 0
    set_aside = [
        json.loads(line)
        for one in (0, 1)
        if (path := Path(f"ck/partition-{one}/dead-letters.jsonl")).exists()
        for line in path.read_text().splitlines()
    ]
    assert [one["reason"] for one in set_aside] == ["its message's key is not its subject"]
    assert streamed("--read", "partitioner=crc32").status == 0  # nothing is left to do
    assert "another source, sink or partitioner" in streamed().err
    policy = yaml.safe_load(Path("policy.yaml").read_text())
    policy["seed"] = 99
    Path("other.yaml").write_text(yaml.safe_dump(policy))
    assert (
        "was made under another policy"
        in streamed("--read", "partitioner=crc32", policy="other.yaml").err
    )
    for path in Path("ck/partition-1").glob("snapshot-*"):
        path.unlink()
    found = streamed("--read", "partitioner=crc32")
    assert (found.status, "lacks the snapshot of step" in found.err) == (2, True)
    forget_group(streamed)
    found = streamed("--read", "partitioner=crc32")
    assert (found.status, "the broker has no offset" in found.err) == (2, True)
    shutil.rmtree("ck")  # nor where all was lost but the rows
    found = streamed("--read", "partitioner=crc32")
    assert (found.status, "holds rows already, and the checkpoint is new" in found.err) == (2, True)


def forget_group(streamed) -> None:
    """What a broker does a week after the last member has left."""
    from confluent_kafka.admin import AdminClient

    name = f"shoal:{streamed.source}:{streamed.sink}"
    admin = AdminClient({"bootstrap.servers": streamed.broker})
    admin.delete_consumer_groups([name])[name].result(30)


@pytest.mark.parametrize("fenced", [False, True])
def test_a_lost_transaction_is_done_again_unless_it_had_been_committed(
    streamed, shop, shoal, monkeypatch, fenced
):
    """Some fail before they are committed, some behind it, where nobody knows whether they were."""
    went = put(streamed.broker, streamed.source, keyed(600))
    real, calls = kafka_group.Writer.commit, 0

    def lossy(self, *arguments):
        nonlocal calls
        calls += 1
        if calls in (4, 9):
            raise kafka.TransactionLost(fenced)
        real(self, *arguments)
        if calls in (1, 6):
            raise kafka.TransactionLost(fenced)

    monkeypatch.setattr(kafka_group.Writer, "commit", lossy)
    monkeypatch.setattr(kafka, "MOST", 60)
    assert streamed().status == 0
    assert calls > 9
    for partition in (0, 1):
        Path("p.jsonl").write_text("".join(f"{v}\n" for at, v in went if at == partition))
        assert publish_alone(shoal) == 0
        rows = committed(streamed.broker, streamed.sink, partition)
        assert rows == Path("alone.jsonl").read_text().splitlines()


def test_partitions_that_were_added_are_refused(streamed, shop, monkeypatch):
    from confluent_kafka.admin import AdminClient, NewPartitions

    put(streamed.broker, streamed.source, keyed(300))
    assert streamed().status == 0
    admin = AdminClient({"bootstrap.servers": streamed.broker})
    added = [NewPartitions(name, 3) for name in (streamed.source, streamed.sink)]
    for done in admin.create_partitions(added).values():
        done.result(30)
    found = streamed()
    assert (found.status, "people have moved between them" in found.err) == (2, True)


def test_what_several_partitions_can_t_have_is_said_at_once(streamed, broker, shop, shoal):
    source = f"kafka://{broker}/{streamed.source}"
    found = shoal(
        *("stream", source, "-p", "policy.yaml", "-q", "-o", "out.csv", "--trace", "t"),
        *("--dead-letters", "bad"),
    )
    assert found.status == 2
    for part in ("each a stream of its own", "--trace", "--dead-letters"):
        assert part in found.err
    one = topic(broker, f"{streamed.source}.one")
    found = shoal("stream", source, "-p", "policy.yaml", "-q", "-o", one, "--checkpoint", "ck")
    assert (found.status, "has 1 partition, the source has 2" in found.err) == (2, True)
    assert not os.path.exists("ck")


def test_a_member_that_lost_its_partition_commits_nothing(broker, shop):
    """Two writers of one partition: the older one is fenced, whatever it believes."""
    source, sink = (topic(broker, name, 2) for name in ("fenced.in", "fenced.out"))
    group = kafka_group.Group(source, sink)
    assigned: list[int] = []
    member = group.joined(lambda partition: assigned.append(partition) or 0, lambda _: None)
    try:
        while len(assigned) < 2:  # until then the group may count it, or not yet
            member.poll()
        old = kafka_group.Writer(group, 0, member)
        old.commit(b'{"a": 1}\n', 1, kafka_group.Mark(1, "one", ended=False))
        new = kafka_group.Writer(group, 0, member)
        with pytest.raises(kafka.TransactionLost) as lost:
            old.commit(b'{"a": 2}\n', 2, kafka_group.Mark(2, "old", ended=False))
        assert lost.value.fenced
        new.commit(b'{"a": 3}\n', 2, kafka_group.Mark(2, "new", ended=False))
        assert group.committed(0) == (2, kafka_group.Mark(2, "new", ended=False))
    finally:
        member.close()
        group.close()
    assert committed(broker, "fenced.out") == ['{"a": 1}', '{"a": 3}']
