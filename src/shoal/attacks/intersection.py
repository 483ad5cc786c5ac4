"""Intersection: what several releases of the same people give away together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shoal.attacks.beside.sharing import Links
from shoal.attacks.counts import (
    ClassValues,
    alike,
    counted,
    entries_of,
    mode,
    parts_of,
    people_with,
    values_by_class,
)
from shoal.data.attack_scene import AttackScene, EarlierRelease, ShownRows
from shoal.data.numbers import places_among, weighted_sum
from shoal.protocols import Attack

AGREE = 0.99  # of rows, so that releases link by the places of their rows
CHANCE = 0.5
ABSENT = -2
BLOCK = 1 << 22
NOT_ALIGNED = "people of the releases can't be aligned: neither rows nor subjects correspond"


@dataclass(frozen=True)
class Intersection(Attack):
    """Who stands alone, among few, or with one value in the common part of their classes."""

    name: ClassVar[str] = "intersection"
    number: ClassVar[int] = 6
    needs: ClassVar[tuple[str, ...]] = ("alignment", "earlier")
    uses_people: ClassVar[bool] = False
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
        inside = scene.release.in_classes
        for earlier in scene.earlier:
            known = earlier.labels >= 0
            inside &= known | (earlier.labels == ABSENT) if earlier.absence_is_known else known
        same = inside.copy()
        for earlier in scene.earlier:
            same &= earlier.unchanged | (earlier.labels == ABSENT)
        joint = _Joint(scene, same)
        links = all(_links(earlier) for earlier in scene.earlier)
        persons = scene.release.persons
        everybody, there = len(np.unique(persons)), len(np.unique(persons[inside]))
        known = np.any([earlier.labels != ABSENT for earlier in scene.earlier], axis=0)
        return {
            "releases": 1 + len(scene.earlier),
            "aligned_by": scene.earlier[0].joined_by,
            "applies": "linked" if links else "unlinked",
            "linked": joint.linked(scene.required_k),
            "unlinked": joint.unlinked(),
            "in_earlier": counted(len(np.unique(persons[known])), everybody),
            "left_out": everybody - there,
            "changed": there - len(np.unique(persons[same])),
        }


def _links(earlier: EarlierRelease) -> bool:
    """Whether whoever holds both releases knows by the rows' places which belong together."""
    if earlier.joined_by == "subject" or earlier.order is None:
        return False
    agree, chance = earlier.order
    return agree >= AGREE and chance <= CHANCE


