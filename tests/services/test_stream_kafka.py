"""A real Kafka broker on loopback: topic to topic, killed again and again, every row once."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafka_broker import committed, filled, free_port, put, topic
from real_commands import how_to
from shoal.samples import purchases
from shoal.streams import kafka
from stream_processes import killed_at_work, open_shop
from thorough import LONG
from warm_interpreters import COMMAND

ROWS, KILLS = (6000, 8) if LONG else (3000, 3)
pytest.importorskip(
    "confluent_kafka", reason="Kafka's client is not installed: pip install '.[kafka]'"
)


@pytest.fixture
def shop(folder):
    open_shop(folder, ROWS)
    purchases.generate(ROWS, 2).write_ndjson(folder / "p.jsonl")
    return folder


def test_topic_to_topic_killed_again_and_again_every_row_goes_once(broker, shop, shoal):
    lines = (shop / "p.jsonl").read_text().splitlines()
    source, sink = filled(broker, "purchases", lines), topic(broker, "published")
    assert shoal("stream", "p.jsonl", "-p", "policy.yaml", "-q", "-o", "out.jsonl").status == 0
    script = f"import sys, shoal.streams.kafka as k; k.MOST = 200; {COMMAND}"
    words = f"stream {source} -p policy.yaml -q -o {sink} --checkpoint ck"
    command = [sys.executable, "-c", script, *words.split()]
    killed_at_work(lambda: subprocess.Popen(command, cwd=shop), shop / "ck", KILLS)
    assert committed(broker, "published") == (shop / "out.jsonl").read_text().splitlines()
    certificate = json.loads((shop / "ck" / "certificate.json").read_text())
    assert certificate["records"]["out"] == ROWS


def test_what_the_broker_no_longer_knows_is_not_put_a_second_time(broker, shop, shoal, monkeypatch):
    """It forgets how far a stream was a week later; the last step's rows are there all the same."""
    from confluent_kafka.admin import AdminClient

    lines = (shop / "p.jsonl").read_text().splitlines()[:700]
    source, sink = filled(broker, "forgotten.in", lines), topic(broker, "forgotten.out")
    monkeypatch.setattr(kafka, "MOST", 250)
    command = ["stream", source, "-p", "policy.yaml", "-q", "-o", sink, "--checkpoint"]
    admin = AdminClient({"bootstrap.servers": broker})
    before = {group.group_id for group in admin.list_consumer_groups().result(30).valid}
    shutil.copytree(half_way(shoal, command, monkeypatch), "early")
    assert shoal(*command, "ck").status == 0
    rows = committed(broker, "forgotten.out")
    assert len(rows) == len(lines)
    os.rename("ck", "late")
    os.rename("early", "ck")
    found = shoal(*command, "ck")  # would count steps that the broker has
    assert (found.status, "the checkpoint is an earlier one" in found.err) == (2, True)
    shutil.rmtree("ck")
    os.rename("late", "ck")
    found = shoal(*command, "new")
    assert (found.status, "holds rows already, and the checkpoint is new" in found.err) == (2, True)
    assert not Path("new").exists()
    after = {group.group_id for group in admin.list_consumer_groups().result(30).valid}
    for name in after - before - {"reader"}:
        admin.delete_consumer_groups([name])[name].result(30)
    found = shoal(*command, "ck")
    assert (found.status, "has forgotten how far it was" in found.err) == (2, True)
    assert committed(broker, "forgotten.out") == rows


def test_a_topic_that_was_created_again_under_its_name_is_another_one(broker, shop, shoal):
    """Its offsets begin again: whatever stands in front of the old place would be left out."""
    from confluent_kafka.admin import AdminClient

    lines = (shop / "p.jsonl").read_text().splitlines()
    command = ["stream", filled(broker, "again", lines[:500]), "-p", "policy.yaml", "-q"]
    command += ["-o", "out.csv", "--checkpoint", "ck"]
    assert shoal(*command).status == 0
    assert shoal(*command).status == 0
    admin = AdminClient({"bootstrap.servers": broker})
    admin.delete_topics(["again"])["again"].result(30)
    time.sleep(1)  # the broker goes on deleting
    filled(broker, "again", lines[:900])
    assert "no longer holds the place" in shoal(*command, status=2).err


