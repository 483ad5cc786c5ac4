"""Delimited text, which is read as text, cell by cell."""

from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

import polars as pl

from shoal.connectors import delimited
from shoal.connectors.dialect import Dialect, Reading, default_dialect
from shoal.connectors.format import Format, SourceFile


class DelimitedText(Format):
    title = "delimited text"
    is_delimited = True
    fits_past_memory = True

    @property
    def media_type(self) -> str:  # type: ignore[override]
        return "text/tab-separated-values" if self in (".tsv", ".tab") else "text/csv"

    def read(
        self, content: bytes | Path, path: str, categorical: Collection[str], reading: Reading
    ) -> SourceFile:
        table, dialect = delimited.read(content, path, self, categorical, reading)
        return SourceFile(table, dialect=dialect)

    def write(
        self,
        frame: pl.DataFrame,
        file: BinaryIO,
        dialect: Dialect | None,
        metadata: dict[str, str] | None,
    ) -> None:
        delimited.write(frame, file, dialect or default_dialect(self))


FORMATS = tuple(map(DelimitedText, (".csv", ".tsv", ".txt", ".tab")))
