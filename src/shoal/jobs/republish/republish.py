"""Republish: the next release of a growing table, safe together with all earlier ones, or withheld.

read > split by operation > join what waited > place > recode > write > read back > audit the
release and the history > append to the ledger
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from shoal.binding.columns import check_columns, check_people
from shoal.connectors import files
from shoal.connectors.frames import like, table_of
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Table
from shoal.errors import InputError, PromiseError
from shoal.jobs.audit.audit import measure
from shoal.jobs.audit.faults import faults
from shoal.jobs.audit.reading import read_release
from shoal.jobs.audit.verdict import require_kept
from shoal.jobs.republish import identities, terms
from shoal.jobs.republish.history import Chain, read_as_published, stated, verdict
from shoal.jobs.republish.identities import DeferredRecords, Identities
from shoal.jobs.republish.next_release import PlannedRelease, plan
from shoal.jobs.republish.value_counts import compared, with_table
from shoal.policy.policy import Policy
from shoal.privacy.history import Finding
from shoal.state.ledger import CERTIFICATE, DATA, Draft, Ledger

DEFAULT_METHOD = "crp"
COUNTERFEITS = "counterfeits.csv"


@dataclass(frozen=True)
class Republication:
    """What became of an increment.

    release: its number, None where all of it waits. certificate: of that release. waiting: how many
    records wait now.
    repeated: whether it had been appended before, and nothing was done. reasons: why records wait.
    again: people of the increment who waited already; they have the records of both, and count
    once.
    data: what was let out, read from the release, where a frame came in; None where nothing was.
    """

    release: int | None
    certificate: Certificate | None
    waiting: int
    repeated: bool = False
    reasons: Sequence[str] = ()
    data: Any = None
    again: int = 0


@dataclass(frozen=True)
class AuditedDraft:
    """A planned release that was written and audited. records: how many the ledger has published
    with it.
    """

    certificate: Certificate
    findings: Sequence[Finding]
    identities: Identities
    records: int

    @property
    def broken(self) -> list[Finding]:
        """What may not be let out."""
        return [finding for finding in self.findings if finding.breaks]


def republish(
    frame: Any,
    policy: Policy | str | Path | dict[str, Any],
    ledger: str | Path,
    *,
    allow_leaks: bool = False,
    progress: Progress = no_progress,
) -> Republication:
    """The next release of the growing table in a ledger: a pandas, polars or pyarrow frame of new
    records.

    The ledger, a folder, is begun if it is not there. The release and the whole history are audited
    from the bytes that were written before they take their place; nothing is appended if it is not
    safe beside all earlier releases. The same records in the same order are not published again.
    Raises InputError, PromiseError, InfeasibleError or LedgerError. `data` is of the same kind as
    the frame, with cells as text, as they stand in the file.
    """
    done = republish_source(
        increment_of(frame), Policy.of(policy), Path(ledger), allow_leaks, progress
    )
    if done.release is None or done.repeated:
        return done
    written = files.read_as(Ledger(Path(ledger)).folder(done.release) / DATA, ".csv").frame
    return replace(done, data=like(frame, written))


def republish_file(
    increment_path: str,
    policy: Policy,
    ledger_path: str | Path,
    *,
    allow_leaks: bool = False,
    progress: Progress = no_progress,
) -> Republication:
    """As `republish`, with the new records in a file; the same file again is not published again."""
    progress("reading the increment")
    return republish_source(
        read_increment(increment_path, policy), policy, Path(ledger_path), allow_leaks, progress
    )


def republish_source(
    source: files.Source,
    policy: Policy,
    ledger_path: Path,
    allow_leaks: bool,
    progress: Progress = no_progress,
) -> Republication:
    """As `republish`, with records that were read already; the same hash again is not published
    again.
    """
    started = time.process_time()
    policy = with_defaults(policy)
    method = policy.build_method("republish")
    ledger = Ledger(ledger_path)
    terms.check(policy, method)
    check_increment(source, policy)
    progress("waiting for the ledger")
    with ledger.locked():
        check_ledger(ledger, policy, looks_back=reads_back(policy, method))
        repeated = ledger.step_for(source.sha256)
        if repeated is not None:
            certificate = (
                None
                if repeated.release is None
                else Certificate(ledger.certificate(repeated.release))
            )
            return Republication(
                repeated.release, certificate, DeferredRecords.of(ledger).records, repeated=True
            )
        if not source.frame.height:
            return Republication(
                None, None, DeferredRecords.of(ledger).records, reasons=("the increment is empty",)
            )
        policy = with_table(policy, ledger, method)
        planned = plan(source.frame, policy, method, ledger, progress)
        with ledger.draft() as draft:
            if isinstance(planned, DeferredRecords):
                return _wait(planned, policy, ledger, draft, source.sha256)
            proved = write_and_audit(
                planned, policy, method, ledger, draft.published, source.sha256, progress
            )
            require_kept(proved.certificate, "the ledger is as it was")
            if proved.broken and not allow_leaks:
                raise PromiseError(*verdict(proved.broken, method))
            seconds = {"total": time.process_time() - started, "method": planned.seconds}
            certificate = proved.certificate.extended(seconds=seconds)
            (draft.published / CERTIFICATE).write_text(certificate.to_json())
            runs = _write_private_state(planned, proved, method, ledger, draft.private)
            if not ledger.exists:
                ledger.begin(terms.terms(policy))
            step = ledger.commit(
                draft, source.sha256, proved.records, identities.PASSING, runs, publishes=True
            )
    waiting = planned.waiting
    return Republication(
        step.release, certificate, waiting.records, reasons=waiting.reasons, again=planned.again
    )


def with_defaults(policy: Policy) -> Policy:
    """The policy with the verb's own method, where it names none, and shuffled rows, where it does
    not say.
    """
    named = policy if policy.model.method is not None else policy.with_method(DEFAULT_METHOD, {})
    return named.with_shuffled_rows()


def read_increment(path: str, policy: Policy) -> files.Source:
    """The increment in a file; it may be empty."""
    return files.read(path, policy.audited_columns, allow_empty=True)


def increment_of(frame: Any) -> files.Source:
    """The increment in a frame of any kind, known again by the text of its cells; it may be empty."""
    records = table_of(frame, allow_empty=True).frame
    return files.Source(
        records, hashlib.sha256(identities.as_text(records).write_csv().encode()).hexdigest()
    )


def check_increment(source: files.Source, policy: Policy) -> None:
    """Raises InputError where its columns are not the policy's, or people could not be known again."""
    findings = check_columns(source.frame.columns, policy) + check_people(source.frame, policy)
    if findings:
        raise InputError.from_findings(findings)


