"""The policy of a ledger: fixed when it begins, kept in it, the same for every release."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from shoal.auditor.description import FREE, by_content
from shoal.connectors.ledger import HIERARCHIES, POLICY, Ledger, PolicyFiles
from shoal.connectors.ledger.private import Identities
from shoal.data.ledger_view import CARRIED, LOCKSTEP, TOGETHER
from shoal.data.regular_files import readable
from shoal.data.release import is_withheld
from shoal.data.schema import Kind
from shoal.data.table import Table
from shoal.errors import TWICE, InputError
from shoal.policy.binding.files import PolicyTables
from shoal.policy.model import PolicyModel
from shoal.policy.policy import Policy
from shoal.privacy.t_closeness import TABLE

WITH_OPERATIONS = "m-invariance"
"""The method of a ledger whose records leave or change, where its policy names none."""
NO_SUPPRESSION = "can't suppress records; declare 'missing: value' or 'reject'"


def check_policy(policy: Policy, method: Any) -> None:
    """Raises InputError with everything that makes a policy unfit for a ledger."""
    findings = [
        f"attribute '{name}': a series of releases needs one fixed domain; declare 'domain: [least,"
        " greatest]'"
        for name, a in policy.model.attributes.items()
        if a.role == "quasi" and a.kind is Kind.NUMBER and a.domain is None and a.hierarchy is None
    ]
    findings += [
        f"attribute '{name}': an order that follows the data differs between releases; list its"
        " labels"
        for name, a in policy.model.attributes.items()
        if a.role == "quasi" and isinstance(a.order, str)
    ]
    if method.covers == "table":
        findings += [
            f"attribute '{name}': its hierarchy is made from the data, so cells of two releases"
            f" can't be compared; '{method.name}' takes a hierarchy table, 'tree' or 'order'"
            for name, a in policy.model.attributes.items()
            if a.role == "quasi" and a.follows_the_data and not isinstance(a.order, str)
        ]
    if (
        method.needs == "boxes" or method.guards == "signatures"
    ) and policy.model.missing == "suppress":
        findings.append(f"method '{method.name}': {NO_SUPPRESSION}")
    if policy.operation is not None and policy.subject is None:
        findings.append(
            "policy: 'operation' needs a 'subject', by which the person who leaves or changes is"
            " found"
        )
    if method.covers == "table" and any(
        a.pseudonym is not None for a in policy.model.attributes.values()
    ):
        findings.append(
            f"method '{method.name}': a pseudonym would link the rows of two releases; publish"
            " increments, or drop it"
        )
    if method.guards == "signatures":
        findings += _unfit_for_signatures(policy.model)
    if returns_people(method):
        findings += _unfit_for_returning(policy.model, method, compared(policy.build_promises()))
    InputError.raise_for(findings)


def _unfit_for_signatures(model: PolicyModel) -> list[str]:
    """Why sets of sensitive values can't guard a ledger."""
    roles, findings = {attribute.role for attribute in model.attributes.values()}, []
    if len(model.sensitive) != 1:
        findings.append(
            "policy: signatures need exactly one sensitive attribute; give the others the role"
            " 'drop'"
        )
    if "plain" in roles or model.other == "plain":
        findings.append(
            "policy: a plain column would show which rows are invented; give it the role 'drop'"
        )
    if "subject" not in roles:
        findings.append(
            "policy: signatures need a subject, by which a person is recognized in later releases"
        )
    return findings


def policy_files(tables: PolicyTables) -> PolicyFiles:
    """The policy as JSON text, and the hierarchy tables that it then refers to by name."""
    content = tables.model.model_dump(mode="json", exclude_unset=True)
    read: dict[str, bytes] = {}
    for attribute in content["attributes"].values():
        if isinstance(attribute.get("hierarchy"), str):
            path = tables.base / attribute["hierarchy"]
            name = f"{HIERARCHIES}/{len(read) + 1:02d}-{path.name}"
            with readable(f"hierarchy '{path}'"):
                read[name] = path.read_bytes()
            attribute["hierarchy"] = name
    text = json.dumps({key: content[key] for key in content if key not in FREE}, indent=1) + "\n"
    return PolicyFiles({POLICY: text.encode(), **read})


def policy_of(ledger: Ledger, k: int | None = None) -> Policy:
    """The policy that a ledger was begun under, with another k where one is asked for."""
    policy = Policy.load(ledger.path / POLICY)
    return policy if k is None else policy.with_k(k)


