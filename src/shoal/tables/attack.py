"""Attack a release that its owner made, or had made, with the original at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shoal.attacks.run.accept import unmeasured
from shoal.attacks.run.attack import OTHER_METHOD, Again, AttackedRelease, attack_audited, target
from shoal.attacks.run.earlier import Earlier
from shoal.attacks.run.request import ALL, Asked, AttackRequest, asked_attacks, asked_of
from shoal.auditor.audit import AuditResult, audit_file, audit_table
from shoal.connectors import files
from shoal.connectors.frames import Frame, table_of
from shoal.connectors.outputs import certificate_beside, certificate_path, remove_stale_signature
from shoal.data.attack_scene import Recoding
from shoal.data.certificate import Certificate
from shoal.data.encoding import EncodedTable
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.binding.files import read_original, read_released, table_given
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
    earlier: Sequence[Frame | tuple[Frame, PolicyLike | None]] = (),
    folds: int = 1,
    progress: Progress = no_progress,
) -> Certificate:
    """An audit's certificate of a released frame, with what attacks on it found under `attacks`.

    attacks: names, with parameters if need be (`inference:tolerance=0.1`, or a dict); `all` tries
    every one that has what it needs. control: people who are not in the release; by default some
    are left out of a second release, where the policy names its method. external: a list of people.
    earlier: other releases of the same people, each alone or with a policy of its own. Raises
    InputError where tables, policy and attacks don't fit each other.
    """
    policy = Policy.of(policy)
    request = AttackRequest(
        asked_attacks(attacks),
        None if control is None else table_of(control),
        None if external is None else table_of(external),
        tuple(_with_policy(each, policy) for each in earlier),
        folds,
    )
    asked_of(policy, request)  # what is asked is judged before tables are read
    table, source = table_of(released), table_given(original, policy)
    result = audit_table(table, policy, source, progress)
    return attack_audited(result, table, source, policy, request, publish_again, progress)


def _with_policy(each: Frame | tuple[Frame, PolicyLike | None], policy: Policy) -> Earlier:
    if isinstance(each, tuple):
        table, own = each
        return Earlier(table_of(table), policy if own is None else Policy.of(own))
    return Earlier(table_of(each), policy)


@dataclass(frozen=True)
class AuditedFiles:
    """What an audit reads and writes. output: of the certificate, if it is written."""

    released: str
    original: str | None = None
    output: str | None = None
    downstream: bool = False


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
    if not request.attacks:
        return audit_file(
            paths.released,
            policy,
            paths.original,
            paths.output,
            downstream=paths.downstream,
            progress=progress,
        )
    refuse_whole({"--attack": request.attacks}, paths.released, paths.original)
    result = audit_file(
        paths.released, policy, paths.original, downstream=paths.downstream, progress=progress
    )
    certificate = result.certificate
    if paths.original is None:
        certificate = certificate.extended(attacks={"accept": unmeasured(policy)})
    else:
        released = Table(read_released(paths.released, policy).frame)
        original = Table(read_original(paths.original, policy).frame)
        known = with_stated_method(policy, paths.released)
        certificate = attack_audited(
            result, released, original, known, request, publish_again, progress
        )
    if paths.output is not None:
        with files.atomic_write(paths.output) as draft:
            draft.write_text(certificate.to_json())
        if paths.output != files.STANDARD:
            remove_stale_signature(paths.output)
    return replace(result, certificate=certificate)


def target_of(released: Any, policy: Policy, original: Any) -> AttackedRelease:
    """A released frame as attacks take it."""
    table, source = table_of(released), table_given(original, policy)
    return target(audit_table(table, policy, source), table, source, policy, publish_again)


def publish_again(
    result: AuditResult, original: Table, encoded: EncodedTable, policy: Policy
) -> Again:
    """How to publish a part of the original, and how the method decides about a class alone, where
    the policy names a method for it.
    """
    if policy.model.method is None:
        return Again()
    try:
        policy.build_method("publish")
    except InputError:
        missing = registry.is_missing(policy.method_name)
        return Again(why_not=NOT_INSTALLED if missing else OTHER_METHOD)
    republish = republisher(original, result.schema, encoded, policy)
    if result.truth is None:
        return Again(republish)
    replay, why = replay_of(original, result.schema, encoded, result.truth.rows, policy)
    return Again(republish, Recoding(policy.method_name, replay=replay, no_replay=why))


# The method of a release whose policy names none: its certificate says which one it was.


def with_stated_method(policy: Policy, released_path: str) -> Policy:
    """The same policy; where it names no method, with the one that published the file.

    That is what the certificate beside the file says, if it is about this very file. Where it is
    not, or where a plan was applied, the policy stays as it is.
    """
    beside = None if policy.model.method is not None else certificate_beside(released_path)
    if beside is None:
        return policy
    try:
        certificate = Certificate.parsed(beside, certificate_path(released_path))
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
