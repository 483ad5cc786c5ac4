"""A table published under k-anonymity and t-closeness of two sensitive attributes, again and again.

A setting names method, parameters, k and t. A method that draws random numbers runs once for every
seed; the run of least squared error counts, as measured by the auditor on what it publishes, and
beside it the run of smallest classes. A quick run takes invented numbers instead of Census, so that
it needs no data.
"""

from __future__ import annotations

import hashlib
import io
import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.measure import measure
from shoal.data.certificate import Certificate
from shoal.data.classes import Classes
from shoal.data.partition import Matrix, Partition
from shoal.data.table import Table
from shoal.errors import PromiseError
from shoal.policy.binding.table import BoundTable, bound_table
from shoal.policy.policy import Policy
from shoal.privacy.promises import BoundPromises
from shoal.recoding.recode import recode
from shoal.search.clustering import points_of
from shoal.search.segments import repair
from shoal.tables.methods.tcloseness_kmeanspp import squared_error
from shoal_papers.reproduce.data_sets import census
from shoal_papers.reproduce.one_table import spread_of
from shoal_papers.reproduce.paper import DataSet, Setting

QUASI, SENSITIVE = ("TAXINC", "POTHVAL"), ("FEDTAX", "FICA")
RUNS = 50
QUICK_RECORDS, QUICK_RUNS = 301, 2


@dataclass(frozen=True)
class ClosenessBench:
    """Publishes one table under each setting. runs: how often a method that draws random numbers
    runs.
    """

    data: DataSet
    table: Table
    runs: int
    _warm: set[str] = field(default_factory=set, repr=False, compare=False)

    def measure(self, setting: Setting) -> dict[str, Any]:
        policy = self._policy(setting)
        bound = BoundPromises(policy.build_promises(), self._input[1])
        if setting["method"] not in self._warm:
            # compiles, so that nothing compiles while time is taken
            self._partition(policy, bound, 0)
            self._warm.add(setting["method"])
        found, seconds = [], []
        for seed in range(self.runs if setting["seeds"] == "many" else 1):
            started = time.process_time()
            found.append(self._partition(policy, bound, seed))
            seconds.append(time.process_time() - started)
        points = points_of(self._matrix, "deviation")
        errors = [squared_error(points, partition) for partition in found]
        best = min(range(len(found)), key=errors.__getitem__)
        smallest = min(range(len(found)), key=lambda i: (-found[i].count, errors[i]))
        middle = sorted(range(len(found)), key=errors.__getitem__)[len(found) // 2]
        return {
            **self._measured(found[best], policy),
            **{
                f"{name}_smallest": value
                for name, value in self._measured(found[smallest], policy).items()
            },
            **{
                f"{name}_middle": value
                for name, value in self._measured(found[middle], policy).items()
            },
            **spread_of(seconds),
        }

    def _partition(self, policy: Policy, promises: BoundPromises, seed: int) -> Partition:
        made = policy.build_method("publish").partition(
            self._matrix, promises, np.random.default_rng(seed)
        )
        return repair(self._matrix, made, promises)

    def _measured(self, partition: Partition, policy: Policy) -> dict[str, Any]:
        """What the auditor finds on the published cells; raises PromiseError where a promise is
        broken.
        """
        bound = replace(self._bound, asked=self._bound.asked.again(policy))
        recoded = recode(self.table, bound, partition)
        certificate = measure(Table(recoded.frame), bound.asked, recoded.truth).certificate
        if not certificate.holds:
            raise PromiseError(
                f"method '{policy.method_name}': its release breaks a promise; nothing is measured"
            )
        return _figures(certificate)

    def _policy(self, setting: Setting) -> Policy:
        attributes: dict[str, Any] = {name: {"role": "quasi", "type": "number"} for name in QUASI}
        attributes |= {name: {"role": "sensitive", "type": "number"} for name in SENSITIVE}
        parameters = dict(pair.split("=") for pair in setting["parameters"].split(",") if pair)
        return Policy.from_dict(
            {
                "version": 1,
                "attributes": attributes,
                "promises": [
                    {"model": "k-anonymity", "k": setting["k"]},
                    {"model": "t-closeness", "attributes": list(SENSITIVE), "t": setting["t"]},
                ],
                "method": {"name": setting["method"], **parameters},
            }
        )

    @cached_property
    def _bound(self) -> BoundTable:
        return bound_table(
            self.table, self._policy({"method": "mdav", "parameters": "", "k": 2, "t": 1.0})
        )

    @cached_property
    def _input(self) -> tuple[Matrix, Classes]:
        return self._bound.method_input()

    @property
    def _matrix(self) -> Matrix:
        return self._input[0]


def _figures(certificate: Certificate) -> dict[str, Any]:
    classes, utility = certificate["classes"], certificate["utility"]
    return {
        "least_size": classes["min"],
        "mean_size": round(classes["mean"], 4),
        "closeness": certificate["promises"][1]["measured"],
        "il": utility["generalized_loss"] * certificate["records"]["out"] * len(QUASI),
        "sse": utility["squared_error"],
        "sse_percent": utility["information_loss_percent"],
    }


def bench(data: Path | None, quick: bool) -> ClosenessBench:
    """Census, two quasi-identifiers and two sensitive attributes; invented numbers for a
    quick run.
    """
    if quick:
        return ClosenessBench(*invented(QUICK_RECORDS), QUICK_RUNS)
    frame, source = census(data)
    return ClosenessBench(source, Table(frame.select(*QUASI, *SENSITIVE)), RUNS)


def invented(records: int) -> tuple[DataSet, Table]:
    """Numbers that share a hidden cause, as taxes and incomes do."""
    rng = np.random.default_rng(7)
    cause = rng.normal(size=(records, 1))
    numbers = np.rint(
        1e4 * np.exp(cause * [1.0, 0.2, 1.0, 0.6] + 0.3 * rng.normal(size=(records, 4)))
    )
    frame = pl.DataFrame(numbers.astype(np.int64), schema=[*QUASI, *SENSITIVE]).cast(pl.String)
    text = io.BytesIO()
    frame.write_csv(text)
    source = DataSet("invented numbers", frame.height, hashlib.sha256(text.getvalue()).hexdigest())
    return source, Table(frame)
