"""The columns of a release, one by one: what each is for, what became of it, what it cost.

Published ones come first, in their order; the removed ones follow.
"""

from __future__ import annotations

from typing import Any

from shoal.data.schema import Attribute, Kind, Role, Schema, Shown
from shoal.data.table import Table
from shoal.policy.binding.notation import derived_columns
from shoal.policy.policy import Policy
from shoal.utility.gcp import ColumnFigures

REMOVED = "removed"
DERIVED = "derived"
NUMBERS = {Shown.RANGE: "interval", Shown.MEAN: "mean", Shown.BOTH: "mean-and-interval"}
UNKNOWN = {
    "distinct_in": None,
    "distinct_out": None,
    "loss": None,
    "single_ends": None,
    "alone_in": None,
    "derived_from": None,
}


def measured_columns(
    released: Table, figures: ColumnFigures, schema: Schema, policy: Policy, original: Table | None
) -> list[dict[str, Any]]:
    """Every column with what was measured on it; null for what needs the original."""
    columns = column_roles(released.names, schema, policy)
    for column in columns:
        if column["technique"] == REMOVED:
            continue
        name = column["name"]
        column["distinct_out"] = released.distinct(name)
        column["loss"] = figures.losses.get(name)
        if original is not None and name in original:
            column["distinct_in"], column["alone_in"] = original.distinct_and_alone(name)
    for column in columns:
        column["single_ends"] = figures.single_ends.get(column["name"])
    return with_derived(columns, policy)


def with_derived(columns: list[dict[str, Any]], policy: Policy) -> list[dict[str, Any]]:
    """The columns, each followed by those that its cells were turned into."""
    return [one for column in columns for one in (column, *_derived(column, policy))]


def _derived(column: dict[str, Any], policy: Policy) -> list[dict[str, Any]]:
    if column["technique"] == REMOVED:
        return []
    return [
        dict.fromkeys(column)
        | {
            "name": derived.name,
            "role": DERIVED,
            "type": derived.kind,
            "technique": DERIVED,
            "derived_from": derived.source,
        }
        for derived in derived_columns(policy)
        if derived.source == column["name"]
    ]


def column_roles(published: list[str], schema: Schema, policy: Policy) -> list[dict[str, Any]]:
    """Every column with its role and technique alone."""
    known = {attribute.name: attribute for attribute in schema.attributes}
    shown = (*published, policy.model.person)
    removed = [name for name in (*known, *policy.model.attributes) if name not in shown]
    return [
        *(_stated(name, known.get(name), policy, is_published=True) for name in published),
        *(
            _stated(name, known.get(name), policy, is_published=False)
            for name in dict.fromkeys(removed)
        ),
    ]


def _stated(
    name: str, attribute: Attribute | None, policy: Policy, *, is_published: bool
) -> dict[str, Any]:
    declared = policy.model.attributes.get(name)
    role = policy.model.other if declared is None else declared.role
    if name in policy.model.subject_columns:
        role = "subject"
    has_type = role in ("quasi", "sensitive") and attribute is not None
    return {
        "name": name,
        "role": role,
        "type": str(attribute.kind) if has_type and attribute is not None else None,
        "technique": _technique(attribute, policy) if is_published else REMOVED,
        "round": attribute.round if is_published and attribute is not None else None,
        **UNKNOWN,
    }


def _technique(attribute: Attribute | None, policy: Policy) -> str:
    """How the published cells of a column came about."""
    if attribute is None:
        return "as-is"
    if attribute.role is Role.IDENTIFIER and attribute.pseudonym is not None:
        return "pseudonym"
    if attribute.role is not Role.QUASI or policy.is_in_two_tables:
        return "as-is"
    if policy.model.attributes[attribute.name].hierarchy is not None:
        return "node"
    if attribute.kind is Kind.NUMBER:
        return NUMBERS[attribute.shown]
    return "span" if attribute.kind is Kind.ORDINAL else "value-or-nothing"
