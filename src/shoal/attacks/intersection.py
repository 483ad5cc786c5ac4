"""Intersection: what several releases of the same people give away together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shoal.attacks.counts import ClassValues, people_with
from shoal.attacks.intervals import counted
from shoal.data.attack_scene import AttackScene, EarlierRelease
from shoal.protocols import Attack

AGREE = 0.99  # of rows, so that releases link by the places of their rows
CHANCE = 0.5
BLOCK = 1 << 22
NOT_ALIGNED = "people of the releases can't be aligned: neither rows nor subjects correspond"


@dataclass(frozen=True)
class Intersection(Attack):
    """Who stands alone, among few, or with one value in the common part of their classes."""

    name: ClassVar[str] = "intersection"
    number: ClassVar[int] = 6
    needs: ClassVar[tuple[str, ...]] = ("alignment", "earlier")
    threat: ClassVar[str] = (
        "Knows all quasi-identifiers of a person, and that the person is in several releases."
    )
    source: ClassVar[str] = (
        "Ganta, Kasiviswanathan, Smith. Composition attacks and auxiliary information in data"
        " privacy. KDD 2008."
    )

    def run(self, scene: AttackScene) -> dict[str, Any]:
        """All releases together: by their rows, and without knowing which rows correspond."""
        if scene.not_aligned:
            return {"linked": None, "unlinked": None, "why": NOT_ALIGNED}
        labels = [scene.release.labels, *(earlier.labels for earlier in scene.earlier)]
        inside = np.all([part >= 0 for part in labels], axis=0)
        same = inside.copy()
        for earlier in scene.earlier:
            same &= earlier.unchanged
        joint = _Joint(scene, [part[same].astype(np.int64) for part in labels], same)
        links = all(_links(earlier) for earlier in scene.earlier)
        persons = scene.release.persons
        return {
            "releases": len(labels),
            "aligned_by": scene.earlier[0].joined_by,
            "applies": "linked" if links else "unlinked",
            "linked": joint.linked(scene.required_k),
            "unlinked": joint.unlinked(),
            "left_out": len(np.unique(persons)) - len(np.unique(persons[inside])),
            "changed": len(np.unique(persons[inside])) - len(np.unique(persons[same])),
        }


def _links(earlier: EarlierRelease) -> bool:
    """Whether whoever holds both releases knows by the rows' places which belong together."""
    if earlier.joined_by == "subject" or earlier.order is None:
        return False
    agree, chance = earlier.order
    return agree >= AGREE and chance <= CHANCE


class _Joint:
    """Records that are in all releases with the same values; labels: their class in each."""

    def __init__(self, scene: AttackScene, labels: list[np.ndarray], rows: np.ndarray) -> None:
        self._labels = labels
        self._persons = scene.release.persons[rows]
        self._shares_people = scene.release.subjects is not None
        self._values = {
            name: column.codes[rows].astype(np.int64)
            for name, column in scene.release.sensitive.items()
        }
        cell = np.zeros(len(self._persons), dtype=np.int64)
        for part in labels:
            cell = cell * (int(part.max(initial=0)) + 1) + part
            cell = np.unique(cell, return_inverse=True)[1].reshape(-1)
        self._cell = cell

    def linked(self, k: int | None) -> dict[str, Any]:
        """The people whose rows are known to be one: those of one joint cell."""
        _, people = people_with(self._cell, self._codes_of_people())
        n = int(people.sum())
        found: dict[str, Any] = {"alone": counted(int(people[people == 1].sum()), n)}
        found["below_k"] = None if k is None else counted(int(people[people < k].sum()), n)
        found["attributes"] = {}
        for name, values in self._values.items():
            counts = self._counts(self._cell, values)
            one = counts.people[counts.distinct() == 1].sum()
            right = int(counts.greatest().sum())
            found["attributes"][name] = {
                "certain": counted(int(one), n),
                "right": counted(right, n),
            }
        return found

    def unlinked(self) -> dict[str, Any]:
        """Where rows can't be matched: the values that occur in all classes of a person."""
        n = len(self._cell)
        found: dict[str, Any] = {"attributes": {}}
        cells, first, times = np.unique(self._cell, return_index=True, return_counts=True)
        for name, values in self._values.items():
            tables = [self._counts(part, values) for part in self._labels]
            size = max(len(table.totals) for table in tables)
            step, sure, hits = max(BLOCK // size, 1), 0, 0.0
            own = self._counts(self._cell, values)
            for start in range(0, len(cells), step):
                rows = slice(start, start + step)
                weights = np.ones((len(cells[rows]), size))
                for part, table in zip(self._labels, tables, strict=True):
                    weights *= _dense(table, part[first[rows]], size)
                sure += int(times[rows][(weights > 0).sum(axis=1) == 1].sum())
                best = weights >= weights.max(axis=1, keepdims=True) * (1 - 1e-9)
                truth = _dense(own, cells[rows], size)
                hits += float(((truth * best).sum(axis=1) / best.sum(axis=1)).sum())
            found["attributes"][name] = {"certain": counted(sure, n), "right": counted(hits, n)}
        return found

    def _codes_of_people(self) -> np.ndarray | None:
        return self._persons if self._shares_people else None

    def _counts(self, labels: np.ndarray, values: np.ndarray) -> ClassValues:
        """People with each value in each of these classes."""
        size = int(values.max(initial=0)) + 1
        keys, counts = people_with(labels * size + values, self._codes_of_people())
        count = int(labels.max(initial=-1)) + 1
        classes, people = people_with(labels, self._codes_of_people())
        whole = np.zeros(count, dtype=np.int64)
        whole[classes] = people
        totals = np.bincount(keys % size, weights=counts, minlength=size).astype(np.int64)
        return ClassValues(keys // size, keys % size, counts, whole, totals)


def _dense(table: ClassValues, classes: np.ndarray, size: int) -> np.ndarray:
    """(m, size) people of these classes with each value."""
    found = np.zeros((len(classes), size))
    starts = table.starts
    lengths = starts[classes + 1] - starts[classes]
    before = np.cumsum(lengths) - lengths
    entries = np.repeat(starts[classes] - before, lengths) + np.arange(lengths.sum())
    row = np.repeat(np.arange(len(classes)), lengths)
    found[row, table.values[entries]] = table.counts[entries]
    return found
