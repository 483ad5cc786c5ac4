"""A release between its making and its publication: written, read back, certified, then committed.

Wherever it goes - a file, a folder, a database - the steps are the same, and nobody sees anything
before the block ends well: a file and a folder take their names by a rename, a table by a commit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from shoal.connectors import files
from shoal.connectors.dialect import Dialect, Reading
from shoal.connectors.files import SourceFile
from shoal.connectors.folder_draft import check_target, folder_draft, listed_files, write_parts
from shoal.connectors.location import MANIFEST, Location
from shoal.connectors.outputs import describe_file, remove_uncommitted_certificate
from shoal.data.notation import PLAIN, Notation
from shoal.data.schema import Render
from shoal.data.table import Table

if TYPE_CHECKING:
    from shoal.connectors.database.tables import TableDraft

Metadata = dict[str, str] | None
"""What Parquet keeps beside the table."""


@dataclass(frozen=True)
class ReleaseDraft(ABC):
    """What is about to be published. path: where it is until then. name: the one it will have."""

    path: Path
    name: Location

    @abstractmethod
    def write(self, frame: pl.DataFrame, dialect: Dialect, metadata: Metadata = None) -> None:
        """Puts all records. dialect: of delimited text."""

    def read(self, categorical: Collection[str], reading: Reading) -> SourceFile:
        """What stands there now, as its readers would get it."""
        return files.read_as(self.path, self.name.kind, categorical, reading)

    def described(
        self, sha256: str, render: Render, dialect: Dialect, notation: Notation = PLAIN
    ) -> dict[str, Any]:
        """What a certificate says of it under `output`."""
        return describe_file(self.path, self.name, sha256, render, dialect, notation)

    @abstractmethod
    def certify(self, certificate: str) -> None:
        """Puts the certificate where its readers look for it, to be committed with the release."""


def check_output(output_path: str, replace: bool) -> None:
    """Raises InputError, before any work, where a file or a folder can't be put there.

    A table in a database is looked at when it is written.
    """
    place = Location(output_path)
    if place.is_folder:
        check_target(output_path, replace)
    elif not place.is_table:
        files.check_writable(output_path)


@contextmanager
def release_draft(
    output_path: str, replace: bool = False, second: str | None = None
) -> Iterator[ReleaseDraft]:
    """A draft that is committed if the block succeeds, else removed with all that it held.

    replace: whether an earlier release in a folder or a database gives way; a file always does.
    second: where the `second_draft` goes that is committed before it; it is removed again if this
    one can't be.
    """
    place = Location(output_path)
    if place.is_table:
        from shoal.connectors.database.tables import table_draft

        with table_draft(place.address, replace) as table:
            yield DatabaseDraft(Path(place), place, table)
    elif place.is_folder:
        with folder_draft(output_path, replace) as folder:
            yield FolderDraft(folder, place)
    else:
        with (
            remove_uncommitted_certificate(output_path, second),
            files.atomic_write(output_path) as path,
        ):
            yield FileDraft(path, place)


@contextmanager
def second_draft(path: str) -> Iterator[FileDraft]:
    """A draft of the second of two tables."""
    with files.atomic_write(path) as unfinished:
        yield FileDraft(unfinished, Location(path))


@dataclass(frozen=True)
class FileDraft(ReleaseDraft):
    """A file under another name."""

    def write(self, frame: pl.DataFrame, dialect: Dialect, metadata: Metadata = None) -> None:
        files.write(frame, self.path, self.name.kind, self.name.is_packed, dialect, metadata)

    def certify(self, certificate: str) -> None:
        if not self.name.is_standard:
            with files.atomic_write(self.name.certificate) as proof:
                proof.write_text(certificate)


@dataclass(frozen=True)
class FolderDraft(ReleaseDraft):
    """A folder of Parquet files under another name."""

    def write(self, frame: pl.DataFrame, dialect: Dialect, metadata: Metadata = None) -> None:
        write_parts(frame, self.path, metadata)

    def described(
        self, sha256: str, render: Render, dialect: Dialect, notation: Notation = PLAIN
    ) -> dict[str, Any]:
        said = super().described(sha256, render, dialect, notation)
        return said | {"files": listed_files(self.path)}

    def certify(self, certificate: str) -> None:
        (self.path / MANIFEST).write_text(certificate)


@dataclass(frozen=True)
class DatabaseDraft(ReleaseDraft):
    """A table in a transaction that is still open. name: its address."""

    table: TableDraft

    def write(self, frame: pl.DataFrame, dialect: Dialect, metadata: Metadata = None) -> None:
        self.table.write(frame)

    def read(self, categorical: Collection[str], reading: Reading) -> SourceFile:
        frame, digest = self.table.read()
        return SourceFile(Table(frame), digest)

    def certify(self, certificate: str) -> None:
        self.table.certify(certificate)
