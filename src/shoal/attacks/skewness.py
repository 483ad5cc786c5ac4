"""Skewness: a sensitive value that is far more frequent in a class than in the release.

Li, Li, Venkatasubramanian. t-Closeness. ICDE 2007; Cao, Karras. Publishing microdata with a robust
privacy guarantee. PVLDB 5(11), 2012.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.attacks.counts import class_values, counted, people_in
from shoal.data.attack_scene import AttackScene, Findings
from shoal.data.classes import people_with
from shoal.protocols import Attack

LIFTED = 10  # times as frequent in the class as in the release
SUPPORTED = 2  # people who have the value


@dataclass(frozen=True)
class Skewness(Attack):
    """How many times as frequent a value is in a class as in the whole release."""

    name: ClassVar[str] = "skewness"
    number: ClassVar[int] = 4
    uses_people: ClassVar[bool] = False

    def run(self, scene: AttackScene) -> Findings:
        """Every sensitive attribute by name; all exact."""
        return {name: _attribute(scene, name) for name in scene.release.sensitive}


def _attribute(scene: AttackScene, name: str) -> Findings:
    release = scene.release
    counts = class_values(release, name)
    kept = release.labels >= 0
    n = len(np.unique(release.persons[kept]))
    if not n:
        return {"max": None, "supported": None, "median": None, "lifted": None, "why": "no class"}
    present, people = people_with(release.sensitive[name].codes[kept], release.persons[kept])
    own, whole = counts.people[counts.classes], people[np.searchsorted(present, counts.values)]
    lifts = (counts.counts * n) / (own * whole)
    greatest = np.zeros(len(counts.people))
    np.maximum.at(greatest, counts.classes, lifts)
    # compared exactly, in whole numbers
    lifted = counts.counts * n >= LIFTED * own * whole
    supported = lifts[counts.counts >= SUPPORTED]
    size = len(counts.totals)
    shown = release.labels.astype(np.int64) * size + release.sensitive[name].codes
    own_value = np.isin(shown, (counts.classes * size + counts.values)[lifted])
    return {
        "max": float(lifts.max()),
        "supported": float(supported.max()) if len(supported) else None,
        "median": float(np.median(greatest)),
        "lifted": counted(people_in(release, own_value), people_in(release)),
    }
