"""A table bound to its policy: encoded once, with every finding listed."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from shoal.data.classes import Classes, SensitiveColumn
from shoal.data.encoding import EncodedTable, encode
from shoal.data.findings import AttributeFinding, Fault
from shoal.data.matrix import Matrix
from shoal.data.schema import Schema
from shoal.data.sensitive import encode_sensitive_columns
from shoal.data.table import Table
from shoal.policy.binding.attributes import bind_attributes
from shoal.policy.binding.columns import check_columns, check_unnamed
from shoal.policy.binding.derived import check_derived
from shoal.policy.binding.populations import (
    check_populations,
    encode_populations,
    tables_of,
)
from shoal.policy.policy import Policy


@dataclass(frozen=True)
class BoundTable:
    """A table that fits its policy.

    asked: the policy. whole_table: all records, suppressed ones too, in one class.
    label: (n,) what the classification metric predicts, or None. populations: as in `Matrix`.
    """

    asked: Policy
    schema: Schema
    encoded: EncodedTable
    whole_table: Classes
    label: np.ndarray | None = None
    populations: dict[str, np.ndarray] = field(default_factory=dict)

    @cached_property
    def policy(self) -> Policy:
        """The policy, with the method that suits such a table where it names none."""
        return self.asked.with_default_method(self.schema, self.encoded)

    def matrix(self) -> Matrix:
        """The records that are not suppressed."""
        return self.encoded.matrix(self.label, self.populations)

    def method_input(self) -> tuple[Matrix, Classes]:
        """What a method is given: the records that are not suppressed, and one class of all of them
        with the columns that promises judge.
        """
        kept, matrix = ~self.encoded.suppressed, self.matrix()
        if kept.all():
            return matrix, self.whole_table
        return matrix, self.whole_table.only(kept, matrix.subjects)


def bind(table: Table, policy: Policy) -> tuple[BoundTable | None, list[Any]]:
    """The table bound and encoded, or everything that is wrong with it."""
    schema, people, findings = _bind_columns(table, policy)
    if schema is None:
        return None, list(findings)
    encoded, unfit = encode(table, schema)
    sensitive, strange = encode_sensitive_columns(table, schema, policy.earlier)
    findings = [*unfit, *strange, *unknown_designated_values(policy, sensitive)]
    if encoded is None or findings:
        return None, findings
    populations, wrong = encode_populations(people, schema, encoded)
    if wrong:
        return None, list(wrong)
    everyone = np.zeros(table.records, dtype=np.int32)
    label = None if schema.label is None else table.column(schema.label).codes
    whole_table = Classes(everyone, 1, encoded.subjects, sensitive)
    return BoundTable(policy, schema, encoded, whole_table, label, populations), []


def bind_original(table: Table, policy: Policy) -> tuple[Schema | None, list[Any]]:
    """The schema of a table, its domains and hierarchies filled in; or every finding."""
    schema, _, findings = _bind_columns(table, policy)
    return schema, findings


def _bind_columns(
    table: Table, policy: Policy
) -> tuple[Schema | None, dict[str, Table], list[Any]]:
    """The schema of a table, and its populations as they were read beside it; or every finding.

    Names are checked first, then the cells are read, then bound: after that, nothing here goes back
    to the table.
    """
    findings = check_columns(table.names, policy)
    derived = check_derived(table.names, policy)
    findings = findings or check_unnamed(table, policy) or check_populations(policy) or derived
    if findings:
        return None, {}, findings
    people = tables_of(policy)
    telling = [name for name in table.names if _tells_values(name, policy)]
    table.encode(telling)
    read = {name: table.column(name) for name in telling}
    for population in people.values():
        # its values belong to the domains, orders and leaves as well
        read |= {name: read[name].joined(population.column(name)) for name in policy.quasi}
    schema, findings = bind_attributes([(name, read.get(name)) for name in table.names], policy)
    return schema, people, findings


def _tells_values(name: str, policy: Policy) -> bool:
    declared = policy.model.attributes.get(name)
    return declared is not None and declared.role in ("quasi", "sensitive")


def unknown_designated_values(
    policy: Policy, sensitive: dict[str, SensitiveColumn]
) -> list[AttributeFinding]:
    """Designated values that nobody has nor could have: a misspelt one would protect nothing."""
    findings = []
    for promise in policy.build_promises():
        for name in promise.attributes if promise.designated else ():
            if name not in sensitive:
                continue
            lost = tuple(
                value for value in promise.designated if sensitive[name].code_of(value) is None
            )
            if lost:
                message = (
                    f"promise '{promise.model}': {len(lost)} of its designated values occur in no"
                    f" record of '{name}' as they are written; correct them, or leave them out"
                )
                findings.append(AttributeFinding(Fault.POLICY, name, len(lost), message, lost))
    return findings
