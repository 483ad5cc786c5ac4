"""Match hierarchies: which table of a folder fits which column, by the values that both have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.advise.proposal.folder import tables_in
from shoal.advise.proposal.matching import HierarchyMatch, matched
from shoal.advise.source import Source, read_source
from shoal.connectors import files
from shoal.connectors.frames import table_of
from shoal.data.person_numbers import NO_VALUE
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Table
from shoal.policy.interchange import reading_of
from shoal.policy.loading import read_options
from shoal.policy.policy import Policy, PolicyLike


def match_hierarchies(
    source: Source,
    folder: str | Path,
    policy: PolicyLike | None = None,
    *,
    read: Mapping[str, Any] | None = None,
    progress: Progress = no_progress,
) -> list[HierarchyMatch]:
    """Which table of a folder fits which column, by values and not by names, with its faults.

    source: a file's path or a frame. policy: only its quasi-identifiers and sensitive columns are
    matched, and its texts for missing values need no place; else every column, and the usual texts.
    read: as in a policy's block of this name, where there is no policy. Raises InputError where the
    folder has no tables.
    """
    tables = tables_in(folder)
    if policy is not None:
        known = Policy.of(policy).with_files(read or {}, {})
        table = read_source(source, known, progress)
        names = [name for name in known.audited_columns if name in table.names]
        missing, options = known.model.missing_values, known.model.read
    else:
        options = read_options(read or {})
        if isinstance(source, (str, Path)):
            progress("reading the table")
            table = Table(files.read(str(source), reading=reading_of(options)).frame)
        else:
            table = table_of(source)
        names, missing = table.names, list(NO_VALUE)
    progress("matching hierarchies")
    columns = [table.column(name) for name in names]
    return matched(tables, columns, missing, options.encoding)