def half_way(shoal, command: list[str], monkeypatch) -> str:
    """A checkpoint whose stream was stopped at its second step."""
    real, calls = kafka.TopicSink.put, 0

    def put(*arguments):
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        real(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(kafka.TopicSink, "put", put)
        assert shoal(*command, "ck").status == 130
    return "ck"


def test_bad_messages_are_set_aside(broker, shop, shoal):
    lines = (shop / "p.jsonl").read_text().splitlines()[:500]
    lines[7] = "no object"
    lines[9] = lines[9].replace('"age":', '"aeg":')
    source = filled(broker, "with-bad", lines)
    command = ["stream", source, "-p", "policy.yaml", "-q", "-o", "out.csv"]
    assert shoal(*command, "--dead-letters", "bad").status == 0
    shown = [json.loads(line) for line in (shop / "bad").read_text().splitlines()]
    assert [b["record"] for b in shown] == [7, 9]


def test_a_message_without_a_value_at_the_start_is_set_aside(broker, shop, shoal):
    """As compacted topics keep for what was deleted."""
    lines = (shop / "p.jsonl").read_text().splitlines()[:500]
    source = filled(broker, "deleted", [None, *lines])
    command = ["stream", source, "-p", "policy.yaml", "-q", "-o", "out.csv"]
    assert shoal(*command, "--dead-letters", "bad").status == 0
    shown = [json.loads(line) for line in (shop / "bad").read_text().splitlines()]
    assert [b["record"] for b in shown] == [0]
    command[1] = filled(broker, "all-deleted", [None, None])
    assert "holds no message with a value" in shoal(*command, status=2).err


@pytest.mark.parametrize("partitions", [1, 2])
def test_rows_too_large_for_the_broker_are_told_from_a_silent_one(
    broker, shop, shoal, partitions, monkeypatch
):
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

    names = [f"{name}-{partitions}" for name in ("rows", "small")]
    source, sink = (topic(broker, name, partitions) for name in names)
    lines = (shop / "p.jsonl").read_text().splitlines()[:500]
    put(broker, names[0], [(str(json.loads(line)["customer"]), line) for line in lines])
    admin = AdminClient({"bootstrap.servers": broker})

    def limit(size: int) -> None:
        entry = ConfigEntry(
            "max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET
        )
        resource = ConfigResource(ConfigResource.Type.TOPIC, names[1], incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(30)

    command = ["stream", source, "-p", "policy.yaml", "-q", "-o", sink, "--checkpoint", "ck"]
    limit(100)
    hand_over = kafka.produce_rows

    def wait_for_the_broker(*given):
        hand_over(*given)
        time.sleep(1)

    for produce in (wait_for_the_broker, hand_over):
        monkeypatch.setattr(kafka, "produce_rows", produce)
        assert "raise 'max.message.bytes' of the topic" in shoal(*command, status=2).err
    limit(1_000_000)
    assert shoal(*command).status == 0
    rows = [committed(broker, names[1], partition) for partition in range(partitions)]
    assert sum(map(len, rows)) == len(lines)


def test_what_can_t_be_streamed_is_said(broker, shop, shoal):
    two = topic(broker, "two-partitions", partitions=2)
    found = shoal("stream", two, "-p", "policy.yaml", "-q", "-o", "out.csv")
    assert (found.status, "has 2 partitions" in found.err) == (2, True)
    found = shoal("stream", "p.csv", "-p", "policy.yaml", "-q", "-o", two)
    assert (found.status, "give --checkpoint" in found.err) == (2, True)


def test_a_broker_that_is_not_there_is_named(shop, shoal, monkeypatch):
    monkeypatch.setattr("shoal.streams.kafka.WAIT", 1)
    found = shoal(
        "stream", f"kafka://127.0.0.1:{free_port()}/topic", *"-p policy.yaml -q -o out.csv".split()
    )
    assert found.status == 4
    assert "its broker does not answer" in found.err


@pytest.mark.parametrize(("name", "rows"), [("kafka.sh", 2000), ("kafka-partitions.sh", 3000)])
def test_the_scripts_of_the_how_to_publish_from_topic_to_topic(broker, tmp_path, name, rows):
    assert "DOES NOT HOLD" not in how_to(name, tmp_path, BROKER=broker).stdout
    published = [path.read_text().splitlines() for path in tmp_path.glob("published*.jsonl")]
    assert sum(map(len, published)) == rows
