"""Past memory: `shoal publish --memory` over the same publish without, on 10 million records.

python past_memory.py COMMAND...     runs it and prints CPU seconds and anonymous memory as JSON
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TITLE = "Publishing past memory"
CLAIM = (
    "`shoal publish --memory 700MB` on 10 million records resampled from Adult with jitter (8"
    " quasi-identifiers, k = 10, rounded partition), over the same command without a limit, turn by"
    " turn. Memory is anonymous memory (RssAnon), looked at every 10 milliseconds: pages of mapped"
    " files are the system's to drop. Both wrote the same bytes."
)
ROWS = 10_000_000
K = 10
LIMIT = 700_000_000
OVER = 1.0
STEP = 0.01  # seconds between two looks


def measure(asked: Any) -> Any:
    import adult
    import processes
    from inputs import policy_file
    from measure import Figure, Result, ratios, settings

    rows = asked.rows or ROWS
    asked.say(f"past memory: publishing {rows:,} records")
    columns = [*adult.EIGHT, "income"]
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as place:
        folder = Path(place)
        source = folder / "in.csv"
        processes.script("inputs.py", "table", source, rows, ",".join(columns))
        content = adult.policy(adult.EIGHT, k=K, method={"name": "rounded-partition"})
        policy = policy_file(folder / "policy.json", content)
        command = ["publish", str(source), "-p", str(policy), "--quiet", "--replace", "-o"]
        found: dict[str, list[dict[str, float]]] = {"without": [], "within": []}
        for _ in range(asked.repeats):
            for name, more in (("without", []), ("within", ["--memory", str(LIMIT)])):
                out = str(folder / f"{name}.csv")
                run = [*processes.SHOAL, *command, out, *more]
                found[name].append(processes.script("past_memory.py", *run).said)
            same = (folder / "without.csv").read_bytes() == (folder / "within.csv").read_bytes()
            if not same:
                raise SystemExit("a limit on memory changed the release")
    seconds = {name: [run["seconds"] for run in runs] for name, runs in found.items()}
    peak = tuple(run["anonymous"] / 1e6 for run in found["within"])
    return Result(
        "past_memory",
        TITLE,
        CLAIM,
        settings(asked, rows=rows, k=K, seed=1, memory=LIMIT),
        [
            Figure("within 700 MB", "CPU s", tuple(seconds["within"])),
            Figure(
                "within 700 MB over without a limit",
                "times",
                ratios(seconds["within"], seconds["without"]),
                OVER,
            ),
            Figure("anonymous memory within 700 MB, peak", "MB", peak, LIMIT / 1e6),
            Figure(
                "anonymous memory without a limit, peak",
                "MB",
                tuple(run["anonymous"] / 1e6 for run in found["without"]),
            ),
        ],
    )


def watched(command: list[str]) -> dict[str, float]:
    """CPU seconds of a command, and its most bytes of anonymous memory."""
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    most = 0
    while True:
        ended, status, used = os.wait4(running.pid, os.WNOHANG)
        if ended:
            break
        for line in Path(f"/proc/{running.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                most = max(most, int(line.split()[1]) << 10)
        time.sleep(STEP)
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"failed: {' '.join(command)}")
    return {"seconds": used.ru_utime + used.ru_stime, "anonymous": most}


if __name__ == "__main__":
    print(json.dumps(watched(sys.argv[1:])))
