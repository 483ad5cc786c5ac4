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
from shoal.state.ledger import CERTIFICATE, DATA, Ledger

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
    The same file again is not published again. Raises InputError, PromiseError or LedgerError.
    """
    started = time.process_time()
    policy = _with_default_method(policy).with_shuffled_rows()
    method = policy.build_method("republish")
    ledger = Ledger(Path(ledger_path))
    ledger_policy.check(policy, method)
    progress("reading the increment")
    source = files.read(increment_path, policy.measured, may_be_empty=True)
    findings = policy.check_columns(source.frame.columns)
    if findings:
        raise InputError.from_findings(findings)
    progress("waiting for the ledger")
    with ledger.locked():
        if ledger.exists:
            ledger.check_end()
            ledger_policy.check_same(policy, ledger)
        step = ledger.last_step() if ledger.exists else None
        repeated, release = step.release_of(source.sha256) if step else (False, None)
        if repeated:
            certificate = None if release is None else Certificate(ledger.certificate(release))
            return Appended(release, certificate, Waiting.of(ledger).records, repeated=True)
        if not source.frame.height:
            return Appended(None, None, Waiting.of(ledger).records if step else 0, reasons=("the increment is empty",))
        planned = plan(source.frame, policy, method, ledger, progress)
        return _append(planned, policy, method, ledger, source.sha256, allow_leaks, started, progress)


def _with_default_method(policy: Policy) -> Policy:
    return policy if policy.model.method is not None else policy.with_method(DEFAULT_METHOD, {})


def _append(
    planned: Planned | Waiting,
    policy: Policy,
    method: Any,
    ledger: Ledger,
    digest: str,
    allow_leaks: bool,
    started: float,
    progress: Progress,
) -> Appended:
    if not ledger.exists:
        ledger = Ledger.begin(ledger.path, *ledger_policy.stored(policy))
    with ledger.draft() as draft:
        if isinstance(planned, Waiting):
            planned.write(draft.private)
            step = ledger.last_step()
            ledger_rows.carry_over(ledger, draft.private)
            ledger.commit(draft, digest, step.records, ledger_rows.PASSING, publishes=False)
            return Appended(None, None, planned.records, reasons=planned.reasons)
        progress("writing the release")
        files.write(planned.frame, draft.published / DATA, ".csv")
        progress("reading the release back")
        written = files.read_as(draft.published / DATA, ".csv", policy.measured)
        last = ledger.last_step()
        identities, records = planned.identities.numbered(last.records)
        number = last.releases + 1
        certificate = _measured(written.frame, planned, identities, policy, progress)
        _demand(certificate)
        progress("auditing the history")
        found = Chain(ledger, policy).next(number, method, written.frame, identities)
        broken = [finding for finding in found if finding.breaks]
        if broken and not allow_leaks:
            raise PromiseError(*verdict(broken, method))
        certificate = certificate.extended(
            verb="republish",
            method={"name": policy.method_name, "parameters": policy.parameters_for("republish")},
            seed=policy.model.seed,
            seconds={"total": time.process_time() - started, "method": planned.seconds},
            input={"sha256": digest},
            output={"sha256": written.sha256},
            covers=method.covers,
            guards=method.guards,
            history=stated(found, allowed=bool(broken)),
            ledger={"release": number, "previous": last.head, "files": _more_files(planned, draft.published)},
            **_counterfeits(planned),
        )
        (draft.published / CERTIFICATE).write_text(certificate.to_json())
        identities.write(draft.private)
        planned.waiting.write(draft.private)
        ledger_rows.write_known(ledger, identities, draft.private)
        if method.needs == "originals":
            ledger_rows.write_originals(planned.originals, identities, draft.private)
        ledger.commit(draft, digest, records, ledger_rows.PASSING, publishes=True)
    return Appended(number, certificate, planned.waiting.records, reasons=planned.waiting.reasons)


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
