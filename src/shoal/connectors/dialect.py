"""How a text file is written: its encoding, what parts its cells, how its lines end; and cells that
a spreadsheet would take for formulas, with a way to write them so that it does not.

Nothing is guessed: a file is UTF-8, or UTF-16 by its mark, or what somebody says that it is.

A spreadsheet that opens delimited text computes what begins with `=`, `+`, `-`, `@`, a tab or a
carriage return, and a formula can send data away. Numbers such as -5 don't count as formulas.
"""

import codecs
import io
import mmap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from shoal.data.language import inflected
from shoal.data.table import Table
from shoal.errors import InputError

UTF8 = "utf-8"
UTF16 = "utf-16"
SOME_ENCODINGS = (
    "cp1252 (Western Europe), cp1250 (Central Europe), gb18030 (Chinese), cp932 (Japanese)"
)
ENCODINGS = f"such as --read encoding={SOME_ENCODINGS}"
_NO_TABLES = {"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined"}
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MARKS = (codecs.BOM_UTF8, *_UTF16_MARKS)


def is_delimiter(text: str) -> bool:
    """Whether a text may part cells."""
    return len(text) == 1 and text.isascii() and text not in '"\r\n\0'


@dataclass(frozen=True)
class Reading:
    """What is said about a file that is read; None where it is to be found in the file.

    header: the line of a text, or the row of a sheet, that names the columns, from 1; what stands
    above it is passed over. decimal, dates: how numbers of workbooks and databases, and dates of
    workbooks, are written as text; dates: a strptime form, None for ISO. translated: the columns
    where they are so written; None for all. is_beside: whether it was said about another file,
    beside which this one lies: where it is UTF-8, or other marks part its names, it is read as
    found.
    dropped, kept: columns of which no cell is needed, and all that are; None for all others.
    unpacked: the bytes that a compressed file may unpack to, where they were said.
    """

    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    header: int = 1
    decimal: str = "."
    dates: str | None = None
    is_beside: bool = False
    dropped: frozenset[str] = frozenset()
    kept: frozenset[str] | None = None
    unpacked: int | None = None
    translated: frozenset[str] | None = None

    def of(self, name: str) -> "Reading":
        """How numbers and dates of a column are written as text."""
        return self if self.translated is None or name in self.translated else AS_FOUND

    def needs(self, name: str) -> bool:
        """Whether some cell of a column is asked for."""
        return name not in self.dropped and (self.kept is None or name in self.kept)

    def as_stated(self, stated: "Reading | Dialect | None") -> "Reading":
        """The reading with the encoding and the delimiter that are stated, if any are."""
        if stated is None:
            return self
        return replace(self, encoding=stated.encoding, delimiter=stated.delimiter, is_beside=False)


AS_FOUND = Reading()


@dataclass(frozen=True)
class Dialect:
    """How a delimited file is written. bom: whether it begins with the mark of its encoding."""

    delimiter: str = ","
    encoding: str = UTF8
    newline: str = "\n"
    bom: bool = False


def default_dialect(kind: str) -> Dialect:
    """UTF-8 with commas, or with tabs in the formats that are named after them."""
    return Dialect("\t" if kind in (".tsv", ".tab") else ",")


def codec_of(name: str) -> str | None:
    """Python's name of an encoding of text that can hold any table; None where it is none."""
    try:
        known = codecs.lookup(name)
        if known.name.replace("-", "_") in _NO_TABLES:
            return None
        if "a,b\n".encode(known.name).decode(known.name) != "a,b\n":
            return None
    except (LookupError, UnicodeError, ValueError, AttributeError, TypeError):
        return None
    return known.name


def reading_as_stated(dialect: Mapping[str, Any] | None) -> Reading:
    """How a certificate says that a file is written; what it does not say is found in the file."""
    if dialect is None:
        return AS_FOUND
    encoding = dialect.get("encoding")
    is_known = encoding is not None and codec_of(encoding) is not None
    return Reading(encoding if is_known else None, dialect.get("delimiter"))


def is_written_in(content: bytes, encoding: str) -> bool:
    """Whether the bytes are those in which an encoding writes the text that it reads from them.

    Some encodings read the same text from several bytes, so that cells could look alike in them.
    """
    codec = codec_of(encoding)
    if codec is None:
        return False
    try:
        return content.decode(codec).encode(codec) == content
    except UnicodeError:
        return False


