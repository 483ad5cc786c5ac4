"""A release of linked tables as its readers see it, and what in its keys, counts and days is wrong.

Only the published files are used: rows are joined by their keys, and dates that were moved are read
as days from the day that their person shows.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import polars as pl

from shoal.auditor.linked.labels import View, ViewedTable
from shoal.connectors.location import Location
from shoal.connectors.outputs import describe_file
from shoal.data.certificate_shape import OutputReport
from shoal.data.classes import SensitiveColumn, encode_sensitive_columns
from shoal.data.linked import (
    ANCHOR,
    HULL,
    PEOPLE,
    TableTree,
    day_number,
    parents_of,
    places_of,
    rows_column,
    starts_of,
)
from shoal.data.numbers import Notation, alike, map_cells
from shoal.data.person_names import names_of
from shoal.data.release import PublishedColumn, is_starred, is_withheld, read_column, read_columns
from shoal.data.schema import REMOVED, Attribute, Kind, Render, Role, Schema, Shown
from shoal.data.table import Table, as_text, encode_text
from shoal.errors import InputError
from shoal.policy.binding.table import bound_release
from shoal.policy.linked import DeclaredTable, elements_of
from shoal.policy.problem import LinkedProblem

PSEUDONYM = re.compile(r"^[0-9a-f]{32}$")
FAR = 6.0
"""Standard deviations from what chance gives, beyond which it is taken for none."""

FEW = 13
"""Keys, of which fewer may follow what rows show by chance."""

RARE = 1e-5
"""What has no greater chance is not taken for chance."""

TILTS = np.arange(0, 30, 0.25)
"""Exponents of which Chernoff's bound takes the one that bounds best."""


@dataclass(frozen=True)
class ReleasedTable:
    """One table of a release: its rows by parent, and what they show.

    table: its cells, and where each row stands in the file; None: there.
    columns: its quasi-identifiers. counts: by table below, how many rows its cells say; lo and hi.
    more: (n,) what else tells rows apart: days of the week that moved days keep. dates: of its
        columns, those of which attackers know one date alone.
    """

    declared: DeclaredTable
    starts: np.ndarray
    table: Table
    columns: tuple[PublishedColumn, ...]
    counts: Mapping[str, PublishedColumn]
    sensitive: Mapping[str, SensitiveColumn]
    more: tuple[np.ndarray, ...] = ()
    dates: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        return int(self.starts[-1])

    @property
    def cells(self) -> list[np.ndarray]:
        """What its rows show beside counts and single dates, as whole numbers by column."""
        shown = (column.codes for column in self.columns if column.name not in self.dates)
        return [*shown, *self.more]


@dataclass(frozen=True)
class LinkedRelease:
    """All tables of a release.

    withheld: (people,) bool, who shows nothing at all in any table. faults: by kind, as a
    certificate counts them. moved: (people,) the day that each person's dates count from, None
        where there is no anchor. loose: of tables without keys, the fewest rows that show the same.
    """

    tree: TableTree
    tables: Mapping[str, ReleasedTable]
    withheld: np.ndarray
    faults: Mapping[str, int]
    moved: np.ndarray | None = None
    loose: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def view(self) -> View:
        """What attackers see of it, who know what the policy says."""
        viewed = []
        for about in self.tree.tables:
            own = self.tables[about.name]
            counted = [column.codes for column in own.counts.values()]
            viewed.append(ViewedTable.of(about, own.starts, own.cells, counted))
        return View(viewed)

    @property
    def hull(self) -> tuple[np.ndarray, np.ndarray]:
        """(people,) float64, the first and last day that each person's may be; not finite: none."""
        shown = next(one for one in self.tables[PEOPLE].columns if one.name == ANCHOR)
        return shown.lo[shown.codes], shown.hi[shown.codes]

    @property
    def drawn_days(self) -> np.ndarray:
        """(people,) float64, from how many days each person's was drawn; not finite for none."""
        assert self.tree.anchor is not None
        lo, hi = self.hull
        return np.floor((hi - lo) / self.tree.anchor.step) + 1


def read_linked_tables(
    tables: Mapping[str, Table], problem: LinkedProblem, schemas: Mapping[str, Schema] | None = None
) -> LinkedRelease:
    """The tables of a release as their readers see them; raises InputError with every finding.

    schemas: by table, of the original; by default what the policy alone tells.
    """
    reader = _Reader(tables, problem, schemas or {})
    InputError.raise_for(reader.absent())
    for declared in problem.declared:
        reader.read(declared)
    InputError.raise_for(reader.findings)
    tree = problem.tree(reader.schemas)
    release = LinkedRelease(
        tree, reader.found, reader.withheld(), reader.faults, reader.moved, reader.loose
    )
    if release.withheld.any():  # who is like somebody who shows rows that nobody knows is not
        shows = np.isin(release.view.labels, release.view.labels[~release.withheld])
        release = replace(release, withheld=release.withheld & ~shows)
    faults = {
        **release.faults,
        "extra_rows": sum(extra_rows(release, one) for one in release.tables.values()),
        **({} if release.moved is None else {"odd_days": odd_days(release, release.moved)}),
    }
    return replace(release, faults=faults)


