"""Which table's rows belong to which, by evidence: what the database says, values and names.

A column points to a key if all of its values stand there and each stands there once. That is proof
enough where both have one name or the database declares it; else somebody has to say so.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from shoal.connectors.table_places import ForeignKey
from shoal.data.column_words import words_of
from shoal.data.linked import PEOPLE
from shoal.data.person_names import is_nobody, names_of
from shoal.data.table import Table
from shoal.errors import InputError

FEWEST_FOUND = 0.9
"""Share of rows that must find a row, for a column to be named in a question at all."""


GENERIC = frozenset("id key no nr num number row index code".split())
"""Words by which every table may name its rows."""


@dataclass(frozen=True)
class Link:
    """A column whose values are keys of another table's rows.

    lost: rows that find none there. is_sure: whether nobody has to be asked. why: the evidence.
    """

    table: str
    column: str
    to_table: str
    to_column: str
    lost: int
    is_sure: bool
    why: str


@dataclass(frozen=True)
class FoundLinks:
    """The table of people, and the links that were found of each other one, the finest first."""

    people: str
    links: Mapping[str, Sequence[Link]]

    def parent(self, table: str) -> Link | None:
        """The link to the table's parent; None where somebody has to say which it is."""
        sure = [link for link in self.links[table] if link.is_sure]
        above = [one for link in sure for one in self._above(link.to_table)]
        finest = [link for link in sure if link.to_table not in above]
        return finest[0] if len(finest) == 1 else None

    def _above(self, table: str) -> set[str]:
        """The tables that a table hangs from."""
        waiting, found = [table], set[str]()
        for one in waiting:  # which grows
            above = {link.to_table for link in self.links.get(one, ()) if link.is_sure} - found
            waiting += above
            found |= above
        return found

    def key(self, table: str) -> str | None:
        """The column of a table that rows of others point to, or may point to."""
        sure = [*filter(None, map(self.parent, self.links))]
        may = [link for some in self.links.values() for link in some if table == self.people]
        for links in (sure, may):
            columns = [link.to_column for link in links if link.to_table == table]
            if columns:
                return max(columns, key=columns.count)
        return None

    def question(self, table: str) -> str:
        """What to ask of a table without a known parent."""
        named = [f"to '{one.to_table}' by '{one.column}' ({one.why})" for one in self.links[table]]
        listed = ", ".join(named) or "no column was found whose values are keys of another table"
        return f"whose rows are these? {listed}; say 'parent: {{TABLE: COLUMN}}', or take it out"


def find_links(
    tables: Mapping[str, Table], declared: Sequence[ForeignKey] = (), people: str | None = None
) -> FoundLinks:
    """Who belongs to whom. declared: what the database says. people: the table of people, if known.

    Raises InputError where several tables may be that of people.
    """
    every = ((name, column) for name, table in tables.items() for column in table.names)
    columns = [_Key(name, column, tables[name].frame[column]) for name, column in every]
    keys = [key for key in columns if key.is_unique]
    said = {(key.table, key.column, key.to_table, key.to_column) for key in declared}
    links: dict[str, list[Link]] = {name: [] for name in tables}
    for one in columns:
        values = one.values.filter(pl.Series(~is_nobody(one.cells, ("",))))
        found = (_link(one, values, key, said) for key in keys if key.table != one.table)
        links[one.table] += [link for link in found if link is not None]
    root = people or _root(links)
    # a table of people belongs to nobody
    links[root] = []
    by_size = sorted(tables, key=lambda name: tables[name].records)

    def rank(one: Link) -> tuple[bool, int, int]:
        return not one.is_sure, one.lost, -by_size.index(one.to_table)

    one_way = {name: _one_way(some, links, root) for name, some in links.items()}
    return FoundLinks(root, {name: sorted(some, key=rank) for name, some in one_way.items()})


@dataclass(frozen=True)
class _Key:
    """A column that may number the rows of its table."""

    table: str
    column: str
    cells: pl.Series

    @cached_property
    def values(self) -> pl.Series:
        return names_of(self.cells)

    @cached_property
    def is_unique(self) -> bool:
        """Whether no row lacks it and no two rows share it."""
        if not len(self.cells) or self.cells.dtype.is_float():
            return False
        return self.cells.n_unique() == len(self.cells) and not is_nobody(self.cells, ("",)).any()


def _link(
    one: _Key, values: pl.Series, key: _Key, said: Collection[tuple[str, str, str, str]]
) -> Link | None:
    """The link of a column to a key, where most of its values are keys.

    Where the database declares foreign keys of a table, they alone are sure.
    """
    if not len(values):
        return None
    is_declared = (one.table, one.column, key.table, key.column) in said
    has_its_name = _names_it(one.column, key)
    lost = len(values) - int(values.is_in(key.values.implode()).sum())
    if not is_declared and lost > (1 - FEWEST_FOUND) * len(values):
        return None
    if not has_its_name and not is_declared and values.n_unique() < len(key.values) // 2:
        return None  # few small numbers are among the keys of any numbered table
    why = ["a foreign key of the database"] if is_declared else []
    why += ["the same name"] if has_its_name else []
    why.append("all values are keys there" if not lost else f"{lost} rows find none there")
    declares = any(declared[0] == one.table for declared in said)
    is_sure = is_declared or (has_its_name and not lost and not declares)
    return Link(one.table, one.column, key.table, key.column, lost, is_sure, ", ".join(why))


def _names_it(column: str, key: _Key) -> bool:
    """Whether a column has the key's name, or that of the key's table before it: `patient_id`."""
    own, its = words_of(column), words_of(key.column)
    table = [word.removesuffix("s") for word in words_of(key.table)]
    return (own == its and not {*its} <= GENERIC) or own in (table, table + its)


def _root(links: Mapping[str, Sequence[Link]]) -> str:
    """The table of people: the only one that others point to and that points to none."""
    if PEOPLE in links:
        return PEOPLE
    sure = {name: [link for link in some if link.is_sure] for name, some in links.items()}
    pointed = {link.to_table for some in sure.values() for link in some}
    roots = [name for name in links if name in pointed and not sure[name]]
    if len(roots) != 1:
        raise InputError(
            f"tables: which of {', '.join(map(repr, roots or links))} holds the people is not"
            f" clear; name it '{PEOPLE}'"
        )
    return roots[0]


def _one_way(own: Sequence[Link], links: Mapping[str, Sequence[Link]], root: str) -> list[Link]:
    """A table's links without those to tables with as many rows that point back at it, where it
    points to people itself and they don't.
    """

    def reaches(name: str) -> bool:
        return any(link.is_sure and link.to_table == root for link in links[name])

    def points_back(link: Link) -> bool:
        return any(one.is_sure and one.to_table == link.table for one in links[link.to_table])

    return [
        link
        for link in own
        if not (points_back(link) and reaches(link.table) and not reaches(link.to_table))
    ]
