"""The tables of the population that some promises compare a release with."""

from __future__ import annotations

import numpy as np

from shoal.data.encoding import EncodedTable, encode_attribute
from shoal.data.schema import Schema
from shoal.data.table import Table
from shoal.policy.binding.files import table_beside
from shoal.policy.policy import Policy


def tables_of(policy: Policy) -> dict[str, Table]:
    """The populations by name, numbers with points and dates in ISO; raises InputError."""
    return {
        name: table_beside(people, policy, f"population '{name}'")
        for name, people in policy.populations.items()
    }


def check_populations(policy: Policy) -> list[str]:
    """Quasi-identifiers that a table of the population lacks."""
    return [
        f"population '{table}': has no column '{name}', a quasi-identifier; add it"
        for table, people in policy.populations.items()
        for name in policy.quasi
        if name not in people.names
    ]


def encode_populations(
    tables: dict[str, Table], schema: Schema, encoded: EncodedTable
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Codes of each population in the matrix's own code space, (m, d) int32; or every finding."""
    codes, findings = {}, []
    for name, table in tables.items():
        columns = []
        for attribute in encoded.attributes:
            people, wrong = encode_attribute(
                attribute.attribute, table.column(attribute.attribute.name), schema
            )
            findings += [f"population '{name}': {finding}" for finding in wrong]
            if people is not None:
                columns.append(attribute.positions_of(people))
        codes[name] = (
            np.column_stack(columns) if columns else np.zeros((table.records, 0), np.int32)
        )
    return codes, findings
