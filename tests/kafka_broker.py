"""A Kafka broker of the tests' own: one node on loopback, its logs in a temporary folder."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# a broker that lives for seconds
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
JARS = Path(__file__).resolve().parents[1] / ".services" / "kafka"


def why_not() -> str | None:
    """Why no broker can be started here; None where one can."""
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        return "Kafka's client is not installed: pip install '.[kafka]'"
    if not JARS.is_dir() or shutil.which("java") is None:
        return "no Kafka broker: 'make kafka' fetches one (needs Maven and Java 17)"
    return None


@contextmanager
def broker_in(folder: Path) -> Iterator[str]:
    """The address of a broker that lives as long as the context."""
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
group.min.session.timeout.ms=1000
""")
    java = ["java", *QUICK, "-Xmx384m", "-cp", f"{JARS}/*"]
    identity = ["-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c", "server.properties"]
    made = [*java, "kafka.tools.StorageTool", "format", *identity]
    subprocess.run(made, cwd=folder, check=True, capture_output=True)
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            [*java, "kafka.Kafka", "server.properties"], cwd=folder, stdout=log, stderr=log
        )
    try:
        _until_open(port, process)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _until_open(port: int, process: subprocess.Popen) -> None:
    for _ in range(300):
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None
        time.sleep(0.2)
    raise AssertionError("the broker did not start")


def topic(broker: str, name: str, partitions: int = 1) -> str:
    """A new topic's address."""
    from confluent_kafka.admin import AdminClient, NewTopic

    client = AdminClient({"bootstrap.servers": broker})
    made = client.create_topics([NewTopic(name, partitions, 1)])
    made[name].result(30)
    return f"kafka://{broker}/{name}"


def filled(broker: str, name: str, lines: list[str | None]) -> str:
    """A new topic of one partition that holds these messages."""
    address = topic(broker, name)
    put(broker, name, [(None, line) for line in lines], partition=0)
    return address


def put(
    broker: str,
    name: str,
    messages: list[tuple[str | None, str | None]],
    partitioner: str = "murmur2_random",
    **where: int,
) -> list[tuple[int, str]]:
    """Sends keys and values; returns the partition of each value, in the order of the partitions.

    where: `partition`, if it is not to follow from the key.
    """
    from confluent_kafka import Producer

    went: list[tuple[int, int, str]] = []
    producer = Producer({"bootstrap.servers": broker, "partitioner": partitioner})
    for key, value in messages:
        producer.produce(
            name,
            value,
            key,
            on_delivery=lambda _, m: went.append(
                (m.partition(), m.offset(), (m.value() or b"").decode())
            ),
            **where,
        )
    assert producer.flush(30) == 0
    return [(partition, value) for partition, _, value in sorted(went)]


def committed(broker: str, name: str, partition: int = 0) -> list[str]:
    """All messages of a partition as a careful reader sees them."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": broker,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(name, partition, 0)])
    rows = []
    while True:
        message = consumer.poll(30)
        assert message is not None
        if message.error() is not None:
            break
        rows.append(message.value().decode())
    consumer.close()
    return rows
