"""The audit of a release that does not fit into memory: range by range of its classes.

What is found is what an audit of the whole finds, bit by bit: promises and measures are added up
over ranges that hold whole classes (`Tally`, `Promise.part` and `total`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from shoal.auditor.findings import not_promised
from shoal.auditor.measure import certificate_of
from shoal.auditor.order_kept import nearest_to_place, order_followed
from shoal.auditor.reading import read_cells
from shoal.data.certificate import Certificate
from shoal.data.classes import Classes, SensitiveColumn
from shoal.data.coded_table import CodedTable
from shoal.data.encoding import EncodedTable
from shoal.data.person_names import people_of
from shoal.data.progress import Progress
from shoal.data.release import (
    PublishedColumn,
    Release,
    is_starred,
    is_withheld,
    label_classes,
    label_shown,
)
from shoal.data.room import Room, blocks
from shoal.data.row_order import Followed
from shoal.data.schema import Role, Schema, Shown
from shoal.data.shared_room import SharedRoom
from shoal.data.truth import Truth
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.problem import Problem
from shoal.protocols import PartedMetric
from shoal.utility.gcp import ColumnFigures
from shoal.utility.tally import Tally

Codes = dict[str, np.ndarray]

A = TypeVar("A")
B = TypeVar("B")


def require_parts(problem: Problem) -> None:
    """Raises InputError with every promise and measure that needs a table held as a whole."""
    findings = [
        f"memory: promise '{model.model}' needs the whole table in memory"
        for model in problem.promises
        if not getattr(model, "works_in_parts", False)
    ]
    findings += [
        f"memory: measure '{name}' needs the whole table in memory"
        for name, metric in registry.build_metrics().items()
        if not isinstance(metric, PartedMetric)
    ]
    if problem.policy.model.reference is not None:
        findings.append("memory: a reference to compare with needs the whole table in memory")
    findings += [
        f"memory: attribute '{attribute.name}': means need the whole table in memory"
        for attribute in problem.schema.quasi
        if attribute.shown is not Shown.RANGE
    ]
    if findings:
        raise InputError.from_findings([f"{finding}; leave out --memory" for finding in findings])


class MeasuredInParts(NamedTuple):
    """A release, measured range by range. scale: how that was done, as a certificate states it."""

    certificate: Certificate
    figures: ColumnFigures
    scale: Mapping[str, int | None]


def measure_in_parts(
    released: CodedTable, problem: Problem, truth: Truth | None, progress: Progress
) -> MeasuredInParts:
    """Every figure of a released table; raises InputError with what can't be measured in parts."""
    progress("reading the release")
    models, schema = problem.promises, problem.schema
    require_parts(problem)
    audited = _Audited.of(released, problem, truth)
    table = audited.whole_table([model for model in models if model.compares_with_table])
    open_columns = not_promised(released, problem.policy)
    tally = Tally(schema, registry.build_metrics(), open_columns)
    found: list[list[Any]] = [[] for _ in models]
    whole = [i for i, model in enumerate(models) if not model.groups_by]
    progress("measuring range by range")
    followed = order_followed(truth, schema.render)
    middles = None if followed is None else followed.middles
    asked = [models[i] for i in whole]
    of_part = partial(_measured_part, schema, asked, table, open_columns, middles)
    parts = 0
    for added, amounts in _each(of_part, audited.ranges(followed), released.room):
        parts += 1
        tally.absorb(added)
        for i, amount in zip(whole, amounts, strict=True):
            found[i].append(amount)
    for i, model in enumerate(models):
        if model.groups_by:
            progress(f"measuring {', '.join(model.groups_by)}")
            of_group = partial(_measured_group, model, table)
            found[i] = list(_each(of_group, audited.grouped_by(model.groups_by), released.room))
    reports = [model.total(each) for model, each in zip(models, found, strict=True)]
    original = None if truth is None else truth.original
    certificate = certificate_of(tally, reports, released, original, problem, followed)
    room = released.room
    scale = {"memory": room.limit, "room_bytes": room.on_disk, "parts": parts}
    scale |= {"tasks": room.tasks} if isinstance(room, SharedRoom) else {}
    return MeasuredInParts(certificate, tally.figures(), scale)


