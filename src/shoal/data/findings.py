"""What is wrong with an attribute of the data or of a policy.

Messages name the attribute, counts and rules. The labels and values concerned are kept apart in
`AttributeFinding.values`: a message may be shown to anybody, they only to the owner of the data.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from shoal.data.language import inflected
from shoal.data.table import MOST_KEPT, Column

MOST_LISTED = 20
MOST_NAMED = 3


class Fault(StrEnum):
    """What can be wrong with a hierarchy, or with values that have to fit something."""

    NO_ROWS = "no rows"
    EMPTY_LABELS = "empty labels"
    UNEVEN_ROWS = "uneven rows"
    MANY_STEPS = "many steps"
    SEVERAL_ROOTS = "several roots"
    DUPLICATE_LEAVES = "duplicate leaves"
    TWO_PARENTS = "two parents"
    TWO_NODES = "label names two nodes"
    POLICY = "policy"
    MISFIT = "misfit"


@dataclass(frozen=True)
class AttributeFinding:
    """One fault of one attribute.

    count: how many labels, rows or records it concerns, as the message says.
    values: the labels or values concerned; for the owner's eyes only, and never in the message.
    rows: those concerned, from 1, as far as they are known and kept.
    """

    kind: Fault
    attribute: str
    count: int
    message: str
    values: tuple[str, ...] = field(default=(), repr=False)
    rows: tuple[int, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class RowsFinding:
    """What is wrong with some records. rows: theirs, from 1, as far as they are kept."""

    message: str
    rows: tuple[int, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        return self.message


def findings_about(
    column: Column, cells: np.ndarray, what: str, remedy: str
) -> list[AttributeFinding]:
    """`finding_about` these cells, if there are any."""
    return [finding_about(column, cells, what, remedy)] if cells.any() else []


def finding_about(column: Column, cells: np.ndarray, what: str, remedy: str) -> AttributeFinding:
    """The records that hold some of a column's cells: how many, where, and what to do about them.

    cells: (cells,) bool.
    """
    count = int(column.counts()[cells].sum())
    rows = column.rows_of(cells).tolist()
    records = inflected("{} [record|records]", count)
    message = f"attribute '{column.name}': {records} {what} ({listed_rows(rows, count)}); {remedy}"
    values = tuple(np.array(column.cells, dtype=object)[cells])
    numbers = tuple(row + 1 for row in rows)
    return AttributeFinding(Fault.MISFIT, column.name, count, message, values, numbers)


def listed_rows(rows: Sequence[int], count: int | None = None) -> str:
    """0-based rows in words, from 1: `row 7`, or `rows 1, 2 and 12 more`.

    count: of all, where `rows` are only the first of them.
    """
    every = len(rows) if count is None else count
    named = [str(row + 1) for row in rows[:MOST_LISTED]]
    more = f" and {every - len(named)} more" if every > len(named) else ""
    return f"row{'s' if every > 1 else ''} {', '.join(named)}{more}"


def counted_records(
    what: str, rows: np.ndarray, remedy: str, count: int | None = None
) -> RowsFinding:
    """What is wrong, with how many records or another count, and where: `what: 3 (rows 2, 5, 7)`.

    rows: 0-based; below 0 where a record is of no row.
    """
    here = np.sort(rows[rows >= 0]).tolist()
    where = f" ({listed_rows(here)})" if here else ""
    message = f"{what}: {len(rows) if count is None else count}{where}; {remedy}"
    return RowsFinding(message, tuple(row + 1 for row in here[:MOST_KEPT]))


def some_named(names: Sequence[str], sign: str = ", ", most: int = MOST_NAMED) -> str:
    """The first of some names, and how many more there are."""
    more = len(names) - most
    if more < 2:  # a name is as short as what would stand for it
        return sign.join(names)
    return f"{sign.join(names[:most])} and {more} more"
