"""A table bound to its policy: encoded once, with every finding listed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shoal.binding.populations import encode_populations
from shoal.data.classes import Classes, SensitiveColumn
from shoal.data.encoding import EncodedTable, encode
from shoal.data.hierarchies.diagnostics import Fault, Finding
from shoal.data.matrix import Matrix
from shoal.data.schema import Schema
from shoal.data.sensitive import encode_sensitive
from shoal.data.table import Table
from shoal.policy.policy import Policy


@dataclass(frozen=True)
class BoundTable:
    """A table that fits its policy. everybody: all records, suppressed ones too, in one class.

    label: (n,) what the classification metric predicts, or None. populations: as in `Matrix`.
    """

    schema: Schema
    encoded: EncodedTable
    whole_table: Classes
    label: np.ndarray | None = None
    populations: dict[str, np.ndarray] = field(default_factory=dict)

    def matrix(self) -> Matrix:
        """The records that are not suppressed."""
        return replace(self.encoded.matrix(self.label), populations=self.populations)

    def published(self, subjects: np.ndarray | None) -> Classes:
        """The records that are not suppressed, in one class. subjects: theirs, numbered densely."""
        kept = ~self.encoded.suppressed
        return self.whole_table if kept.all() else self.whole_table.only(kept, subjects)


def bind(table: Table, policy: Policy) -> tuple[BoundTable | None, list[Any]]:
    """The table bound and encoded, or everything that is wrong with it."""
    schema, found = policy.bind(table)
    if schema is None:
        return None, list(found)
    findings: list[Any] = list(found)
    encoded, more = encode(table, schema)
    findings += more
    sensitive = {}
    for attribute in schema.sensitive:
        earlier = policy.earlier.get(attribute.name)
        column, more = encode_sensitive(attribute, table.column(attribute.name), schema, earlier)
        findings += more
        if column is not None:
            sensitive[attribute.name] = column
    findings += unknown_designated_values(policy, sensitive)
    if encoded is None or findings:
        return None, findings
    populations, wrong = encode_populations(policy.populations, schema, encoded)
    if wrong:
        return None, list(wrong)
    labels = np.zeros(table.records, dtype=np.int32)
    label = None if schema.label is None else table.column(schema.label).codes
    return (
        BoundTable(
            schema, encoded, Classes(labels, 1, encoded.subjects, sensitive), label, populations
        ),
        [],
    )


def unknown_designated_values(
    policy: Policy, sensitive: dict[str, SensitiveColumn]
) -> list[Finding]:
    """Values that a promise designates and nobody has nor could have: a misspelt one would protect
    nothing.
    """
    findings = []
    for promise in policy.build_promises():
        for name in promise.attributes if getattr(promise, "values", ()) else ():
            if name not in sensitive:
                continue
            lost = tuple(
                value for value in promise.values if sensitive[name].code_of(value) is None
            )
            if lost:
                message = (
                    f"promise '{promise.model}': {len(lost)} of its designated values occur in no"
                    f" record of '{name}' as they are written; mend them, or leave them out"
                )
                findings.append(Finding(Fault.POLICY, name, len(lost), message, lost))
    return findings