def as_utf8(content: bytes | Path, path: str, reading: Reading) -> tuple[bytes | Path, str, bool]:
    """The text in UTF-8, its former encoding, and whether a mark of it stands before the text.

    Raises InputError with the first line that is not in the encoding that was named.
    """
    with opened(content) as file:
        head, encoding = file.read(4), reading.encoding
    if (
        reading.is_beside
        and encoding is not None
        and (head.startswith(_MARKS) or _is_utf8(content))
    ):
        encoding = None
    codec = (codec_of(encoding) if encoding is not None else None) or UTF8
    is_marked = head.startswith(_UTF16_MARKS)
    if head.startswith(codecs.BOM_UTF8):
        if codec not in (UTF8, "utf-8-sig"):
            raise InputError(
                f"file '{path}': begins with the mark of UTF-8, so it is not {encoding}; leave out"
                " --read encoding, and 'encoding' of the policy"
            )
        return content, UTF8, True
    if codec in (UTF8, "utf-8-sig"):
        if not is_marked:
            return content, UTF8, False
        codec = UTF16
    raw = whole(content)
    try:
        return raw.decode(codec).encode(UTF8), codec, is_marked
    except UnicodeDecodeError as wrong:
        line = raw[: wrong.start].decode(codec, errors="ignore").count("\n") + 1
        raise InputError(
            f"file '{path}': line {line} is not {encoding or 'UTF-16'}; say what it is, {ENCODINGS}"
        ) from None


def opened(content: bytes | Path) -> BinaryIO:
    """Some bytes, or those of a file, to be read."""
    return io.BytesIO(content) if isinstance(content, bytes) else open(content, "rb")


def whole(content: bytes | Path) -> bytes:
    """All bytes of a file, if it is one."""
    return content if isinstance(content, bytes) else content.read_bytes()


def mapped(content: bytes | Path) -> bytes | mmap.mmap:
    """Some bytes, or those of a file, of which no more is read than is looked at."""
    if isinstance(content, bytes):
        return content
    with open(content, "rb") as file:
        try:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # a file that says that it is empty, as those of /proc do
            return file.read()


def _is_utf8(content: bytes | Path) -> bool:
    """Whether text is UTF-8 beyond ASCII, which text of another encoding hardly ever is by chance.

    What is ASCII alone may be of an encoding that has no other bytes.
    """
    try:
        return not whole(content).decode(UTF8).isascii()
    except UnicodeDecodeError:
        return False


# Cells that a spreadsheet would take for formulas.


FORMULA = r"^[=+\-@\t\r]"
QUOTED = r"^'*[=+\-@\t\r]"  # what is escaped: with quotes before it, so that it is one-to-one
ESCAPED = r"^'+[=+\-@\t\r]"
Rewrite = Callable[[pl.Expr], pl.Expr]
NUMBER = r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$"


def formula_cells(table: Table) -> dict[str, int]:
    """How many cells of each column read as formulas, and its name as one more; none left out."""
    names = table.names
    counts = dict(
        zip(names, _are_formulas(pl.Series(names, dtype=pl.String)).cast(int), strict=True)
    )
    for name in filter(table.is_text, counts):
        column = table.column(name)
        odd = _are_formulas(column.texts)
        counts[name] += int(column.counts()[odd.to_numpy()].sum())
    return {name: count for name, count in counts.items() if count}


def escaped(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame as text with a `'` before every cell and name that reads as a formula.

    One-to-one: what begins with quotes and then such a sign gets one more quote.
    """
    return _rewritten(frame, _needs_escape, lambda text: pl.lit("'") + text)


def unescaped(frame: pl.DataFrame) -> pl.DataFrame:
    """What `escaped` was given; only of what `formula_cells` finds nothing in."""
    return _rewritten(
        frame, lambda text: text.str.contains(ESCAPED), lambda text: text.str.slice(1)
    )


def _rewritten(frame: pl.DataFrame, where: Rewrite, change: Rewrite) -> pl.DataFrame:
    """The frame with its cells and names changed where they are to be."""
    columns = []
    for name, dtype in frame.schema.items():
        text = pl.col(name)
        if dtype in _TEXTS:
            text = text.cast(pl.String)
            text = pl.when(where(text)).then(change(text)).otherwise(text)
        (new,) = pl.select(
            pl.when(where(pl.lit(name))).then(change(pl.lit(name))).otherwise(pl.lit(name))
        ).to_series()
        columns.append(text.alias(new))
    return frame.select(columns)


_TEXTS = (pl.String, pl.Categorical, pl.Enum)


def _needs_escape(text: pl.Expr) -> pl.Expr:
    return text.str.contains(QUOTED) & ~text.str.contains(NUMBER)


def _are_formulas(cells: pl.Series) -> pl.Series:
    begin = cells.str.contains(FORMULA)
    return begin & ~cells.str.contains(NUMBER) if begin.any() else begin


def formula_sentences(table: Table) -> Iterator[str]:
    """What the publisher of delimited text is warned of, a sentence for each column."""
    for name, count in formula_cells(table).items():
        cells = "{} [cell reads as a spreadsheet formula|cells read as spreadsheet formulas]"
        yield f"column '{name}': {inflected(cells, count)}; see 'write: formulas'"
