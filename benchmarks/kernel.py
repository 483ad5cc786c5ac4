"""Kernel: what the method costs over a bare median split of the same rows, in one process, turn by
turn.

python kernel.py CODES.npz REPEATS K     measures in a process of its own and prints JSON
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shoal.protocols import Promises

TITLE = "The method alone on 10 million records"
CLAIM = (
    "CPU seconds of `method.partition` on the encoded table (10 million records resampled from"
    " Adult with jitter, 6 quasi-identifiers, k = 10), against a bare median split of the same rows"
    " in place, in compiled code: no tie order, no options, no class labels."
)
ROWS = 10_000_000
K = 10
SEED = 1
TARGETS = {"preset=paper": 1.5, "default": 4.0}


def measure(asked: Any) -> Any:
    import processes
    from measure import ONE_THREAD, Figure, Result, ratios, settings

    rows = asked.rows or ROWS
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        codes = Path(folder) / "codes.npz"
        asked.say(f"kernel: making {rows:,} records")
        processes.script("inputs.py", "codes", codes, rows, env=ONE_THREAD)
        asked.say("kernel: measuring")
        found = processes.script("kernel.py", codes, asked.repeats, K, env=ONE_THREAD).said
    seconds, peaks = found["seconds"], found["peaks"]
    figures = [Figure("bare median split", "CPU s", tuple(seconds["floor"]))]
    for name, target in TARGETS.items():
        figures += [
            Figure(f"rounded-partition, {name}", "CPU s", tuple(seconds[name])),
            Figure(
                f"{name} over the bare split",
                "times",
                ratios(seconds[name], seconds["floor"]),
                target,
            ),
        ]
    for name in ("floor", *TARGETS):
        label = "bare median split" if name == "floor" else f"rounded-partition, {name}"
        figures.append(
            Figure(
                f"peak memory of the process over the codes, {label}", "times", tuple(peaks[name])
            )
        )
    return Result(
        "kernel",
        TITLE,
        CLAIM,
        settings(
            asked,
            rows=rows,
            attributes=found["attributes"],
            k=K,
            seed=SEED,
            codes_bytes=found["codes_bytes"],
        ),
        figures,
        notes=[
            (
                "The bare split starts from rows that are copied together already; the method's"
                " time includes that copy and the labels. All three take turns in one process of"
                " one thread, compiled beforehand."
            ),
            (
                "Peak memory counts the whole process: interpreter, libraries, the codes themselves"
                " (1), their copy as rows (about 1.2) and the labels."
            ),
        ],
    )


@dataclass(frozen=True)
class KAlone(Promises):
    """k-anonymity and nothing else."""

    k: int
    needs_more_than_k: bool = False

    def holds(self, labels: np.ndarray, count: int, *_: object) -> np.ndarray:
        return np.bincount(labels, minlength=count) >= self.k


def main(path: str, repeats: int, k: int) -> dict[str, Any]:
    from rounded_partition_floor import median_split

    from shoal.data import cores
    from shoal.data.partition import Matrix
    from shoal.tables.methods.rounded_partition import RoundedPartition

    with np.load(path) as stored:
        codes, scale = stored["codes"], stored["scale"]

    def matrix_of(codes: np.ndarray) -> Matrix:
        nothing = np.zeros(0, dtype=np.int32)
        linear = np.full(codes.shape[1], -1, dtype=np.int32)
        return Matrix(codes, scale, linear, nothing, nothing, np.zeros(0))

    def floor(codes: np.ndarray) -> float:
        rows = np.column_stack([codes, np.arange(len(codes), dtype=np.int32)])
        begun = time.process_time()
        median_split(rows, scale, k)
        return time.process_time() - begun

    def partition(method: RoundedPartition) -> Callable[[np.ndarray], float]:
        def run(codes: np.ndarray) -> float:
            matrix, rng = matrix_of(codes), np.random.default_rng(0)
            with cores.using(1):
                begun = time.process_time()
                method.partition(matrix, KAlone(k), rng)
                return time.process_time() - begun

        return run

    contenders = {
        "floor": floor,
        "preset=paper": partition(RoundedPartition(preset="paper")),
        "default": partition(RoundedPartition()),
    }
    for contender in contenders.values():
        contender(codes[: 20 * k].copy())  # compiled, or read from the cache
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    peaks: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, contender in contenders.items():
            forget_peak()
            seconds[name].append(contender(codes))
            peaks[name].append(peak() / codes.nbytes)
    return {
        "seconds": seconds,
        "peaks": peaks,
        "attributes": codes.shape[1],
        "codes_bytes": codes.nbytes,
    }


def forget_peak() -> None:
    """Starts the peak memory of this process anew, where the system can (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak() -> int:
    """Largest resident size since `forget_peak`, bytes."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
