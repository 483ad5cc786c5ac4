"""Among how many people somebody hides of whom one date is known, where gaps are exact.

Who knows a date d of a person knows that a row fits which lies o days from its person's anchor, if
d - o is a day that the anchor may have: any of `anchor.hull`, equally likely. Of the people who are
alike in all else, the likeliest is the one with most of the rows that fit. The attacker may know
which rows show the same as the known one; so rows that differ are judged apart.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shoal.auditor.linked.reading import LinkedRelease
from shoal.data.linked import ANCHOR, LinkedTables

MOST_PAIRS = 10**7
"""Of dates and rows that are compared at a time."""


@dataclass(frozen=True)
class _Column:
    """The rows of one column of dates, by label of their person, kind of row, and person.

    begins: (labels + 1,) where those of each label begin. row, kind, person, lo, hi: (n,) of each;
    row: its place in the file; lo, hi: days from the anchor. days: the true dates, those of person
    i of the original being days[starts[i]] up to days[starts[i + 1]].
    """

    table: str
    name: str
    begins: np.ndarray
    row: np.ndarray
    kind: np.ndarray
    person: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    days: np.ndarray
    starts: np.ndarray

    def dates(self, people: np.ndarray) -> np.ndarray:
        """The different dates of some people of the original."""
        spans = zip(self.starts[people], self.starts[people + 1], strict=True)
        days = np.unique(np.concatenate([self.days[begin:end] for begin, end in spans]))
        return days[~np.isnan(days)]


class KnownDate(NamedTuple):
    """A date that somebody may know, and of which kind of row. rows: those of the original that
    have it. owners: the published people behind these; fitting: all whom the date fits.
    """

    table: str
    column: str
    rows: np.ndarray
    owners: np.ndarray
    fitting: np.ndarray


class KnownDates:
    """The dates of a release with exact gaps, and among how many people each of them hides one."""

    def __init__(self, release: LinkedRelease, truth: LinkedTables) -> None:
        self.labels = np.where(release.withheld, -1, release.view.labels)
        assert release.tree.anchor is not None
        self._step, self._hulls = release.tree.anchor.step, release.hull
        self._columns = list(_columns(release, truth, self.labels))

    def hidden_among(self, people: np.ndarray, label: int) -> np.ndarray:
        """(d, 2) int64, for every date of these people of the original, and kind of row of which
        some fit it: how many rows do, and how many are of the person with most of them.

        label: of the published people whom they are taken for.
        """
        found = [np.zeros((0, 2), np.int64)]
        for column in self._columns:
            rows = slice(column.begins[label], column.begins[label + 1])
            lo, hi, dates = column.lo[rows], column.hi[rows], column.dates(people)
            size = max(MOST_PAIRS // max(len(lo), 1), 1)
            for begin in range(0, len(dates), size):
                fits = self._fits(dates[begin : begin + size, None], lo, hi, label)
                found.append(_most_likely(fits, column.kind[rows], column.person[rows]))
        return np.concatenate(found)

    def _fits(self, days: np.ndarray, lo: np.ndarray, hi: np.ndarray, label: int) -> np.ndarray:
        """(d, n) bool, which rows of people of a label which of (d, 1) dates fit."""
        member = int(np.argmax(self.labels == label))
        first, last = (ends[member] for ends in self._hulls)
        fits = (days - hi <= last) & (days - lo >= first)
        return fits & ((days - lo - first) % self._step == 0) if self._step > 1 else fits

    def of_rows(self, behind: Mapping[str, np.ndarray]) -> Iterator[KnownDate]:
        """Every date of a published row, once for each kind of row of each label.

        behind: by table, the row of the original behind each published one.
        """
        for column in self._columns:
            true = behind[column.table][column.row]
            for label, begin in enumerate(column.begins[:-1]):
                rows = slice(begin, column.begins[label + 1])
                kind, person, days = column.kind[rows], column.person[rows], column.days[true[rows]]
                for one in np.flatnonzero(days == days):  # NaN: there is none
                    is_own = (kind == kind[one]) & (days == days[one])
                    if one == np.argmax(is_own):
                        fits = self._fits(days[one], column.lo[rows], column.hi[rows], label)
                        fitting = np.unique(person[fits & (kind == kind[one])])
                        owners = np.unique(person[is_own])
                        yield KnownDate(
                            column.table, column.name, true[rows][is_own], owners, fitting
                        )

    def of_everybody(self, owners: np.ndarray) -> np.ndarray:
        """`hidden_among` of all people. owners: (people,) the person behind each published one."""
        order = np.argsort(self.labels, kind="stable")
        order = order[np.searchsorted(self.labels[order], 0) :]
        ends = np.flatnonzero(np.diff(self.labels[order])) + 1
        groups = np.split(order, ends) if len(order) else []
        found = (self.hidden_among(owners[group], int(self.labels[group[0]])) for group in groups)
        return np.concatenate([np.zeros((0, 2), np.int64), *found])


def _columns(release: LinkedRelease, truth: LinkedTables, labels: np.ndarray) -> Iterator[_Column]:
    anchors = truth.people.true_values[ANCHOR]
    for name, table in release.tables.items():
        person, kind = release.view.person_of[name], release.view.labels_with_above(name)
        label, owner = labels[person], truth.person_of(name)
        order = np.lexsort((person, kind, label))
        begins = np.searchsorted(label[order], np.arange(int(labels.max(initial=-1)) + 2))
        starts = np.searchsorted(owner, np.arange(truth.people.count + 1))
        for column in table.columns:
            if column.name in table.dates:
                lo, hi = (ends[column.codes][order] for ends in (column.lo, column.hi))
                days = truth.rows[name].true_values[column.name] + anchors[owner]
                source = table.table.source
                place = order if source is None else source[order]
                by_kind = begins, place, kind[order], person[order]
                yield _Column(name, column.name, *by_kind, lo, hi, days, starts)


def _most_likely(fits: np.ndarray, kind: np.ndarray, person: np.ndarray) -> np.ndarray:
    """(d, 2) of every date and kind of row that fits it: rows, and those of whom has most of them.

    fits: (dates, rows) bool; rows by kind, then person.
    """
    if not fits.size:
        return np.zeros((0, 2), np.int64)
    is_new = (np.diff(kind, prepend=-1) != 0) | (np.diff(person, prepend=-1) != 0)
    begins = np.flatnonzero(is_new)
    by_person = np.add.reduceat(fits, begins, axis=1, dtype=np.int64)
    of_kind = np.flatnonzero(np.diff(kind[begins], prepend=-1) != 0)
    rows = np.add.reduceat(by_person, of_kind, axis=1)
    most = np.maximum.reduceat(by_person, of_kind, axis=1)
    return np.stack([rows[rows > 0], most[rows > 0]], axis=1)
