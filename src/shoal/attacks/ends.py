"""Ends of published intervals, which are values of members where a method publishes tight cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.attacks.counts import people_with
from shoal.data.attack_scene import People
from shoal.data.boxes import Boxes
from shoal.data.numbers import weighted_sum

FEWEST_VALUES = 3  # of a cell, so that there is a value between its ends


@dataclass(frozen=True)
class Ends:
    """Ends of intervals: of which class, on which axis, and whether the upper one; (k,) each."""

    labels: np.ndarray
    axes: np.ndarray
    is_upper: np.ndarray

    def drawn(self, rng: np.random.Generator, most: int) -> Ends:
        """At most so many of them; a larger draw holds the smaller one."""
        rows = rng.permutation(len(self.labels))[:most]
        return Ends(self.labels[rows], self.axes[rows], self.is_upper[rows])

    def places(self, boxes: Boxes) -> np.ndarray:
        """The values at the ends."""
        lo, hi = boxes.lo[self.labels, self.axes], boxes.hi[self.labels, self.axes]
        return np.where(self.is_upper, hi, lo)

    def between(self, boxes: Boxes, rng: np.random.Generator) -> np.ndarray:
        """A value drawn strictly between both ends of each interval."""
        lo, hi = boxes.lo[self.labels, self.axes], boxes.hi[self.labels, self.axes]
        return rng.integers(lo + 1, hi) if len(lo) else lo


def intervals(boxes: Boxes, fewest: int, columns: Sequence[int] | None = None) -> np.ndarray:
    """(classes, d) bool, intervals of linear axes that hold so many values or more."""
    linear = np.array([axis.tree is None for axis in boxes.axes], dtype=bool)
    if columns is not None:
        linear &= np.isin(np.arange(len(linear)), columns)
    return linear & ~boxes.is_marked() & (boxes.sizes >= fewest)


def ends_of(boxes: Boxes) -> Ends:
    """All ends of intervals that hold a value between them."""
    labels, axes = np.nonzero(intervals(boxes, FEWEST_VALUES))
    upper = np.zeros(len(labels), dtype=bool)
    return Ends(np.tile(labels, 2), np.tile(axes, 2), np.concatenate([upper, ~upper]))


def isolated(boxes: Boxes, ends: Ends, people: People, places: np.ndarray) -> np.ndarray:
    """(k,) bool, whether exactly one person has the value of each end and fits the other cells."""
    found = np.zeros(len(places), dtype=bool)
    if not len(places):
        return found
    axes = range(len(boxes.axes))
    lo, hi = boxes.lo[ends.labels], boxes.hi[ends.labels]
    at = np.arange(len(places)), ends.axes
    lo[at] = hi[at] = places
    order = [np.argsort(people.points[:, j], kind="stable") for j in axes]
    ordered = [people.points[rows, j] for j, rows in enumerate(order)]
    first = np.stack([np.searchsorted(ordered[j], lo[:, j]) for j in axes], axis=1)
    stop = np.stack([np.searchsorted(ordered[j], hi[:, j], side="right") for j in axes], axis=1)
    narrowest = np.argsort(stop - first, axis=1, kind="stable")  # few people fit it
    for i, by_width in enumerate(narrowest.tolist()):
        j = by_width[0]
        rows = order[j][first[i, j] : stop[i, j]]
        for other in by_width[1:]:
            value = people.points[rows, other]
            rows = rows[(lo[i, other] <= value) & (value <= hi[i, other])]
        found[i] = len(rows) > 0 and len(np.unique(people.persons[rows])) == 1
    return found


def owned_ends(
    boxes: Boxes, people: People, labels: np.ndarray, columns: Sequence[int] | None = None
) -> tuple[int, int, int]:
    """Ends that exactly one person of the class has, all ends, and people who own one.

    labels: (m,) class of each of these people's records.
    """
    wide = intervals(boxes, 2, columns)
    kept = np.flatnonzero(labels >= 0)
    label, persons = labels[kept].astype(np.int64), people.persons[kept]
    owned, owners = 0, np.zeros(int(people.persons.max(initial=-1)) + 1, dtype=bool)
    for j in np.flatnonzero(wide.any(axis=0)):
        value = people.points[kept, j]
        for end in (boxes.lo[:, j], boxes.hi[:, j]):
            at_end = wide[label, j] & (value == end[label])
            classes, counts = people_with(label[at_end], persons[at_end])
            single = classes[counts == 1]
            owned += len(single)
            owners[persons[at_end][np.isin(label[at_end], single)]] = True
    return owned, 2 * int(wide.sum()), int(owners.sum())


def snapped(boxes: Boxes, j: int, grid: int, others: np.ndarray) -> tuple[Boxes, np.ndarray]:
    """The boxes with the ends of one axis moved outwards to a grid, and which of them each class
    becomes: classes whose cells are then equal are one.

    others: (classes,) equal where all other cells are, as `same_elsewhere` gives it.
    """
    lo, hi = boxes.lo.copy(), boxes.hi.copy()
    lo[:, j], hi[:, j] = _moved(boxes, j, grid)
    key = _numbered([others, lo[:, j], hi[:, j]])
    _, first, of_class = np.unique(key, return_index=True, return_inverse=True)
    of_class = of_class.reshape(-1)
    people = np.bincount(of_class, weights=boxes.people, minlength=len(first))
    sizes = boxes.sizes.copy()
    shown = ~boxes.is_marked()[:, j]
    sizes[shown, j] = hi[shown, j] - lo[shown, j] + 1
    merged = Boxes(boxes.axes, lo[first], hi[first], sizes[first], people.astype(np.int64))
    return merged, of_class


def same_elsewhere(boxes: Boxes, j: int) -> np.ndarray:
    """(classes,) equal where classes show the same cells on all axes but one."""
    others = [i for i in range(len(boxes.axes)) if i != j]
    return _numbered(
        [np.zeros(boxes.count, np.int64), *boxes.lo[:, others].T, *boxes.hi[:, others].T]
    )


def _numbered(columns: Sequence[np.ndarray]) -> np.ndarray:
    """(classes,) int64, equal where classes are equal in every one of these columns."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        code = np.unique(column, return_inverse=True)[1].reshape(-1)
        key = key * (int(code.max(initial=0)) + 1) + code
        key = np.unique(key, return_inverse=True)[1].reshape(-1)
    return key


def widened(boxes: Boxes, j: int, grid: int) -> float | None:
    """How much wider a grid makes the cells of an axis, in the mean over people, as a share of its
    domain.
    """
    axis = boxes.axes[j]
    if axis.values < 2 or not boxes.people.sum():
        return None
    lo, hi = _moved(boxes, j, grid)
    added = ((hi - lo) - (boxes.hi[:, j] - boxes.lo[:, j])) / (axis.values - 1)
    return weighted_sum(added, boxes.people) / float(boxes.people.sum())


def _moved(boxes: Boxes, j: int, grid: int) -> tuple[np.ndarray, np.ndarray]:
    """Ends at multiples of so many units of the numbers themselves, within the domain."""
    axis = boxes.axes[j]
    moves = intervals(boxes, 2)[:, j]
    offset = round(axis.low / axis.unit)
    lo, hi = boxes.lo[:, j].astype(np.int64), boxes.hi[:, j].astype(np.int64)
    down = (lo + offset) // grid * grid - offset
    up = -(-(hi + offset) // grid) * grid - offset
    lo = np.where(moves, np.maximum(down, 0), lo)
    hi = np.where(moves, np.minimum(up, axis.values - 1), hi)
    return lo, hi
