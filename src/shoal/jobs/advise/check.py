"""Check: the doctor for policies and hierarchies, before anything runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shoal.binding.columns import check_columns
from shoal.binding.files import original_table, read_original
from shoal.binding.table import bind
from shoal.connectors.frames import Frame, table_of
from shoal.data.findings import AttributeFinding, Fault
from shoal.data.hierarchies.diagnostics import diagnose, values_without_leaf
from shoal.data.hierarchies.table import read_paths
from shoal.data.person_numbers import Evidence, person_numbers
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.jobs.republish import terms
from shoal.jobs.stream.core import StreamCore
from shoal.policy import registry
from shoal.policy.policy import Policy, PolicyLike
from shoal.privacy.promises import nearest_feasible


def check_files(load: Callable[[], Policy], data_path: str | None) -> list[AttributeFinding]:
    """Every finding about a policy and its data, if given; values apart from messages.

    load: reads the policy, and raises InputError where it is none.
    """
    try:
        policy = load()
        _check_method(policy)
    except InputError as unfit:
        return _plain([str(unfit.args[0]), *unfit.findings])
    table = None
    if data_path is not None:
        try:
            table = Table(read_original(data_path, policy).frame)
        except InputError as unfit:
            return _plain([str(unfit.args[0]), *unfit.findings])
    return _findings(policy, table)


def unnumbered_people(policy: Policy, data_path: str) -> list[Evidence]:
    """Columns that may number people, where a policy that is sound has no subject."""
    if policy.subject is not None:
        return []
    return person_numbers(Table(read_original(data_path, policy).frame))


def check(policy: PolicyLike, frame: Frame | None = None) -> list[AttributeFinding]:
    """Every finding about columns, hierarchies, values, numbers, domains, people and promises.

    Empty where the policy is sound and, if given, fits the frame. Raises InputError for what is no
    policy.
    """
    policy = Policy.of(policy)
    _check_method(policy)
    return _findings(policy, None if frame is None else original_table(table_of(frame), policy))


def _check_method(policy: Policy) -> None:
    """Raises InputError where the method does not fit the policy, whichever verb it serves."""
    known = registry.methods().get(policy.method_name)
    method = policy.build_method("publish" if known is None else known.verb)
    if known is not None and known.verb == "republish":
        terms.check_policy(policy, method)


def _stream_findings(policy: Policy, table: Table) -> list[str]:
    """What a stream of such records would be refused for, the table being its reference."""
    known = registry.methods().get(policy.method_name)
    if known is None or known.verb != "stream":
        return []
    try:
        StreamCore(policy, table.names, table)
    except InputError as unfit:
        return [str(unfit.args[0]), *unfit.findings]
    return []


def _findings(policy: Policy, table: Table | None) -> list[AttributeFinding]:
    findings = _plain(policy.open_questions())
    findings += _plain([] if table is None else check_columns(table.names, policy))
    findings += _table_findings(policy)
    if table is not None:
        findings += _maker_findings(policy, table)
    if table is None or findings:
        return findings
    bound, wrong = bind(table, policy)
    if bound is None:
        return [
            finding if isinstance(finding, AttributeFinding) else _plain([finding])[0]
            for finding in wrong
        ]
    whole_table = bound.published(bound.encoded.matrix().subjects)
    people = {name: len(codes) for name, codes in bound.populations.items()}
    return _plain(
        nearest_feasible(policy.build_promises(), whole_table, people)
        + _stream_findings(policy, table)
    )


def _table_findings(policy: Policy) -> list[AttributeFinding]:
    """What is wrong with the hierarchy files themselves."""
    findings: list[AttributeFinding] = []
    for name, attribute in policy.model.attributes.items():
        if isinstance(attribute.hierarchy, str):
            try:
                findings += diagnose(read_paths(policy.base / attribute.hierarchy, name), name)
            except InputError as unfit:
                findings += _plain([str(unfit.args[0]), *unfit.findings])
    return findings


def _maker_findings(policy: Policy, table: Table) -> list[AttributeFinding]:
    """Values that the rule of a made hierarchy has no place for."""
    findings: list[AttributeFinding] = []
    for name, attribute in policy.model.attributes.items():
        if isinstance(attribute.hierarchy, dict) and name in table.names:
            ((kind, argument),) = attribute.hierarchy.items()
            column = table.column(name)
            present = [i for i, cell in enumerate(column.cells) if policy.is_value(cell)]
            values = np.array([column.cells[i] for i in present], dtype=object)
            try:
                findings += values_without_leaf(
                    registry.makers()[kind].from_spec(argument),
                    name,
                    values,
                    column.counts()[present],
                )
            except InputError as unfit:
                findings += _plain(
                    [f"attribute '{name}': {text}" for text in (unfit.args[0], *unfit.findings)]
                )
    return findings


def _plain(messages: list[str]) -> list[AttributeFinding]:
    return [AttributeFinding(Fault.POLICY, "", 1, message) for message in messages]
