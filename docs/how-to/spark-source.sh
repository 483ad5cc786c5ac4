#!/bin/sh
# Lands what Structured Streaming reads in a folder, and publishes that as a stream.
set -eu
export PYSPARK_SUBMIT_ARGS="--master ${MASTER:-local[2,4]} pyspark-shell"

# stands for a topic: records as text, each with its partition and offset
shoal sample purchases -n 1000 --seed 7 -o purchases.jsonl --quiet
mkdir -p events landed
python3 - <<'PYTHON'
import json

lines = open("purchases.jsonl").read().splitlines()
for number in range(4):
    with open(f"events/{number}.json", "w") as file:
        for at in range(number * 250, number * 250 + 250):
            event = {"partition": at % 3, "offset": at // 3, "value": lines[at]}
            print(json.dumps(event), file=file)
PYTHON

# each micro-batch becomes one file; run it again when more has come
python3 spark_source.py events landed

shoal stream landed/ -p purchases.policy.yaml -o published/ --engine spark:3 \
    --checkpoint state
shoal verify published