def _each(work: Callable[[A], B], parts: Iterable[A], room: Room) -> Iterator[B]:
    """What is found in each part: by many processes, or one part after the other."""
    if isinstance(room, SharedRoom):
        yield from room.each(work, list(parts))
    else:
        yield from map(work, parts)


def _measured_part(
    schema: Schema,
    models: list[Any],
    table: Classes,
    open_columns: list[str],
    middles: np.ndarray | None,
    measured: Measurable,
) -> tuple[Tally, list[Any]]:
    """The figures of a range, and what each promise finds there.

    middles: where the rows of each cell would stand, of the column that rows follow.
    """
    released, release, truth, order = measured()
    tally = Tally(schema, registry.build_metrics(), open_columns)
    tally.add(released, release)
    if truth is not None:
        tally.compare(released, release, truth)
    if middles is not None:
        classes = release.classes
        near = nearest_to_place(classes.labels, middles[order["cell"]], order["row"])
        tally.found_by_order.add(classes.subjects, near)
    return tally, [model.part(release.classes, table) for model in models]


def _measured_group(model: Any, table: Classes, group: Callable[[], Classes]) -> Any:
    return model.part(group(), table)


Part = tuple[CodedTable, Release, Truth | None, Codes]

Measurable = Callable[[], Part]
"""Makes a range when it is measured, so that no two are held at once, and where it is measured."""


@dataclass(frozen=True)
class _Audited:
    """A released table whose cells were read."""

    released: CodedTable
    problem: Problem
    truth: Truth | None
    columns: tuple[PublishedColumn, ...]
    sensitive: dict[str, SensitiveColumn]
    subjects: np.ndarray | None

    @classmethod
    def of(cls, released: CodedTable, problem: Problem, truth: Truth | None) -> _Audited:
        columns, sensitive = read_cells(released, problem)
        subjects = None if truth is None else truth.subjects
        if truth is None and problem.subject in released.names:
            subjects = people_of(released.column(problem.subject))
        return cls(released, problem, truth, columns, sensitive, subjects)

    def ranges(self, followed: Followed | None) -> Iterator[Measurable]:
        """The release, range by range, beside what its owner knows.

        followed: the column of which each row's cell and place are known, too.
        """
        _ = self._places, self._left_out  # once, before others are given it
        shown = {name: self.released.column(name).codes for name in self._compared}
        true = {} if self.truth is None else _true_codes(self.truth, self.problem.schema)
        order = {} if followed is None else {"cell": followed.codes, "row": self._places_of_rows()}
        ranges = self._ranges([column.name for column in self.columns])
        for some in ranges.split(shown, true, self._people, order):
            yield partial(self._part, *some)

    def grouped_by(self, names: tuple[str, ...]) -> Iterator[Callable[[], Classes]]:
        """Records whose cells are equal in these columns alone as classes, range by range."""
        of_name = {column.name: column for column in self.columns}
        unknown = [name for name in names if name not in of_name]
        if unknown:
            raise InputError(
                f"promise: attribute '{unknown[0]}' is not a quasi-identifier; correct the policy"
            )
        others = () if self._left_out is None else of_name
        carried = {name: of_name[name].codes for name in (*names, *others)}
        for codes, people in self._ranges(list(names)).split(carried, self._people):
            columns = [replace(of_name[name], codes=some) for name, some in codes.items()]
            yield partial(self._group, columns, names, people)

    def _group(
        self, columns: list[PublishedColumn], names: tuple[str, ...], people: Codes
    ) -> Classes:
        """Some records by some of these columns; the others say who is withheld."""
        left_out = np.zeros(len(columns[0].codes), dtype=bool)
        if self._left_out is not None:
            left_out = is_starred(tuple(columns), self.problem.schema.render.suppressed)
        grouping = tuple(column for column in columns if column.name in names)
        labels, count = label_classes(grouping, left_out)
        quasi = {column.name: column.codes for column in grouping}
        return Classes(labels, count, _subjects(people), {}, quasi)

    def _ranges(self, names: list[str]) -> Ranges:
        codes = [self.released.column(name).codes for name in names]
        return Ranges(codes, self.released.records, self.released.room)

    @property
    def _people(self) -> Codes:
        """The number of each person, under no name; nothing where rows are people."""
        return {} if self.subjects is None else {"": self.subjects}

    @property
    def _compared(self) -> list[str]:
        """The published columns that are measured, or compared with the original."""
        roles = (Role.QUASI, Role.SENSITIVE, Role.PLAIN)
        return [a.name for a in self.problem.schema.published if a.role in roles]

    def _places_of_rows(self) -> np.ndarray:
        places = self.released.room.array(self.released.records, np.int64)
        for rows in blocks(len(places)):
            places[rows] = np.arange(rows.start, rows.stop)
        return places

    def _part(self, shown: Codes, true: Codes, people: Codes, order: Codes) -> Part:
        released = self.released.part(shown)
        truth = None if self.truth is None else _part_of(self.truth, true, people.get(""))
        columns = tuple(replace(column, codes=shown[column.name]) for column in self.columns)
        starred = is_starred(columns, self.problem.schema.render.suppressed)
        labels, count = label_shown(columns, starred, self._left_out is not None)
        classes = Classes(
            labels,
            count,
            _subjects(people),
            {name: self._sensitive(name, shown[name]) for name in self.sensitive},
            {column.name: column.codes for column in columns},
        )
        label = None if self.problem.schema.label is None else shown.get(self.problem.schema.label)
        originals = {} if truth is None else truth.originals()
        k = self.problem.required_k
        release = Release(columns, classes, k, label, originals, starred)
        return released, release, truth, order

    def _sensitive(self, name: str, codes: np.ndarray) -> SensitiveColumn:
        """A sensitive column of some records. codes: of their texts."""
        column = self.sensitive[name]
        return replace(column, codes=self._places[name][codes])

    @cached_property
    def _places(self) -> Codes:
        """The place of each distinct text, by the places of the records that hold it."""
        found = {}
        for name, column in self.sensitive.items():
            places = np.zeros(len(self.released.column(name).cells), dtype=np.int32)
            codes = self.released.column(name).codes
            for rows in blocks(self.released.records):
                places[codes[rows]] = column.codes[rows]
            found[name] = places
        return found

    def whole_table(self, models: list[Any]) -> Classes:
        """What classes are compared with: how often each value counts among all in some class."""
        names = {name for model in models for name in model.sensitive}
        sensitive = {
            name: in_whole_table(
                self.sensitive[name], self.subjects, self._left_out, self.released.room
            )
            for name in sorted(names & self.sensitive.keys())
        }
        return Classes(np.zeros(0, dtype=np.int32), 0, None, sensitive)

    @cached_property
    def _left_out(self) -> np.ndarray | None:
        """(n,) bool, records in no class; None where there is none."""
        released, mark = self.released, self.problem.schema.render.suppressed
        starred = released.room.array(released.records, bool)
        for rows in blocks(released.records):
            some = tuple(replace(column, codes=column.codes[rows]) for column in self.columns)
            starred[rows] = is_starred(some, mark)
        names = [attribute.name for attribute in self.problem.schema.sensitive]
        return starred if is_withheld(released, names, starred, mark) else None


