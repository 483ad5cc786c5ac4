"""t-closeness on Census, cell by cell, and the time it takes: `python benchmarks/tcloseness.py [cells] [times]`.

Cells: quasi-identifiers TAXINC and POTHVAL, sensitive FEDTAX and FICA; k 5 to 30, t 0.05 to 0.30; mean class
size and squared error in percent of the table's, on attributes of variance 1. The k-means++ method is the best of
50 runs, once by squared error and once by class size; ours is one run. Times are CPU seconds of one run
after compilation, on invented tables whose attributes hang together.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from shoal.algorithms.table.mdav import Mdav
from shoal.algorithms.table.points import points_of
from shoal.algorithms.table.repair import repair
from shoal.algorithms.table.tcloseness import TCloseness
from shoal.algorithms.table.tcloseness_k_first import TClosenessKFirst
from shoal.algorithms.table.tcloseness_kmeanspp import TClosenessKMeansPP
from shoal.algorithms.table.tcloseness_t_first import TClosenessTFirst
from shoal.data.classes import Classes, SensitiveColumn
from shoal.data.matrix import Matrix
from shoal.data.partition import Partition
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.promises import BoundPromises
from shoal.privacy.t_closeness import TCloseness as Promise
from shoal.protocols import Partitioner, Promises

DATA = Path(os.environ.get("SHOAL_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
KS = (5, 10, 20, 30)
TS = (0.05, 0.10, 0.15, 0.20, 0.25, 0.30)
RUNS = 50


@dataclass(frozen=True)
class Table:
    """Quasi-identifiers, and the sensitive columns."""

    matrix: Matrix
    sensitive: tuple[SensitiveColumn, ...]

    @classmethod
    def of(cls, quasi: np.ndarray, sensitive: dict[str, np.ndarray]) -> Table:
        matrix = Matrix.from_columns(quasi - quasi.min(axis=0), [float(np.ptp(column)) for column in quasi.T])
        columns = []
        for name, numbers in sensitive.items():
            values, codes = np.unique(numbers, return_inverse=True)
            columns.append(
                SensitiveColumn(name, codes.astype(np.int32), len(values), "ordered", numbers=values.astype(float))
            )
        return cls(matrix, tuple(columns))

    def promises(self, k: int, t: float | None) -> Promises:
        everybody = np.zeros(self.matrix.records, dtype=np.int32)
        classes = Classes(everybody, 1, None, {column.name: column for column in self.sensitive})
        asked = [KAnonymity(k)] if t is None else [KAnonymity(k), Promise(tuple(classes.sensitive), t)]
        return BoundPromises(asked, classes)


@dataclass(frozen=True)
class Result:
    """Mean class size, squared error in percent, CPU seconds."""

    size: float
    error: float
    seconds: float


def measured(method: Partitioner, table: Table, k: int, t: float | None, seed: int = 0) -> Result:
    """One run, checked; raises where a class breaks a promise before the repair."""
    promises = table.promises(k, t)
    started = time.process_time()
    partition = method.partition(table.matrix, promises, np.random.default_rng(seed))
    seconds = time.process_time() - started
    assert repair(table.matrix, partition, promises) is partition, "a class broke a promise"
    return Result(table.matrix.records / partition.count, error_percent(table.matrix, partition), seconds)


def error_percent(matrix: Matrix, partition: Partition) -> float:
    points = points_of(matrix, "deviation")
    sizes = partition.sizes()
    between = sum((np.bincount(partition.labels, weights=row) ** 2 / sizes).sum() for row in points)
    return 100 * (1 - float(between) / float((points**2).sum()))


def census(*sensitive: str) -> Table:
    frame = pl.read_csv(DATA / "casc" / "census.csv")
    return Table.of(frame.select("TAXINC", "POTHVAL").to_numpy(), {name: frame[name].to_numpy() for name in sensitive})


def invented(records: int, attributes: int) -> Table:
    """Attributes and two sensitive columns that share a hidden cause."""
    rng = np.random.default_rng(0)
    cause = rng.normal(size=records)
    quasi = np.stack([rng.normal(size=records) + cause * 0.7 / (1 + j) for j in range(attributes)], axis=1)
    pay = np.round(1e4 * (cause + 0.5 * rng.normal(size=records)))
    tax = np.round(50 * np.exp(0.6 * rng.normal(size=records) + 0.3 * cause))
    return Table.of(np.round(quasi * 1000).astype(np.int64), {"pay": pay, "tax": tax})


def cells() -> None:
    """The 24 cells, mean class size / squared error %."""
    table = census("FEDTAX", "FICA")
    print("| k | t | k-means++, least error | k-means++, smallest | k-first | ours | at most the better | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    kept = strictly = 0
    for k in KS:
        for t in TS:
            runs = [measured(TClosenessKMeansPP(), table, k, t, seed) for seed in range(RUNS)]
            by_error, by_size = min(runs, key=lambda r: r.error), min(runs, key=lambda r: (r.size, r.error))
            k_first, ours = measured(TClosenessKFirst(), table, k, t), measured(TCloseness(), table, k, t)
            size, error = min(by_size.size, k_first.size), min(by_error.error, k_first.error)
            holds = ours.size <= 1.02 * size and ours.error <= 1.02 * error
            kept += holds
            strictly += ours.size <= size and ours.error < error
            seconds = sum(run.seconds for run in runs) / RUNS
            print(
                f"| {k} | {t:.2f} | {cell(by_error)} | {cell(by_size)} | {cell(k_first)} | {cell(ours)} "
                f"| {'yes' if holds else 'NO'} | {seconds:.3f} k-means++, {ours.seconds:.2f} ours |",
                flush=True,
            )
    print(f"\n{kept} of {len(KS) * len(TS)} cells at most the better of both within 2 %, {strictly} strictly better")


def cell(result: Result) -> str:
    return f"{result.size:.1f} / {result.error:.1f}"


def single() -> None:
    """Mean class sizes for one sensitive attribute, beside t-closeness first."""
    print("\n| sensitive | k | t | t-first | ours |\n|---|---|---|---|---|")
    for name in ("FEDTAX", "FICA"):
        table = census(name)
        for k in KS:
            for t in TS:
                theirs, ours = measured(TClosenessTFirst(), table, k, t), measured(TCloseness(), table, k, t)
                print(f"| {name} | {k} | {t:.2f} | {cell(theirs)} | {cell(ours)} |", flush=True)


def times() -> None:
    """CPU seconds at 100,000 records, k = 10."""
    four, thirteen = invented(100_000, 4), invented(100_000, 13)
    small = invented(2_000, 4)
    measured(TCloseness(), small, 10, 0.1)
    measured(Mdav(), small, 10, None)
    print(
        "\n| 100,000 records, k = 10 | CPU seconds | mean class size | squared error % | asked |\n|---|---|---|---|---|"
    )
    rows = [
        ("mdav, 13 attributes", Mdav(block=0), thirteen, None, 30),
        ("tcloseness, 4 attributes, t = 0.1, exact", TCloseness(block=0), four, 0.1, 60),
        ("tcloseness, 4 attributes, t = 0.1, blocks of 4,096", TCloseness(block=4096), four, 0.1, 10),
    ]
    for name, method, table, t, asked in rows:
        r = measured(method, table, 10, t)
        print(f"| {name} | {r.seconds:.1f} | {r.size:.2f} | {r.error:.2f} | {asked} s |", flush=True)


if __name__ == "__main__":
    chosen = sys.argv[1:] or ["cells", "single", "times"]
    for part in chosen:
        {"cells": cells, "single": single, "times": times}[part]()
