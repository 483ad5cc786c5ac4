"""What tables with types may hold: Parquet, Arrow, JSON lines and frames."""

import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import polars as pl
from polars.selectors import by_name

from shoal.connectors.dialect import AS_FOUND, Reading
from shoal.connectors.page_sizes import unpacked_parts
from shoal.data.regular_files import CELL, SHORT, most_unpacked, require_room
from shoal.data.table import names_like_patterns
from shoal.errors import InputError, library_errors_as

FARTHEST_DAY = 95_000_000
"""Days from 1970, on either side, that can be written."""


INCOMPLETE = "is not a complete {} file; write it again"
BEYOND_NANOSECONDS = "moments before 1677 or after 2262; correct them, or store microseconds"
MOST_DIGITS = 38
EXACT = 2**53
"""Whole numbers up to which all are floats."""
_MOST_NAMED = 5


def table_errors(path: str | Path, kind: str, what: str) -> AbstractContextManager[None]:
    """Convert what Polars could not read of a Parquet or Arrow file into what is wrong with it."""
    return library_errors_as(lambda failed: f"{what}: {_fault(failed, path, kind)}")


def _fault(failed: BaseException, path: str | Path, kind: str) -> str:
    if isinstance(failed, pl.exceptions.DuplicateError):
        return "two columns have one name; rename one of them"
    if "time zone" in str(failed):
        return "holds moments in a zone that is named by its distance from UTC; give them in UTC"
    from shoal.connectors.formats import begun_as  # which imports this module

    with open(path, "rb") as file:
        head = file.read(1 << 12)
    if head.startswith(b"\xff\xff\xff\xff"):
        return "is a stream of Arrow; write it as an Arrow file, or as .parquet"
    found = begun_as(head)
    if found is not None and found != kind:
        return f"holds {found.label}; name it {found}"
    if found is None and b"\0" not in head and head.isascii():
        return "is text; name it .csv or .jsonl"
    return INCOMPLETE.format(kind[1:])


def scanned(file: str | BinaryIO, kind: str) -> pl.LazyFrame:
    """A Parquet or Arrow file of which nothing was read yet."""
    return pl.scan_parquet(file) if kind == ".parquet" else pl.scan_ipc(file)


