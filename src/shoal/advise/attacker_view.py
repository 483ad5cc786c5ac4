"""Attacker view: what somebody who knows a person's quasi-identifiers sees of them in a release.

The attacker is a prosecutor: they know that the person is in the table, and the person's
quasi-identifiers as the original has them. Unlike all other figures of a release these are about
one person and name values, because the owner asks; they belong on the owner's screen.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shoal.advise.views import (
    MOST_DISTORTED,
    MOST_EXPOSED,
    AttackerView,
    AttackerViews,
    Learnt,
    WhichRow,
    possible_values,
)
from shoal.auditor.audit import as_certified, bound_with_original
from shoal.auditor.reading import read_release
from shoal.auditor.verdict import Publication
from shoal.connectors.frames import table_of
from shoal.connectors.traces import rows_given
from shoal.data.certificate_shape import UNITS, people_key
from shoal.data.classes import Classes
from shoal.data.progress import Progress, no_progress
from shoal.data.release import PublishedColumn, Release, spans_cover
from shoal.data.table import Column, Table
from shoal.data.truth import Truth
from shoal.errors import InputError
from shoal.policy.binding.files import Source
from shoal.policy.policy import Policy, PolicyLike
from shoal.policy.problem import LinkedProblem
from shoal.tables.draft import Outcome


def attacker_view(
    release: "Source | Publication[Any]",
    policy: PolicyLike,
    original: Source,
    row: WhichRow = MOST_EXPOSED,
    *,
    trace: str | Path | ArrayLike | None = None,
    read: Mapping[str, Any] | None = None,
    progress: Progress = no_progress,
) -> AttackerView:
    """What an attacker who knows the quasi-identifiers of one row of the original learns of it.

    release: a file's path, a frame, or what `publish` gave, which also tells whose row is where, as
    the trace does: the row of the original, from 0, behind each published one. row: its number,
    from 1, in the original without rows that have no value, or `most-exposed` or `most-distorted`.
    Of linked tables, release and original are each a folder or frames by name, the trace is a file,
    and has to be given, and the row is one of people. read: as of `shoal.audit`. The result holds
    values of the table: it is for its owner's eyes. Raises InputError where tables and policy don't
    fit, or there is no such row.
    """
    views = attacker_views(release, policy, original, trace=trace, read=read, progress=progress)
    return views.of_row(row)


def attacker_views(
    release: "Source | Publication[Any]",
    policy: PolicyLike,
    original: Source,
    *,
    trace: str | Path | ArrayLike | None = None,
    read: Mapping[str, Any] | None = None,
    progress: Progress = no_progress,
) -> AttackerViews:
    """Views of a release, prepared once for looks at many rows."""
    policy = Policy.of(policy, read)
    if policy.model.is_linked:
        from shoal.advise.linked_attacker_view import linked_attacker_views

        return linked_attacker_views(release, LinkedProblem(policy), original, trace, progress)
    source = policy.tables.read_source(original, progress)
    progress("reading the release")
    found = release.found if isinstance(release, Publication) else None
    truth: Truth | None
    if isinstance(found, Outcome):
        released, shown, truth = Table(found.draft.frame), found.release, found.draft.truth
        encoded = truth.encoded
        if not truth.is_of(source):
            raise InputError("original: is not the table that was published; give that one")
    else:
        if isinstance(release, Publication):
            release = release.data
        if isinstance(release, (str, Path)):
            file = policy.tables.read_released(str(release))
            released, policy = file.table, as_certified(policy, str(release), file.sha256)
        else:
            released = policy.tables.published_table(table_of(release))[0]
        rows = None if trace is None else rows_given(trace)
        problem, encoded, truth = bound_with_original(released, policy, source, rows)
        shown = read_release(released, problem, truth)
    is_counted = truth is not None or shown.classes.subjects is not None
    return TableAttackerViews(
        shown,
        {name: released.column(name) for name in shown.classes.sensitive},
        UNITS[people_key(policy.subject, is_counted)].many,
        {column.name: source.column(column.name) for column in shown.columns},
        {one.attribute.name: one.value_of_code()[one.codes] for one in encoded.attributes},
        {name: source.column(name) for name in shown.classes.sensitive},
        None if truth is None else np.argsort(truth.trace),
    )


@dataclass(frozen=True, repr=False)
class TableAttackerViews(AttackerViews):
    """Views of any row of one table.

    sensitive: the published columns. unit: as in `AttackerView`. Of the original, known: text of
    the quasi-identifiers. values: (m,) float64 the number, order or leaf behind each. truth: the
    true values of sensitive columns. place: (m,) the record of the release that each row became,
    None where the release is shuffled.
    """

    release: Release
    sensitive: Mapping[str, Column]
    unit: str
    known: Mapping[str, Column]
    values: Mapping[str, np.ndarray]
    truth: Mapping[str, Column]
    place: np.ndarray | None

    def of_row(self, row: WhichRow) -> AttackerView:
        """The view of one row; raises InputError where there is no such row, or nobody knows."""
        if row in (MOST_EXPOSED, MOST_DISTORTED) and self.place is None:
            raise InputError(
                f"row '{row}': nobody knows which row of the release is whose; give a number,"
                " the trace, or what 'publish' returned"
            )
        return super().of_row(row)

    @property
    def rows(self) -> int:
        return len(next(iter(self.known.values())).codes)

    def of(self, row: int) -> AttackerView:
        """The view of a row of the original; row: from 1."""
        place = None if self.place is None else int(self.place[row - 1])
        fitting = self._fitting(row - 1)
        own = fitting
        shown = None
        if place is not None:
            label = int(self.release.classes.labels[place])
            own = np.arange(len(fitting)) == label
            shown = self._cells(place) if label >= 0 else None
        elif fitting.sum() == 1:
            shown = self._cells(int(self._firsts[np.flatnonzero(fitting)[0]]))
        alike = np.flatnonzero(self._in(own))
        return AttackerView(
            row,
            {name: _cell(column, row - 1) for name, column in self.known.items()},
            shown,
            self._people(alike),
            self.unit,
            int(fitting.sum()),
            self._people(np.flatnonzero(self._in(fitting))),
            tuple(self._learnt(name, row - 1, alike) for name in self.sensitive),
        )

    def most_exposed(self) -> int:
        """The row, from 1, whose true value the attacker would give the greatest chance.

        Of several, the one among the fewest people, then the first. Without a sensitive attribute,
        a row of a smallest class.
        """
        labels = self.release.shown.labels
        people = self.release.classes.people()
        share = np.zeros(len(labels))
        for name, column in self.sensitive.items():
            own = self.truth[name]
            shown = np.array([_place(cell, column) for cell in own.cells], dtype=np.int64)
            true = np.empty(len(labels), dtype=np.int64)
            true[self.place] = shown[own.codes]
            having = self._having(column, true)
            share = np.maximum(share, having / np.maximum(people[np.maximum(labels, 0)], 1))
        share[labels < 0] = -1
        size = np.where(labels < 0, len(labels) + 1, people[np.maximum(labels, 0)])
        return self._first_row(np.lexsort((self._row_of_place, size, -share)))

    def most_distorted(self) -> int:
        """The row, from 1, whose cells are the widest of those that show something."""
        width = np.zeros(self.release.records)
        for column in self.release.columns:
            width += np.nan_to_num(column.widths)[column.codes]
        width[self.release.shown.labels < 0] = -1
        return self._first_row(np.lexsort((self._row_of_place, -width)))

    def _first_row(self, order: np.ndarray) -> int:
        return int(self._row_of_place[order[0]]) + 1

    @cached_property
    def _row_of_place(self) -> np.ndarray:
        assert self.place is not None
        rows = np.empty(len(self.place), dtype=np.int64)
        rows[self.place] = np.arange(len(rows))
        return rows

    @cached_property
    def _firsts(self) -> np.ndarray:
        """(classes,) a record of each class."""
        firsts = np.zeros(self.release.classes.count, dtype=np.int64)
        kept = np.flatnonzero(self.release.classes.labels >= 0)[::-1]
        firsts[self.release.classes.labels[kept]] = kept
        return firsts

    def _fitting(self, row: int) -> np.ndarray:
        """(classes,) bool, whether its cells cover what is known of a row."""
        fits = np.ones(self.release.classes.count, dtype=bool)
        for column in self.release.columns:
            lo, hi = _ends(column)
            codes = column.codes[self._firsts]
            value = self.values[column.name][row]
            fits &= spans_cover(lo[codes], hi[codes], np.full(len(codes), value))
        return fits

    def _in(self, classes: np.ndarray) -> np.ndarray:
        """(n,) bool, records of some classes. classes: (count,) bool."""
        return np.append(classes, False)[self.release.classes.labels]

    def _people(self, records: np.ndarray) -> int:
        subjects = self.release.classes.subjects
        return len(records) if subjects is None else len(np.unique(subjects[records]))

    def _cells(self, place: int) -> dict[str, str]:
        return {column.name: column.cells[column.codes[place]] for column in self.release.columns}

    def _learnt(self, name: str, row: int, alike: np.ndarray) -> Learnt:
        column = self.sensitive[name]
        people = self._people(alike)
        counts = Classes(column.codes[alike], len(column.cells), self._whose(alike)).people()
        values = possible_values(column.cells, counts, people, self._bases[name], self._everybody)
        truth = _cell(self.truth[name], row)
        return Learnt(name, values, truth, any(one.value == truth for one in values))

    def _whose(self, records: np.ndarray) -> np.ndarray | None:
        subjects = self.release.classes.subjects
        return None if subjects is None else subjects[records]

    @cached_property
    def _bases(self) -> dict[str, np.ndarray]:
        """By sensitive column, (cells,) people of the release who have each value."""
        kept = np.flatnonzero(self.release.classes.labels >= 0)
        return {
            name: Classes(column.codes[kept], len(column.cells), self._whose(kept)).people()
            for name, column in self.sensitive.items()
        }

    @cached_property
    def _everybody(self) -> int:
        """People who are in some class."""
        return self._people(np.flatnonzero(self.release.classes.labels >= 0))

    def _having(self, column: Column, true: np.ndarray) -> np.ndarray:
        """(n,) how many people of a record's class have a value.

        true: (n,) its code, -1 for none.
        """
        labels = self.release.classes.labels.astype(np.int64)
        cells = len(column.cells)
        pairs = np.where(labels < 0, -1, labels * cells + column.codes)
        own, number = np.unique(pairs, return_inverse=True)
        counts = Classes(number, len(own), self.release.classes.subjects).people()
        asked = np.where((labels < 0) | (true < 0), -2, labels * cells + true)
        at = np.minimum(np.searchsorted(own, asked), len(own) - 1)
        return np.where(own[at] == asked, counts[at], 0)


def _ends(column: PublishedColumn) -> tuple[np.ndarray, np.ndarray]:
    """The span of each cell; of a mean, that of the values behind it."""
    if column.observed_bounds is None:
        return column.lo, column.hi
    least, greatest = column.observed_bounds
    is_mean = np.isfinite(least)
    return np.where(is_mean, least, column.lo), np.where(is_mean, greatest, column.hi)


def _cell(column: Column, row: int) -> str:
    return column.cells[column.codes[row]]


def _place(cell: str, column: Column) -> int:
    """The code of a text in another column, -1 where it has none."""
    return column.cells.index(cell) if cell in column.cells else -1
