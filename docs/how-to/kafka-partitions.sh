#!/bin/sh
# Two processes publish a topic of three partitions together; every partition is audited.
set -eu
broker=${BROKER:-localhost:9092}

# purchases, each keyed by its customer and partitioned by murmur2 of the key; a topic for the release
shoal sample purchases -n 3000 --seed 7 -o purchases.csv --quiet
python3 - "$broker" <<'PYTHON'
import csv
import json
import sys
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

place = {"bootstrap.servers": sys.argv[1]}
admin = AdminClient(place)
made = admin.create_topics([NewTopic(name, 3, 1) for name in ("sales", "sales-published")])
for topic in made.values():
    topic.result(30)
producer = Producer({**place, "partitioner": "murmur2_random"})
for row in csv.DictReader(open("purchases.csv")):
    producer.produce("sales", json.dumps(row), key=row["customer"])
assert producer.flush(60) == 0
PYTHON

# run the same command as often as you like, on machines that share the folder; --follow runs until stopped
publish() {
    shoal stream "kafka://$broker/sales" -p purchases.policy.yaml -o "kafka://$broker/sales-published" \
        --checkpoint shared --read partitioner=murmur2 --quiet
}
publish & first=$!
publish & second=$!
wait $first
wait $second
shoal stream-status shared

# a reader: only what was committed, partition by partition
for partition in 0 1 2; do
    python3 - "$broker" $partition > "published-$partition.jsonl" <<'PYTHON'
import sys
from confluent_kafka import Consumer, TopicPartition

place = {"bootstrap.servers": sys.argv[1], "group.id": "reader"}
consumer = Consumer({**place, "isolation.level": "read_committed", "enable.partition.eof": True})
consumer.assign([TopicPartition("sales-published", int(sys.argv[2]), 0)])
while (message := consumer.poll(30)) is not None and message.error() is None:
    print(message.value().decode())
assert message is not None, "the broker does not answer"
consumer.close()
PYTHON
    shoal audit "published-$partition.jsonl" -p purchases.policy.yaml
done