class _Reader:
    """Reads one table after the other, each behind its parent."""

    def __init__(
        self, tables: Mapping[str, Table], problem: LinkedProblem, schemas: Mapping[str, Schema]
    ) -> None:
        self.problem, self.model, self.render = problem, problem.model, problem.policy.render
        self._row_counts = [rows_column(table.name) for table in problem.declared]
        self._tables, self._known = tables, schemas
        self.schemas: dict[str, Schema] = {}
        self.found: dict[str, ReleasedTable] = {}
        kinds = ("orphans", "repeated_keys", "original_keys", "ordered_keys", "not_removed")
        self.faults = dict.fromkeys(kinds, 0)
        self.findings: list[str] = []
        self.moved: np.ndarray | None = None
        self.loose: dict[str, int] = {}
        self._grouped: dict[str, Table] = {}

    def absent(self) -> list[str]:
        """Tables and keys that the release lacks."""
        needs_keys = self.model.keys != "none"
        findings = []
        for declared in self.problem.given:
            if declared.name not in self._tables:
                findings.append(
                    f"table '{declared.name}': in the policy, not in the release; add its file"
                )
            elif needs_keys:
                names = self._tables[declared.name].names
                findings += [
                    f"table '{declared.name}': has no column '{column}', by which its rows are"
                    " joined; say 'keys: none' if the release has none"
                    for column in dict.fromkeys((declared.link, declared.key))
                    if column is not None and column not in names
                ]
        return findings

    def read(self, declared: DeclaredTable) -> None:
        """Reads the rows of a table, joined to those of its parent."""
        if declared.separator is not None:
            assert declared.parent is not None
            above = self._grouped[declared.parent]
            table, parents = elements_of(declared, above, self.model.missing_texts)
            starts = starts_of(parents, above.records)
        else:
            table, starts = self._joined(declared)
            self.faults["not_removed"] += sum(map(partial(self._is_left, declared), table.names))
        self._grouped[declared.name] = table
        counted = [name for name in self._row_counts if name in table.names]
        kept = Table(self._dated(declared, table, starts).drop(counted, strict=False))
        try:
            bound = bound_release(kept, self.problem.alone(declared))
            schema = self._known.get(declared.name, bound.schema)
            columns, findings = read_columns(kept, schema)
            sensitive, strange = encode_sensitive_columns(kept, schema, {})
            InputError.raise_for([*findings, *strange])
        except InputError as wrong:
            self.findings += [f"table '{declared.name}': {said}" for said in wrong.said]
            return
        self.schemas[declared.name] = schema
        counts = {
            name.removesuffix(rows_column("")): self._count_column(table, name) for name in counted
        }
        anchor, more = self.model.anchor, []
        if declared.parent is None and self.moved is not None and anchor and anchor.keep:
            more.append(self.moved % 7)
        is_exact = anchor is not None and anchor.gaps == "exact"
        dates = declared.dates if is_exact else ()
        one = ReleasedTable(declared, starts, table, columns, counts, sensitive, tuple(more), dates)
        self.found[declared.name] = one
        if declared.key is not None and declared.key in table.names:
            self._judge_keys(one, names_of(table.frame[declared.key]))

    def _is_left(self, declared: DeclaredTable, name: str) -> bool:
        """Whether a column names people, or is to be removed, and the release still holds it."""
        attribute = declared.attributes.get(name)
        is_key = name == declared.key and self.model.keys != "none"
        if attribute is None or is_key or attribute.role not in REMOVED:
            return False
        cells = as_text(self._tables[declared.name].frame[name])
        return attribute.pseudonym is None or not cells.str.contains(PSEUDONYM.pattern).all()

    def _joined(self, declared: DeclaredTable) -> tuple[Table, np.ndarray]:
        """A table's rows by parent, without those that belong to nobody."""
        table = self._tables[declared.name]
        if declared.parent is None:
            return table, np.array([0, table.records])
        above = self._grouped[declared.parent]
        key = next(t.key for t in self.problem.declared if t.name == declared.parent)
        assert key is not None
        if self.model.keys == "none":  # nobody can tell whose a row is
            self._count_alike(declared, table)
            return Table(table.frame.clear()), np.zeros(above.records + 1, np.int64)
        assert declared.link is not None
        parents = places_of(names_of(above.frame[key]), names_of(table.frame[declared.link]))
        order = np.argsort(parents, kind="stable")
        order = order[np.searchsorted(parents[order], 0) :]
        self.faults["orphans"] += len(parents) - len(order)
        return Table(table.frame[order], source=order), starts_of(parents[order], above.records)

    def _count_alike(self, declared: DeclaredTable, table: Table) -> None:
        """Counts the rows that show the same in a table whose rows nobody can join."""
        quasi = [name for name, a in declared.attributes.items() if a.role == "quasi"]
        shown = [name for name in (*quasi, *self._row_counts) if name in table.names]
        if shown and table.records:
            rows = alike([table.column(name).codes for name in shown], table.records)
            self.loose[declared.name] = int(np.bincount(rows).min())

    def _count_column(self, table: Table, name: str) -> PublishedColumn:
        declared = self.model.tables.get(name.removesuffix(rows_column("")))
        is_mean = declared is not None and declared.rows.counts == "both"
        shown = Shown.BOTH if is_mean else Shown.RANGE
        attribute = Attribute(name, Role.QUASI, Kind.NUMBER, shown=shown)
        column = read_column(attribute, table.column(name), Schema((), render=self.render))
        if np.isnan(column.lo).any():
            self.findings.append(
                f"column '{name}': {int(np.isnan(column.lo)[column.codes].sum())} cells are no"
                " counts; audit with the policy that it was published under"
            )
        return column

    # Days.

    def _dated(self, declared: DeclaredTable, table: Table, starts: np.ndarray) -> pl.DataFrame:
        """The table's cells, with days as whole numbers, from their person's day if they moved."""
        frame = table.frame
        if declared.parent is None and self.model.anchor is not None:
            if {ANCHOR, HULL} <= {*frame.columns}:
                days = map_cells(frame[ANCHOR], day_number)[0].cast(pl.Int64, strict=False)
                self.moved = days.fill_null(0).to_numpy()
                frame = frame.drop(ANCHOR).rename({HULL: ANCHOR})
                frame = frame.with_columns(self._spans(frame[ANCHOR], None).alias(ANCHOR))
            else:
                self.findings.append(
                    f"table '{PEOPLE}': has no columns '{ANCHOR}' and '{HULL}', from which moved"
                    " dates count; audit with the policy that it was published under"
                )
        person = self._person_of(declared, starts)
        for name in declared.dates:
            if name in frame.columns:
                moved = None if self.moved is None else self.moved[person]
                frame = frame.with_columns(self._spans(frame[name], moved).alias(name))
        return frame

    def _person_of(self, declared: DeclaredTable, starts: np.ndarray) -> np.ndarray:
        if declared.parent is None:
            return np.arange(int(starts[-1]))
        above = self.found.get(declared.parent)
        if above is None:  # of which there are findings
            return np.zeros(int(starts[-1]), np.int64)
        return self._person_of(above.declared, above.starts)[parents_of(starts)]

    def _spans(self, cells: pl.Series, moved: np.ndarray | None) -> pl.Series:
        """Cells of days, or spans of days, as spans of whole numbers; others as they are."""
        column = encode_text(cells)
        notation = self.problem.policy.notation.written
        head, middle, tail = self.render.parts

        def numbers(cell: str) -> tuple[int, int] | None:
            inside = cell.removeprefix(head).removesuffix(tail)
            ends = [cell] if inside == cell else inside.split(middle)
            days = [day_number(notation.day(e) or "" if notation.dates else e) for e in ends]
            if len(days) not in (1, 2) or None in days:
                return None
            return int(days[0] or 0), int(days[-1] or 0)

        found = [numbers(cell) for cell in column.cells]
        is_span = np.array([one is not None for one in found], dtype=bool)
        ends = np.array([one or (0, 0) for one in found], dtype=np.int64).reshape(-1, 2)
        rows = ends[column.codes] - (0 if moved is None else moved[:, None])
        lo, hi = (pl.Series(rows[:, end]).cast(pl.String) for end in (0, 1))
        spans = pl.select(pl.lit(head) + lo + pl.lit(middle) + hi + pl.lit(tail)).to_series()
        shown = spans.zip_with(pl.Series(rows[:, 0] < rows[:, 1]), lo)
        return shown.zip_with(pl.Series(is_span[column.codes]), as_text(cells))

    # Keys.

    def _judge_keys(self, one: ReleasedTable, keys: pl.Series) -> None:
        """Counts keys that are there twice, look like the original's, or follow what rows show."""
        self.faults["repeated_keys"] += len(keys) - keys.n_unique()
        if self.model.keys == "keyed":
            self.faults["original_keys"] += int((~keys.str.contains(PSEUDONYM.pattern)).sum())
            return
        numbers = keys.cast(pl.Int64, strict=False)
        expected = pl.int_range(1, len(keys) + 1, eager=True)
        self.faults["original_keys"] += len(keys) - int(expected.is_in(numbers.implode()).sum())
        if numbers.null_count():
            return
        shown = [column.lo[column.codes] for column in (*one.columns, *one.counts.values())]
        followed = [_follows(numbers.to_numpy(), values) for values in shown]
        self.faults["ordered_keys"] += sum(followed)

    def withheld(self) -> np.ndarray:
        """(people,) bool, who shows nothing at all: no cell, no count, no row."""
        people = self.found.get(PEOPLE)
        if people is None:
            return np.zeros(0, dtype=bool)
        shown = (*people.columns, *people.counts.values())
        if not shown:
            return np.zeros(people.rows, dtype=bool)
        mark = self.render.suppressed
        starred = is_starred(shown, mark)
        for one in self.found.values():
            if one.declared.parent == PEOPLE and one.declared.separator is None:
                starred &= np.diff(one.starts) == 0
        for name in people.declared.sets:
            starred &= (as_text(self._grouped[PEOPLE].frame[name]) == mark).to_numpy()
        names = [n for n, a in people.declared.attributes.items() if a.role == "sensitive"]
        table = self._grouped[PEOPLE]
        hides = is_withheld(table, names, starred, mark)
        return starred if hides else np.zeros(people.rows, dtype=bool)


