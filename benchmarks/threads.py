"""Threads: what cutting by several of them costs, and how many cores the tasks can keep busy.

python threads.py ROWS REPEATS K     measures in a process of its own and prints JSON
"""

from __future__ import annotations

import heapq
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

TITLE = "Cutting by several threads"
CLAIM = (
    "The rounded partition's cut of 4 million records (k = 10), by two threads over one: CPU"
    " seconds of the whole process, turn by turn, on few values (six quasi-identifiers like"
    " Adult's) and on many (8, with up to 40,000 values). The speed-up is that of the schedule: the"
    " tasks with the CPU time that each of them took, given to the cores, the largest first."
)
ROWS = 4_000_000
K = 10
SEED = 1
CORES = (2, 4, 8, 16)
VALUES = {
    "few values": (74, 16, 99, 7, 14, 41),
    "many values": (36_500, 40_000, 1_000, 74, 16, 99, 400, 5_000),
}
SPEED_UP = {2: 1.7, 8: 4.5}
OVERHEAD = 1.1


def measure(asked: Any) -> Any:
    import processes
    from measure import ONE_THREAD, Figure, Result, ratios, settings

    rows = asked.rows or ROWS
    asked.say(f"threads: cutting {rows:,} records")
    found = processes.script("threads.py", rows, asked.repeats, K, env=ONE_THREAD).said
    figures = []
    for kind, runs in found.items():
        figures += [
            Figure(f"one thread, {kind}", "CPU s", tuple(runs["one"])),
            Figure(
                f"two threads over one, {kind}", "times", ratios(runs["two"], runs["one"]), OVERHEAD
            ),
        ]
        for cores in CORES:
            figures.append(
                Figure(
                    f"speed-up by schedule on {cores} cores, {kind}",
                    "times",
                    tuple(runs["speed-up"][str(cores)]),
                    SPEED_UP.get(cores),
                    "at least",
                )
            )
    return Result(
        "threads",
        TITLE,
        CLAIM,
        settings(asked, rows=rows, k=K, seed=SEED, values=VALUES),
        figures,
        notes=["Where classes start and the order of the records were the same in every run."],
    )


def main(rows: int, repeats: int, k: int) -> dict[str, Any]:
    from shoal.data import cores
    from shoal.search import large_tables
    from shoal.search.kernels import rounded_cut
    from shoal.tables.methods.rounded_partition import EXACT_ROWS, RoundedPartition

    rules = RoundedPartition()._rules()
    found: dict[str, Any] = {}
    for kind, values in VALUES.items():
        columns, costs = table(rows, values)
        first: np.ndarray | None = None
        runs: dict[str, Any] = {"one": [], "two": [], "speed-up": {n: [] for n in CORES}}
        for turn in range(repeats + 1):
            for name, threads in (("one", 1), ("two", 2)):
                again = columns.copy()
                with cores.using(threads), tasks_of(rounded_cut) as tasks:
                    begun = time.process_time()
                    starts = large_tables.cut_by_threads(again, k, rules, EXACT_ROWS, costs)
                    seconds = time.process_time() - begun
                same = np.append(starts, again[-1])
                first = same if first is None else first
                if not np.array_equal(first, same):
                    raise SystemExit("the number of threads changed the classes")
                if turn:  # the first turn compiles
                    runs[name].append(seconds)
            if turn:
                whole = sum(tasks.values())
                for n in CORES:
                    runs["speed-up"][n].append(whole / schedule(tasks, rows, n))
        found[kind] = runs
    return found


def table(rows: int, values: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Columns of codes, the record's number last, and what spans of them cost.

    Values are as uneven as those of people: low ones are frequent.
    """
    rng = np.random.default_rng(SEED)
    columns = np.empty((len(values) + 1, rows), dtype=np.int32)
    for column, most in zip(columns, values, strict=False):
        column[:] = most * rng.random(rows) ** 2
    columns[-1] = np.arange(rows)
    costs = np.zeros((len(values), 4))
    costs[:, 0] = [1 / (most - 1) for most in values]
    costs.view(np.int64)[:, 1] = -1
    costs[:, 2:] = [(1, most - 1) for most in values]
    return columns, costs


@contextmanager
def tasks_of(kernel: Any) -> Iterator[dict[tuple[int, int], float]]:
    """The CPU seconds of every task inside the block, by the records of its node."""
    seconds: dict[tuple[int, int], float] = {}
    lock = threading.Lock()
    halve, cut = kernel.halve, kernel.cut

    def timed(function: Callable[..., Any], node: Callable[..., tuple[int, int]]) -> Any:
        def run(*given: Any) -> Any:
            begun = time.thread_time()
            done = function(*given)
            with lock:
                seconds[node(*given)] = time.thread_time() - begun
            return done

        return run

    kernel.halve = timed(halve, lambda columns, begin, end, *rest: (int(begin), int(end)))
    kernel.cut = timed(cut, lambda columns, nodes, *rest: (int(nodes[0]), int(nodes[-1])))
    try:
        yield seconds
    finally:
        kernel.halve, kernel.cut = halve, cut


def schedule(tasks: dict[tuple[int, int], float], rows: int, cores: int) -> float:
    """Seconds until the last task is done on these cores; a node waits for the one it is of."""
    ends_of: dict[int, list[int]] = {}
    for begin, end in tasks:
        ends_of.setdefault(begin, []).append(end)
    for ends in ends_of.values():
        ends.sort()
    now, waiting = 0.0, [(-rows, 0, rows)]
    running: list[tuple[float, int, int]] = []
    while waiting or running:
        while waiting and len(running) < cores:
            _, begin, end = heapq.heappop(waiting)
            heapq.heappush(running, (now + tasks[begin, end], begin, end))
        now, begin, end = heapq.heappop(running)
        inner = [other for other in ends_of[begin] if other < end]
        if inner:  # it was cut: its low side begins where it does, and ends as late as possible
            middle = inner[-1]
            heapq.heappush(waiting, (begin - middle, begin, middle))
            heapq.heappush(waiting, (middle - end, middle, end))
    return now


if __name__ == "__main__":
    print(json.dumps(main(*(int(argument) for argument in sys.argv[1:]))))
