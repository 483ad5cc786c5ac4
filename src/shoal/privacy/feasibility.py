"""Which promises no release of a table can keep, and the nearest that one could."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from shoal.data.classes import Classes
from shoal.protocols import PrivacyModel


def nearest_feasible(
    models: Sequence[PrivacyModel], classes: Classes, population: Mapping[str, int] | None = None
) -> list[str]:
    """A finding for every promise that fails when the whole table is one class; empty if all hold.

    All records that are in a class of `classes` are put into one. A monotone promise that fails
    there fails in every other way to divide the same people, too. No finding names a value of the
    data.
    population: how many people each table of a population has, where that is known.
    """
    labels = np.where(classes.labels >= 0, np.int32(0), np.int32(-1))
    whole_table = replace(classes, labels=labels, count=1, quasi={})
    findings: list[str] = []
    for model in models:
        if model.population:
            # who would fit the one class is not known here, but the population bounds it
            people = (population or {}).get(model.population)
            findings += model.nearest_among(people) if people is not None else []
        elif model.monotone and not model.holds(whole_table)[0]:
            findings += model.nearest(whole_table) or [
                f"promise '{model.model}': fails even with everybody in one class; relax it"
            ]
    return findings
