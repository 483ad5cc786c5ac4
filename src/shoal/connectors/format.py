"""What is known of a format of files, and what reading one gives."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import polars as pl

from shoal.connectors.dialect import Dialect, Reading
from shoal.data.table import Table
from shoal.data.warnings import ReleaseWarning


@dataclass(frozen=True)
class SourceFile:
    """A table as it was read, with the hash of its bytes.

    dialect: of delimited text, as which the table was read; None of other formats. second: the hash
    of the table of sensitive values, where a release of two tables was read. remarks: on rows that
    are nobody, or may be. contradicted: records whose derived numbers their cells contradict, None
    where the policy asks for none. unread: columns of lists that nobody needs, without their cells.
    """

    table: Table
    sha256: str = ""
    dialect: Dialect | None = None
    second: str | None = None
    remarks: tuple[ReleaseWarning, ...] = ()
    contradicted: int | None = None
    unread: tuple[str, ...] = ()

    @property
    def frame(self) -> pl.DataFrame:
        """Its records; raises InputError where they don't fit into memory."""
        return self.table.frame


class Asked(NamedTuple):
    """What is read. content: a file, or bytes of text, named `path`. Else as in `files.read`."""

    content: bytes | Path
    path: str
    categorical: Collection[str]
    reading: Reading


class Form(NamedTuple):
    """How a table is written, as in `files.write`."""

    dialect: Dialect | None
    metadata: dict[str, str] | None


class Format(str):
    """A format by one of its suffixes, without compression, and what can be done with it.

    `formats` lists its subclasses. What a subclass does not claim is
    refused: a stream, a run past memory or an output asks before it begins.
    """

    __slots__ = ()

    label = ""
    media_type = ""
    magic: bytes = b""
    """How its files begin; empty where any file may begin alike."""
    is_delimited = False
    """Whether it is delimited text, which has a dialect."""
    is_json = False
    """Whether each line is an object."""
    is_columnar = False
    """Whether it is read in slices of columns, and files of it can be joined."""
    is_parquet = False
    has_sheets = False
    has_types = False
    """Whether each column is of one type."""
    is_typed = False
    """Whether it keeps numbers and no value apart from text."""
    is_file = True
    """Whether it has bytes; a frame has none."""
    is_compressed = False
    """Whether a table takes far more than its file."""
    fits_past_memory = False
    """Whether it is read and written piece by piece as a table of codes."""
    is_written = True

    @property
    def is_text(self) -> bool:
        """Whether it is lines of text, which can come from a pipe, grow and be compressed."""
        return self.is_delimited or self.is_json

    @property
    def tells_numbers(self) -> bool:
        """Whether who reads it tells numbers from text that looks like one."""
        return self.is_typed or self.has_sheets

    @property
    def is_streamed(self) -> bool:
        """Whether a stream can read it and write it."""
        return self.is_text or self.is_columnar

    def read(self, asked: Asked) -> SourceFile:
        """The table in a file, its hash left out; raises InputError where it is wrong."""
        raise NotImplementedError

    def write(self, frame: pl.DataFrame, file: BinaryIO, form: Form) -> None:
        """Writes a table; raises InputError for what the format can't hold."""
        raise NotImplementedError


class DatabaseFormat(Format):
    """A table in a database, by the kind of that."""

    has_types = True


class FrameFormat(Format):
    """A frame in memory."""

    is_typed = True
    is_file = False
