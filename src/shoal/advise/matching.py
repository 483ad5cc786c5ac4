"""Hierarchy tables matched to columns by the values that both have, whatever their names."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.data.hierarchies.paths import Paths, diagnose
from shoal.data.hierarchies.table import read_paths
from shoal.data.notebook import Figures
from shoal.data.person.columns import NO_VALUE
from shoal.data.progress import Progress, no_progress
from shoal.data.regular_files import path_text
from shoal.data.table import Column
from shoal.errors import InputError
from shoal.policy.binding.files import Source, read_undeclared
from shoal.policy.loading import read_options
from shoal.policy.policy import Policy, PolicyLike
from shoal.policy.proposal.cells import ColumnCells
from shoal.policy.proposal.roles import Guess

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


@dataclass(frozen=True, repr=False)
class HierarchyMatch(Figures):
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


def _values(column: Column, missing_values: Sequence[str]) -> tuple[pl.Series, np.ndarray]:
    """The distinct values of a column, and how many rows have each."""
    is_value = ~column.texts.is_in(list(missing_values))
    return column.texts.filter(is_value), column.counts()[is_value.to_numpy()]


def _match(
    path: Path, stem: str, cells: Mapping[str, tuple[pl.Series, np.ndarray]], encoding: str | None
) -> HierarchyMatch:
    try:
        paths = read_paths(path, encoding=encoding)
        findings, leaves = [one.message for one in diagnose(paths)], leaves_of(paths)
    except InputError as unreadable:
        findings, leaves = unreadable.said, None
    if leaves is None:
        return HierarchyMatch(path.name, None, (), 0, 0, tuple(findings), False)
    covered = [_coverage(name, *known, leaves) for name, known in cells.items()]
    # a column whose name the file has comes first where values leave it open
    fits = sorted(
        (one for one in covered if one.rows >= FITS),
        key=lambda one: (-one.rows, one.column.casefold() not in stem.casefold()),
    )
    steps = int(paths.lengths.max(initial=1)) - 1
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
    return replace(match, also_fits=rivals)


# Hierarchy files of a folder, matched to columns by their names and by what they list.


_TABLES = re.compile(r"(.+)\.(csv|tsv|tab|txt)(\.gz)?", re.IGNORECASE)

WHICH = "which hierarchy, {}?"
FAULTY = "its hierarchy {} can't be read; correct the file or take the key out"
GAPS = "its hierarchy {} lacks {} of {} values; add them to the file"


@dataclass(frozen=True)
class HierarchyFile:
    """A table of the folder. leaves: the values that it lists; None where it can't be read."""

    path: Path
    stem: str
    leaves: pl.Series | None

    def is_named_for(self, name: str) -> bool:
        """Whether its name is the column's, or ends in it behind a dash: `adult-age.csv`."""
        stem, name = self.stem.casefold(), name.casefold()
        return stem == name or stem.endswith((f"_{name}", f"-{name}"))

    def gaps(self, column: ColumnCells) -> int:
        """How many of the column's values it does not list."""
        assert self.leaves is not None
        return int((~column.cells.is_in(self.leaves.implode())).sum())


def hierarchy_files(folder: str | Path) -> list[HierarchyFile]:
    """The tables of a folder by name; raises InputError where there is no such folder."""
    return [HierarchyFile(path, stem, _leaves(path)) for path, stem in tables_in(folder)]


def tables_in(folder: str | Path) -> list[tuple[Path, str]]:
    """The tables of a folder with the stems of their names; raises InputError for none."""
    folder = Path(path_text(folder, "hierarchies"))
    try:
        paths = sorted(path for path in folder.iterdir() if path.is_file())
    except OSError as failed:
        raise InputError(
            f"hierarchies '{folder}': can't be listed ({failed.strerror}); name a folder of"
            " hierarchy tables"
        ) from None
    named = [(path, _TABLES.fullmatch(path.name)) for path in paths]
    files = [(path, match[1]) for path, match in named if match is not None]
    if not files:
        raise InputError(f"hierarchies '{folder}': has no tables (.csv, .tsv, .txt); name another")
    return files


def _leaves(path: Path) -> pl.Series | None:
    try:
        return leaves_of(read_paths(path))
    except InputError:
        return None


def leaves_of(paths: Paths) -> pl.Series | None:
    """The values that a table lists, each once; None where it lists none."""
    listed = paths.leaf_codes[paths.leaf_codes >= 0]  # none of a table that is too deep
    if not len(listed):
        return None
    return pl.Series(paths.labels, dtype=pl.String).gather(listed).unique()


def with_hierarchies(
    guesses: Mapping[str, Guess],
    columns: Mapping[str, ColumnCells],
    files: list[HierarchyFile],
    base: str | Path,
) -> dict[str, Guess]:
    """The guesses; every quasi-identifier that a file serves has its path. base: the policy's
    folder.
    """
    return {
        name: _with_hierarchy(guess, columns[name], files, Path(base))
        if guess.role == "quasi"
        else guess
        for name, guess in guesses.items()
    }


def _with_hierarchy(
    guess: Guess, column: ColumnCells, files: list[HierarchyFile], base: Path
) -> Guess:
    named = [file for file in files if file.is_named_for(column.name)]
    whole = [file for file in named if file.leaves is not None and not file.gaps(column)]
    if not named and column.numbers is None and column.distinct > 1:
        # numbers are in any long enough list of numbers, texts only in their own
        whole = [file for file in files if file.leaves is not None and not file.gaps(column)]
    questions = []
    if len(whole) > 1:
        questions.append(WHICH.format(" or ".join(_relative(file.path, base) for file in whole)))
    elif not whole and named:
        path = _relative(named[0].path, base)
        lack = FAULTY.format(path)
        if named[0].leaves is not None:
            lack = GAPS.format(path, named[0].gaps(column), column.distinct)
        questions.append(lack)
    chosen = (whole or named)[:1]
    if not chosen:
        return guess
    path = _relative(chosen[0].path, base)
    how = "its name and values" if named else "its values"
    found = Guess(
        {"role": "quasi", "hierarchy": path},
        f"others may know it; the hierarchy fits {how}",
        guess.questions,
    )
    return found.asking(*questions)


def _relative(path: Path, base: Path) -> str:
    return Path(os.path.relpath(path.resolve(), base.resolve())).as_posix()


# Match hierarchies: which table of a folder fits which column, by the values that both have.


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
    read: a dict, as of `propose_policy`; it comes before what the policy says. Raises InputError
    where the folder has no tables.
    """
    tables = tables_in(folder)
    if policy is not None:
        known = Policy.of(policy, read)
        table = known.tables.read_source(source, progress)
        names = [name for name in known.model.audited_columns if name in table.names]
        missing, options = known.model.missing_texts, known.model.read
    else:
        options = read_options(read)
        table, _ = read_undeclared(source, options, progress)
        names, missing = table.names, list(NO_VALUE)
    progress("matching hierarchies")
    cells = {name: _values(table.column(name), missing) for name in names}
    found = [_match(path, stem, cells, options.encoding) for path, stem in tables]
    return [_with_rivals(match, found) for match in found]
