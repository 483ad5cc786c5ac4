"""The schema of a released file, whether its original is at hand or not."""

from __future__ import annotations

import re

from shoal.data.schema import Kind, Schema
from shoal.data.table import Table
from shoal.policy.binding.columns import check_columns
from shoal.policy.binding.table import bind_attributes
from shoal.policy.policy import Policy

PSEUDONYM = re.compile(r"[0-9a-f]{32}")


def bind_release(released: Table, policy: Policy) -> tuple[Schema | None, list[str]]:
    """The schema of a released file whose original is not at hand, or every finding.

    What only the original could tell stays open: a number without a declared domain has none, an
    order or hierarchy that follows the data is None. Where the policy names a reference, it tells
    the order of sensitive values, as it did when the stream was published.
    """
    findings = check_columns(released.names, policy, released=True)
    if findings:
        return None, findings
    declared = policy.model.attributes
    # sensitive values are published as they were, so they tell what follows them
    as_they_were = {name for name, a in declared.items() if a.role == "sensitive"}
    opaque = {name for name, a in declared.items() if a.follows_the_data} - as_they_were
    columns = []
    for name in released.names:
        shown = released
        if (reference := policy.reference_table) is not None and name in reference.names:
            shown = reference
        columns.append((name, shown.column(name) if name in as_they_were else None))
    return bind_attributes(columns, policy, frozenset(opaque))


def unremoved_identifiers(released: Table, original: Table | None, policy: Policy) -> list[str]:
    """Columns of a release that the policy removes, or names instead of giving pseudonyms.

    A subject column is left out of account: releases that still hold it are counted in people.
    """
    kept = []
    if policy.model.other == "drop":
        kept = [name for name in released.names if name not in policy.model.attributes]
    for name, attribute in policy.model.attributes.items():
        if name not in released.names:
            continue
        if attribute.pseudonym is not None:
            given = set(released.column(name).cells)
            named = not all(PSEUDONYM.fullmatch(cell) for cell in given)
            if named or (original is not None and given & set(original.column(name).cells)):
                kept.append(name)
        elif attribute.role in ("identifier", "drop", "time", "operation"):
            kept.append(name)
    return kept


# The schema of a stream, which must be known before its first record.


def bind_stream(names: list[str], policy: Policy) -> tuple[Schema | None, list[str]]:
    """The schema of a stream with these columns, or every finding."""
    findings = check_columns(names, policy)
    if findings:
        return None, findings
    open_questions = {name: _unknown_beforehand(name, policy) for name in names}
    known = [(name, None) for name, unknown in open_questions.items() if not unknown]
    schema, wrong = bind_attributes(known, policy)
    findings = [finding for unknown in open_questions.values() for finding in unknown] + wrong
    return (None if findings else schema), findings


def _unknown_beforehand(name: str, policy: Policy) -> list[str]:
    """What only the end of the stream would tell: domains and hierarchies that follow the data."""
    declared = policy.model.attributes.get(name)
    if declared is None or declared.role not in ("quasi", "sensitive"):
        return []
    before = f"attribute '{name}': a stream must know"
    if declared.follows_the_data:
        return [
            f"{before} every value before the first record; give a hierarchy table, a 'tree' or"
            " an 'order'"
        ]
    if declared.role == "quasi" and declared.hierarchy is None:
        if declared.kind is Kind.NUMBER and declared.domain is None:
            return [f"{before} its least and greatest value; declare its 'domain'"]
        if declared.kind is Kind.CATEGORY:
            return [
                f"{before} its values; give a hierarchy table, or list them: 'hierarchy:"
                " {tree: [...]}'"
            ]
    return []
