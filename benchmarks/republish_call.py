"""Runs of re-publication in a process of their own.

python republish_call.py series POLICY METHOD RECORDS RELEASES [LEDGER]
    CPU seconds of each append, imports and kernels warm; to a new ledger, or to one that is there
python republish_call.py kills POLICY LEDGER KILLS
    what is left of a ledger after a number of kills
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shoal.attacks.run.attack import audit_ledger
from shoal.connectors.ledger import Ledger
from shoal.ledgers.republish import republish_file
from shoal.policy.policy import Policy
from shoal.samples import wearables

PEOPLE = 300


def series(
    policy: str, method: str, records: str, releases: str, grown: str | None = None
) -> dict[str, Any]:
    asked = Policy.load(policy).with_method(method, {})
    seconds, methods = [], []
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        source = Path(folder) / "increment.csv"
        for turn in range(-2, int(releases)):
            ledger = Path(folder) / "warm" if turn < 0 else Path(grown or Path(folder) / "ledger")
            wearables.generate(int(records), turn + 10).write_csv(source)
            started = time.process_time()
            done = republish_file(str(source), asked, ledger, allow_leaks=True)
            if turn >= 0 and done.certificate is not None:
                seconds.append(time.process_time() - started)
                methods.append(done.certificate["seconds"]["method"])
    return {"seconds": seconds, "method": methods}


def kills(policy: str, ledger: str, count: str) -> dict[str, Any]:
    """Appends in new processes that are killed at random instants; each increment is tried until it
    is in.
    """
    place, rng = Path(ledger), random.Random(3)
    place.parent.mkdir(exist_ok=True)
    source = place.with_name("killed.csv")
    command = [
        sys.executable,
        "-m",
        "shoal",
        "republish",
        str(source),
        "-p",
        policy,
        "--ledger",
        ledger,
        "-q",
    ]
    damaged = during = increments = 0
    usual = 1.0
    killed = 0
    while killed < int(count):
        increments += 1
        wearables.generate(PEOPLE, increments).write_csv(source)
        for _ in range(4):
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            time.sleep(usual * rng.uniform(0.3, 1.1))
            during += process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
            damaged += bool(Ledger(place).exists and Ledger(place).verify())
        started = time.monotonic()
        subprocess.run(command, check=True)
        usual = (usual + time.monotonic() - started) / 2
    found = audit_ledger(place)
    assert found.holds, found.damage
    published = sum(r.certificate["records"]["out"] for r in found.releases)
    people = sum(r.certificate["subjects"] for r in found.releases)
    return {
        "damaged": damaged,
        "during": during,
        "twice": max(0, published - increments * PEOPLE),
        "lost": max(0, increments * PEOPLE - people),
    }


if __name__ == "__main__":
    commands: dict[str, Callable[..., dict[str, Any]]] = {"series": series, "kills": kills}
    print(json.dumps(commands[sys.argv[1]](*sys.argv[2:])))