def without_records(schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """A table of these columns; of bytes where decimals have more digits than Polars reads."""
    wide = {name for name, dtype in schema.items() if getattr(dtype, "precision", 0) > MOST_DIGITS}
    return pl.DataFrame(schema={n: pl.Binary() if n in wide else schema[n] for n in schema})


def require_unfolded(
    paths: Sequence[str | Path], kind: str, what: str, allowed: int | None = None
) -> None:
    """Raises InputError where Parquet or Arrow files hold far more cells or characters than bytes,
    before they are unpacked: a value that repeats is written once, and read as often.

    allowed: as in `most_unpacked`.
    """
    most = most_unpacked(sum(os.stat(path).st_size for path in paths), allowed)
    size = 0
    for path in paths:
        incomplete = f"{what}: {INCOMPLETE.format(kind[1:])}"
        with table_errors(path, kind, what), open(path, "rb") as file:
            table = scanned(file, kind)
            schema = table.collect_schema()
            long = 0
            for records, unpacked in unpacked_parts(path, kind, incomplete):
                size += CELL * len(schema) * records
                long += beyond_short(unpacked, records, schema)
                require_room(size + long, most, what)
            size += table.select(long_texts(schema)).collect().item()
            require_room(size, most, what)


def beyond_short(unpacked: int, records: int, schema: Mapping[str, pl.DataType]) -> int:
    """The bytes of a part of a table beyond `SHORT` for each cell."""
    return max(unpacked - SHORT * len(schema) * records, 0)


def long_texts(schema: Mapping[str, pl.DataType]) -> pl.Expr:
    """The bytes of texts beyond `SHORT` each, counted where written once for many cells."""
    lengths = [
        by_name(name).str.len_bytes() if dtype == pl.String else by_name(name).cat.len_bytes()
        for name, dtype in schema.items()
        if isinstance(dtype, pl.String | pl.Categorical | pl.Enum)
    ]
    long = ((length.cast(pl.Int64) - SHORT).clip(0).sum() for length in lengths)
    return pl.sum_horizontal(pl.lit(0), *long)


def unread(
    schema: Mapping[str, pl.DataType], where: str, reading: Reading = AS_FOUND
) -> tuple[str, ...]:
    """The columns of a file that are not even looked at: a short file may hold very long lists, and
    nobody needs those. Raises InputError where columns that are needed are of such kinds.
    """
    names = without_records(schema)
    kept = plain(names, where, reading)
    return tuple(
        name
        for name in names.columns
        if kept[name].dtype != names[name].dtype
        and (names[name].dtype != schema[name] or _holds_lists(schema[name]))
    )


def _holds_lists(dtype: pl.DataType) -> bool:
    if isinstance(dtype, pl.Struct):
        return any(_holds_lists(field.dtype) for field in dtype.fields)  # type: ignore[arg-type]
    return dtype.is_nested()


CONVERT = "convert them to numbers (float) or text (str)"
DURATIONS = "durations; give numbers, such as their days, or drop the column"
NESTED = "lists or objects; give plain values"


def plain(frame: pl.DataFrame, where: str, reading: Reading = AS_FOUND) -> pl.DataFrame:
    """The frame, with one text for all equal cells of columns that nobody needs where these have
    none, such as lists or bytes, one 0 of numbers, and no value where a number is none (NaN);
    raises InputError where columns that are needed hold what has no one text.
    """
    InputError.raise_for(names_like_patterns(frame.columns, f"{where}: "))
    found = [
        name
        for name, dtype in frame.schema.items()
        if dtype.is_nested()
        or dtype in (pl.Binary, pl.Object, pl.Duration)
        or isinstance(dtype, pl.BaseExtension)
        or (dtype in (pl.Date, pl.Datetime) and _is_beyond(frame[name]))
    ]
    odd = [name for name in found if reading.needs(name)]
    if "" in frame.columns and reading.needs(""):
        raise InputError(f"{where}: column {frame.columns.index('') + 1} has no name; give it one")
    for place, name in enumerate(frame.columns, 1):
        if not is_text(name):
            raise InputError(
                f"{where}: the name of column {place} is not a text; rename the column"
            )
    # objects may be keyed by values, such as people's names, and are in few records then
    few = [name for name in odd if 0 < frame.height <= 2 * frame[name].null_count()]
    held = {name: _holding(frame[name]) for name in odd}
    _refuse(where, held, are_named=len(odd) <= _MOST_NAMED and len(few) < 2)
    for column in frame:
        if reading.needs(column.name) and _holds_null(column):
            raise InputError(
                f"{where}: column '{column.name}' holds null characters or halves of characters;"
                " take them out"
            )
    changed = [_told_apart(frame[name]) for name in found]
    floats = [frame[name] for name, dtype in frame.schema.items() if dtype.is_float()]
    changed += [column.fill_nan(None).set(column == 0, 0.0) for column in floats]  # -0.0, too
    return frame.with_columns(changed) if changed else frame


def nan_counts(frame: pl.DataFrame, reading: Reading = AS_FOUND) -> Counter[str]:
    """How many cells are NaN, of which `plain` makes no value, by column that is needed."""
    floats = [cells for cells in frame if cells.dtype.is_float() and reading.needs(cells.name)]
    return Counter({cells.name: int(cells.is_nan().sum()) for cells in floats})


def is_text(value: object) -> bool:
    """Whether a file of text can hold it: no null character, no half of a character."""
    if not isinstance(value, str):
        return True
    return "\0" not in value and value.encode(errors="replace").decode() == value


def _holds_null(cells: pl.Series) -> bool:
    """Whether texts hold null characters, which half a character becomes as well."""
    if isinstance(cells.dtype, pl.Categorical | pl.Enum):
        cells = cells.unique().cast(pl.String)
    return cells.dtype == pl.String and bool(cells.str.contains("\0", literal=True).any())


def _refuse(where: str, odd: Mapping[str, str], are_named: bool = True) -> None:
    """Raises InputError where there are columns whose cells have no one text.

    odd: what each holds, and the way out. are_named: else they are counted.
    """
    if not are_named:
        counts = Counter(odd.values()).items()
        InputError.raise_for(
            f"{where}: {count} column{'s hold' if count > 1 else ' holds'} {what}"
            for what, count in counts
        )
    InputError.raise_for(f"{where}: column '{name}' holds {what}" for name, what in odd.items())


def _holding(cells: pl.Series) -> str:
    """What cells without one text are, and the way out."""
    dtype = cells.dtype
    if dtype == pl.Object:
        return objects_of(type(next((cell for cell in cells if cell is not None), None)))
    if dtype == pl.Duration:
        return DURATIONS
    if dtype == pl.Binary:
        return f"bytes, UUIDs, or decimals of more than {MOST_DIGITS} digits; give text or numbers"
    if dtype in (pl.Date, pl.Datetime):
        if getattr(dtype, "time_unit", None) == "ns":
            return BEYOND_NANOSECONDS
        return "days beyond all calendars; correct them"
    return NESTED if dtype.is_nested() else f"values of the type {dtype}; {CONVERT}"


def objects_of(kind: type) -> str:
    """What cells of a type of Python are, and the way out."""
    return f"{kind.__name__} objects; {CONVERT}"


def check_texts(content: bytes, frame: pl.DataFrame, where: str, reading: Reading) -> None:
    """Raises InputError where a column that is needed holds lists or objects of JSON beside texts.

    frame: the same lines as they were read, which makes one text of each list.
    """
    texts = frame.select(name for name in frame.columns if reading.needs(name))
    begun = texts.select(pl.col(pl.String).str.contains(r"^[\[{]").any())
    names = [column.name for column in begun if column.item()]
    lines = pl.Series(
        content.decode(errors="replace").split("\n") if names else [], dtype=pl.String
    )
    for line in lines.filter(lines.str.contains(_NESTED)):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):  # what lies too deep
            found = {name: {} for name in names}
        _refuse(where, {name: NESTED for name in names if isinstance(found.get(name), dict | list)})


