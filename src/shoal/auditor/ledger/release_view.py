"""Releases of a ledger as their readers see them: one by one, with what they say of every record,
and all together as the published table, with their chain of hashes.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.measure import Measured, measure
from shoal.auditor.reading import read_release
from shoal.connectors import files
from shoal.connectors.database import release_tables
from shoal.connectors.database.release_tables import TableState, state_of
from shoal.connectors.ledger import CERTIFICATE, COUNTERFEITS, DATA, Ledger, TableNote, sha256_of
from shoal.connectors.ledger.private import Identities
from shoal.connectors.location import RELEASES, Location, parse_address
from shoal.data.classes import pairs_of
from shoal.data.numbers import alike
from shoal.data.release import Release
from shoal.data.table import Table
from shoal.errors import InputError, LedgerError
from shoal.policy.binding.table import bound_release
from shoal.policy.model import PolicyModel
from shoal.policy.policy import Policy
from shoal.policy.problem import Problem

# How often each class shows each value.


Rows = tuple[np.ndarray, np.ndarray]
"""Class and hashed value of every row of a release that is in a class."""


def values_by_class(classes: np.ndarray, values: np.ndarray) -> dict[int, dict[int, int]]:
    """By class, how often each value occurs."""
    counts: dict[int, dict[int, int]] = {}
    columns = (column.tolist() for column in pairs_of(classes, values))
    for c, value, count in zip(*columns, strict=True):
        counts.setdefault(c, {})[value] = count
    return counts


def lists_by_key(keys: np.ndarray, items: np.ndarray) -> dict[int, list[int]]:
    """The items of each key, in their order."""
    lists: dict[int, list[int]] = {}
    for key, item in zip(keys.tolist(), items.tolist(), strict=True):
        lists.setdefault(key, []).append(item)
    return lists


CELLS, SIGNATURES, COMPANY = "cells", "signatures", "company"
"""What guards a release against its history: as `Republisher.guards`. Company: at least k people
were in every class that a person was in, but may have been in others as well.
"""


_MEANINGS = {
    "cells": "fewer people than k share both of their classes",
    "all cells": "fewer people than k share all of their classes",
    "departures": "fewer people than k left a class together",
    "specificity": "later cells are narrower than earlier ones",
    "unchanged": "records show other values than before and are not updates",
    "signatures": "all their classes have fewer than m sensitive values in common",
    "forward and cross": "two classes of a person have fewer than k records in common",
    "backward": "fewer than k records of a new person's class can be new",
    "frequencies": "their classes show a sensitive value in more than one row in m",
    "atoms": "fewer people than k share all their classes and absences",
    "company": "fewer people than k were in every class that they were in",
    "records": "people have several rows in one release",
    "known people": "people of earlier releases are published again",
    "boxes": "classes of two releases meet and share fewer than k records",
}


@dataclass(frozen=True)
class HistoryFinding:
    """One check of a release against earlier ones.

    releases: which ones it is about, first and last. people: how many it concerns, None where it
    was not counted. is_violation: whether the release must be withheld. more: further counts.
    """

    check: str
    releases: tuple[int, int]
    people: int | None
    is_violation: bool
    more: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """The finding in one line."""
        first, last = self.releases
        people = "1 person" if self.people == 1 else f"{self.people} people"
        meaning = _MEANINGS.get(self.check, self.check)
        return f"history, releases {first:04d} and {last:04d}, {self.check}: {people}; {meaning}"

    def report(self) -> Mapping[str, Any]:
        """As a certificate states it."""
        return {
            "check": self.check,
            "releases": list(self.releases),
            "people": self.people,
            "breaks": self.is_violation,
            **self.more,
        }


@dataclass(frozen=True)
class ReleaseView:
    """One release as its readers and the owner see it; rows that the owner invented are left out.

    records: (n,) int64 running number of each record.
    labels: (n,) int32 published class, -1 where suppressed.
    lo, hi: (classes, d) float64, what each class shows, in numbers, ranks or leaves.
    rest: (n,) uint64, everything else that a row shows.
    shown: the sensitive values (hashed) that each class shows.
    changed: (n,) bool, records that are updates of published ones.
    people: (n,) uint64, as in `Identities`.
    no_value: of the values in `shown`, those that stand for none, which count as one.
    """

    release: int
    records: np.ndarray
    labels: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    rest: np.ndarray
    shown: Sequence[frozenset[int]]
    changed: np.ndarray
    people: np.ndarray
    no_value: frozenset[int] = frozenset()

    @property
    def classes(self) -> int:
        return len(self.lo)

    @property
    def kept(self) -> np.ndarray:
        """The rows that are in a class."""
        return np.flatnonzero(self.labels >= 0)

    def spread(self, rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """(n,) int64: these numbers at these rows, -1 at all others."""
        spread = np.full(len(self.labels), -1, dtype=np.int64)
        spread[rows] = numbers
        return spread


_no_numbers = partial(np.zeros, 0, dtype=np.int64)
_no_hashes = partial(np.zeros, 0, dtype=np.uint64)
_no_spans = partial(np.zeros, (0, 0))


@dataclass
class RecordHistory:
    """All that the releases so far say of every record, by its running number.

    label: class in the current table, -1 for records that left or are suppressed. cell: number of
    the cell. rest, people: as in `ReleaseView`. lo, hi: of the classes of the current table.
    signature: index in `sets` of the sensitive values that all classes of the record had in common.
    """

    label: np.ndarray = field(default_factory=_no_numbers)
    cell: np.ndarray = field(default_factory=_no_numbers)
    rest: np.ndarray = field(default_factory=_no_hashes)
    people: np.ndarray = field(default_factory=_no_hashes)
    lo: np.ndarray = field(default_factory=_no_spans)
    hi: np.ndarray = field(default_factory=_no_spans)
    signature: np.ndarray = field(default_factory=_no_numbers)
    sets: list[frozenset[int]] = field(default_factory=list)

    @property
    def current(self) -> np.ndarray:
        """The records that are in a class of the current table."""
        return np.flatnonzero(self.label >= 0)

    def make_room_for(self, release: ReleaseView) -> None:
        """Count the release's new records as absent so far."""
        more = max(0, int(release.records.max(initial=-1)) + 1 - len(self.label))
        self.label = np.concatenate([self.label, np.full(more, -1, dtype=np.int64)])
        self.cell = np.concatenate([self.cell, np.full(more, -1, dtype=np.int64)])
        self.rest = np.concatenate([self.rest, np.zeros(more, dtype=np.uint64)])
        self.people = np.concatenate([self.people, np.zeros(more, dtype=np.uint64)])
        self.signature = np.concatenate([self.signature, np.full(more, -1, dtype=np.int64)])

    def append(self, release: ReleaseView) -> None:
        """Take in a release that leaves all earlier rows as they are."""
        self._take(release, len(self.lo), release.labels)
        self.narrow(release, release.kept)
        self.lo = np.concatenate([self.lo.reshape(-1, release.lo.shape[1]), release.lo])
        self.hi = np.concatenate([self.hi.reshape(-1, release.hi.shape[1]), release.hi])

    def replace(self, release: ReleaseView, cells: np.ndarray) -> None:
        """Take in a release of the whole table. cells: (n,) the cell of each row, -1 for none."""
        self.label[:] = -1
        self._take(release, 0, cells)
        self.lo = release.lo
        self.hi = release.hi

    def narrow(self, release: ReleaseView, rows: np.ndarray) -> np.ndarray:
        """Take in the sensitive values that the classes of these rows show.

        Returns how many values all classes of each row so far have in common.
        """
        before, labels = self.signature[release.records[rows]], release.labels[rows]
        which = alike([before, labels], len(rows))
        one_each = np.unique(which, return_index=True)[1]
        first = len(self.sets)
        for known, label in zip(before[one_each].tolist(), labels[one_each].tolist(), strict=True):
            shown = release.shown[label]
            self.sets.append(shown if known < 0 else self.sets[known] & shown)
        self.signature[release.records[rows]] = first + which
        none = release.no_value  # the texts for no value count as one
        sizes = [len(common - none) + bool(common & none) for common in self.sets[first:]]
        return np.array(sizes, dtype=np.int64)[which]

    def _take(self, release: ReleaseView, classes: int, cells: np.ndarray) -> None:
        """What every row shows. classes: how many are numbered before the release's own."""
        self.make_room_for(release)
        is_kept = release.labels >= 0
        self.label[release.records] = np.where(is_kept, release.labels + classes, -1)
        begun = int(self.cell.max(initial=-1)) + 1
        self.cell[release.records] = np.where(is_kept, cells + begun, -1)
        self.rest[release.records] = release.rest
        self.people[release.records] = release.people


