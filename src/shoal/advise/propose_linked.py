"""Propose a policy for several tables: who belongs to whom by evidence, then each table's roles."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from shoal.advise.propose import LookedAt, ProposedColumn
from shoal.connectors.files import SourceFile, beginning, read
from shoal.connectors.table_places import TablePlace, TablePlaces
from shoal.data.findings import some_named
from shoal.data.linked import PEOPLE
from shoal.data.person.decision import Answer
from shoal.data.progress import Progress, no_progress
from shoal.data.regular_files import Json
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.binding.linked_files import ONE_ROW_EACH
from shoal.policy.loading import one_line, read_options, reading_of
from shoal.policy.model import ReadOptions, header_of
from shoal.policy.policy import Policy
from shoal.policy.proposal.links import FoundLinks, Link, find_links
from shoal.policy.proposal.roles import ANOTHER

HEAD = """\
# A proposal for several tables: read every role and every 'parent' before you rely on them. Nothing
# is published or audited while a key 'ask' is there: answer it, then delete it.
"""

OF_PRIVATE = (
    "a number beside {}, which nobody should learn: could others know it? if not, give it the role"
    " 'sensitive'"
)

ReadTable = Callable[[TablePlace, ReadOptions], SourceFile]


@dataclass(frozen=True)
class ProposedTable:
    """A table's columns, and what its rows belong to; parent: None where somebody has to say it.

    question: to ask then. key: its column that rows of other tables point to.
    """

    columns: tuple[ProposedColumn, ...]
    parent: Link | None = None
    key: str | None = None
    question: str | None = None

    @property
    def content(self) -> Mapping[str, Any]:
        """Its part of the policy."""
        known = "all" if any(column.role == "quasi" for column in self.columns) else "count"
        links: Json = {"ask": self.question}
        if self.parent is not None:
            links = {"parent": {self.parent.to_table: self.parent.column}}
        key = {} if self.key is None else {"key": self.key}
        attributes = {column.name: dict(column.settings) for column in self.columns}
        return {**links, **key, "rows": {"known": known}, "attributes": attributes}


@dataclass(frozen=True)
class LinkedProposal:
    """A first policy for several tables; read and missing_values as in `Proposal`."""

    people: ProposedTable
    tables: Mapping[str, ProposedTable]
    k: int
    read: Mapping[str, Any]
    missing_values: tuple[str, ...]

    @property
    def questions(self) -> dict[str, str]:
        """By column or table, what somebody has to decide before anything is published."""
        found = {c.name: c.ask for c in self.people.columns if c.ask is not None}
        for name, table in self.tables.items():
            found |= {f"{name}.{c.name}": c.ask for c in table.columns if c.ask is not None}
            found |= {} if table.question is None else {name: table.question}
        return found

    @property
    def content(self) -> Mapping[str, Any]:
        """The policy as plain dicts, as `Policy.from_dict` takes it."""
        missing = {"missing_values": ["", *self.missing_values]} if self.missing_values else {}
        read_as = {"read": dict(self.read)} if self.read else {}
        return {
            "version": 1,
            "attributes": {c.name: dict(c.settings) for c in self.people.columns},
            "tables": {name: table.content for name, table in self.tables.items()},
            "promises": [{"model": "k-anonymity", "k": self.k}],
            **missing,
            **read_as,
            "seed": 7,
        }

    @property
    def policy(self) -> Policy:
        """The policy, to be used once its questions are answered."""
        return Policy.from_dict(self.content)

    @property
    def text(self) -> str:
        """The policy file, in YAML, with the reason beside every role and every parent."""
        content = self.content
        lines = [f"{HEAD}version: 1", "attributes:", *_columns(self.people.columns, "  ")]
        lines.append("tables:")
        for name, table in self.tables.items():
            lines.append(f"  {one_line(name)}:")
            for key, value in table.content.items():
                if key == "attributes":
                    lines += ["    attributes:", *_columns(table.columns, "      ")]
                else:
                    why = f"  # {table.parent.why}" if key == "parent" and table.parent else ""
                    lines.append(f"    {key}: {one_line(value)}{why}")
        for key in ("promises", "missing_values", "read", "seed"):
            if key in content:
                lines.append(f"{key}: {one_line(content[key])}")
        return "\n".join([*lines, ""])


def _columns(columns: tuple[ProposedColumn, ...], indent: str) -> list[str]:
    if not columns:
        return [f"{indent.removesuffix('  ')}  {{}}"]
    return [f"{indent}{one_line(c.name)}: {one_line(c.settings)}  # {c.why}" for c in columns]


def propose_linked(
    places: TablePlaces,
    k: int = 10,
    *,
    read_as: Mapping[str, Any] | None = None,
    read_one: ReadTable | None = None,
    progress: Progress = no_progress,
) -> LinkedProposal:
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
    missing = sorted({text for one in looked.values() for text in one.missing_values})
    said_of = {key: value for one in looked.values() for key, value in one.read.items()}
    said_of |= header_of(lines, links.people)
    return LinkedProposal(found.pop(links.people), found, k, said_of, tuple(missing))


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
    if parent is not None and parent.to_table == links.people:
        parent = replace(parent, to_table=PEOPLE)  # as a policy calls it, whatever its file does
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
    if name != links.people:
        columns = _asking_beside_private(columns)
    question = None
    if name != links.people and parent is None:
        question = links.question(name)
    return ProposedTable(tuple(columns), parent, None if name == links.people else key, question)


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
