"""Hierarchy files of a folder, matched to columns by their names and by what they list."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from shoal.advise.proposal.cells import ColumnCells
from shoal.advise.proposal.roles import Guess
from shoal.data.hierarchies.paths import Paths
from shoal.data.hierarchies.table import read_paths
from shoal.errors import InputError

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
    folder = Path(folder)
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
    if not len(paths):
        return None
    return pl.Series(paths.labels, dtype=pl.String).gather(paths.leaf_codes).unique()


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
        questions.append(_lack(named[0], column, base))
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


def _lack(file: HierarchyFile, column: ColumnCells, base: Path) -> str:
    path = _relative(file.path, base)
    if file.leaves is None:
        return FAULTY.format(path)
    return GAPS.format(path, file.gaps(column), column.distinct)


def _relative(path: Path, base: Path) -> str:
    return Path(os.path.relpath(path.resolve(), base.resolve())).as_posix()
