"""People with their rows in several tables, as methods see them, and how they are grouped."""

from collections.abc import Container
from dataclasses import dataclass, replace

import numpy as np

from shoal.data.matrix import Matrix


@dataclass(frozen=True)
class BundleRows:
    """The N rows of one table that attackers may know, those of one parent next to each other.

    matrix: (N, d) codes. parent: the number of the table above, -1 for people. starts: (parents +
    1,) int64; the rows of parent p are starts[p]..starts[p + 1] - 1. weight: what a cell that is
    withheld costs. ordered: whether rows are aligned in the order of their codes.
    known: of how many rows attackers know, in all tables with a number; None where they know all.
    counted: whether they know as well how many there are.
    """

    matrix: Matrix
    parent: int
    starts: np.ndarray
    weight: float = 1.0
    ordered: bool = False
    known: int | None = None
    counted: bool = False

    @property
    def parents(self) -> np.ndarray:
        """The parent of each row, (N,) int64."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @property
    def row_weight(self) -> float:
        """What a row that is withheld costs; one without quasi-identifiers as one with one."""
        return self.weight * max(self.matrix.attributes, 1)


@dataclass(frozen=True)
class Bundles:
    """Everybody's rows: table 0 is that of the people, each other stands behind its parent.

    apart: (people,) integers; people of different ones are never in one class.
    """

    tables: tuple[BundleRows, ...]
    apart: np.ndarray

    @classmethod
    def of(cls, tables: tuple[BundleRows, ...]) -> "Bundles":
        """Of people of whom any may be in one class."""
        return cls(tables, np.zeros(tables[0].matrix.records, np.int64))

    @property
    def people(self) -> int:
        return self.tables[0].matrix.records

    def below(self, table: int) -> list[int]:
        """The tables right below one."""
        return [t for t, rows in enumerate(self.tables) if rows.parent == table]

    def without(self, tables: Container[int]) -> "Bundles":
        """The bundles without some tables, from which no other one hangs."""
        kept = [t for t in range(len(self.tables)) if t not in tables]
        rows = [self.tables[t] for t in kept]
        number = {-1: -1} | {t: i for i, t in enumerate(kept)}
        return Bundles(tuple(replace(one, parent=number[one.parent]) for one in rows), self.apart)

    def starts_by_person(self, table: int) -> np.ndarray:
        """(people + 1,) where each person's rows of a table begin, and the end."""
        rows = self.tables[table]
        if table == 0:
            return np.arange(self.people + 1)
        if rows.parent == 0:
            return rows.starts
        return rows.starts[self.starts_by_person(rows.parent)]


@dataclass(frozen=True)
class Templates:
    """Which people and rows are published alike.

    slots: for each table, the slot of each row, (N,) int64 numbered 0..count - 1 without gaps, -1
    where it is withheld. The slots of people are the classes. Every slot has a row of each member
    of the slot above it: so the members of a class are published alike in all tables. But in a
    table of which a number of rows is known, a slot is a node of values: a member may have several
    rows in it, or none.
    covered: for each table, the slot whose cells cover each row: its own, and of some rows that are
    withheld another one; by default, as `slots`.
    """

    slots: tuple[np.ndarray, ...]
    covered: tuple[np.ndarray, ...] = ()

    def __post_init__(self) -> None:
        if not self.covered:
            object.__setattr__(self, "covered", self.slots)

    @property
    def classes(self) -> np.ndarray:
        """(people,) int64."""
        return self.slots[0]