class _Joint:
    """Records with the same values in every release that they are in; rows: (n,) bool, which."""

    def __init__(self, scene: AttackScene, rows: np.ndarray) -> None:
        release = scene.release
        self._shares_people = release.subjects is not None
        self._everybody = release.persons.astype(np.int64)
        self._persons = self._everybody[rows]
        self._values = {
            name: column.codes[rows].astype(np.int64) for name, column in release.sensitive.items()
        }
        every = {name: column.codes for name, column in release.sensitive.items()}
        own = ShownRows(release.labels, self._everybody, every)
        self._files = [own, *(earlier.rows for earlier in scene.earlier)]
        self._labels = [
            part[rows].astype(np.int64)
            for part in (release.labels, *(earlier.labels for earlier in scene.earlier))
        ]

    def linked(self, k: int | None) -> dict[str, Any]:
        """The people whose rows are known to be one: those of one joint cell."""
        shared = self._persons if self._shares_people else None
        cell = alike(self._labels, len(self._persons))
        cells, people = people_with(cell, shared)
        n = len(np.unique(self._persons))
        found: dict[str, Any] = {"alone": counted(self._having(cell, people == 1), n)}
        found["below_k"] = None if k is None else counted(self._having(cell, people < k), n)
        found["attributes"] = {}
        parts = parts_of(self._persons)
        for name, values in self._values.items():
            counts = values_by_class(cell, values, shared, len(cells))
            _, hits = mode(counts, cell, values)
            found["attributes"][name] = {
                "certain": counted(self._having(cell, counts.distinct() == 1), n),
                "right": counted(weighted_sum(parts, hits), n),
            }
        return found

    def _having(self, cell: np.ndarray, is_so: np.ndarray) -> int:
        """People with a record in some of these joint cells."""
        return len(np.unique(self._persons[is_so[cell]]))

    def unlinked(self) -> dict[str, Any]:
        """Where rows can't be matched: the values that occur in the classes of a person in every
        release; who is in several classes of one has their counts added.
        """
        persons, person_of = np.unique(self._persons, return_inverse=True)
        places = [places_of(file, persons) for file in self._files]
        # people with the same places are judged once
        profile = alike([groups_of(place) for place in places], len(persons))
        _, first = np.unique(profile, return_index=True)
        found: dict[str, Any] = {"attributes": {}}
        parts, record = parts_of(self._persons), profile[person_of.reshape(-1)]
        people = np.bincount(profile, minlength=len(first))
        for name, values in self._values.items():
            tables = [_table(file, name) for file in self._files]
            size = int(self._files[0].values[name].max(initial=0)) + 1
            truth = _Truth.of(record, values, parts, size)
            sure, hits = 0, 0.0
            for rows, weights in self._weights(places, tables, first, size):
                sure += int(people[rows][(weights > 0).sum(axis=1) == 1].sum())
                best = weights >= weights.max(axis=1, keepdims=True) * (1 - 1e-9)
                hits += truth.hits(rows, best)
            found["attributes"][name] = {
                "certain": counted(sure, len(persons)),
                "right": counted(hits, len(persons)),
            }
        return found

    def _weights(
        self, places: list[Links], tables: list[ClassValues | None], first: np.ndarray, size: int
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """For profiles, block by block, what every value weighs: (m, size)."""
        step = max(BLOCK // size, 1)
        for start in range(0, len(first), step):
            rows = slice(start, start + step)
            weights = np.ones((len(first[rows]), size))
            for place, table in zip(places, tables, strict=True):
                if table is not None:
                    weights *= _counts(place, first[rows], table, size)
            yield rows, weights


def places_of(rows: ShownRows, persons: np.ndarray) -> Links:
    """The classes of these people in one release. persons: ascending numbers of people."""
    at = places_among(persons, rows.persons)
    asked = (rows.labels >= 0) & (at >= 0)
    count = int(rows.labels.max(initial=-1)) + 1
    return Links.of(at[asked], rows.labels[asked], len(persons), count)


def groups_of(places: Links) -> np.ndarray:
    """(people,) equal where people are in the same single class; who is in several has a number of
    their own, who is in none -1.
    """
    own = places.class_count + np.arange(places.item_count)
    group = np.where(places.degrees == 0, -1, own)
    single = places.degrees == 1
    group[single] = places.classes[places.starts[:-1][single]]
    return group


def _counts(places: Links, people: np.ndarray, table: ClassValues, size: int) -> np.ndarray:
    """(m, size) how many have each value where these people are; 1 for who is nowhere."""
    row, place = entries_of(people, places.starts)
    inner, entry = entries_of(places.classes[place], table.starts)
    row = row[inner]
    fits = table.values[entry] < size
    keys = row[fits] * size + table.values[entry][fits]
    found = np.bincount(keys, table.counts[entry][fits], minlength=len(people) * size)
    found = found.reshape(len(people), size)
    found[places.degrees[people] == 0] = 1.0
    return found


@dataclass(frozen=True)
class _Truth:
    """True values by profile, ascending: (t,) each. weights: what part of its people has it."""

    profiles: np.ndarray
    values: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, profile: np.ndarray, values: np.ndarray, parts: np.ndarray, size: int) -> _Truth:
        keys, key_of = np.unique(profile * size + values, return_inverse=True)
        return cls(keys // size, keys % size, np.bincount(key_of.reshape(-1), parts))

    def hits(self, rows: slice, best: np.ndarray) -> float:
        """How many people of these profiles have a best value; ties share. best: (m, size) bool."""
        first, stop = np.searchsorted(self.profiles, [rows.start, rows.start + len(best)])
        row, value = self.profiles[first:stop] - rows.start, self.values[first:stop]
        return weighted_sum(self.weights[first:stop], best[row, value] / best.sum(axis=1)[row])


def _table(rows: ShownRows, name: str) -> ClassValues | None:
    """How many people of each class of a release have each value; None where it does not show the
    attribute.
    """
    values = rows.values.get(name)
    if values is None:
        return None
    kept = (rows.labels >= 0) & (values >= 0)
    count = int(rows.labels.max(initial=-1)) + 1
    return values_by_class(rows.labels[kept], values[kept], rows.persons[kept], count)
