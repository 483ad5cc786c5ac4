"""Risk: how many people of a table are alone, and what each column gives away."""

from __future__ import annotations

from shoal.advise.source import Source, read_source
from shoal.data.progress import Progress, no_progress
from shoal.policy.binding.known_values import known_values
from shoal.policy.policy import Policy, PolicyLike
from shoal.privacy.table_risk import Risk, table_risk


def risk(source: Source, policy: PolicyLike, *, progress: Progress = no_progress) -> Risk:
    """Who hides among how many in a table, by the quasi-identifiers of a policy.

    source: a file's path or a frame. Counted in people where the policy has a subject. Hierarchies
    need not fit yet, and questions may be open. Raises InputError where the columns don't fit.
    """
    policy = Policy.of(policy)
    known = known_values(read_source(source, policy, progress), policy)
    return table_risk(known.quasi, known.plain, known.people, policy.required_k, progress)
