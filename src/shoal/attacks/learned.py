"""An attacker that learns: gradient boosting on the released rows. Needs the extra `ml`.

Weaker than naive Bayes on some tables, stronger on others, so it is one more attacker, not the one
that decides. A cell is seen as what it says for sure: the middle of an interval; for a hierarchy
one feature for each node, 1 where the cell lies under it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.attacks.scores import Guesses, Near, judged
from shoal.data.attack_scene import ShownRelease
from shoal.data.boxes import Axis, Boxes
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.errors import MissingExtraError

MOST_ROWS = 10_000
MOST_NODES = 200  # features of one hierarchy: its widest nodes
SETTINGS = {"max_iter": 30, "max_leaf_nodes": 15, "learning_rate": 0.15}


@dataclass(frozen=True)
class Learned:
    """A model of one sensitive attribute; values: what it can answer."""

    model: Any
    axes: tuple[Axis, ...]
    values: np.ndarray
    count: int

    @classmethod
    def on(cls, release: ShownRelease, attribute: str, rng: np.random.Generator) -> Learned:
        """Trained on drawn rows of a release; raises MissingExtraError without scikit-learn."""
        make = _maker()
        boxes, column = release.boxes, release.sensitive[attribute]
        rows = rng.permutation(np.flatnonzero(release.labels >= 0))[:MOST_ROWS]
        label = release.labels[rows]
        truth = column.codes[rows]
        values = np.unique(truth)
        model = None
        if len(values) > 1:
            features = _seen(boxes.axes, boxes.lo[label], _ends(boxes, label))
            with _one_thread():  # the same figures everywhere
                model = make(random_state=0, **SETTINGS).fit(features, truth)
        return cls(model, boxes.axes, values, column.values)

    def guesses(self, points: np.ndarray, truth: np.ndarray, near: Near | None) -> Guesses:
        """What it guesses about these people."""
        scores = np.zeros((len(points), self.count))
        if self.model is None:
            scores[:, self.values] = 1.0
        else:
            with _one_thread():
                seen = _seen(self.axes, points, points)
                scores[:, self.values] = self.model.predict_proba(seen)
        return judged(scores, truth, near)


def _maker() -> Any:
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ImportError:
        raise MissingExtraError.of("an attacker that learns needs scikit-learn", "ml") from None
    return HistGradientBoostingClassifier


def _one_thread() -> Any:
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)


def _ends(boxes: Boxes, label: np.ndarray) -> np.ndarray:
    """Last places of cells; the suppression mark ends with the domain."""
    sizes = np.array([axis.size for axis in boxes.axes])
    return np.minimum(boxes.hi[label], sizes - 1)


def _seen(axes: tuple[Axis, ...], lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """The features of cells, or of values, (n, features) float64."""
    columns = [np.zeros((len(lo), 1))]
    for j, axis in enumerate(axes):
        if axis.tree is None:
            columns.append(((lo[:, j] + hi[:, j].astype(float)) / 2)[:, None])
        else:
            first, last = _nodes(axis.tree)
            under = (first <= lo[:, j, None]) & (hi[:, j, None] <= last)
            columns.append(under.astype(np.float64))
    return np.concatenate(columns, axis=1)


def _nodes(tree: Hierarchy) -> tuple[np.ndarray, np.ndarray]:
    """The spans of the widest nodes, but for the root."""
    nodes = np.delete(np.arange(len(tree.parent)), tree.root)
    widest = nodes[np.argsort(tree.first[nodes] - tree.last[nodes], kind="stable")[:MOST_NODES]]
    return tree.first[widest], tree.last[widest]
