"""Spark's tables: `shoal publish --engine spark` over one process.

python spark_tables.py COMMAND...     runs it and prints the CPU seconds of all its processes
python spark_tables.py --make FOLDER ROWS     writes the input, in files of 2 million records
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TITLE = "Tables on Spark"
CLAIM = (
    "`shoal publish --engine spark` on records resampled from Adult with jitter (folders of"
    " Parquet, 8 quasi-identifiers, k = 10, rounded partition, without refinement), on two local"
    " cores and 2 GB a task, over one process with one thread and `--memory 2GB`, from one"
    " file of Parquet to one. CPU seconds of all processes, Java's and the workers' too; what"
    " starting Spark takes is measured on a table of 1,000 records and taken off. Both published"
    " the same records in the same order."
)
ROWS = 4_000_000
FILE_ROWS = 2_000_000
TINY = 1_000
K = 10
OVER = 2.5
SPARK = {"PYSPARK_SUBMIT_ARGS": "--master local[2] pyspark-shell"}
TICKS = os.sysconf("SC_CLK_TCK")
STEP = 0.1  # seconds between two looks
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: processes that lost their parent become this one's


def measure(asked: Any) -> Any:
    import adult
    import processes
    from inputs import policy_file
    from measure import ONE_THREAD, Figure, Result, settings

    rows = asked.rows or ROWS
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as place:
        folder = Path(place)
        method = {"name": "rounded-partition", "refine": "none"}
        policy = policy_file(folder / "policy.json", adult.policy(adult.EIGHT, k=K, method=method))
        for name, count in (("tiny", TINY), ("in", rows)):
            asked.say(f"spark tables: making {count:,} records")
            processes.script("spark_tables.py", "--make", folder / name, count)

        def run(source: str, out: str, *more: str, **environment: str) -> dict[str, float]:
            shutil.rmtree(folder / out, ignore_errors=True)
            command = ["publish", f"{folder}/{source}", "-p", str(policy), "-q", "--replace"]
            whole = [*processes.SHOAL, *command, "-o", f"{folder}/{out}", *more]
            asked.say(f"spark tables: {source} to {out}")
            return processes.script("spark_tables.py", *whole, env=environment).said

        alone = ("--memory", "2GB", "--threads", "1")
        found: dict[str, list[dict[str, float]]] = {"start": [], "spark": [], "one": []}
        for _ in range(asked.repeats):
            found["start"].append(run("tiny/", "started/", "--engine", "spark", **SPARK))
            found["one"].append(run("in.parquet", "one.parquet", *alone, **ONE_THREAD))
            found["spark"].append(run("in/", "many/", "--engine", "spark", **SPARK))
            if not are_same(folder / "one.parquet", folder / "many", rows):
                raise SystemExit("Spark published something else than one process")
    cpu = {name: tuple(one["seconds"] for one in runs) for name, runs in found.items()}
    apart = tuple(all_ - start for all_, start in zip(cpu["spark"], cpu["start"], strict=True))
    over = tuple(spark / one for spark, one in zip(apart, cpu["one"], strict=True))
    return Result(
        "spark_tables",
        TITLE,
        CLAIM,
        settings(asked, rows=rows, k=K, seed=0, files=-(-rows // FILE_ROWS)),
        [
            Figure("one process", "CPU s", cpu["one"]),
            Figure("Spark, start apart", "CPU s", apart),
            Figure("Spark's start, with a table of 1,000 records", "CPU s", cpu["start"]),
            Figure("Spark, start apart, over one process", "times", over, OVER),
            Figure("one process, clock", "s", tuple(run["clock"] for run in found["one"])),
            Figure("Spark, clock, start included", "s", tuple(r["clock"] for r in found["spark"])),
        ],
    )


def are_same(file: Path, folder: Path, rows: int) -> bool:
    """Whether the file's records are those of the folder's files, one after the other."""
    import polars as pl

    one, many = pl.scan_parquet(file), pl.scan_parquet(sorted(folder.glob("*.parquet")))
    parts = ((first, FILE_ROWS) for first in range(0, rows + 1, FILE_ROWS))
    return all(one.slice(*part).collect().equals(many.slice(*part).collect()) for part in parts)


def make(folder: Path, rows: int) -> None:
    import adult
    import polars as pl

    folder.mkdir()  # for Spark; all of it stands in one file beside it, too
    columns = [*adult.EIGHT, "income"]
    for number, first in enumerate(range(0, rows, FILE_ROWS)):
        some = adult.resampled(min(FILE_ROWS, rows - first), seed=number, columns=columns)
        some.write_parquet(folder / f"{number:03d}.parquet")
    pl.scan_parquet(folder / "*.parquet").sink_parquet(folder.with_suffix(".parquet"))


def watched(command: list[str]) -> dict[str, float]:
    """CPU seconds of a command and all that it started, and its clock.

    Looked at while they run: what Spark's Python workers took is not handed to their parents.
    """
    ctypes.CDLL(None, use_errno=True).prctl(SUBREAPER, 1, 0, 0, 0)
    began = time.monotonic()
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    seconds: dict[int, float] = {}
    while running.poll() is None:
        seconds.update(of_descendants())
        time.sleep(STEP)
    if running.returncode:
        raise SystemExit(f"failed: {' '.join(command)}")
    return {"seconds": sum(seconds.values()), "clock": time.monotonic() - began}


def of_descendants() -> dict[int, float]:
    """CPU seconds of each process that this one started, directly or not."""
    parents, seconds = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        number = int(stat.parent.name)
        parents[number] = int(fields[1])
        seconds[number] = (int(fields[11]) + int(fields[12])) / TICKS
    found, new = set(), {os.getpid()}
    while new:
        found |= new
        new = {number for number, parent in parents.items() if parent in new} - found
    return {number: seconds[number] for number in found - {os.getpid()}}


if __name__ == "__main__":
    if sys.argv[1] == "--make":
        make(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        print(json.dumps(watched(sys.argv[1:])))
