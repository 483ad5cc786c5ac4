"""The tables of a linked policy as they are read: originals, and releases with what they show."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from shoal.connectors.database.tables import one_snapshot
from shoal.connectors.files import SourceFile
from shoal.connectors.frames import Frame, nan_in, table_of
from shoal.connectors.linked_tables import place_of_several, table_places
from shoal.connectors.release_drafts import WrittenDraft
from shoal.data.linked import PEOPLE
from shoal.data.person_names import warn_of_nobody, without_nobody
from shoal.data.table import Table
from shoal.data.warnings import PEOPLE_ASSUMED, ReleaseWarning, nan_remarks
from shoal.errors import InputError
from shoal.policy.binding.columns import cell_warnings, people_doubted
from shoal.policy.binding.files import PolicyTables
from shoal.policy.problem import LinkedProblem

LinkedSource: TypeAlias = "str | Path | Mapping[str, str | Path | Frame]"
"""A folder, a workbook or a database of several tables, the file of people, or by the name of each
table its file or frame.
"""


@dataclass(frozen=True)
class LinkedSources:
    """All tables as they were read, by name, with the hash of each file's bytes; frames have none.

    remarks: on rows that are nobody, or may be.
    """

    tables: Mapping[str, Table]
    hashes: Mapping[str, str]
    remarks: tuple[ReleaseWarning, ...] = ()

    @property
    def sha256(self) -> str:
        """The hash of all tables: of their names and hashes."""
        lines = "".join(f"{name}\t{self.hashes[name]}\n" for name in sorted(self.hashes))
        return hashlib.sha256(lines.encode()).hexdigest()


def read_linked(
    source: object,
    problem: LinkedProblem,
    further: Mapping[str, str] | None = None,
    *,
    warns: bool = False,
) -> LinkedSources:
    """The tables that a problem is about, with decimal points and ISO dates; raises InputError with
    every finding of every table, and for what is no `LinkedSource`.

    further: more tables by name, beside the source. warns: of rows without any value in frames.
    """
    sources = _read(source, problem, further, _original)
    if warns and not sources.hashes:
        warn_of_nobody(sources.remarks)
    return sources


def linked_warnings(sources: LinkedSources, problem: LinkedProblem) -> list[ReleaseWarning]:
    """What the originals give reason to say: of rows that are nobody, of values that look alike,
    and of columns by which fewer people than rows stand in the table of people.
    """
    found = [*sources.remarks]
    for declared in problem.given:
        table, model = sources.tables.get(declared.name), problem.alone(declared).model
        if table is None:
            continue
        is_of_people = declared.parent is None
        doubted = people_doubted(table, model, True).beside_keys if is_of_people else ()
        found += [
            ReleaseWarning(PEOPLE_ASSUMED, f"table '{declared.name}': {one.doubt}; {ONE_ROW_EACH}")
            for one in doubted
            if one.columns != (declared.key,)  # its keys differ, but for their spelling
        ]
        found += [one.at(f"table '{declared.name}'") for one in cell_warnings(table, model)]
    return found


ONE_ROW_EACH = (
    "k counts the rows of this table; if several may be one person's, make a table with one row for"
    " each, to which the rows of all others point"
)


def read_linked_release(source: object, problem: LinkedProblem) -> LinkedSources:
    """The tables of a release so read; their cells may be spans or nodes as well."""
    return _read(source, problem, None, _released)


def read_linked_drafts(drafts: Mapping[str, WrittenDraft], problem: LinkedProblem) -> LinkedSources:
    """The tables of a release that were just written and are not published yet."""
    found = {}
    for table in problem.given:
        tables, draft = problem.alone(table).tables, drafts[table.name]
        dialect = tables.output_dialect(draft.name, None, draft.name)
        found[table.name] = tables.read_draft(draft, dialect)
    return _sources(found)


def named_sources(
    source: object, problem: LinkedProblem, further: Mapping[str, str] | None
) -> list[str]:
    """The names of all that is read: of folders, files and tables in databases, not of frames."""
    given = (one for _, one, _ in _given(source, problem, further))
    is_path = isinstance(source, str | Path) and place_of_several(source).is_path
    return [*([str(source)] * is_path), *(one for one in given if isinstance(one, str))]


def _original(given: str | Frame, tables: PolicyTables) -> SourceFile:
    if isinstance(given, str):
        return tables.read_original(given, allow_empty=True)
    frame = table_of(given, True).frame
    frame, remarks = without_nobody(frame, *tables.nobody(frame.columns))
    remarks += nan_remarks(nan_in(given, tables.reading_of(tables.model.read)))
    return SourceFile(Table(tables.original_frame(frame)), "", remarks=remarks)


def _released(given: str | Frame, tables: PolicyTables) -> SourceFile:
    source = (
        tables.read_as_written(given, allow_empty=True, sheet=tables.model.read.sheet)
        if isinstance(given, str)
        else SourceFile(table_of(given, True), "")
    )
    return replace(source, table=tables.published_table(source.table)[0])


@one_snapshot()
def _read(
    source: object,
    problem: LinkedProblem,
    further: Mapping[str, str] | None,
    read: Callable[[str | Frame, PolicyTables], SourceFile],
) -> LinkedSources:
    found: dict[str, SourceFile] = {}
    findings: list[str] = []
    declared = {table.name: table for table in problem.given}
    for name, given, sheet in _given(source, problem, further):
        if name not in declared:
            findings.append(
                f"table '{name}': in the data, not in the policy; name it under 'tables', or take"
                " it out"
            )
            continue
        try:
            tables = _of_sheet(problem.alone(declared[name]).tables, sheet)
            found[name] = read(given, tables)
        except InputError as wrong:
            findings += [f"table '{name}': {said}" for said in wrong.said]
    InputError.raise_for(findings)
    return _sources(found)


def _sources(found: Mapping[str, SourceFile]) -> LinkedSources:
    return LinkedSources(
        {name: one.table for name, one in found.items()},
        {name: one.sha256 for name, one in found.items() if one.sha256},
        tuple(said.at(f"table '{name}'") for name, one in found.items() for said in one.remarks),
    )


def _given(
    source: object, problem: LinkedProblem, further: Mapping[str, str] | None
) -> Iterator[tuple[str, str | Frame, str | None]]:
    """Each table's name, its place or frame, and the sheet of a workbook."""
    if isinstance(source, Mapping):
        for name, given in source.items():
            yield name, str(given) if isinstance(given, Path) else given, None
        return
    if not isinstance(source, str | Path):
        raise InputError(
            "tables: a policy of linked tables needs several; name their folder, or give files or"
            " frames by the names of the tables, such as {'people': ..., 'visits': ...}"
        )
    found = table_places(str(source), further, problem.policy.files)
    found = found.with_views({PEOPLE, *problem.model.tables}).with_people(problem.model.tables)
    yield from ((name, place.path, place.sheet) for name, place in found.places.items())


def _of_sheet(tables: PolicyTables, sheet: str | None) -> PolicyTables:
    if sheet is None:
        return tables
    read = tables.model.read.model_copy(update={"sheet": sheet})
    return replace(tables, model=tables.model.model_copy(update={"read": read}))
