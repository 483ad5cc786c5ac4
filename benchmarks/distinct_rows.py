"""Distinct rows: what global recoding takes on 10 million records, over what it took on each.

python distinct_rows.py ROWS REPEATS     measures in a process of its own and prints JSON
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np

TITLE = "Global recoding on distinct rows"
CLAIM = (
    "CPU seconds of a method's `cut` on the encoded table (10 million records resampled from Adult"
    " with jitter, 8 quasi-identifiers over the hierarchies that ARX ships, k = 10), one row for"
    " all records that agree, and the same over a search of the records, turn by turn."
)
ROWS = 10_000_000
K = 10
SEED = 1
MOST_SECONDS = 3.0
NAMES = ("full-domain", "datafly", "incognito", "tds")


def measure(asked: Any) -> Any:
    import processes
    from measure import ONE_THREAD, Figure, Result, ratios, settings

    rows = asked.rows or ROWS
    asked.say(f"distinct rows: searching {rows:,} records")
    found = processes.script("distinct_rows.py", rows, asked.repeats, env=ONE_THREAD).said
    figures = []
    for name, runs in found["seconds"].items():
        figures += [
            Figure(f"{name}, distinct rows", "CPU s", tuple(runs["rows"]), MOST_SECONDS),
            Figure(
                f"{name}, distinct rows over records",
                "times",
                ratios(runs["rows"], runs["records"]),
            ),
        ]
    return Result(
        "distinct_rows",
        TITLE,
        CLAIM,
        settings(asked, rows=rows, distinct=found["distinct"], k=K, seed=SEED),
        figures,
        notes=["Both found the same cut. The time to find the distinct rows is counted."],
    )


def main(rows: int, repeats: int) -> dict[str, Any]:
    import adult
    from inputs import problem

    from shoal import Policy
    from shoal.data import cores
    from shoal.search import large_tables
    from shoal.tables.methods.full_domain import FullDomain
    from shoal.tables.methods.tds import TopDownSpecialization
    from shoal_papers.baselines.datafly import Datafly
    from shoal_papers.baselines.incognito import Incognito

    methods = {one.name: one() for one in (FullDomain, Datafly, Incognito, TopDownSpecialization)}
    policy = Policy.from_dict(adult.over_hierarchies(K) | {"label": "income"}, base=adult.DATA)
    names = [name.removesuffix("-num") for name in adult.EIGHT]
    asked = problem(adult.resampled(rows, columns=[*names, "income"]), policy)
    label = np.random.default_rng(SEED).integers(0, 2, rows).astype(np.int32)
    matrix = replace(asked.matrix, label=label)
    ways = {"rows": large_tables.WORTHWHILE, "records": 1 << 60}
    seconds: dict[str, Any] = {name: {way: [] for way in ways} for name in NAMES}
    for turn in range(repeats + 1):
        for name in NAMES:
            cuts = []
            for way, worthwhile in ways.items():
                large_tables.WORTHWHILE = worthwhile
                with cores.using(1):
                    begun = time.process_time()
                    cuts.append(methods[name].cut(matrix, asked.promises, np.random.default_rng(0)))
                    spent = time.process_time() - begun
                if turn:  # the first turn compiles
                    seconds[name][way].append(spent)
            one, other = cuts
            if not all(map(np.array_equal, one.starts, other.starts)):
                raise SystemExit(f"{name}: another cut on rows than on records")
    large_tables.WORTHWHILE = ways["rows"]
    found = large_tables.distinct_rows_of(matrix)
    return {"seconds": seconds, "distinct": rows if found is None else found[0].records}


if __name__ == "__main__":
    print(json.dumps(main(*(int(argument) for argument in sys.argv[1:]))))
