#!/bin/sh
# Publishes a folder of Parquet files by Spark's executors, and audits it.
set -eu
export PYSPARK_SUBMIT_ARGS="--master ${MASTER:-local[2,4]} pyspark-shell"

# what is there on a cluster already: a table in many files
shoal sample patients -n 2000 --seed 7 -o patients.csv --quiet
mkdir -p patients
python3 - <<'PYTHON'
import polars

table = polars.read_csv("patients.csv", infer_schema=False)
table = table.unique("patient", keep="first", maintain_order=True)  # one record of each person
for number, first in enumerate(range(0, table.height, 700)):
    table[first : first + 700].write_parquet(f"patients/{number:03d}.parquet")
PYTHON

# k alone: other promises are asked of every cut, which needs the whole table in one place
cat > policy.yaml <<'YAML'
version: 1
attributes:
  name: {role: identifier}
  patient: {role: subject}
  age: {role: quasi, type: number, domain: [0, 100]}
  sex: {role: quasi}
  zip: {role: quasi, hierarchy: {prefix: 5}}
  disease: {role: sensitive}
promises: [{model: k-anonymity, k: 10}]
method: {name: rounded-partition, refine: none}
other: drop
YAML
shoal publish patients/ -p policy.yaml -o published/ --trace trace.jsonl --engine spark
shoal audit published/ -p policy.yaml --original patients/ --trace trace.jsonl --engine spark
