"""What a proven optimum of full-domain generalization says about the classes that it left whole.

One level lower on an attribute would have put too many records into parts of fewer than k people,
or the search would have gone there. Where other classes can't account for all of them, a class
surely has such a part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.attacks.counts import people_in, people_with
from shoal.attacks.intervals import counted
from shoal.data.attack_scene import AttackScene
from shoal.data.boxes import Axis, Boxes

NO_ACCOUNT = "no account of what this method would have done otherwise"
METHOD = "full-domain"


def optimality(scene: AttackScene) -> dict[str, Any]:
    """People in classes that surely have a part below k one level lower; exact, null for any other
    method, or a search that was cut short.
    """
    made, k = scene.recoding, scene.required_k
    rounds = made.parameters.get("rounds", 0)
    # by the same rule of who is suppressed, which is all that is used here
    is_least = made.statistics.get("every_node", made.statistics.get("proven"))
    if made.method != METHOD or rounds or not is_least or k is None:
        return {"forced": None, "why": NO_ACCOUNT}
    boxes = scene.release.boxes
    room = (made.suppression_limit or 0) - int(made.statistics["suppressed"])
    forced, skipped = np.zeros(boxes.count, dtype=bool), []
    for j, axis in enumerate(boxes.axes):
        level = made.statistics["levels"].get(axis.name, 0)
        if not level or axis.tree is None:
            continue
        if axis.has_missing or _in_small_parts(scene, j, level, k) <= room:
            skipped.append(axis.name)  # something else than k stood against it
            continue
        caps = most_in_small_parts(boxes.people, _children(boxes, j, level), k)
        forced |= (caps.sum() - caps <= room) & (caps > 0)
    release = scene.release
    people = people_in(release, forced[release.labels])
    return {"forced": counted(people, people_in(release)), "skipped": skipped}


def most_in_small_parts(people: np.ndarray, parts: np.ndarray, k: int) -> np.ndarray:
    """(classes,) how many of a class's people can at most stand in parts of fewer than k."""
    caps = np.where(people <= parts * (k - 1), people, (parts - 1) * (k - 1))
    return np.where(parts == 1, 0, caps)


def _children(boxes: Boxes, j: int, level: int) -> np.ndarray:
    """(classes,) into how many parts a class's cell falls one level lower."""
    above = _ancestors(boxes.axes[j], level - 1)
    begins = np.concatenate([[0], np.cumsum(above[1:] != above[:-1])])
    hi = np.minimum(boxes.hi[:, j], len(above) - 1)
    return begins[hi] - begins[boxes.lo[:, j]] + 1


def _in_small_parts(scene: AttackScene, j: int, level: int, k: int) -> int:
    """Records that would stand in parts of fewer than k people one level lower."""
    above = _ancestors(scene.release.boxes.axes[j], level - 1)
    kept = scene.release.labels >= 0
    label = scene.release.labels[kept].astype(np.int64)
    keys = label * (int(above.max()) + 1) + above[scene.people.points[kept, j]]
    shared = None if scene.release.subjects is None else scene.release.subjects[kept]
    parts, people = people_with(keys, shared)
    return int(np.isin(keys, parts[people < k]).sum())


def _ancestors(axis: Axis, level: int) -> np.ndarray:
    assert axis.tree is not None
    return axis.tree.ancestors_at(level)