# A published release of a ledger as an audit reads it, and who stands behind its rows.


def rows_of_release(
    ledger: Ledger, number: int, model: PolicyModel
) -> tuple[pl.DataFrame, Identities]:
    """The rows of a release, and whose they are, which nobody knows without a private part."""
    path = ledger.folder(number) / DATA
    frame = files.read_as(path, categorical=model.audited_columns).frame
    if not ledger.steps():
        return frame, Identities.unknown(frame.height)
    identities = Identities.read(ledger.step_of(number))
    if len(identities.records) != frame.height:
        raise LedgerError(
            f"release {number:04d}: the private part has a different number of rows; restore it"
        )
    return frame, identities


@dataclass(frozen=True)
class ReleaseReading:
    """A published release, or a whole table, as its readers see it; the private part tells who is
    who, so that people are counted where it is there.
    """

    frame: pl.DataFrame
    identities: Identities
    problem: Problem
    release: Release

    @classmethod
    def of(cls, frame: pl.DataFrame, identities: Identities, policy: Policy) -> "ReleaseReading":
        """These rows; raises InputError where they do not fit the policy."""
        table, problem = _bound(frame, identities, policy)
        return cls(table.frame, identities, problem, read_release(table, problem, None))

    @classmethod
    def at(cls, ledger: Ledger, number: int, policy: Policy) -> "ReleaseReading":
        """The release of this number."""
        return cls.of(*rows_of_release(ledger, number, policy.model), policy)


