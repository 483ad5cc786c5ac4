"""Check: the doctor for policies and hierarchies, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from shoal.auditor.findings import of_cells
from shoal.auditor.ledger import terms
from shoal.connectors.frames import Frame
from shoal.data.findings import AttributeFinding, Fault
from shoal.data.hierarchies.diagnostics import diagnose, values_without_leaf
from shoal.data.hierarchies.table import read_paths
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.binding.columns import check_columns, input_warnings
from shoal.policy.binding.files import PolicyTables
from shoal.policy.binding.table import bind
from shoal.policy.consistency import contradictions, place_of
from shoal.policy.loading import read_mapping
from shoal.policy.model import PolicyModel
from shoal.policy.policy import Policy, PolicyLike
from shoal.privacy.promises import nearest_feasible
from shoal.streams.core import StreamCore


def check_files(
    path: Path, data_path: str | None, read: Mapping[str, Any] | None = None
) -> list[AttributeFinding]:
    """Every finding about a policy and its data, if given; values apart from messages.

    read: overrides the policy's block of this name. A policy that is refused is compared with the
    data all the same, as far as it goes.
    """
    try:
        policy: Policy | None = Policy.load(path).with_files(read or {}, {})
        found = []
    except InputError as refused:
        found = refused.said
        policy, more = _left_of(path, read)
        found += more
    if policy is None:
        return _plain(found)
    rest = _findings_by_name if found else _findings
    if not found:
        found = _method_findings(policy)
    table = None
    if data_path is not None:
        try:
            table = policy.tables.read_original(data_path).table
        except InputError as unfit:
            found += unfit.said
    return _once([*_plain(found), *rest(policy, table)])


def _left_of(path: Path, read: Mapping[str, Any] | None) -> tuple[Policy | None, list[str]]:
    """What is left of a policy that is refused, and what else is wrong with it."""
    try:
        content = read_mapping(path)
    except InputError:
        return None, []
    block = content.get("read")
    if read:
        content["read"] = {**(block if isinstance(block, Mapping) else {}), **read}
    model, is_whole = sound_part(content)
    if model is None:
        return None, []
    return Policy(model, path.parent), list(contradictions(model)) if is_whole else []


def remarks(policy: Policy, data_path: str) -> list[str]:
    """What a sound policy's data give reason to say before anything is published."""
    table = policy.tables.read_original(data_path).table
    return [one.text for one in (*input_warnings(table, policy.model), *of_cells(table, policy))]


def check(policy: PolicyLike, frame: Frame | None = None) -> list[AttributeFinding]:
    """Every finding about columns, hierarchies, values, numbers, domains, people and promises.

    Empty where the policy is sound and, if given, fits the frame. Raises InputError for what is not
    a policy.
    """
    policy = Policy.of(policy)
    table = None if frame is None else policy.tables.read_original(frame).table
    return _once([*_plain(_method_findings(policy)), *_findings(policy, table)])


def _method_findings(policy: Policy) -> list[str]:
    """Why the method does not fit the policy, whichever verb it serves."""
    verb = registry.verb_of(policy.method_name) or "publish"
    try:
        method = policy.build_method(verb)
        if verb == "republish":
            terms.check_policy(policy, method)
    except InputError as unfit:
        return unfit.said
    return []


def _stream_findings(policy: Policy, table: Table) -> list[str]:
    """What a stream of such records would be refused for, the table being its reference."""
    if registry.verb_of(policy.method_name) != "stream":
        return []
    try:
        StreamCore(policy, table.names, table)
    except InputError as unfit:
        return unfit.said
    return []


def _findings(policy: Policy, table: Table | None) -> list[AttributeFinding]:
    findings = _findings_by_name(policy, table)
    # columns and attributes that do not match can't be bound
    if table is None or any(finding.message.startswith("column") for finding in findings):
        return findings
    while True:
        faulty = _attributes_of(findings, policy)
        if faulty:
            rest = _without(policy, table, faulty)
            if rest is None:
                return findings
            policy, table = rest
        findings += _bound_findings(policy, table)
        if not _attributes_of(findings, policy):
            return findings


def _findings_by_name(policy: Policy, table: Table | None) -> list[AttributeFinding]:
    """What can be said without binding the policy to the table."""
    findings = _plain(policy.open_questions())
    findings += _plain([] if table is None else check_columns(table.names, policy.tables))
    findings += _table_findings(policy.tables)
    if table is not None:
        findings += _maker_findings(policy.model, table)
    return findings


def _bound_findings(policy: Policy, table: Table) -> list[AttributeFinding]:
    """What binding shows, and whether one class of all records keeps the promises."""
    bound, wrong = bind(table, policy)
    if bound is None:
        return _plain(wrong)
    _, whole_table = bound.method_input()
    people = {name: len(codes) for name, codes in bound.populations.items()}
    return _plain(
        nearest_feasible(policy.build_promises(), whole_table, people)
        + _stream_findings(policy, table)
    )


