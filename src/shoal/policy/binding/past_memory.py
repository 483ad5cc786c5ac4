"""What fits into a limit on memory, and what is refused by name where a table does not.

A table that surely fits is done as without a limit. Any other is read as codes, piece by piece.
"""

from collections.abc import Mapping, Sequence
from math import ceil, inf
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.connectors import engines
from shoal.connectors.dialect import Reading
from shoal.connectors.files import SourceFile
from shoal.connectors.location import Location
from shoal.connectors.typed import table_errors
from shoal.data import person_names, room
from shoal.data.room import Room, SharedRoom, blocks, needs_whole, size_text
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.binding.notation import translated_columns
from shoal.policy.consistency import renders_two_tables
from shoal.policy.model import PolicyModel

BASE = 300_000_000
"""Bytes that a run needs whatever the table: libraries, kernels, a piece being parsed."""

HELD_BYTES = 12
"""Bytes that a table takes at its most for each byte of its text, where it is held as a whole."""

CELL_BYTES = 8
"""Bytes of text that a cell of a Parquet file is taken to have."""

RECORD_BYTES = 6
"""Bytes that a record takes at least past memory."""

JOINED_BYTES = 300
"""Bytes that a record takes where people or households are judged by all of their classes."""

PACKED = 10
"""How much larger than its file a compressed text may be."""


def room_for(*paths: str | Path | None, beside: str | Path | None = None) -> Room | None:
    """Where work on these tables finds a place; None where all of them fit into memory as a whole.

    beside: what an engine makes a folder beside, which its workers see; by default the first table.
    Raises InputError where no table past memory could be done within the limit.
    """
    limit = is_past_memory(*paths)
    if limit is None:
        return None
    engine = engines.asked()
    if beside is not None and Location(beside).is_table:
        raise needs_whole("a table of a database is written")
    given = [path for path in (beside, *paths) if path is not None]
    return Room(limit) if engine is None else engine.room(given[0])


def is_past_memory(*paths: str | Path | None) -> int | None:
    """The limit that work on these tables has to keep to; None where all of them fit into it, or
    nothing limits them.

    With an engine, none is taken to fit. Raises InputError as `room_for`.
    """
    engine, limit = engines.asked(), room.limit()
    tables = [path for path in paths if path is not None]
    if engine is not None:
        if engine.shards is not None:
            raise InputError(
                f"engine '{engine.name}:{engine.shards}': divides streams alone; name"
                f" '{engine.name}' for a table"
            )
        limit = engine.limit
        _require_spread(tables)
    if limit is None:
        return None
    if any(Location(path).is_table for path in tables):
        raise needs_whole("a table of a database is read")
    if engine is None and enough_for(*tables) <= limit:
        return None
    require_memory(limit, BASE)
    return limit


def _require_spread(tables: Sequence[str | Path]) -> None:
    """Raises InputError with every table that many processes can't read."""
    from shoal.connectors.coded_files import is_readable  # which is for an engine alone

    findings = [
        f"engine: '{path}' is not made of Parquet files, which tasks read one by one; name a folder"
        " of them, or leave out --engine"
        for path in tables
        if Location(path).is_table or not is_readable(path)
    ]
    InputError.raise_for(findings)


def refuse_whole(asked: Mapping[str, Any], *paths: str | Path | None) -> None:
    """Raises InputError where something is asked that needs tables which don't fit as a whole."""
    given = [f"{name} is asked for" for name, value in asked.items() if value]
    if given and is_past_memory(*paths) is not None:
        raise needs_whole(*given, enough=enough_for(*paths))


def enough_for(*paths: str | Path | None) -> float:
    """The limit in bytes within which these tables are held; infinite where nobody knows."""
    if engines.asked() is not None:
        return inf
    return BASE + sum(memory_of(path) for path in paths if path is not None)


def memory_of(path: str | Path) -> float:
    """What a table takes in memory at its most, by its file."""
    name = Location(path)
    if name.is_standard or not Path(name).is_file():
        return inf  # read, or refused, as what can't be known to fit
    size = Path(name).stat().st_size
    kind = name.kind
    if kind.is_parquet:
        try:
            with table_errors(name, kind, "table"):
                columns = len(pl.read_parquet_schema(name))
                records = pl.scan_parquet(name, glob=False).select(pl.len()).collect().item()
        except InputError:
            return 0.0  # said by whoever reads it
        return max(HELD_BYTES * columns * CELL_BYTES * records, HELD_BYTES * size)
    return HELD_BYTES * size * (PACKED if kind.is_compressed or name.lower().endswith(".gz") else 1)


def require_memory(limit: int, needed: float) -> None:
    """Raises InputError where a limit is below what is needed, with the figure."""
    if limit < needed:
        raise InputError(
            f"memory: {size_text(limit)} is too little for this table; allow"
            f" {ceil(needed / 1e6)} MB or more"
        )


def is_about_memory(refusal: InputError) -> bool:
    """Whether something was refused because of the limit alone."""
    return str(refusal.args[0]).startswith("memory")


def floor(records: int, quasi: int, k: int, more: int = 0) -> float:
    """The bytes that publishing a table needs. more: of the method, for each record."""
    return BASE + (RECORD_BYTES + more) * records + 4 * quasi * records / max(k, 1)


# Tables that do not fit, read as codes under a policy.


def require_readable(model: PolicyModel, path: str | Path, has_populations: bool) -> None:
    """Raises InputError with everything that a policy says of files that needs a whole table."""
    findings = [
        f"attribute '{name}': its numbers or dates are not written as Shoal reads them"
        for name in translated_columns(model, list(model.attributes))
    ]
    if model.write.numbers:
        findings.append("write: numbers adds columns")
    if model.write.formulas != "keep":
        findings.append(f"write: formulas {model.write.formulas} looks at every cell")
    if renders_two_tables(model):
        findings.append("two tables share their groups")
    if has_populations:
        findings.append("a table of the population is compared with every class")
    if findings:
        raise needs_whole(*findings, enough=enough_for(path))


def read_past_memory(
    path: str | Path, reading: Reading, room: Room, kind: str | None
) -> SourceFile:
    """A table as codes, piece by piece or by many processes; raises InputError.

    kind: its format; None where its name says it.
    """
    # few tables are so large, and most of a small publication's time goes into imports
    from shoal.connectors.coded_files import read_coded, read_spread

    if isinstance(room, SharedRoom):
        source = read_spread(path, room, reading.unpacked)
    else:
        source = read_coded(path, kind, reading, room)
    if not source.table.records:
        raise InputError(f"file '{path}': holds no records; publish a table with at least k people")
    return source


def require_people(table: Table, model: PolicyModel) -> None:
    """Raises InputError where a row has no value but in removed columns, since it is nobody."""
    columns, silent = [], model.silent_of(table.names, model.other)
    kept = [table.column(name) for name in table.names if name not in silent]
    for column in sorted(kept, key=lambda c: len(c.texts)):
        nobody = person_names.is_nobody(column.texts, model.no_names)
        if not nobody.any():
            return
        columns.append((nobody, column.codes))
    for rows in blocks(table.records):
        if np.logical_and.reduce([nobody[codes[rows]] for nobody, codes in columns]).any():
            raise InputError(
                "memory: some rows have no value but in removed columns and are nobody; take them"
                " out of the data, or leave out --memory"
            )