def measured_as_published(
    frame: pl.DataFrame, identities: Identities, policy: Policy
) -> tuple[ReleaseReading, Measured]:
    """A published release, and its measures as its readers find them."""
    table, problem = _bound(frame, identities, policy)
    measured = measure(table, problem, None)
    return ReleaseReading(table.frame, identities, problem, measured.release), measured


def _bound(frame: pl.DataFrame, identities: Identities, policy: Policy) -> tuple[Table, Problem]:
    """A release with its people, and what its policy asks of it."""
    subject = policy.subject
    if subject is not None and identities.subjects is not None:
        frame = frame.with_columns(pl.Series(subject, identities.subjects))
    table = Table(frame)
    return table, bound_release(table, policy)


def classes_shown(release: Release) -> tuple[np.ndarray, int]:
    """The class of each row, and how many there are, where nobody is suppressed.

    People who show the mark everywhere are in a class like everybody else.
    """
    labels, count = release.classes.labels, release.classes.count
    starred = labels < 0
    return (np.where(starred, count, labels), count + 1) if starred.any() else (labels, count)


# The whole published table as of a release, and the chain of hashes.


def verify_ledger(path: str | Path, *, noted: str | None = None) -> tuple[int, str]:
    """How many releases a ledger has, and the hash that the next one will follow.

    path: the ledger's folder, or the address of the table that takes its releases: then the rows
    and certificates there are checked, which need nothing else.

    Raises LedgerError with everything that is changed, missing, added or out of order. noted: such
    a hash from another day, which the chain must still hold; a chain that was cut, or made anew,
    does not.
    """
    if noted is not None and not re.fullmatch("[0-9a-f]{64}", noted):
        raise InputError(
            "--noted: is not the hash of a release; give the 64 digits that 'shoal republish'"
            " printed"
        )
    place = Location(path)
    if place.is_table:
        address = place.address
        state = state_of(address)
        if not (state.is_there and state.releases):
            raise InputError(f"{address.where}: holds no releases of a ledger; check its name")
        what, findings = address.where, list(state.damage)
        heads = [str(state.releases[0].previous), *(line.head for line in state.releases)]
    else:
        ledger = Ledger.at(path)
        what, findings = f"ledger '{path}'", ledger.verify()
        certificates = (ledger.folder(release) / CERTIFICATE for release in ledger.releases())
        heads = [] if findings else [sha256_of(one) for one in (ledger.genesis, *certificates)]
    if findings:
        raise LedgerError(f"{what}: {findings[0]}; restore it from a copy", findings[1:])
    if noted is not None and noted not in heads:
        raise LedgerError(
            f"{what}: the noted release is not in it; it is an older copy, or was made anew:"
            " restore it"
        )
    return len(heads) - 1, heads[-1]


