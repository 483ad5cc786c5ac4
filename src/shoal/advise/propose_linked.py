"""Propose a policy for several tables: who belongs to whom by evidence, then each table's roles.

Evidence is what the database says, values and names. A column points to a key if all of its values
stand there and each stands there once. That is proof enough where both have one name or the
database declares it; else somebody has to say so.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from shoal.advise.propose import LookedAt, Proposal, ProposedColumn, ProposedTable
from shoal.connectors.files import SourceFile, beginning, read
from shoal.connectors.linked_tables import ForeignKey, TablePlace, TablePlaces
from shoal.data.column_words import words_of
from shoal.data.findings import some_named
from shoal.data.linked import PEOPLE
from shoal.data.person.decision import Answer
from shoal.data.person_names import is_nobody, names_of
from shoal.data.progress import Progress, no_progress
from shoal.data.regular_files import Json
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.binding.linked import ONE_ROW_EACH
from shoal.policy.loading import read_options, reading_of
from shoal.policy.model import ReadOptions, header_of
from shoal.policy.proposal.roles import ANOTHER

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


# The proposal.


OF_PRIVATE = (
    "a number beside {}, which nobody should learn: could others know it? if not, give it the role"
    " 'sensitive'"
)

ReadTable = Callable[[TablePlace, ReadOptions], SourceFile]


def propose_linked(
    places: TablePlaces,
    k: int = 10,
    *,
    read_as: Mapping[str, Any] | None = None,
    read_one: ReadTable | None = None,
    progress: Progress = no_progress,
) -> Proposal:
    """A policy for all tables of a folder, a workbook or a database; where nothing proves whose the
    rows of a table are, it asks. Raises InputError where no table can be that of people.

    read_one: how a table is read, where some may be at hand.
    """
    said = read_options(read_as or {})
    sources, lines = tables_below_titles(places, said, read_one or read_table, progress)
    tables = {name: source.table for name, source in sources.items()}
    links = find_links(tables, places.foreign_keys)
    if links.key(links.people) is None:
        raise InputError(
            f"tables: no row of another table points to one of '{links.people}'; check which table"
            f" holds the people, and name it '{PEOPLE}'"
        )
    options = read_options({k: v for k, v in (read_as or {}).items() if k != "header"})
    looked = {
        name: LookedAt.of(table, options, progress, has_key=name == links.people)
        for name, table in tables.items()
        if table.records or name == links.people
    }
    found = {name: _table(name, tables[name], looked.get(name), links) for name in tables}
    people = found.pop(links.people).columns
    missing = sorted({text for one in looked.values() for text in one.missing_values})
    said_of = {key: value for one in looked.values() for key, value in one.read.items()}
    said_of |= header_of(lines, links.people)
    return Proposal(people, k, said_of, tuple(missing), tables=found)


def read_table(place: TablePlace, options: ReadOptions) -> SourceFile:
    """One of several tables. options: of this one alone."""
    own = options.model_copy(update={"sheet": place.sheet})
    return read(place.path, reading=reading_of(own), allow_empty=True)


def tables_below_titles(
    places: TablePlaces,
    options: ReadOptions,
    read_one: ReadTable = read_table,
    progress: Progress = no_progress,
) -> tuple[dict[str, SourceFile], dict[str, int]]:
    """All tables, and which line names the columns of each: below a title, if nobody has said.

    Raises InputError with what is wrong with every table.
    """
    found, findings = {}, []
    for name, place in places.places.items():
        progress(f"reading table '{name}'")
        try:
            found[name] = below_title(place, options.of_table(name), read_one)
        except InputError as wrong:
            findings += [f"table '{name}': {said}" for said in wrong.said]
    InputError.raise_for(findings)
    return {n: one for n, (one, _) in found.items()}, {n: line for n, (_, line) in found.items()}


def below_title(
    place: TablePlace, options: ReadOptions, read_one: ReadTable = read_table
) -> tuple[SourceFile, int]:
    """One of several tables, and which line names its columns."""
    try:
        return read_one(place, options), options.line_of()
    except InputError:
        own = options.model_copy(update={"sheet": place.sheet})
        line = beginning(place.path, reading_of(own)).below_title
        if line is None or options.line_of() != 1:
            raise
        return read_one(place, options.model_copy(update={"header": line})), line


def _table(name: str, table: Table, looked: LookedAt | None, links: FoundLinks) -> ProposedTable:
    """A table's roles and links."""
    key, parent = links.key(name), links.parent(name)
    of_links = {one.column: one for one in reversed(links.links[name]) if one.is_sure}
    columns = []
    for column in table.names:
        if name == links.people and column == key:
            why = "rows of other tables point to it: who k counts"
            asked = {} if looked is None else _asking_who(looked.answer)
            columns.append(ProposedColumn(column, {"role": "subject", **asked}, why))
        elif column in (key, None if parent is None else parent.column):
            continue
        elif (link := of_links.get(column)) is not None:
            role = "subject" if link.to_table == links.people else "identifier"
            columns.append(ProposedColumn(column, {"role": role}, f"points to '{link.to_table}'"))
        else:
            columns.append(_column(column, looked))
    if name == links.people:
        return ProposedTable(tuple(columns), {})
    columns = _asking_beside_private(columns)
    settings: Json = {"ask": links.question(name)}
    if parent is not None:
        # as a policy calls people, whatever their file is called
        above = PEOPLE if parent.to_table == links.people else parent.to_table
        settings = {"parent": {above: parent.column}}
    settings |= {} if key is None else {"key": key}
    known = "all" if any(column.role == "quasi" for column in columns) else "count"
    settings["rows"] = {"known": known}
    return ProposedTable(tuple(columns), settings, "" if parent is None else parent.why)


def _asking_who(answer: Answer) -> Json:
    """A question where the table of people may hold several rows of one."""
    one = next(iter(answer.beside_keys), None)
    if one is None:
        return {}
    names, many = some_named(one.columns), "combinations" if one.columns[1:] else "values"
    few = f"its {one.records} rows hold only {one.people} different {many} of {names}"
    return {"ask": f"may several rows be one person's? {few}; {ONE_ROW_EACH}"}


def _asking_beside_private(columns: list[ProposedColumn]) -> list[ProposedColumn]:
    """The columns of a table below people, each number that others may know asked about where the
    same row says something private: it may be a measure of that, as a dose is of a drug.
    """
    private = [column.name for column in columns if column.role == "sensitive"]
    asked = OF_PRIVATE.format(some_named(private))
    return [
        replace(column, settings={**column.settings, "ask": asked})
        if private
        and column.role == "quasi"
        and column.settings.get("type") == "number"
        and column.ask is None
        else column
        for column in columns
    ]


def _column(name: str, looked: LookedAt | None) -> ProposedColumn:
    """A column's role, who is one person being known."""
    if looked is None:
        return ProposedColumn(name, {"role": "drop"}, "no rows to look at")
    guess = looked.guesses[name]
    guess = ANOTHER if guess.role == "subject" else guess
    settings: Json = dict(guess.settings)
    asked = None if guess.person is not None else guess.ask
    question = looked.questions.get(name)
    if isinstance(asked, str) or asked is None:
        asked = "; ".join(filter(None, (asked, question))) or None
    return ProposedColumn(name, settings | ({} if asked is None else {"ask": asked}), guess.reason)
