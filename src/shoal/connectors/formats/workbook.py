"""Excel workbooks, whose cells are read and written as text."""

from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

import polars as pl

from shoal.connectors.dialect import Dialect, Reading
from shoal.connectors.format import Format, SourceFile
from shoal.data.table import Table


class Workbook(Format):
    title = "an Excel workbook or another archive"
    media_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    magic = b"PK\x03\x04"
    has_sheets = True
    is_compressed = True

    def read(
        self, content: bytes | Path, path: str, categorical: Collection[str], reading: Reading
    ) -> SourceFile:
        from shoal.connectors import workbooks

        frame, remarks = workbooks.read(path, reading)
        return SourceFile(Table(frame), remarks=remarks)

    def write(
        self,
        frame: pl.DataFrame,
        file: BinaryIO,
        dialect: Dialect | None,
        metadata: dict[str, str] | None,
    ) -> None:
        from shoal.connectors import workbooks

        workbooks.write({workbooks.SHEET: frame}, file)


FORMATS = (Workbook(".xlsx"),)
