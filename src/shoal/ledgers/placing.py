"""Where a method places the records of the next release, and what it may know of earlier ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from shoal.connectors.ledger import Ledger
from shoal.data.classes import Classes
from shoal.data.ledger_view import LedgerView, Placement
from shoal.data.matrix import Matrix
from shoal.data.partition import Partition
from shoal.data.person_names import same_value
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.ledgers.increment import CandidateRecords
from shoal.ledgers.planned_release import CurrentRelease
from shoal.policy import registry
from shoal.policy.binding.table import BoundTable, bind
from shoal.policy.policy import Policy
from shoal.privacy.promises import BoundPromises
from shoal.protocols import Partitioner


def bound_table(table: Table, policy: Policy) -> BoundTable:
    """The table under its policy; raises InputError with everything that is wrong with it."""
    bound, findings = bind(table, policy)
    if bound is None:
        raise InputError.from_findings(findings)
    return bound


def place(
    matrix: Matrix, view: LedgerView, whole_table: Classes, policy: Policy, method: Any
) -> Placement:
    """The class of every record of the matrix, as the method finds it; -1 where it waits."""
    promises = BoundPromises(policy.build_promises(), whole_table)
    placed: Placement = method.publish(
        matrix, view, promises, np.random.default_rng(policy.model.seed)
    )
    return placed


def partition_table(
    method: str, matrix: Matrix, promises: Any, rng: np.random.Generator
) -> Partition:
    """The classes of a method for tables, with its default parameters."""
    implementation = cast(type[Partitioner], registry.method(method, "publish").implementation)
    return implementation().partition(matrix, promises, rng)


def view_of_records(
    candidates: CandidateRecords, bound: BoundTable, policy: Policy, method: Any, ledger: Ledger
) -> tuple[LedgerView, list[str] | None]:
    """What a method may know of earlier releases, and the text of each sensitive value.

    The texts, which codes stand for, only where the method guards signatures.
    """
    is_placed = ~bound.encoded.suppressed
    records = candidates.records[is_placed]
    earlier = records >= 0
    if method.guards != "signatures":
        return LedgerView(earlier=earlier, partition=partition_table), None
    name = _sensitive_attribute(policy, candidates)
    column = candidates.table.column(name)
    shown = _signatures_shown(ledger, policy, name) if earlier.any() else {}
    every_text = sorted({*column.cells, *(value for values in shown.values() for value in values)})
    text_of: dict[str, str] = {}  # of several ways to write a value, one
    for text in every_text:
        text_of.setdefault(same_value(text), text)
    place, texts = {value: i for i, value in enumerate(text_of)}, list(text_of.values())
    code = {text: place[same_value(text)] for text in every_text}
    signatures, index = _numbered_signatures(shown, code)
    cells = np.array([code[cell] for cell in column.cells], dtype=np.int32)
    view = LedgerView(
        earlier=earlier,
        signature=np.array([index.get(r, -1) for r in records.tolist()], dtype=np.int32),
        signatures=signatures,
        sensitive=cells[column.codes][is_placed],
        values=len(texts),
        no_value=frozenset(place[one] for one in policy.no_values & place.keys()),
        partition=partition_table,
    )
    return view, texts


def _numbered_signatures(
    shown: Mapping[int, tuple[str, ...]], code: Mapping[str, int]
) -> tuple[tuple[tuple[int, ...], ...], dict[int, int]]:
    """Every set of values that occurs, by codes; and which of them each record has."""
    of_record = {
        record: tuple(sorted({code[value] for value in values})) for record, values in shown.items()
    }
    signatures = tuple(sorted(set(of_record.values())))
    index = {signature: i for i, signature in enumerate(signatures)}
    return signatures, {record: index[signature] for record, signature in of_record.items()}


def _sensitive_attribute(policy: Policy, candidates: CandidateRecords) -> str:
    """The one sensitive attribute; raises InputError where signatures can't guard the table."""
    roles: dict[str, list[str]] = {}
    for name, attribute in policy.model.attributes.items():
        roles.setdefault(attribute.role, []).append(name)
    findings = []
    if len(roles.get("sensitive", [])) != 1:
        findings.append(
            "policy: signatures need exactly one sensitive attribute; give the others the role"
            " 'drop'"
        )
    if "plain" in roles or policy.model.other == "plain":
        findings.append(
            "policy: a plain column would show which rows are invented; give it the role 'drop'"
        )
    if candidates.subjects is None:
        findings.append(
            "policy: signatures need a subject, by which a person is recognized in later releases"
        )
    elif len(np.unique(candidates.subjects)) < len(candidates.subjects):
        findings.append(
            "increment: some people have several records, including those that wait; signatures"
            " need one record a person"
        )
    if findings:
        raise InputError.from_findings(findings)
    return roles["sensitive"][0]


def _signatures_shown(ledger: Ledger, policy: Policy, name: str) -> dict[int, tuple[str, ...]]:
    """By record number, the sensitive values that its class shows in the last release."""
    current = CurrentRelease.of(ledger, policy)
    labels = current.labels.tolist()
    values_of_class: dict[int, set[str]] = {}
    for label, value in zip(labels, current.frame[name].fill_null("").to_list(), strict=True):
        values_of_class.setdefault(label, set()).add(value)
    signatures = {label: tuple(sorted(values)) for label, values in values_of_class.items()}
    records = current.identities.records.tolist()
    return {r: signatures[label] for r, label in zip(records, labels, strict=True) if r >= 0}
