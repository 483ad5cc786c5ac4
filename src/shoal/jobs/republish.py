"""Republish: the next release of a growing table, safe together with all earlier ones, or withheld.

read > split by operation > join what waited > place > recode > write > read back > audit the release and the
history > append to the ledger
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from shoal.connectors import files
from shoal.data.certificate import Certificate
from shoal.data.table import Table
from shoal.errors import InputError, PromiseError
from shoal.jobs import ledger_policy, ledger_rows
from shoal.jobs.audit import Progress, faults, measure, read_release, silent
from shoal.jobs.history import Chain, read_as_published, stated, verdict
from shoal.jobs.ledger_rows import Identities, Waiting
from shoal.jobs.next_release import Planned, plan
from shoal.jobs.policy import Policy
from shoal.privacy.history import Finding
from shoal.state.ledger import CERTIFICATE, DATA, Draft, Ledger

DEFAULT_METHOD = "crp"
COUNTERFEITS = "counterfeits.csv"


@dataclass(frozen=True)
class Appended:
    """What became of an increment.

    release: its number, None where all of it waits. certificate: of that release. waiting: how many records wait now.
    repeated: whether it had been appended before, and nothing was done. reasons: why records wait.
    """

    release: int | None
    certificate: Certificate | None
    waiting: int
    repeated: bool = False
    reasons: Sequence[str] = ()


@dataclass(frozen=True)
class Proved:
    """A planned release that was written and audited. records: how many the ledger has published with it."""

    certificate: Certificate
    findings: Sequence[Finding]
    identities: Identities
    records: int

    @property
    def broken(self) -> list[Finding]:
        """What may not be let out."""
        return [finding for finding in self.findings if finding.breaks]


def republish_file(
    increment_path: str,
    policy: Policy,
    ledger_path: str | Path,
    *,
    allow_leaks: bool = False,
    progress: Progress = silent,
) -> Appended:
    """Appends the next release to the ledger, which is begun if it is not there; appends nothing if it is not safe.

    The release and the whole history are audited from the bytes that were written before they take their place.
    The same file again is not published again. Raises InputError, PromiseError, InfeasibleError or LedgerError.
    """
    started = time.process_time()
    policy = with_defaults(policy)
    method = policy.build_method("republish")
    ledger = Ledger(Path(ledger_path))
    ledger_policy.check(policy, method)
    source = read_increment(increment_path, policy, progress)
    progress("waiting for the ledger")
    with ledger.locked():
        check_ledger(ledger, policy, looks_back=method.covers == "table")
        repeated = ledger.step_for(source.sha256)
        if repeated is not None:
            certificate = None if repeated.release is None else Certificate(ledger.certificate(repeated.release))
            return Appended(repeated.release, certificate, Waiting.of(ledger).records, repeated=True)
        if not source.frame.height:
            return Appended(None, None, Waiting.of(ledger).records, reasons=("the increment is empty",))
        planned = plan(source.frame, policy, method, ledger, progress)
        with ledger.draft() as draft:
            if isinstance(planned, Waiting):
                return _wait(planned, policy, ledger, draft, source.sha256)
            proved = prove(planned, policy, method, ledger, draft.published, source.sha256, progress)
            _demand(proved.certificate)
            if proved.broken and not allow_leaks:
                raise PromiseError(*verdict(proved.broken, method))
            seconds = {"total": time.process_time() - started, "method": planned.seconds}
            certificate = proved.certificate.extended(seconds=seconds)
            (draft.published / CERTIFICATE).write_text(certificate.to_json())
            runs = _remember(planned, proved, method, ledger, draft.private)
            if not ledger.exists:
                ledger.begin(ledger_policy.terms(policy))
            step = ledger.commit(draft, source.sha256, proved.records, ledger_rows.PASSING, runs, publishes=True)
    return Appended(step.release, certificate, planned.waiting.records, reasons=planned.waiting.reasons)


def with_defaults(policy: Policy) -> Policy:
    """The policy with the verb's own method, where it names none, and shuffled rows, where it does not say."""
    named = policy if policy.model.method is not None else policy.with_method(DEFAULT_METHOD, {})
    return named.with_shuffled_rows()


