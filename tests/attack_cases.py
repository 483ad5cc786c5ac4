"""Small releases whose attacks can be worked out by hand."""

from typing import Any

import polars as pl

from shoal.attacks.run.attack import scene_of
from shoal.attacks.run.people import AttackedRelease, ground_of
from shoal.attacks.run.request import AttackRequest
from shoal.auditor.audit import audit_table
from shoal.data.table import Table
from shoal.policy.policy import Policy
from shoal.tables.attack import attack, published_again


def policy_of(attributes: dict[str, Any], k: int = 2, **more: Any) -> Policy:
    """A policy of these attributes under k-anonymity."""
    promises = [{"model": "k-anonymity", "k": k}]
    content = {"version": 1, "attributes": attributes, "promises": promises, "seed": 1}
    return Policy.from_dict(content | {"render": {"order": "input"}} | more)


AGE = {"role": "quasi", "domain": [0, 10]}
SIX = policy_of({"age": AGE, "d": {"role": "sensitive"}}, 3)
ORIGINAL = pl.DataFrame({"age": [1, 2, 3, 6, 6, 9], "d": list("aabacc")})
RELEASED = pl.DataFrame({"age": ["[1, 3]"] * 3 + ["[6, 9]"] * 3, "d": list("aabacc")})


def attacked(released: pl.DataFrame, policy: Policy, original: pl.DataFrame, *names: Any, **more):
    """What these attacks find."""
    return attack(released, policy, original, names or "all", **more)["attacks"]


def six(*names: Any, **more: Any) -> dict[str, Any]:
    """What attacks find on the six people."""
    return attacked(RELEASED, SIX, ORIGINAL, *names, **more)


def scene(released: pl.DataFrame = RELEASED, original: pl.DataFrame = ORIGINAL):
    """What attacks on the six people are given, or on others of their policy."""
    table, source = Table(released), Table(original)
    result = audit_table(table, SIX, source)
    target = published_again(AttackedRelease.of_audited(result, table, source, SIX))
    return scene_of(ground_of(target, AttackRequest()), AttackRequest(), [])
