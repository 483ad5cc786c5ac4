"""Several tables read as their policy says, originals and releases, and bound to it: what belongs
to what, dates as days, each table encoded.

Rows whose parent is missing, keys that are there twice and rows about two people are findings, as
are all that a single table may have; they are listed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl

from shoal.connectors.database.tables import one_snapshot
from shoal.connectors.files import SourceFile
from shoal.connectors.frames import Frame, nan_in, table_of
from shoal.connectors.linked_tables import LinkedSources, place_of_several, table_places
from shoal.data.findings import listed_rows
from shoal.data.linked import (
    ANCHOR,
    PEOPLE,
    LinkedRows,
    LinkedTables,
    are_own,
    day_number,
    parents_of,
    places_of,
    starts_of,
)
from shoal.data.numbers import map_cells
from shoal.data.person_names import is_nobody, names_of, without_nobody
from shoal.data.table import Table
from shoal.data.warnings import PEOPLE_ASSUMED, ReleaseWarning, nan_remarks, warn_of_nobody
from shoal.errors import InputError
from shoal.policy.binding.columns import HIDDEN, cell_warnings, people_doubted, unnamed_finding
from shoal.policy.binding.files import PolicyTables
from shoal.policy.binding.table import BoundTable, bound_table, parted_cells
from shoal.policy.linked import DeclaredTable, elements_of
from shoal.policy.model import PolicyModel
from shoal.policy.problem import LinkedProblem


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
    return LinkedSources.of(found)


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


# Tables bound to their policy.


@dataclass(frozen=True)
class GroupedTable:
    """A table whose rows stand by parent; starts and source as in `LinkedRows`."""

    declared: DeclaredTable
    table: Table
    starts: np.ndarray
    source: np.ndarray


def bound_linked(tables: Mapping[str, Table], problem: LinkedProblem) -> LinkedTables:
    """All tables bound and encoded; raises InputError with everything that is wrong with them.

    tables: by name, with decimal points and ISO dates, as `read_linked` gives them.
    """
    InputError.raise_for(_table_findings(tables, problem))
    grouped, findings = group_rows(tables, problem)
    if problem.model.other == "plain":
        findings = findings or [*_copies(grouped, problem)]
    InputError.raise_for(findings)
    dated, findings = _dated(grouped, problem.model)
    bound: dict[str, BoundTable] = {}
    for name, one in dated.items():
        as_grouped = Table(one.table.frame, source=one.source)
        try:
            counts_as_people = one.declared.parent is None
            bound[name] = bound_table(as_grouped, problem.alone(one.declared), counts_as_people)
        except InputError as wrong:
            findings += [f"{about(one.declared)}{finding}" for finding in wrong.found]
        else:
            findings += parted_cells(one.declared, bound[name])
    InputError.raise_for(findings)
    tree = problem.tree({name: one.schema for name, one in bound.items()})
    rows = {
        name: LinkedRows(
            tree[name],
            one.starts,
            one.source,
            one.table,
            bound[name].encoded,
            bound[name].whole_table.sensitive,
        )
        for name, one in dated.items()
    }
    return LinkedTables(tree, rows)


def about(table: DeclaredTable) -> str:
    """Begins a finding about a table below people."""
    return "" if table.parent is None else f"table '{table.name}': "


def _table_findings(tables: Mapping[str, Table], problem: LinkedProblem) -> list[str]:
    """Tables that are not there, and links that a table lacks."""
    findings = [
        f"table '{table.name}': in the policy, not in the data; add its file, or take it out"
        for table in problem.given
        if table.name not in tables
    ]
    return findings + [
        f"{about(table)}has no column '{column}', by which rows of tables belong together; correct"
        " the name in the policy, or add it"
        for table in problem.given
        for column in dict.fromkeys((table.link, table.key))
        if column is not None and table.name in tables and column not in tables[table.name].names
    ]


# What belongs to what.


def group_rows(
    tables: Mapping[str, Table], problem: LinkedProblem
) -> tuple[dict[str, GroupedTable], list[str]]:
    """All tables and sets, the rows of one parent next to each other; or every finding."""
    found: dict[str, GroupedTable] = {}
    findings: list[str] = []
    for declared in problem.declared:
        if declared.parent is None:
            table = tables[PEOPLE]
            everybody = np.arange(table.records)
            starts = np.array([0, table.records])
            found[PEOPLE] = GroupedTable(declared, table, starts, everybody)
        elif declared.parent not in found:
            continue  # rows of its parent belong to nobody that is known
        elif declared.separator is not None:
            found[declared.name] = _elements(declared, found[declared.parent], problem.model)
        else:
            one, wrong = _rows_of(declared, tables[declared.name], found, problem.model)
            findings += wrong
            if one is not None:
                found[declared.name] = one
        if declared.key is not None and declared.name in found:
            findings += _repeated_keys(found[declared.name], problem.model)
    return found, findings


def _rows_of(
    declared: DeclaredTable, table: Table, found: Mapping[str, GroupedTable], model: PolicyModel
) -> tuple[GroupedTable | None, list[str]]:
    """A table's rows by parent; or rows whose parent is missing, and rows about two people."""
    assert declared.parent is not None
    assert declared.link is not None
    above = found[declared.parent]
    assert above.declared.key is not None
    keys = names_of(above.table.frame[above.declared.key])
    parents = places_of(keys, names_of(table.frame[declared.link]))
    parents[is_nobody(table.frame[declared.link], model.no_names)] = -1
    if (orphans := np.flatnonzero(parents < 0)).size:
        rows = _rows(orphans)
        return None, [
            f"{about(declared)}{rows} to no row of '{declared.parent}' by '{declared.link}'"
            f" ({listed_rows(orphans.tolist())}); complete"
            f" '{declared.parent}', or take them out"
        ]
    order = np.argsort(parents, kind="stable")
    starts = starts_of(parents, above.table.records)
    grouped = GroupedTable(declared, Table(table.frame[order]), starts, order)
    return grouped, _about_two_people(grouped, {**found, declared.name: grouped})


