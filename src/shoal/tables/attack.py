"""Attack a release that its owner made, or had made, with the original at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from shoal.attacks.run.accept import unmeasured
from shoal.attacks.run.attack import attack_read_stream, attacked, request_of_frames
from shoal.attacks.run.people import OTHER_METHOD, AttackedRelease
from shoal.attacks.run.request import ALL, Asked, AttackRequest, asked_of
from shoal.auditor.audit import AuditResult, audit_file, audit_table, write_certificate
from shoal.auditor.stream_trace import audit_stream
from shoal.connectors import files
from shoal.connectors.frames import Frame, table_of
from shoal.connectors.location import Location
from shoal.connectors.outputs import certificate_beside
from shoal.connectors.traces import is_of_stream, read_trace, rows_given
from shoal.data.attack_scene import Recoding
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress, no_progress
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.binding.files import (
    original_table,
    published_table,
    read_original,
    read_released,
    table_given,
)
from shoal.policy.binding.past_memory import refuse_whole
from shoal.policy.policy import Policy, PolicyLike
from shoal.tables.second_release import NOT_INSTALLED, replay_of, republisher


def attack(
    released: Frame,
    policy: PolicyLike,
    original: Frame,
    attacks: Asked = ALL,
    *,
    control: Frame | None = None,
    external: Frame | None = None,
    earlier: Sequence[Any] = (),
    folds: int = 1,
    trace: str | Path | ArrayLike | None = None,
    progress: Progress = no_progress,
) -> Certificate:
    """An audit's certificate of a released frame, with what attacks on it found under `attacks`.

    attacks: names, with parameters if need be (`inference:tolerance=0.1`, or a dict); `all` tries
    every one that has what it needs. control: people who are not in the release; by default some
    are left out of a second release, where the policy names its method. external: a list of people.
    earlier: other releases of the same people, each alone, with a policy of its own, or with that
    and its trace. trace: as of `shoal.audit`. Raises InputError where tables, policy and attacks
    don't fit each other.
    """
    policy = Policy.of(policy)
    request = request_of_frames(policy, attacks, control, external, earlier, folds)
    table, _ = published_table(table_of(released), policy)
    source = original_table(table_given(original, policy), policy)
    rows = None if trace is None else rows_given(trace)
    result = audit_table(table, policy, source, progress, trace=rows)
    target = published_again(AttackedRelease.of_audited(result, table, source, policy))
    return attacked(result.certificate, target, request, progress)


@dataclass(frozen=True)
class AuditedFiles:
    """What an audit reads and writes. output: of the certificate, if it is written.

    trace: of a table or a stream. record_lines: lines that a record of its source could have.
    """

    released: str
    original: str | None = None
    output: str | None = None
    downstream: bool = False
    trace: str | None = None
    record_lines: int | None = None


def attack_file(
    paths: AuditedFiles,
    policy: Policy,
    request: AttackRequest,
    progress: Progress = no_progress,
) -> AuditResult:
    """The audit of a file, with the attacks that are asked for, or that the policy asks for.

    Without the original no attack can be tried: what the policy accepts then stays open.
    """
    request = asked_of(policy, request)
    if paths.trace is not None and is_of_stream(paths.trace):
        result = _attacked_stream(paths, policy, request, progress)
    else:
        result = _attacked_table(paths, policy, request, progress)
    if paths.output is not None:
        write_certificate(result.certificate, paths.output)
    return result


def _attacked_table(
    paths: AuditedFiles, policy: Policy, request: AttackRequest, progress: Progress
) -> AuditResult:
    if request.attacks:
        refuse_whole({"--attack": request.attacks}, paths.released, paths.original)
    result = audit_file(
        paths.released,
        policy,
        paths.original,
        trace_path=paths.trace,
        downstream=paths.downstream,
        progress=progress,
    )
    if not request.attacks:
        return result
    if paths.original is None:
        certificate = result.certificate.extended(
            attacks={"accept": unmeasured(policy.model.accept)}
        )
    else:
        released = read_released(paths.released, policy).table
        original = read_original(paths.original, policy).table
        known = with_stated_method(policy, paths.released)
        target = AttackedRelease.of_audited(result, released, original, known)
        target = published_again(target)
        certificate = attacked(result.certificate, target, request, progress)
    return replace(result, certificate=certificate)


def _attacked_stream(
    paths: AuditedFiles, policy: Policy, request: AttackRequest, progress: Progress
) -> AuditResult:
    assert paths.original is not None
    assert paths.trace is not None
    result = audit_stream(
        paths.released, policy, paths.original, paths.trace, paths.record_lines, progress=progress
    )
    if not request.attacks:
        return result
    table = files.read(paths.released).table
    trace = read_trace(paths.trace)
    certificate = attack_read_stream(result, table, trace, policy, request, progress)
    return replace(result, certificate=certificate)


def published_again(target: AttackedRelease) -> AttackedRelease:
    """The release with how a part of its original is published again, and how the method decides
    about a class alone, where the policy names a method for it.
    """
    problem = target.problem
    if problem.policy.model.method is None:
        return target
    try:
        problem.build_method()
    except InputError:
        missing = registry.is_missing(problem.method_name)
        return replace(target, no_republish=NOT_INSTALLED if missing else OTHER_METHOD)
    again = replace(target, republish=republisher(target.original, target.encoded, problem))
    if target.truth is None:
        return again
    replay, why = replay_of(target.original, target.encoded, target.truth.rows, problem)
    return replace(again, recoding=Recoding(problem.method_name, replay=replay, no_replay=why))


# The method of a release whose policy names none: its certificate says which one it was.


def with_stated_method(policy: Policy, released_path: str) -> Policy:
    """The policy; where it names no method, with the one that published the file.

    That is what the certificate beside the file says, if it is about this very file. Where it is
    not, or where a plan was applied, the policy stays as it is.
    """
    beside = None if policy.model.method is not None else certificate_beside(released_path)
    if beside is None:
        return policy
    try:
        certificate = Certificate.parsed(beside, Location(released_path).certificate)
        method = _method_of(certificate, files.table_sha256(released_path))
        if method is None:
            return policy
        stated = policy.with_method(str(method["name"]), method["parameters"])
        stated.build_method("publish")
    except (InputError, OSError):
        return policy  # a method or a parameter that is not known here
    return stated


def _method_of(certificate: Certificate, sha256: str) -> Mapping[str, Any] | None:
    """The method and its parameters, if the certificate is of a publication of these bytes."""
    output, method = certificate.get("output"), certificate.get("method")
    if certificate.get("verb") != "publish" or "plan" in certificate:
        return None
    if not isinstance(output, Mapping) or output.get("sha256") != sha256:
        return None
    if not isinstance(method, Mapping) or not isinstance(method.get("parameters"), Mapping):
        return None
    return method if isinstance(method.get("name"), str) else None
