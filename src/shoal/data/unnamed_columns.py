"""What the cells show about columns that nobody has described."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from shoal.data.numbers import parse_numbers
from shoal.data.table import Table


def looks_like_data(table: Table, names: list[str]) -> list[str]:
    """Those columns whose name is a number or also stands in one of their cells."""
    numeric = np.isfinite(parse_numbers(tuple(names))) if names else []
    return [
        name
        for name, is_number in zip(names, numeric, strict=True)
        if is_number or name in table.column(name).cells
    ]


def copied_columns(table: Table, names: Iterable[str], others: Sequence[str]) -> dict[str, str]:
    """Those columns that hold the very cells of one of the others, each with the first such.

    A column of one value says nothing about anybody, so it is never a copy.
    """
    found = {}
    for name in names:
        copied = next((other for other in others if _is_copy(table, name, other)), None)
        if copied is not None:
            found[name] = copied
    return found


def _is_copy(table: Table, name: str, other: str) -> bool:
    return table.same_cells(name, other) and table.distinct(name) > 1
