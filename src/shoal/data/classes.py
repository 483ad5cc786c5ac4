"""What a promise is measured on: who is in which class, what is sensitive about them, and whom the
records of a sample stand for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

from shoal.data.certificate_shape import SizesReport
from shoal.data.findings import AttributeFinding, finding_about, findings_about
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.numbers import INDISTINCT, fall_together, parse_numbers
from shoal.data.person_names import (
    is_nobody,
    person_name,
    same_texts,
    same_value,
    same_values,
    values_of,
)
from shoal.data.room import IN_MEMORY, Room
from shoal.data.schema import Attribute, Kind, Schema
from shoal.data.table import Column, Table


@dataclass(frozen=True)
class SensitiveColumn:
    """One sensitive attribute.

    codes: (n,) int32, the value of each record as its place 0..values-1: in value order for numbers
        and ordinals, the leaf's number for hierarchies, else in any fixed order. Texts that stand
        for no value are behind all others, each at a place of its own.
    values: how many places there are; for numbers and ordinals every place below it occurs, here or
    in `earlier`.
    distance: `equal`, `ordered` or `hierarchical`: how far apart two values are for t-closeness.
    labels: text of each place, for promises that name values; of a hierarchy, of the last
    `missing` places only.
    in_table: (values,) int64, how many (subject, value) pairs of the whole table have each value,
    where `codes` are not those of the whole table; or None.
    missing: how many texts stand for no value. A hierarchy has one leaf for all of them.
    numbers: (values,) float64, the number behind each place of a numeric attribute, missing ones
    infinite.
    earlier: (values,) int64, how often each value counts in what else is published of a growing
    table; or None.
    """

    name: str
    codes: np.ndarray
    values: int
    distance: str = "equal"
    hierarchy: Hierarchy | None = None
    labels: tuple[str, ...] = ()
    numbers: np.ndarray | None = None
    earlier: np.ndarray | None = None
    missing: int = 0
    in_table: np.ndarray | None = None

    def with_missing_as_one(self) -> SensitiveColumn:
        """The column with one place for all texts that stand for no value, behind all others.

        For promises that count values or know how far apart they are: a second text for no value
        does not count as another value.
        """
        if self.missing < 2:
            return self
        values = self.values - self.missing + 1
        kept = len(self.labels) - self.missing + 1
        return replace(
            self._merged(np.minimum(np.arange(self.values), values - 1), values),
            labels=self.labels[: max(kept, 0)],
            numbers=None if self.numbers is None else self.numbers[:values],
            missing=1,
        )

    def with_none(self, records: int) -> SensitiveColumn:
        """The column with some more records at its end, which have no value."""
        none = np.full(records, self.values, dtype=np.int32)
        return replace(
            self,
            codes=np.concatenate([self.codes, none]).astype(np.int32),
            values=self.values + 1,
            missing=self.missing + 1,
            labels=(*self.labels, ""),
        )

    def missing_texts(self) -> SensitiveColumn:
        """Only which text for no value a record shows; those that have a value share a place."""
        place = np.maximum(np.arange(self.values) - (self.values - self.missing) + 1, 0)
        return replace(
            self._merged(place, self.missing + 1),
            distance="equal",
            hierarchy=None,
            labels=(),
            numbers=None,
            missing=0,
        )

    def _merged(self, place: np.ndarray, values: int) -> SensitiveColumn:
        """place: (values,) the new place of each."""
        earlier, in_table = (
            None if counts is None else np.bincount(place, counts, values).astype(np.int64)
            for counts in (self.earlier, self.in_table)
        )
        codes = place.astype(np.int32)[self.codes]
        return replace(self, codes=codes, values=values, earlier=earlier, in_table=in_table)

    def code_of(self, label: str) -> int | None:
        """The place of a value given by any text of it, None where it does not occur."""
        known = self.labels
        if self.hierarchy is not None:
            known = self.hierarchy.labels[: self.values - self.missing] + self.labels
        if label in known:
            return known.index(label)
        names = [same_value(one) for one in known]
        return names.index(same_value(label)) if same_value(label) in names else None


@dataclass(frozen=True)
class Population:
    """The people of a population table whom the published cells of each class cover.

    people: (count,) int64. outside: how many of the table fit no class.
    """

    people: np.ndarray
    outside: int = 0


@dataclass(frozen=True)
class Classes:
    """Records by class, with their people and sensitive values.

    labels: (n,) int32, class 0..count-1 of each record; -1 where it is in no class (suppressed).
    subjects: (n,) int32 person of each record, or None when every record is its own person.
    sensitive: by attribute name.
    quasi: (n,) int32 codes of the published cells by attribute name, for promises over some of the
        quasi-identifiers only; empty where they are not known.
    population: by table, who of the population fits each class; empty where that is not known.
    sample: whom the records stand for; None where that is not known.
    """

    labels: np.ndarray
    count: int
    subjects: np.ndarray | None = None
    sensitive: Mapping[str, SensitiveColumn] = field(default_factory=dict)
    quasi: Mapping[str, np.ndarray] = field(default_factory=dict)
    population: Mapping[str, Population] = field(default_factory=dict)
    sample: Sample | None = None

    def only(self, kept: np.ndarray, subjects: np.ndarray | None) -> Classes:
        """The classes of some records. kept: (n,) bool; subjects: theirs, numbered densely."""
        sensitive = {
            name: replace(column, codes=column.codes[kept])
            for name, column in self.sensitive.items()
        }
        quasi = {name: codes[kept] for name, codes in self.quasi.items()}
        sample = None if self.sample is None else self.sample.take(kept)
        return Classes(self.labels[kept], self.count, subjects, sensitive, quasi, sample=sample)

    @cached_property
    def sizes(self) -> np.ndarray:
        """Records of every class, (count,) int64; read-only."""
        if self.count == 1:
            counted = np.array([np.count_nonzero(self.labels == 0)])
        else:  # label -1 is counted in place 0, which is left out
            counted = np.bincount(self.labels + 1, minlength=self.count + 1)[1:].copy()
        counted.flags.writeable = False
        return counted

    def lacks_values(self, name: str) -> bool:
        """Whether some record of a class has no value of a sensitive attribute."""
        column = self.sensitive.get(name)
        if column is None or not column.missing:
            return False
        return bool((column.codes[self.labels >= 0] >= column.values - column.missing).any())

    def people(self) -> np.ndarray:
        """Distinct subjects of every class, (count,) int64; read-only, counted only once."""
        return self._people

    @cached_property
    def _people(self) -> np.ndarray:
        if self.subjects is None:
            return self.sizes
        kept = self.labels >= 0
        # sorted and compared with its neighbour: many times as fast as np.unique
        pairs = np.sort(self.labels[kept].astype(np.int64) << 32 | self.subjects[kept])
        first = np.concatenate((np.ones(min(len(pairs), 1), dtype=bool), pairs[1:] != pairs[:-1]))
        counted = np.bincount(pairs[first] >> 32, minlength=self.count)
        counted.flags.writeable = False
        return counted


def people_with(keys: np.ndarray, persons: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Distinct keys, ascending, and how many different people have each; persons: None for rows."""
    distinct = keys if persons is None else pairs_of(keys, persons)[0]
    return np.unique(distinct, return_counts=True)


