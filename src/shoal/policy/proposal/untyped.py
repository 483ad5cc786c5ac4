"""Quasi-identifiers without a type whose cells may be numbers or dates, however they are written.

What `policy init` would read or ask about is not taken for labels in silence by anybody else.
"""

from collections.abc import Collection
from dataclasses import replace

import polars as pl

from shoal.data.table import Column, Table
from shoal.data.warnings import READ_AS_TEXT, ReleaseWarning
from shoal.policy.loading import one_line, read_options
from shoal.policy.model import PolicyModel, ReadOptions
from shoal.policy.proposal.cells import ColumnCells
from shoal.policy.proposal.notation import FoundNotation, as_read, notation_in
from shoal.policy.proposal.roles import CATEGORIES, guess_of, unread

OPEN = "{} Write numbers as 1234.5 and dates as 2024-12-31"
KNOWN = "if its cells are {}, say {}"
PERIODS = "hierarchy: {dates: [day, month, year]}"


def columns_as_read(
    table: Table, names: Collection[str], read: ReadOptions
) -> tuple[dict[str, Column], FoundNotation]:
    """The columns of these names, numbers and dates as Shoal reads them where nothing is open, and
    how they are written. read: what is known of that.
    """
    some = table.without([name for name in table.names if name not in names])
    said = read.model_dump(exclude_unset=True)
    found = notation_in(some, said)
    notation = read_options(said | found.read).notation
    columns = {}
    for name in some.names:
        column = columns[name] = some.column(name)
        if name not in found.questions and not column.was_number:
            cells = as_read(pl.Series(name, column.cells, pl.String).to_frame(), notation)
            columns[name] = replace(column, cells=tuple(cells[name]))
    return columns, found


def read_as_text(table: Table, model: PolicyModel) -> list[ReleaseWarning]:
    """A warning for each quasi-identifier without a type whose cells look like numbers or dates."""
    untyped = [
        name
        for name, one in model.attributes.items()
        if one.role == "quasi" and not (one.type or one.domain or one.order or one.hierarchy)
    ]
    columns, found = columns_as_read(table, untyped, model.read)
    warnings = []
    for name, column in columns.items():
        if seems := _seem(ColumnCells.of(column), found.questions.get(name), found):
            text = (
                f"attribute '{name}': has no type, so each cell is shown whole or not at all;"
                f" {seems}; if they are labels, say 'type: category'"
            )
            warnings.append(ReleaseWarning(READ_AS_TEXT, text, name))
    return warnings


def _seem(cells: ColumnCells, question: str | None, found: FoundNotation) -> str:
    """What cells may be, and what to say then; empty where they are labels."""
    guess = guess_of(cells)
    if asked := question or unread(cells, guess):
        return OPEN.format(asked)
    if guess.settings.get("type") == "number" and cells.distinct > CATEGORIES:
        return KNOWN.format("numbers", _said("type: number", found, "decimal", "thousands"))
    if cells.are_iso_days:
        return KNOWN.format("dates", _said(PERIODS, found, "dates"))
    return ""


def _said(keys: str, found: FoundNotation, *of_read: str) -> str:
    """Keys of an attribute, and those of the policy's block `read` that belong to them."""
    read = {key: found.read[key] for key in of_read if key in found.read}
    return f"'{keys}'" + (f", and under 'read' {one_line(read)}" if read else "")
