"""t-closeness: 24 cells of Census beside the papers' methods, the default on Adult, and what large
tables take.

python tcloseness.py RECORDS BLOCK     one run of `tcloseness` on invented records, alone
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import adult
import numpy as np
import polars as pl
import processes
from measure import Asked, Figure, Result, settings

import shoal
from shoal.data.classes import Classes, SensitiveColumn
from shoal.data.partition import Matrix, Partition
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.promises import BoundPromises
from shoal.privacy.t_closeness import TCloseness as Promise
from shoal.protocols import Partitioner, Promises
from shoal.search.clustering import points_of
from shoal.search.segments import repair
from shoal.tables.methods.mdav import Mdav
from shoal.tables.methods.tcloseness import TClosenessByExchange as Ours
from shoal.tables.methods.tcloseness_kmeanspp import TClosenessKMeansPP
from shoal_papers.baselines.tcloseness_k_first import TClosenessKFirst
from shoal_papers.baselines.tcloseness_t_first import TClosenessTFirst

TITLE = "t-closeness"
CLAIM = (
    "Census (1,080 records): quasi-identifiers TAXINC and POTHVAL, sensitive FEDTAX and FICA, k ="
    " 5, 10, 20, 30 and t = 0.05 to 0.30, 24 cells. Mean class size and squared error of"
    " `tcloseness`, one run, beside the better of k-anonymity first and the best of 50 runs of the"
    " k-means++ paper's method, by size and by error. Large tables are invented; 2 sensitive"
    " attributes, k = 10, t = 0.1."
)
CENSUS = adult.DATA / "casc" / "census.csv"
KS = (5, 10, 20, 30)
TS = (0.05, 0.10, 0.15, 0.20, 0.25, 0.30)
RUNS = 50
JOINT_TS = (0.2, 0.3, 0.4)
WITHIN = 1.02
ONE_RUN, MDAV_SECONDS, EXACT_SECONDS, BLOCK_SECONDS = 0.1, 30.0, 60.0, 10.0
MILLION_SECONDS, MILLION_BYTES = 600.0, 2.0
LARGE, HUGE = 100_000, 1_000_000
ON_ADULT = (
    ("ordered", 10, 0.1),
    ("ordered", 10, 0.2),
    ("hierarchies", 10, 0.1),
    ("hierarchies", 10, 0.2),
)
SENSITIVE = ("capital-gain", "hours-per-week")


def measure(asked: Asked) -> Result:
    asked.say("t-closeness: 24 cells of Census")
    figures = [*_cells(asked), *_single(asked), *_jointly(asked), *_on_adult(asked), *_large(asked)]
    return Result(
        "tcloseness",
        TITLE,
        CLAIM,
        settings(
            asked,
            rows=asked.rows or LARGE,
            k=list(KS),
            t=list(TS),
            runs=RUNS,
            seed=0,
            data="Census and Adult",
        ),
        figures,
        notes=[
            (
                "Every class of every run holds k records and is within t before any repair; the"
                " benchmark fails else."
            ),
            "Every cell with all methods beside: `papers/tcloseness/README.md`.",
            (
                "Default: what a policy that asks for t and names no method gets, `tcloseness`"
                " with `aim=spans`; on Adult's 8 quasi-identifiers, sensitive"
                f" {' and '.join(SENSITIVE)}, beside rounded partition and lattice peeling, which"
                " ask t before each split."
            ),
            (
                "The million records run in a process of their own; peak memory is that of the"
                " process."
            ),
        ],
    )


def _cells(asked: Asked) -> Iterator[Figure]:
    table, runs = census("FEDTAX", "FICA", rows=asked.rows), RUNS if asked.rows is None else 2
    sizes, errors, seconds, strictly = [], [], [], 0
    for k in KS:
        for t in TS:
            found = [measured(TClosenessKMeansPP(), table, k, t, seed) for seed in range(runs)]
            k_first, ours = (
                measured(TClosenessKFirst(), table, k, t),
                measured(Ours(), table, k, t),
            )
            size = min(k_first.size, *(run.size for run in found))
            error = min(k_first.error, *(run.error for run in found))
            strictly += ours.size <= size and ours.error < error
            sizes.append(ours.size / size)
            errors.append(ours.error / error)
            seconds.append(tuple(run.seconds for run in found[1:]))
    cells = len(KS) * len(TS)
    yield Figure(
        "mean class size over the better of both, worst cell", "times", (max(sizes),), WITHIN
    )
    yield Figure(
        "squared error over the better of both, worst cell", "times", (max(errors),), WITHIN
    )
    yield Figure("squared error over the better of both, best cell", "times", (min(errors),))
    yield Figure(
        "cells that are as large or smaller and lose less",
        "cells",
        (strictly,),
        cells / 2,
        "at least",
    )
    slowest = max(seconds, key=statistics.median)
    yield Figure(
        "k-means++ paper's method on Census, a run in the slowest cell", "CPU s", slowest, ONE_RUN
    )


def _single(asked: Asked) -> Iterator[Figure]:
    for name in ("FEDTAX", "FICA"):
        table = census(name, rows=asked.rows)
        pairs = [
            (measured(Ours(), table, k, t), measured(TClosenessTFirst(), table, k, t))
            for k in KS
            for t in TS
        ]
        worst = max(ours.size / theirs.size for ours, theirs in pairs)
        yield Figure(
            f"{name} alone: mean class size over t-closeness first's, worst cell",
            "times",
            (worst,),
            1.0,
        )


def _jointly(asked: Asked) -> Iterator[Figure]:
    """What it costs to ask t of combinations of both attributes, k = 10."""
    table = census("FEDTAX", "FICA", rows=asked.rows)
    for t in JOINT_TS:
        run = measured(Ours(), table, 10, t, joint=True)
        yield Figure(f"mean class size within t = {t:g} jointly, k = 10", "records", (run.size,))
    promises = table.promises(10, 0.1)
    apart = Ours().partition(table.matrix, promises, np.random.default_rng(0))
    together = Promise(("FEDTAX", "FICA"), 1.0, joint=True).measure(table.classes(apart))
    yield Figure(
        "joint distance of a release within t = 0.1 on each alone, k = 10",
        "of 1",
        (float(together.max()),),
    )


def _on_adult(asked: Asked) -> Iterator[Figure]:
    frame = adult.records(asked.rows)
    for values, k, t in ON_ADULT:
        asked.say(f"t-closeness: Adult, {values}, k = {k}, t = {t}")
        ours, *cut = (
            _loss(frame, values, k, t, method)
            for method in (None, "rounded-partition", "lattice-peeling")
        )
        what = f"default on Adult over {values}, t = {t:g}: gcp over the better of cutting"
        yield Figure(what, "times", (ours / min(cut),), 1.0)


def _loss(frame: pl.DataFrame, values: str, k: int, t: float, method: str | None) -> float:
    content = adult.policy(adult.EIGHT, k) if values == "ordered" else adult.over_hierarchies(k)
    content["attributes"].pop("income")
    content["attributes"] |= {name: {"role": "sensitive", "type": "number"} for name in SENSITIVE}
    content["promises"].append({"model": "t-closeness", "attributes": list(SENSITIVE), "t": t})
    content |= {} if method is None else {"method": {"name": method}}
    return shoal.publish(frame, shoal.Policy.from_dict(content, base=adult.DATA)).certificate[
        "utility"
    ]["gcp"]


def _large(asked: Asked) -> Iterator[Figure]:
    records = asked.rows or LARGE
    four, thirteen, small = invented(records, 4), invented(records, 13), invented(2_000, 4)
    measured(Ours(), small, 10, 0.1)
    measured(Mdav(), small, 10, None)
    asked.say(f"t-closeness: {records:,} records")
    mdav = measured(Mdav(block=0), thirteen, 10, None)
    exact, blocks = (measured(Ours(block=block), four, 10, 0.1) for block in (0, 4096))
    yield Figure(f"mdav, {records:,} records x 13, exact", "CPU s", (mdav.seconds,), MDAV_SECONDS)
    yield Figure(
        f"tcloseness, {records:,} records x 4, exact", "CPU s", (exact.seconds,), EXACT_SECONDS
    )
    yield Figure(
        f"tcloseness, {records:,} records x 4, blocks of 4,096",
        "CPU s",
        (blocks.seconds,),
        BLOCK_SECONDS,
    )
    yield Figure("squared error in blocks over exact", "times", (blocks.error / exact.error,))
    yield Figure("mean class size in blocks over exact", "times", (blocks.size / exact.size,))
    huge = asked.rows or HUGE
    asked.say(f"t-closeness: {huge:,} records")
    used = processes.script("tcloseness.py", huge, 1 << 15)
    yield Figure(
        f"tcloseness, {huge:,} records x 4", "CPU s", (used.said["seconds"],), MILLION_SECONDS
    )
    yield Figure(
        f"its process, the table of {huge:,} records included",
        "GB",
        (used.peak / 1e9,),
        MILLION_BYTES,
    )


@dataclass(frozen=True)
class Table:
    """Quasi-identifiers, and the sensitive columns."""

    matrix: Matrix
    sensitive: tuple[SensitiveColumn, ...]

    @classmethod
    def of(cls, quasi: np.ndarray, sensitive: dict[str, np.ndarray]) -> Table:
        matrix = Matrix.from_columns(
            quasi - quasi.min(axis=0), [float(np.ptp(column)) for column in quasi.T]
        )
        columns = []
        for name, numbers in sensitive.items():
            values, codes = np.unique(numbers, return_inverse=True)
            columns.append(
                SensitiveColumn(
                    name,
                    codes.astype(np.int32),
                    len(values),
                    "ordered",
                    numbers=values.astype(float),
                )
            )
        return cls(matrix, tuple(columns))

    def promises(self, k: int, t: float | None, joint: bool = False) -> Promises:
        classes = self.classes(Partition(np.zeros(self.matrix.records, dtype=np.int32), 1))
        asked = (
            [KAnonymity(k)]
            if t is None
            else [KAnonymity(k), Promise(tuple(classes.sensitive), t, joint)]
        )
        return BoundPromises(asked, classes)

    def classes(self, partition: Partition) -> Classes:
        return Classes(
            partition.labels,
            partition.count,
            None,
            {column.name: column for column in self.sensitive},
        )


@dataclass(frozen=True)
class Run:
    """Mean class size, squared error in percent, CPU seconds."""

    size: float
    error: float
    seconds: float


def measured(
    method: Partitioner, table: Table, k: int, t: float | None, seed: int = 0, joint: bool = False
) -> Run:
    """One run, checked; raises where a class breaks a promise before the repair."""
    promises = table.promises(k, t, joint)
    started = time.process_time()
    partition = method.partition(table.matrix, promises, np.random.default_rng(seed))
    seconds = time.process_time() - started
    assert repair(table.matrix, partition, promises) is partition, "a class broke a promise"
    return Run(
        table.matrix.records / partition.count, error_percent(table.matrix, partition), seconds
    )


def error_percent(matrix: Matrix, partition: Partition) -> float:
    points = points_of(matrix, "deviation")
    sizes = partition.sizes()
    between = sum((np.bincount(partition.labels, weights=row) ** 2 / sizes).sum() for row in points)
    return 100 * (1 - float(between) / float((points**2).sum()))


def census(*sensitive: str, rows: int | None = None) -> Table:
    frame = pl.read_csv(CENSUS).head(rows or HUGE)
    return Table.of(
        frame.select("TAXINC", "POTHVAL").to_numpy(),
        {name: frame[name].to_numpy() for name in sensitive},
    )


def invented(records: int, attributes: int) -> Table:
    """Attributes and two sensitive columns that share a hidden cause."""
    rng = np.random.default_rng(0)
    cause = rng.normal(size=records)
    quasi = np.stack(
        [rng.normal(size=records) + cause * 0.7 / (1 + j) for j in range(attributes)], axis=1
    )
    pay = np.round(1e4 * (cause + 0.5 * rng.normal(size=records)))
    tax = np.round(50 * np.exp(0.6 * rng.normal(size=records) + 0.3 * cause))
    return Table.of(np.round(quasi * 1000).astype(np.int64), {"pay": pay, "tax": tax})


def one_run(records: str, block: str) -> dict[str, Any]:
    table = invented(int(records), 4)
    measured(Ours(), invented(2_000, 4), 10, 0.1)
    return vars(measured(Ours(block=int(block)), table, 10, 0.1))


if __name__ == "__main__":
    print(json.dumps(one_run(*sys.argv[1:])))
