"""Whom the records of a sample stand for: the weight of each, and its household."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from shoal.data.findings import AttributeFinding, findings_about
from shoal.data.numbers import parse_numbers
from shoal.data.person_names import is_nobody, person_name
from shoal.data.schema import Schema
from shoal.data.table import Column, Table


@dataclass(frozen=True)
class Sample:
    """The records of a sample.

    weights: (n,) float64, at least 1, people of the population whom each record's person stands
    for. households: (n,) int32, numbered from 0; None where everybody is a household.
    """

    weights: np.ndarray
    households: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> "Sample":
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
