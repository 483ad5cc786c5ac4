"""Tables that do not fit into memory, read as codes under a policy; what would need them whole is
refused by name.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from shoal.connectors.coded_files import read_coded
from shoal.connectors.dialect import Reading
from shoal.connectors.files import SourceFile
from shoal.connectors.spread_files import read_spread
from shoal.data.person_names import is_nobody
from shoal.data.room import Room, blocks
from shoal.data.shared_room import SharedRoom
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.binding.notation import translated_columns
from shoal.policy.binding.people import with_person
from shoal.policy.policy import Policy


def require_readable(policy: Policy, names: list[str]) -> None:
    """Raises InputError with everything that a policy says of files that needs a whole table."""
    model = policy.model
    findings = [
        f"attribute '{name}': its numbers or dates are not written as Shoal reads them"
        for name in translated_columns(policy, names)
    ]
    if model.write.numbers:
        findings.append("write: numbers adds columns")
    if model.write.formulas != "keep":
        findings.append(f"write: formulas {model.write.formulas} looks at every cell")
    if policy.is_in_two_tables:
        findings.append("two tables share their groups")
    if policy.populations:
        findings.append("a table of the population is compared with every class")
    whole = "which needs the whole table in memory; leave out --memory"
    InputError.raise_for([f"memory: {each}, {whole}" for each in findings])


def read_past_memory(
    path: str | Path, policy: Policy, reading: Reading, room: Room, kind: str | None = None
) -> SourceFile:
    """A table of a policy, piece by piece or by many processes; raises InputError.

    kind: its format; by default, its name says it.
    """
    if isinstance(room, SharedRoom):
        source = read_spread(path, room)
    else:
        source = read_coded(path, kind, reading, room)
    if not source.table.records:
        raise InputError(f"file '{path}': holds no records; publish a table with at least k people")
    require_readable(policy, source.table.names)
    return replace(source, table=with_person(source.table, policy))


def require_people(table: Table, policy: Policy) -> None:
    """Raises InputError where a row has no value, since it is nobody."""
    columns = []
    for column in sorted(map(table.column, table.names), key=lambda c: len(c.cells)):
        nobody = is_nobody(pl.Series(column.cells, dtype=pl.String), policy.model.missing_values)
        if not nobody.any():
            return
        columns.append((nobody, column.codes))
    for rows in blocks(table.records):
        if np.logical_and.reduce([nobody[codes[rows]] for nobody, codes in columns]).any():
            raise InputError(
                "memory: some rows have no value at all and are nobody; take them out of the data,"
                " or leave out --memory"
            )