def extra_rows(release: LinkedRelease, table: ReleasedTable) -> int:
    """Rows of a table beyond the number that the cell of their parent says at most."""
    if table.declared.parent is None:
        return 0
    said = release.tables[table.declared.parent].counts.get(table.declared.name)
    if said is None:
        return 0
    return int(np.maximum(np.diff(table.starts) - said.hi[said.codes], 0).sum())


def odd_days(release: LinkedRelease, moved: np.ndarray) -> int:
    """Days outside the span that they were drawn from, or beside none, or in classes whose both
    ends are taken by more than chance explains: true days take them always, as the span ends where
    they do.
    """
    assert release.tree.anchor is not None
    lo, hi = release.hull
    has_span = np.isfinite(lo)
    is_between = np.where(has_span, moved - lo, 0) % release.tree.anchor.step > 0
    outside = np.where(has_span, (moved < lo) | (moved > hi) | is_between, moved > 0)
    shows = has_span & ~release.withheld
    label = release.view.labels
    people, taken = np.bincount(label[shows], minlength=label.max(initial=-1) + 1), []
    for end in (lo, hi):
        at_end = np.zeros(len(people), dtype=bool)
        at_end[label[shows & (moved == end)]] = True
        taken.append(at_end)
    width = np.zeros(len(people))
    width[label[shows]] = release.drawn_days[shows]
    wide = width > 2
    chance = 1 - 2 * (1 - 1 / width[wide]) ** people[wide] + (1 - 2 / width[wide]) ** people[wide]
    both = int((taken[0] & taken[1])[wide].sum())
    return int(outside.sum()) + (both if is_beyond_chance(both, chance) else 0)


