"""What a release tells about each quasi-identifier alone: P(v | s) for a value v of an axis.

A cell is taken as spread evenly over the values it covers, and half a person is added to every
value of the domain, so that nothing is impossible. Sums over the domain follow from the cells, so
that domains of any size cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.attacks.counts import ClassValues
from shoal.data.boxes import EVERYTHING, Boxes

PRIOR = 0.5  # people added to every value


@dataclass(frozen=True)
class Members:
    """How many people of each class are in each of g groups; (k,) each, without zeros."""

    classes: np.ndarray
    groups: np.ndarray
    people: np.ndarray
    count: int

    @classmethod
    def by_value(cls, counts: ClassValues) -> Members:
        """One group for each sensitive value."""
        return cls(counts.classes, counts.values, counts.counts, len(counts.totals))

    @classmethod
    def all_of(cls, boxes: Boxes) -> Members:
        """Everybody in one group."""
        classes = np.arange(boxes.count)
        return cls(classes, np.zeros_like(classes), boxes.people, 1)


@dataclass(frozen=True)
class Marginal:
    """P(v | s) of one axis, for g groups of people s.

    edges: (b,) int64, ascending places where the density changes. density: (b, g) people to each
    value from that edge to the next. whole: (g,) people altogether, those added included.
    cell_of: (classes,) which distinct cell each class shows. of_cell: (cells, g) P(cell | s).
    """

    edges: np.ndarray
    density: np.ndarray
    whole: np.ndarray
    cell_of: np.ndarray
    of_cell: np.ndarray

    def of_values(self, places: np.ndarray) -> np.ndarray:
        """P(v | s), (m, g)."""
        index = np.searchsorted(self.edges, places, side="right") - 1
        found = np.where((index >= 0)[:, None], self.density[index], 0.0)
        return (found + PRIOR) / self.whole


def marginals(boxes: Boxes, members: Members) -> list[Marginal]:
    """The marginal of every axis."""
    return [_marginal(boxes, j, members) for j in range(len(boxes.axes))]


def _marginal(boxes: Boxes, j: int, members: Members) -> Marginal:
    size = boxes.axes[j].size
    hi = boxes.hi[:, j].astype(np.int64)
    # the suppression mark covers the domain
    spans = np.stack([boxes.lo[:, j].astype(np.int64), np.where(hi == EVERYTHING, size - 1, hi)])
    cells, cell_of = np.unique(spans, axis=1, return_inverse=True)
    cell_of = cell_of.reshape(-1)
    first, stop = cells[0], cells[1] + 1
    shape = (len(first), members.count)
    keys = cell_of[members.classes] * members.count + members.groups
    people = np.bincount(keys, weights=members.people, minlength=shape[0] * shape[1])
    people = people.reshape(shape)
    spread = people / (stop - first)[:, None]
    edges = np.unique(np.concatenate([first, stop, [0]]))
    change = np.zeros((len(edges), members.count))
    np.add.at(change, np.searchsorted(edges, first), spread)
    np.subtract.at(change, np.searchsorted(edges, stop), spread)
    density = np.maximum(np.cumsum(change, axis=0), 0.0)
    steps = density[:-1] * np.diff(edges)[:, None]
    running = np.concatenate([np.zeros((1, members.count)), np.cumsum(steps, axis=0)])
    whole = people.sum(axis=0) + PRIOR * size
    inside = running[np.searchsorted(edges, stop)] - running[np.searchsorted(edges, first)]
    of_cell = (inside + PRIOR * (stop - first)[:, None]) / whole
    return Marginal(edges, density, whole, cell_of, of_cell)
