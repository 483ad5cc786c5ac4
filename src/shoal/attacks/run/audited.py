"""Attack a release that was audited with its original."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from shoal.attacks.run.attack import NOT_KNOWN, AttackedRelease, attacked, with_attacks
from shoal.attacks.run.control import Republish
from shoal.attacks.run.request import AttackRequest, asked_of
from shoal.auditor.audit import AuditResult
from shoal.data.attack_scene import Recoding
from shoal.data.certificate import Certificate
from shoal.data.encoding import EncodedTable, encode
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.binding.table import bind_original
from shoal.policy.policy import Policy

OTHER_METHOD = "the policy's method does not publish one table, so nothing is published again"


@dataclass(frozen=True)
class Again:
    """What only the method of a release knows: how to publish some rows as the release was, and
    how it decides about a class alone. why_not: why nothing is published again, where nothing is.
    """

    republish: Republish | None = None
    recoding: Recoding = field(default_factory=Recoding)
    why_not: str = NOT_KNOWN


PublishAgain = Callable[[AuditResult, Table, EncodedTable, Policy], Again]


def never_again(
    result: AuditResult, original: Table, encoded: EncodedTable, policy: Policy
) -> Again:
    """For releases that are not made a second time, as those of streams."""
    return Again(why_not=NOT_KNOWN if policy.model.method is None else OTHER_METHOD)


def attack_audited(
    result: AuditResult,
    released: Table,
    original: Table,
    policy: Policy,
    request: AttackRequest,
    again: PublishAgain,
    progress: Progress = no_progress,
) -> Certificate:
    """The certificate of an audited release, with its attacks and the policy's thresholds."""
    request = asked_of(policy, request)
    found = attacked(target(result, released, original, policy, again), policy, request, progress)
    return with_attacks(result.certificate, found)


def target(
    result: AuditResult, released: Table, original: Table, policy: Policy, again: PublishAgain
) -> AttackedRelease:
    """An audited release as attacks take it. again: how some of its rows are published again."""
    truth = result.truth
    encoded = _encoded(original, policy) if truth is None else truth.encoded
    made = again(result, original, encoded, policy)
    return AttackedRelease(
        released,
        result.release,
        result.schema,
        original,
        encoded,
        truth,
        made.republish,
        made.recoding,
        made.why_not,
    )


def _encoded(original: Table, policy: Policy) -> EncodedTable:
    """The original, of which nobody knows which record of the release is whose."""
    schema, findings = bind_original(original, policy)
    encoded, unfit = (None, findings) if schema is None else encode(original, schema)
    if encoded is None:
        raise InputError.from_findings([f"original: {finding}" for finding in unfit])
    return encoded
