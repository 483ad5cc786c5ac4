"""The history of a ledger: every release by itself, and each against all that were before it.

Reads published files as anybody would, and the private part for who is who. Without a private part
it says what boxes alone tell an attacker.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.binding.release import bind_release
from shoal.connectors import files
from shoal.data.certificate import Certificate
from shoal.data.classes import Classes
from shoal.data.progress import Progress, no_progress
from shoal.data.release import Release
from shoal.data.schema import Missing, Role, Schema
from shoal.data.table import Table
from shoal.errors import InputError, LedgerError
from shoal.jobs.audit.audit import measure
from shoal.jobs.republish import terms
from shoal.jobs.republish.identities import Identities, known_people
from shoal.jobs.republish.value_counts import Values, joined, values_of
from shoal.policy.policy import Policy
from shoal.privacy.history import (
    CELLS,
    SIGNATURES,
    Finding,
    Issue,
    KnownPeople,
    Past,
    compare,
    compare_boxes,
    too_frequent,
    values_shown,
)
from shoal.privacy.promises import BoundPromises
from shoal.state.ledger import DATA, Ledger

MEANINGS = {
    "cells": "fewer people than k share both of their classes",
    "all cells": "fewer people than k share all of their classes",
    "departures": "fewer people than k left a class together",
    "specificity": "later cells are narrower than earlier ones",
    "unchanged": "records show other values than before and are no updates",
    "signatures": "all their classes have fewer than m sensitive values in common",
    "forward and cross": "two classes of a person have fewer than k records in common",
    "backward": "fewer than k records of a new person's class can be new",
    "frequencies": "their classes show a sensitive value in more than one row in m",
    "known people": "people of earlier releases are published again",
    "boxes": "classes of two releases meet and share fewer than k records",
}


@dataclass(frozen=True)
class ReleaseAudit:
    """What was found on one release: its own promises, and its part in the history.

    came_again: people in it who waited and came again, as its certificate states it; they have
    several records.
    """

    number: int
    certificate: Certificate
    findings: Sequence[Finding]
    came_again: int = 0

    @property
    def told(self) -> list[str]:
        """Every finding that breaks the history, in a line each."""
        return [words(finding) for finding in self.findings if finding.breaks]


@dataclass(frozen=True)
class LedgerAudit:
    """What was found on a whole ledger. damage: what the chain of hashes finds; nothing is measured
    then.
    """

    releases: Sequence[ReleaseAudit]
    damage: Sequence[str] = ()
    knows_people: bool = True

    @property
    def holds(self) -> bool:
        return not self.damage and all(
            r.certificate.holds and not any(f.breaks for f in r.findings) for r in self.releases
        )

    def report(self) -> dict[str, Any]:
        """As JSON states it."""
        return {
            "schema": "shoal.history/1",
            "holds": self.holds,
            "damage": list(self.damage),
            "counted": "subjects" if self.knows_people else "rows",
            "releases": [
                {
                    "release": r.number,
                    "covers": r.certificate.get("covers"),
                    "records": r.certificate["records"]["out"],
                    "came_again": r.came_again,
                    "classes": r.certificate["classes"],
                    "promises": r.certificate["promises"],
                    "utility": r.certificate["utility"],
                    "findings": [finding.report() for finding in r.findings],
                }
                for r in self.releases
            ],
        }


def audit_ledger(
    path: str | Path, *, k: int | None = None, progress: Progress = no_progress
) -> LedgerAudit:
    """Every check on every release of a ledger, from the published files; raises LedgerError where
    there is none.
    """
    ledger = Ledger.at(path)
    progress("verifying the chain")
    damage = ledger.verify()
    if damage:
        return LedgerAudit([], damage)
    policy = terms.of(ledger)
    policy = policy if k is None else policy.with_k(k)
    tables = [n for n in ledger.releases() if ledger.certificate(n).get("covers") == "table"]
    chain = Chain(ledger, policy, last_table=max(tables, default=0))
    audits = []
    for number in ledger.releases():
        progress(f"release {number}: auditing")
        audits.append(chain.audit(number))
    return LedgerAudit(audits, knows_people=chain.knows_people)


def write_found(found: LedgerAudit, output: str) -> None:
    """Everything that was found, as JSON, whole or not at all."""
    with files.atomic_write(output) as draft:
        draft.write_text(json.dumps(found.report(), indent=2) + "\n")


@dataclass
class Chain:
    """The releases of a ledger, taken in one after the other.

    last_table: the last release of the whole table; behind it, rows need not be remembered. values:
    of the table so far, where a promise compares with it.
    """

    ledger: Ledger
    policy: Policy
    past: Past = field(default_factory=Past)
    known: KnownPeople = field(default_factory=KnownPeople)
    taken: int = 0
    last_table: int = 0
    values: Values = field(default_factory=dict)

    @property
    def knows_people(self) -> bool:
        return bool(self.ledger.steps())

    def audit(self, number: int) -> ReleaseAudit:
        """The next release by itself and against those before it."""
        stated = self.ledger.certificate(number)
        frame, identities = self._read(number)
        covers, guards = stated.get("covers", "increment"), stated.get("guards", CELLS)
        earlier = self.values if covers == "increment" else {}
        reading = read_as_published(frame, identities, replace(self.policy, earlier=earlier))
        own = values_of(frame, identities, self.policy)
        self.values = joined(earlier, own) if earlier else own
        least = int((stated.get("method") or {}).get("parameters", {}).get("m", 1))
        findings = self._meet(number, covers, reading.identities)
        if number <= self.last_table:
            findings += self._take(number, covers, guards, least, reading)
        self.taken = number
        came_again = int(stated.get("ledger", {}).get("came_again", 0))
        return ReleaseAudit(
            number, reading.certificate.extended(covers=covers), findings, came_again
        )

    def next(
        self, number: int, method: Any, frame: pl.DataFrame, identities: Identities
    ) -> list[Finding]:
        """What a release that is not let out yet gives away beside all earlier ones.

        An increment leaves the rest as it is: of the past, only the people have to be known for it.
        """
        if method.covers == "increment":
            if identities.subjects is None:
                return []
            people = np.unique(identities.subjects[identities.is_real])
            return [_known(number, int(KnownPeople(known_people(self.ledger)).holds(people).sum()))]
        self.last_table = number
        while self.taken < number - 1:
            self.audit(self.taken + 1)
        # read as the earlier ones are, without what only the originals tell
        reading = read_as_published(frame, identities, self.policy)
        return self._take(number, method.covers, method.guards, getattr(method, "m", 1), reading)

    def _read(self, number: int) -> tuple[pl.DataFrame, Identities | None]:
        frame = files.read_as(
            self.ledger.folder(number) / DATA, ".csv", self.policy.audited_columns
        ).frame
        if not self.knows_people:
            return frame, None
        identities = Identities.read(self.ledger.step_of(number))
        if len(identities.records) != frame.height:
            raise LedgerError(
                f"release {number:04d}: the private part remembers another number of rows;"
                " restore it"
            )
        return frame, identities

    def _meet(self, number: int, covers: str, identities: Identities | None) -> list[Finding]:
        """Whether an increment publishes people a second time."""
        if identities is None or identities.subjects is None:
            return []
        again = self.known.meet(identities.subjects[identities.is_real])
        return [_known(number, again)] if covers == "increment" else []

    def _take(
        self, number: int, covers: str, guards: str, least: int, reading: Reading
    ) -> list[Finding]:
        """least: how many sensitive values a class must show where signatures guard the release."""
        findings = [_frequencies(number, reading, least)] if guards == SIGNATURES else []
        issue = _issue(number, reading, len(self.past.label))
        k = self.policy.required_k or 2
        if covers == "increment" or number == 1:
            self.past.append(issue)
            return findings
        if reading.identities is None:
            return [*findings, *compare_boxes(self.past, issue, k)]
        template = _only(reading.release.classes, reading.is_real)
        hold = BoundPromises(self.policy.build_promises(), template).holds
        return [*findings, *compare(self.past, issue, hold, k, guards, least)]


@dataclass(frozen=True)
class Reading:
    """A published release as an audit reads it: from its cells, and from the private part who is
    who.
    """

    frame: pl.DataFrame
    identities: Identities | None
    certificate: Certificate
    release: Release
    schema: Schema

    @property
    def is_real(self) -> np.ndarray:
        """(n,) bool; all rows but invented ones, which only the owner can tell."""
        return (
            np.ones(self.frame.height, dtype=bool)
            if self.identities is None
            else self.identities.is_real
        )


def read_as_published(
    frame: pl.DataFrame, identities: Identities | None, policy: Policy
) -> Reading:
    """A published release, measured; people are counted where the private part tells who they are."""
    subject = policy.subject
    if subject is not None and identities is not None and identities.subjects is not None:
        frame = frame.with_columns(pl.Series(subject, identities.subjects))
    table = Table(frame)
    schema, findings = bind_release(table, policy)
    if schema is None:
        raise InputError.from_findings(findings)
    certificate, release = measure(table, schema, policy, None)
    return Reading(frame, identities, certificate, release, schema)


def _issue(number: int, reading: Reading, following: int) -> Issue:
    """following: the number of the first record of a release whose people are not known."""
    release, schema, identities, real = (
        reading.release,
        reading.schema,
        reading.identities,
        reading.is_real,
    )
    labels, count = release.classes.labels, release.classes.count
    if schema.missing is not Missing.SUPPRESS and (labels < 0).any():
        # nobody is suppressed under such a policy: who shows the mark everywhere is in a class like
        # everybody else
        labels, count = np.where(labels < 0, count, labels), count + 1
    lo, hi = (np.full((count, len(release.columns)), np.nan) for _ in range(2))
    kept = labels >= 0
    for j, column in enumerate(release.columns):
        # all rows of a class show the same cell
        lo[labels[kept], j], hi[labels[kept], j] = (
            column.lo[column.codes[kept]],
            column.hi[column.codes[kept]],
        )
    rest = _hashes(reading.frame, [a.name for a in schema.published if a.role is not Role.QUASI])
    values = _hashes(reading.frame, [a.name for a in schema.sensitive])
    shown = values_shown(labels, values, count)
    if identities is None:
        records, subjects, changed = following + np.arange(len(labels)), None, None
    else:
        records, changed = identities.records, identities.is_changed[real]
        subjects = None if identities.subjects is None else identities.subjects[real]
    return Issue(number, records[real], labels[real], lo, hi, rest[real], shown, subjects, changed)


def _known(number: int, again: int) -> Finding:
    """How many people an increment publishes a second time."""
    return Finding("known people", (1, number), again, again > 0)


def _frequencies(number: int, reading: Reading, least: int) -> Finding:
    """People in whose class some sensitive value has more than one row in `least`."""
    labels = reading.release.classes.labels
    values = _hashes(reading.frame, [a.name for a in reading.schema.sensitive])
    bad = too_frequent(labels, values, reading.release.classes.count, least)
    people = int((bad[labels] & (labels >= 0) & reading.is_real).sum())
    return Finding("frequencies", (number, number), people, people > 0, {"classes": int(bad.sum())})


def _hashes(frame: pl.DataFrame, names: list[str]) -> np.ndarray:
    """(n,) uint64, equal where a row shows the same text in all of these columns."""
    if not names:
        return np.zeros(frame.height, dtype=np.uint64)
    return frame.select(pl.col(names).cast(pl.String).fill_null("")).hash_rows().to_numpy()


def _only(classes: Classes, real: np.ndarray) -> Classes:
    return (
        classes
        if real.all()
        else classes.only(real, None if classes.subjects is None else classes.subjects[real])
    )


def stated(findings: Sequence[Finding], allowed: bool) -> dict[str, Any]:
    """The history as a certificate states it. allowed: whether it breaks and was let out all the
    same.
    """
    return {
        "holds": not any(f.breaks for f in findings),
        "allowed": allowed,
        "findings": [f.report() for f in findings],
    }


def verdict(broken: Sequence[Finding], method: Any) -> tuple[str, list[str]]:
    """Why a release is withheld, and the nearest way that is safe."""
    first, *more = (words(finding) for finding in broken)
    return f"{first}; the release is withheld, the ledger is as it was. {method.remedy}", more


def words(finding: Finding) -> str:
    """A finding in one line."""
    first, last = finding.releases
    what = MEANINGS.get(finding.check, finding.check)
    people = "1 person" if finding.people == 1 else f"{finding.people} people"
    return f"history, releases {first:04d} and {last:04d}, {finding.check}: {people}; {what}"
