"""From a table to the matrix that partitioners see, and back to the text of every code.

Each quasi-identifier gets a *rank* per record - the place of its value among the distinct values of
the column, in value order - and a *position* per rank, which is what the matrix holds. Positions
are proportional to values (numbers), places in the declared order (ordinals) or leaves
(hierarchies); ranks lead back to the text that was read, so that numbers are published as they were
written.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from shoal.data import cores
from shoal.data.classes import Sample, SensitiveColumn, encode_sample
from shoal.data.findings import AttributeFinding, Fault, findings_about
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.language import inflected
from shoal.data.numbers import (
    FARTHEST,
    INDISTINCT,
    PLAIN,
    advice_on,
    fall_together,
    parse_numbers,
    position_unit,
)
from shoal.data.partition import Matrix
from shoal.data.person_names import is_nobody, person_name
from shoal.data.room import IN_MEMORY, Room, blocks
from shoal.data.schema import Attribute, Kind, Missing, Schema
from shoal.data.table import Column, Table

_BLOCK = 1 << 16
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio


@dataclass(frozen=True)
class EncodedAttribute:
    """One quasi-identifier of n records.

    codes: (n,) unsigned, the distinct text of each record; rank_of_code: (texts,) int32.
    texts: text of each rank; ranks from `present` on are missing values.
    values: (present,) float64, the number, place in the order or leaf behind each rank.
    positions: (ranks,) int32, the matrix code of each rank; all missing ranks share one.
    reach: width of the whole attribute in units of position, or its hierarchy.
    """

    attribute: Attribute
    codes: np.ndarray
    rank_of_code: np.ndarray
    texts: tuple[str, ...]
    present: int
    values: np.ndarray
    positions: np.ndarray
    reach: float | Hierarchy

    @property
    def ranks(self) -> np.ndarray:
        """(n,) int32, the rank of each record."""
        return IN_MEMORY.gather(self.rank_of_code, self.codes)

    def value_of_code(self) -> np.ndarray:
        """(texts,) float64, the number, place or leaf behind each code; NaN for missing values."""
        none = np.full(len(self.texts) - self.present, np.nan)
        return np.append(self.values, none)[self.rank_of_code]

    @property
    def end(self) -> int:
        """The last position that a value may have."""
        return (
            self.reach.leaves - 1 if isinstance(self.reach, Hierarchy) else int(self.reach + 1e-6)
        )

    @property
    def unit(self) -> float:
        """The difference of value between neighbouring positions; 1 in a hierarchy."""
        if isinstance(self.reach, Hierarchy):
            return 1.0
        low, high = linear_domain(self.attribute, self.values)
        return (high - low) / self.reach if high > low else 1.0

    @property
    def missing(self) -> int:
        """The position of missing values, -1 where there are none."""
        return int(self.positions[-1]) if self.present < len(self.positions) else -1

    def positions_of(self, others: "EncodedAttribute") -> np.ndarray:
        """This table's position of each value of another; (m,) int32.

        A value that no record here has lies where no class reaches; in a tree, after its leaves.
        """
        positions = others.value_of_code()
        missing, nowhere = np.isnan(positions), int(self.positions.max(initial=0)) + 2
        if isinstance(self.reach, Hierarchy):
            nowhere = self.reach.leaves
        else:
            low, high = linear_domain(self.attribute, self.values)
            exact = (positions - low) / position_unit(self.values, high - low)
            positions = np.where(np.abs(exact - np.rint(exact)) < 1e-6, np.rint(exact), nowhere)
        none = self.missing if self.missing >= 0 else nowhere
        return np.where(missing, none, np.nan_to_num(positions)).astype(np.int32)[others.codes]


def encode_attribute(
    attribute: Attribute, column: Column, schema: Schema
) -> tuple[EncodedAttribute | None, list[AttributeFinding]]:
    """The attribute encoded, and what is wrong with it; None where it can't be encoded."""
    missing = np.array([not schema.is_value(cell) for cell in column.cells], dtype=bool)
    values, findings = _values(attribute, column, missing)
    if schema.missing is Missing.REJECT:
        what = "without a value, which the policy rejects"
        remedy = "complete the data, or declare 'missing: value' or 'missing: suppress'"
        findings += findings_about(column, missing, what, remedy)
    if findings:
        return None, findings
    order = np.lexsort((np.arange(len(values)), np.where(missing, 0.0, values), missing))
    rank_of_code = np.empty(len(values), dtype=np.int32)
    rank_of_code[order] = np.arange(len(values), dtype=np.int32)
    present = int((~missing).sum())
    ranked = values[order][:present]
    positions, reach = _positions(attribute, ranked, len(values) - present)
    texts = tuple(column.cells[i] for i in order)
    return (
        EncodedAttribute(
            attribute, column.codes, rank_of_code, texts, present, ranked, positions, reach
        ),
        [],
    )


