"""All attacks on one release, in a process of its own; prints what they cost as JSON.

python attack_call.py ROWS LEARNED     LEARNED is 0 or 1; records of Adult, resampled where ROWS
is not 0
"""

from __future__ import annotations

import json
import sys
from typing import Any

import adult

import shoal
from shoal.policy.policy import Policy

K, OTHER_K, FRACTION, SEED = 10, 15, 0.667, 1


def policy() -> Policy:
    """Eight ordered quasi-identifiers, two sensitive attributes, a population to compare with."""
    asked = adult.policy(adult.EIGHT, K, seed=SEED, population={"fraction": FRACTION})
    asked["attributes"]["relationship"] = {"role": "sensitive"}
    return Policy.from_dict(asked).with_method("rounded-partition")


def main(rows: int, learned: int) -> None:
    frame = adult.records(rows or None, [*adult.EIGHT, "income", "relationship"])
    asked = policy()
    released = shoal.publish(frame, asked)
    other = shoal.publish(frame, asked.with_k(OTHER_K))
    attacks: list[Any] = ["all"]
    if learned:
        attacks.append({"name": "inference", "learned": True})
    others = [shoal.OtherRelease(release=other.data, policy=other.policy, trace=other.trace)]
    found = shoal.attack(released.data, asked, frame, attacks, others=others, trace=released.trace)
    skipped = found["attacks"]["skipped"]
    if skipped:
        raise SystemExit(f"not all were tried: {', '.join(skipped)}")
    print(json.dumps(found["attacks"]["seconds"] | {"classes": found["classes"]["count"]}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
