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
    """A finding for every promise that fails with everybody in one class; empty where all hold.

    Everybody who is in a class of `classes` is put into one. A monotone promise that fails there
    fails in every other way to divide the same people, too. No finding names a value of the data.
    population: how many people each table of a population has, where that is known.
    """
    whole_table = replace(classes, labels=np.where(classes.labels >= 0, 0, -1), count=1, quasi={})
    findings: list[str] = []
    for model in models:
        if getattr(model, "population", ""):
            # who would fit everybody's class is not known here, but nobody beyond the whole
            # population
            people = (population or {}).get(getattr(model, "population", ""))
            within = getattr(model, "nearest_among", None)
            findings += within(people) if within is not None and people is not None else []
            continue
        if model.monotone and not model.holds(whole_table)[0]:
            reasons: list[str] = getattr(model, "nearest", lambda _: [])(whole_table)
            findings += reasons or [
                f"promise '{model.model}': fails even with everybody in one class; relax it"
            ]
    return findings