def _values(
    attribute: Attribute, column: Column, missing: np.ndarray
) -> tuple[np.ndarray, list[AttributeFinding]]:
    """The number of each distinct cell, NaN where missing, and findings about cells without one."""
    if attribute.hierarchy is None and attribute.kind is not Kind.ORDINAL:
        return _numbers(attribute, column, missing)
    values = attribute.places(column.texts)
    where = "order" if attribute.hierarchy is None else "hierarchy"
    findings = _gaps(column, np.isnan(values) & ~missing, where)
    if attribute.domain is not None:
        findings += _outside(attribute.domain, column, parse_numbers(column.cells), missing)
    return values, findings


def values_beside(attribute: Attribute, column: Column, schema: Schema) -> np.ndarray:
    """(cells,) float64, the number, place or leaf behind each distinct cell of another table; NaN
    for a missing value, infinite where the attribute has no place for it.
    """
    missing = np.array([not schema.is_value(cell) for cell in column.cells], dtype=bool)
    values, _ = _values(attribute, column, missing)
    return np.where(missing, np.nan, np.where(np.isnan(values), np.inf, values))


def _numbers(
    attribute: Attribute, column: Column, missing: np.ndarray
) -> tuple[np.ndarray, list[AttributeFinding]]:
    values = parse_numbers(column.cells)
    findings: list[AttributeFinding] = []
    bad = ~np.isfinite(values) & ~missing
    empty = np.array([not cell for cell in column.cells], dtype=bool) & bad
    filled = "add \"\" to 'missing_values', or fill it"
    findings += findings_about(column, empty, "with an empty cell", filled)
    bad &= ~empty
    if bad.any():
        is_text = np.isnan(values[bad]).any()
        kind = "with text that is" if is_text else "with infinity, which is"
        remedy = advice_on([column.cells[i] for i in np.flatnonzero(~missing)], PLAIN)
        remedy = remedy or "correct them, or list the text under 'missing_values'"
        findings += findings_about(column, bad, f"{kind} not a number", remedy)
    alike = fall_together(values, column.cells)
    findings += findings_about(column, alike, INDISTINCT, "shorten them, or give a hierarchy")
    far = np.isfinite(values) & (np.abs(values) > FARTHEST)
    what = f"with numbers beyond {FARTHEST:g}"
    findings += findings_about(column, far, what, "scale the column")
    values[missing] = np.nan
    if attribute.domain is not None:
        findings += _outside(attribute.domain, column, values, bad)
    return values, findings


def _outside(
    domain: tuple[float, float], column: Column, values: np.ndarray, others: np.ndarray
) -> list[AttributeFinding]:
    """At most one finding. others: (cells,) bool, those that are not judged."""
    outside = ((values < domain[0]) | (values > domain[1])) & ~others
    remedy = "widen 'domain' or correct the data"
    return findings_about(column, outside, "outside its domain", remedy)


def _positions(
    attribute: Attribute, values: np.ndarray, missing: int
) -> tuple[np.ndarray, float | Hierarchy]:
    """Matrix code of every rank; missing values share one, as far off as the whole domain."""
    if attribute.hierarchy is not None:
        tree = attribute.hierarchy.with_leaf("") if missing else attribute.hierarchy
        beyond = np.full(missing, attribute.hierarchy.leaves)
        return np.concatenate([values, beyond]).astype(np.int32), tree
    low, high = linear_domain(attribute, values)
    unit = position_unit(values, high - low)
    codes = np.rint((values - low) / unit)
    reach = (high - low) / unit
    last = codes[-1] if len(codes) else 0.0
    beyond = np.full(missing, last + max(reach, 1.0))
    return np.concatenate([codes, beyond]).astype(np.int32), (
        reach if reach > 0 else float(missing > 0)
    )


def linear_domain(attribute: Attribute, values: np.ndarray) -> tuple[float, float]:
    """Least and greatest value the attribute may take: declared, else what the data shows."""
    if attribute.kind is Kind.ORDINAL:
        return 0.0, float(len(attribute.order or ()) - 1)
    if attribute.domain is not None:
        return attribute.domain
    return (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)


def _gaps(column: Column, absent: np.ndarray, where: str) -> list[AttributeFinding]:
    distinct = inflected("{} distinct [value|values]", int(absent.sum()))
    remedy = (
        "'shoal policy check POLICY DATA --show-values' lists them; texts that stand for no value"
        " go under 'missing_values'"
    )
    return findings_about(column, absent, f"with {distinct} missing from its {where}", remedy)


