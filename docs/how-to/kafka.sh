#!/bin/sh
# Publishes a topic of purchases to another topic, then audits what its readers get.
set -eu
broker=${BROKER:-localhost:9092}

# what is there in a shop already: purchases in a topic of one partition; and a topic for the release
shoal sample purchases -n 2000 --seed 7 -o purchases.jsonl --quiet
python3 - "$broker" <<'PYTHON'
import sys
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

place = {"bootstrap.servers": sys.argv[1]}
admin = AdminClient(place)
made = admin.create_topics([NewTopic(name, 1, 1) for name in ("shop", "shop-published")])
for topic in made.values():
    topic.result(30)
producer = Producer(place)
for line in open("purchases.jsonl"):
    producer.produce("shop", line.rstrip("\n"), partition=0)
assert producer.flush(60) == 0
PYTHON

# the stream: every record once, however often this is killed and started again; with --follow, for ever
shoal stream "kafka://$broker/shop" -p purchases.policy.yaml -o "kafka://$broker/shop-published" \
    --checkpoint state --quiet

# a reader: only what was committed
python3 - "$broker" > published.jsonl <<'PYTHON'
import sys
from confluent_kafka import Consumer, TopicPartition

place = {"bootstrap.servers": sys.argv[1], "group.id": "reader"}
consumer = Consumer({**place, "isolation.level": "read_committed", "enable.partition.eof": True})
consumer.assign([TopicPartition("shop-published", 0, 0)])
while (message := consumer.poll(30)) is not None and message.error() is None:
    print(message.value().decode())
assert message is not None, "the broker does not answer"
consumer.close()
PYTHON
shoal audit published.jsonl -p purchases.policy.yaml
