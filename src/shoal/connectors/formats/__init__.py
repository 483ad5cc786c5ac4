"""The formats of files, one a module, whose `FORMATS` is found by looking; and what is known of a
format, and what reading one gives.
"""

import importlib
import pkgutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import polars as pl

from shoal.connectors.dialect import Dialect, Reading
from shoal.data.table import Table
from shoal.data.warnings import ReleaseWarning
from shoal.errors import InputError


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


PACKED = ".gz"
"""Ends the name of a compressed file."""

FORMATS: tuple[Format, ...] = tuple(
    one
    for info in pkgutil.iter_modules(__path__)
    for one in importlib.import_module(f"{__name__}.{info.name}").FORMATS
)
BY_SUFFIX = {
    f"{one}{packed}": one for one in FORMATS for packed in ("", PACKED) if one.is_text or not packed
}
SUFFIXES = tuple(BY_SUFFIX)
"""How the names of tables end."""


def format_of(suffix: str) -> Format:
    """The format of a suffix; raises InputError where none has it."""
    if suffix not in BY_SUFFIX:
        raise InputError(f"format '{suffix}': is unknown; use one of {', '.join(FORMATS)}")
    return BY_SUFFIX[suffix]


def named(name: str) -> Format | None:
    """The format that the end of a name says; None where it says none."""
    return next((kind for end, kind in BY_SUFFIX.items() if name.lower().endswith(end)), None)


def begun_as(start: bytes) -> Format | None:
    """The format whose files begin like this; None where none is known by its beginning."""
    return next((one for one in FORMATS if one.magic and start.startswith(one.magic)), None)


def is_alike(kind: Format, suffix: str) -> bool:
    """Whether two formats differ by name at most, as all delimited text does."""
    return suffix == kind or type(BY_SUFFIX.get(suffix)) is type(kind)