def check_same(tables: PolicyTables, ledger: Ledger) -> None:
    """Raises InputError with everything in which a policy differs from the ledger's own."""
    given, own = _fixed(tables), _fixed(policy_of(ledger).tables)
    differing = _differing(given, own)
    if "attributes" in differing:
        differing.remove("attributes")
        names = _differing(given["attributes"], own["attributes"])
        differing += [f"attribute '{name}'" for name in names]
    added = _operations(given) - _operations(own)
    if added:
        raise InputError(
            f"ledger '{ledger.path}': was begun without the operation column '{min(added)}', so it"
            " takes no updates or deletions; leave the column and these records out and use its own"
            f" policy, {ledger.path / POLICY}, or begin another ledger by m-invariance: {TWICE}"
        )
    if differing:
        raise InputError(
            f"ledger '{ledger.path}': was begun under a policy that differs in"
            f" {', '.join(differing)}; use the ledger's own, {ledger.path / POLICY}. Another ledger"
            f" begins anew: {TWICE}"
        )


def _operations(content: Mapping[str, Any]) -> set[str]:
    attributes = content["attributes"].items()
    return {name for name, attribute in attributes if attribute["role"] == "operation"}


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    return [key for key in sorted({*one, *other}) if one.get(key) != other.get(key)]


def _fixed(tables: PolicyTables) -> Mapping[str, Any]:
    """What must not differ, hierarchies by what their tables hold."""
    content = tables.model.model_dump(mode="json")
    for attribute in content["attributes"].values():
        by_content(attribute, "hierarchy", tables.base)
    return {key: value for key, value in content.items() if key not in FREE}


# People who come again


def returns_people(method: Any) -> bool:
    """Whether a method publishes people again who are in earlier releases."""
    return bool(getattr(method, "returns", False))


def mode_of(model: PolicyModel) -> str:
    """How groups are published while somebody is absent, by what values do over time."""
    said = {model.attributes[name].over_time or "any" for name in model.sensitive}
    if said == {"fresh"}:
        return TOGETHER
    return CARRIED if said == {"steady"} else LOCKSTEP


def _unfit_for_returning(model: PolicyModel, method: Any, compared: Sequence[str]) -> list[str]:
    """What keeps people from being published again. compared: as the function of that name says."""
    mode = mode_of(model)
    is_plain = model.other == "plain" or any(a.role == "plain" for a in model.attributes.values())
    has_pseudonym = any(a.pseudonym is not None for a in model.attributes.values())
    unfit = [
        (
            not model.subject_columns,
            "needs a subject, by which people are recognized; give one column the role 'subject'",
        ),
        (model.missing == "suppress", NO_SUPPRESSION),
        (
            model.render.order == "input",
            "rows in the input's order would show who is who from release to release; leave out"
            " 'order' of 'render'",
        ),
        (has_pseudonym, "a pseudonym would link the rows of a person; drop it"),
        (
            bool(compared),
            "'reference: table' would count people once for each release; leave it out",
        ),
        (
            is_plain and mode != LOCKSTEP,
            "the policy can't say how plain columns change over time, so no member may be absent;"
            " give them the role 'sensitive' with 'over_time', or 'drop'",
        ),
    ]
    return [f"method '{method.name}': {why}" for is_so, why in unfit if is_so]


# How many people have each sensitive value in the published table of a ledger.
#
# For promises that compare a class with the whole table.


Values = Mapping[str, Counter[str]]
"""By attribute, how many people each text counts."""


def compared(promises: Iterable[Any]) -> tuple[str, ...]:
    """The sensitive attributes that some promise compares with the whole table."""
    asked = [model for model in promises if getattr(model, "reference", None) == TABLE]
    return tuple(sorted({name for model in asked for name in model.attributes}))


def values_of(
    frame: pl.DataFrame, identities: Identities, model: PolicyModel, names: Sequence[str]
) -> Values:
    """The values of one release in these columns, without withheld records.

    A person counts once for each value, where the person is known.
    """
    if not names:
        return {}
    kept = _in_a_class(frame, model)
    people = pl.arange(frame.height, eager=True)
    if identities.subjects is not None:
        people = pl.Series(identities.subjects)
    counts = {}
    for name in names:
        values = frame[name].cast(pl.String).fill_null("")
        pairs = pl.DataFrame({"value": values, "person": people}).filter(kept).unique()
        counts[name] = Counter(dict(pairs.group_by("value").len().iter_rows()))
    return counts


def _in_a_class(frame: pl.DataFrame, model: PolicyModel) -> pl.Series:
    """The rows that are not withheld, bool."""
    mark = model.render.suppressed
    everywhere = pl.all_horizontal((pl.col(model.quasi).cast(pl.String) == mark).fill_null(False))
    starred = frame.select(everywhere).to_series()
    if is_withheld(Table(frame), model.sensitive, starred.to_numpy(), mark):
        return ~starred
    return pl.repeat(True, frame.height, eager=True)


def joined(table: Values, more: Values) -> Values:
    """The values of two parts of a table that share no people."""
    return {name: table[name] + more[name] for name in table}
