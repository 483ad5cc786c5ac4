"""Tables in delimited text: read as text, cell by cell, and written in a dialect.

What is published is what was written: no guess turns a postcode into a number.
"""

import csv
import io
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import polars as pl

from shoal.connectors import dialect as dialects
from shoal.connectors import record_ends
from shoal.connectors.dialect import Dialect, Reading
from shoal.connectors.record_ends import distinct_lines, of_few_values
from shoal.data.findings import MOST_LISTED, listed_rows
from shoal.data.table import FEW_ROWS, RepeatedTable, Table, cell_texts, names_like_patterns
from shoal.errors import InputError, library_errors_as

_SEPARATORS = ",;\t|"
_LOOKED_AT = 30  # lines that distinguish a title from the name of a column
LONGEST_CELL = 1 << 24  # characters
HEAD = 1 << 20  # bytes in which the first line must end


def read(
    content: bytes | Path, path: str, kind: str, categorical: Collection[str], reading: Reading
) -> tuple[Table, Dialect]:
    """The table in some text, and the dialect that it is written in; raises InputError.

    content: a path where the file is too large to be held twice.
    """
    found = begin(content, path, kind, reading)
    repeated = distinct_lines(found.content)
    if repeated is not None:
        try:
            rows = _whole(found._replace(content=repeated.content), categorical)
        except InputError:
            pass  # which is about the lines that it was given
        else:
            if rows.height == repeated.different:
                return RepeatedTable(Table(rows), repeated.line_of), found.dialect
    return Table(_whole(found, categorical)), found.dialect


class BegunText(NamedTuple):
    """A text of which the names of the columns were read, and how it is written.

    content: from the line of names on; a path only where nothing had to be left out or decoded.
    above: how many lines stand above that.
    """

    content: bytes | Path
    path: str
    header: list[str]
    dialect: Dialect
    above: int

    def frames(
        self,
        pieces: Iterable[bytes | Path],
        dtypes: Mapping[str, type[pl.Categorical]] | Sequence[pl.DataType],
    ) -> Iterator[pl.DataFrame]:
        """The records of all pieces of the text, each of which begins with the names; raises
        InputError where it is wrong.

        dtypes: of columns by name, or of all in their order; others are text.
        """
        separator, begun = self.dialect.delimiter, 0
        blank: np.ndarray | None = None
        for piece in pieces:
            try:
                check_quotes(piece, self.path, separator)
                with library_errors_as("is not a table"):
                    frame = pl.read_csv(
                        piece,
                        separator=separator,
                        infer_schema=False,
                        schema_overrides=dtypes,
                        glob=False,
                        low_memory=True,
                    )
            except InputError:  # about a piece, whose rows have other numbers
                check_quotes(self.content, self.path, separator)
                check_encoding(self.content, self.path, self.above)
                self._blank_rows()
                # rows are in order one by one, and yet no table comes of them
                raise InputError(
                    f"file '{self.path}': can't be read as delimited text; a quote may be left open"
                ) from None
            if len(self.header) != frame.width:
                raise InputError(
                    f"file '{self.path}': its first line can't be read as column names; begin with"
                    " the names"
                )
            frame.columns = self.header  # Polars leaves doubled quotes in names as they are
            first, begun = begun, begun + frame.height
            # a row that is too short shows as a missing last cell: only then is each row looked at
            if frame.height and frame[frame.columns[-1]].null_count():
                if blank is None and piece is not self.content:
                    check_quotes(self.content, self.path, separator)
                blank = self._blank_rows() if blank is None else blank
                here = blank[(blank >= first) & (blank < begun)] - first
                if len(here) and len(self.header) > 1:
                    kept = np.ones(frame.height, dtype=bool)
                    kept[here] = False
                    frame = frame.filter(pl.Series(kept))
            yield frame

    def _blank_rows(self) -> np.ndarray:
        """The rows of the whole text that are blank lines; raises InputError where it is wrong."""
        try:
            rows = check_rows(self.content, self.path, self.dialect.delimiter, len(self.header))
        except UnicodeDecodeError:  # in a piece that was not parsed yet
            check_encoding(self.content, self.path, self.above)
            raise
        return np.array(rows, dtype=np.int64)


def _whole(text: BegunText, categorical: Collection[str]) -> pl.DataFrame:
    few = of_few_values(text.content, text.dialect.delimiter, text.header, categorical)
    (frame,) = text.frames([text.content], dict.fromkeys(few, pl.Categorical))
    return frame


