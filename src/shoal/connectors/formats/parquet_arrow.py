"""Parquet and Arrow: columns with types."""

from collections import Counter
from pathlib import Path
from typing import BinaryIO

import polars as pl

from shoal.connectors import parquet_parts, typed
from shoal.connectors.dialect import Reading
from shoal.connectors.formats import Asked, Form, Format, SourceFile
from shoal.data.table import Table
from shoal.data.warnings import nan_remarks

ROW_GROUP = 1 << 20
"""Records of a row group, whether a table is written at once or block by block."""


class Columnar(Format):
    """Each column is of one type."""

    is_columnar = True
    has_types = True
    is_typed = True

    def read(self, asked: Asked) -> SourceFile:
        path, reading = asked.path, asked.reading
        typed.require_unfolded([path], self, f"file '{path}'", reading.unpacked)
        if self.is_parquet:
            parquet_parts.refuse_versions(Path(path))
        frame, left, nans = read_columns(path, self, reading)
        return SourceFile(Table(frame), remarks=nan_remarks(nans), unread=left)

    def write(self, frame: pl.DataFrame, file: BinaryIO, form: Form) -> None:
        # a dictionary would carry along values that no cell shows
        categorical = [
            name for name, dtype in frame.schema.items() if dtype in (pl.Enum, pl.Categorical)
        ]
        frame = frame.with_columns(pl.col(name).cast(pl.String) for name in categorical)
        if not self.is_parquet:
            frame.write_ipc(file)
            return
        try:
            frame.write_parquet(file, metadata=form.metadata, row_group_size=ROW_GROUP)
        except pl.exceptions.ComputeError:
            # what the disk refuses, in another's words: plain cells can be written
            raise OSError from None


class Arrow(Columnar):
    """An Arrow file, in batches of records."""

    label = "Arrow"
    media_type = "application/vnd.apache.arrow.file"
    magic = b"ARROW1"


class Parquet(Columnar):
    """Parquet, in row groups."""

    label = "Parquet"
    media_type = "application/vnd.apache.parquet"
    magic = b"PAR1"
    is_parquet = True
    fits_past_memory = True


def read_columns(
    path: str, kind: str, reading: Reading
) -> tuple[pl.DataFrame, tuple[str, ...], Counter[str]]:
    """A table whose size was checked, its columns that were not read, and how many cells of others
    are NaN.
    """
    # a name is a name, whatever characters it holds
    with typed.table_errors(path, kind, f"file '{path}'"), open(path, "rb") as file:
        table = typed.scanned(file, kind)
        left = typed.unread(table.collect_schema(), f"file '{path}'", reading)
        frame = table.with_columns(pl.lit(None, pl.String).alias(name) for name in left).collect()
    return typed.plain(frame, f"file '{path}'", reading), left, typed.nan_counts(frame, reading)


FORMATS = (Parquet(".parquet"), Arrow(".arrow"))
