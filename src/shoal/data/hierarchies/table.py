"""Hierarchy tables as ARX writes them: a row per leaf, the leaf first, the root last, no header.

Separator `;`, tab, `|` or `,`, whichever splits the rows into columns that end in one label; labels
may be quoted as in CSV. Blanks around a label don't belong to it. Blank lines and a byte-order mark
are passed over, and a row that says the same as an earlier one counts once. Files that end in `.gz`
are compressed.
"""

import codecs
import csv
import gzip
import io
from collections import Counter
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

import numpy as np
import polars as pl

from shoal.data.hierarchies.hierarchy import Hierarchy, tree_of
from shoal.data.hierarchies.paths import Paths, about, diagnose
from shoal.data.regular_files import require_regular, sync, unpacked
from shoal.errors import InputError

SEPARATORS = (";", "\t", "|", ",")  # in order of preference
ROWS_TO_JUDGE_BY = 200


def read_hierarchy(path: str | Path, attribute: str = "", encoding: str | None = None) -> Hierarchy:
    """The hierarchy in a table; raises InputError with everything that is wrong with it.

    encoding: Python's name of it, for a file that is not UTF-8.
    """
    paths = read_paths(path, attribute, encoding)
    faults = [finding.message for finding in diagnose(paths, attribute)]
    InputError.raise_for(faults)
    return replace(tree_of(paths), repeated=paths.repeated)


def read_paths(path: str | Path, attribute: str = "", encoding: str | None = None) -> Paths:
    """The rows of a table, each once, for `diagnose`; raises InputError if it can't be read."""
    path = Path(path)
    require_regular(path, f"{about(attribute)}hierarchy")
    text = _text(path, attribute, encoding)
    try:
        cells, lengths = _quoted_cells(text) if '"' in text else _plain_cells(text)
    except csv.Error:
        raise InputError(
            f"{about(attribute)}hierarchy '{path.name}' is not a table; check its separator and"
            " quotes"
        ) from None
    return Paths.of_cells(cells.str.strip_chars(), lengths).without_repeats()


def write_hierarchy(hierarchy: Hierarchy, path: str | Path, separator: str = ";") -> None:
    """Writes the table that reads back as the same hierarchy; the file appears whole or not at all.

    Leaves that lie higher than others are padded by repeating labels. Only labels with blanks
    around them, or empty ones, do not survive.
    """
    path = Path(path)
    content = table_text(hierarchy, separator).encode()
    if path.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    beside = path.with_name(f".{path.name}.part")
    beside.write_bytes(content)
    sync(beside)
    beside.replace(path)


def table_text(hierarchy: Hierarchy, separator: str = ";") -> str:
    """The table that reads back as the same hierarchy."""
    out = io.StringIO(newline="")
    writer = csv.writer(
        out,
        delimiter=separator,
        lineterminator="\n",
        quoting=csv.QUOTE_ALL if _is_ambiguous(hierarchy, separator) else csv.QUOTE_MINIMAL,
    )
    writer.writerows(hierarchy.rows())
    return out.getvalue()


def _quoted_cells(text: str) -> tuple[pl.Series, np.ndarray]:
    """All cells behind one another and the cells of each row, as CSV reads them."""
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=separator_of(text), skipinitialspace=True
    )
    rows = [row for row in reader if len(row) > 1 or (row and row[0].strip())]
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    return pl.Series(list(chain.from_iterable(rows)), dtype=pl.String), lengths


def _plain_cells(text: str) -> tuple[pl.Series, np.ndarray]:
    """All cells and the cells of each row of text without quotes, several times as fast."""
    lines = pl.Series([text.replace("\r\n", "\n").replace("\r", "\n")]).str.split("\n").explode()
    rows = lines.str.split(separator_of(text))
    rows = rows.filter((rows.list.len() > 1) | (lines.str.strip_chars() != ""))
    return rows.explode(), rows.list.len().cast(pl.Int64).to_numpy()


def _is_ambiguous(hierarchy: Hierarchy, separator: str) -> bool:
    """Whether a label holds a separator, a line's end or a byte-order mark."""
    odd = ("\r", "\ufeff", *SEPARATORS[: SEPARATORS.index(separator)])
    labels = (*hierarchy.labels, *(alias.label for alias in hierarchy.aliases))
    return any(mark in label for label in labels for mark in odd)


def separator_of(text: str) -> str:
    """The separator whose columns look most like a hierarchy's.

    As many columns in every row, and the same text in the last.

    Splits that leave a quote in the middle of a cell count half.
    """
    return max(SEPARATORS, key=lambda separator: _likeness(text, separator, strict=True))


def _likeness(text: str, separator: str, strict: bool) -> float:
    try:
        reader = csv.reader(
            io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=strict
        )
        rows = [row for row in islice(reader, ROWS_TO_JUDGE_BY) if row]
    except csv.Error:
        return _likeness(text, separator, strict=False) / 2 if strict else 0.0
    split = [row for row in rows if len(row) > 1]
    if not split:
        return 0.0
    alike = Counter(len(row) for row in split).most_common(1)[0][1] / len(rows)
    rooted = Counter(row[-1].strip() for row in split).most_common(1)[0][1] / len(rows)
    return alike * rooted


def _text(path: Path, attribute: str, encoding: str | None) -> str:
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            if not content.startswith(b"\x1f\x8b"):
                raise gzip.BadGzipFile
            content = unpacked(content, f"{about(attribute)}hierarchy '{path}'")
        if content.startswith(b"PK\3\4"):
            raise InputError(
                f"{about(attribute)}hierarchy '{path}' is a workbook; save its sheet as .csv"
            )
        return _decoded(content, encoding)
    except OSError as refused:
        why = refused.strerror or "is not a gzip file"
        raise InputError(
            f"{about(attribute)}can't read hierarchy '{path}' ({why}); paths are relative to the"
            " policy file"
        ) from None
    except UnicodeDecodeError:
        known = "UTF-8" if encoding is None else f"UTF-8 or {encoding}"
        raise InputError(
            f"{about(attribute)}hierarchy '{path}' is not {known} text; convert it, or say how the"
            " data and its hierarchies are written, such as --read encoding=cp1252"
        ) from None


def _decoded(content: bytes, encoding: str | None) -> str:
    """The text: UTF-8 or UTF-16 by its mark, else UTF-8, else in the encoding that was named.

    What is ASCII alone may be of an encoding that has no other bytes.
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16")
    if encoding is not None and content.isascii():
        return content.decode(encoding)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        if encoding is None:
            raise
        return content.decode(encoding)
