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
from shoal.connectors.database.address import is_address, parse
from shoal.connectors.dialect import Dialect, Reading
from shoal.connectors.files import SourceFile
from shoal.connectors.folder_draft import check_target, folder_draft, listed_files, write_parts
from shoal.connectors.folder_manifest import MANIFEST, is_folder
from shoal.connectors.outputs import certificate_path, describe_file, remove_uncommitted_certificate
from shoal.data.notation import PLAIN, Notation
from shoal.data.schema import Render

if TYPE_CHECKING:
    from shoal.connectors.database.tables import TableDraft

Metadata = dict[str, str] | None
"""What Parquet keeps beside the table."""


class ReleaseDraft(ABC):
    """What is about to be published. path: where it is until then. name: the one it will have."""

    path: str | Path
    name: str

    @abstractmethod
    def write(self, frame: pl.DataFrame, dialect: Dialect, metadata: Metadata = None) -> None:
        """Puts all records. dialect: of delimited text."""

    @abstractmethod
    def read(self, categorical: Collection[str], reading: Reading) -> SourceFile:
        """What stands there now, as its readers would get it."""

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
    if is_folder(output_path):
        check_target(output_path, replace)
    elif not is_address(output_path):
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
    if is_address(output_path):
        from shoal.connectors.database.tables import table_draft

        with table_draft(parse(output_path), replace) as table:
            yield DatabaseDraft(output_path, output_path, table)
    elif is_folder(output_path):
        with folder_draft(output_path, replace) as folder:
            yield FolderDraft(folder, output_path)
    else:
        with (
            remove_uncommitted_certificate(output_path, second),
            files.atomic_write(output_path) as path,
        ):
            yield FileDraft(path, output_path)


@contextmanager
def second_draft(path: str) -> Iterator[FileDraft]:
    """A draft of the second of two tables."""
    with files.atomic_write(path) as unfinished:
        yield FileDraft(unfinished, path)


@dataclass(frozen=True)
class FileDraft(ReleaseDraft):
    """A file under another name."""

    path: Path
    name: str

    def write(self, frame: pl.DataFrame, dialect: Dialect, metadata: Metadata = None) -> None:
        packed = self.name.endswith(files.PACKED)
        files.write(frame, self.path, files.format_of(self.name), packed, dialect, metadata)

    def read(self, categorical: Collection[str], reading: Reading) -> SourceFile:
        return files.read_as(self.path, files.format_of(self.name), categorical, reading)

    def certify(self, certificate: str) -> None:
        if self.name != files.STANDARD:
            with files.atomic_write(certificate_path(self.name)) as proof:
                proof.write_text(certificate)


@dataclass(frozen=True)
class FolderDraft(ReleaseDraft):
    """A folder of Parquet files under another name."""

    path: Path
    name: str

    def write(self, frame: pl.DataFrame, dialect: Dialect, metadata: Metadata = None) -> None:
        write_parts(frame, self.path, metadata)

    def read(self, categorical: Collection[str], reading: Reading) -> SourceFile:
        return files.read_as(self.path, ".parquet", categorical, reading)

    def described(
        self, sha256: str, render: Render, dialect: Dialect, notation: Notation = PLAIN
    ) -> dict[str, Any]:
        said = super().described(sha256, render, dialect, notation)
        return said | {"files": listed_files(self.path)}

    def certify(self, certificate: str) -> None:
        (self.path / MANIFEST).write_text(certificate)


@dataclass(frozen=True)
class DatabaseDraft(ReleaseDraft):
    """A table in a transaction that is still open. path, name: its address."""

    path: str
    name: str
    table: TableDraft

    def write(self, frame: pl.DataFrame, dialect: Dialect, metadata: Metadata = None) -> None:
        self.table.write(frame)

    def read(self, categorical: Collection[str], reading: Reading) -> SourceFile:
        return SourceFile(*self.table.read())

    def certify(self, certificate: str) -> None:
        self.table.certify(certificate)