def read_increment(path: str, policy: Policy, progress: Progress) -> files.Source:
    """The increment, whose columns are the policy's; it may be empty."""
    progress("reading the increment")
    source = files.read(path, policy.measured, may_be_empty=True)
    findings = policy.check_columns(source.frame.columns)
    if findings:
        raise InputError.from_findings(findings)
    return source


def check_ledger(ledger: Ledger, policy: Policy, looks_back: bool) -> None:
    """Raises LedgerError or InputError where nothing can be appended under this policy.

    looks_back: whether all earlier releases will be read, and so must be whole; else the last one must be.
    """
    if ledger.exists:
        if looks_back:
            ledger.check_whole()
        else:
            ledger.check_end()
        ledger_policy.check_same(policy, ledger)
    else:
        ledger.check_place()


def prove(
    planned: Planned, policy: Policy, method: Any, ledger: Ledger, folder: Path, digest: str, progress: Progress
) -> Proved:
    """Writes the release into a folder, reads it back and audits it and the history."""
    progress("writing the release")
    files.write(planned.frame, folder / DATA, ".csv")
    progress("reading the release back")
    written = files.read_as(folder / DATA, ".csv", policy.measured)
    last = ledger.last_step()
    head = last.head if ledger.exists else ledger_policy.terms(policy).head
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
        ledger={"release": last.releases + 1, "previous": head, "files": _more_files(planned, folder)},
        **_counterfeits(planned),
    )
    return Proved(certificate, found, identities, records)


def _wait(planned: Waiting, policy: Policy, ledger: Ledger, draft: Draft, digest: str) -> Appended:
    """The records wait in the private part; no release."""
    planned.write(draft.private)
    ledger_rows.carry_over(ledger, draft.private)
    if not ledger.exists:
        ledger.begin(ledger_policy.terms(policy))
    last = ledger.last_step()
    runs = tuple(number for number, _ in last.runs)
    ledger.commit(draft, digest, last.records, ledger_rows.PASSING, runs, publishes=False)
    return Appended(None, None, planned.records, reasons=planned.reasons)


def _remember(planned: Planned, proved: Proved, method: Any, ledger: Ledger, folder: Path) -> tuple[int, ...]:
    """Writes what the private part keeps of a release; the earlier steps whose runs of people stay in use."""
    proved.identities.write(folder)
    planned.waiting.write(folder)
    if method.needs == "originals":
        ledger_rows.write_originals(planned.originals, proved.identities, folder)
    return ledger_rows.write_known(ledger, proved.identities, folder)


def _measured(
    frame: pl.DataFrame, planned: Planned, identities: Identities, policy: Policy, progress: Progress
) -> Certificate:
    """The certificate of the rows that were written, each compared with the truth where that is known."""
    if planned.known is None:
        return measure(Table(frame), planned.schema, policy, planned.truth, progress)[0]
    certificate = read_as_published(frame, identities, policy).certificate
    known = Table(frame[planned.known])
    found = faults(known, read_release(known, planned.schema, policy, planned.truth), planned.schema, planned.truth)
    return certificate.extended(faults={**certificate.get("faults", {}), **found})


def _more_files(planned: Planned, folder: Path) -> dict[str, str]:
    """Writes what is published beside the data; the hash of each file by name."""
    if planned.counterfeits is None:
        return {}
    planned.counterfeits.write_csv(folder / COUNTERFEITS)
    return {COUNTERFEITS: files.file_sha256(folder / COUNTERFEITS)}


def _counterfeits(planned: Planned) -> dict[str, Any]:
    counted = planned.counterfeits
    if counted is None:
        return {}
    return {"counterfeits": {"records": int(counted["counterfeits"].sum()), "classes": counted.height}}


def _demand(certificate: Certificate) -> None:
    """Let nothing out that does not keep every promise by itself."""
    broken = [
        f"promise '{p['model']}' does not hold on the release: asked {p['asked']}, measured {p['measured']}"
        for p in certificate["promises"]
        if not p["holds"]
    ]
    broken += [
        f"{count} published records are {fault}" for fault, count in certificate.get("faults", {}).items() if count
    ]
    if broken:
        raise PromiseError(f"{broken[0]}; the release is withheld, the ledger is as it was", broken[1:])
