"""A release in a folder of Parquet files: all of it appears under its name at once, or nothing.

It is made in a hidden folder beside the target (`.out.<id>.part`, its owner's alone), audited
there, synced, and given its name by one rename: nobody ever sees a part without the others, nor
files without the manifest. In place of an earlier release it takes its name by an exchange of the
two folders, where the system has one; after that the earlier release is deleted.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from shoal.connectors import files, folder_manifest, parquet_parts
from shoal.connectors.location import MANIFEST, PARQUET
from shoal.connectors.sweeping import draft_beside
from shoal.data.regular_files import sync
from shoal.errors import InputError

RECORDS = 1 << 20
"""Of one part: so that parts follow from the release alone, not from the machine."""
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # of Linux: fcntl.h, linux/fs.h


def write_parts(frame: pl.DataFrame, draft: Path, metadata: dict[str, str] | None) -> None:
    """The release as the files of a folder, at least one."""
    for number, first in enumerate(range(0, max(frame.height, 1), RECORDS)):
        part = draft / f"part-{number:05d}{PARQUET}"
        files.write(frame.slice(first, RECORDS), part, PARQUET, metadata=metadata)


def listed_files(draft: Path) -> list[dict[str, object]]:
    """What the manifest says of every file: name, records, bytes and hash."""
    parts = parquet_parts.parts_of(draft)
    return [
        {
            "name": part.name,
            "records": pl.scan_parquet(part.path).select(pl.len()).collect().item(),
            "bytes": part.path.stat().st_size,
            "sha256": sha256,
        }
        for part, sha256 in zip(parts, parquet_parts.hashes(parts), strict=True)
    ]


@contextmanager
def folder_draft(output_path: str, replace: bool) -> Iterator[Path]:
    """A folder to write to, which takes the name of the output if the block succeeds.

    replace: whether a release that stands there already gives way; nothing else ever does. Raises
    InputError.
    """
    target = Path(output_path)
    check_target(output_path, replace)
    with draft_beside(target, output_path, is_folder=True) as draft:
        yield draft
        _take_place(draft, target, output_path)


def check_target(output_path: str, replace: bool) -> None:
    """Raises InputError where a folder can't take this name. replace: as in `folder_draft`."""
    target, where = Path(output_path), f"output '{output_path}'"
    if target.exists() and not target.is_dir():
        raise InputError(f"{where}: is a file; name a new folder")
    if not target.parent.is_dir() or not os.access(target.parent, os.W_OK):
        raise InputError(
            f"{where}: can't be made; name a folder in one that exists and is writable"
        )
    if not target.is_dir() or not any(target.iterdir()):
        return
    if not (target / MANIFEST).is_file():
        raise InputError(
            f"{where}: is a folder with something other than a release in it; name a new one"
        )
    if not replace:
        raise InputError(f"{where}: holds a release already; name a new folder, or say --replace")
    # reads it as anybody would: what its manifest doesn't name would be deleted with it
    parts = parquet_parts.parts_of(target)
    folder_manifest.check_named(target, parts, parquet_parts.hashes(parts))


def _take_place(draft: Path, target: Path, output_path: str) -> None:
    try:
        mask = files.umask()
        for path in sorted(draft.iterdir()):
            path.chmod(0o666 & ~mask)
            sync(path)
        sync(draft)
        if target.is_dir() and any(target.iterdir()):
            draft.chmod(0o777 & ~mask)
            _exchange(draft, target)
        else:
            draft.chmod(0o777 & ~mask)
            os.rename(draft, target)
        sync(target.parent)
    except OSError as failed:
        raise InputError(
            f"output '{output_path}': writing failed"
            f" ({failed.strerror or 'no space or no permission'}); name a new folder"
        ) from None


def _exchange(one: Path, other: Path) -> None:
    """Each gets the other's name, in one step; raises OSError where the system has no such step."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        raise OSError(errno.ENOSYS, "this system can't exchange folders in one step")
    first, second = os.fsencode(one), os.fsencode(other)
    if call(_AT_FDCWD, first, _AT_FDCWD, second, _RENAME_EXCHANGE) != 0:
        code = ctypes.get_errno()
        if code in (errno.EINVAL, errno.ENOSYS):
            raise OSError(code, "this file system can't exchange folders in one step")
        raise OSError(code, os.strerror(code))