@dataclass(frozen=True)
class EncodedTable:
    """The quasi-identifiers and people of a table, encoded.

    subjects: (n,) int32 dense person numbers, or None where every record is its own person.
    suppressed: (n,) bool, records that the rule for missing values keeps out of every class.
    sample: whom the records stand for; None where the policy names no weight.
    """

    attributes: tuple[EncodedAttribute, ...]
    subjects: np.ndarray | None
    suppressed: np.ndarray
    sample: Sample | None = None

    @property
    def records(self) -> int:
        return len(self.suppressed)

    def take(self, rows: np.ndarray) -> "EncodedTable":
        """Some of the records, people numbered densely; ranges stay those of the whole table."""
        attributes = tuple(replace(a, codes=a.codes[rows]) for a in self.attributes)
        sample = None if self.sample is None else self.sample.take(rows)
        return EncodedTable(attributes, _dense(self.subjects, rows), self.suppressed[rows], sample)

    @cached_property
    def distinct_share(self) -> float:
        """Records that differ in some quasi-identifier, by all records; counted by hashes."""
        hashes = np.zeros(self.records, dtype=np.uint64)
        for encoded in self.attributes:
            hashes ^= hashes >> np.uint64(29)
            hashes *= _ODD
            hashes += encoded.ranks.astype(np.uint64)
        return len(np.unique(hashes)) / max(self.records, 1)

    def columns(self, room: Room, spare: int) -> np.ndarray:
        """(d + spare + 1, m) int32: the codes of the records that are not suppressed, attribute by
        attribute, rows for the method's own use and, last, the record's number among them.
        """
        columns = room.array((len(self.attributes) + spare + 1, self.kept_records), np.int32)

        def fill(j: int) -> None:
            encoded, begun = self.attributes[j], 0
            position_of_code = encoded.positions[encoded.rank_of_code]
            for rows in blocks(self.records):
                codes, out = encoded.codes[rows], self.suppressed[rows]
                codes = codes[~out] if out.any() else codes
                IN_MEMORY.gather(position_of_code, codes, columns[j, begun : begun + len(codes)])
                begun += len(codes)

        cores.side_by_side(fill, range(len(self.attributes)), self.records)
        for rows in blocks(self.kept_records):
            columns[-1, rows] = np.arange(rows.start, rows.stop, dtype=np.int32)
        return columns

    @cached_property
    def kept_records(self) -> int:
        """Records that are not suppressed; counted without another array of all of them."""
        out = sum(int(np.count_nonzero(self.suppressed[rows])) for rows in blocks(self.records))
        return self.records - out

    def of_all(self, values: np.ndarray, room: Room = IN_MEMORY) -> np.ndarray:
        """(n,) the values of the records that are not suppressed, -1 for the others."""
        if len(values) == self.records:
            return values
        found, begun = room.array(self.records, values.dtype), 0
        for rows in blocks(self.records):
            kept = ~self.suppressed[rows]
            some = np.full(len(kept), -1, dtype=values.dtype)
            end = begun + int(np.count_nonzero(kept))
            some[kept] = values[begun:end]
            found[rows], begun = some, end
        return found

    def rows(self) -> np.ndarray:
        """(m, d) int32, the same codes record by record."""
        kept = np.flatnonzero(~self.suppressed) if self.suppressed.any() else None
        codes = np.empty((self.kept_records, len(self.attributes)), dtype=np.int32)
        # row by row in the target, so in blocks that stay in the cache while every column is filled
        # in
        tables = [encoded.positions[encoded.rank_of_code] for encoded in self.attributes]

        def fill(start: int) -> None:
            rows = slice(start, start + _BLOCK)
            for j, encoded in enumerate(self.attributes):
                codes[rows, j] = tables[j][encoded.codes[rows if kept is None else kept[rows]]]

        cores.side_by_side(fill, range(0, len(codes), _BLOCK), len(codes))
        return codes

    def costs_alone(self) -> Matrix:
        """The matrix without any record: what spans of codes cost."""
        matrix = Matrix.from_columns(
            np.zeros((0, len(self.attributes))),
            [encoded.reach for encoded in self.attributes],
            weights=[encoded.attribute.weight for encoded in self.attributes],
            names=tuple(encoded.attribute.name for encoded in self.attributes),
            missing=[encoded.missing for encoded in self.attributes],
        )
        return replace(matrix, unit=np.array([encoded.unit for encoded in self.attributes]))

    def matrix(
        self, label: np.ndarray | None = None, populations: Mapping[str, np.ndarray] | None = None
    ) -> Matrix:
        """The records that are not suppressed, in input order.

        label: (n,) class of each record of the table. populations: as in `Matrix`.
        """
        kept = np.flatnonzero(~self.suppressed) if self.suppressed.any() else None
        if label is not None:
            label = np.ascontiguousarray(label if kept is None else label[kept], dtype=np.int32)
        subjects = _dense(self.subjects, kept)
        about = replace(
            self.costs_alone(), subjects=subjects, label=label, populations=populations or {}
        )
        return EncodedMatrix.of(self, about)


