"""Attack a release that its owner made, or had made, with the original at hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shoal.attacks.beside.audit import ReleaseBeside, audit_together
from shoal.attacks.beside.others import Audited, OtherRelease, Others, OthersLike, audited
from shoal.attacks.run.attack import attacked
from shoal.attacks.run.people import OTHER_METHOD, AttackedRelease
from shoal.attacks.run.request import ALL, Asked, AttackRequest, asked_attacks, asked_of, unmeasured
from shoal.auditor.audit import AuditResult, own_certificate, write_certificate
from shoal.auditor.verdict import Publication
from shoal.connectors.traces import read_trace
from shoal.data.attack_scene import Recoding
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress, no_progress, watched
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.binding.files import Source
from shoal.policy.binding.past_memory import refuse_whole
from shoal.policy.policy import Policy, PolicyLike
from shoal.tables.second_release import NOT_INSTALLED, replay_of, republisher


def attack(
    released: Source | Publication[Any],
    policy: PolicyLike | None = None,
    original: Source | None = None,
    attacks: Asked = ALL,
    *,
    control: Source | None = None,
    external: Source | None = None,
    others: OthersLike | None = None,
    folds: int = 1,
    trace: str | Path | ArrayLike | None = None,
    progress: Progress | bool = False,
) -> Certificate:
    """An audit's certificate of a release, with what attacks on it found under `attacks`.

    released: a frame or a file, or a publication, which brings its policy, its method and its
    trace. Every other table is a frame or a file, too.

    attacks: names, with parameters if need be (`inference:tolerance=0.1`, or a dict); `all` tries
    every one that has what it needs. control: people who are not in the release; by default some
    are left out of a second release, where the policy names its method. external: a list of people.
    others: other releases of the same people, as of `shoal.audit`. trace: as of `shoal.audit`; of a
    stream the file that its `--trace` wrote, with the records in the order in which they were read.
    Raises InputError where tables, policy and attacks don't fit each other.
    """
    if isinstance(released, Publication):
        policy = Policy.of(released.policy if policy is None else policy)
        if policy.model.method is None:
            policy = policy.with_method(released.certificate["method"]["name"])
        trace, released = released.trace if trace is None else trace, released.data
    if policy is None or original is None:
        what = "policy" if policy is None else "original"
        raise InputError(f"attack: needs the {what} of the release; give it")
    policy, progress = Policy.of(policy), watched(progress)
    outside, listed = (
        None if given is None else policy.tables.people_beside(given, what)
        for given, what in ((control, "control"), (external, "external"))
    )
    request = AttackRequest(asked_attacks(attacks), outside, listed, folds=folds)
    request = asked_of(policy, request)
    if others is not None:
        request = Others.of(others).attacking(policy, request)
    own = OtherRelease(release=released, policy=policy, original=original, trace=trace)
    return _attacked(audited(own, policy, progress), request, progress)


def attack_file(
    own: OtherRelease,
    request: AttackRequest,
    progress: Progress = no_progress,
    *,
    others: Others | None = None,
    output: str | None = None,
    downstream: bool = False,
) -> AuditResult:
    """The audit of a file, with the attacks that are asked for, or that the policy asks for, and
    with what it gives away beside others.

    output: of the certificate, if it is written. Without the original no attack can be tried: what
    the policy accepts then stays open.
    """
    policy = Policy.of(own.policy)
    request = asked_of(policy, request)
    releases: list[ReleaseBeside] = []
    if others is not None:
        releases, request = others.read(policy, request, progress)
    if request.attacks and not own.is_stream:
        refuse_whole({"an attack": request.attacks}, own.release, own.original)
    found = audited(own, policy, progress, downstream)
    certificate = found.result.certificate
    if request.attacks:
        certificate = _attacked(found, request, progress)
    if others is not None and releases:
        beside = audit_together([found.beside("released"), *releases], others, progress)
        certificate = certificate.extended(beside=beside)
    if output is not None:
        write_certificate(certificate, output)
    return replace(found.result, certificate=certificate)


def _attacked(found: Audited, request: AttackRequest, progress: Progress) -> Certificate:
    """The certificate of a release with what attacks on it find."""
    result, own, policy = found.result, found.named, found.policy
    if own.original is None:
        accept = unmeasured(policy.model.accept)
        return result.certificate.extended(attacks={"accept": accept})
    if own.is_file and not own.is_stream:
        policy = with_stated_method(policy, str(own.release))
    target = AttackedRelease.of_audited(result, found.table, found.original, policy)
    if own.is_stream:  # other streams have their records by their places among those it took
        taken = np.sort(read_trace(str(own.trace))["seq"].to_numpy())
        request = replace(request, earlier=tuple(each.among(taken) for each in request.earlier))
    else:
        target = published_again(target)
    return attacked(result.certificate, target, request, progress)


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
    if policy.model.method is not None:
        return policy
    try:
        certificate = own_certificate(released_path)
        if certificate is None or certificate["verb"] != "publish" or "plan" in certificate:
            return policy
        method = certificate["method"]
        stated = policy.with_method(method["name"], method["parameters"])
        stated.build_method("publish")
    except (InputError, KeyError, OSError):
        return policy  # a method or a parameter that is not known here
    return stated
