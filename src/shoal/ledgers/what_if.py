"""What if: each method's next release of a ledger, audited as if published, and thrown away."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from shoal.auditor.ledger import terms
from shoal.auditor.ledger.release_view import HistoryFinding
from shoal.auditor.ledger.terms import with_table
from shoal.connectors.files import SourceFile
from shoal.connectors.frames import Frame
from shoal.connectors.ledger import Ledger
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress, no_progress
from shoal.data.uncompiled import always
from shoal.errors import ShoalError
from shoal.ledgers.increment import INSERT, DeferredRecords
from shoal.ledgers.next_release import plan, write_and_audit
from shoal.ledgers.republish import (
    check_increment,
    check_ledger,
    increment_of,
    read_increment,
    republish_source,
    with_defaults,
)
from shoal.policy import registry
from shoal.policy.policy import Policy, PolicyLike

WARM = 200
"""Records that the kernels are compiled with."""


@dataclass(frozen=True)
class Prospect:
    """What one method would do with an increment.

    certificate: of its release, None where there would be none. told: why there would be none, or
    what breaks the history.
    """

    method: str
    certificate: Certificate | None
    findings: Sequence[HistoryFinding] = ()
    waiting: int = 0
    told: Sequence[str] = ()

    @property
    def outcome(self) -> str:
        """In a word: published, withheld, waits, or refused."""
        if self.certificate is None:
            return "waits" if self.waiting else "refused"
        is_safe = not any(finding.is_violation for finding in self.findings)
        return "published" if self.certificate.holds and is_safe else "withheld"

    def report(self) -> dict[str, Any]:
        """As JSON states it."""
        c = self.certificate
        return {
            "method": self.method,
            "outcome": self.outcome,
            "covers": None if c is None else c["covers"],
            "records": None if c is None else c["records"]["out"],
            "classes": None if c is None else c["classes"],
            "gcp": None if c is None else c["utility"]["gcp"],
            "seconds": None if c is None else c["seconds"]["method"],
            "waiting": self.waiting,
            "findings": [finding.report() for finding in self.findings],
            "told": list(self.told),
        }


def what_if(
    frame: Frame,
    policy: PolicyLike,
    ledger: str | Path,
    *,
    progress: Progress = no_progress,
) -> list[Prospect]:
    """What each method of re-publication would do with new records; nothing is published or begun.

    The policy's own method has the parameters that it has there. Raises InputError or LedgerError.
    """
    policy = Policy.of(policy)
    return _prospects(increment_of(frame, policy), policy, Path(ledger), progress)


def what_if_file(
    increment_path: str,
    policy: Policy,
    ledger_path: str | Path,
    *,
    progress: Progress = no_progress,
) -> list[Prospect]:
    """As `what_if`, with the new records in a file."""
    progress("reading the increment")
    return _prospects(read_increment(increment_path, policy), policy, Path(ledger_path), progress)


def _prospects(
    source: SourceFile, policy: Policy, ledger_path: Path, progress: Progress
) -> list[Prospect]:
    policy = with_defaults(policy)
    check_increment(source, policy)
    with tempfile.TemporaryDirectory(prefix="shoal-what-if-") as folder:
        ledger = Ledger(ledger_path)
        if not ledger.exists:
            ledger = Ledger(Path(folder) / "ledger")  # nothing is begun by asking
        with ledger.locked():
            check_ledger(ledger, policy, looks_back=True)
            names = [m.name for m in registry.methods().values() if m.verb == "republish"]
            for name in names:
                _warm_up(source, policy.with_method(name, {}), Path(folder) / name)
            return [_prospect(name, source, policy, ledger, progress) for name in names]


def _warm_up(source: SourceFile, policy: Policy, folder: Path) -> None:
    """Publish some of the records twice, the second time as other people.

    So kernels are compiled before anything is timed.
    """
    some = source.frame
    if policy.operation is not None:
        some = some.filter(
            pl.col(policy.operation).is_null() | (pl.col(policy.operation) == INSERT)
        )
    some = some.head(WARM)
    others = (
        some
        if policy.subject is None
        else some.with_columns(pl.col(policy.subject).cast(pl.String) + "again")
    )
    with always(compiled=True), suppress(ShoalError):
        for turn, frame in enumerate((some, others)):
            republish_source(SourceFile(frame, f"{turn}"), policy, folder, allow_leaks=True)


def _prospect(
    name: str, source: Any, policy: Policy, ledger: Ledger, progress: Progress
) -> Prospect:
    asked = policy.with_method(name, {})
    method = asked.build_method("republish")
    try:
        terms.check_policy(asked, method)
        asked = with_table(asked, ledger, method)
        planned = plan(source.frame, asked, method, ledger, progress)
        if isinstance(planned, DeferredRecords):
            return Prospect(name, None, waiting=planned.records, told=planned.reasons)
        with ledger.draft() as draft:
            audited = write_and_audit(
                planned, asked, method, ledger, draft.published, source.sha256, progress
            )
    except ShoalError as refused:
        return Prospect(name, None, told=[str(refused.args[0]), *refused.findings])
    told = [str(finding) for finding in audited.violations]
    return Prospect(name, audited.certificate, audited.findings, planned.waiting.records, told)


def as_json(prospects: Sequence[Prospect]) -> str:
    """All of it, for programs."""
    return json.dumps([prospect.report() for prospect in prospects], indent=2) + "\n"
