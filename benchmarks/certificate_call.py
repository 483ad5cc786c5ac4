"""One process: publish a table, time what its certificate takes of that, and verify the release.

python certificate_call.py TABLE.csv POLICY.json OUT.csv

The first run warms everything up; the second is measured. CPU seconds.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import polars as pl

from shoal import Policy, verify
from shoal.connectors.files import file_sha256
from shoal.tables import publish as publishing
from shoal.tables.request import PublishRequest

FOR_THE_CERTIFICATE = ("described", "file_metadata", "input_warnings")


def timed(call: Callable[..., Any], *given: Any, **named: Any) -> float:
    begun = time.process_time()
    call(*given, **named)
    return time.process_time() - begun


def main(table: str, policy_path: str, out: str) -> None:
    policy, spent = Policy.load(policy_path), dict.fromkeys(FOR_THE_CERTIFICATE, 0.0)

    def counted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*given: Any, **named: Any) -> Any:
            begun = time.process_time()
            try:
                return call(*given, **named)
            finally:
                spent[name] += time.process_time() - begun

        return measured

    for name in FOR_THE_CERTIFICATE:
        setattr(publishing, name, counted(name, getattr(publishing, name)))
    for _ in range(2):
        spent.update(dict.fromkeys(spent, 0.0))
        publish = timed(publishing.publish_file, table, policy, out, PublishRequest(replace=True))
        certificate = dict(spent)
        verified = {
            "alone": timed(verify, out),
            "policy": timed(verify, out, policy=policy),
            "original": timed(verify, out, policy=policy, original=table),
        }
    floor = {
        "hash": min(timed(file_sha256, out) for _ in range(3)),
        "read": min(timed(pl.read_csv, out, infer_schema=False) for _ in range(3)),
    }
    found = {"publish": publish, "certificate": certificate, "verify": verified, "floor": floor}
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
