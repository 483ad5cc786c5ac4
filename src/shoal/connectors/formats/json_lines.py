"""JSON lines: an object a line, whose types are kept."""

import codecs
from bisect import bisect_left
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

import polars as pl

from shoal.connectors.dialect import Dialect, Reading, whole
from shoal.connectors.format import Format, SourceFile
from shoal.connectors.typed import check_keys, check_texts, objects, plain, require_keys_shared
from shoal.data.table import Table
from shoal.errors import InputError


class JsonLines(Format):
    title = "JSON lines"
    media_type = "application/jsonlines"
    is_json = True
    is_typed = True

    def read(
        self, content: bytes | Path, path: str, categorical: Collection[str], reading: Reading
    ) -> SourceFile:
        text = whole(content).removeprefix(codecs.BOM_UTF8)
        require_keys_shared(text, f"file '{path}'", reading.unpacked)
        frame = objects(text)
        if frame is None:
            lines = text.split(b"\n")
            upto = range(len(lines) + 1)
            bad = bisect_left(upto, True, key=lambda n: objects(b"\n".join(lines[:n])) is None)
            raise InputError(
                f"file '{path}': line {bad} is not a JSON object like the others; write one object"
                " a line"
            )
        table = plain(frame, f"file '{path}'", reading)
        check_texts(text, table, f"file '{path}'", reading)
        check_keys(text, table, f"file '{path}'")
        return SourceFile(Table(table))

    def write(
        self,
        frame: pl.DataFrame,
        file: BinaryIO,
        dialect: Dialect | None,
        metadata: dict[str, str] | None,
    ) -> None:
        frame.write_ndjson(file)


FORMATS = (JsonLines(".jsonl"),)
