"""The history of a ledger: every release by itself, and each against all earlier ones.

Reads published files as anybody would, and the private part for who is who. Without a private part
it says what boxes alone tell an attacker.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.description import column_roles
from shoal.auditor.ledger import release_view
from shoal.auditor.ledger.comparison import compare, compare_boxes, too_frequent, values_shown
from shoal.auditor.ledger.release_view import table_damage
from shoal.auditor.ledger.terms import Values, compared, joined, policy_of, values_of
from shoal.auditor.reading import class_spans
from shoal.auditor.sharing import ABSENT, Links, fitting
from shoal.connectors import files
from shoal.connectors.ledger import Ledger
from shoal.connectors.ledger.private import Identities, KnownPeople
from shoal.data.certificate import Certificate
from shoal.data.notebook import Figures, figures_of
from shoal.data.numbers import alike
from shoal.data.person_names import as_compared, same_value
from shoal.data.progress import Progress, no_progress
from shoal.data.schema import Missing, Role, Schema
from shoal.policy.policy import Policy
from shoal.privacy.promises import BoundPromises

# People who are in several releases of a ledger: who shares whose whole history.
#
# An atom is everybody of one history: the same classes in the same releases, the same absences.
# Atoms of k people keep every trajectory one of k. Company is weaker: who was in every class that
# a person was in, and perhaps in others as well.


@dataclass
class PeopleHistory:
    """Who was in which class of which release.

    tokens: (m,) uint64, rising. classes: (m, releases) int32, `ABSENT` where a person was not in
    the release.
    """

    tokens: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    classes: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int32))

    def take(self, tokens: np.ndarray, labels: np.ndarray) -> int:
        """The next release: whose rows are in which class; how many people have several rows.

        tokens, labels: (n,). Of somebody with several rows the first counts.
        """
        people, first = np.unique(tokens, return_index=True)
        known = np.union1d(self.tokens, people)
        classes = np.full((len(known), self.classes.shape[1] + 1), ABSENT, dtype=np.int32)
        classes[np.searchsorted(known, self.tokens), :-1] = self.classes
        classes[np.searchsorted(known, people), -1] = labels[first]
        self.tokens, self.classes = known, classes
        return int((np.bincount(np.searchsorted(people, tokens)) > 1).sum())

    def at_least_once(self) -> float:
        """The chance to name somebody's row in one release at least, one guess for each of those
        that hold the person: the greatest of all people.
        """
        never = np.ones(len(self.tokens))
        for labels in self.classes.T:
            held = labels != ABSENT
            never[held] *= 1 - 1 / np.bincount(labels[held])[labels[held]]
        return 1 - float(never.min(initial=1))

    def findings(self, release: int, k: int, guards: str) -> list[release_view.HistoryFinding]:
        """What the releases so far give away together. guards: what the last one rests on."""
        atom = alike(self.classes.T, len(self.tokens))
        # among how many people each is, and whether less than k breaks it
        checks = {"atoms": (np.bincount(atom)[atom], guards == release_view.CELLS)}
        if guards == release_view.COMPANY:
            person, place = np.nonzero(self.classes != ABSENT)
            many, releases = int(self.classes.max(initial=0)) + 1, self.classes.shape[1]
            label = place * many + self.classes[person, place]
            places = Links.of(person, label, len(self.tokens), many * releases)
            checks["company"] = fitting(places, places), True
        found = []
        for check, (sizes, breaks) in checks.items():
            few = int((sizes < k).sum())
            least = {"least": int(sizes.min(initial=len(self.tokens)))}
            found.append(
                release_view.HistoryFinding(check, (1, release), few, breaks and few > 0, least)
            )
        return found


@dataclass(frozen=True)
class ReleaseAudit:
    """What was found on one release: its own promises, and its part in the history.

    returning_people: people in it whose earlier records waited, as its certificate states; they
    have several records.
    """

    number: int
    certificate: Certificate
    findings: Sequence[release_view.HistoryFinding]
    returning_people: int = 0

    @property
    def violations(self) -> list[release_view.HistoryFinding]:
        """The findings that break the history."""
        return [finding for finding in self.findings if finding.is_violation]

    def report(self) -> Mapping[str, Any]:
        """As JSON states it."""
        return {
            "release": self.number,
            "covers": self.certificate.get("covers"),
            "records": self.certificate["records"]["out"],
            "returning_people": self.returning_people,
            "classes": self.certificate["classes"],
            "promises": self.certificate["promises"],
            "utility": self.certificate["utility"],
            "findings": [finding.report() for finding in self.findings],
        }


@dataclass(frozen=True, repr=False)
class LedgerAudit(Figures):
    """What was found on a whole ledger.

    damage: what the chain of hashes shows; where there is any, nothing is measured. attacks: what
    they found on the newest release; empty where none was asked for. beside: what it gives away
    with other releases, where these were named.
    """

    releases: Sequence[ReleaseAudit]
    damage: Sequence[str] = ()
    knows_people: bool = True
    attacks: Mapping[str, Any] = field(default_factory=dict)
    beside: Mapping[str, Any] = field(default_factory=dict)

    @property
    def attacked(self) -> Certificate | None:
        """The certificate of the newest release with what attacks found; None without any."""
        if not self.attacks:
            return None
        return self.releases[-1].certificate.extended(attacks=self.attacks)

    @property
    def holds(self) -> bool:
        alone = all(
            release.certificate.holds and not release.violations for release in self.releases
        )
        return not self.damage and alone and bool(self.beside.get("holds", True))

    def _figures(self) -> dict[str, object]:
        found = {"releases": len(self.releases), "damage": len(self.damage)}
        return {"holds": self.holds, **found, **figures_of(self)}

    def report(self) -> Mapping[str, Any]:
        """As JSON states it."""
        return {
            "schema": "shoal.history/1",
            "holds": self.holds,
            "damage": list(self.damage),
            "people": self.releases[0].certificate["people"] if self.releases else None,
            "counted": "subjects" if self.knows_people else "rows",
            "releases": [release.report() for release in self.releases],
            **({"attacks": dict(self.attacks)} if self.attacks else {}),
            **({"beside": dict(self.beside)} if self.beside else {}),
        }


def audit_releases(
    path: str | Path,
    *,
    k: int | None = None,
    table: str | None = None,
    progress: Progress = no_progress,
) -> LedgerAudit:
    """Every check on every release of a ledger, from the published files.

    table: the address of the table in a database that the ledger writes; damage is also whatever
    is otherwise there than in the ledger, so that all that is measured holds of the table, too.
    Raises InputError where there is no ledger.
    """
    ledger = Ledger.at(path)
    progress("verifying the chain")
    damage = ledger.verify()
    if table is not None and not damage:
        progress("comparing the table")
        damage = [f"table: {finding}" for finding in table_damage(ledger, table)]
    if damage:
        return LedgerAudit([], damage)
    policy = policy_of(ledger, k)
    tables = [n for n in ledger.releases() if ledger.certificate(n).get("covers") == "table"]
    history = LedgerHistory(ledger, policy, last_table=max(tables, default=0))
    audits = []
    for number in ledger.releases():
        progress(f"release {number}: auditing")
        audits.append(history.audit(number))
    return LedgerAudit(audits, (), bool(ledger.steps()))


def write_audit(audit: LedgerAudit, output: str) -> None:
    """Everything that was found, as JSON."""
    with files.atomic_write(output) as draft:
        draft.write_text(json.dumps(audit.report(), indent=2) + "\n")


@dataclass
class LedgerHistory:
    """The releases of a ledger, taken in one after the other.

    last_table: the last release of the whole table; later rows need not be
    remembered. returning: of people who come again. values: of the table so far, where a promise
    compares with it.
    """

    ledger: Ledger
    policy: Policy
    past: release_view.RecordHistory = field(default_factory=release_view.RecordHistory)
    known: KnownPeople = field(default_factory=KnownPeople)
    returning: PeopleHistory = field(default_factory=PeopleHistory)
    last_table: int = 0
    values: Values = field(default_factory=dict)

    def audit(self, number: int) -> ReleaseAudit:
        """The next release by itself and against those before it."""
        stated = self.ledger.certificate(number)
        frame, identities = release_view.rows_of_release(self.ledger, number, self.policy.model)
        covers = stated.get("covers", "increment")
        earlier = self.values if covers == "increment" else {}
        names = compared(self.policy.build_promises())
        own = values_of(frame, identities, self.policy.model, names)
        self.values = joined(earlier, own) if earlier else own
        policy = replace(self.policy, earlier=earlier)
        reading, measured = release_view.measured_as_published(frame, identities, policy)
        findings = self._take(number, stated, reading)
        certificate, losses = measured.certificate, measured.figures.losses
        if "panel" in stated:
            certificate = self.with_panel(certificate, stated["panel"])
        roles = column_roles(frame.columns, reading.problem)
        certificate = certificate.extended(
            covers=covers,
            columns=[column | {"loss": losses.get(column["name"])} for column in roles],
            counterfeits=stated.get("counterfeits"),
        )
        return ReleaseAudit(number, certificate, findings, returning_people_of(stated))

    def next(
        self, number: int, stated: Mapping[str, Any], frame: pl.DataFrame, identities: Identities
    ) -> list[release_view.HistoryFinding]:
        """What a release that is not published yet gives away beside all earlier ones.

        An increment leaves the rest as it is: of the past, only the people have to be known.
        stated: what its certificate will say of how it was made.
        """
        if "panel" not in stated and stated["covers"] == "increment":
            self.known = KnownPeople(self.ledger)
            return self._published_twice(number, stated["covers"], identities)
        self.last_table = 0 if "panel" in stated else number
        for earlier in range(1, number):
            reading = release_view.ReleaseReading.at(self.ledger, earlier, self.policy)
            if "panel" in stated:
                self._remember(reading)
            else:
                self._take(earlier, self.ledger.certificate(earlier), reading)
        # read as the earlier ones are, without what only the originals tell
        return self._take(
            number, stated, release_view.ReleaseReading.of(frame, identities, self.policy)
        )

    def _take_again(
        self, number: int, guards: str, reading: release_view.ReleaseReading
    ) -> list[release_view.HistoryFinding]:
        """What a release of people who may come again gives away beside all earlier ones."""
        several = self._remember(reading)
        if several is None:
            return []  # nobody knows who is who
        findings = self.returning.findings(number, self.policy.required_k or 2, guards)
        if several:
            findings.append(release_view.HistoryFinding("records", (number, number), several, True))
        return findings

    def _remember(self, reading: release_view.ReleaseReading) -> int | None:
        """Who is in which class of a release; how many have several rows, None if not known."""
        subjects = reading.identities.subjects
        if subjects is None:
            return None
        return self.returning.take(subjects, release_view.classes_shown(reading.release)[0])

    def with_panel(self, certificate: Certificate, panel: Mapping[str, Any]) -> Certificate:
        """The certificate with what is stated of people who come again, and their risk."""
        risk = {**certificate["risk"], "at_least_once": self.returning.at_least_once()}
        return certificate.extended(panel=panel, risk=risk)

    def _published_twice(
        self, number: int, covers: str, identities: Identities
    ) -> list[release_view.HistoryFinding]:
        """Whether an increment publishes people a second time."""
        if identities.subjects is None:
            return []
        known = self.known.add_and_count_known(identities.subjects[identities.is_real])
        if covers != "increment":
            return []
        return [release_view.HistoryFinding("known people", (1, number), known, known > 0)]

    def _take(
        self, number: int, stated: Mapping[str, Any], reading: release_view.ReleaseReading
    ) -> list[release_view.HistoryFinding]:
        """What a release gives away beside those taken in so far, which it then joins.

        stated: its certificate.
        """
        covers, guards = stated.get("covers", "increment"), stated.get("guards", release_view.CELLS)
        if "panel" in stated:
            findings = self._take_again(number, guards, reading)
        else:
            findings = self._published_twice(number, covers, reading.identities)
        if number > self.last_table:
            return findings
        # how many sensitive values a class must show where signatures guard the release
        least = int((stated.get("method") or {}).get("parameters", {}).get("m", 1))
        least = min(least, reading.frame.height + 1)  # which none can
        if guards == release_view.SIGNATURES:
            findings.append(_frequencies(number, reading, least))
        release = _release_view(number, reading, len(self.past.label))
        k = self.policy.required_k or 2
        if covers == "increment" or number == 1:
            self.past.append(release)
            return findings
        if not reading.identities.are_known:
            return [*findings, *compare_boxes(self.past, release, k, guards)]
        classes, real = reading.release.classes, reading.identities.is_real
        if not real.all():
            subjects = None if classes.subjects is None else classes.subjects[real]
            classes = classes.only(real, subjects)
        holds = BoundPromises(self.policy.build_promises(), classes).holds
        return [*findings, *compare(self.past, release, holds, k, guards, least)]


def _release_view(
    number: int, reading: release_view.ReleaseReading, following: int
) -> release_view.ReleaseView:
    """following: the number of the first record of a release whose people are not known."""
    release, schema, real = reading.release, reading.problem.schema, reading.identities.is_real
    labels, count = release.classes.labels, release.classes.count
    if schema.missing is not Missing.SUPPRESS:
        labels, count = release_view.classes_shown(release)
    lo, hi = class_spans(release.columns, labels, count)
    rest = _hashes(reading.frame, [a.name for a in schema.published if a.role is not Role.QUASI])
    values, is_value = _sensitive_values(reading.frame, schema)
    identities = reading.identities
    if not identities.are_known:
        identities = Identities(following + np.arange(len(labels)))
    return release_view.ReleaseView(
        number,
        identities.records[real],
        labels[real],
        lo,
        hi,
        rest[real],
        values_shown(labels, values, count),
        identities.is_changed[real],
        identities.people[real],
        frozenset(values[~is_value].tolist()),
    )


def returning_people_of(certificate: Mapping[str, Any]) -> int:
    """People whose earlier records waited; `came_again` was the key in version 0.1."""
    stated = certificate.get("ledger", {})
    return int(stated.get("returning_people", stated.get("came_again", 0)))


def _frequencies(
    number: int, reading: release_view.ReleaseReading, least: int
) -> release_view.HistoryFinding:
    """People in whose class some sensitive value has more than one row in `least`."""
    labels = reading.release.classes.labels
    values, is_value = _sensitive_values(reading.frame, reading.problem.schema)
    values = np.where(is_value, values, np.uint64(0))  # all texts for no value are one
    bad = too_frequent(labels, values, reading.release.classes.count, least)
    people = int((bad[labels] & (labels >= 0) & reading.identities.is_real).sum())
    counts = {"classes": int(bad.sum())}
    return release_view.HistoryFinding("frequencies", (number, number), people, people > 0, counts)


def _sensitive_values(frame: pl.DataFrame, schema: Schema) -> tuple[np.ndarray, np.ndarray]:
    """(n,) uint64 hashes of the sensitive values of each row; (n,) bool, whether it has any."""
    names = [a.name for a in schema.sensitive]
    if not names:
        return _hashes(frame, names), np.ones(frame.height, dtype=bool)
    values = frame.select(as_compared(frame[name]) for name in names)
    none = {same_value(text) for text in (*schema.missing_values, schema.render.suppressed)}
    is_none = pl.all_horizontal(pl.col(names).is_in([*none]))
    return _hashes(values, names), ~values.select(is_none).to_series().to_numpy()


def _hashes(frame: pl.DataFrame, names: list[str]) -> np.ndarray:
    """(n,) uint64, equal where a row shows the same text in all of these columns."""
    if not names:
        return np.zeros(frame.height, dtype=np.uint64)
    return frame.select(pl.col(names).cast(pl.String).fill_null("")).hash_rows().to_numpy()
