"""JSON lines: an object a line, whose types are kept."""

import codecs
from bisect import bisect_left
from typing import BinaryIO

import polars as pl

from shoal.connectors.delimited import with_moments_as_text
from shoal.connectors.dialect import whole
from shoal.connectors.formats import Asked, Form, Format, SourceFile
from shoal.connectors.typed import check_keys, check_texts, objects, plain, require_keys_shared
from shoal.data.table import Table
from shoal.errors import InputError


class JsonLines(Format):
    """An object a line."""

    label = "JSON lines"
    media_type = "application/jsonlines"
    is_json = True
    is_typed = True

    def read(self, asked: Asked) -> SourceFile:
        text, reading = whole(asked.content).removeprefix(codecs.BOM_UTF8), asked.reading
        where = f"file '{asked.path}'"
        require_keys_shared(text, where, reading.unpacked)
        frame = objects(text)
        if frame is None:
            lines = text.split(b"\n")
            upto = range(len(lines) + 1)
            bad = bisect_left(upto, True, key=lambda n: objects(b"\n".join(lines[:n])) is None)
            raise InputError(
                f"{where}: line {bad} is not a JSON object like the others; write one object a line"
            )
        table = plain(frame, where, reading)
        check_texts(text, table, where, reading)
        check_keys(text, table, where)
        return SourceFile(Table(table))

    def write(self, frame: pl.DataFrame, file: BinaryIO, form: Form) -> None:
        endless = [
            name
            for name, dtype in frame.schema.items()
            if dtype.is_float() and frame[name].is_infinite().any()
        ]  # which JSON can't say
        frame = with_moments_as_text(frame).with_columns(pl.col(endless).cast(pl.String))
        frame.write_ndjson(file)


FORMATS = (JsonLines(".jsonl"),)
