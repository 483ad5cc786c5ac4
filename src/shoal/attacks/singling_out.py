"""Singling out: a predicate that is true of exactly one person of the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shoal.attacks.counts import people_in, people_with
from shoal.attacks.ends import (
    Ends,
    ends_of,
    isolated,
    owned_ends,
    same_elsewhere,
    snapped,
    widened,
)
from shoal.attacks.intervals import Share, counted, newcombe, wilson
from shoal.data.attack_scene import AttackScene, People, ShownRelease
from shoal.data.boxes import Boxes
from shoal.protocols import Attack

PREDICATES = 1_000
GRIDS = (2, 5, 10)  # units to which ends might be moved


@dataclass(frozen=True)
class SinglingOut(Attack):
    """How often what a release shows of a class points at one person."""

    name: ClassVar[str] = "singling-out"
    number: ClassVar[int] = 1
    needs: ClassVar[tuple[str, ...]] = ("alignment",)
    threat: ClassVar[str] = (
        "Wants a predicate that is true of exactly one person, and knows everybody's"
        " quasi-identifiers."
    )
    source: ClassVar[str] = (
        "Cohen, Nissim. Towards formalizing the GDPR's notion of singling out. PNAS 117(15), 2020;"
        " Giomi and others. PETS 2023."
    )

    def run(self, scene: AttackScene) -> dict[str, Any]:
        """Values alone, ends of intervals, and who is alone with a value in their class."""
        boxes, people = scene.release.boxes, scene.people
        values, baseline = univariate(boxes, people)
        return {
            "univariate": values,
            "univariate_baseline": baseline,
            **self._ends(scene),
            "alone": alone(scene.release),
        }

    def _ends(self, scene: AttackScene) -> dict[str, Any]:
        boxes, people = scene.release.boxes, scene.people
        rng = scene.rng(self.number)
        ends = ends_of(boxes)
        whole = _points_at(boxes, ends, people, rng)
        found: dict[str, Any] = {"owned": None, "people": None, "isolate": whole[0]}
        found |= {"interior": whole[1], "control": None, "gain": None, "snap": []}
        if not len(ends.labels):
            return found | {"why": "no interval holds three values"} | _owned(scene)
        if scene.halves is None:
            found["why"] = scene.control.reason or "no people who are not in the release"
            return found | _owned(scene)
        half = scene.halves.release.boxes
        drawn = ends_of(half).drawn(rng, PREDICATES)
        inside = isolated(half, drawn, scene.halves.inside, drawn.places(half))
        outside = isolated(half, drawn, scene.halves.outside, drawn.places(half))
        within = isolated(half, drawn, scene.halves.inside, drawn.between(half, rng))
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
    boxes: Boxes, ends: Ends, people: People, rng: np.random.Generator
) -> tuple[Share, Share]:
    """How many drawn ends, and values drawn between them, point at one person."""
    drawn = ends.drawn(rng, PREDICATES)
    at_end = isolated(boxes, drawn, people, drawn.places(boxes))
    between = isolated(boxes, drawn, people, drawn.between(boxes, rng))
    return wilson(int(at_end.sum()), len(at_end)), wilson(int(between.sum()), len(between))


def _owned(scene: AttackScene) -> dict[str, Any]:
    """Ends that exactly one person of the class has, now and with ends moved to grids."""
    boxes, people, labels = scene.release.boxes, scene.people, scene.release.labels
    owned, ends, owners = owned_ends(boxes, people, labels)
    n = people_in(scene.release)
    linear = [j for j, axis in enumerate(boxes.axes) if axis.tree is None]
    elsewhere = {j: same_elsewhere(boxes, j) for j in linear}
    before = {j: owned_ends(boxes, people, labels, [j]) for j in linear}
    found: dict[str, Any] = {
        "owned": counted(owned, ends),
        "people": counted(owners, n),
        "owned_by_attribute": {boxes.names[j]: counted(*before[j][:2]) for j in linear},
        "snap": [],
    }
    for grid in GRIDS:
        rows = {}
        for j in linear:
            moved, of_class = snapped(boxes, j, grid, elsewhere[j])
            moved_labels = np.where(labels >= 0, of_class[labels], -1)
            left, _, _ = owned_ends(moved, people, moved_labels, [j])
            rows[boxes.names[j]] = {
                "owned": counted(left, before[j][1]),
                "added_width": widened(boxes, j, grid),
            }
        found["snap"].append({"grid": grid, "attributes": rows})
    return found


def univariate(boxes: Boxes, people: People) -> tuple[Share, Share]:
    """Of values published alone and the outermost ends, and of all values of the domains, the share
    that exactly one person has.
    """
    hits = tried = chances = domain = 0
    for j, axis in enumerate(boxes.axes):
        values, counts = people_with(people.points[:, j].astype(np.int64), people.persons)
        unique = values[(counts == 1) & (values < axis.size)]
        shown = ~boxes.is_marked()[:, j] & (boxes.lo[:, j] < axis.values)
        lo, hi = boxes.lo[shown, j], boxes.hi[shown, j]
        published = lo[lo == hi]
        if len(lo) and axis.tree is None:
            published = np.append(published, [lo.min(), hi.max()])
        published = np.unique(published)
        hits += int(np.isin(published, unique).sum())
        tried += len(published)
        chances += len(unique)
        domain += axis.size
    return counted(hits, tried), counted(chances, domain)


def alone(release: ShownRelease) -> dict[str, Share]:
    """For each column that is published as it is, and for all plain ones together, the share of
    people who are alone in their class with their value.
    """
    sensitive = {name: column.codes for name, column in release.sensitive.items()}
    columns = sensitive | dict(release.plain)
    if len(release.plain) > 1:
        columns["all plain columns"] = _together(list(release.plain.values()))
    return {name: _alone(release, codes) for name, codes in columns.items()}


def _alone(release: ShownRelease, codes: np.ndarray) -> Share:
    kept = release.labels >= 0
    n = people_in(release)
    keys = release.labels[kept].astype(np.int64) * (int(codes.max(initial=0)) + 1) + codes[kept]
    persons = release.persons[kept]
    values, counts = people_with(keys, persons if release.subjects is not None else None)
    single = np.isin(keys, values[counts == 1])
    alone = len(np.unique(persons[single]))
    return counted(alone, n)


def _together(columns: list[np.ndarray]) -> np.ndarray:
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for codes in columns:
        key = key * (int(codes.max(initial=0)) + 1) + codes
        key = np.unique(key, return_inverse=True)[1].reshape(-1)
    return key
