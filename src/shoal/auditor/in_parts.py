"""The parts of a release that are measured one by one: ranges that hold whole classes.

What is found is what is found of the whole, bit by bit: promises and measures are added up over
ranges (`Tally`, `Promise.part` and `total`). A release in memory is one part.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from shoal.auditor.reading import nearest_to_place, read_cells
from shoal.auditor.sharing import household_shown
from shoal.data.certificate_shape import PromiseReport
from shoal.data.classes import Classes, SensitiveColumn, encode_sensitive_columns
from shoal.data.coded_table import CodedTable
from shoal.data.encoding import EncodedTable
from shoal.data.progress import Progress
from shoal.data.release import (
    PublishedColumn,
    Release,
    is_starred,
    is_withheld,
    label_classes,
    label_shown,
)
from shoal.data.room import Room, blocks, needs_whole
from shoal.data.row_order import Followed
from shoal.data.schema import Role, Schema
from shoal.data.truth import Truth
from shoal.policy import registry
from shoal.policy.binding.past_memory import JOINED_BYTES, floor, require_memory
from shoal.policy.problem import Problem
from shoal.protocols import PartedMetric
from shoal.utility.tally import Tally

Codes = dict[str, np.ndarray]


def require_parts(problem: Problem) -> None:
    """Raises InputError with every promise and measure that needs a table held as a whole."""
    findings = [
        f"promise '{model.model}' is judged on all classes at once"
        for model in problem.promises
        if not getattr(model, "works_in_parts", False)
    ]
    findings += [
        f"measure '{name}' is taken of all classes at once"
        for name, metric in registry.build_metrics().items()
        if not isinstance(metric, PartedMetric)
    ]
    if problem.policy.model.reference is not None:
        findings.append("classes are compared with a reference")
    if findings:
        raise needs_whole(*findings)


def measure_in_parts(
    released: CodedTable,
    problem: Problem,
    truth: Truth | None,
    open_columns: Sequence[str],
    followed: Followed | None,
    progress: Progress,
) -> tuple[Tally, list[PromiseReport], int, Classes | None]:
    """The figures of a release, its promises, and in how many parts they were measured; and who is
    in which class of the whole, without sensitive values, None where nothing is asked of several
    classes at once. Raises InputError with what can't be measured.

    followed: the column that rows in the input's order follow.
    """
    models, room = problem.promises, released.room
    require_parts(problem)
    audited = _Audited.of(released, problem, truth)
    table = audited.whole_table([model for model in models if model.compares_with_table])
    tally = Tally(problem.schema, registry.build_metrics(), open_columns)
    found: list[list[Any]] = [[] for _ in models]
    whole = audited.whole_classes(open_columns)
    progress("measuring range by range")
    middles, parts = None if followed is None else followed.middles, 0
    measured = partial(audited.measured, table, open_columns, middles)
    for added, amounts, own in room.each(measured, audited.ranges(followed, whole is not None)):
        parts += 1
        tally.absorb(added)
        if whole is not None and own is not None:  # the classes of the ranges before, and these
            rows, labels, count = own
            whole.labels[rows] = np.where(labels < 0, -1, labels + whole.count)
            whole = replace(whole, count=whole.count + count)
        for each, amount in zip(found, amounts, strict=True):
            each.append(amount)
    for i, model in enumerate(models):
        if model.groups_by:
            progress(f"measuring {', '.join(model.groups_by)}")
            grouped = partial(audited.measured_by_group, model, table)
            found[i] = list(room.each(grouped, audited.ranges_by(model.groups_by)))
    promises = [model.total(each) for model, each in zip(models, found, strict=True)]
    return tally, promises, parts, whole


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
    def of(cls, released: CodedTable, problem: Problem, truth: Truth | None) -> "_Audited":
        return cls(released, problem, truth, *read_cells(released, problem, truth))

    def ranges(self, followed: Followed | None, are_places_asked: bool) -> Iterator[list[Codes]]:
        """Range by range, what the release shows, what is true, and what else its owner knows.

        are_places_asked: whether each range is to say where its records stand.
        """
        _ = self._places, self._is_withheld  # once, before others are given it
        shown = {name: self.released.column(name).codes for name in self._compared}
        true = {} if self.truth is None else _true_codes(self.truth, self.problem.schema)
        order = {} if followed is None else {"cell": followed.codes}
        if are_places_asked or order:
            order["row"] = self._places_of_rows()
        ranges = self._ranges([column.name for column in self.columns])
        return ranges.split(shown, true, self._known | order)

    def measured(
        self,
        table: Classes,
        open_columns: Sequence[str],
        middles: np.ndarray | None,
        codes: Sequence[Codes],
    ) -> tuple[Tally, list[Any], tuple[np.ndarray, np.ndarray, int] | None]:
        """The figures of one of `ranges`, and what each promise finds there that groups by all
        columns; where that is asked, the places of its records, the class of each, and how many
        classes there are.

        middles: by cell of the column that rows follow, where its rows would stand.
        """
        shown, true, known = codes
        released = self.released.part(shown)
        truth = None if self.truth is None else _part_of(self.truth, true, known.get("person"))
        release = self._release(released, truth, shown, known)
        classes, rows, near = release.classes, known.get("row"), None
        if middles is not None:
            near = nearest_to_place(classes.labels, middles[known["cell"]], rows)
        tally = Tally(self.problem.schema, registry.build_metrics(), open_columns)
        tally.take(released, release, truth, near)
        models = self.problem.promises
        amounts = [None if model.groups_by else model.part(classes, table) for model in models]
        labelled = None if rows is None else (rows, classes.labels, classes.count)
        return tally, amounts, labelled

    def _release(
        self, released: CodedTable, truth: Truth | None, shown: Codes, known: Codes
    ) -> Release:
        """A range as its readers see it, and what the owner knows of it."""
        columns = tuple(replace(column, codes=shown[column.name]) for column in self.columns)
        labels, count = label_shown(columns, known["starred"], self._is_withheld)
        sensitive = {
            name: replace(self.sensitive[name], codes=places[shown[name]])
            for name, places in self._places.items()
        }
        quasi = {column.name: column.codes for column in columns}
        classes = Classes(labels, count, _subjects(known), sensitive, quasi)
        label = released.codes_of(self.problem.schema.label)
        originals = {} if truth is None else truth.originals()
        k, starred = self.problem.required_k, known["starred"]
        return Release(columns, classes, k, label, originals, starred)

    def ranges_by(self, names: tuple[str, ...]) -> Iterator[list[Codes]]:
        """Range by range, what records show in these columns alone, and what else is known."""
        shown = {name: self.released.column(name).codes for name in names}
        return self._ranges(list(names)).split(shown, self._known)

    def measured_by_group(self, model: Any, table: Classes, codes: Sequence[Codes]) -> Any:
        """What a promise finds in one of `ranges_by`, of which equal cells are a class."""
        shown, known = codes
        columns = tuple(
            replace(column, codes=shown[column.name])
            for column in self.columns
            if column.name in shown
        )
        labels, count = label_classes(columns, known["starred"] & self._is_withheld)
        return model.part(Classes(labels, count, _subjects(known)), table)

    def _ranges(self, names: list[str]) -> "Ranges":
        codes = [self.released.column(name).codes for name in names]
        return Ranges(codes, self.released.records, self.released.room)

    @property
    def _known(self) -> Codes:
        """Who is starred, and the number of each person; the latter not where rows are people."""
        people = {} if self.subjects is None else {"person": self.subjects}
        return {"starred": self._starred, **people}

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

    @cached_property
    def _places(self) -> Codes:
        """The place of each distinct text of the sensitive columns."""
        cells = {name: len(self.released.column(name).cells) for name in self.sensitive}
        each_once = self.released.part({name: np.arange(many) for name, many in cells.items()})
        problem = self.problem
        found, _ = encode_sensitive_columns(each_once, problem.schema, problem.earlier)
        return {name: column.codes for name, column in found.items()}

    def whole_classes(self, open_columns: Sequence[str]) -> Classes | None:
        """Classes of the whole release with nobody in them yet; None where weights, households or
        people who have several records are not there to be judged in several classes at once.

        Raises InputError where the limit on memory is too small for that.
        """
        problem, released = self.problem, self.released
        sample = None if self.truth is None else self.truth.sample
        home = household_shown(released.names, problem.schema)
        is_linked = self.subjects is not None and problem.required_k is not None
        is_linked &= any(problem.role_of(name) == "plain" for name in open_columns)
        if sample is None and home is None and not is_linked:
            return None
        records, quasi, room = released.records, len(problem.schema.quasi), released.room
        if room.limit is not None:
            needed = floor(records, quasi, problem.required_k or 1, JOINED_BYTES)
            require_memory(room.limit, needed)
        people = None if self.subjects is None else self.subjects.astype(np.int32, copy=False)
        return Classes(room.array(records, np.int32), 0, people, sample=sample)

    def whole_table(self, models: list[Any]) -> Classes:
        """What classes are compared with: how often each value counts among all in some class."""
        names = {name for model in models for name in model.sensitive}
        left_out = self._starred if self._is_withheld else None
        sensitive = {
            name: in_whole_table(self.sensitive[name], self.subjects, left_out, self.released.room)
            for name in sorted(names & self.sensitive.keys())
        }
        return Classes(np.zeros(0, dtype=np.int32), 0, None, sensitive)

    @cached_property
    def _starred(self) -> np.ndarray:
        """(n,) bool, as in `Release`."""
        starred = self.released.room.array(self.released.records, bool)
        for rows in blocks(len(starred)):
            some = tuple(replace(column, codes=column.codes[rows]) for column in self.columns)
            starred[rows] = is_starred(some, self.problem.schema.render.suppressed)
        return starred

    @cached_property
    def _is_withheld(self) -> bool:
        """Whether starred records are in no class."""
        names, mark = [*self.sensitive], self.problem.schema.render.suppressed
        return is_withheld(self.released, names, self._starred, mark)


def _subjects(known: Codes) -> np.ndarray | None:
    return known["person"].astype(np.int32, copy=False) if "person" in known else None


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
            raise needs_whole(
                f"'{column.name}' has several texts for no value, and people have several records"
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