def unmarked(path: str | Path) -> list[str]:
    """A last step without its mark, in a line; else nothing. No damage, but perhaps a trace."""
    return [] if Location(path).is_table else Ledger.at(path).unmarked()


def ledger_table(path: str | Path, *, release: int | None = None) -> pl.DataFrame:
    """The whole published table as of a release, or of the last one, as text.

    Raises LedgerError or InputError.
    """
    return _verified_table(path, release)[0]


def export_table(path: str | Path, output: str, release: int | None = None) -> tuple[int, int]:
    """Writes the whole published table as of a release; its records, and the release."""
    table, number = _verified_table(path, release)
    files.write_table(table, output)
    return table.height, number


def invented_rows(path: str | Path, release: int) -> tuple[int, list[Path]]:
    """How many rows of the table as of a release are invented, and which files say in what classes
    they are.
    """
    ledger = Ledger.at(path)
    counts = {
        ledger.folder(part) / COUNTERFEITS: stated["records"]
        for part in parts_of(ledger, release)
        if (stated := ledger.certificate(part).get("counterfeits"))
    }
    return sum(counts.values()), [listed for listed, count in counts.items() if count]


def _verified_table(path: str | Path, release: int | None) -> tuple[pl.DataFrame, int]:
    ledger = Ledger.at(path)
    verify_ledger(path)
    releases = ledger.releases()
    if not releases:
        raise InputError(f"ledger '{path}': has no release yet; nothing to export")
    number = releases[-1] if release is None else release
    if number not in releases:
        raise InputError(f"ledger '{path}': has no release {number}; it has 1 to {releases[-1]}")
    return table_as_of(ledger, number), number


def parts_of(ledger: Ledger, number: int) -> list[int]:
    """The releases that make up the table as of one: the last whole table, and later increments."""
    parts: list[int] = []
    for release in range(number, 0, -1):
        parts.insert(0, release)
        if ledger.certificate(release).get("covers") == "table":
            break
    return parts


def table_as_of(ledger: Ledger, number: int) -> pl.DataFrame:
    """All published rows as of a release, as text, in all columns that some of them have."""
    parts = [files.read_as(ledger.folder(part) / DATA).frame for part in parts_of(ledger, number)]
    return pl.concat(parts, how="diagonal")


# What a table in a database lacks, or holds otherwise than the ledger that writes it.


ANEW = (
    f"or have the ledger write it anew: drop the table, delete its lines in '{RELEASES}' and the"
    " private part's table.json, and append"
)
"""A way out, from the ledger's own files."""


def table_damage(ledger: Ledger, table: str) -> list[str]:
    """What a table lacks or holds otherwise than its ledger; empty where they are the same."""
    state = release_tables.state_of(parse_address(table))
    findings = disagreements(ledger, state, TableNote.read(ledger.private))
    if findings:
        return findings
    return [
        f"release {number:04d}: is not in the table yet; the next 'shoal republish' writes it there"
        for number in ledger.releases()[len(state.releases) :]
    ]


def disagreements(ledger: Ledger, state: TableState, note: TableNote | None) -> list[str]:
    """Why a table is not that of a ledger as it is, or an earlier state of it that a kill left."""
    there = ledger.releases()
    for number, line in zip(there, state.releases, strict=False):
        if line.head != sha256_of(ledger.folder(number) / CERTIFICATE):
            return [
                f"release {number:04d}: the table holds another one than the ledger; it is another"
                " ledger's, or one of the two was changed or continued twice; name the ledger's own"
                " table, or restore both"
            ]
    if len(state.releases) > len(there):
        return [
            f"release {len(there) + 1:04d}: is in the table and not in the ledger, which is an"
            " older copy; restore a newer one of the ledger and its private part"
        ]
    if note is not None and len(state.releases) < note.releases:
        return [
            f"release {note.releases:04d}: was in the table and is not there any more; the database"
            f" is an older copy, or another table was named; restore a newer copy, {ANEW}"
        ]
    if note is not None and note.head != sha256_of(ledger.predecessor(note.releases + 1)):
        return ["private part: notes other releases of the table; restore it from a copy"]
    if state.releases and not state.is_there:
        return [f"the table is missing; restore it from a copy, {ANEW}"]
    return [
        f"the table is not as it was left: {finding}; restore the database from a copy that was"
        f" made after the last release, {ANEW}"
        for finding in state.damage
    ]
