"""A release between its making and its publication: written, read back, certified, then committed.

Wherever it goes - a file, a folder, a database - the steps are the same, and nobody sees anything
before the block ends well: a file and a folder take their names by a rename, a table by a commit.
"""

import ctypes
import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from shoal.connectors import files, outputs, parquet_parts
from shoal.connectors.dialect import Dialect, Reading
from shoal.connectors.location import FRAME, MANIFEST, PARQUET, Location, is_taken
from shoal.data.certificate_shape import OutputReport
from shoal.data.numbers import PLAIN, Notation
from shoal.data.schema import Render
from shoal.data.table import Table
from shoal.errors import InputError, os_errors_as_input_errors

if TYPE_CHECKING:
    from shoal.connectors.database.tables import TableDraft

Metadata = dict[str, str] | None
"""What Parquet keeps beside the table."""


@dataclass(frozen=True)
class WrittenDraft:
    """A table about to be published. path: where it is. name: of its file or table, afterwards."""

    path: Path
    name: Location

    def read(self, categorical: Collection[str], reading: Reading) -> files.SourceFile:
        """What stands there now, as its readers would get it."""
        return files.read_as(self.path, self.name.kind, categorical, reading)


@dataclass(frozen=True)
class ReleaseDraft(WrittenDraft, ABC):
    """A release of one table."""

    @abstractmethod
    def write(self, frame: pl.DataFrame, dialect: Dialect, metadata: Metadata = None) -> None:
        """Puts all records. dialect: of delimited text."""

    def described(
        self, sha256: str, render: Render, dialect: Dialect, notation: Notation = PLAIN
    ) -> OutputReport:
        """What a certificate says of it under `output`."""
        return outputs.describe_file(self.path, self.name, sha256, render, dialect, notation)

    @abstractmethod
    def certify(self, certificate: str) -> None:
        """Puts the certificate where its readers look for it, to be committed with the release."""


def check_output(output_path: str, replace: bool) -> None:
    """Raises InputError, before any work, where a release can't be put there.

    replace: whether what is there gives way.
    """
    place = Location(output_path)
    if place.is_folder:
        check_target(output_path, replace)
    elif place.is_table:
        from shoal.connectors.database.tables import check_releases

        InputError.raise_for(outputs.in_ledgers(output_path))
        check_releases([place], replace)
    else:
        files.check_writable(output_path, replace)


@contextmanager
def release_draft(
    output_path: str, replace: bool = False, second: str | None = None
) -> Iterator[ReleaseDraft]:
    """A draft that is committed if the block succeeds, else removed with all that it held.

    replace: whether an earlier release, or a file, gives way, also one that has appeared meanwhile.
    second: where the second of two tables goes, whose draft is committed before it; it is removed
    again if this one can't be.
    """
    place = Location(output_path)
    if place == FRAME:
        yield FrameDraft(Path(), place)
    elif place.is_table:
        from shoal.connectors.database.tables import table_drafts

        with table_drafts([place], replace) as (table,):
            yield DatabaseDraft(Path(place), place, table)
    elif place.is_folder:
        with folder_draft(output_path, replace) as folder:
            yield FolderDraft(folder, place)
    else:
        target = files.atomic_write(output_path, replace=replace)
        with ExitStack() as uncommitted, target as path:
            yield FileDraft(path, place, uncommitted, second, replace)


@dataclass(frozen=True)
class FileDraft(ReleaseDraft):
    """A file under another name. uncommitted: removes what certifies it where it can't be moved
    into place; entered no earlier, so that what another run has certified meanwhile stays.
    replace: whether a file there gives way.
    """

    uncommitted: ExitStack = field(default_factory=ExitStack)
    second: str | None = None
    replace: bool = True

    def write(self, frame: pl.DataFrame, dialect: Dialect, metadata: Metadata = None) -> None:
        files.write(frame, self.path, self.name.kind, self.name.is_packed, dialect, metadata)

    def certify(self, certificate: str) -> None:
        if not self.name.is_standard:
            # until the release is in its place, no other run certifies or publishes there
            self.uncommitted.enter_context(outputs.sole_writer([Path(self.name)]))
            files.check_writable(self.name, self.replace)
            undo = outputs.remove_uncommitted_certificate(self.name, self.second)
            self.uncommitted.enter_context(undo)
            with files.atomic_write(self.name.certificate) as proof:
                proof.write_text(certificate)


@dataclass(frozen=True)
class FrameDraft(ReleaseDraft):
    """A frame in memory, for whoever asked for it; it has no place for a certificate."""

    held: list[pl.DataFrame] = field(default_factory=list)

    def write(self, frame: pl.DataFrame, dialect: Dialect, metadata: Metadata = None) -> None:
        self.held.append(frame)

    def read(self, categorical: Collection[str], reading: Reading) -> files.SourceFile:
        return files.SourceFile(Table(self.held[0]), "")

    def certify(self, certificate: str) -> None:
        pass


