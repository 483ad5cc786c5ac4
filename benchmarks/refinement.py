"""Refinement: what methods lose as they are given more time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import adult
import numpy as np
import polars as pl
from inputs import Problem, problem
from measure import Asked, Figure, Result, settings

import shoal
from shoal.algorithms.steps.segments import loss_of

TITLE = "Refinement"
CLAIM = (
    "Information loss (mean width of published cells, in %) and CPU seconds of the method alone,"
    " for every effort of `refine`; thorough with 10 seconds asked for."
)
KS = (5, 10, 50, 100)
METHODS = ("rounded-partition", "lattice-peeling")
THOROUGH = {"refine": "thorough", "seconds": 10}
EFFORTS: dict[str, dict[str, Any]] = {
    "none": {"refine": "none"},
    "light": {"refine": "light"},
    "exchange": {"refine": "exchange"},
    "full": {"refine": "full"},
    "thorough": THOROUGH,
}
# what the default has to reach on Adult
AIMS = {
    "Adult, ordered": {5: 2.66, 10: 4.63, 50: 10.8, 100: 14.25},
    "Adult, hierarchies": {5: 4.93, 10: 7.33, 50: 14.42, 100: 18.7},
}


@dataclass(frozen=True)
class Data:
    """A table and its quasi-identifiers; `hierarchies` are ARX's."""

    name: str
    frame: pl.DataFrame
    hierarchies: bool = False

    def policy(self, k: int) -> dict[str, Any]:
        if self.hierarchies:
            return adult.over_hierarchies(k)
        if self.name.startswith("Adult"):
            return adult.policy(adult.EIGHT, k)
        quasi: dict[str, Any] = {
            name: {"role": "quasi", "type": "number"}
            if dtype.is_numeric()
            else {"role": "quasi", "order": "frequency"}
            for name, dtype in self.frame.schema.items()
        }
        promises = [{"model": "k-anonymity", "k": k}]
        return {"version": 1, "attributes": quasi, "promises": promises, "other": "drop"}


def tables(rows: int | None) -> Iterator[Data]:
    frame = adult.records(rows)
    yield Data("Adult, ordered", frame)
    yield Data("Adult, hierarchies", frame, hierarchies=True)
    folder = adult.DATA
    for name, path, columns in OTHERS:
        if (folder / path).is_file():
            read = pl.read_csv(folder / path, columns=columns, has_header=columns != CENSUS)
            yield Data(name, read.drop_nulls().head(rows or read.height))


CENSUS = ["column_1", "column_5", "column_8", "column_9", "column_11", "column_13", "column_25"]
OTHERS: tuple[tuple[str, str, list[str] | None], ...] = (
    ("Census (CASC)", "casc/census.csv", None),
    ("Census income", "census_income_kdd/census-income.data.gz", CENSUS),
    (
        "Diabetes-130",
        "diabetes130/diabetic_data.csv.gz",
        ["race", "gender", "age", "time_in_hospital", "num_lab_procedures", "num_medications"],
    ),
    (
        "Taxi",
        "taxi/taxis.csv.gz",
        ["passengers", "distance", "pickup_borough", "dropoff_borough", "payment"],
    ),
)


def measure(asked: Asked) -> Result:
    found = Result(
        "refinement",
        TITLE,
        CLAIM,
        settings(asked, rows=asked.rows or "all", k=list(KS), seed=0),
        notes=[
            "Numbers over their range, categories ordered by frequency; hierarchies: ARX's files.",
            "A thorough search turns its seconds into steps by fixed rates: where cores are shared"
            " or slow it takes longer.",
        ],
    )
    for data in tables(asked.rows):
        for k in KS:
            if data.frame.height < 2 * k:
                continue
            asked.say(f"refinement: {data.name}, k = {k}")
            policy = shoal.Policy.from_dict(data.policy(k), base=adult.DATA)
            given = problem(data.frame, policy)
            losses = {}
            for method in METHODS:
                for effort, parameters in EFFORTS.items():
                    if effort == "thorough" and not data.name.startswith("Adult"):
                        continue  # takes what it is given; shown where the aims are
                    loss, seconds = _run(given, policy.with_method(method, parameters))
                    losses[method, effort] = loss
                    what = f"{data.name}, k = {k}, {method}, refine={effort}"
                    found.figures += [
                        Figure(what, "%", (loss,)),
                        Figure(what, "CPU s", (seconds,)),
                    ]
            found.figures += _of_default(data.name, k, given, min(_but_thorough(losses)))
    return found


def _run(given: Problem, policy: shoal.Policy) -> tuple[float, float]:
    """What the method loses, in %, and the CPU seconds it took."""
    chosen = policy.build_method("publish")
    begun = time.process_time()
    made = chosen.partition(given.matrix, given.promises, np.random.default_rng(0))
    seconds = time.process_time() - begun
    cells = given.matrix.records * given.matrix.attributes
    return 100 * loss_of(given.matrix, made) / cells, seconds


def _but_thorough(losses: dict[tuple[str, str], float]) -> list[float]:
    return [loss for (_, effort), loss in losses.items() if effort != "thorough"]


def _of_default(name: str, k: int, given: Problem, least: float) -> Iterator[Figure]:
    loss, seconds = _run(given, given.policy)
    chosen = given.policy.method_name
    yield Figure(f"{name}, k = {k}, default ({chosen})", "%", (loss,), AIMS.get(name, {}).get(k))
    yield Figure(f"{name}, k = {k}, default ({chosen})", "CPU s", (seconds,))
    yield Figure(f"{name}, k = {k}, default against the least", "times", (loss / least,), 1.02)
