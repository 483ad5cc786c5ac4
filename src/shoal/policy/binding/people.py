"""A table with the column of people that its policy counts, where several columns name them."""

from __future__ import annotations

import polars as pl

from shoal.data.person_names import named_together
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.model import PolicyModel


def with_person(table: Table, model: PolicyModel) -> Table:
    """A table with its column of people, where several columns name them together.

    The order in which the policy lists them does not matter. Columns that it lacks are found by who
    binds it. Raises InputError where the data has a column of that name.
    """
    name, together = model.person, model.together
    if name is None or not {*together} <= {*table.names}:
        return table
    if name in table.names:
        raise InputError(
            f"column '{name}': is what 'subject' names its combinations of columns; rename it"
        )
    columns = [table.column(column) for column in together]
    return table.with_column(named_together(name, columns, model.no_names, table.room))


def frame_with_person(frame: pl.DataFrame, model: PolicyModel) -> pl.DataFrame:
    """A frame with its column of people, where several columns name them together."""
    return with_person(Table(frame), model).frame