def begin(content: bytes | Path, path: str, kind: str, reading: Reading) -> BegunText:
    """The names of the columns, and how the text is written; raises InputError."""
    content, encoding, has_mark = dialects.as_utf8(content, path, reading)
    start, newline = _start(content, path)
    content, start, named = _without_sep_line(content, start, path)
    above = max(reading.header - 1, int(named is not None))
    content, start = _without_title(content, start, above - (named is not None), path)
    delimiter = reading.delimiter or named
    if reading.is_beside and (delimiter or "") not in start.partition("\n")[0]:
        delimiter = None
    header, separator = _header(start, path, kind, delimiter)
    if len(header) == 1 and delimiter is None:
        _check_no_title(start, path, above)
    header = check_names(header, path)
    written = Dialect(separator, encoding, newline, has_mark)
    return BegunText(content, path, header, written, above)


def first_lines(path: str, reading: Reading, count: int) -> list[str]:
    """The first lines of a text, whatever in them is not in its encoding as a mark."""
    with open(path, "rb") as file:
        head = file.read(1 << 16)
    by_mark = dialects.UTF16 if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig"
    codec = dialects.codec_of(reading.encoding or "") or by_mark
    return re.split(r"\r\n|\n|\r", head.decode(codec, errors="replace"))[:count]


def write(frame: pl.DataFrame, file: BinaryIO, dialect: Dialect, is_first: bool = True) -> None:
    """Writes rows, the first ones below the names; raises InputError for what an encoding lacks."""
    if dialect.encoding == dialects.UTF8:
        _write_utf8(frame, file, dialect, dialect.bom and is_first, is_first)
        return
    buffer = io.BytesIO()
    _write_utf8(frame, buffer, dialect, False, is_first)
    try:
        file.write(buffer.getvalue().decode(dialects.UTF8).encode(dialect.encoding))
    except UnicodeEncodeError:
        raise InputError.from_findings(_unwritable(frame, dialect.encoding)) from None


def with_moments_as_text(frame: pl.DataFrame) -> pl.DataFrame:
    """Points in time as the texts that readers compare: writers have forms of their own."""
    moments = frame.select(pl.selectors.datetime() | pl.selectors.time())
    return frame.with_columns(map(cell_texts, moments))


def _write_utf8(
    frame: pl.DataFrame, file: BinaryIO | io.BytesIO, dialect: Dialect, bom: bool, header: bool
) -> None:
    frame = with_moments_as_text(frame)
    if frame.width == 1 and frame.to_series().has_nulls():  # a blank line is no row to many; "" is
        frame = frame.with_columns(pl.all().cast(pl.String).fill_null(""))
    write = partial(
        pl.DataFrame.write_csv,
        file=file,
        separator=dialect.delimiter,
        line_terminator=dialect.newline,
    )
    quoted = _quoted(frame, dialect.delimiter) if frame.height > FEW_ROWS else None
    if quoted is None:
        write(frame, include_bom=bom, include_header=header)
        return
    if header:
        write(frame.clear(), include_bom=bom)
    write(quoted, include_bom=bom and not header, include_header=False, quote_style="never")


def _quoted(frame: pl.DataFrame, delimiter: str) -> pl.DataFrame | None:
    """The frame with quotes around every text that Polars would quote; None where there are columns
    other than categories and numbers.

    Polars looks at each cell for what needs quotes, which takes as long as all else that it does to
    write them. A text of a category is looked at once.
    """
    if not all(dtype == pl.Categorical or _is_known(dtype) for dtype in frame.dtypes):
        return None
    special = f'^$|[\r\n"{re.escape(delimiter)}]'
    columns = []
    for column in frame:
        if column.dtype == pl.Categorical:
            texts = column.unique().drop_nulls().cast(pl.String)
            if texts.str.contains(special).any():
                column = column.cast(pl.Enum(texts))
        if isinstance(column.dtype, pl.Enum):
            texts = column.dtype.categories
            if (odd := texts.str.contains(special)).any():
                in_quotes = '"' + texts.str.replace_all('"', '""', literal=True) + '"'
                column = column.to_physical().cat.to(pl.Enum(in_quotes.zip_with(odd, texts)))
        columns.append(column)
    return pl.DataFrame(columns)


def _is_known(dtype: pl.DataType) -> bool:
    """Whether the texts of a type are few and known, or no number of it needs quotes."""
    return isinstance(dtype, pl.Enum) or dtype == pl.Boolean or dtype.is_numeric()


def _unwritable(frame: pl.DataFrame, encoding: str) -> list[str]:
    """How many cells of which columns an encoding has no characters for."""
    findings = []
    for name in frame.columns:
        cells = frame[name].cast(pl.String).drop_nulls().value_counts()
        texts, counts = cells.to_series(0).to_list(), cells.to_series(1).to_list()
        lost = sum(n for text, n in zip(texts, counts, strict=True) if not _fits(text, encoding))
        if lost:
            cell = "1 cell" if lost == 1 else f"{lost} cells"
            findings.append(f"output: {cell} of '{name}' can't be written in {encoding}")
        if not _fits(name, encoding):
            findings.append(f"output: a column's name can't be written in {encoding}")
    return [f"{finding}; say --write encoding=utf-8" for finding in findings]