def _subjects(people: Codes) -> np.ndarray | None:
    return people[""].astype(np.int32, copy=False) if people else None


def _true_codes(truth: Truth, schema: Schema) -> Codes:
    """The codes of the original that published cells are compared with, by published record."""
    names = [a.name for a in schema.published if a.role in (Role.SENSITIVE, Role.PLAIN)]
    codes = {one.attribute.name: one.codes for one in truth.encoded.attributes}
    codes |= {name: truth.original.column(name).codes for name in names}
    return {name: truth.aligned(own) for name, own in codes.items()}


def _part_of(truth: Truth, codes: Codes, people: np.ndarray | None) -> Truth:
    """What is known of some records. codes: theirs."""
    original = truth.original
    assert isinstance(original, CodedTable)
    own = {one.attribute.name: one for one in truth.encoded.attributes}
    attributes = tuple(replace(one, codes=codes[name]) for name, one in own.items())
    records = len(next(iter(codes.values()), ()))
    encoded = EncodedTable(attributes, people, np.zeros(records, dtype=bool))
    often = {name: original.column(name).counts() for name in own}
    return Truth(original.part(codes), encoded, None, often)


# Records of many classes in ranges: every range holds all records of its classes, in their order.
#
# A range is small enough to be measured in memory. Which classes lie in which range follows from
# what they show, and nothing that is measured depends on it.


RECORD_BYTES = 128
"""What measuring a record of a range takes in memory, at most."""

SHARE = 8
"""A range may take one part of the limit in this number."""

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio


