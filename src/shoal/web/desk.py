"""The desk: a process that holds tables and answers looks, at one of them or at several about the
same people: the same questions as of one, asked of all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.advise.check import findings_of
from shoal.advise.estimate import free_memory
from shoal.advise.profile import ColumnProfile, profile
from shoal.advise.propose_linked import (
    below_title,
    find_links,
    propose_linked,
    read_table,
    tables_below_titles,
)
from shoal.auditor.linked.audit import of_linked_cells
from shoal.connectors import files
from shoal.connectors.linked_tables import LinkedSources, TablePlace, table_places
from shoal.data import cores
from shoal.data.findings import AttributeFinding, Fault
from shoal.data.linked import PEOPLE
from shoal.data.person_names import names_of
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.binding.linked import GroupedTable, group_rows, person_of, read_linked
from shoal.policy.binding.past_memory import memory_of
from shoal.policy.loading import read_options
from shoal.policy.model import ReadOptions
from shoal.policy.policy import Policy
from shoal.policy.problem import LinkedProblem
from shoal.policy.proposal.cells import ColumnCells
from shoal.policy.proposal.notation import as_read
from shoal.policy.proposal.roles import advised_step
from shoal.web.edits import subject_of
from shoal.web.looks import MOST_ROWS, Looks, before_and_after, cells_of, plain_finding
from shoal.web.policy_text import Context
from shoal.web.several import linking_columns, open_links, people_among
from shoal.web.sign_off import trace_of
from shoal.web.work import Line, said

WHO = "whose row this is"
"""A column that looks at one of the tables add, so that people are counted."""
KEPT = ("version", "read", "missing_values", "missing", "seed")


class SeveralLooks(Looks):
    """All tables at a time, read once. A look at one column is one at its table alone."""

    def __init__(self, progress: Progress = no_progress) -> None:
        super().__init__(progress)
        self._held: dict[TablePlace, tuple[str, files.SourceFile]] = {}
        self._own = PEOPLE
        self._policy: Context = {}

    def answer(self, name: str, asked: Context) -> Context:
        """What a look finds."""
        self._own, self._policy = PEOPLE, asked.get("policy") or {}
        for part in (asked, asked.get("rare") or {}):
            if "attribute" in part:
                self._policy = part["policy"]
                self._own, _, own = str(part["attribute"]).rpartition(".")
                self._own = self._own or PEOPLE
                part |= {"attribute": own, "policy": self._alone()}
        return super().answer(name, asked)

    def _alone(self) -> Context:
        """The policy of one of the tables by itself, whose people are a column of it."""
        tables = {PEOPLE: self._policy, **(self._policy.get("tables") or {})}
        attributes = {
            name: {"role": "identifier"} if own.get("role") == "subject" else own
            for name, own in (tables[self._own].get("attributes") or {}).items()
        }
        return {
            **{key: self._policy[key] for key in KEPT if key in self._policy},
            "attributes": {**attributes, WHO: {"role": "subject"}},
            "other": "drop",
            "promises": [{"model": "k-anonymity", "k": 2}],
        }

    # The tables

    def _places(self, table: str, names: Collection[str] = ()) -> Mapping[str, TablePlace]:
        """Where each table is, by the names that a policy has; one set is held at a time."""
        places = table_places(table).with_people(names).places
        self._held = {one: held for one, held in self._held.items() if one in places.values()}
        return places

    def _read(self, place: TablePlace, options: ReadOptions) -> files.SourceFile:
        """One table as it is written, from memory where its file is as it was."""
        stat = Path(place.path).stat()
        key = repr([stat.st_mtime_ns, stat.st_size, options])
        if place not in self._held or self._held[place][0] != key:
            self._views.clear()
            self._held[place] = key, read_table(place, options)
        return self._held[place][1]

    def _asked(self, table: str, policy: Context, base: str) -> tuple[Policy, Any]:
        """A policy, and the tables that it is about: all, or one by itself."""
        if not policy.get("tables"):
            return super()._asked(table, policy, base)
        return Policy.from_dict(policy, base), self._tables(table, policy)

    def _tables(self, table: str, policy: Context) -> dict[str, pl.DataFrame]:
        """The tables as they are written, by the names that the policy has for them."""
        options = read_options(policy.get("read") or {})
        places = self._places(table, policy.get("tables") or {})
        own = {name: options.of_table(name) for name in places}
        return {name: self._read(place, own[name]).frame for name, place in places.items()}

    def _source(self, table: str, read: Context | None = None) -> files.SourceFile:
        """The table that a look is about, as it is written, with whose each row is."""
        frames = self._tables(table, self._policy)
        who = self._owners(frames, self._own).cast(pl.String).alias(WHO)
        return files.SourceFile(Table(frames[self._own].with_columns(who)), "")

    def _owners(self, frames: Mapping[str, pl.DataFrame], name: str) -> pl.Series:
        """(n,) the number of the person of each row; none where no row above has its key."""
        tables, frame = self._policy.get("tables") or {}, frames[name]
        links = (tables.get(name) or {}).get("parent")
        if not links:
            return pl.int_range(frame.height, eager=True)
        ((parent, _),) = links.items()
        return self._owners(frames, parent).gather(self._places_above(frames, name))

    def _places_above(self, frames: Mapping[str, pl.DataFrame], name: str) -> pl.Series:
        """(n,) the row of the parent that each row of a table belongs to; none where none is."""
        tables = self._policy["tables"]
        ((parent, link),) = tables[name]["parent"].items()
        key = tables[parent]["key"] if parent != PEOPLE else subject_of(self._policy)[0]
        known = pl.DataFrame({"key": names_of(frames[parent][key])}).with_row_index("at")
        above = known.unique("key", keep="first")
        asked = pl.DataFrame({"key": names_of(frames[name][link])})
        return asked.join(above, on="key", how="left", maintain_order="left")["at"]

    # Looks at all of them

    def look_open(self, table: str, read: Context) -> Context:
        """Sizes and columns of the tables; raises InputError where memory may not hold them."""
        paths = _small_enough(table)
        sources, lines = tables_below_titles(table_places(table), read_options(read), self._read)
        hashes = {name: source.sha256 for name, source in sources.items()}
        return {
            "tables": {name: source.frame.columns for name, source in sources.items()},
            "read": {**read, "header": lines},
            "rows": sum(source.frame.height for source in sources.values()),
            "sha256": LinkedSources({}, hashes).sha256,
            "bytes": sum(Path(path).stat().st_size for path in paths),
        }

    def look_show_beginning(self, table: str, read: Context) -> Context:
        """Every table's columns and rows, or why it can't be read; whether all belong together."""
        answer: Context = {"sheets": [], "lines": [], "read": read, "columns": [], "tables": []}
        found: dict[str, Table] = {}
        try:
            places, options = self._places(table), read_options(read)
            answer["sheets"] = [name for name, one in places.items() if one.sheet]
            _small_enough(table)
            for name, place in places.items():
                try:
                    source, line = below_title(place, options.of_table(name), self._read)
                except InputError as wrong:
                    answer["tables"].append({"name": name, "trouble": wrong.said})
                    continue
                found[name] = source.table
                own = {"rows": source.frame.height, "columns": source.frame.columns}
                answer["tables"].append({"name": name, "line": line, **own})
            if len(found) == len(places):
                links = find_links(found)
                others = {*found} - {links.people}
                answer["belong_together"] = all(links.links[name] for name in others)
        except InputError as refused:
            answer["trouble"] = list(refused.said)
        return answer

    def look_propose(self, table: str, read: Context) -> Context:
        """A first policy, the reason for every role and link, and which table is that of people."""
        places = table_places(table)
        found = propose_linked(places, read_as=read, read_one=self._read)
        (people,) = {*places.places} - {*found.tables}
        reasons = {column.name: column.why for column in found.columns}
        for name, one in found.tables.items():
            reasons |= {f"{name}.{column.name}": column.why for column in one.columns}
        return {"content": found.content, "reasons": reasons, "people": people}

    def look_profile(self, table: str, policy: Context, base: str) -> Context:
        """What the columns hold, how the tables hang together, and who is one person."""
        frames = self._tables(table, policy)
        read = policy.get("read") or {}
        columns = [
            {**asdict(one), "name": _named(name, one.name)}
            for name, frame in frames.items()
            if frame.height
            for one in self._columns(frame, read)
        ]
        tables = self._counted(frames, policy, base)
        people = next((one for one in tables if one["name"] == PEOPLE), None)
        below = [one for one in tables if "most" in one]
        candidate = people and {
            "columns": subject_of(policy),
            "people": people["rows"],
            "without": 0,
            "repeated": people["several"],
            "most_rows": max((one["most"] for one in below), default=1),
            "is_profile": False,
        }
        links = find_links({name: Table(frame) for name, frame in frames.items()}, (), PEOPLE)
        return {
            "columns": columns,
            "tables": tables,
            "candidates": [candidate] if candidate else [],
            "links": [asdict(link) for some in links.links.values() for link in some],
        }

    def _columns(self, frame: pl.DataFrame, read: Context) -> tuple[ColumnProfile, ...]:
        """What the columns of a table hold, kept for as long as the tables are."""
        key = f"{id(frame)} {sorted(read.items())}"
        if key not in self._views:
            self._views[key] = profile(frame, read=read, progress=self._progress).columns
        return self._views[key]

    def _counted(
        self, frames: Mapping[str, pl.DataFrame], policy: Context, base: str
    ) -> list[Context]:
        """Every table with its parent, its rows, and how many of them a person has; of people, how
        many have several rows in any table.
        """
        asked = self._sound(policy, base)
        grouped: dict[str, GroupedTable] = {}
        if asked is not None:
            problem, asks = LinkedProblem(asked), open_links(policy)
            linked = {name: frame for name, frame in frames.items() if name not in asks}
            with suppress(InputError, pl.exceptions.PolarsError):  # the check says what is wrong
                grouped, _ = group_rows(read_linked(linked, problem).tables, problem)
        everybody = grouped[PEOPLE].table.records if PEOPLE in grouped else 0
        counted, several = [], np.zeros(everybody, dtype=bool)
        for name, frame in frames.items():
            links = ((policy.get("tables") or {}).get(name) or {}).get("parent") or {None: None}
            ((parent, link),) = links.items()
            one: Context = {"name": name, "parent": parent, "link": link, "rows": frame.height}
            if name in grouped and name != PEOPLE:
                rows = np.bincount(person_of(name, grouped), minlength=everybody)
                one |= {
                    "least": int(rows.min()) if everybody else 0,
                    "most": int(rows.max(initial=0)),
                }
                several |= rows > 1
            counted.append(one)
        for one in counted:
            if one["name"] == PEOPLE:
                one["several"] = int(several.sum())
        return counted

    def look_check(self, table: str, policy: Context, base: str) -> Context:
        """Every finding about the policy, the tables and their links, values counted only."""
        asked, frames = Policy.from_dict(policy, base), self._tables(table, policy)
        for name in open_links(policy):  # asked above all columns
            frames.pop(name, None)
        tables: dict[str, Table] = {}
        findings: list[AttributeFinding] = []
        steps: Context = {}
        problem = LinkedProblem(asked)
        for declared in problem.given:
            if (frame := frames.get(declared.name)) is None or not frame.height:
                continue
            name, own = declared.name, problem.alone(declared)
            findings += [
                replace(one, attribute=_named(name, one.attribute))
                for one in findings_of(own, frame)
                if one.kind is Fault.MISFIT and one.attribute not in declared.dates
            ]
            tables[name] = own.tables.original_table(Table(frame))
            whole = Table(as_read(frame, own.notation))
            for column, settings in declared.attributes.items():
                is_asked = settings.role in ("quasi", "sensitive", "plain", "drop")
                if is_asked and column in whole.names:
                    steps[_named(name, column)] = advised_step(ColumnCells.of(whole.column(column)))
        said = [one.message for one in findings]
        findings += [
            one
            for one in findings_of(asked, frames)
            if not any(one.message.endswith(message) for message in said)
        ]
        return {
            "steps": {name: step for name, step in steps.items() if step},
            "findings": [plain_finding(finding) for finding in findings],
            "remarks": [one.report() for one in of_linked_cells(tables, problem)],
        }

    def look_show_draft(
        self, table: str, policy: Context, draft: str, rows: list[int], is_starred: bool = False
    ) -> Context:
        """All rows of one person before and after, table by table, people first, under the names
        that their owner gave them, without the columns that only link them; nothing where it is
        unknown which row became which. rows: the person's row in the table of people.
        """
        path = trace_of(Path(draft).parent)
        if path is None:
            return {"is_unmatched": True}
        trace, named = pl.read_ndjson(path), table_places(table).places
        tables, people = self._tables(table, policy), people_among([*named], policy) or PEOPLE
        order = [*trace["table"].unique(maintain_order=True), *tables]
        links = {*linking_columns(policy), *subject_of(policy)}
        shown = []
        for name in sorted(tables, key=order.index):
            before = tables[name]
            after = files.read(table_places(draft).with_people(policy["tables"]).places[name].path)
            columns = [c for c in before.columns if _named(name, c) not in links]
            columns = [c for c in columns if c in after.frame.columns]
            own = trace.filter(table=name).sort("row")["seq"].to_numpy()
            theirs, above = self._rows_of_people(tables, name, rows)
            found = before_and_after(before.select(columns), after.frame, own, theirs)
            shown.append({"name": people if name == PEOPLE else name, **above, **found})
        return {"tables": shown}

    def _rows_of_people(
        self, tables: Mapping[str, pl.DataFrame], name: str, people: list[int]
    ) -> tuple[list[int], Context]:
        """The rows of a table that belong to these people; of one below another than people's, in
        the order of the rows that they belong to, which are told as well.
        """
        rows = self._owners(tables, name).is_in(people).arg_true()
        (parent,) = (self._policy["tables"].get(name) or {}).get("parent") or [PEOPLE]
        if parent == PEOPLE:
            return rows.to_list(), {}
        above = self._places_above(tables, name).gather(rows)
        order = above.arg_sort()
        told = {"parent": parent, "above": above.gather(order).to_list()}
        return rows.gather(order).to_list(), told

    def look_show_rows(self, table: str, read: Context, first: int = 0) -> Context:
        """Some rows of each table, as they are written."""
        lines = read.get("header")
        asked = {"read": read, "tables": lines if isinstance(lines, dict) else {}}
        frames = self._tables(table, asked).values()
        shown = [frame.slice(first, MOST_ROWS) for frame in frames]
        return {
            "first": first,
            "tables": [
                {"name": name, "columns": frame.columns, "rows": cells_of(frame)}
                for name, frame in zip(self._places(table), shown, strict=True)
            ],
        }


def _small_enough(table: str) -> set[str]:
    """The files of all tables; raises InputError where they may not fit into memory."""
    paths = {place.path for place in table_places(table).places.values()}
    needed, free = sum(map(memory_of, paths)), free_memory()
    if free and needed > free / 2:
        raise InputError(
            "tables: may take more than half of the memory that is free; publish them from a"
            " shell, 'shoal policy init' and 'shoal publish'"
        )
    return paths


def _named(table: str, column: str) -> str:
    """A column's name among those of all tables."""
    return column if table == PEOPLE or not column else f"{table}.{column}"


def main() -> None:
    line = Line()

    def tell(stage: str, done: int | None = None, total: int | None = None) -> None:
        line.send({"stage": stage, "done": done, "total": total})

    one, several = Looks(tell), SeveralLooks(tell)
    for message in line.messages():
        name = message.pop("look")
        looks = several if message.pop("several", False) else one
        try:
            with cores.using(None):
                answer = looks.answer(name, message)
        except Exception as error:  # whatever a look runs into, the next one is answered
            answer = said(error)
        line.send(answer)


if __name__ == "__main__":
    main()