def _rows(rows: np.ndarray) -> str:
    return "1 row belongs" if len(rows) == 1 else f"{len(rows)} rows belong"


def _repeated_keys(one: GroupedTable, model: PolicyModel) -> list[str]:
    assert one.declared.key is not None
    column = one.table.frame[one.declared.key]
    where = f"{about(one.declared)}column '{one.declared.key}'"
    findings = []
    if unnamed := int(is_nobody(column, model.no_names).sum()):
        findings.append(f"{where}: is empty in {unnamed} rows; give every row its key")
    repeated = np.flatnonzero(~names_of(column).is_first_distinct().to_numpy())
    if len(repeated):
        rows = listed_rows(one.source[repeated].tolist())
        what = "names a person again" if one.declared.parent is None else "repeats a key"
        findings.append(f"{where}: {what} ({rows}); keep one row of each")
    return findings


def _about_two_people(one: GroupedTable, found: Mapping[str, GroupedTable]) -> list[str]:
    """Rows that name another person than the one to whom their parent belongs."""
    named = [name for name, a in one.declared.attributes.items() if a.role == "subject"]
    if not named or named[0] not in one.table.names:
        return []  # a column that is not there is a finding of whoever binds the table
    person = person_of(one.declared.name, found)
    people = found[PEOPLE]
    assert people.declared.key is not None
    owners = names_of(people.table.frame[people.declared.key]).gather(person)
    others = np.flatnonzero((names_of(one.table.frame[named[0]]) != owners).to_numpy())
    if not len(others):
        return []
    rows = listed_rows(np.sort(one.source[others]).tolist())
    return [
        f"{about(one.declared)}{_rows(others)} to one person by '{one.declared.link}' and to"
        f" another by '{named[0]}' ({rows}); correct them"
    ]


def person_of(name: str, found: Mapping[str, GroupedTable]) -> np.ndarray:
    """(n,) the person of each row of a table."""
    return _places_above(name, found)[PEOPLE]


def _places_above(name: str, found: Mapping[str, GroupedTable]) -> dict[str, np.ndarray]:
    """By table, from this one up to people, the row that each of its rows is or hangs from."""
    one = found[name]
    if one.declared.parent is None:
        return {name: np.arange(one.table.records)}
    above, parents = _places_above(one.declared.parent, found), parents_of(one.starts)
    own = {name: np.arange(len(parents))}
    return own | {table: rows[parents] for table, rows in above.items()}


def _copies(found: Mapping[str, GroupedTable], problem: LinkedProblem) -> Iterator[str]:
    """Columns that `other: plain` would publish though they hold what is hidden of the rows above,
    or keys or dates of any rows of the same person.
    """
    places = {name: _places_above(name, found) for name in found}
    named = {name: problem.alone(one.declared).model.attributes for name, one in found.items()}
    hidden = []
    for name, one in found.items():
        for column, role in ((n, a.role) for n, a in named[name].items() if a.role in HIDDEN):
            by = PEOPLE if column in (one.declared.key, *one.declared.dates) else name
            if column in one.table.names:
                known = one.table.frame[column], places[name][by], HIDDEN[role]
                hidden.append((f"'{column}' of '{name}' ({role})", by, known))
    for name, one in found.items():
        for column in (n for n in one.table.names if n not in named[name]):
            is_value = ~is_nobody(one.table.frame[column], problem.model.missing_texts)
            cells = one.table.frame[column].filter(is_value)
            for what, by, known in hidden:
                owners = places[name].get(by)
                if owners is not None and are_own(cells, owners[is_value], *known):
                    wrong = unnamed_finding(column, f"holds the cells of {what}")
                    yield about(one.declared) + wrong
                    break


def _elements(declared: DeclaredTable, above: GroupedTable, model: PolicyModel) -> GroupedTable:
    """The elements of the sets in a column, by the row in whose cell they stand."""
    table, parents = elements_of(declared, above.table, model.no_names)
    by_row = pl.DataFrame({"row": parents, "cell": table.frame.to_series()})
    once = by_row.select(pl.struct(pl.all()).is_first_distinct()).to_series()
    table, parents = Table(table.frame.filter(once)), parents[once.to_numpy()]
    return GroupedTable(
        declared, table, starts_of(parents, above.table.records), above.source[parents]
    )