def _attributes_of(findings: Sequence[AttributeFinding], policy: Policy) -> set[str]:
    """The attributes of the policy that findings other than open questions are about."""
    asked = set(policy.open_questions())
    said = [finding for finding in findings if finding.message not in asked]
    return {
        name
        for name in policy.model.attributes
        if any(f.attribute == name or f.message.startswith(f"attribute '{name}':") for f in said)
    }


def _without(policy: Policy, table: Table, faulty: set[str]) -> tuple[Policy, Table] | None:
    """A policy and a table without some attributes, so that what is wrong elsewhere shows, too;
    None where no policy is left.
    """
    content = policy.model.model_dump(exclude_unset=True)
    content["attributes"] = {n: a for n, a in content["attributes"].items() if n not in faulty}
    content["promises"] = [
        promise
        for promise in content["promises"]
        if not faulty & {promise.get("attribute"), *(promise.get("attributes") or [])}
    ]
    people = {policy.subject, *policy.model.subject_columns}
    for key in ("label", "accept", *(["subject"] if faulty & people else [])):
        content.pop(key, None)
    try:
        rest = Policy.from_dict(content, policy.base)
    except InputError:
        return None
    return rest, Table(table.frame.drop(faulty & set(table.frame.columns)))


def _table_findings(tables: PolicyTables) -> list[AttributeFinding]:
    """What is wrong with the hierarchy files themselves."""
    findings: list[AttributeFinding] = []
    for name, attribute in tables.model.attributes.items():
        if isinstance(attribute.hierarchy, str):
            try:
                findings += diagnose(read_paths(tables.base / attribute.hierarchy, name), name)
            except InputError as unfit:
                findings += _plain(unfit.said)
    return findings


def _maker_findings(model: PolicyModel, table: Table) -> list[AttributeFinding]:
    """Values that the rule of a made hierarchy has no place for."""
    findings: list[AttributeFinding] = []
    for name, attribute in model.attributes.items():
        if isinstance(attribute.hierarchy, dict) and name in table.names:
            ((kind, argument),) = attribute.hierarchy.items()
            column = table.column(name)
            present = [i for i, cell in enumerate(column.cells) if model.is_value(cell)]
            values = np.array([column.cells[i] for i in present], dtype=object)
            try:
                findings += values_without_leaf(
                    registry.makers()[kind].from_spec(argument),
                    name,
                    values,
                    column.counts()[present],
                )
            except InputError as unfit:
                findings += _plain([f"attribute '{name}': {text}" for text in unfit.said])
    return findings


def _plain(findings: Sequence[AttributeFinding | str]) -> list[AttributeFinding]:
    """Messages as findings about the policy; findings as they are."""
    return [
        AttributeFinding(Fault.POLICY, "", 1, one) if isinstance(one, str) else one
        for one in findings
    ]


def _once(findings: Sequence[AttributeFinding]) -> list[AttributeFinding]:
    """Each message once, in order; those with values first, where they say the same."""
    kept: dict[str, AttributeFinding] = {}
    for finding in findings:
        known = kept.get(finding.message)
        if known is None or (finding.values and not known.values):
            kept[finding.message] = finding
    return list(kept.values())


# What is left of a policy that its checker refuses, so that a check can go on and list more.
#
# Only for listing findings: nothing is ever published by what is left.


_ROUNDS = 5  # what is taken out may uncover more
_STAND_INS: Mapping[str, Any] = {
    "version": 1,
    "role": "plain",
    "promises": [{"model": "k-anonymity", "k": 2}],
}


def sound_part(content: Mapping[str, Any]) -> tuple[PolicyModel | None, bool]:
    """The policy without what is refused, None where nothing is left; and whether only keys that
    are unknown are missing from it, so that all else still means what was meant.
    """
    left, is_whole = deepcopy(dict(content)), True
    for _ in range(_ROUNDS):
        try:
            return PolicyModel.model_validate(left), is_whole
        except ValidationError as invalid:
            errors = invalid.errors()
            is_whole &= all(error["type"] == "extra_forbidden" for error in errors)
            # the last items of lists first, so that the others keep their numbers
            places = {place_of(error, left) for error in errors}
            for place in sorted(places, key=lambda place: [str(part) for part in place])[::-1]:
                _take_out(left, place)
    return None, False


def _take_out(content: Any, place: tuple[str | int, ...]) -> None:
    """Removes what stands at a place, or puts something sound where there must be something."""
    if not place:
        return
    *above, last = place
    for part in above:
        try:
            content = content[part]
        except (KeyError, IndexError, TypeError):
            return  # already gone
    if isinstance(content, list) and isinstance(last, int):
        del content[last : last + 1]
    elif isinstance(content, dict) and last in _STAND_INS:
        content[str(last)] = deepcopy(_STAND_INS[str(last)])
    elif isinstance(content, dict):
        removed = content.pop(last, None)
        if above == ["attributes"] and removed is not None:  # its column is still named
            content[last] = {"role": _STAND_INS["role"]}
