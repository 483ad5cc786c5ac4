"""The same call of ours: `shoal.publish` of a frame, the first of its process and a later one.

python shoal_call.py TABLE.csv POLICY.json [PRESET]
"""

from __future__ import annotations

import json
import sys
import time

import polars as pl

from shoal import Policy, publish

if __name__ == "__main__":
    frame, policy = pl.read_csv(sys.argv[1]), Policy.load(sys.argv[2])
    if len(sys.argv) > 3:
        policy = policy.with_method(None, {"preset": sys.argv[3]})
    seconds = []
    for _ in range(2):
        begun = time.process_time()
        published = publish(frame, policy)
        seconds.append(time.process_time() - begun)
    print(json.dumps({"seconds": seconds, "gcp": published.certificate["utility"]["gcp"]}))
