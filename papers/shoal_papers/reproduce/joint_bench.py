"""What t-closeness of two sensitive attributes leaves open about both together, by an attack.

Somebody knows a person's class, and in which quarter of the table one attribute (FEDTAX) of theirs
lies. Of the rows of the class in that quarter, the share with the other (FICA) above its median is
the attacker's belief. `sure`: the share of people for whom it is 0 or 1. `gain`: how far it is from
the share in the whole table's quarter, on average. The control puts the same people into classes of
the same sizes at random: what small classes alone give away.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.measure import measure
from shoal.data.table import Table
from shoal.errors import PromiseError
from shoal.policy.binding.table import BoundTable, bound_table
from shoal.policy.policy import Policy
from shoal.privacy.promises import BoundPromises
from shoal.privacy.t_closeness import TCloseness
from shoal.recoding.recode import recode
from shoal.search.segments import repair
from shoal_papers.reproduce.closeness_bench import QUASI, SENSITIVE, invented
from shoal_papers.reproduce.data_sets import census
from shoal_papers.reproduce.paper import DataSet, Setting

KNOWN, GUESSED = SENSITIVE
CONTROLS = 20
QUICK_RECORDS = 240


@dataclass(frozen=True)
class JointBench:
    """Publishes one table under each setting, and attacks what was published."""

    data: DataSet
    table: Table

    def measure(self, setting: Setting) -> dict[str, Any]:
        policy = policy_of(setting)
        matrix, whole_table = self._bound.method_input()
        promises = BoundPromises(policy.build_promises(), whole_table)
        started = time.process_time()
        made = policy.build_method("publish").partition(
            matrix, promises, np.random.default_rng(setting["seed"])
        )
        made = repair(matrix, made, promises)
        seconds = time.process_time() - started
        bound = replace(self._bound, asked=self._bound.asked.again(policy))
        recoded = recode(self.table, bound, made)
        measured = measure(Table(recoded.frame), bound.asked, recoded.truth)
        certificate, release = measured.certificate, measured.release
        if not certificate.holds:
            raise PromiseError("tcloseness: its release breaks a promise; nothing is measured")
        together = TCloseness(attributes=SENSITIVE, t=1.0, joint=True)
        labels = release.classes.labels.astype(np.int64)
        found = attacked(labels, *self._values)
        control = _control(labels, *self._values, setting["seed"])
        return {
            "mean_size": round(certificate["classes"]["mean"], 4),
            "gcp": certificate["utility"]["gcp"],
            "joint": together.report(together.extended(release.classes))["measured"],
            "sure": found[0],
            "gain": found[1],
            "sure_by_chance": control[0],
            "gain_by_chance": control[1],
            "sure_above": found[0] - control[0],
            "gain_above": found[1] - control[1],
            "seconds": round(seconds, 2),
        }

    @cached_property
    def _bound(self) -> BoundTable:
        return bound_table(self.table, policy_of({"k": 2, "t": 1.0, "asked": "marginal"}))

    @cached_property
    def _values(self) -> tuple[np.ndarray, np.ndarray]:
        """(n,) the quarter of what is known, and whether what is guessed is above its median."""
        known, guessed = (
            self.table.frame[name].cast(pl.Float64).to_numpy() for name in (KNOWN, GUESSED)
        )
        quarter = np.searchsorted(np.quantile(known, [0.25, 0.5, 0.75]), known)
        return quarter, guessed > np.median(guessed)


def policy_of(setting: Setting) -> Policy:
    """k-anonymity and t-closeness of both attributes: of each (`marginal`) or of both (`joint`)."""
    attributes: dict[str, Any] = {name: {"role": "quasi", "type": "number"} for name in QUASI}
    attributes |= {name: {"role": "sensitive", "type": "number"} for name in SENSITIVE}
    close = {"model": "t-closeness", "attributes": list(SENSITIVE), "t": setting["t"]}
    if setting["asked"] == "joint":
        close["joint"] = True
    return Policy.from_dict(
        {
            "version": 1,
            "attributes": attributes,
            "promises": [{"model": "k-anonymity", "k": setting["k"]}, close],
            "method": {"name": "tcloseness"},
            "render": {"order": "input"},
        }
    )


def attacked(labels: np.ndarray, quarter: np.ndarray, above: np.ndarray) -> tuple[float, float]:
    """`sure` and `gain` of classes; labels: (n,) class of each person."""
    cell = np.unique(labels * 4 + quarter, return_inverse=True)[1].reshape(-1)
    share = np.bincount(cell, weights=above)[cell] / np.bincount(cell)[cell]
    whole = np.bincount(quarter, weights=above)[quarter] / np.bincount(quarter)[quarter]
    return float(((share == 0) | (share == 1)).mean()), float(np.abs(share - whole).mean())


def _control(
    labels: np.ndarray, quarter: np.ndarray, above: np.ndarray, seed: int
) -> tuple[float, float]:
    """The same of classes of the same sizes, at random; mean of many."""
    rng = np.random.default_rng([seed, 1])
    found = [attacked(rng.permutation(labels), quarter, above) for _ in range(CONTROLS)]
    sure, gain = np.mean(found, axis=0).tolist()
    return sure, gain


def bench(data: Path | None, quick: bool) -> JointBench:
    """Census, two quasi-identifiers and two sensitive attributes; invented numbers for a quick
    run.
    """
    if quick:
        return JointBench(*invented(QUICK_RECORDS))
    frame, source = census(data)
    return JointBench(source, Table(frame.select(*QUASI, *SENSITIVE)))
