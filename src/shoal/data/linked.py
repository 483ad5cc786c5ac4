"""Several tables about the same people: how they hang together, and their rows as columns of codes;
and as methods see them, as bundles: people with all of their rows, and how they are grouped.

The table of people is the root; every other table hangs from one. A row of a table below belongs to
the row of its parent whose key it holds, and so to one person. A column of sets is such a table,
too: one row for each element, written in a cell of its parent's row.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property

import numpy as np
import polars as pl

from shoal.data.classes import SensitiveColumn
from shoal.data.encoding import EncodedTable
from shoal.data.partition import Matrix
from shoal.data.person_names import letters_of
from shoal.data.schema import Schema, Shown
from shoal.data.table import Table

PEOPLE = "people"
"""The table of people."""

ANCHOR = "anchor.day"
"""People's column of the day that their dates count from: true in the data, moved in a release."""

HULL = "anchor.hull"
"""People's column, in a release alone, of the days in which the anchors of their class lie."""


def rows_column(table: str) -> str:
    """The column of the parent's release that says how many rows of a table belong to a row."""
    return f"{table}.rows"


class Known(StrEnum):
    """What an attacker may know of a person's rows in one table, beside a number of them."""

    ALL = "all"  # every quasi cell of every row, how many there are, and what hangs from what
    COUNT = "count"  # how many there are
    NONE = "none"  # nothing


class Keys(StrEnum):
    """How rows of a release point at each other."""

    RELEASE = "release"  # by random numbers, new in each release
    KEYED = "keyed"  # by pseudonyms of a secret key, the same in each release
    NONE = "none"  # not at all


@dataclass(frozen=True)
class LinkedTable:
    """What a policy says of one table.

    parent: the table whose rows its rows belong to, None for people. link: its column that holds
        the key of its parent's row. key: its column that rows of other tables point to.
    known: what an attacker knows of its rows; a number m is any m of them. count_known: whether
        how many there are is known beside these.
    weight: of its cells in the loss. ordered: whether rows are aligned in the order of their dates.
    shown: how counts of its rows are published. separator: what parts the elements of a set, where
        the table is one that stands in a cell of its parent; None otherwise.
    """

    name: str
    schema: Schema
    parent: str | None = None
    link: str | None = None
    key: str | None = None
    known: Known | int = Known.ALL
    weight: float = 1.0
    ordered: bool = False
    shown: Shown = Shown.RANGE
    separator: str | None = None
    count_known: bool = False

    def qualified(self, column: str) -> str:
        """A column's name among those of all tables, as promises name it: `visits.day`; of a set,
        which is a column itself, that of its table.
        """
        if self.separator is not None:
            return self.name
        return column if self.parent is None else f"{self.name}.{column}"


@dataclass(frozen=True)
class Anchor:
    """From which day a person's dates count: the first one in a column of a table.

    is_exact: whether gaps between a person's dates are published as they are, not as spans.
    keeps_weekday: whether days keep the day of the week.
    """

    table: str
    column: str
    is_exact: bool = False
    keeps_weekday: bool = False

    @property
    def step(self) -> int:
        """Days between those that may be drawn for a person."""
        return 7 if self.keeps_weekday else 1


@dataclass(frozen=True)
class TableTree:
    """All tables, people first and every other one behind its parent.

    dates: by table, the quasi columns that hold dates. Where there is an anchor, they are encoded
    as days from the person's, which is the quasi column `ANCHOR` of people; else as days from
    0001-01-01, which is day 1.
    """

    tables: tuple[LinkedTable, ...]
    anchor: Anchor | None = None
    keys: Keys = Keys.RELEASE
    dates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> LinkedTable:
        return next(table for table in self.tables if table.name == name)

    def below(self, name: str) -> tuple[LinkedTable, ...]:
        """The tables whose parent this one is."""
        return tuple(table for table in self.tables if table.parent == name)

    def is_joined(self, table: LinkedTable) -> bool:
        """Whether readers of a release can tell to whom a table's rows belong."""
        if table.parent is None or self.keys is not Keys.NONE:
            return True
        return table.separator is not None and self.is_joined(self[table.parent])

    def days_of(self, name: str) -> tuple[str, ...]:
        """The columns of a table that are encoded as days of the calendar: people's anchor where
        there is one, and all dates where there is none.
        """
        if self.anchor is None:
            return self.dates.get(name, ())
        return (ANCHOR,) if name == PEOPLE else ()

    @property
    def known_rows(self) -> int | None:
        """The number of rows that an attacker knows in all tables with a number; None if none."""
        return next((t.known for t in self.tables if not isinstance(t.known, Known)), None)


