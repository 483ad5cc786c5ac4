"""Attack what is about to be published, before it takes its place."""

from __future__ import annotations

from dataclasses import replace

from shoal.attacks.run.request import AttackRequest
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress
from shoal.data.release import Release
from shoal.data.table import Table
from shoal.policy.policy import Policy
from shoal.tables.draft import RecodedDraft


def attack_draft(
    certificate: Certificate,
    published: Table,
    release: Release,
    draft: RecodedDraft,
    policy: Policy,
    request: AttackRequest,
    progress: Progress,
) -> Certificate:
    """The certificate with what the attacks found that are asked for."""
    # most releases are not attacked, and all attacks are imported with these
    from shoal.attacks.run.attack import AttackedRelease, attacked, with_attacks
    from shoal.data.attack_scene import Recoding
    from shoal.tables.second_release import republisher
    from shoal.tables.whole import replay_of

    truth = draft.truth
    applied_plan = "plan" in draft.certificate_extras
    own = policy.with_default_method(draft.schema, truth.encoded)
    republish = republisher(truth.original, draft.schema, truth.encoded, own)
    made = Recoding.of(draft.method, truth.encoded.records)
    if not applied_plan:
        replay, why = replay_of(truth.original, draft.schema, truth.encoded, truth.rows, own)
        made = replace(made, replay=replay, no_replay=why)
    target = AttackedRelease(
        published,
        release,
        draft.schema,
        truth.original,
        truth.encoded,
        truth,
        None if applied_plan else republish,
        made,
    )
    return with_attacks(certificate, attacked(target, policy, request, progress))