def pairs_of(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct pairs of a key and a value, ascending, and how often each occurs; (m,) each."""
    order = np.lexsort((values, keys))
    keys, values = keys[order], values[order]
    is_first = np.ones(len(keys), dtype=bool)
    is_first[1:] = (keys[1:] != keys[:-1]) | (values[1:] != values[:-1])
    first = np.flatnonzero(is_first)
    return keys[first], values[first], np.diff(np.append(first, len(keys)))


# What t-closeness asks of one sensitive attribute, for methods that build classes towards it.


@dataclass(frozen=True)
class Closeness:
    """In every class the column's values are within t of the whole table (earth mover's distance).

    column: the attribute; its `distance` is the ground distance.
    frequencies: (values,) int64, how often each value counts in the whole table.
    """

    column: SensitiveColumn
    frequencies: np.ndarray
    t: float


# How many groups have each size: what is left of a list of sizes when its order says nothing.


@dataclass(frozen=True)
class Sizes:
    """Sizes that occur, ascending, none of them 0, and how many groups have each; (m,) int64."""

    sizes: np.ndarray
    groups: np.ndarray

    @classmethod
    def of(cls, people: np.ndarray) -> Sizes:
        """Of the size of each group; those of nobody are left out."""
        most = int(people.max(initial=0))
        if most > 4 * len(people) + 1024:  # a table of all sizes would be longer than their list
            sizes, groups = np.unique(people, return_counts=True)
        else:
            groups = np.bincount(people)
            sizes = np.flatnonzero(groups)
            groups = groups[sizes]
        kept = sizes > 0
        return cls(sizes[kept].astype(np.int64), groups[kept].astype(np.int64))

    @classmethod
    def joined(cls, parts: Iterable[Sizes]) -> Sizes:
        """Of the groups of all parts."""
        parts = list(parts)
        if len(parts) == 1:
            return parts[0]
        nothing = np.zeros(0, dtype=np.int64)
        listed = np.concatenate([nothing, *(part.sizes for part in parts)])
        sizes, place = np.unique(listed, return_inverse=True)
        groups = np.zeros(len(sizes), dtype=np.int64)
        np.add.at(groups, place.reshape(-1), np.concatenate([nothing, *(p.groups for p in parts)]))
        return cls(sizes, groups)

    @property
    def count(self) -> int:
        """How many groups there are."""
        return int(self.groups.sum())

    @property
    def total(self) -> int:
        """The people of all groups."""
        return int(self.sizes @ self.groups)

    @property
    def least(self) -> int | None:
        return int(self.sizes[0]) if len(self.sizes) else None

    @property
    def greatest(self) -> int | None:
        return int(self.sizes[-1]) if len(self.sizes) else None

    @property
    def mean(self) -> float | None:
        return self.total / self.count if len(self.sizes) else None

    @property
    def stated(self) -> SizesReport:
        """As a certificate states them."""
        return {"count": self.count, "min": self.least, "mean": self.mean, "max": self.greatest}


def encode_sensitive_columns(
    table: Table, schema: Schema, earlier: Mapping[str, Mapping[str, int]]
) -> tuple[dict[str, SensitiveColumn], list[AttributeFinding]]:
    """The sensitive columns by name, or what is wrong. earlier: as in `encode_sensitive`."""
    encoded: dict[str, SensitiveColumn] = {}
    findings: list[AttributeFinding] = []
    for attribute in schema.sensitive:
        name = attribute.name
        column, wrong = encode_sensitive(
            attribute, table.column(name), schema, earlier.get(name), table.room
        )
        findings += wrong
        if column is not None:
            encoded[name] = column
    return encoded, findings


def encode_sensitive(
    attribute: Attribute,
    column: Column,
    schema: Schema,
    earlier: Mapping[str, int] | None = None,
    room: Room = IN_MEMORY,
) -> tuple[SensitiveColumn | None, list[AttributeFinding]]:
    """The column with its values in order, or what is wrong with it.

    Every text for no value is a value of its own, behind all others: `SensitiveColumn` can make
    them one. earlier: how often each text counts elsewhere; such values have places,
    too.
    """
    if not earlier:
        return _encoded(attribute, column, schema, room)
    # each earlier text as one more record, whose code is then read off
    index_of = {cell: i for i, cell in enumerate(column.cells)}
    more = [index_of.setdefault(cell, len(index_of)) for cell in earlier]
    codes = np.concatenate([column.codes, np.array(more, dtype=np.int64)])
    longer = Column(column.name, codes, pl.Series(column.name, list(index_of), pl.String))
    encoded, findings = _encoded(attribute, longer, schema, room)
    if encoded is None:
        return None, findings
    records = len(column.codes)
    times = np.zeros(encoded.values, dtype=np.int64)
    np.add.at(times, encoded.codes[records:], list(earlier.values()))
    return replace(encoded, codes=encoded.codes[:records], earlier=times), []


def _encoded(
    attribute: Attribute, column: Column, schema: Schema, room: Room
) -> tuple[SensitiveColumn | None, list[AttributeFinding]]:
    # a text that looks like one for a missing value is missing, too
    none = {*same_values(schema.no_names)}
    missing = same_texts(column.texts).is_in(sorted(none)).to_numpy()
    keys, distance, unfit = _keys(attribute, column)
    spelled = same_values(attribute.order or ())
    if len({*spelled}) < len(spelled):
        twice = np.array([spelled.count(value) > 1 for value in same_values(column.cells)])
        remedy = "write it one way, in the data and in the policy"
        return None, [
            finding_about(column, twice, "with a value that its order lists twice", remedy)
        ]
    absent = ~np.isfinite(keys) & ~missing
    if absent.any():
        remedy = (
            "complete the policy, or correct the data; 'shoal policy check POLICY DATA"
            " --show-values' lists them"
        )
        return None, [finding_about(column, absent, f"with values {unfit}", remedy)]
    if attribute.kind is Kind.NUMBER:
        alike = fall_together(np.where(missing, np.nan, keys), column.texts)
        if alike.any():
            remedy = "shorten them, or leave out 'type: number', which makes them codes"
            return None, [finding_about(column, alike, INDISTINCT, remedy)]
    none_at = np.flatnonzero(missing)
    numbers: np.ndarray | None = None
    tree = attribute.hierarchy if distance == "hierarchical" else None
    if tree is not None:
        places, values, first = keys, tree.leaves, none_at[:0]
        tree = tree.with_leaf("") if len(none_at) else tree
    else:
        distinct, first, place = np.unique(keys[~missing], return_index=True, return_inverse=True)
        first, values = np.flatnonzero(~missing)[first], len(distinct)
        places = np.zeros(len(keys))
        places[~missing] = place
        if distance == "ordered" and attribute.kind is Kind.NUMBER:
            numbers = np.append(distinct, np.full(len(none_at), np.inf))
    # texts for no value, in their order, behind all others
    places = np.where(missing, values + np.cumsum(missing) - 1, places).astype(np.int32)
    encoded = SensitiveColumn(
        attribute.name,
        room.gather(places, column.codes),
        values + len(none_at),
        distance,
        tree,
        tuple(column.texts.gather(np.append(first, none_at)).to_list()),
        numbers,
        missing=len(none_at),
    )
    return encoded, []


def _keys(attribute: Attribute, column: Column) -> tuple[np.ndarray, str, str]:
    """What each cell is ordered by, which distance cells have, and what is wrong with NaN."""
    if attribute.hierarchy is not None and attribute.kind is Kind.CATEGORY:
        return attribute.places(column.texts), "hierarchical", "missing from its hierarchy"
    if attribute.kind is Kind.NUMBER:
        distance = "equal" if attribute.is_code else "ordered"
        return parse_numbers(column.texts), distance, "that are not numbers"
    if attribute.kind is Kind.ORDINAL:
        return attribute.places(column.texts), "ordered", "missing from its order"
    return values_of(column).astype(np.float64), "equal", ""


# A sample of a population.


@dataclass(frozen=True)
class Sample:
    """The records of a sample.

    weights: (n,) float64, at least 1, people of the population whom each record's person stands
    for. households: (n,) int32, numbered from 0; None where everybody is a household.
    """

    weights: np.ndarray
    households: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> Sample:
        """Of some of the records, by number or by a mask."""
        households = None if self.households is None else self.households[rows]
        return Sample(self.weights[rows], households)


def encode_sample(
    table: Table, schema: Schema, subjects: np.ndarray | None
) -> tuple[Sample | None, list[AttributeFinding]]:
    """The weights and households of a table, None where the policy names no weight; or everything
    that is wrong with them.

    subjects: (n,) the person of each record, None where every record is its own.
    """
    if schema.weight is None:
        return None, []
    column = table.column(schema.weight.name)
    missing = np.array([not schema.is_value(cell) for cell in column.cells], dtype=bool)
    weights = parse_numbers(column.cells)
    findings = [*_unfit(column, missing, weights)]
    people = [(column, weights)]
    households = None
    if schema.household is not None:
        lived_in = table.column(schema.household.name)
        homes = [person_name(cell) for cell in lived_in.cells]
        homeless = is_nobody(lived_in.texts, schema.no_names)
        findings += findings_about(lived_in, homeless, *_HOMELESS)
        place = {home: number for number, home in enumerate(dict.fromkeys(homes))}
        number = np.array([place[home] for home in homes], dtype=np.int32)
        people.append((lived_in, number))
        households = number[lived_in.codes]
    if subjects is not None and not findings:
        for known, values in people:
            findings += findings_about(known, _changing(known, values, subjects), *_CHANGING)
    if findings:
        return None, findings
    return Sample(weights[column.codes], households), []


_HOMELESS = ("without a household", "give every record one, of its own where somebody lives alone")
_CHANGING = ("of people whose records differ in it", "give all records of a person the same")
_PEOPLE = "a record stands for 1 person at least; correct the weights, or scale them"


def _unfit(column: Column, missing: np.ndarray, weights: np.ndarray) -> Iterator[AttributeFinding]:
    """Every kind of cell that is no weight; nothing is filled in or cut off."""
    known = np.isfinite(weights) & ~missing
    between = known & (weights > 0) & (weights < 1)
    for cells, what, remedy in (
        (missing, "without a weight", "give every record one"),
        (~known & ~missing, "whose weight is not a number", "correct them"),
        (known & (weights < 0), "with a weight below 0", _PEOPLE),
        (known & (weights == 0), "with a weight of 0", _PEOPLE),
        (between, "with a weight between 0 and 1", _PEOPLE),
    ):
        yield from findings_about(column, cells, what, remedy)


def _changing(column: Column, values: np.ndarray, subjects: np.ndarray) -> np.ndarray:
    """(cells,) bool, which cells are of people whose records do not all have one value."""
    of_record = values[column.codes]
    first = np.zeros(int(subjects.max(initial=-1)) + 1, dtype=of_record.dtype)
    first[subjects] = of_record
    differs = of_record != first[subjects]
    cells = np.zeros(len(column.texts), dtype=bool)
    cells[column.codes[np.isin(subjects, subjects[differs])]] = True
    return cells
