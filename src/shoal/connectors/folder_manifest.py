"""The manifest of a released folder: which of its files were audited, and the proof.

    out/part-00000.parquet ...   the records, one file after the other
    out/_shoal.json              the certificate; its `output.files` names every file with its hash

A folder with a manifest is read by it or not at all: a file that it doesn't name was never audited,
whoever put it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shoal.connectors.location import MANIFEST, STEPS, Location
from shoal.connectors.parquet_parts import Part
from shoal.data.certificate import Certificate
from shoal.errors import InputError


def check_released(path: str | Path) -> None:
    """Raises InputError where it is not known which files of a folder were released.

    A stream's folder has its certificate beside it, and so may one that another maker released and
    an audit has certified. A pattern names its files itself.
    """
    folder = Path(path)
    if not folder.is_dir() or folder.suffix == STEPS:
        return
    if not Path(Location(path).certificate).is_file():
        raise InputError(
            f"folder '{path}': has no {MANIFEST}, so nothing says which of its files were released;"
            f" fetch the whole folder, or name the files: '{folder}/*.parquet'"
        )


def check_named(folder: str | Path, parts: Sequence[Part], hashes: Sequence[str]) -> None:
    """Raises InputError where a folder with a manifest does not hold just the files that it names.

    parts, hashes: the folder's Parquet files, as they are. A pattern names its files itself.
    """
    manifest = Path(folder) / MANIFEST
    if not manifest.is_file():
        return
    stated = stated_files(manifest)
    found = dict(zip((part.name for part in parts), hashes, strict=True))
    strange = sorted({*found, *_other_names(Path(folder))} - set(stated))
    missing = sorted(set(stated) - set(found))
    changed = sorted(name for name in set(stated) & set(found) if stated[name] != found[name])
    findings = [
        f"folder '{folder}': {_counted(len(which))} {what}"
        for which, what in (
            (strange, f"not in its {MANIFEST}: never audited, so take away what doesn't belong"),
            (missing, f"of its {MANIFEST} not there; fetch the whole folder again"),
            (changed, f"not as its {MANIFEST} says; fetch the whole folder again"),
        )
        if which
    ]
    if findings:
        raise InputError.from_findings(findings)


def _counted(files: int) -> str:
    return "1 file is" if files == 1 else f"{files} files are"


def _other_names(folder: Path) -> set[str]:
    """What lies in the folder beside the manifest and its signature; hidden names, too.

    Whoever hands on the folder hands on these, and not every engine passes over them.
    """
    return {path.name for path in folder.iterdir()} - {MANIFEST, f"{MANIFEST}.sig"}


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
