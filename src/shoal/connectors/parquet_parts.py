"""One table in several Parquet files: those of a folder, or those that a pattern names.

Folders such as `year=2024` hold values in their names: every record of their files has them, as
text, in a column behind those of the file. Engines of large tables write such folders.
"""

import glob
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote

import polars as pl

from shoal.connectors.location import MANIFEST, PARQUET, Location
from shoal.data.certificate import Certificate
from shoal.data.regular_files import file_sha256
from shoal.errors import InputError

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What engines write in a folder's name where there is no value."""


@dataclass(frozen=True)
class Part:
    """One file of such a table.

    name: its path below the folder that was named. values: what the folders on the way say, by
        column; None for no value. sha256: its hash, once it was hashed.
    """

    path: Path
    name: str
    values: tuple[tuple[str, str | None], ...] = ()
    sha256: str = ""

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.values]

    @property
    def shown(self) -> str:
        """Its name without the values in it, for messages."""
        *folders, last = self.name.split("/")
        return "/".join([*(f"{folder.partition('=')[0]}=..." for folder in folders), last])


def parts_of(path: str | Path) -> list[Part]:
    """The files of such a table, by name; raises InputError where there is none, or with every one
    that is not part of it.
    """
    path = Path(path)
    for folder in {path} if path.is_dir() else {Path(name).parent for name in glob.glob(str(path))}:
        refuse_versions(folder)
    if not path.is_dir():
        where = f"file '{path}'"
        parts = [Part(Path(name), Path(name).name) for name in glob.glob(str(path))]
        odd = [part for part in parts if part.path.suffix != PARQUET or not part.path.is_file()]
        if not parts:
            raise InputError(f"{where}: nothing matches this pattern; check it")
        if odd:
            raise InputError(
                f"{where}: names {len(odd)} that are not {PARQUET} files; several files are read as"
                f" one table only if all of them are {PARQUET}"
            )
    else:
        where = f"folder '{path}'"
        parts = list(_within(path, Part(path, "")))
        if _left_out(path, parts):
            raise InputError(
                f"{where}: holds Parquet files that would not be read; name all of them {PARQUET},"
                " and put them into the folder itself, or into folders such as year=2024"
            )
    if not parts:
        raise InputError(f"{where}: holds no {PARQUET} file; {_instead_of(path)}")
    parts.sort(key=lambda part: Path(part.name).parts if path.is_dir() else part.path.parts)
    elsewhere = [
        f"{where}: '{part.shown}' lies in folders that name other columns than those of"
        f" '{parts[0].shown}'; part all files by the same columns"
        for part in parts
        if part.keys != parts[0].keys
    ]
    InputError.raise_for(elsewhere)
    return parts


def _instead_of(folder: Path) -> str:
    """What to do with a folder that was taken for one table but holds several files."""
    from shoal.connectors.formats import named

    if not any(named(path.name) for path in folder.iterdir() if path.is_file()):
        return "name a file, or a folder of them"
    return (
        "name one of its tables; if several are about the same people, a policy links them, which"
        f" 'shoal policy init {folder}' proposes"
    )


LOGS = {
    "_delta_log": "Delta Lake",
    ".hoodie": "Hudi",
    ".hoodie_partition_metadata": "Hudi",
    "metadata/*.metadata.json*": "Iceberg",
    "_versions": "Lance",
}
ABOVE = 3  # folders in which the log of a table may lie over its files


def refuse_versions(path: Path) -> None:
    """Raises InputError for a table, or a part of one, whose log says which of its files still
    count: all of them hold deleted people, too, and others twice.
    """
    for folder in (path, *path.absolute().parents[:ABOVE]):
        for log, kind in LOGS.items():
            if next(folder.glob(log), None) is not None:
                raise InputError(
                    f"'{path}': is of a table of {kind}, whose log says which of its files still"
                    f" count; export its present state with {kind} as one .parquet file, and name"
                    " that"
                )


def _within(folder: Path, above: Part) -> Iterator[Part]:
    """The files of a folder and of those in it whose names hold values."""
    for path in folder.iterdir():
        if path.name[0] in "._":  # what engines keep beside a table
            continue
        name = f"{above.name}/{path.name}".lstrip("/")
        if path.is_file() and path.suffix == PARQUET:
            yield Part(path, name, above.values)
        elif path.is_dir() and "=" in path.name:
            key, _, text = path.name.partition("=")
            key, value = unquote(key), None if text == NO_VALUE else unquote(text)
            if key in above.keys:  # or a link to a folder above would never end
                raise InputError(
                    f"column '{key}': is named by two folders, one in the other; name it once"
                )
            yield from _within(path, Part(path, name, (*above.values, (key, value))))