def _told_apart(cells: pl.Series) -> pl.Series:
    """A text for each cell that equal ones share: they may number people."""
    if cells.dtype == pl.Object:  # some have no hash
        texts = (None if cell is None else repr(cell) for cell in cells)
        cells = pl.Series(cells.name, texts, pl.String)
    return cells.hash().cast(pl.String).set(cells.is_null(), None)


def _is_beyond(days: pl.Series) -> bool:
    """Whether some lie beyond the years that have a text, or at the end of nanoseconds, where
    readers of some files put what is beyond it.
    """
    unit = getattr(days.dtype, "time_unit", None)  # None of days
    in_a_day = {None: 1, "ms": 86_400 * 10**3, "us": 86_400 * 10**6}
    most = 2**63 - 2 if unit == "ns" else FARTHEST_DAY * in_a_day[unit]
    cells = days.to_physical()
    return any(end is not None and abs(cast(int, end)) > most for end in (cells.min(), cells.max()))


# Keys of JSON lines: each once in a line, or programs differ in which of two values they read.


# a key with its colon, then its value; a line of plain values is read from left to right by it
PAIR = r'("(?:[^"\\]|\\.)*"\s*:)\s*(?:"(?:[^"\\]|\\.)*"|[^",}\]\s]+)'
MOST_SHOWN = 5
_NESTED = r":\s*[\[{]"
"""Where a list or an object may begin, unless it stands in a text."""
_IN_QUOTES = r'[^"\\]*+(?:\\.[^"\\]*+)*+'
_KEY = re.compile(rf'(?s)"{_IN_QUOTES}(?:"(?!\s*:)|\\?\Z)|"({_IN_QUOTES})"'.encode())
"""A text, and what it holds if it is a key; each sign belongs to one match, so that time grows as
the content does.
"""


