"""Intersection: what several releases of the same people give away together.

Knows all quasi-identifiers of a person, and that the person is in several releases. Ganta,
Kasiviswanathan, Smith. Composition attacks and auxiliary information in data privacy. KDD 2008.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl

from shoal.attacks.counts import ClassValues, counted, mode, parts_of, values_by_class
from shoal.auditor.sharing import Links, entries_of, fitting, fitting_pairs, together
from shoal.data.attack_scene import AttackScene, EarlierRelease, Findings, ShownRelease, ShownRows
from shoal.data.classes import people_with
from shoal.data.numbers import alike, places_among, weighted_sum
from shoal.data.person_names import names_of, person_name, refuse_spelling, taken_for_others
from shoal.data.schema import Role, Schema
from shoal.data.table import Column, Table
from shoal.data.truth import Truth
from shoal.errors import InputError
from shoal.policy.model import PolicyModel
from shoal.policy.policy import Policy
from shoal.protocols import Attack

AGREE = 0.99  # of rows, so that releases link by the places of their rows
CHANCE = 0.5
ABSENT = -2
BLOCK = 1 << 22
MOST_GUESSED, SEED = 20_000, 7  # of people who are aligned, whose values are guessed
NOT_ALIGNED = "people of the releases can't be aligned: neither rows nor subjects correspond"


@dataclass(frozen=True)
class Intersection(Attack):
    """Who stands alone, among few, or with one value in the common part of their classes."""

    name: ClassVar[str] = "intersection"
    number: ClassVar[int] = 6
    needs: ClassVar[tuple[str, ...]] = ("alignment", "earlier")
    uses_people: ClassVar[bool] = False

    def run(self, scene: AttackScene) -> Findings:
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
        self._by_person = any(earlier.joined_by == "subject" for earlier in scene.earlier)

    def linked(self, k: int | None) -> Findings:
        """The people whose rows are known to be one: those of one joint cell; where people are
        aligned, not rows, whoever is in all classes of somebody.
        """
        if self._by_person:
            return self._linked_people(k)
        shared = self._persons if self._shares_people else None
        cell = alike(self._labels, len(self._persons))
        cells, people = people_with(cell, shared)
        n = len(np.unique(self._persons))
        found: Findings = {"alone": counted(self._having(cell, people == 1), n)}
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

    def _linked_people(self, k: int | None) -> Findings:
        own = self._files[0]
        persons, person_of = np.unique(self._persons, return_inverse=True)
        everybody = np.unique(np.concatenate([file.persons for file in self._files]))
        places = together(places_of(file, persons) for file in self._files)
        fits = together(places_of(file, everybody) for file in self._files)
        left, n = fitting(places, fits), len(persons)
        found: Findings = {"alone": counted(int((left < 2).sum()), n)}
        found["below_k"] = None if k is None else counted(int((left < k).sum()), n)
        found["attributes"] = {}
        drawn = np.zeros(n, dtype=bool)
        drawn[np.random.default_rng(SEED).permutation(n)[:MOST_GUESSED]] = True
        asked, tried = drawn[person_of], int(drawn.sum())
        parts = parts_of(self._persons[asked])
        person, candidate, row = _candidates(places.of_items(drawn), fits, everybody, own)
        for name, values in self._values.items():
            shown = values_by_class(person, own.values[name][row], candidate, n)
            _, hits = mode(shown, person_of[asked], values[asked])
            certain = int((shown.distinct() == 1).sum())
            found["attributes"][name] = {
                "certain": counted(certain, tried),
                "right": counted(weighted_sum(parts, hits), tried),
            }
        return found

    def _having(self, cell: np.ndarray, is_so: np.ndarray) -> int:
        """People with a record in some of these joint cells."""
        return len(np.unique(self._persons[is_so[cell]]))

    def unlinked(self) -> Findings:
        """Where rows can't be matched: the values that occur in the classes of a person in every
        release; who is in several classes of one has their counts added.
        """
        persons, person_of = np.unique(self._persons, return_inverse=True)
        places = [places_of(file, persons) for file in self._files]
        # people with the same places are judged once
        profile = alike([groups_of(place) for place in places], len(persons))
        _, first = np.unique(profile, return_index=True)
        found: Findings = {"attributes": {}}
        parts, record = parts_of(self._persons), profile[person_of]
        people = np.bincount(profile, minlength=len(first))
        for name, values in self._values.items():
            tables = [_table(file, name) for file in self._files]
            size = int(self._files[0].values[name].max(initial=0)) + 1
            truth = _Truth.of(record, values, parts, size)
            sure, hits = 0, 0.0
            for rows, weights in self._weights(places, tables, first, size):
                sure += int(people[rows][(weights > 0).sum(axis=1) == 1].sum())
                hits += truth.hits(rows, weights >= weights.max(axis=1, keepdims=True) * (1 - 1e-9))
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


def _candidates(
    places: Links, fits: Links, everybody: np.ndarray, file: ShownRows
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(m,) of each: a person, somebody who is in all of their classes, and a row of theirs in the
    file. everybody: ascending numbers of those who fit.
    """
    pairs, kept = fitting_pairs(places, fits), np.flatnonzero(file.labels >= 0)
    at = places_among(everybody, file.persons[kept])
    rows = Links.of(at, kept, len(everybody), len(file.labels))
    pair, place = entries_of(pairs.items, rows.starts)
    return pairs.classes[pair], pairs.items[pair], rows.classes[place]


