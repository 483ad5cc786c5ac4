"""Hierarchy tables matched to columns by the values that both have, whatever their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.advise.proposal.folder import leaves_of
from shoal.data.hierarchies.diagnostics import diagnose
from shoal.data.hierarchies.paths import Paths
from shoal.data.hierarchies.table import read_paths
from shoal.data.table import Column
from shoal.errors import InputError

SCHEMA = "shoal.hierarchy-matches/1"
FITS = 0.5  # of the rows with a value: below, a table is not one of the column
ONE_STEP = "only 1 step: every value becomes the root at once"


@dataclass(frozen=True)
class Coverage:
    """How far a table serves a column.

    rows: of those that have a value, the share whose value it lists. missing: distinct values that
    it does not list; missing_rows: the rows that have them.
    """

    column: str
    rows: float
    missing: int
    missing_rows: int


@dataclass(frozen=True)
class HierarchyMatch:
    """A table of a folder.

    column: the one that it fits best, None where none. fits: every column of which it covers at
    least half of the rows, best first. values: those that it lists; steps: from a value to the
    root. findings: what is wrong with the table itself, and what to look at. also_fits: other
    tables that cover as much of the same column. A match is ambiguous where another column or table
    would do as well.
    """

    file: str
    column: str | None
    fits: tuple[Coverage, ...]
    values: int
    steps: int
    findings: tuple[str, ...]
    is_sound: bool
    also_fits: tuple[str, ...] = ()

    @property
    def is_ambiguous(self) -> bool:
        """Whether somebody has to choose."""
        ties = [other for other in self.fits[1:] if other.rows == self.fits[0].rows]
        return bool(ties or self.also_fits)

    @property
    def coverage(self) -> Coverage | None:
        """Of the column that it fits best."""
        return self.fits[0] if self.fits else None

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        return {**asdict(self), "is_ambiguous": self.is_ambiguous}


def matched(
    tables: Sequence[tuple[Path, str]],
    columns: Sequence[Column],
    missing_values: Sequence[str],
    encoding: str | None = None,
) -> list[HierarchyMatch]:
    """Every table with the column that it fits, by name of the file."""
    cells = {column.name: _values(column, missing_values) for column in columns}
    found = [_match(path, stem, cells, encoding) for path, stem in tables]
    return [_with_rivals(match, found) for match in found]


def _values(column: Column, missing_values: Sequence[str]) -> tuple[pl.Series, np.ndarray]:
    """The distinct values of a column, and how many rows have each."""
    cells = pl.Series(column.cells, dtype=pl.String)
    is_value = ~cells.is_in(list(missing_values))
    return cells.filter(is_value), column.counts()[is_value.to_numpy()]


def _match(
    path: Path,
    stem: str,
    cells: Mapping[str, tuple[pl.Series, np.ndarray]],
    encoding: str | None,
) -> HierarchyMatch:
    try:
        paths = read_paths(path, encoding=encoding)
    except InputError as unreadable:
        said = (str(unreadable.args[0]), *unreadable.findings)
        return HierarchyMatch(path.name, None, (), 0, 0, said, False)
    findings = [finding.message for finding in diagnose(paths)]
    leaves = leaves_of(paths)
    if leaves is None:
        return HierarchyMatch(path.name, None, (), 0, 0, tuple(findings), False)
    covered = [_coverage(name, *known, leaves) for name, known in cells.items()]
    # a column whose name the file has comes first where values leave it open
    fits = sorted(
        (one for one in covered if one.rows >= FITS),
        key=lambda one: (-one.rows, one.column.casefold() not in stem.casefold()),
    )
    steps = _steps(paths)
    return HierarchyMatch(
        path.name,
        fits[0].column if fits else None,
        tuple(fits),
        len(leaves),
        steps,
        (*findings, *([ONE_STEP] if steps == 1 and not findings else [])),
        not findings,
    )


def _coverage(name: str, cells: pl.Series, rows: np.ndarray, leaves: pl.Series) -> Coverage:
    is_listed = cells.is_in(leaves.implode()).to_numpy()
    every = int(rows.sum())
    lost = int(rows[~is_listed].sum())
    share = (every - lost) / every if every else 0.0
    return Coverage(name, share, int((~is_listed).sum()), lost)


def _steps(paths: Paths) -> int:
    return int(paths.lengths.max(initial=1)) - 1


def _with_rivals(match: HierarchyMatch, found: Sequence[HierarchyMatch]) -> HierarchyMatch:
    """The match, with the other tables that cover as much of its column."""
    own = match.coverage
    if own is None:
        return match
    rivals = tuple(
        other.file
        for other in found
        if other is not match
        and any(one.column == own.column and one.rows == own.rows for one in other.fits)
    )
    return HierarchyMatch(**{**vars(match), "also_fits": rivals})
