"""A real Kafka broker on loopback: topic to topic, killed again and again, every row once."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shoal.samples import purchases
from stream_processes import killed_until_done
from thorough import LONG

pytestmark = pytest.mark.services
QUICK = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xshare:auto",
)  # a broker that lives for seconds
ROWS, KILLS = (6000, 8) if LONG else (3000, 3)
JARS = Path(__file__).resolve().parents[2] / ".services" / "kafka"
kafka = pytest.importorskip(
    "confluent_kafka", reason="Kafka's client is not installed: pip install '.[kafka]'"
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """The address of a broker that lives as long as this module's tests."""
    if not JARS.is_dir() or shutil.which("java") is None:
        pytest.skip("no Kafka broker: 'make kafka' fetches one (needs Maven and Java 17)")
    folder = tmp_path_factory.mktemp("kafka")
    port, control = free_port(), free_port()
    (folder / "server.properties").write_text(f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{control}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/logs
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
""")
    java = ["java", *QUICK, "-Xmx384m", "-cp", f"{JARS}/*"]
    made = [
        *java,
        "kafka.tools.StorageTool",
        "format",
        "-t",
        "AAAAAAAAAAAAAAAAAAAAAA",
        "-c",
        "server.properties",
    ]
    subprocess.run(made, cwd=folder, check=True, capture_output=True)
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            [*java, "kafka.Kafka", "server.properties"], cwd=folder, stdout=log, stderr=log
        )
    try:
        until_open(port, process)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def until_open(port: int, process: subprocess.Popen) -> None:
    for _ in range(300):
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None
        time.sleep(0.2)
    raise AssertionError("the broker did not start")


def topic(broker: str, name: str, partitions: int = 1) -> str:
    from confluent_kafka.admin import AdminClient, NewTopic

    client = AdminClient({"bootstrap.servers": broker})
    made = client.create_topics([NewTopic(name, partitions, 1)])
    made[name].result(30)
    return f"kafka://{broker}/{name}"


def filled(broker: str, name: str, lines: list[str]) -> str:
    address = topic(broker, name)
    producer = kafka.Producer({"bootstrap.servers": broker})
    for line in lines:
        producer.produce(name, line, partition=0)
    assert producer.flush(30) == 0
    return address


def committed(broker: str, name: str) -> list[str]:
    """All messages of a topic as a careful reader sees them."""
    consumer = kafka.Consumer(
        {
            "bootstrap.servers": broker,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([kafka.TopicPartition(name, 0, 0)])
    rows = []
    while True:
        message = consumer.poll(30)
        assert message is not None
        if message.error() is not None:
            break
        rows.append(message.value().decode())
    consumer.close()
    return rows


@pytest.fixture
def shop(tmp_path, monkeypatch):
    purchases.generate(ROWS, 2).write_csv(tmp_path / "p.csv")
    frame = purchases.generate(ROWS, 2)
    frame.write_ndjson(tmp_path / "p.jsonl")
    (tmp_path / "policy.yaml").write_text(purchases.POLICY.replace("delta: 1000", "delta: 300"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_topic_to_topic_killed_again_and_again_every_row_goes_once(broker, shop, shoal):
    lines = (shop / "p.jsonl").read_text().splitlines()
    source, sink = filled(broker, "purchases", lines), topic(broker, "published")
    assert shoal("stream", "p.jsonl", "-p", "policy.yaml", "-q", "-o", "out.jsonl").status == 0
    script = (
        "import shoal.connectors.kafka as k; k.MOST = 200; import sys; from shoal.cli.main import"
        " status_of; sys.exit(status_of(sys.argv[1:]))"
    )
    command = [
        sys.executable,
        "-c",
        script,
        "stream",
        source,
        "-p",
        "policy.yaml",
        "-q",
        "-o",
        sink,
        "--checkpoint",
        "ck",
    ]
    killed_until_done(
        lambda: subprocess.Popen(command, cwd=shop), (1.0, 2.2), times=KILLS, patience=120
    )
    assert committed(broker, "published") == (shop / "out.jsonl").read_text().splitlines()
    certificate = json.loads((shop / "ck" / "certificate.json").read_text())
    assert certificate["records"]["out"] == ROWS


def test_bad_messages_are_set_aside(broker, shop, shoal):
    lines = (shop / "p.jsonl").read_text().splitlines()[:500]
    lines[7] = "no object"
    lines[9] = lines[9].replace('"age":', '"aeg":')
    source = filled(broker, "with-bad", lines)
    assert (
        shoal(
            "stream", source, "-p", "policy.yaml", "-q", "-o", "out.csv", "--dead-letters", "bad"
        ).status
        == 0
    )
    told = [json.loads(line) for line in (shop / "bad").read_text().splitlines()]
    assert [b["record"] for b in told] == [7, 9]


def test_what_can_t_be_streamed_is_said(broker, shop, shoal):
    two = topic(broker, "two-partitions", partitions=2)
    found = shoal("stream", two, "-p", "policy.yaml", "-q", "-o", "out.csv")
    assert (found.status, "has 2 partitions" in found.err) == (2, True)
    found = shoal("stream", "p.csv", "-p", "policy.yaml", "-q", "-o", two)
    assert (found.status, "give --checkpoint" in found.err) == (2, True)


def test_a_broker_that_is_not_there_is_named(shop, shoal, monkeypatch):
    monkeypatch.setattr("shoal.connectors.kafka.WAIT", 1)
    found = shoal(
        "stream",
        f"kafka://127.0.0.1:{free_port()}/topic",
        "-p",
        "policy.yaml",
        "-q",
        "-o",
        "out.csv",
    )
    assert found.status == 4
    assert "its broker does not answer" in found.err


def test_the_script_of_the_how_to_publishes_from_topic_to_topic(broker, tmp_path):
    script = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "kafka.sh"
    # the command as this very source has it
    command = tmp_path / "shoal"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m shoal "$@"\n')
    command.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        ["sh", str(script)],
        cwd=tmp_path,
        env={**os.environ, "BROKER": broker, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert "DOES NOT HOLD" not in run.stdout
    assert len((tmp_path / "published.jsonl").read_text().splitlines()) == 2000