def places_of(rows: ShownRows, persons: np.ndarray) -> Links:
    """The classes of these people in one release. persons: ascending numbers of people."""
    at = places_among(persons, rows.persons)
    asked = (rows.labels >= 0) & (at >= 0)
    count = int(rows.labels.max(initial=-1)) + 1
    return Links.of(at[asked], rows.labels[asked], len(persons), count)


def groups_of(places: Links) -> np.ndarray:
    """(people,) equal for the same single class; who is in several is alone, who in none is -1."""
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
    def of(cls, profile: np.ndarray, values: np.ndarray, parts: np.ndarray, size: int) -> "_Truth":
        keys, key_of = np.unique(profile * size + values, return_inverse=True)
        return cls(keys // size, keys % size, np.bincount(key_of, parts))

    def hits(self, rows: slice, best: np.ndarray) -> float:
        """How many people of these profiles have a best value; ties share. best: (m, size) bool."""
        first, stop = np.searchsorted(self.profiles, [rows.start, rows.start + len(best)])
        row, value = self.profiles[first:stop] - rows.start, self.values[first:stop]
        return weighted_sum(self.weights[first:stop], best[row, value] / best.sum(axis=1)[row])


def _table(rows: ShownRows, name: str) -> ClassValues | None:
    """How many people of each class have each value; None where a release shows none."""
    values = rows.values.get(name)
    if values is None:
        return None
    kept = (rows.labels >= 0) & (values >= 0)
    count = int(rows.labels.max(initial=-1)) + 1
    return values_by_class(rows.labels[kept], values[kept], rows.persons[kept], count)


# Other releases of the same people, aligned with the one that is attacked.


OTHER = -1  # a value that the newer release does not show
SUPPRESSED = -1


@dataclass(frozen=True)
class Earlier:
    """Another release. rows: (m,) int64, the original's row behind each of its rows, where a trace
    tells; none of the original's for somebody who is not in it. people: the names of its people and
    which of them each of its rows is of, where its own original tells.
    """

    table: Table
    policy: Policy
    rows: np.ndarray | None = None
    people: tuple[tuple[str, ...], np.ndarray] | None = None

    def among(self, taken: np.ndarray) -> "Earlier":
        """The release, its rows by their places among the records that a stream took."""
        return self if self.rows is None else replace(self, rows=places_among(taken, self.rows))


@dataclass(frozen=True)
class Newer:
    """The release that others are compared with, as it was read and in numbers."""

    table: Table
    release: ShownRelease
    schema: Schema

    def codes_of(self, name: str, earlier: Column) -> np.ndarray:
        """The values of another release's column in the codes of this one's; OTHER for the rest."""
        now = self.table.column(name)
        of_cell = np.full(len(now.cells), OTHER, dtype=np.int64)
        of_cell[now.codes] = self.release.sensitive[name].codes
        code_of = dict(zip(now.cells, of_cell.tolist(), strict=True))
        codes = np.array([code_of.get(cell, OTHER) for cell in earlier.cells], dtype=np.int64)
        return codes[earlier.codes]

    def shown_rows(self, earlier: Table, labels: np.ndarray, persons: np.ndarray) -> ShownRows:
        """The rows of another release; persons: in the numbers of this one's."""
        names = [name for name in self.release.sensitive if name in earlier.names]
        values = {name: self.codes_of(name, earlier.column(name)) for name in names}
        return ShownRows(labels, persons, values)


def aligned(earlier: Earlier, newer: Newer, truth: Truth) -> EarlierRelease | None:
    """An earlier release in the order of the newer one's records; None where people can't be
    aligned. By a trace, by the subject column where the earlier release has it, else row by row.
    """
    table, policy = earlier.table, earlier.policy
    absent = [name for name in policy.quasi if name not in table.names]
    if absent:
        raise InputError(
            f"other release: has no column '{absent[0]}', a quasi-identifier of its policy; name"
            " its own 'policy'"
        )
    labels, subject = published_classes(table, policy.model), newer.schema.subject
    people = earlier.people
    if people is None and earlier.rows is None and subject and subject.name in table.names:
        named = table.column(subject.name)
        people = named.cells, named.codes
    if people is not None and subject is not None:
        persons = _persons_by_subject(*people, subject.name, newer, truth)
        return _by_person(newer, newer.shown_rows(table, labels, persons))
    rows = _known_rows(earlier, truth)
    is_traced = rows is not None
    if rows is None:
        if table.records != truth.original.records or policy.render.order != "input":
            return None
        rows = np.arange(table.records)
    person_of = _persons_of_original(newer.release, truth)
    strangers = _strangers(person_of) + np.arange(len(rows))
    shown = newer.shown_rows(table, labels, np.where(rows >= 0, person_of[rows], strangers))
    row_of = np.full(truth.original.records + 1, ABSENT)
    row_of[rows] = np.arange(len(rows))
    order = None if is_traced else row_order(table, newer.table, newer.schema)
    how = "trace" if is_traced else "order"
    return by_row(newer.release, shown, truth.aligned(row_of[:-1]), order, how)


def _known_rows(earlier: Earlier, truth: Truth) -> np.ndarray | None:
    """The original's row behind each row, -1 where that is somebody else; None without a trace."""
    rows, records = earlier.rows, truth.original.records
    if rows is None:
        return None
    if len(rows) != earlier.table.records:
        raise InputError(
            f"other release: has {earlier.table.records} rows, its trace {len(rows)}; give the"
            " trace that was written with it"
        )
    return np.where((rows >= 0) & (rows < records), rows, -1)


def by_row(
    release: ShownRelease,
    rows: ShownRows,
    row_of: np.ndarray,
    order: tuple[float, float] | None,
    how: str,
    absence_is_known: bool = False,
) -> EarlierRelease:
    """Aligned record by record; row_of: (n,) each newer record's row, negative without one."""
    labels = np.where(row_of >= 0, rows.labels[row_of], ABSENT).astype(np.int64)
    unchanged = np.ones(len(labels), dtype=bool)
    for name, codes in rows.values.items():
        unchanged &= codes[row_of] == release.sensitive[name].codes
    return EarlierRelease(rows, labels, unchanged, order, how, absence_is_known)


def _by_person(newer: Newer, rows: ShownRows) -> EarlierRelease:
    """Aligned person by person: several classes of one are a cell of their own."""
    persons = newer.release.persons
    people = int(max(persons.max(initial=-1), rows.persons.max(initial=-1))) + 1
    everybody = np.arange(people)
    class_of = groups_of(places_of(rows, everybody))
    class_of[~np.isin(everybody, rows.persons)] = ABSENT
    unchanged = np.ones(len(persons), dtype=bool)
    for name, codes in rows.values.items():
        own = newer.release.sensitive[name]
        size = int(max(own.codes.max(initial=0), codes.max(initial=0))) + 2
        unchanged &= np.isin(persons * size + own.codes, rows.persons * size + codes)
    return EarlierRelease(rows, class_of[persons], unchanged, None, "subject")


def _persons_by_subject(
    names: Sequence[str], rows: np.ndarray, subject: str, newer: Newer, truth: Truth
) -> np.ndarray:
    """The person of every row of another release. rows: (m,) the place of each in the names."""
    own = truth.original.column(subject)
    persons = newer.release.persons
    person_of = np.full(len(own.cells), -1, dtype=np.int64)
    person_of[truth.aligned(own.codes)] = persons
    own_names = [person_name(cell) for cell in own.cells]
    named, known = (names_of(pl.Series(part)).unique() for part in (names, own_names))
    refuse_spelling("the release", "other release", taken_for_others(named, known))
    number = {cell: int(p) for cell, p in zip(own_names, person_of, strict=True) if p >= 0}
    strangers = _strangers(persons)
    numbers = [number.get(person_name(cell), strangers + i) for i, cell in enumerate(names)]
    return np.array(numbers, dtype=np.int64)[rows]


def _persons_of_original(release: ShownRelease, truth: Truth) -> np.ndarray:
    """The person of every record of the original, in the release's numbers."""
    if truth.encoded.subjects is not None:
        return truth.encoded.subjects.astype(np.int64)
    if truth.rows is None:
        return np.arange(truth.original.records)
    persons = release.records + np.arange(truth.original.records)
    persons[truth.rows] = np.arange(release.records)
    return persons


def _strangers(persons: np.ndarray) -> int:
    """The first number that is nobody's."""
    return int(persons.max(initial=-1)) + 1


def published_classes(earlier: Table, model: PolicyModel) -> np.ndarray:
    """The class of each row: equal quasi-identifiers are one class, -1 where all are suppressed."""
    mark = model.render.suppressed
    columns = [earlier.column(name) for name in model.quasi]
    suppressed = np.ones(earlier.records, dtype=bool)
    for column in columns:
        suppressed &= np.array([cell == mark for cell in column.cells], dtype=bool)[column.codes]
    classes = alike([column.codes for column in columns], earlier.records)
    return np.where(suppressed, SUPPRESSED, classes)


def row_order(
    earlier: Table, released: Table, schema: Schema, rows: tuple[np.ndarray, ...] = ()
) -> tuple[float, float] | None:
    """How many rows agree on what both releases show unchanged, and by chance; None where they
    can't be compared. rows: of either table, to be compared; by default all.
    """
    if earlier.records != released.records and not rows:
        return None
    both = {*earlier.names} & {*released.names}
    names = [a.name for a in schema.with_role(Role.SENSITIVE, Role.PLAIN) if a.name in both]
    before, now = rows or (np.arange(released.records),) * 2
    if not names or not len(now):
        return None
    agree, chance = np.ones(len(now), dtype=bool), 1.0
    for name in names:
        one, other = released.column(name), earlier.column(name)
        code_of = {cell: code for code, cell in enumerate(one.cells)}
        codes = np.array([code_of.get(cell, OTHER) for cell in other.cells], dtype=np.int64)
        codes, own = codes[other.codes[before]], one.codes[now]
        agree &= codes == own
        shares = np.bincount(codes[codes >= 0], minlength=len(one.cells)) / len(codes)
        chance *= weighted_sum(shares, np.bincount(own, minlength=len(one.cells)) / len(own))
    return float(agree.mean()), chance
