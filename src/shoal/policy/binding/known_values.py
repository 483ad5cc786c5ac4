"""What others could know of the people in a table, as codes: equal where it is the same to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.data.findings import finding_about
from shoal.data.numbers import parse_numbers
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.binding.columns import check_columns
from shoal.policy.policy import Policy


@dataclass(frozen=True)
class KnownValues:
    """By column, (n,) codes. people: (n,) whose record it is; None where each is its own person's.

    plain: columns that are harmless by their roles, the policy's `other` ones too.
    """

    quasi: dict[str, np.ndarray]
    plain: dict[str, np.ndarray]
    people: np.ndarray | None


def known_values(table: Table, policy: Policy) -> KnownValues:
    """The table by the policy's roles, whether or not its hierarchies fit; raises InputError.

    Numbers are compared as numbers, and all texts for no value are one.
    """
    findings = check_columns(table.names, policy)
    if not findings and not policy.quasi:
        findings = ["policy: no attribute is a quasi-identifier; say what others could know"]
    if findings:
        raise InputError.from_findings(findings)
    declared = policy.model.attributes
    roles = {
        name: declared[name].role if name in declared else policy.model.other
        for name in table.names
    }
    people = people_of(table, policy)
    table.encode(name for name, role in roles.items() if role in ("quasi", "plain"))
    return KnownValues(
        {name: _compared(table, name, policy) for name, r in roles.items() if r == "quasi"},
        {name: _compared(table, name, policy) for name, r in roles.items() if r == "plain"},
        people,
    )


def people_of(table: Table, policy: Policy) -> np.ndarray | None:
    """(n,) whose record it is, numbered densely; None where the policy names no subject.

    Raises InputError where records lack one.
    """
    if policy.subject is None:
        return None
    column = table.column(policy.subject)
    names = [cell.strip() for cell in column.cells]
    missing = np.array([not name or name in policy.model.missing_values for name in names])
    if missing.any():
        finding = finding_about(
            column, missing, "without a subject", "give every record its person"
        )
        raise InputError(finding.message)
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return np.array([number[name] for name in names], dtype=np.int32)[column.codes]


def _compared(table: Table, name: str, policy: Policy) -> np.ndarray:
    column = table.column(name)
    declared = policy.model.attributes.get(name)
    cells: list[object] = list(column.cells)
    if declared is not None and declared.type == "number":
        numbers = parse_numbers(column.cells)
        cells = [c if np.isnan(x) else x for c, x in zip(cells, numbers.tolist(), strict=True)]
    missing = set(policy.model.missing_values)
    number: dict[object, int] = {}
    codes = [
        number.setdefault(None if text in missing else cell, len(number))
        for cell, text in zip(cells, column.cells, strict=True)
    ]
    return np.array(codes, dtype=np.int32)[column.codes]
