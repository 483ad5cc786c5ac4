#!/bin/sh
# Publishes a folder of files as a stream, by Spark's executors, and continues when more files come.
set -eu
export PYSPARK_SUBMIT_ARGS="--master ${MASTER:-local[2,4]} pyspark-shell"

# what is there on a cluster already: a folder that gets new files
shoal sample purchases -n 3000 --seed 7 -o purchases.csv --quiet
mkdir -p purchases
head -n 1001 purchases.csv > purchases/0001.csv
(head -n 1 purchases.csv; tail -n +1002 purchases.csv | head -n 1000) > purchases/0002.csv

# four shards, each a stream of other people; --follow waits for more files until it is stopped
shoal stream purchases/ -p purchases.policy.yaml -o published/ --engine spark:4 \
    --checkpoint state --follow --quiet &
stream=$!
until shoal stream-status state 2> /dev/null | grep -q '^2,000 records came'; do
    kill -0 "$stream"
    sleep 1
done
shoal stream-status state

# killed, as a machine that fails; the next run deletes what its driver left beside the output
kill -KILL "$stream"
wait "$stream" || true

# new files: written elsewhere, then moved in, so that none is read half
(head -n 1 purchases.csv; tail -n +2002 purchases.csv) > 0003.csv
mv 0003.csv purchases/

# the same command goes on where it was; without --follow it ends behind the last file
shoal stream purchases/ -p purchases.policy.yaml -o published/ --engine spark \
    --checkpoint state
shoal verify published
shoal audit published -p purchases.policy.yaml
