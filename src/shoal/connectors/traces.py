"""Private traces: which record is behind which published row, as lines of JSON.

Of a table, a line for every published row: `row` and, of its original, `seq`, both from 0. Of a
stream, a line for every record, with what became of it.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from shoal.connectors import files
from shoal.data import regular_files, room
from shoal.errors import UNREADABLE, InputError

OF_TABLE = ("seq", "row")
OF_STREAM = ("seq", "subject", "release", "class", "kind", "arrival", "emitted", "row")
WAY_OUT = "give the file that --trace wrote"


@contextmanager
def private_draft(path: str | Path | None) -> Iterator[Path | None]:
    """Where to write a private trace or plan, which takes its place if the block succeeds. Opened
    before a release, it appears behind that, or neither does. None: there is none to write.
    """
    with nullcontext() if path is None else files.atomic_write(str(path), is_private=True) as draft:
        yield draft


def write_trace(rows: np.ndarray, draft: Path) -> None:
    """Writes the trace of a table. rows: (n,) the original's rows."""
    with files.draft_file(draft, False) as file:
        for some in room.blocks(len(rows)):
            columns = {"row": np.arange(some.start, some.stop), "seq": rows[some]}
            pl.DataFrame(columns).write_ndjson(file)


def is_of_stream(path: str) -> bool:
    """Whether a trace says more than one of a table does; raises InputError where it is none."""
    regular_files.require_regular(path, "trace")
    try:
        with open(path, encoding="utf-8") as file:
            return len(json.loads(file.readline() or "{}")) > len(OF_TABLE)
    except (OSError, *UNREADABLE):
        raise InputError(f"trace '{path}': can't be read; {WAY_OUT}") from None


def read_trace(path: str, needed: Sequence[str] = OF_STREAM) -> pl.DataFrame:
    """The lines of a trace; raises InputError where they lack what is needed."""
    regular_files.require_regular(path, "trace")
    try:
        trace = pl.read_ndjson(path, infer_schema_length=None)
    except (OSError, pl.exceptions.PolarsError):
        raise InputError(f"trace '{path}': can't be read; {WAY_OUT}") from None
    if set(needed) - set(trace.columns):
        raise InputError(f"trace '{path}': lacks columns; {WAY_OUT}")
    if not all(_is_traced(trace[name]) for name in needed):
        raise InputError(f"trace '{path}': is not a trace; {WAY_OUT}")
    return trace


def traced_rows(path: str) -> np.ndarray:
    """(n,) int64, the place in its source of the record behind each published row."""
    shown = read_trace(path, OF_TABLE).filter(pl.col("row").is_not_null()).sort("row")
    if not np.array_equal(shown["row"].to_numpy(), np.arange(shown.height)):
        raise InputError(f"trace '{path}': its rows are not numbered; {WAY_OUT}")
    return shown["seq"].to_numpy()


def rows_given(trace: str | Path | ArrayLike) -> np.ndarray:
    """The rows that a trace names, which Python gives by its file or as numbers."""
    if isinstance(trace, str | Path):
        return traced_rows(str(trace))
    rows = np.asarray(trace)
    if rows.ndim != 1 or (len(rows) and rows.dtype.kind not in "iu"):
        raise InputError(f"trace: is not a list of integers; {WAY_OUT}, or the release's 'trace'")
    return rows


def _is_traced(column: pl.Series) -> bool:
    """Whether a column of a trace holds what such a column may hold."""
    if column.name in ("class", "row"):
        return column.dtype in (pl.Int64, pl.Null)
    kinds = {"kind": (pl.String,), "subject": (pl.String, pl.Int64)}.get(column.name, (pl.Int64,))
    return column.dtype in kinds and not column.null_count()