def parents_of(starts: np.ndarray) -> np.ndarray:
    """(n,) int64, the parent's row of each row. starts: as in `LinkedRows`."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def starts_of(parents: np.ndarray, count: int) -> np.ndarray:
    """(count + 1,) int64, where the rows of each parent start. parents: ascending."""
    return np.concatenate(([0], np.cumsum(np.bincount(parents, minlength=count))))


def places_of(keys: pl.Series, asked: pl.Series) -> np.ndarray:
    """(n,) int64, where each asked key first stands among keys, -1 where it does not."""
    known = pl.DataFrame({"key": keys}).with_row_index("at").unique("key", keep="first")
    asked_keys = pl.DataFrame({"key": asked})
    found = asked_keys.join(known, on="key", how="left", maintain_order="left")["at"]
    return found.cast(pl.Int64).fill_null(-1).to_numpy().copy()


def are_own(
    cells: pl.Series, owners: np.ndarray, known: pl.Series, known_owners: np.ndarray, least: int
) -> bool:
    """Whether every cell is a value that its owner has, however it is spelled, and at least some
    cells differ from the most frequent one. owners: (cells,), as known_owners (known,) ascending.
    """
    if cells.n_unique() < 2:
        return False
    for most in (20, len(cells)):  # few cells tell most columns apart
        mine = pl.DataFrame({"owner": owners[:most], "value": letters_of(cells[:most])})
        own = slice(*np.searchsorted(known_owners, [mine["owner"][0], mine["owner"][-1] + 1]))
        theirs = pl.DataFrame({"owner": known_owners[own], "value": letters_of(known[own])})
        if mine.join(theirs, on=["owner", "value"], how="anti").height:
            return False
    sizes = mine["value"].unique_counts().to_numpy()
    return bool(len(cells) - sizes.max() >= least)


@dataclass(frozen=True)
class LinkedRows:
    """The n rows of one table, those of one parent next to each other, in the input's order.

    starts: (parents + 1,) int64; the rows of parent p are starts[p]..starts[p + 1] - 1. The rows of
        people, which have no parent, start at 0 and end at n.
    source: (n,) int64, where each row stands in the input, from 0; of a set, its parent's row.
    table: the cells as text. encoded: its quasi columns. sensitive: by name, its other columns that
    promises judge.
    """

    about: LinkedTable
    starts: np.ndarray
    source: np.ndarray
    table: Table
    encoded: EncodedTable
    sensitive: Mapping[str, SensitiveColumn]

    @property
    def count(self) -> int:
        return len(self.source)

    @property
    def counts(self) -> np.ndarray:
        """Rows of each parent, (parents,) int64."""
        return np.diff(self.starts)

    @property
    def parents(self) -> np.ndarray:
        """The parent's row of each row, (n,) int64."""
        return parents_of(self.starts)

    @cached_property
    def true_values(self) -> Mapping[str, np.ndarray]:
        """By quasi column, (n,) float64, number, place or leaf of each row; NaN for no value."""
        encoded = self.encoded.attributes
        return {one.attribute.name: one.value_of_code()[one.codes] for one in encoded}

    @cached_property
    def matrix(self) -> Matrix:
        """(n, d) codes of the quasi columns, and what a span of codes costs."""
        return self.encoded.matrix()


@dataclass(frozen=True)
class LinkedTables:
    """All people with all of their rows: person i is row i of the table of people."""

    tree: TableTree
    rows: Mapping[str, LinkedRows]

    @property
    def people(self) -> LinkedRows:
        return self.rows[PEOPLE]

    def person_of(self, name: str) -> np.ndarray:
        """The person of each row of a table, (n,) int64."""
        parent = self.tree[name].parent
        if parent is None:
            return np.arange(self.people.count)
        return self.person_of(parent)[self.rows[name].parents]


# Bundles: people with their rows, as methods see them and group them.


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


def day_number(text: str) -> str | None:
    """The day of an ISO date or time stamp, 1 for 0001-01-01; None where it is none."""
    try:
        return str(datetime.fromisoformat(text.strip()).toordinal())
    except ValueError:
        return None
