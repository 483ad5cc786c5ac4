"""Other releases of the same people, aligned with the one that is attacked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.attacks.counts import alike
from shoal.attacks.intersection import groups_of, places_of
from shoal.data.attack_scene import EarlierRelease, ShownRelease, ShownRows
from shoal.data.numbers import weighted_sum
from shoal.data.person_names import person_name
from shoal.data.schema import Role, Schema
from shoal.data.table import Column, Table
from shoal.data.truth import Truth
from shoal.errors import InputError
from shoal.policy.policy import Policy

OTHER = -1  # a value that the newer release does not show
SUPPRESSED, ABSENT = -1, -2


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
        values = {
            name: self.codes_of(name, earlier.column(name))
            for name in self.release.sensitive
            if name in earlier.names
        }
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
    labels, subject = published_classes(table, policy), newer.schema.subject
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
    """Aligned record by record; row_of: (n,) the row of each record of the newer release, negative
    where there is none.
    """
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
        shown = rows.persons * size + codes
        unchanged &= np.isin(persons * size + own.codes, shown)
    return EarlierRelease(rows, class_of[persons], unchanged, None, "subject")


def _persons_by_subject(
    names: Sequence[str], rows: np.ndarray, subject: str, newer: Newer, truth: Truth
) -> np.ndarray:
    """The person of every row of another release. rows: (m,) the place of each in the names."""
    own = truth.original.column(subject)
    persons = newer.release.persons
    person_of = np.full(len(own.cells), -1, dtype=np.int64)
    person_of[truth.aligned(own.codes)] = persons
    own_names = map(person_name, own.cells)
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


def published_classes(earlier: Table, policy: Policy) -> np.ndarray:
    """The class of each row: equal quasi-identifiers are one class, -1 where all are suppressed."""
    mark = policy.model.render.suppressed
    columns = [earlier.column(name) for name in policy.quasi]
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
    names = [
        a.name
        for a in schema.with_role(Role.SENSITIVE, Role.PLAIN)
        if a.name in earlier.names and a.name in released.names
    ]
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
