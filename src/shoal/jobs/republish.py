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

import numpy as np
import polars as pl

from shoal.connectors import files
from shoal.data.certificate import Certificate
from shoal.data.ledger_view import LedgerView, Placement
from shoal.data.partition import Partition
from shoal.data.table import Table
from shoal.errors import InputError, PromiseError
from shoal.jobs import ledger_policy, ledger_rows
from shoal.jobs.audit import Progress, Truth, measure, silent
from shoal.jobs.history import Chain, stated, verdict
from shoal.jobs.ledger_rows import Identities, Waiting
from shoal.jobs.policy import Policy
from shoal.jobs.publish import Bound, bind, recode
from shoal.privacy.promises import BoundPromises, nearest_feasible
from shoal.state.ledger import CERTIFICATE, DATA, Ledger

DEFAULT_METHOD = "crp"


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
class Planned:
    """A release as it would be published, row by row; not yet measured.

    identities: who stands behind each row. truth: None where a method knows published records by their boxes alone.
    originals: the records behind the rows.
    """

    frame: pl.DataFrame
    bound: Bound
    identities: Identities
    truth: Truth | None
    originals: pl.DataFrame
    waiting: Waiting
    seconds: float


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
        planned = _plan(source.frame, policy, method, ledger, progress)
        return _append(planned, policy, method, ledger, source.sha256, allow_leaks, started, progress)


def _with_default_method(policy: Policy) -> Policy:
    return policy if policy.model.method is not None else policy.with_method(DEFAULT_METHOD, {})


def _plan(frame: pl.DataFrame, policy: Policy, method: Any, ledger: Ledger, progress: Progress) -> Planned | Waiting:
    """The next release; only what waits where there is none."""
    progress("checking the data against the policy")
    material = ledger_rows.gather(frame, policy, method, ledger)
    if not material.new:
        return material.waiting_for("nothing in it is new")
    bound, findings = bind(material.table, policy)
    if bound is None:
        raise InputError.from_findings(findings)
    matrix = bound.matrix()
    everybody = bound.published(matrix.subjects)
    promises = policy.build_promises()
    reasons = nearest_feasible(promises, everybody)
    if reasons:
        return material.waiting_for(*reasons)
    progress(f"finding classes by {policy.method_name}")
    began = time.process_time()
    view = LedgerView(earlier=material.records[~bound.encoded.suppressed] >= 0)
    rng = np.random.default_rng(policy.model.seed)
    placement: Placement = method.publish(matrix, view, BoundPromises(promises, everybody), rng)
    seconds = time.process_time() - began
    progress("recoding")
    partition = Partition(placement.labels, placement.count)
    recoded = recode(material.table, bound, partition, policy)
    rows = recoded.truth.rows
    originals = material.table.frame if rows is None else material.table.frame[rows]
    who = material.identities(rows)
    return Planned(recoded.frame, bound, who, recoded.truth, originals, Waiting(), seconds)


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
        certificate, release = measure(Table(written.frame), planned.bound.schema, policy, planned.truth, progress)
        _demand(certificate)
        progress("auditing the history")
        last = ledger.last_step()
        identities = planned.identities.numbered(last.records)
        number = last.releases + 1
        schema = planned.bound.schema
        found = Chain(ledger, policy).next(number, method, release, written.frame, schema, identities)
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
            ledger={"release": number, "previous": last.head, "files": {}},
        )
        (draft.published / CERTIFICATE).write_text(certificate.to_json())
        identities.write(draft.private)
        planned.waiting.write(draft.private)
        ledger_rows.write_known(ledger, identities, draft.private)
        if method.needs == "originals":
            ledger_rows.write_originals(planned.originals, identities, draft.private)
        ledger.commit(draft, digest, identities.next_record, ledger_rows.PASSING, publishes=True)
    return Appended(number, certificate, planned.waiting.records, reasons=planned.waiting.reasons)


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