class Ranges:
    """The records of a table by what some of its columns show."""

    def __init__(self, shown: Sequence[np.ndarray], records: int, room: Room) -> None:
        """shown: (n,) codes of each column that makes the classes."""
        self._room = room
        each = None if room.limit is None else max(room.limit // SHARE // RECORD_BYTES, 1)
        self.count = 1 if each is None else min(max(-(-records // each), 1), 1 << 15)
        self._range_of = room.array(records, np.uint16)
        sizes = np.zeros(self.count, dtype=np.int64)
        for rows in blocks(records):
            hashed = np.zeros(rows.stop - rows.start, dtype=np.uint64)
            for codes in shown:
                hashed ^= hashed >> np.uint64(29)
                hashed += codes[rows].astype(np.uint64)
                hashed *= _ODD
            number = (hashed >> np.uint64(32)) % np.uint64(self.count)
            self._range_of[rows] = number
            sizes += np.bincount(self._range_of[rows], minlength=self.count)
        self._starts = np.concatenate(([0], np.cumsum(sizes)))

    def split(self, *tables: Codes) -> Iterator[list[Codes]]:
        """The columns of each range; within it in the order of the records."""
        moved = self._moved([codes for columns in tables for codes in columns.values()])
        for start, end in pairwise(self._starts.tolist()):
            some = iter([codes[start:end] for codes in moved])
            yield [{name: next(some) for name in columns} for columns in tables]

    def _moved(self, columns: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The columns, range after range."""
        if self.count == 1:
            return list(columns)
        found = [self._room.array(len(column), column.dtype) for column in columns]
        at = self._starts[:-1].copy()
        for rows in blocks(len(self._range_of)):
            order = np.argsort(self._range_of[rows], kind="stable")
            sizes = np.bincount(self._range_of[rows], minlength=self.count)
            ends = np.cumsum(sizes)
            for column, target in zip(columns, found, strict=True):
                some = column[rows][order]
                for number in np.flatnonzero(sizes).tolist():
                    size, end = int(sizes[number]), int(ends[number])
                    begun = int(at[number])
                    target[begun : begun + size] = some[end - size : end]
            at += sizes
        return found


# How often each sensitive value counts in a whole table that is not held in memory.


PAIR_BYTES = 32
"""What a pair takes while pairs are told apart."""


def in_whole_table(
    column: SensitiveColumn, subjects: np.ndarray | None, left_out: np.ndarray | None, room: Room
) -> SensitiveColumn:
    """The column without its records, with how many (subject, value) pairs have each value.

    subjects: (n,) numbers, None where each record is its own person. left_out: (n,) bool, records
    in no class. Raises InputError where several texts stand for no value and people have several
    records: whether somebody has two of them is only known of a table that is held as a whole.
    """
    counts = np.zeros(max(column.values, 1), dtype=np.int64)
    if subjects is None:
        for rows in blocks(len(column.codes)):
            places = column.codes[rows]
            kept = places if left_out is None else places[~left_out[rows]]
            counts += np.bincount(kept, minlength=len(counts))
    else:
        if column.missing > 1:
            raise InputError(
                f"memory: '{column.name}' has several texts for no value, which need the whole"
                " table in memory where people have several records; leave out --memory"
            )
        _count_pairs(column.codes, subjects, left_out, counts, room)
    return replace(column, codes=column.codes[:0], in_table=counts)


def _count_pairs(
    places: np.ndarray,
    subjects: np.ndarray,
    left_out: np.ndarray | None,
    counts: np.ndarray,
    room: Room,
) -> None:
    """Adds the pairs of as many people at a time as have room."""
    records = len(places)
    people = 1 + max((int(subjects[rows].max()) for rows in blocks(records)), default=-1)
    most = (room.limit or PAIR_BYTES * records * 8) // 8 // PAIR_BYTES
    each = max(people * most // max(records, 1), 1)
    for first in range(0, people, each):
        keys = []
        for rows in blocks(records):
            person = subjects[rows].astype(np.int64) - first
            chosen = (person >= 0) & (person < each)
            if left_out is not None:
                chosen &= ~left_out[rows]
            keys.append(person[chosen] * len(counts) + places[rows][chosen])
        pairs = np.unique(np.concatenate(keys))
        counts += np.bincount(pairs % len(counts), minlength=len(counts))
