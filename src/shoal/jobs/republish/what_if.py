"""What if: each method's next release of a ledger, audited as it would be, and nothing published."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from shoal.connectors.files import Source
from shoal.data.progress import Progress, no_progress
from shoal.errors import ShoalError
from shoal.jobs.republish import terms
from shoal.jobs.republish.history import words
from shoal.jobs.republish.identities import INSERT, DeferredRecords
from shoal.jobs.republish.next_release import plan
from shoal.jobs.republish.republish import (
    check_increment,
    check_ledger,
    increment_of,
    read_increment,
    republish_source,
    with_defaults,
    write_and_audit,
)
from shoal.jobs.republish.value_counts import with_table
from shoal.policy import registry
from shoal.policy.policy import Policy
from shoal.privacy.history import Finding
from shoal.state.ledger import Ledger

WARM = 200
"""Records that the kernels are compiled with."""


@dataclass(frozen=True)
class Prospect:
    """What one method would do with an increment.

    certificate: of its release, None where there would be none. told: why there would be none, or
    what breaks.
    """

    method: str
    certificate: Any
    findings: Sequence[Finding] = ()
    waiting: int = 0
    told: Sequence[str] = ()

    @property
    def outcome(self) -> str:
        """In a word: published, withheld, waits, or refused."""
        if self.certificate is None:
            return "waits" if self.waiting else "refused"
        return (
            "published"
            if self.certificate.holds and not any(f.breaks for f in self.findings)
            else "withheld"
        )

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
    frame: Any,
    policy: Policy | str | Path | dict[str, Any],
    ledger: str | Path,
    *,
    progress: Progress = no_progress,
) -> list[Prospect]:
    """What each method of re-publication would make of a frame of new records; nothing is published
    or begun.

    The policy's own method has the parameters that it has there. Raises InputError or LedgerError.
    """
    return _prospects(increment_of(frame), Policy.of(policy), Path(ledger), progress)


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
    source: Source, policy: Policy, ledger_path: Path, progress: Progress
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


def _warm_up(source: Source, policy: Policy, folder: Path) -> None:
    """Some of the records, and the same again as other people: kernels are compiled before anything
    is timed.
    """
    some = source.frame
    if policy.operation is not None:
        some = some.filter(
            pl.col(policy.operation).is_null() | (pl.col(policy.operation) == INSERT)
        )
    some = some.head(WARM)
    again = (
        some
        if policy.subject is None
        else some.with_columns(pl.col(policy.subject).cast(pl.String) + "again")
    )
    with suppress(ShoalError):
        for turn, frame in enumerate((some, again)):
            republish_source(Source(frame, f"{turn}"), policy, folder, allow_leaks=True)


def _prospect(
    name: str, source: Any, policy: Policy, ledger: Ledger, progress: Progress
) -> Prospect:
    asked = policy.with_method(name, {})
    method = asked.build_method("republish")
    try:
        terms.check(asked, method)
        asked = with_table(asked, ledger, method)
        planned = plan(source.frame, asked, method, ledger, progress)
        if isinstance(planned, DeferredRecords):
            return Prospect(name, None, waiting=planned.records, told=planned.reasons)
        with ledger.draft() as draft:
            proved = write_and_audit(
                planned, asked, method, ledger, draft.published, source.sha256, progress
            )
    except ShoalError as refused:
        return Prospect(name, None, told=[str(refused.args[0]), *refused.findings])
    told = [words(finding) for finding in proved.broken]
    return Prospect(name, proved.certificate, proved.findings, planned.waiting.records, told)


def as_json(prospects: Sequence[Prospect]) -> str:
    """All of it, for programs."""
    return json.dumps([prospect.report() for prospect in prospects], indent=2) + "\n"


def as_text(prospects: Sequence[Prospect]) -> str:
    """A line for each method, and what breaks or stands in the way below it."""
    lines = [
        f"{'method':14}{'outcome':11}{'records':>9}{'classes':>9}{'gcp':>9}{'CPU s':>8}{'waiting':>9}"
    ]
    for p in prospects:
        c = p.certificate
        figures = ("", "", "", "")
        if c is not None:
            gcp = c["utility"]["gcp"]
            loss = "" if gcp is None else f"{100 * gcp:.2f} %"
            figures = (
                f"{c['records']['out']}",
                f"{c['classes']['count']}",
                loss,
                f"{c['seconds']['method']:.2f}",
            )
        records, classes, loss, seconds = figures
        lines.append(
            f"{p.method:14}{p.outcome:11}{records:>9}{classes:>9}{loss:>9}{seconds:>8}{p.waiting:>9}"
        )
        lines += [f"    {told}" for told in p.told]
    return "\n".join(lines) + "\n"
