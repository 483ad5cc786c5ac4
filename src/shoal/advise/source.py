"""A table that a job of advice is given: the path of a file, or a frame."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from shoal.connectors.frames import Frame, table_of
from shoal.data.progress import Progress
from shoal.data.table import Table
from shoal.policy.binding.files import original_table, read_original
from shoal.policy.policy import Policy

Source: TypeAlias = "str | Path | Frame"
"""A table in a file, or as a frame of pandas, polars or pyarrow."""


def read_source(source: Source, policy: Policy, progress: Progress) -> Table:
    """The table as the policy reads it; raises InputError."""
    if isinstance(source, (str, Path)):
        progress("reading the table")
        return Table(read_original(str(source), policy).frame)
    return original_table(table_of(source), policy)
