"""Homogeneity: classes whose people all share a sensitive value, or values that are much alike.

Machanavajjhala and others. l-Diversity: privacy beyond k-anonymity. ICDE 2006.
"""

from dataclasses import dataclass
from math import exp
from typing import ClassVar

import numpy as np

from shoal.attacks.counts import ClassValues, class_values, counted, exact, people_in
from shoal.data.attack_scene import AttackScene, Findings, ShownRelease
from shoal.data.classes import SensitiveColumn, pairs_of
from shoal.data.numbers import weighted_sum
from shoal.protocols import Attack

NOTHING_ALIKE = "no hierarchy or number says which of its values are similar"
ALIKE = 0.05  # of the released range: numbers within it tell nearly the same


@dataclass(frozen=True)
class Homogeneity(Attack):
    """How many people stand in a class of one value, and how many would by chance."""

    name: ClassVar[str] = "homogeneity"
    number: ClassVar[int] = 9
    uses_people: ClassVar[bool] = False

    def run(self, scene: AttackScene) -> Findings:
        """Every sensitive attribute by name; all exact."""
        return {name: _attribute(scene, name) for name in scene.release.sensitive}


def _attribute(scene: AttackScene, name: str) -> Findings:
    release = scene.release
    counts = class_values(release, name)
    n = people_in(release)
    if not n:
        return {"people": None, "similar": None, "chance": None, "why": "no class"}
    alone = counts.distinct() == 1
    alike = _alike(counts, release.sensitive[name])
    similar: Findings = {"similar": None, "why": NOTHING_ALIKE}
    if alike is not None:
        similar = {"similar": counted(people_in(release, alike[release.labels]), n)}
    return {
        "people": counted(people_in(release, alone[release.labels]), n),
        **similar,
        "classes": int(alone.sum()),
        "chance": exact(_chance(release, counts), n),
    }


def _alike(counts: ClassValues, column: SensitiveColumn) -> np.ndarray | None:
    """(classes,) bool, values under a node below the root, or near; None if nothing says so."""
    starts = counts.starts
    least, greatest = counts.values[starts[:-1]], counts.values[starts[1:] - 1]
    if column.hierarchy is not None:
        tree = column.hierarchy
        return (least == greatest) | (tree.covering(least, greatest) != tree.root)
    if column.numbers is None:
        return None
    lo, hi = column.numbers[least], column.numbers[greatest]
    real = column.numbers[: len(counts.totals)]
    occurs = np.isfinite(real) & (counts.totals[: len(real)] > 0)
    span = np.ptp(real[occurs]) if occurs.any() else 0.0
    with np.errstate(invalid="ignore"):
        return (least == greatest) | (hi - lo <= ALIKE * span * (1 + 1e-9))


def _chance(release: ShownRelease, counts: ClassValues) -> float:
    """Share of people in a class of one value if values were dealt out at random.

    Who is in several classes escapes only where each of them holds more values.
    """
    n = int(counts.totals.sum())
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    sizes, of_class = np.unique(counts.people, return_inverse=True)
    one = np.array([_chance_of(size, counts.totals, logs) for size in sizes.tolist()])
    of_class = one[of_class]
    if release.subjects is None:
        return weighted_sum(counts.people, of_class) / int(counts.people.sum())
    kept = release.labels >= 0
    people, classes, _ = pairs_of(release.subjects[kept], release.labels[kept])
    escapes = np.ones(int(people.max()) + 1)
    np.multiply.at(escapes, people, 1 - of_class[classes])
    return float((1 - escapes).sum() / people_in(release))


def _chance_of(size: int, totals: np.ndarray, logs: np.ndarray) -> float:
    """The chance that this number of people, drawn from all, have one value."""
    n = len(logs) - 1
    enough = totals[totals >= size]
    if size > n or not len(enough):
        return 0.0
    chances = logs[enough] - logs[enough - size] - logs[n] + logs[n - size]
    return min(sum(exp(chance) for chance in chances.tolist()), 1.0)