def reads_back(policy: Policy, method: Any) -> bool:
    """Whether the next release is made of, or measured against, what all earlier ones hold."""
    return method.covers == "table" or bool(compared(policy))


def check_ledger(ledger: Ledger, policy: Policy, looks_back: bool) -> None:
    """Raises LedgerError or InputError where nothing can be appended under this policy.

    looks_back: whether all earlier releases will be read, and so must be whole; else the last one
    must be.
    """
    if ledger.exists:
        if looks_back:
            ledger.check_whole()
        else:
            ledger.check_end()
        terms.check_same(policy, ledger)
    else:
        ledger.check_place()


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
    head = last.head if ledger.exists else terms.terms(policy).head
    identities, records = planned.identities.numbered(last.records)
    certificate = _measured(written.frame, planned, identities, policy, progress)
    progress("auditing the history")
    found = Chain(ledger, policy).next(last.releases + 1, method, written.frame, identities)
    broken = any(finding.breaks for finding in found)
    certificate = certificate.extended(
        verb="republish",
        method={"name": policy.method_name, "parameters": policy.parameters_for("republish")},
        seed=policy.model.seed,
        seconds={"total": None, "method": planned.seconds},
        input={"sha256": digest},
        output={"sha256": written.sha256},
        covers=method.covers,
        guards=method.guards,
        history=stated(found, allowed=broken),
        ledger={
            "release": last.releases + 1,
            "previous": head,
            "files": _more_files(planned, folder),
            "came_again": planned.again,
        },
        **_counterfeits(planned),
    )
    return AuditedDraft(certificate, found, identities, records)


def _wait(
    planned: DeferredRecords, policy: Policy, ledger: Ledger, draft: Draft, digest: str
) -> Republication:
    """The records wait in the private part; no release."""
    planned.write(draft.private)
    identities.carry_over(ledger, draft.private)
    if not ledger.exists:
        ledger.begin(terms.terms(policy))
    last = ledger.last_step()
    runs = tuple(number for number, _ in last.runs)
    ledger.commit(draft, digest, last.records, identities.PASSING, runs, publishes=False)
    return Republication(None, None, planned.records, reasons=planned.reasons, again=planned.again)


def _write_private_state(
    planned: PlannedRelease, proved: AuditedDraft, method: Any, ledger: Ledger, folder: Path
) -> tuple[int, ...]:
    """Writes what the private part keeps of a release; the earlier steps whose runs of people stay
    in use.
    """
    proved.identities.write(folder)
    planned.waiting.write(folder)
    if method.needs == "originals":
        identities.write_originals(planned.originals, proved.identities, folder)
    return identities.write_known(ledger, proved.identities, folder)


def _measured(
    frame: pl.DataFrame,
    planned: PlannedRelease,
    identities: Identities,
    policy: Policy,
    progress: Progress,
) -> Certificate:
    """The certificate of the rows that were written, each compared with the truth where that is
    known.
    """
    if planned.known is None:
        return measure(Table(frame), planned.schema, policy, planned.truth, progress)[0]
    certificate = read_as_published(frame, identities, policy).certificate
    known = Table(frame[planned.known])
    found = faults(
        known,
        read_release(known, planned.schema, policy, planned.truth),
        planned.schema,
        planned.truth,
    )
    return certificate.extended(faults={**certificate.get("faults", {}), **found})


def _more_files(planned: PlannedRelease, folder: Path) -> dict[str, str]:
    """Writes what is published beside the data; the hash of each file by name."""
    if planned.counterfeits is None:
        return {}
    planned.counterfeits.write_csv(folder / COUNTERFEITS)
    return {COUNTERFEITS: files.file_sha256(folder / COUNTERFEITS)}


def _counterfeits(planned: PlannedRelease) -> dict[str, Any]:
    counted = planned.counterfeits
    if counted is None:
        return {}
    return {
        "counterfeits": {"records": int(counted["counterfeits"].sum()), "classes": counted.height}
    }
