"""A planned release, written into a draft and audited there: by itself and with the history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from shoal.auditor.description import described
from shoal.auditor.ledger import terms
from shoal.auditor.ledger.history import LedgerHistory, stated
from shoal.auditor.ledger.reading import read_as_published
from shoal.auditor.ledger.release_view import HistoryFinding
from shoal.auditor.measure import measure
from shoal.auditor.reading import read_release
from shoal.connectors import files
from shoal.connectors.file_description import describe_file
from shoal.connectors.ledger import DATA, Ledger
from shoal.connectors.ledger.identities import Identities
from shoal.data.certificate import Certificate
from shoal.data.faults import faults
from shoal.data.progress import Progress
from shoal.data.table import Table
from shoal.ledgers.planned_release import PlannedRelease
from shoal.policy.policy import Policy

COUNTERFEITS = "counterfeits.csv"
VERB = "republish"


@dataclass(frozen=True)
class AuditedDraft:
    """A planned release that was written and audited.

    records: how many the ledger has published with it.
    """

    certificate: Certificate
    findings: Sequence[HistoryFinding]
    identities: Identities
    records: int

    @property
    def violations(self) -> list[HistoryFinding]:
        """The findings that break the history."""
        return [finding for finding in self.findings if finding.is_violation]


def write_and_audit(
    planned: PlannedRelease,
    policy: Policy,
    method: Any,
    ledger: Ledger,
    folder: Path,
    digest: str,
    progress: Progress,
) -> AuditedDraft:
    """Writes the release into a folder, reads it back and audits it and the history."""
    progress("writing the release")
    files.write(planned.frame, folder / DATA, ".csv")
    progress("reading the release back")
    written = files.read_as(folder / DATA, ".csv", policy.audited_columns)
    last = ledger.last_step()
    head = last.head if ledger.exists else terms.policy_files(policy).head
    identities, records = planned.identities.numbered(last.records)
    certificate = _measured(written.frame, planned, identities, policy, progress)
    progress("auditing the history")
    number = last.releases + 1
    history = LedgerHistory(ledger, policy)
    findings = history.next(number, method, written.frame, identities)
    certificate = certificate.extended(
        method={"name": policy.method_name, "parameters": policy.parameters_for("republish")},
        seed=policy.model.seed,
        seconds={"total": None, "method": planned.seconds},
        input={"sha256": digest},
        output=describe_file(folder / DATA, DATA, written.sha256, planned.schema.render),
        covers=method.covers,
        guards=terms.guards_of(policy, method),
        history=stated(findings, allowed=any(finding.is_violation for finding in findings)),
        ledger={
            "release": number,
            "previous": head,
            "files": _write_counterfeits(planned.counterfeits, folder),
            "returning_people": planned.returning,
        },
        **_count_counterfeits(planned.counterfeits),
    )
    if planned.panel is not None:
        risk = {**certificate["risk"], "at_least_once": history.at_least_once(certificate)}
        certificate = certificate.extended(panel=planned.panel.stated, risk=risk)
    return AuditedDraft(certificate, findings, identities, records)


def _measured(
    frame: pl.DataFrame,
    planned: PlannedRelease,
    identities: Identities,
    policy: Policy,
    progress: Progress,
) -> Certificate:
    """The certificate of the rows that were written, compared with the truth where it is known."""
    table, schema = Table(frame), planned.schema
    if planned.known is None:
        certificate, _, figures = measure(table, schema, policy, planned.truth, progress)
        certificate = certificate.extended(verb=VERB)
        return described(certificate, table, figures, schema, policy, planned.truth)
    reading = read_as_published(frame, identities, policy)
    certificate = reading.certificate.extended(verb=VERB)
    certificate = described(certificate, table, reading.figures, schema, policy, None)
    known = Table(frame[planned.known])
    release = read_release(known, schema, policy, planned.truth)
    known_faults = faults(known, release, schema, planned.truth)
    return certificate.extended(faults={**certificate.get("faults", {}), **known_faults})


def _write_counterfeits(by_class: pl.DataFrame | None, folder: Path) -> dict[str, str]:
    """Writes how many rows of each class are invented; the hash of each file by name."""
    if by_class is None:
        return {}
    by_class.write_csv(folder / COUNTERFEITS)
    return {COUNTERFEITS: files.file_sha256(folder / COUNTERFEITS)}


def _count_counterfeits(by_class: pl.DataFrame | None) -> dict[str, Any]:
    if by_class is None:
        return {}
    records = int(by_class["counterfeits"].sum())
    return {"counterfeits": {"records": records, "classes": by_class.height}}