class EncodedMatrix(Matrix):
    """The matrix of an encoded table, whose codes are laid out when they are asked for, in the way
    that is asked for: most methods want them by record, some of those for large tables by
    attribute.
    """

    _table: EncodedTable

    def __new__(cls, *args: Any, **parts: Any) -> Matrix:  # type: ignore[misc]
        """A matrix that `replace` makes of this one has codes of its own."""
        return Matrix(*args, **parts)

    def __reduce__(self) -> tuple[type[Matrix], tuple[Any, ...]]:
        """So has a copy, and what another process is sent."""
        return Matrix, tuple(getattr(self, part.name) for part in fields(self))

    @classmethod
    def of(cls, table: EncodedTable, about: Matrix) -> "EncodedMatrix":
        """about: everything but the codes."""
        matrix = object.__new__(cls)
        vars(matrix).update(vars(about), _table=table)
        del vars(matrix)["codes"]
        return matrix

    @cached_property
    def codes(self) -> np.ndarray:
        return self._table.rows()

    @property
    def records(self) -> int:
        return self._table.kept_records

    def columns(self, spare: int) -> np.ndarray:
        return self._table.columns(IN_MEMORY, spare)


def _dense(subjects: np.ndarray | None, kept: np.ndarray | None) -> np.ndarray | None:
    if subjects is None or kept is None:
        return subjects
    return np.unique(subjects[kept], return_inverse=True)[1].astype(np.int32)


def encode_subjects(
    table: Table, schema: Schema
) -> tuple[np.ndarray | None, list[AttributeFinding]]:
    """Dense person numbers, None where no column names the person or nobody has two records."""
    if schema.subject is None:
        return None, []
    column = table.column(schema.subject.name)
    if unnamed := without_subject(column, schema.no_names):
        return None, unnamed
    people = [person_name(cell) for cell in column.cells]
    number = {person: i for i, person in enumerate(sorted(set(people)))}
    if len(number) == table.records:
        return None, []
    numbers = np.array([number[person] for person in people], dtype=np.int32)
    return table.room.gather(numbers, column.codes), []


def without_subject(column: Column, no_names: Sequence[str]) -> list[AttributeFinding]:
    """A finding where cells of the column that names the person name nobody."""
    missing = is_nobody(column.texts, no_names)
    remedy = "give every record its person (in a database: where it is NULL or blank)"
    return findings_about(column, missing, "without a subject", remedy)


def encode(table: Table, schema: Schema) -> tuple[EncodedTable | None, list[AttributeFinding]]:
    """The table encoded, or everything that is wrong with its quasi-identifiers and people."""
    findings: list[AttributeFinding] = []
    attributes = []
    for attribute in schema.quasi:
        encoded, wrong = encode_attribute(attribute, table.column(attribute.name), schema)
        findings += wrong
        if encoded is not None:
            attributes.append(encoded)
    subjects, wrong = encode_subjects(table, schema)
    findings += wrong
    sample, wrong = encode_sample(table, schema, subjects)
    findings += wrong
    if findings:
        return None, findings
    suppressed = table.room.array(table.records, bool)
    for encoded in attributes if schema.missing is Missing.SUPPRESS else ():
        if encoded.present < len(encoded.texts):
            for rows in blocks(table.records):
                suppressed[rows] |= (encoded.rank_of_code >= encoded.present)[encoded.codes[rows]]
    return EncodedTable(tuple(attributes), subjects, suppressed, sample), []


def encode_populations(
    tables: dict[str, Table], schema: Schema, encoded: EncodedTable
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Codes of each population in the matrix's own code space, (m, d) int32; or every finding."""
    codes, findings = {}, []
    for name, table in tables.items():
        columns = []
        for attribute in encoded.attributes:
            people, wrong = encode_attribute(
                attribute.attribute, table.column(attribute.attribute.name), schema
            )
            findings += [f"population '{name}': {finding}" for finding in wrong]
            if people is not None:
                columns.append(attribute.positions_of(people))
        codes[name] = np.column_stack([np.zeros((table.records, 0), np.int32), *columns])
    return codes, findings


def values_of_nobody(
    sensitive: Mapping[str, SensitiveColumn], designated: Iterable[tuple[str, str, Sequence[str]]]
) -> list[AttributeFinding]:
    """Designated values that nobody has nor could have: a misspelt one would protect nothing.

    designated: the model of a promise, an attribute of it, and its values of that.
    """
    findings = []
    for model, name, values in designated:
        if not values or name not in sensitive:
            continue
        lost = tuple(value for value in values if sensitive[name].code_of(value) is None)
        if lost:
            message = (
                f"promise '{model}': {len(lost)} of its designated values occur in no record of"
                f" '{name}' as they are written; correct them, or leave them out"
            )
            findings.append(AttributeFinding(Fault.POLICY, name, len(lost), message, lost))
    return findings
