"""How many people of a population fit each class."""

from __future__ import annotations

import numpy as np

from shoal.attacks.covering import covering_pairs
from shoal.data.attack_scene import Surroundings
from shoal.data.boxes import Boxes


def people_fitting(boxes: Boxes, around: Surroundings) -> np.ndarray:
    """(classes,) float64, people of the population whom all known cells of a class cover."""
    points = np.zeros((len(around.points), len(boxes.axes)), dtype=np.int32)
    points[:, list(around.columns)] = around.points
    counts = np.zeros(boxes.count)
    for person, label in covering_pairs(boxes, points, around.columns):
        counts += np.bincount(label, around.weights[person], minlength=boxes.count)
    return counts
