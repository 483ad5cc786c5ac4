"""One table in several Parquet files: those of a folder, or those that a pattern names."""

from __future__ import annotations

import glob
import hashlib
from pathlib import Path

import polars as pl

from shoal.errors import InputError

SUFFIX = ".parquet"


def is_many(path: str | Path) -> bool:
    """Whether a path names a folder, or is a pattern and no file of that very name."""
    path = str(path)
    return Path(path).is_dir() or (glob.has_magic(path) and not Path(path).exists())


def parts_of(path: str | Path) -> list[Path]:
    """The files of such a table, by name; raises InputError where there is none."""
    path = Path(path)
    if not path.is_dir():
        return _parquet([Path(name) for name in glob.glob(str(path))], f"file '{path}'")
    folders = [part for part in path.iterdir() if part.is_dir() and "=" in part.name]
    if folders:
        raise InputError(
            f"folder '{path}': {len(folders)} of its folders hold values in their names; write the"
            " table with all of its columns in the files"
        )
    files = [part for part in path.iterdir() if part.is_file() and part.name[0] not in "._"]
    return _parquet([part for part in files if part.suffix == SUFFIX], f"folder '{path}'")


def _parquet(parts: list[Path], where: str) -> list[Path]:
    if not parts:
        raise InputError(f"{where}: holds no {SUFFIX} file; name a file, or a folder of them")
    odd = [part for part in parts if part.suffix != SUFFIX or not part.is_file()]
    if odd:
        raise InputError(
            f"{where}: names {len(odd)} that are not {SUFFIX} files; several files are read as one"
            f" table only if all of them are {SUFFIX}"
        )
    return sorted(parts)


def digest(parts: list[Path]) -> str:
    """One SHA-256 of all: that of the lines that sha256sum prints about them, names without
    folders.
    """
    whole = hashlib.sha256()
    for part in parts:
        with open(part, "rb") as file:
            one = hashlib.file_digest(file, "sha256").hexdigest()
        whole.update(f"{one}  {part.name}\n".encode())
    return whole.hexdigest()


def joined(frames: list[pl.DataFrame], parts: list[Path]) -> pl.DataFrame:
    """The records of all files, one file after the other; raises InputError where they differ."""
    first = frames[0].schema
    other = [part for part, frame in zip(parts, frames, strict=True) if frame.schema != first]
    if other:
        raise InputError(
            f"file '{other[0]}': has other columns, or columns of other types, than"
            f" '{parts[0].name}'; write all files alike"
        )
    return pl.concat(frames)