def check_keys(content: bytes, frame: pl.DataFrame, where: str) -> None:
    """Raises InputError where a line repeats a key, however spelled. frame: as it was read."""
    texts = content.decode(errors="replace").split("\n")
    lines = pl.DataFrame({"text": texts}).with_row_index("line", offset=1)
    lines = lines.filter(pl.col("text").str.strip_chars() != "")
    # with as many colons as values, no key is named twice
    if frame.width and lines.height == frame.height:
        values = frame.select(pl.sum_horizontal(pl.all().is_not_null())).to_series()
        lines = lines.filter(pl.col("text").str.count_matches(r'"\s*:') > values)
    text = pl.col("text")
    plain_shape = text.str.replace_all(PAIR, "${1}0")
    shape = pl.when(text.str.contains(_NESTED)).then(text).otherwise(plain_shape)
    shapes = lines.select(shape).to_series()
    twice = [shape for shape in shapes.unique().to_list() if _names_twice(shape)]
    found = lines.filter(shapes.is_in(twice))["line"].to_list()
    if found:
        shown = ", ".join(map(str, found[:MOST_SHOWN]))
        more = ", ..." if len(found) > MOST_SHOWN else ""
        are = "1 line names" if len(found) == 1 else f"{len(found)} lines name"
        raise InputError(
            f"{where}: {are} a key twice (line {shown}{more}), and programs differ in which value"
            " they read; write each key once, and one object a line"
        )


def _names_twice(shape: str) -> bool:
    """Whether a line, its values replaced, is anything but one object with each key once."""
    try:
        keys = json.loads(shape, object_pairs_hook=lambda pairs: [key for key, _ in pairs])
    except (ValueError, RecursionError):
        return True
    return len({*keys}) < len(keys)


PIECE = 1 << 22
"""Bytes whose keys are listed at once."""


def require_keys_shared(content: bytes, what: str, allowed: int | None) -> None:
    """Raises InputError where lines name so different keys that their table would be far larger.

    Every key is looked at, once, and no more of them than may be. allowed: as in `most_unpacked`.
    """
    most, lines = most_unpacked(len(content), allowed), content.count(b"\n") + 1
    keys: set[bytes] = set()
    begun = 0
    while begun < len(content):
        end = content.find(b"\n", begun + PIECE) + 1 or len(content)
        keys.update(filter(None, _KEY.findall(content, begun, end)))
        require_room(CELL * len(keys) * lines, most, what)
        begun = end


DEEPEST = 32
_TEXT = re.compile(rb'"(?:[^"\\\n]|\\.)*+"?')  # to the end of the line where it stays open


def _lies_deep(content: bytes) -> bool:
    """Whether more than 32 lists or objects lie in one another, which may take Polars minutes."""
    begun = content.count(b"[") + content.count(b"{")
    if begun <= content.count(b"\n{") + DEEPEST:
        return False
    signs = np.frombuffer(_TEXT.sub(b"", content), np.uint8)
    steps = np.isin(signs, [*b"[{"]).astype(np.int8) - np.isin(signs, [*b"]}"])
    return bool(np.cumsum(steps, dtype=np.int32).max() > DEEPEST)


def objects(content: bytes) -> pl.DataFrame | None:
    """JSON lines as a table; None where they are none. Numbers beyond what floats hold exactly stay
    as they are written.
    """
    if not content.strip():
        return pl.DataFrame()
    if _lies_deep(content):
        return None
    try:
        with library_errors_as("is not JSON lines"):
            frame = pl.read_ndjson(content, infer_schema_length=None)
            is_wide = frame.select(pl.col(pl.Float64).abs().max() >= EXACT)
            wide = [column.name for column in is_wide if column.item()]
            if not wide:
                return frame
            as_written = dict.fromkeys(wide, pl.String)
            return pl.read_ndjson(content, schema_overrides=as_written, infer_schema_length=None)
    except InputError:
        return None
