"""The formats of files: how each is read and written, and which one a name or a beginning says."""

import codecs
from bisect import bisect_left
from collections import Counter
from pathlib import Path
from typing import BinaryIO

import polars as pl

from shoal.connectors import delimited, parquet_parts, typed
from shoal.connectors.dialect import Reading, default_dialect, whole
from shoal.connectors.format import Asked, Form, Format, SourceFile
from shoal.data import regular_files, warnings
from shoal.data.table import Table
from shoal.errors import InputError, MissingExtraError

PACKED = ".gz"
"""Ends the name of a compressed file."""


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


class JsonLines(Format):
    """An object a line."""

    label = "JSON lines"
    media_type = "application/jsonlines"
    is_json = True
    is_typed = True

    def read(self, asked: Asked) -> SourceFile:
        text, reading = whole(asked.content).removeprefix(codecs.BOM_UTF8), asked.reading
        where = f"file '{asked.path}'"
        typed.require_keys_shared(text, where, reading.unpacked)
        frame = typed.objects(text)
        if frame is None:
            lines = text.split(b"\n")
            upto = range(len(lines) + 1)
            bad = bisect_left(
                upto, True, key=lambda n: typed.objects(b"\n".join(lines[:n])) is None
            )
            raise InputError(
                f"{where}: line {bad} is not a JSON object like the others; write one object a line"
            )
        table = typed.plain(frame, where, reading)
        typed.check_texts(text, table, where, reading)
        typed.check_keys(text, table, where)
        return SourceFile(Table(table))

    def write(self, frame: pl.DataFrame, file: BinaryIO, form: Form) -> None:
        endless = [
            name
            for name, dtype in frame.schema.items()
            if dtype.is_float() and frame[name].is_infinite().any()
        ]  # which JSON can't say
        frame = delimited.with_moments_as_text(frame).with_columns(pl.col(endless).cast(pl.String))
        frame.write_ndjson(file)


ROWS = 4096
"""Records that are unpacked before their size is looked at again."""


class Orc(Format):
    """ORC, which PyArrow reads."""

    label = "ORC"
    media_type = "application/vnd.apache.orc"
    magic = b"ORC"
    has_types = True
    is_typed = True
    is_compressed = True
    is_written = False

    def read(self, asked: Asked) -> SourceFile:
        path, reading = asked.path, asked.reading
        where = f"file '{path}'"
        try:
            import pyarrow as pa
            from pyarrow import dataset, orc
        except ImportError:
            raise MissingExtraError.of(
                f"{where}: needs PyArrow, of the extra 'spark'", "spark"
            ) from None
        damaged = InputError(f"{where}: {typed.INCOMPLETE.format('orc')}")
        most = regular_files.most_unpacked(Path(path).stat().st_size, reading.unpacked)
        try:
            with open(path, "rb") as file:
                footer = orc.ORCFile(file)
                schema, cells = footer.schema, footer.nrows * len(footer.schema)
                if len({*schema.names}) < len(schema):
                    raise InputError(f"{where}: two columns have one name; rename one of them")
                regular_files.require_room(regular_files.CELL * cells, most, where)
            batches, size = [], 0
            for batch in dataset.dataset(path, format="orc").to_batches(batch_size=ROWS):
                size += batch.nbytes
                regular_files.require_room(size, most, where)
                batch.validate(full=True)  # Polars takes every text for UTF-8
                batches.append(batch)
            with typed.table_errors(path, ".orc", where):
                frame = pl.DataFrame(pl.from_arrow(pa.Table.from_batches(batches, schema)))
        except (pa.ArrowException, UnicodeDecodeError):
            raise damaged from None
        except OSError as failed:
            if failed.errno is not None:  # the system's: said by whoever opens files
                raise
            raise damaged from None
        remarks = warnings.nan_remarks(typed.nan_counts(frame, reading))
        return SourceFile(Table(typed.plain(frame, where, reading)), remarks=remarks)


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
        frame, unread, nans = read_columns(path, self, reading)
        return SourceFile(Table(frame), remarks=warnings.nan_remarks(nans), unread=unread)

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
        schema = table.collect_schema()
        names = typed.without_records(schema)
        kept = typed.plain(names, f"file '{path}'", reading)
        # a short file may hold very long lists, so those that nobody needs are not even looked at
        unread = [
            name
            for name in names.columns
            if kept[name].dtype != names[name].dtype
            and (names[name].dtype != schema[name] or _holds_lists(schema[name]))
        ]
        frame = table.with_columns(pl.lit(None, pl.String).alias(name) for name in unread).collect()
    return (
        typed.plain(frame, f"file '{path}'", reading),
        tuple(unread),
        typed.nan_counts(frame, reading),
    )


def _holds_lists(dtype: pl.DataType) -> bool:
    if isinstance(dtype, pl.Struct):
        return any(_holds_lists(field.dtype) for field in dtype.fields)  # type: ignore[arg-type]
    return isinstance(dtype, pl.List | pl.Array)


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


FORMATS: tuple[Format, ...] = (
    *map(DelimitedText, (".csv", ".tsv", ".txt", ".tab")),
    JsonLines(".jsonl"),
    Orc(".orc"),
    Parquet(".parquet"),
    Arrow(".arrow"),
    Workbook(".xlsx"),
)
SUFFIXES = tuple(
    f"{one}{packed}" for one in FORMATS for packed in ("", PACKED) if one.is_text or not packed
)
"""How the names of tables end."""
_BY_SUFFIX = {str(one): one for one in FORMATS}


def format_of(suffix: str) -> Format:
    """The format of a suffix without compression; raises InputError where none has it."""
    if suffix not in _BY_SUFFIX:
        raise InputError(f"format '{suffix}': is unknown; use one of {', '.join(FORMATS)}")
    return _BY_SUFFIX[suffix]


def named(name: str) -> Format | None:
    """The format that the end of a name says; None where it says none."""
    suffix = next((end for end in SUFFIXES if name.lower().endswith(end)), None)
    return None if suffix is None else format_of(suffix.removesuffix(PACKED))


def begun_as(start: bytes) -> Format | None:
    """The format whose files begin like this; None where none is known by its beginning."""
    return next((one for one in FORMATS if one.magic and start.startswith(one.magic)), None)


def is_alike(kind: Format, suffix: str) -> bool:
    """Whether two formats differ by name at most, as all delimited text does."""
    return suffix == kind or type(_BY_SUFFIX.get(suffix)) is type(kind)