def _left_out(folder: Path, parts: Sequence[Part]) -> set[Path]:
    """The files of a table that are none of its parts, but for what engines keep beside it."""
    found = (path for path in folder.rglob("*") if path.suffix.lower() in (PARQUET, ".pq"))
    shown = {p for p in found if not any(n[0] in "._" for n in p.relative_to(folder).parts)}
    return {path for path in shown if path.is_file()} - {part.path for part in parts}


def hashed(parts: list[Part]) -> list[Part]:
    return [replace(part, sha256=file_sha256(part.path)) for part in parts]


def digest(parts: list[Part]) -> str:
    """One SHA-256 of all: that of the lines that sha256sum prints about them in their folder."""
    lines = "".join(f"{part.sha256}  {part.name}\n" for part in parts)
    return hashlib.sha256(lines.encode()).hexdigest()


def check_alike(schemas: Sequence[Mapping[str, pl.DataType]], parts: list[Part]) -> None:
    """Raises InputError with every file that differs from the first. schemas: of each file."""
    first = schemas[0]
    twice = sorted(set(parts[0].keys) & set(first))
    findings = [
        f"file '{parts[0].shown}': has a column '{key}', which is also in the names of its"
        " folders; drop one of them"
        for key in twice
    ]
    findings += [
        f"file '{part.shown}': has other columns, or columns of other types, than"
        f" '{parts[0].shown}'; write all files alike"
        for part, schema in zip(parts, schemas, strict=True)
        if list(schema.items()) != list(first.items())
    ]
    InputError.raise_for(findings)


def joined(frames: list[pl.DataFrame], parts: list[Part]) -> pl.DataFrame:
    """All files' records, in turn; raises InputError with each file unlike the first."""
    check_alike([frame.schema for frame in frames], parts)
    return pl.concat(
        frame.with_columns(pl.lit(value, dtype=pl.String).alias(key) for key, value in part.values)
        for part, frame in zip(parts, frames, strict=True)
    )


# The manifest of a released folder: which of its files were audited, and the proof.
#
#     out/part-00000.parquet ...   the records, one file after the other
#     out/_shoal.json              the certificate; its `output.files` names each file with its hash
#
# A folder with a manifest is read by it or not at all: a file that it doesn't name was never
# audited, whoever put it there.


def check_released(path: str | Path) -> None:
    """Raises InputError where it is not known which files of a folder were released.

    One that another maker released and an audit has certified may have its certificate beside it.
    A pattern names its files itself.
    """
    folder = Path(path)
    if folder.is_dir() and not Path(Location(path).certificate).is_file():
        raise InputError(
            f"folder '{path}': has no {MANIFEST}, so nothing says which of its files were released;"
            f" fetch the whole folder, or name the files: '{folder}/*.parquet'"
        )


def check_named(folder: str | Path, parts: Sequence[Part]) -> None:
    """Raises InputError where a folder with a manifest does not hold just the files that it names.

    parts: the folder's Parquet files, hashed. A pattern names its files itself.
    """
    manifest = Path(folder) / MANIFEST
    if not manifest.is_file():
        return
    stated = stated_files(manifest)
    found = {part.name: part.sha256 for part in parts}
    # hidden names, too: they are handed on with the folder, and not every engine passes over them
    there = {path.name for path in Path(folder).iterdir()} - {MANIFEST, f"{MANIFEST}.sig"}
    strange = sorted((there | set(found)) - set(stated))
    missing = sorted(set(stated) - set(found))
    changed = sorted(name for name in set(stated) & set(found) if stated[name] != found[name])
    listed = ", ".join(missing[:3]) + ", ..." * bool(missing[3:])
    findings = [
        f"folder '{folder}': {'1 file is' if len(which) == 1 else f'{len(which)} files are'} {what}"
        for which, what in (
            (
                strange,
                f"not in its {MANIFEST}: never audited; resume a stream that was killed, or take"
                " away what doesn't belong",
            ),
            (
                missing,
                f"missing that its {MANIFEST} names ({listed}); fetch the whole folder again",
            ),
            (changed, f"not as its {MANIFEST} says; fetch the whole folder again"),
        )
        if which
    ]
    InputError.raise_for(findings)


def stated_files(manifest: Path) -> dict[str, str]:
    """The hash of every file, by name; raises InputError where a manifest says nothing of that."""
    output = Certificate.load(manifest).get("output") or {}
    entries = output.get("files") or ()
    try:
        stated = {str(entry["name"]): str(entry["sha256"]) for entry in entries}
    except (TypeError, KeyError):
        stated = {}
    if not stated:
        raise InputError(
            f"folder '{manifest.parent}': its {MANIFEST} names no files; fetch the folder again"
        )
    return stated
