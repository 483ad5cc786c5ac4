"""Minimality: what a release tells because its method made nothing coarser than it had to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shoal.attacks.counts import people_with
from shoal.attacks.intervals import counted
from shoal.attacks.optimality import optimality
from shoal.attacks.replay import replay
from shoal.data.attack_scene import AttackScene
from shoal.data.boxes import Boxes
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.protocols import Attack


@dataclass(frozen=True)
class Minimality(Attack):
    """What tight cells, an optimal level or an uncut class say about the people behind them."""

    name: ClassVar[str] = "minimality"
    number: ClassVar[int] = 5
    needs: ClassVar[tuple[str, ...]] = ("alignment",)
    threat: ClassVar[str] = "Knows the release, the policy and the method."
    source: ClassVar[str] = (
        "Wong and others. Minimality attack in privacy preserving data publishing. VLDB 2007;"
        " Cohen. Attacks on deidentification's defenses. USENIX Security 2022."
    )

    def run(self, scene: AttackScene) -> dict[str, Any]:
        """Tightness for every release; the other two parts where the method is understood."""
        return {
            **tightness(scene),
            "optimality": optimality(scene),
            "replay": replay(scene, self.number),
        }


def tightness(scene: AttackScene) -> dict[str, Any]:
    """Statements that tight cells imply about members, of all generalized cells of people; null
    where the original refutes some.
    """
    boxes, labels = scene.release.boxes, scene.release.labels
    implied = refuted = cells = 0
    for j, axis in enumerate(boxes.axes):
        wide = boxes.sizes[:, j] >= 2
        cells += int(boxes.people[wide].sum())
        parts = _halves(axis.tree, boxes, j) if axis.tree is not None else _ends(boxes, j)
        for label, lo, hi in parts:
            implied += len(label)
            refuted += int((~_somebody(scene, j, labels, label, lo, hi)).sum())
    found: dict[str, Any] = {"implied": None, "false": refuted}
    if refuted:
        found["why"] = "cells are not tight: the original refutes what they would imply"
        return found
    return found | {"implied": counted(implied, cells)}


Statement = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Classes, and the span of places that some member of each has."""


def _ends(boxes: Boxes, j: int) -> list[Statement]:
    """A member at either end of an interval."""
    label = np.flatnonzero((boxes.sizes[:, j] >= 2) & ~boxes.is_marked()[:, j])
    lo, hi = boxes.lo[label, j], boxes.hi[label, j]
    return [(label, lo, lo), (label, hi, hi)]


def _halves(tree: Hierarchy, boxes: Boxes, j: int) -> list[Statement]:
    """A member under either child of a node that has two."""
    wide = (boxes.sizes[:, j] >= 2) & ~(boxes.is_marked()[:, j] & boxes.axes[j].has_missing)
    label = np.flatnonzero(wide)
    lo = boxes.lo[label, j]
    node = tree.covering(lo, np.minimum(boxes.hi[label, j], tree.leaves - 1))
    child = np.flatnonzero(tree.parent >= 0)
    children = np.bincount(tree.parent[child], minlength=len(tree.parent))
    has_two = children[node] == 2
    label, lo, node = label[has_two], lo[has_two], node[has_two]
    # the first of two children begins where its parent does, the second after it
    middle = np.zeros(len(tree.parent), dtype=np.int32)
    np.maximum.at(middle, tree.parent[child], tree.first[child])
    return [(label, lo, middle[node] - 1), (label, middle[node], tree.last[node])]


def _somebody(
    scene: AttackScene,
    j: int,
    labels: np.ndarray,
    label: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
) -> np.ndarray:
    """(m,) bool, whether some record of each class lies in its span."""
    first = np.full(scene.release.boxes.count, 1, dtype=np.int64)
    last = np.zeros(scene.release.boxes.count, dtype=np.int64)
    first[label], last[label] = lo, hi
    kept = labels >= 0
    place = scene.people.points[kept, j]
    inside = (first[labels[kept]] <= place) & (place <= last[labels[kept]])
    there, _ = people_with(labels[kept][inside].astype(np.int64), None)
    return np.isin(label, there)
