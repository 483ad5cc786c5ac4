"""Adult as the table papers use it: eight quasi-identifiers, categories in a declared order.

A setting names method, parameters, k, the order of categories and an attribute to leave out. With
`copies`, the table is repeated so often, and only time is taken. A quick run takes invented
patients instead, so that it needs no data.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from shoal.data.table import Table
from shoal.policy.policy import Policy
from shoal.samples import patients
from shoal_papers.reproduce.data_sets import adult
from shoal_papers.reproduce.one_table import OneTable
from shoal_papers.reproduce.paper import DataSet, Setting

QUASI = (
    "age",
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "race",
    "sex",
    "native-country",
)
CLASS = "income"
REPEATS = 5
QUICK_RECORDS = 503


@dataclass(frozen=True)
class TableBench:
    """Publishes the table under each setting; tables with another order or fewer attributes are
    made once.
    """

    data: DataSet
    frame: pl.DataFrame
    schooling: tuple[str, ...]
    label: str
    repeats: int
    _tables: dict[tuple[str, str, int], OneTable] = field(
        default_factory=dict, repr=False, compare=False
    )

    def measure(self, setting: Setting) -> dict[str, Any]:
        asked = (setting["order"], setting.get("without", ""), setting.get("copies", 1))
        if asked not in self._tables:
            self._tables[asked] = self._table(*asked)
        parameters = dict(pair.split("=") for pair in setting["parameters"].split(","))
        table = self._tables[asked]
        measure = table.measure_time if "copies" in setting else table.measure
        return measure(setting["k"], setting["method"], parameters, self.repeats)

    def _table(self, order: str, without: str, copies: int) -> OneTable:
        frame = self.frame.drop(without) if without else self.frame
        frame = pl.concat([frame] * copies)
        attributes: dict[str, Any] = {name: self._attribute(name, order) for name in frame.columns}
        policy = {
            "version": 1,
            "attributes": attributes,
            "promises": [{"model": "k-anonymity", "k": 2}],
            "label": self.label,
            "missing": "reject",
        }
        return OneTable(Table(frame), Policy.from_dict(policy))

    def _attribute(self, name: str, order: str) -> dict[str, Any]:
        if name == self.label:
            return {"role": "plain"}
        if name == "age":
            return {"role": "quasi", "type": "number"}
        if name == "education":
            return {"role": "quasi", "type": "ordinal", "order": list(self.schooling)}
        if order == "first-seen":
            seen = self.frame[name].unique(maintain_order=True).to_list()
            return {"role": "quasi", "type": "ordinal", "order": seen}
        return {"role": "quasi", "type": "ordinal", "order": order}


def bench(data: Path | None, quick: bool) -> TableBench:
    """Adult; the bundled generator for a quick run."""
    if quick:
        return _generated()
    frame, source = adult(data)
    schooling = (
        frame.select("education", pl.col("education-num").cast(pl.Int32))
        .unique()
        .sort("education-num")
    )
    return TableBench(
        source, frame.select(*QUASI, CLASS), tuple(schooling["education"]), CLASS, REPEATS
    )


def _generated() -> TableBench:
    visits = patients.generate(QUICK_RECORDS * 2, seed=7).unique(
        "patient", keep="first", maintain_order=True
    )
    frame = (
        visits.select("age", "sex", "zip", "education", "ward", "disease")
        .head(QUICK_RECORDS)
        .cast(pl.String)
    )
    text = io.BytesIO()
    frame.write_csv(text)
    digest = hashlib.sha256(text.getvalue()).hexdigest()
    source = DataSet(
        "invented patients (shoal sample patients), one visit each", frame.height, digest
    )
    return TableBench(source, frame, patients.EDUCATION, "disease", repeats=2)
