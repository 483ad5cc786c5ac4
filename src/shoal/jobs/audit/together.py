"""All quasi-identifiers together, where promises are about some of them each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from shoal.data.classes import Classes
from shoal.data.people import Unit
from shoal.data.release import Release
from shoal.data.warnings import TOGETHER_BELOW, ReleaseWarning


def together(release: Release) -> dict[str, Any]:
    """How many people are alike in every quasi-identifier, as a certificate states it.

    asked: the largest k that is asked over any of them. alone, below: people in a class of one
    person, and of fewer than asked.
    """
    classes, asked = release.classes, release.required_k
    people = classes.people()
    occupied = people[people > 0]
    return {
        "attributes": [column.name for column in release.columns],
        "asked": asked,
        "min": int(occupied.min()) if len(occupied) else None,
        "alone": _people_in(classes, people == 1),
        "below": None if asked is None else _people_in(classes, people < asked),
        "people": _people_in(classes, people > 0),
    }


def _people_in(classes: Classes, chosen: np.ndarray) -> int:
    """Distinct people of these classes. chosen: (count,) bool."""
    if classes.subjects is None:
        return int(classes.sizes[chosen].sum())
    if not chosen.any():
        return 0
    rows = np.append(chosen, False)[classes.labels]  # the last place takes what is in no class
    return int(np.count_nonzero(np.bincount(classes.subjects[rows])))


def is_below(certificate: Mapping[str, Any]) -> bool:
    """Whether somebody hides among fewer than asked once all quasi-identifiers are known."""
    found = certificate.get("together") or {}
    asked, least = found.get("asked"), found.get("min")
    return asked is not None and least is not None and least < asked


def together_below(certificate: Mapping[str, Any], unit: Unit) -> ReleaseWarning:
    """What to say where every promise holds and `is_below`."""
    found, sizes = certificate["together"], certificate["classes"]
    few, what = found["alone"], "alone"
    if not few:
        few, what = found["below"], f"in groups of fewer than k = {found['asked']}"
    text = (
        "Every promise holds on its own columns. All quasi-identifiers together"
        f" ({', '.join(found['attributes'])}): groups of {sizes['min']} to {sizes['max']}"
        f" {unit.of(sizes['max'])}, {few} of {found['people']} {what}; whoever knows them all can"
        " pick these out"
    )
    return ReleaseWarning(TOGETHER_BELOW, text)
