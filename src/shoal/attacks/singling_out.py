"""Singling out: a predicate that is true of exactly one person of the table.

Knows everybody's quasi-identifiers. Cohen, Nissim. Towards formalizing the GDPR's notion of
singling out. PNAS 117(15), 2020; Giomi and others. PETS 2023.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.attacks.counts import Share, counted, newcombe, people_in, wilson
from shoal.data.attack_scene import AttackScene, Boxes, Findings, People, ShownRelease
from shoal.data.classes import people_with
from shoal.data.numbers import alike, weighted_sum
from shoal.protocols import Attack

PREDICATES = 1_000
GRIDS = (2, 5, 10)  # units to which ends might be moved


@dataclass(frozen=True)
class SinglingOut(Attack):
    """How often what a release shows of a class points at one person."""

    name: ClassVar[str] = "singling-out"
    number: ClassVar[int] = 1
    needs: ClassVar[tuple[str, ...]] = ("alignment",)

    def run(self, scene: AttackScene) -> Findings:
        """Values alone, ends of intervals, and who is alone with a value in their class."""
        boxes, people = scene.release.boxes, scene.people
        values, baseline = univariate(boxes, people)
        return {
            "univariate": values,
            "univariate_baseline": baseline,
            **self._ends(scene),
            "alone": alone(scene.release),
        }

    def _ends(self, scene: AttackScene) -> Findings:
        boxes, people = scene.release.boxes, scene.people
        rng = scene.rng(self.number)
        ends = ends_of(boxes)
        whole = _points_at(boxes, ends, people, rng)
        found: Findings = {"owned": None, "people": None, "isolate": whole[0]}
        found |= {"interior": whole[1], "control": None, "gain": None, "snap": []}
        if not len(ends.labels):
            return (
                found | {"why": "no published range holds three different numbers"} | _owned(scene)
            )
        if scene.halves is None:
            found["why"] = scene.control.reason or "one half of the people can't be published again"
            return found | _owned(scene)
        half, people = scene.halves.release.boxes, scene.halves.members
        others = scene.halves.outsiders
        assert others is not None
        drawn = ends_of(half).drawn(rng, PREDICATES)
        inside = isolated(half, drawn, people, drawn.places(half))
        outside = isolated(half, drawn, others, drawn.places(half))
        within = isolated(half, drawn, people, drawn.between(half, rng))
        member, other = (int(inside.sum()), len(inside)), (int(outside.sum()), len(outside))
        found |= {
            "isolate": wilson(*member),
            "interior": wilson(int(within.sum()), len(within)),
            "control": wilson(*other),
            "gain": newcombe(member, other),
            "whole_table": {"isolate": whole[0], "interior": whole[1]},
        }
        return found | _owned(scene)


def _points_at(
    boxes: Boxes, ends: "Ends", people: People, rng: np.random.Generator
) -> tuple[Share, Share]:
    """How many drawn ends, and values drawn between them, point at one person."""
    drawn = ends.drawn(rng, PREDICATES)
    at_end = isolated(boxes, drawn, people, drawn.places(boxes))
    between = isolated(boxes, drawn, people, drawn.between(boxes, rng))
    return wilson(int(at_end.sum()), len(at_end)), wilson(int(between.sum()), len(between))


def _owned(scene: AttackScene) -> Findings:
    """Ends that exactly one person of the class has, now and with ends moved to grids."""
    boxes, people, labels = scene.release.boxes, scene.people, scene.release.labels
    owned, ends, owners = owned_ends(boxes, people, labels)
    n = people_in(scene.release)
    linear = [j for j, axis in enumerate(boxes.axes) if axis.tree is None]
    elsewhere = {j: same_elsewhere(boxes, j) for j in linear}
    before = {j: owned_ends(boxes, people, labels, [j]) for j in linear}
    found: Findings = {
        "owned": counted(owned, ends),
        "people": counted(owners, n),
        "owned_by_attribute": {boxes.names[j]: counted(*before[j][:2]) for j in linear},
        "snap": [],
    }
    for grid in GRIDS:
        rows = {}
        for j in linear:
            moved, of_class = snapped(boxes, j, grid, elsewhere[j])
            left, _, _ = owned_ends(moved, people, np.where(labels >= 0, of_class[labels], -1), [j])
            own, added = counted(left, before[j][1]), widened(boxes, j, grid)
            rows[boxes.names[j]] = {"owned": own, "added_width": added}
        found["snap"].append({"grid": grid, "attributes": rows})
    return found


def univariate(boxes: Boxes, people: People) -> tuple[Share, Share]:
    """The share that exactly one person has, of values shown alone or outermost, and of all."""
    hits = tried = chances = domain = 0
    for j, axis in enumerate(boxes.axes):
        values, counts = people_with(people.points[:, j].astype(np.int64), people.persons)
        unique = values[(counts == 1) & (values < axis.values)]
        shown = ~boxes.is_marked()[:, j] & (boxes.lo[:, j] < axis.values)
        lo, hi = boxes.lo[shown, j], boxes.hi[shown, j]
        published = lo[lo == hi]
        if len(lo) and axis.tree is None:
            published = np.append(published, [lo.min(), hi.max()])
        published = np.unique(published)
        hits += int(np.isin(published, unique).sum())
        tried += len(published)
        chances += len(unique)
        domain += axis.values
    return counted(hits, tried), counted(chances, domain)


def alone(release: ShownRelease) -> dict[str, Share]:
    """For each column that is published as it is, and for all plain ones together, the share of
    people who are alone in their class with their value.
    """
    sensitive = {name: column.codes for name, column in release.sensitive.items()}
    columns = sensitive | dict(release.plain)
    if len(release.plain) > 1:
        columns["all plain columns"] = alike(release.plain.values(), release.records)
    return {name: alone_with(release, codes) for name, codes in columns.items()}


def alone_with(release: ShownRelease, codes: np.ndarray) -> Share:
    """The share of people who are alone in their class with their value; codes: (n,) of it."""
    kept = release.labels >= 0
    n = people_in(release)
    keys = release.labels[kept].astype(np.int64) * (int(codes.max(initial=0)) + 1) + codes[kept]
    persons = release.persons[kept]
    values, counts = people_with(keys, persons if release.subjects is not None else None)
    single = np.isin(keys, values[counts == 1])
    return counted(len(np.unique(persons[single])), n)


# Ends of published intervals, which are values of members where a method publishes tight cells.


FEWEST_VALUES = 3  # of a cell, so that there is a value between its ends


@dataclass(frozen=True)
class Ends:
    """Ends of intervals: of which class, on which axis, and whether the upper one; (k,) each."""

    labels: np.ndarray
    axes: np.ndarray
    is_upper: np.ndarray

    def drawn(self, rng: np.random.Generator, most: int) -> "Ends":
        """At most this number of them; a larger draw holds the smaller one."""
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
    """(classes, d) bool, intervals of linear axes that hold at least this number of values."""
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
    of_class = alike([others, lo[:, j], hi[:, j]], boxes.count)
    first = np.unique(of_class, return_index=True)[1]
    people = np.bincount(of_class, weights=boxes.people, minlength=len(first))
    sizes = boxes.sizes.copy()
    shown = ~boxes.is_marked()[:, j]
    sizes[shown, j] = hi[shown, j] - lo[shown, j] + 1
    merged = Boxes(boxes.axes, lo[first], hi[first], sizes[first], people.astype(np.int64))
    return merged, of_class


def same_elsewhere(boxes: Boxes, j: int) -> np.ndarray:
    """(classes,) equal where classes show the same cells on all axes but one."""
    others = [i for i in range(len(boxes.axes)) if i != j]
    return alike([*boxes.lo[:, others].T, *boxes.hi[:, others].T], boxes.count)


def widened(boxes: Boxes, j: int, grid: int) -> float | None:
    """How much wider a grid makes an axis's cells, people's mean, as a share of its domain."""
    axis = boxes.axes[j]
    if axis.values < 2 or not boxes.people.sum():
        return None
    lo, hi = _moved(boxes, j, grid)
    added = ((hi - lo) - (boxes.hi[:, j] - boxes.lo[:, j])) / (axis.values - 1)
    return weighted_sum(added, boxes.people) / float(boxes.people.sum())


def _moved(boxes: Boxes, j: int, grid: int) -> tuple[np.ndarray, np.ndarray]:
    """Ends at multiples of the step in units of the numbers themselves, within the domain."""
    axis = boxes.axes[j]
    moves = intervals(boxes, 2)[:, j]
    offset = round(axis.low / axis.unit)
    lo, hi = boxes.lo[:, j].astype(np.int64), boxes.hi[:, j].astype(np.int64)
    down = (lo + offset) // grid * grid - offset
    up = -(-(hi + offset) // grid) * grid - offset
    lo = np.where(moves, np.maximum(down, 0), lo)
    hi = np.where(moves, np.minimum(up, axis.values - 1), hi)
    return lo, hi
