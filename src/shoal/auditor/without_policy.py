"""Audit without a policy: the columns and the numbers are all that is asked.

Cells are compared as text, and the mark is `*`; what a cell spans is not known, so no loss is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shoal.auditor.checks import K_ANONYMITY, Stated
from shoal.data.certificate import Certificate
from shoal.errors import InputError
from shoal.policy.from_columns import listed, named_twice, promises_of
from shoal.policy.model import PolicyModel
from shoal.policy.parameters import suggestion
from shoal.policy.policy import Policy

SPANS = ("gcp", "generalized_loss")
OF_COLUMNS = ("type", "technique", "loss")


def policy_of_columns(
    quasi: str | Sequence[str],
    k: int,
    *,
    subject: str | Sequence[str] | None = None,
    sensitive: str | Sequence[str] = (),
    l: int | None = None,
    t: float | None = None,
) -> Policy:
    """The policy that these columns and numbers say; raises InputError with every finding.

    l, t: distinct l-diversity and t-closeness with equal distances, of every sensitive column.
    """
    roles = {"quasi": quasi, "sensitive": sensitive, "subject": subject or ()}
    roles = {role: listed(names) for role, names in roles.items()}
    named = [(name, role) for role, names in roles.items() for name in names]
    findings = named_twice(name for name, _ in named)
    if (l is not None or t is not None) and not roles["sensitive"]:
        findings.append("audit: l and t are about sensitive columns; name one as sensitive")
    if not roles["quasi"]:
        findings.append("audit: no quasi-identifier; name the columns that an attacker could know")
    if findings:
        raise InputError.from_findings(findings)
    return _policy(dict(named), promises_of(roles["sensitive"], k, l, t))


def stated_policy(stated: Stated) -> Policy | None:
    """The policy that a certificate's columns and its k-anonymity promises say.

    None where it names no columns. Raises InputError where they say none that could be.
    """
    shown = [column for column in stated.at("columns") or [] if column["technique"] != "removed"]
    roles = {c["name"]: c["role"] for c in shown if c["role"] in ("quasi", "sensitive", "subject")}
    asked = [promise for promise in stated.promises if promise["model"] == K_ANONYMITY]
    if "quasi" not in roles.values() or not asked:
        return None
    promises = [
        {"model": promise["model"], "k": promise["asked"]}
        | ({"attributes": promise["attributes"]} if promise["attributes"] else {})
        for promise in asked
    ]
    mark = stated.at("output", "dialect", "mark") or "*"
    return _policy(roles, promises, render={"suppressed": mark})


def _policy(roles: Mapping[str, str], promises: Sequence[Mapping[str, Any]], **more: Any) -> Policy:
    """The policy of these columns, by role; all others are plain."""
    attributes = {name: {"role": role} for name, role in roles.items()}
    content = {"version": 1, "attributes": attributes, "other": "plain", "promises": promises}
    return replace(Policy.from_dict(content | more), is_made_of_columns=True)


def check_named(names: list[str], model: PolicyModel) -> None:
    """Raises InputError with every column that was named and is not in the release."""
    findings = [
        f"column '{name}': is not in the release; {suggestion(name, names)}name one of its columns"
        for name in model.attributes
        if name not in names
    ]
    InputError.raise_for(findings)


def without_guesses(certificate: Certificate) -> Certificate:
    """The certificate without what nobody said: the policy, and what cells span."""
    columns = [{**column, **dict.fromkeys(OF_COLUMNS)} for column in certificate["columns"]]
    utility = certificate["utility"] | dict.fromkeys(SPANS)
    return certificate.extended(policy=None, columns=columns, utility=utility)
