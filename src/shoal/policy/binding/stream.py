"""The schema of a stream, which must be known before its first record."""

from __future__ import annotations

from shoal.data.schema import Kind, Schema
from shoal.policy.binding.attributes import bind_attributes
from shoal.policy.binding.columns import check_columns
from shoal.policy.policy import Policy


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
