"""The tables of the benchmark `refinement`, and how each is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import adult
import polars as pl

KS = (5, 10, 50, 100)
# columns of a file without names, counted from 0: class of worker, wage, major industry, major
# occupation, Hispanic origin, union, change of metropolitan area
CENSUS = ["column_1", "column_5", "column_8", "column_9", "column_11", "column_13", "column_25"]
OTHERS: tuple[tuple[str, str, list[str] | None], ...] = (
    ("Census (CASC)", "casc/census.csv", None),
    (
        "Taxi",
        "taxi/taxis.csv.gz",
        ["passengers", "distance", "pickup_borough", "dropoff_borough", "payment"],
    ),
    (
        "Diabetes-130",
        "diabetes130/diabetic_data.csv.gz",
        ["race", "gender", "age", "time_in_hospital", "num_lab_procedures", "num_medications"],
    ),
    ("Census income", "census_income_kdd/census-income.data.gz", CENSUS),
)


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
    """Adult twice, then every other table whose file is there."""
    frame = adult.records(rows)
    yield Data("Adult, ordered", frame)
    yield Data("Adult, hierarchies", frame, hierarchies=True)
    for name, path, columns in OTHERS:
        if (adult.DATA / path).is_file():
            read = pl.read_csv(adult.DATA / path, columns=columns, has_header=columns is not CENSUS)
            yield Data(name, read.drop_nulls().head(rows or read.height))
