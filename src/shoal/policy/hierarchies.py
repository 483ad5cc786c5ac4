"""The hierarchy that a policy asks for: read from its table, or made by a rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from shoal.data.findings import listed_rows
from shoal.data.hierarchies.diagnostics import values_without_leaf
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.hierarchies.table import read_hierarchy
from shoal.data.table import Column
from shoal.errors import InputError
from shoal.policy import registry


def declared_hierarchy(
    name: str,
    declared: str | dict[str, Any],
    base: Path,
    column: Column | None = None,
    is_value: np.ndarray | None = None,
    encoding: str | None = None,
) -> Hierarchy:
    """The hierarchy of attribute `name`; raises InputError with the rows that a rule can't place.

    declared: the path of a table, relative to `base`, or one maker and its argument.
    column: the values that a rule needs, None where they are not at hand. is_value: (cells,) bool,
        which of its cells hold one. encoding: of a table that is not UTF-8.
    """
    if isinstance(declared, str):
        return read_hierarchy(base / declared, name, encoding)
    ((kind, argument),) = declared.items()
    try:
        maker = registry.makers()[kind].from_spec(argument)
        if column is None or is_value is None:
            return maker.make(np.array([]))
        values = np.array(column.cells, dtype=object)[is_value]
        findings = values_without_leaf(maker, name, values, column.counts()[is_value])
        if findings:
            unplaced = is_value.copy()
            unplaced[is_value] = maker.values_without_leaf(values)
            rows = listed_rows(column.rows_of(unplaced).tolist(), findings[0].count)
            message = findings[0].message.removeprefix(f"attribute '{name}': ")
            raise InputError(f"{message} ({rows})")
        return maker.make(values)
    except InputError as wrong:
        raise InputError(f"attribute '{name}': {wrong.args[0]}", wrong.findings) from None