def _fits(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _check_no_title(start: str, path: str, above: int) -> None:
    """Raises InputError where a first line of one cell stands above lines of several."""
    lines = start.split("\n", _LOOKED_AT)[:_LOOKED_AT]
    for separator in _SEPARATORS.replace(",", ""):  # commas are in text, too
        counts = [(n, line.count(separator)) for n, line in enumerate(lines, 1) if line.strip()]
        names = next((n for n, count in counts if count), 0)
        below = [count for n, count in counts if n >= names]
        if names and len(below) > 1 and len(set(below)) == 1:
            raise InputError(
                f"file '{path}': its first line has one cell, those from line {names + above} on"
                f" have several, as below a title; say --read header={names + above}, or"
                " --read delimiter=, if it is the name of the only column"
            )


def check_names(header: list[str], path: str, names_row: int = 3) -> list[str]:
    """The names, and `column_1` for a first column without one, as R and pandas write names of
    rows, or `column_7` for one behind all names. Raises InputError where another has none, or two
    have the same.

    names_row: where the names seem to be if the first line is a title.
    """
    if len(header) > 1 and not any(header):
        raise InputError(
            f"file '{path}': the line that should name the columns is blank; say which line does,"
            f" such as --read header={names_row}"
        )
    if len(header) > 2 and sum(map(bool, header)) == 1:
        raise InputError(
            f"file '{path}': its first line has one cell for {len(header)} columns, as a title has;"
            f" say which line names the columns, such as --read header={names_row}"
        )
    header = with_outer_names(header)
    places: dict[str, list[str]] = {}
    for number, name in enumerate(header, 1):
        places.setdefault(name, []).append(str(number))
    for numbers in places.values():
        more = len(numbers) - MOST_LISTED
        numbers[MOST_LISTED:] = [f"{more} more"] if more > 0 else []
    # the first line may be a record, so its cells are not shown
    findings = [
        f"file '{path}': columns {', '.join(others)} and {last} have the same name; rename all but"
        " one, or give the file a first line with names"
        for _, (*others, last) in sorted(places.items())
        if others
    ]
    if "" in header:
        number = header.index("") + 1
        findings.append(
            f"file '{path}': column {number} has no name; the first line must name every column;"
            " if another does, say which, such as --read header=2"
        )
    findings += names_like_patterns(header, f"file '{path}': ")
    InputError.raise_for(findings)
    return header


def with_outer_names(header: list[str]) -> list[str]:
    named = [number for number, name in enumerate(header) if name]
    if len(named) < 2 and header[:1] != [""]:  # a title, rather
        return header
    last = max(named, default=len(header))
    return [
        f"column_{number + 1}" if not name and (number == 0 or number > last) else name
        for number, name in enumerate(header)
    ]


def delimiter_of(head: bytes, kind: str) -> str:
    """What parts the cells of a delimited text, by its first line."""
    _, start, named = _without_sep_line(head, head.decode("utf-8-sig", errors="ignore"), "")
    return _header(start, "", kind, named)[1]


def check_encoding(content: bytes | Path, path: str, above: int = 0) -> None:
    """Raises InputError with the first line that is not UTF-8. above: lines before the content."""
    with dialects.opened(content) as file:
        for number, line in enumerate(file, start=above + 1):
            if not is_utf8(line):
                raise InputError(
                    f"file '{path}': line {number} is not UTF-8; say what it is,"
                    f" {dialects.ENCODINGS}"
                )


def check_quotes(content: bytes | Path, path: str, separator: str) -> None:
    """Raises InputError where a quote opens or closes no cell: by some readers, Polars among them,
    such a record and those up to the next quote are one, and nobody would miss them.
    """
    text = dialects.mapped(content)
    if text.find(b'"') < 0:
        return
    rows = np.zeros(MOST_LISTED, dtype=np.int64)
    begun = len(BOM_UTF8) if text[: len(BOM_UTF8)] == BOM_UTF8 else 0
    letters = np.frombuffer(text, dtype=np.uint8)[begun:]
    words = letters[: len(letters) // 8 * 8].view("<u8")
    count = 0
    if not (words.flags.aligned and record_ends.opens_or_closes(letters, words, ord(separator))):
        count = record_ends.stray_quotes(letters, ord(separator), rows)
    if count:
        below = [row - 1 for row in rows[:count].tolist() if row > 0]
        named = ["the first line"] if rows[0] == 0 else []
        if below:
            named.append(listed_rows(below, count - len(named)))
        raise InputError(
            f"file '{path}': {count} record{'s' if count > 1 else ''} with a quote that opens or"
            f" closes no cell ({', '.join(named)}); put such cells into quotes and double"
            f" those inside, or say what separates the cells (delimiter), if not {separator!r}"
        )


def is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _start(content: bytes | Path, path: str) -> tuple[str, str]:
    """The beginning of the text, and how its first line ends."""
    from shoal.connectors.formats import begun_as  # which imports this module

    with dialects.opened(content) as file:
        text = file.read(HEAD)
    start = text.decode("utf-8-sig", errors="ignore")
    if not start.strip():
        raise InputError(f"file '{path}': is empty; the first line must name the columns")
    if (found := begun_as(text)) is not None:
        raise InputError(
            f"file '{path}': holds {found.label}, not text; give it a name that ends in {found}"
        )
    if "\0" in start:
        raise InputError(
            f"file '{path}': is not UTF-8 text, or holds null characters; say what it is, such as"
            " --read encoding=utf-16-le"
        )
    if "\r" in start and "\n" not in start:
        raise InputError(
            f"file '{path}': its lines end in carriage returns alone, as on old Macs; save it with"
            " line ends of Unix or Windows"
        )
    first_line = text.partition(b"\n")[0]
    if not is_utf8(first_line):
        check_encoding(content, path)
    return start, "\r\n" if first_line.endswith(b"\r") else "\n"


def _without_sep_line(
    content: bytes | Path, start: str, path: str
) -> tuple[bytes | Path, str, str | None]:
    """The text without a spreadsheet's first line `sep=;`, and the separator that it names."""
    line, _, rest = start.partition("\n")
    named = line.strip('\r "')
    if not (named.lower().startswith("sep=") and len(named) == 5):
        return content, start, None
    if not dialects.is_delimiter(named[4]):
        raise InputError(
            f"file '{path}': its first line, 'sep=', names no ASCII character; separate the cells"
            " by one, such as ';', and name it there"
        )
    return dialects.whole(content).partition(b"\n")[2], rest, named[4]


def _without_title(
    content: bytes | Path, start: str, lines: int, path: str
) -> tuple[bytes | Path, str]:
    """The text from the line on that names the columns. lines: how many stand above it."""
    if lines < 1:
        return content, start
    *above, rest = dialects.whole(content).split(b"\n", lines)
    if len(above) < lines:
        raise InputError(f"file '{path}': has no line {lines + 1}; correct --read header")
    return rest, _start(rest, path)[0]


def _header(start: str, path: str, kind: str, given: str | None) -> tuple[list[str], str]:
    """The column names, and what parts the cells: what was given, or the one that parts names."""
    if not start.strip():
        raise InputError(f"file '{path}': is empty; the first line must name the columns")
    if given is not None:
        return _first_row(start, given, path), given
    if kind == ".tsv":
        return _first_row(start, "\t", path), "\t"
    if kind == ".csv":
        names = _first_row(start, ",", path)
        if len(names) > 1:
            return names, ","
    rows = [(_first_row(start, separator, path), separator) for separator in _SEPARATORS]
    names, separator = max(rows, key=lambda row: len(row[0]))
    if len(names) == 1 and kind == ".tab":
        separator = "\t"
    return names, separator


def _first_row(text: str, separator: str, path: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error:
        raise InputError(
            f"file '{path}': its first line can't be read as column names; check its quotes"
        ) from None


def check_rows(content: bytes | Path, path: str, separator: str, columns: int) -> list[int]:
    """0-based rows that are blank lines; raises InputError for rows of too few or many cells."""
    blank: list[int] = []
    ragged: list[int] = []
    count = 0
    usual = csv.field_size_limit(LONGEST_CELL)
    try:
        with io.TextIOWrapper(dialects.opened(content), "utf-8-sig", newline="\n") as text:
            # a carriage return ends no record, as for Polars
            lines = (line.rstrip("\r\n").replace("\r", " ") + "\n" for line in text)
            reader = csv.reader(lines, delimiter=separator)
            next(reader)
            for row, cells in enumerate(reader):
                if not cells:
                    blank.append(row)
                elif len(cells) != columns:
                    count += 1
                    if len(ragged) < MOST_LISTED:
                        ragged.append(row)
    except csv.Error:
        raise InputError(
            f"file '{path}': holds a cell too long to be one; a quote may be left open"
        ) from None
    finally:
        csv.field_size_limit(usual)
    if count:
        names = "one cell" if columns == 1 else f"{columns} cells"
        title = (
            ""
            if columns > 1
            else "if the first line is a title, say which one names the columns, such as"
            " --read header=2; else "
        )
        raise InputError(
            f"file '{path}': {count} row{'s' if count > 1 else ''} with more or fewer than the"
            f" header's {names} ({listed_rows(ragged, count)}); {title}fix them, quote cells that"
            " hold the separator, or say what it is, such as --read delimiter=;"
        )
    return blank
