"""Tables that do not fit into memory, read as codes under a policy; what would need them whole is
refused by name.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import polars as pl

from shoal.connectors.coded_files import CodedSource, read_coded
from shoal.connectors.dialect import Dialect, Reading
from shoal.connectors.location import Location
from shoal.connectors.spread_files import read_spread
from shoal.data.coded_table import CodedTable
from shoal.data.person_names import is_nobody
from shoal.data.room import Room, blocks
from shoal.data.shared_room import SharedRoom
from shoal.errors import InputError
from shoal.policy.binding.files import as_stated, certified_reading
from shoal.policy.binding.notation import translated_columns
from shoal.policy.binding.past_memory import room_for
from shoal.policy.binding.people import with_person
from shoal.policy.loading import reading_of
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


def read_original_coded(path: str, policy: Policy, room: Room) -> CodedSource:
    """The table that a policy is for, piece by piece; raises InputError."""
    if isinstance(room, SharedRoom):
        return _of_people(_checked(read_spread(path, room), path, policy), policy)
    source = read_coded(path, Location(path).kind_to_read, reading_of(policy.model.read), room)
    return _of_people(_checked(source, path, policy), policy)


def _of_people(source: CodedSource, policy: Policy) -> CodedSource:
    """The source; raises InputError where a row has no value, since it is nobody."""
    columns = []
    for column in sorted(map(source.table.column, source.table.names), key=lambda c: len(c.cells)):
        nobody = is_nobody(pl.Series(column.cells, dtype=pl.String), policy.model.missing_values)
        if not nobody.any():
            return source
        columns.append((nobody, column.codes))
    for rows in blocks(source.table.records):
        if np.logical_and.reduce([nobody[codes[rows]] for nobody, codes in columns]).any():
            raise InputError(
                "memory: some rows have no value at all and are nobody; take them out of the data,"
                " or leave out --memory"
            )
    return source


def read_released_coded(
    path: str, policy: Policy, room: Room, stated: Reading | None = None
) -> CodedSource:
    """A release of a policy, written as its certificate says, else as `write` or `read` say.

    stated: how its certificate says that it is written; by default, the certificate beside it.
    """
    if isinstance(room, SharedRoom):
        return _checked(read_spread(path, room), path, policy)
    reading = reading_of(policy.model.read, policy.model.write)
    stated = certified_reading(path, reading) if stated is None else stated
    source = read_coded(path, Location(path).kind_to_read, as_stated(reading, stated), room)
    return _checked(source, path, policy)


def read_written_coded(
    path: Path, kind: str, policy: Policy, dialect: Dialect, room: Room
) -> CodedSource:
    """A release that was just written in a dialect."""
    if isinstance(room, SharedRoom):
        return _checked(read_spread(path, room), str(path), policy)
    reading = as_stated(reading_of(policy.model.read, policy.model.write), dialect)
    return _checked(read_coded(path, kind, reading, room), str(path), policy)


def _checked(source: CodedSource, path: str, policy: Policy) -> CodedSource:
    if not source.table.records:
        raise InputError(f"file '{path}': holds no records; publish a table with at least k people")
    require_readable(policy, source.table.names)
    return replace(source, table=cast(CodedTable, with_person(source.table, policy)))


def tables_of(
    released: str, original: str | None, policy: Policy
) -> tuple[CodedSource, CodedSource | None] | None:
    """A release and its original, where they don't fit into memory together; else None."""
    place = room_for(released, original)
    if place is None:
        return None
    source = read_released_coded(released, policy, place)
    beside = None if original is None else read_original_coded(original, policy, place)
    return source, beside