def is_beyond_chance(found: float, chances: np.ndarray) -> bool:
    """Whether chance does not explain how many of these independent events happened.

    chances: (n,) float64, of each event. By Chernoff's bound on the chance of `found` or more.
    """
    values, times = np.unique(np.minimum(chances, 1), return_counts=True)
    growth = np.log1p(np.expm1(TILTS)[:, None] * values) @ times
    return bool((growth - TILTS * found).min() < np.log(RARE))


def _follows(keys: np.ndarray, values: np.ndarray) -> bool:
    """Whether keys follow what rows show: their ranks agree by more than chance gives."""
    shows = np.isfinite(values)
    if shows.sum() < FEW:
        return False
    both = pl.DataFrame({"key": keys[shows], "value": values[shows]})
    found = both.select(pl.corr("key", "value", method="spearman")).item()  # NaN: all are one
    agreement = np.minimum(abs(found), 1 - 1e-12)
    return bool(np.arctanh(agreement) * np.sqrt(shows.sum() - 3) > FAR)  # Fisher, 1915


def described_output(
    place: Location, sha256: str | None, render: Render, notation: Notation
) -> OutputReport:
    """What the certificate of a release says of all its tables under `output`; their hashes stand
    under `tables`. place: of one of them.
    """
    found = describe_file(Path(), place, sha256, render, None, notation)
    found["dialect"]["order"] = None  # drawn, as keys are
    return found
