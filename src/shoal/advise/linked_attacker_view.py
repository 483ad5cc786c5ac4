"""Attacker view of linked tables: what somebody who knows a person's rows sees of that person.

The attacker knows that the person is in the release, the person's own cells, and of each table what
the policy says is known. Whom they find is told by the published files alone: everybody who shows
the same in all that is known as a whole and, where any m rows are known, shows these as well; of
all choices of rows, those that leave the fewest people. Where gaps between dates are exact, one
date is known, that which leaves the fewest. As of one table, all of this is about one
person and names values: it belongs on the owner's screen.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from shoal.advise.views import AttackerView, AttackerViews, KnownRows, Learnt, possible_values
from shoal.auditor.linked.known_dates import KnownDate, KnownDates
from shoal.auditor.linked.reading import LinkedRelease, read_linked_tables
from shoal.connectors.traces import OF_TABLE, read_trace
from shoal.data.certificate_shape import KNOWN, UNITS
from shoal.data.classes import SensitiveColumn
from shoal.data.linked import ANCHOR, PEOPLE, Known, LinkedTable, LinkedTables, rows_column
from shoal.data.numbers import run_entries
from shoal.data.progress import Progress
from shoal.data.table import Table, as_text
from shoal.errors import InputError
from shoal.linked.publish import faults_of, person_losses
from shoal.policy.binding.linked import bound_linked, read_linked, read_linked_release
from shoal.policy.problem import LinkedProblem

NOT_KNOWN = "?"
"""What stands for dates that are not known."""


def linked_attacker_views(
    released: object,
    problem: LinkedProblem,
    original: object,
    trace: str | Path | ArrayLike | None,
    progress: Progress,
) -> "LinkedAttackerViews":
    """Views of a release of linked tables, prepared once. released, original: a `LinkedSource`.

    Raises InputError where the trace, which alone tells whose row is where, is not given.
    """
    if not isinstance(trace, (str, Path)):
        raise InputError(
            "attack: of linked tables only the trace tells whose row is where; name the file that"
            " 'publish --trace' wrote"
        )
    progress("reading the original")
    sources = read_linked(original, problem).tables
    tables = bound_linked(sources, problem)
    progress("reading the release")
    published = read_linked_release(released, problem).tables
    schemas = {about.name: about.schema for about in tables.tree.tables}
    release = read_linked_tables(published, problem, schemas)
    behind = _behind(str(trace), published, tables)
    InputError.raise_for(_misfits(faults_of(published, release, tables, behind)))
    return LinkedAttackerViews(release, tables, sources, behind[PEOPLE], behind)


def _behind(
    trace: str, published: Mapping[str, Table], tables: LinkedTables
) -> dict[str, np.ndarray]:
    """By table, the row of `LinkedRows` behind each published one; raises InputError where the
    trace does not name each published row once, each with a row of its own, and all people.
    """
    lines = read_trace(trace, OF_TABLE)
    if "table" not in lines.columns:
        raise InputError("trace: is one of a single table; give the one of this release")
    behind = {}
    for name, table in published.items():
        own = lines.filter(lines["table"] == name).sort("row")
        source = tables.rows[name].source
        at = np.searchsorted(np.sort(source), own["seq"])
        is_named = np.array_equal(own["row"], np.arange(table.records))
        is_known = np.isin(own["seq"], source).all() and len(np.unique(at)) == len(at)
        if not (is_named and is_known and (name != PEOPLE or len(at) == len(source))):
            raise InputError(
                "trace: is not of this release and this original; give the one of both"
            )
        behind[name] = np.argsort(source)[at]
    return behind


def _misfits(faults: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Says of each table how many rows are not those that the trace names. faults: of each."""
    for name, kinds in faults.items():
        if count := max(kinds.values()):
            fit = "1 row does" if count == 1 else f"{count} rows do"
            yield (
                f"trace: {fit} not fit the original in table '{name}'; give the trace that was"
                " written with this release, and the original that it was made of"
            )