# Dates as days: from the person's anchor, if there is one.


def _dated(
    grouped: Mapping[str, GroupedTable], model: PolicyModel
) -> tuple[dict[str, GroupedTable], list[str]]:
    """The tables with their dates as days, and people with the anchor; or every finding."""
    found, findings = dict(grouped), []
    days: dict[tuple[str, str], pl.Series] = {}
    for name, one in grouped.items():
        for column in one.declared.dates:
            if column in one.table.names:
                days[name, column], wrong = _days(one, column, model)
                findings += wrong
    table, _, column = ("" if model.anchor is None else model.anchor.first).rpartition(".")
    first = (table or PEOPLE, column)
    if model.anchor is None:
        anchors = None
    elif findings or first not in days:  # which is found as well; what else is wrong is looked for
        anchors = pl.zeros(grouped[PEOPLE].table.records, pl.Int64, eager=True)
    else:
        anchors = _anchors(days[first], person_of(first[0], grouped), grouped[PEOPLE])
        if model.anchor.gaps == "exact":
            findings += _without_dates(grouped, days)
            if "." in model.anchor.first:  # else people's own rows without a date are found
                findings += _without_anchor(anchors)
    none = next(iter(model.missing_texts), "")
    for (name, column), numbers in days.items():
        if anchors is not None:
            findings += _far_dates(found[name], column, numbers, anchors)
            numbers = numbers - anchors.gather(person_of(name, grouped))
        found[name] = _with_column(found[name], column, numbers, none)
    if anchors is not None:
        found[PEOPLE] = _with_column(found[PEOPLE], ANCHOR, anchors, none)
    return found, findings


# Where gaps are exact, what is judged of known dates hides nobody who is known to have none.


def _without_dates(
    grouped: Mapping[str, GroupedTable], days: Mapping[tuple[str, str], pl.Series]
) -> Iterator[str]:
    for (name, column), numbers in days.items():
        if rows := np.sort(grouped[name].source[numbers.is_null().to_numpy()]).tolist():
            yield (
                f"attribute '{name}.{column}': has no date in {len(rows)} of {len(numbers)} rows"
                f" ({listed_rows(rows)}), and with exact gaps nothing hides whose rows they are;"
                " say what the dates are, leave those rows out, or say 'gaps: covered'"
            )


def _without_anchor(anchors: pl.Series) -> Iterator[str]:
    if people := np.flatnonzero(anchors.is_null().to_numpy()).tolist():
        yield (
            f"policy, anchor.first: {len(people)} of {len(anchors)} people have no such date"
            f" ({listed_rows(people)} of '{PEOPLE}'), and with exact gaps nothing hides who they"
            " are; say what the dates are, leave those people out, or say 'gaps: covered'"
        )


def _with_column(one: GroupedTable, name: str, numbers: pl.Series, none: str) -> GroupedTable:
    cells = numbers.cast(pl.String).fill_null(none).alias(name)
    return replace(one, table=Table(one.table.frame.with_columns(cells)))


def _days(one: GroupedTable, column: str, model: PolicyModel) -> tuple[pl.Series, list[str]]:
    """The days of a column's dates, none where it has no value; or what is no date."""
    cells, lost = map_cells(one.table.frame[column], day_number)
    odd = [cell for cell in lost if model.is_value(cell)]
    days = cells.cast(pl.Int64, strict=False)
    if not odd:
        return days.set(cells.is_in(lost), None) if lost else days, []
    rows = np.sort(one.source[cells.is_in(odd).arg_true().to_numpy()])
    return days, [
        f"attribute '{one.declared.name}.{column}': {len(rows)} cells are not dates"
        f" ({listed_rows(rows.tolist())}); correct them, say how dates are written,"
        " such as --read dates=%d.%m.%Y, or list the text under 'missing_values'"
    ]


def _far_dates(one: GroupedTable, column: str, days: pl.Series, anchors: pl.Series) -> list[str]:
    """That days of a column can leave the calendar when they are moved from anchor to anchor."""
    present = anchors.drop_nulls().to_numpy()
    most = int(np.ptp(present)) if len(present) else 0
    far = ((days - most < 1) | (days + most > date.max.toordinal())).fill_null(False)
    rows = np.sort(one.source[far.to_numpy()]).tolist()
    if not rows:
        return []
    return [
        f"attribute '{one.declared.name}.{column}': {listed_rows(rows)} can't be moved within the"
        " years 1 to 9999; correct dates of far years, or list those that mean no value under"
        " 'missing_values'"
    ]


def _anchors(days: pl.Series, person: np.ndarray, people: GroupedTable) -> pl.Series:
    """Each person's first day; none for who has no row with a date."""
    first = pl.DataFrame({"person": person, "day": days}).group_by("person").agg(pl.min("day"))
    everybody = pl.DataFrame({"person": np.arange(people.table.records)})
    return everybody.join(first, on="person", how="left", maintain_order="left")["day"]
