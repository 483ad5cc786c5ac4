"""Homogeneity: classes whose people all share a sensitive value, or values that are much alike."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import Any, ClassVar

import numpy as np

from shoal.attacks.counts import ClassValues, class_values
from shoal.attacks.intervals import counted, exact
from shoal.data.attack_scene import AttackScene
from shoal.data.classes import SensitiveColumn
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.protocols import Attack

ALIKE = 0.05  # of the released range: numbers within it tell nearly the same


@dataclass(frozen=True)
class Homogeneity(Attack):
    """How many people stand in a class of one value, and how many would by chance."""

    name: ClassVar[str] = "homogeneity"
    number: ClassVar[int] = 9
    needs: ClassVar[tuple[str, ...]] = ()
    threat: ClassVar[str] = (
        "Finds the class of a person: if everybody in it has the same value, it is theirs."
    )
    source: ClassVar[str] = (
        "Machanavajjhala and others. l-Diversity: privacy beyond k-anonymity. ICDE 2006."
    )

    def run(self, scene: AttackScene) -> dict[str, Any]:
        """Every sensitive attribute by name; all exact."""
        return {name: _attribute(scene, name) for name in scene.release.sensitive}


def _attribute(scene: AttackScene, name: str) -> dict[str, Any]:
    counts = class_values(scene.release, name)
    n = counts.everybody
    if not n:
        return {"people": None, "similar": None, "chance": None, "why": "no class"}
    alone = counts.distinct() == 1
    alike = _alike(counts, scene.release.sensitive[name])
    return {
        "people": counted(int(counts.people[alone].sum()), n),
        "similar": None if alike is None else counted(int(counts.people[alike].sum()), n),
        "classes": int(alone.sum()),
        "chance": exact(_chance(counts), n),
    }


def _alike(counts: ClassValues, column: SensitiveColumn) -> np.ndarray | None:
    """(classes,) bool, values under one node below the root, or within a part of the range; None
    where nothing says which values are alike.
    """
    starts = counts.starts
    least, greatest = counts.values[starts[:-1]], counts.values[starts[1:] - 1]
    if column.hierarchy is not None:
        return _under_one_node(column.hierarchy, least, greatest)
    if column.numbers is None:
        return None
    lo, hi = column.numbers[least], column.numbers[greatest]
    real = column.numbers[: len(counts.totals)]
    occurs = np.isfinite(real) & (counts.totals[: len(real)] > 0)
    span = np.ptp(real[occurs]) if occurs.any() else 0.0
    with np.errstate(invalid="ignore"):
        return (least == greatest) | (hi - lo <= ALIKE * span * (1 + 1e-9))


def _under_one_node(tree: Hierarchy, least: np.ndarray, greatest: np.ndarray) -> np.ndarray:
    return (least == greatest) | (tree.covering(least, greatest) != tree.root)


def _chance(counts: ClassValues) -> float:
    """Share of people in a class of one value if values were dealt out at random."""
    n = int(counts.totals.sum())
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    sizes, times = np.unique(counts.people, return_counts=True)
    found = 0.0
    for size, many in zip(sizes.tolist(), times.tolist(), strict=True):
        enough = counts.totals[counts.totals >= size]
        if size > n or not len(enough):
            continue
        chances = logs[enough] - logs[enough - size] - logs[n] + logs[n - size]
        found += many * size * sum(exp(chance) for chance in chances.tolist())
    return found / counts.everybody