@dataclass(frozen=True)
class FolderDraft(ReleaseDraft):
    """A folder of Parquet files under another name."""

    def write(self, frame: pl.DataFrame, dialect: Dialect, metadata: Metadata = None) -> None:
        write_parts(frame, self.path, metadata)

    def described(
        self, sha256: str, render: Render, dialect: Dialect, notation: Notation = PLAIN
    ) -> OutputReport:
        said = super().described(sha256, render, dialect, notation)
        return said | {"files": listed_files(self.path)}

    def certify(self, certificate: str) -> None:
        (self.path / MANIFEST).write_text(certificate)


@dataclass(frozen=True)
class DatabaseDraft(ReleaseDraft):
    """A table in a transaction that is still open. name: its address."""

    table: "TableDraft"

    def write(self, frame: pl.DataFrame, dialect: Dialect, metadata: Metadata = None) -> None:
        self.table.write(frame)

    def read(self, categorical: Collection[str], reading: Reading) -> files.SourceFile:
        return self.table.read()

    def certify(self, certificate: str) -> None:
        self.table.certify(certificate)


# A release in a folder of Parquet files: all of it appears under its name at once, or nothing.
#
# It is made in a hidden folder beside the target (`.out.<id>.part`, its owner's alone), audited
# there, synced, and given its name by one rename: nobody ever sees a part without the others, nor
# files without the manifest. In place of an earlier release it takes its name by an exchange of the
# two folders, where the system has one; after that the earlier release is deleted.


RECORDS = 1 << 20
"""Of one part: so that parts follow from the release alone, not from the machine."""
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # of Linux: fcntl.h, linux/fs.h


def write_parts(frame: pl.DataFrame, draft: Path, metadata: dict[str, str] | None) -> None:
    """The release as the files of a folder, at least one."""
    for number, first in enumerate(range(0, max(frame.height, 1), RECORDS)):
        part = draft / f"part-{number:05d}{PARQUET}"
        files.write(frame.slice(first, RECORDS), part, PARQUET, metadata=metadata)


def listed_files(draft: Path) -> list[dict[str, str | int]]:
    """What the manifest says of every file: name, records, bytes and hash."""
    return [
        {
            "name": part.name,
            "records": pl.scan_parquet(part.path).select(pl.len()).collect().item(),
            "bytes": part.path.stat().st_size,
            "sha256": part.sha256,
        }
        for part in parquet_parts.hashed(parquet_parts.parts_of(draft))
    ]


def _require_named(folder: Path) -> None:
    """Raises InputError where a folder does not hold just the files that its manifest names."""
    parquet_parts.check_named(folder, parquet_parts.hashed(parquet_parts.parts_of(folder)))


@dataclass(frozen=True)
class Proof:
    """What makes a folder a release. name: of its certificate. require_own: raises InputError where
    a folder holds anything that this certificate does not name.
    """

    name: str
    require_own: Callable[[Path], None]


OF_PARTS = Proof(MANIFEST, _require_named)


@contextmanager
def folder_draft(output_path: str, replace: bool, proof: Proof = OF_PARTS) -> Iterator[Path]:
    """A folder to write to, which takes the name of the output if the block succeeds.

    replace: whether a release that stands there already gives way; nothing else ever does. Raises
    InputError.
    """
    target = Path(output_path)
    check_target(output_path, replace, proof)
    with outputs.draft_beside(target, f"output '{output_path}'", is_folder=True) as draft:
        yield draft
        check_target(output_path, replace, proof)  # somebody may have taken the name meanwhile
        with os_errors_as_input_errors(f"output '{output_path}'", "name a new folder", "writing"):
            files.open_to_readers(draft)
            has_earlier = target.is_dir() and any(target.iterdir())
            files.move_into_place(draft, target, _exchange if has_earlier else None)


def check_target(output_path: str, replace: bool, proof: Proof = OF_PARTS) -> None:
    """Raises InputError where a folder can't take this name. replace: as in `folder_draft`."""
    InputError.raise_for(outputs.in_ledgers(output_path))
    target, where = Path(output_path), f"output '{output_path}'"
    if target.exists() and not target.is_dir():
        raise InputError(f"{where}: is a file; name a new folder")
    if not target.parent.is_dir() or not os.access(target.parent, os.W_OK):
        raise InputError(
            f"{where}: can't be made; name a folder in one that exists and is writable"
        )
    if not target.is_dir() or not any(target.iterdir()):
        return
    if not (target / proof.name).is_file():
        raise InputError(
            f"{where}: is a folder with something other than a release in it; name a new one"
        )
    if not replace:
        raise is_taken(where, "folder")
    proof.require_own(target)  # what its certificate doesn't name would be deleted with it


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