@dataclass(frozen=True, repr=False)
class LinkedAttackerViews(AttackerViews):
    """Views of any person of one release of linked tables.

    original: its tables as they were bound; sources: as they were read. owners: (people,) the
    person of the original behind each published one; behind: by table, the row behind each.
    """

    release: LinkedRelease
    original: LinkedTables
    sources: Mapping[str, Table]
    owners: np.ndarray
    behind: Mapping[str, np.ndarray]

    @property
    def rows(self) -> int:
        return len(self.owners)

    def of(self, row: int) -> AttackerView:
        """The view of a person, by the row in the table of people, from 1; of several rows, `truth`
        lists all values.
        """
        place = int(np.flatnonzero(self.owners == row - 1)[0])
        alike, date = self._alike(place)
        shown = None if self.release.withheld[place] else dict(self._shown(place))
        tables = self.original.tree.tables
        known = {
            name: cells[0]
            for name, cells in self._cells(tables[0], np.array([row - 1]), date).items()
            if name != ANCHOR and cells != [NOT_KNOWN]
        }
        below = [t for t in tables[1:] if t.known is not Known.NONE]
        return AttackerView(
            row,
            known,
            shown,
            len(alike),
            UNITS[KNOWN].many,
            int(len(alike) > 0),
            len(alike),
            tuple(self._learnt(row - 1, alike)),
            tuple(self._known_rows(about, row - 1, date) for about in below),
        )

    def most_exposed(self) -> int:
        """The row, from 1, of the person one of whose published values the attacker would give the
        greatest chance; of several, the one among the fewest people, then the first.
        """
        person, number, is_own = self._found
        sizes = np.bincount(number)
        fewest, best = np.full(self.rows, self.rows + 1), np.zeros(self.rows)
        np.minimum.at(fewest, person[is_own], sizes[number[is_own]])
        for _, column, who, code in self._holders:
            begins, ends = (np.searchsorted(who, person, side) for side in ("left", "right"))
            at, own = run_entries(begins, ends - begins)
            pairs = number[at] * column.values + code[own]
            _, kind, times = np.unique(pairs, return_inverse=True, return_counts=True)
            chance = times[kind] / sizes[number[at]]
            np.maximum.at(best, person[at][is_own[at]], chance[is_own[at]])
        best[self.release.withheld] = -1
        return int(self.owners[np.lexsort((self.owners, fewest, -best))[0]]) + 1

    def most_distorted(self) -> int:
        """The row, from 1, of the person who loses most, over all rows, of those who show
        something.
        """
        losses = person_losses(self.release, self.original, self.owners)
        losses[self.owners[self.release.withheld]] = -1
        return int(np.argmax(losses)) + 1

    # Who is found.

    @cached_property
    def _found(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(h,) published people, (h,) the number of what they show that could be known, with each
        everybody who shows it, and (h,) bool, whether it is true of them and so could be known.
        More known rows stand behind fewer, and dates behind these.
        """
        view = self.release.view
        kept = np.flatnonzero(~self.release.withheld)
        people, numbers = [kept], [view.labels[kept]]
        for size in range(1, (self.release.tree.known_rows or 0) + 1):
            sets = view.known_sets(size)
            people.append(sets.person)
            numbers.append(sets.number + 1 + numbers[-1].max(initial=int(view.labels.max())))
        are_own = [np.ones(len(some), dtype=bool) for some in people]
        begun = int(numbers[-1].max(initial=int(view.labels.max()))) + 1
        for number, date in enumerate(self._dates, begun):
            people.append(date.fitting)
            numbers.append(np.full(len(date.fitting), number))
            are_own.append(np.isin(date.fitting, date.owners))
        return np.concatenate(people), np.concatenate(numbers), np.concatenate(are_own)

    @cached_property
    def _dates(self) -> list[KnownDate]:
        """The dates of which one could be known; none where gaps tell no more than spans."""
        anchor = self.release.tree.anchor
        if anchor is None or not anchor.is_exact:
            return []
        found = KnownDates(self.release, self.original).of_rows(self.behind)
        return [date for date in found if len(date.fitting)]

    def _alike(self, place: int) -> tuple[np.ndarray, KnownDate | None]:
        """The fewest published people whom the attacker finds instead of one, and the date that is
        known then; nobody where that one is withheld.
        """
        person, number, is_own = self._found
        own = number[(person == place) & is_own][::-1]
        if not len(own):
            return np.zeros(0, np.int64), None
        chosen = int(own[np.argmin(np.bincount(number)[own])])
        at = chosen - (int(number.max()) + 1 - len(self._dates))
        return person[number == chosen], self._dates[at] if at >= 0 else None

    # What is known, and learnt.

    def _shown(self, place: int) -> Iterator[tuple[str, str]]:
        """What a published person shows, but for days, which are moved."""
        table = self.release.tables[PEOPLE]
        counts = {rows_column(name): column for name, column in table.counts.items()}
        dates = {ANCHOR, *self.release.tree.dates.get(PEOPLE, ())}
        for name, column in ({c.name: c for c in table.columns} | counts).items():
            if name not in dates:
                yield name, column.cells[column.codes[place]]

    def _known_rows(self, about: LinkedTable, person: int, date: KnownDate | None) -> KnownRows:
        rows = np.flatnonzero(self.original.person_of(about.name) == person)
        cells = {} if about.known is Known.COUNT else self._cells(about, rows, date)
        in_rows = zip(*cells.values(), strict=True)
        return KnownRows(about.name, str(about.known), len(rows), tuple(cells), tuple(in_rows))

    def _cells(
        self, about: LinkedTable, rows: np.ndarray, date: KnownDate | None
    ) -> dict[str, list[str]]:
        """By quasi-identifier, the cells of somebody's rows as the original has them; where gaps
        are exact, of all dates the one that is known.
        """
        own = self.original.rows[about.name]
        names = [a.name for a in about.schema.quasi if a.name != ANCHOR]
        cells = {name: self._texts(about, name, rows) for name in names} if own.count else {}
        for name in cells.keys() & {*self.release.tables[about.name].dates}:
            is_known = date is not None and (date.table, date.column) == (about.name, name)
            known = np.isin(rows, date.rows if date is not None and is_known else [])
            cells[name] = np.where(known, cells[name], NOT_KNOWN).tolist()
        return cells

    def _texts(self, about: LinkedTable, column: str, rows: np.ndarray) -> list[str]:
        own = self.original.rows[about.name]
        if about.separator is not None:  # an element of a set
            return as_text(own.table.frame[column].gather(rows)).to_list()
        cells = self.sources[about.name].frame[column].gather(own.source[rows])
        return as_text(cells).to_list()

    @cached_property
    def _holders(self) -> list[tuple[LinkedTable, SensitiveColumn, np.ndarray, np.ndarray]]:
        """By sensitive column, who has which value in a published row, each pair once, by person;
        people who are withheld aside.
        """
        found = []
        for about in self.release.tree.tables:
            person = self.release.view.person_of[about.name]
            kept = ~self.release.withheld[person]
            for column in self.release.tables[about.name].sensitive.values():
                pairs = np.unique(person[kept] * column.values + column.codes[kept])
                found.append((about, column, pairs // column.values, pairs % column.values))
        return found

    def _learnt(self, person: int, alike: np.ndarray) -> Iterator[Learnt]:
        """What the attacker learns of each sensitive column of each table, about one person."""
        everybody = int((~self.release.withheld).sum())
        for about, column, who, code in self._holders:
            counts = np.bincount(code[np.isin(who, alike)], minlength=column.values)
            base = np.bincount(code, minlength=column.values)
            values = possible_values(_texts_of(column), counts, len(alike), base, everybody)
            rows = np.flatnonzero(self.original.person_of(about.name) == person)
            true = [*dict.fromkeys(self._texts(about, column.name, rows))]
            is_possible = bool(true) and {*true} <= {one.value for one in values}
            yield Learnt(
                about.qualified(column.name), values, ", ".join(true), is_possible, len(true)
            )


def _texts_of(column: SensitiveColumn) -> tuple[str, ...]:
    """The text of each place of a column."""
    if column.hierarchy is None:
        return column.labels
    return (*column.hierarchy.labels[: column.values - column.missing], *column.labels)
