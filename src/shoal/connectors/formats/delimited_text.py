"""Delimited text, which is read as text, cell by cell."""

from typing import BinaryIO

import polars as pl

from shoal.connectors import delimited
from shoal.connectors.dialect import default_dialect
from shoal.connectors.formats import Asked, Form, Format, SourceFile


class DelimitedText(Format):
    """Text whose cells a delimiter parts."""

    label = "delimited text"
    is_delimited = True
    fits_past_memory = True

    @property
    def media_type(self) -> str:  # type: ignore[override]
        return "text/tab-separated-values" if self in (".tsv", ".tab") else "text/csv"

    def read(self, asked: Asked) -> SourceFile:
        table, dialect = delimited.read(
            asked.content, asked.path, self, asked.categorical, asked.reading
        )
        return SourceFile(table, dialect=dialect)

    def write(self, frame: pl.DataFrame, file: BinaryIO, form: Form) -> None:
        delimited.write(frame, file, form.dialect or default_dialect(self))


FORMATS = tuple(map(DelimitedText, (".csv", ".tsv", ".txt", ".tab")))
