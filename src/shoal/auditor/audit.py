"""Audit: measure what a released table promises, on nothing but what was released.

The auditor reads cells, not partitions: equal published quasi-identifiers are one class, whoever
made them. With the original beside it, it also counts people instead of rows and checks that every
published cell covers the truth.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from shoal.auditor.coverage import unmatched
from shoal.auditor.description import described
from shoal.auditor.downstream import downstream as downstream_of
from shoal.auditor.measure import CertifiedRelease, measure, measure_two_tables
from shoal.auditor.without_policy import check_named, policy_of_columns, without_guesses
from shoal.connectors import files
from shoal.connectors.location import Location
from shoal.connectors.outputs import (
    certificate_beside,
    describe_file,
    described_second,
    remove_stale_signature,
)
from shoal.connectors.traces import traced_rows
from shoal.data.certificate import Certificate
from shoal.data.encoding import EncodedTable, encode
from shoal.data.faults import with_contradicted
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.data.two_tables import GROUP, sensitive_path
from shoal.errors import InputError
from shoal.policy.binding.columns import check_columns
from shoal.policy.binding.past_memory import room_for
from shoal.policy.binding.table import bind_original, bound_release
from shoal.policy.policy import Policy, PolicyLike
from shoal.policy.problem import Problem
from shoal.utility.gcp import ColumnFigures


@dataclass(frozen=True)
class AuditResult(CertifiedRelease):
    """What an audit found, and what a report needs to be drawn from it."""

    problem: Problem
    truth: Truth | None


def policy_or_columns(
    policy: PolicyLike | None, columns: Mapping[str, Any], original: object
) -> Policy:
    """The policy that is given, or the one that columns and numbers say; raises InputError."""
    if policy is not None:
        if columns:
            raise InputError("audit: takes a policy or columns, not both; leave out one of them")
        return Policy.of(policy)
    if "quasi" not in columns or "k" not in columns:
        raise InputError("audit: needs a policy, or 'quasi' and 'k'; give one of them")
    if original is not None:
        raise InputError(
            "audit: without a policy it is not known what cells stand for, so they can't be"
            " compared with an original; give the policy"
        )
    return policy_of_columns(**columns)


def audit_table(
    released: Table,
    policy: Policy,
    original: Table | None,
    progress: Progress = no_progress,
    trained: bool = False,
    trace: np.ndarray | None = None,
) -> AuditResult:
    """`audit` of a table, with what it read from it."""
    started = time.process_time()
    shown = released
    if policy.is_made_of_columns:
        check_named(released.names, policy.model)
    if policy.is_in_two_tables:
        shown = Table(released.frame.drop(GROUP))
        if trained:
            policy.refuse_two_tables("downstream")
    encoded: EncodedTable | None = None
    if original is None:
        problem, truth = bound_release(shown, policy), None
    else:
        problem, encoded = bound_with_original(shown, policy, original, trace)
        truth = truth_of(original, encoded, problem, trace)
    if policy.is_in_two_tables:
        measured, released = measure_two_tables(released, problem, None, original, progress)
        # the original is compared by row here, not by group
        measured = replace(measured, figures=ColumnFigures.of(measured.release, truth))
    else:
        measured = measure(released, problem, truth, progress)
        if truth is None and original is not None and encoded is not None and measured.held:
            progress("matching rows with the original's")
            left = unmatched(released, measured.held, problem.schema, original, encoded)
            if left is not None:
                faults = measured.certificate.get("faults") or {}
                certificate = measured.certificate.extended(faults={**faults, "unmatched": left})
                measured = replace(measured, certificate=certificate)
    certificate = described(measured.certificate, released, measured.figures, problem, truth)
    if policy.is_made_of_columns:
        certificate = without_guesses(certificate)
    if trained:
        progress("training on the release")
        certificate = certificate.extended(
            downstream=downstream_of(measured.release, problem.schema, truth, problem.seed)
        )
    seconds = {"total": time.process_time() - started, "method": None}
    certificate = certificate.extended(seconds=seconds, scale=measured.scale)
    return AuditResult(certificate, measured.held, problem, truth)


def bound_with_original(
    released: Table, policy: Policy, original: Table, trace: np.ndarray | None = None
) -> tuple[Problem, EncodedTable]:
    """The problem of the original, and the original encoded; raises InputError with every finding.

    trace: (n,) the original's row behind each published one.
    """
    problem, unbound = bind_original(original, policy)
    findings: list[Any] = [f"original: {finding}" for finding in unbound]
    findings += check_columns(released.names, policy.tables, released=True)
    if original.records != released.records:
        findings.append(
            f"original: has {original.records} records, the release {released.records}; "
            "give the table that it was made of"
        )
    elif trace is not None and not np.array_equal(np.sort(trace), np.arange(original.records)):
        findings.append(
            "trace: does not name each row of the original once; give the trace that was written"
            " with the release"
        )
    if problem is None or findings:
        raise InputError.from_findings(findings)
    encoded, wrong = encode(original, problem.schema)
    if encoded is None or wrong:
        raise InputError.from_findings([f"original: {finding}" for finding in wrong])
    return problem, encoded


def truth_of(
    original: Table, encoded: EncodedTable, problem: Problem, trace: np.ndarray | None
) -> Truth | None:
    """What the original tells about a release; None where nobody knows whose row is where: there
    is no trace, and rows are not in the original's order.
    """
    is_known = trace is not None or problem.schema.render.order == "input"
    return Truth(original, encoded, trace) if is_known else None


def audit_file(
    released_path: str,
    policy: Policy,
    original_path: str | None = None,
    *,
    trace_path: str | None = None,
    downstream: bool = False,
    progress: Progress = no_progress,
) -> AuditResult:
    """`audit` from files."""
    progress("reading the release")
    room = room_for(released_path, original_path)
    released = policy.tables.read_released(released_path, room)
    original = None if original_path is None else policy.tables.read_original(original_path, room)
    truth, second = None if original is None else original.table, released.second
    trace = None if trace_path is None else traced_rows(trace_path)
    policy = as_certified(policy, released_path, released.sha256)
    result = audit_table(released.table, policy, truth, progress, downstream, trace)
    certificate = with_contradicted(result.certificate, released.contradicted).extended(
        input=None if original is None else {"sha256": original.sha256},
        output=describe_file(
            released_path,
            released_path,
            released.sha256,
            result.problem.schema.render,
            released.dialect,
            result.problem.notation,
        )
        | described_second(None if second is None else Path(sensitive_path(released_path)), second),
    )
    return replace(result, certificate=certificate)


def as_certified(policy: Policy, released_path: str, sha256: str) -> Policy:
    """The policy with the order of rows that the certificate beside a release states, if it is of
    these bytes.
    """
    stated = own_certificate(released_path, sha256)
    return policy if stated is None else policy.as_certified(stated["output"])


def own_certificate(released_path: str, sha256: str | None = None) -> Certificate | None:
    """The certificate beside a release, if there is one that can be read and is of its bytes.

    sha256: their hash, where it is known already.
    """
    try:
        beside = certificate_beside(released_path)
        stated = None if beside is None else Certificate.parsed(beside, released_path)
    except InputError:
        return None
    output = None if stated is None else stated.get("output")
    is_its = output and output["sha256"] == (sha256 or files.table_sha256(released_path))
    return stated if is_its else None


def write_certificate(certificate: Certificate, path: str) -> None:
    """Writes it whole; a signature of what stood there before is removed."""
    with files.atomic_write(path) as draft:
        draft.write_text(certificate.to_json())
    if not Location(path).is_standard:
        remove_stale_signature(path)
