"""Excel workbooks, whose cells are read and written as text."""

from typing import BinaryIO

import polars as pl

from shoal.connectors.formats import Asked, Form, Format, SourceFile
from shoal.data.table import Table


class Workbook(Format):
    """An Excel workbook, of which one sheet is the table."""

    label = "an Excel workbook or another archive"
    media_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    magic = b"PK\x03\x04"
    has_sheets = True
    is_compressed = True

    def read(self, asked: Asked) -> SourceFile:
        from shoal.connectors import workbooks

        frame, remarks = workbooks.read(asked.path, asked.reading)
        return SourceFile(Table(frame), remarks=remarks)

    def write(self, frame: pl.DataFrame, file: BinaryIO, form: Form) -> None:
        from shoal.connectors import workbooks

        workbooks.write({workbooks.SHEET: frame}, file)


FORMATS = (Workbook(".xlsx"),)
