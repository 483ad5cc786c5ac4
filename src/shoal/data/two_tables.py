"""A release of two tables: quasi-identifiers as they are, and sensitive values by group.

The first table has the quasi-identifiers and the number of each row's group; the second has a row
for each value of a group: group, value, count. Rows of a group and its values may be dealt to each
other in any way.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl

from shoal.data.encoding import EncodedTable
from shoal.data.partition import Cut, Partition
from shoal.data.schema import Schema
from shoal.data.table import Table, as_text

TWO_TABLES = "two-tables"
OWN_METHODS = frozenset({"anatomy"})
"""Shoal's own methods that publish so, for whoever must know it and imports no method."""
GROUP, COUNT = "group", "count"
SENSITIVE = "sensitive"
DISCLOSED = "disclosed"


def sensitive_path(path: str) -> str:
    """Where the second table goes: `r.csv` beside `r.sensitive.csv`."""
    parts = Path(path)
    packed = ".gz" if parts.suffix.lower() == ".gz" else ""
    name = parts.name.removesuffix(parts.suffix) if packed else parts.name
    stem, dot, kind = name.rpartition(".")
    last = parts.suffix if packed else ""
    return str(parts.with_name(f"{stem}.{SENSITIVE}{dot}{kind}{last}"))


class TwoTables:
    """The renderer of anatomy: no cell is changed, and no row shows a sensitive value."""

    name: ClassVar[str] = TWO_TABLES

    def tables(
        self, table: Table, encoded: EncodedTable, classes: Partition | Cut, schema: Schema
    ) -> Mapping[str, pl.DataFrame]:
        """Both tables, rows of the first in the order of the input, of the second by group and
        value.
        """
        assert isinstance(classes, Partition)
        numbers = pl.Series(GROUP, classes.labels.astype(np.int64) + 1)
        quasi = [table.frame[attribute.name] for attribute in schema.quasi]
        (sensitive,) = schema.sensitive
        values = as_text(table.frame[sensitive.name]).alias(sensitive.name)
        counted = (
            pl.DataFrame([numbers, values])
            .group_by(GROUP, sensitive.name)
            .agg(pl.len().cast(pl.Int64).alias(COUNT))
            .sort(GROUP, sensitive.name)
        )
        return {"": pl.DataFrame([*quasi, numbers]), SENSITIVE: counted}
