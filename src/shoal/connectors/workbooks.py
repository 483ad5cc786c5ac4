"""Tables in Excel workbooks (.xlsx): one sheet, its first row the names, or the one that is said.

What a spreadsheet shows as an error, or as a formula that was never computed, has no value that
could be published: such a workbook is refused. Text is written as text, never as a formula or link.
"""

import math
import os
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cache
from itertools import count as numbers_from
from pathlib import Path
from typing import Any, BinaryIO
from xml.parsers import expat

import polars as pl

from shoal.connectors.delimited import check_names
from shoal.connectors.dialect import Reading
from shoal.data.language import inflected
from shoal.data.person_names import nobody
from shoal.data.regular_files import most_cells, most_unpacked, require_room
from shoal.data.table import as_text
from shoal.data.warnings import HIDDEN_ROWS, ReleaseWarning
from shoal.errors import InputError, library_errors_as, of_extra

ROWS, COLUMNS, CHARACTERS = 1_048_575, 16_384, 32_767
"""What a sheet holds, below its first row; and a cell."""

DAMAGES = (
    zipfile.BadZipFile,
    expat.ExpatError,
    ArithmeticError,  # a number or a duration beyond all that a sheet holds
    LookupError,
    ValueError,
    OSError,
    EOFError,
    zlib.error,
)

MOST_EXACT = 10**15
"""Whole numbers of more digits may have lost some: a spreadsheet keeps 15."""

DAY, MOMENT = "yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss"
"""The formats in which cells that are dates are written; one of MOMENT is read as it shows."""

FIRST, LAST = date(1900, 3, 1), date(9999, 12, 31)
"""The days of which a sheet and its readers agree: its calendar has a 29 February in 1900."""

SHEET = "data"
MADE = datetime(2000, 1, 1)
"""The creation date in every workbook, so that the same table gives the same bytes."""

OWN_PARTS = frozenset(
    {
        "[Content_Types].xml",
        "_rels/.rels",
        "docProps/app.xml",
        "docProps/core.xml",
        "xl/_rels/workbook.xml.rels",
        "xl/sharedStrings.xml",
        "xl/styles.xml",
        "xl/theme/theme1.xml",
        "xl/workbook.xml",
        "xl/worksheets/sheet1.xml",
    }
)
"""The parts of every workbook that `write` makes."""

_SHOWN = 5


def read(path: str | Path, reading: Reading) -> tuple[pl.DataFrame, tuple[ReleaseWarning, ...]]:
    """The table in a workbook's one visible sheet, or in the one that is named, all as text; and
    what there is to say of its rows.

    Raises InputError where it is not such a table, MissingExtraError without the extra.
    """
    with _opened(path, reading) as book:
        sheet = book.sheet
        seen, rows = book.walked(sheet), book.rows(sheet)
        hidden = _check_cells(path, seen, rows, reading.header)
        frame = _table(rows, path, reading, seen.masks)
    filled = [bool(_filled(row)) for row in rows[reading.header :]]
    first = filled.index(False) if False in filled else len(filled)
    return frame, (*nobody(filled.count(False), sum(filled[first:])), *_hidden(hidden))


def first_rows(path: str | Path, reading: Reading, count: int) -> tuple[list[str], list[list[str]]]:
    """The names of a workbook's visible sheets, and the first rows of the one that is named, else
    of the first, as text, or none where `read` refuses that sheet; raises as `read`. A count of 0
    walks no sheet, however large they are.
    """
    rows: list[list[Any]] = []
    with _opened(path, reading) as book:
        names = book.shown
        named = reading.sheet if reading.sheet in names else next(iter(names), None)
        if named is not None and count:
            with suppress(InputError):
                book.walked(named)
                rows = book.rows(named, count)
        return names, [[_text(cell, reading) for cell in row[: _filled(row)]] for row in rows]


@dataclass(frozen=True)
class _Book:
    """A workbook that is open: its archive, and as calamine reads it.

    most: bytes that its texts may take. lengths: of those that its cells share. shown: the names of
    its visible sheets.
    """

    path: str | Path
    reading: Reading
    archive: zipfile.ZipFile
    most: int
    lengths: list[int]
    read: Any
    shown: list[str]

    @property
    def sheet(self) -> str:
        """The sheet that is read; raises InputError where it is not clear which."""
        named, names = self.reading.sheet, ", ".join(map(repr, self.shown))
        if named is not None:
            if named not in self.read.sheet_names:
                raise InputError(
                    f"file '{self.path}': has no sheet of the name that was given; its sheets are"
                    f" {names}: say --read sheet=NAME"
                )
            return named
        if len(self.shown) != 1:
            listed = f" ({names})" if names else ""
            raise InputError(
                f"file '{self.path}': has {len(self.shown)} sheets{listed}; say --read sheet=NAME"
            )
        return self.shown[0]

    def rows(self, sheet: str, most: int | None = None) -> list[list[Any]]:
        """The cells of a sheet that was walked, which calamine may take in."""
        with library_errors_as(str(_damaged(self.path))):
            read: list[list[Any]] = self.read.get_sheet_by_name(sheet).to_python(
                skip_empty_area=False, nrows=most
            )
        return read

    def walked(self, sheet: str) -> "_Sheet":
        """What a sheet says of itself; raises InputError where calamine may not take it in: where
        far more cells lie between its corners than it has, or its cells hold too many characters by
        repeating texts that are written once.
        """
        where = f"file '{self.path}'"
        try:
            seen = _Sheet(self.lengths, _masks(self.archive))
        except _FarTooManyError:
            text = f"describes more than {MOST_STYLES} styles; export it as .csv"
            raise InputError(f"{where}: {text}") from None
        with suppress(_FarTooManyError):  # said below, by what was seen so far
            seen.walk(self.archive, _part_of(self.archive, sheet))
        size = seen.last_row * seen.last_column
        if size > most_cells(seen.filled):
            raise InputError(
                f"{where}: its sheet reaches over {size} cells, of which {seen.filled} have a"
                " value, so that one stands far from the others; delete what is right of the table"
                " and below it, or export it as .csv"
            )
        require_room(seen.characters, self.most, where)
        return seen


@contextmanager
def _opened(path: str | Path, reading: Reading) -> Iterator[_Book]:
    with of_extra(f"file '{path}': needs the extra 'excel'", "excel"):
        import python_calamine as calamine
    with _archive(path, reading.unpacked) as archive:
        try:
            most = most_unpacked(os.stat(path).st_size, reading.unpacked)
            lengths = _lengths(archive, most)
            with library_errors_as(str(_damaged(path))):
                book = calamine.CalamineWorkbook.from_path(str(path))
                visible = calamine.SheetVisibleEnum.Visible
                names = [one.name for one in book.sheets_metadata if one.visible == visible]
            yield _Book(path, reading, archive, most, lengths, book, names)
        except InputError:
            raise
        except (*DAMAGES, calamine.CalamineError):
            raise _damaged(path) from None


def _damaged(path: str | Path) -> InputError:
    return InputError(
        f"file '{path}': is not a complete .xlsx workbook; save it again, or name it .csv if it is"
        " text"
    )


@contextmanager
def _archive(path: str | Path, allowed: int | None = None) -> Iterator[zipfile.ZipFile]:
    """The archive; raises InputError where it is none, or unpacks to too much.

    allowed: the bytes that it may unpack to, where its reader has said.
    """
    try:
        archive = zipfile.ZipFile(path)
    except (FileNotFoundError, PermissionError):
        raise  # says nothing of the workbook
    except (zipfile.BadZipFile, OSError, NotImplementedError):
        raise _damaged(path) from None
    with archive:
        parts = archive.infolist()
        most = most_unpacked(sum(part.compress_size for part in parts), allowed)
        require_room(sum(part.file_size for part in parts), most, f"file '{path}'")
        if len({part.filename for part in parts}) < len(
            parts
        ):  # programs differ in which they read
            raise InputError(f"file '{path}': holds a part of its archive twice; save it again")
        yield archive


def foreign_parts(path: str | Path) -> int:
    """How many parts a workbook has that `write` never makes: sheets, comments, pictures."""
    with _archive(path) as archive:
        return sum(part not in OWN_PARTS for part in archive.namelist())


# What calamine shows as blank


def _check_cells(path: str | Path, seen: "_Sheet", rows: list[list[Any]], header: int) -> int:
    """How many rows below the names are hidden and not blank.

    Raises InputError where cells are errors, or formulas that nobody has computed, or where
    cells below the names are merged.
    """
    # a spreadsheet keeps one value of each merged range
    merged = [place for place in seen.merged if _last_row(place) > header]
    findings = []
    if seen.errors or seen.formulas:
        what = _what_is_blank(seen.errors, seen.formulas)
        listed = _listed(seen.places, seen.errors + seen.formulas)
        findings.append(f"file '{path}': {what} ({listed}); fix them")
    if merged:
        cells = "1 range of cells is" if len(merged) == 1 else f"{len(merged)} ranges of cells are"
        below = _below(merged, rows, header)
        hint = f", or say --read header={below} if row {below} names the columns"
        findings.append(
            f"file '{path}': {cells} merged below the names ({_listed(merged, len(merged))}), so"
            " that only the first cell of each has a value; split and fill them"
            f"{hint if below > header + 1 else ''}"
        )
    InputError.raise_for(findings)
    records = enumerate(rows[header:], header + 1)
    return sum(number in seen.hidden and bool(_filled(row)) for number, row in records)


MOST_STYLES = 1_000_000  # and what describes them; spreadsheets take 65,490


class _FarTooManyError(Exception):
    """A part of a workbook holds more blank cells or styles than any table needs."""


class _Sheet:
    """What a sheet says of itself, in its part of the archive, and calamine does not.

    last_row, last_column: the far corner. filled: how many cells have a value. characters: in all
    that name a shared text, whose lengths are given. errors, formulas: how many cells are errors,
    and formulas that nobody has computed. places: of the first of these. merged: ranges of cells.
    hidden: the numbers of rows that are not shown. masks: by column, the formats of its numbers, as
    of `_masks`.
    """

    def __init__(self, lengths: Sequence[int], masks: Mapping[int, str]) -> None:
        self._lengths, self._masks = lengths, masks
        self.masks: dict[int, set[str]] = {}
        self._mask = ""
        self.last_row = self.last_column = self.written = self.filled = self.characters = 0
        self.errors = self.formulas = 0
        self.places: list[str] = []
        self.merged: list[str] = []
        self.hidden: set[int] = set()
        self._row = self._column = 0
        self._last = (0, 0)
        self._place = self._type = ""
        self._value: list[str] = []
        self._value_at = 0
        self._parser = expat.ParserCreate()
        self._has_formula = self._has_value = self._in_value = False

    def walk(self, archive: zipfile.ZipFile, part: str) -> None:
        _parse(archive, part, self._begun, self._ended, self._said, self._parser)

    def _begun(self, name: str, attributes: dict[str, str]) -> None:
        local = _local(name)
        if local == "row":
            number = attributes.get("r", str(self._row + 1))
            self._row = int(number) if _ROW.fullmatch(number) else 0
            self._column = 0
            _require_on_sheet(self._row, 1)
            self.last_row = max(self.last_row, self._row)
            if attributes.get("hidden") in ("1", "true"):
                self.hidden.add(self._row)
        elif local == "mergeCell":
            self.merged.append(attributes.get("ref", "?"))
        elif local == "c":
            self._place, self._type = attributes.get("r", "?"), attributes.get("t", "")
            self._has_formula = self._has_value = False
            style = attributes.get("s", "")
            self._mask = self._masks.get(int(style), "") if style.isdigit() else ""
            self._reached("r" in attributes)
        elif local == "f":
            self._has_formula = True
        elif local == "v":
            self._in_value = True
            self._value.clear()
            self._value_at = self._parser.CurrentByteIndex + len(f"<{name}>")
            self._has_value = self._type == "str"  # only a text can be empty
        elif local == "is":
            self._has_value = True

    def _reached(self, is_placed: bool) -> None:
        """Counts a cell; one without a place follows the one before it. Raises KeyError, as for
        damage, where a place is none or comes back: programs differ in which of two cells they
        read.
        """
        self.written += 1
        row = self._row
        self._column += 1
        if is_placed:
            placed = _PLACE.fullmatch(self._place)
            row = int(placed[2]) if placed else 0
            self._column = _column_number(placed[1].upper()) if placed else 0
        _require_on_sheet(row, self._column)
        if (row, self._column) <= self._last:
            raise KeyError(self._place)
        self._last = (row, self._column)
        self.last_row = max(self.last_row, row)
        self.last_column = max(self.last_column, self._column)

    def _check_value(self, text: str) -> None:
        """Counts the characters of a shared text. Raises KeyError, as for damage, where a value is
        more than digits, such as entities and comments, of which calamine leaves out parts.
        """
        is_plain = self._parser.CurrentByteIndex - self._value_at == len(text.encode())
        if not is_plain or (self._type == "s" and not text.isdecimal()):
            raise KeyError(self._place)
        if self._type == "s":
            self.characters += self._lengths[int(text)]

    def _said(self, text: str) -> None:
        if self._in_value:
            self._value.append(text)
            self._has_value = self._has_value or not text.isspace()

    def _ended(self, name: str) -> None:
        local = _local(name)
        if local == "v":
            self._in_value = False
            if self._value and self._type != "str":
                self._check_value("".join(self._value))
            if self._type in ("", "n"):
                self.masks.setdefault(self._column, set()).add(self._mask)
        elif local == "sheetData":
            self._last = (ROWS + 2, 0)  # of a second one, calamine reads nothing
        if local != "c":
            return
        self.filled += self._has_value or self._has_formula
        if self.written - self.filled > most_cells(self.filled):
            raise _FarTooManyError
        is_error = self._type == "e"
        is_open = self._has_formula and not self._has_value
        self.errors += is_error
        self.formulas += is_open and not is_error
        if (is_error or is_open) and len(self.places) < _SHOWN:
            self.places.append(self._place)


_ZEROS = re.compile("0{2,15}")
_PLACE = re.compile("([A-Za-z]{1,3})(0*[1-9][0-9]{0,6})")
_ROW = re.compile("0*[1-9][0-9]{0,6}")


def _require_on_sheet(row: int, column: int) -> None:
    """Raises KeyError, as for damage, beyond all sheets: calamine holds every cell up to there."""
    if not (1 <= row <= ROWS + 1 and 1 <= column <= COLUMNS):
        raise KeyError(row, column)


@cache
def _column_number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


TEXT = 24
"""Bytes that calamine sets aside for each text that a list says it has, before it reads one."""


def _lengths(archive: zipfile.ZipFile, most: int) -> list[int]:
    """The characters of every text that cells may share. Raises KeyError, as for damage, where a
    list says that it has more texts than it has, and than `most` bytes hold.
    """
    lengths: list[int] = []
    counts = [0]

    def begun(name: str, attributes: dict[str, str]) -> None:
        local = _local(name)
        if local == "si":
            lengths.append(0)
        elif local == "sst" and (count := attributes.get("uniqueCount", "")).isdecimal():
            counts.append(int(count))

    def said(text: str) -> None:
        if lengths:
            lengths[-1] += len(text)

    shared = [part for part in archive.namelist() if part.casefold().endswith("sharedstrings.xml")]
    if len(shared) > 1:
        raise KeyError(shared[1])
    for part in shared:
        _parse(archive, part, begun, None, said)
    if len(lengths) < max(counts) > most // TEXT:
        raise KeyError(max(counts))
    return lengths


def _masks(archive: zipfile.ZipFile) -> dict[int, str]:
    """By the number of a style, its format where that says how a cell is read, such as `00000`."""
    codes: dict[str, str] = {}
    found: dict[int, str] = {}
    numbers, parts_of_styles = numbers_from(), numbers_from()
    inside: list[str] = []

    def begun(name: str, attributes: dict[str, str]) -> None:
        if next(parts_of_styles) > MOST_STYLES:
            raise _FarTooManyError
        inside.append(_local(name))
        number = attributes.get("numFmtId", "")
        if inside[-1] == "numFmt":
            codes[number] = attributes.get("formatCode", "")
        elif inside[-2:] == ["cellXfs", "xf"]:
            code, style = codes.get(number, ""), next(numbers)
            if code == MOMENT or _ZEROS.fullmatch(code):
                found[style] = code

    def ended(_: str) -> None:
        inside.pop()

    for part in archive.namelist():
        if part.casefold().endswith("/styles.xml"):
            _parse(archive, part, begun, ended)
    return found


def _hidden(rows: int) -> tuple[ReleaseWarning, ...]:
    if not rows:
        return ()
    text = (
        "{} [row of the sheet is|rows of the sheet are] hidden, and published as all others; take"
        " out of the data what is not meant"
    )
    return (ReleaseWarning(HIDDEN_ROWS, inflected(text, rows)),)


def _listed(places: Sequence[str], count: int) -> str:
    shown = places[:_SHOWN]
    return ", ".join(shown) + (", ..." if count > len(shown) else "")


def _what_is_blank(errors: int, formulas: int) -> str:
    said = [inflected("{} [cell is an error|cells are errors]", errors)] if errors else []
    if formulas:
        cells = "{}" if errors else "{} [cell|cells]"
        said.append(inflected(f"{cells} [is a formula|are formulas] without a value", formulas))
    return " and ".join(said)


def _part_of(archive: zipfile.ZipFile, sheet: str) -> str:
    """The part that holds a sheet, by the workbook's own list."""
    named = _relations(archive, "_rels/.rels", "")
    books = (target for _, kind, target in named if kind.endswith("/officeDocument"))
    book = next(books, "xl/workbook.xml")
    folder = posixpath.dirname(book)
    numbers: dict[str, str] = {}

    def begun(name: str, attributes: dict[str, str]) -> None:
        if _local(name) == "sheet":
            number = next((v for k, v in attributes.items() if _local(k) == "id"), "")
            numbers[attributes.get("name", "")] = number

    _parse(archive, book, begun)
    relations = f"{folder}/_rels/{posixpath.basename(book)}.rels".lstrip("/")
    for number, _, target in _relations(archive, relations, folder):
        if number == numbers.get(sheet) and target in archive.namelist():
            return target
    raise KeyError(sheet)


def _relations(archive: zipfile.ZipFile, part: str, folder: str) -> list[tuple[str, str, str]]:
    """Number, kind and target of what a part refers to."""
    found: list[tuple[str, str, str]] = []

    def begun(name: str, attributes: dict[str, str]) -> None:
        if _local(name) == "Relationship":
            target = attributes.get("Target", "")
            whole = target.lstrip("/") if target.startswith("/") else f"{folder}/{target}"
            at = posixpath.normpath(whole.lstrip("/"))
            found.append((attributes.get("Id", ""), attributes.get("Type", ""), at))

    _parse(archive, part, begun)
    return found


def _below(merged: Sequence[str], rows: list[list[Any]], header: int) -> int:
    """The first row with cells below such merged ranges as titles have, of one row each: it may
    have the names.
    """
    row = header
    while any(
        _last_row(place.partition(":")[0]) == row + 1 == _last_row(place) for place in merged
    ):
        row += 1
    if row == header:
        return row + 1
    return next((n for n, cells in enumerate(rows, 1) if n > row and _filled(cells)), row + 1)


def _last_row(place: str) -> int:
    """The number of the last row of a range such as A4:B6; of what is none, beyond all rows."""
    digits = "".join(filter(str.isdigit, place.rpartition(":")[2]))
    return int(digits) if digits else ROWS + 2


def _parse(
    archive: zipfile.ZipFile,
    part: str,
    begun: Any,
    ended: Any = None,
    said: Any = None,
    parser: expat.XMLParserType | None = None,
) -> None:
    """Walks a part; a document type, by which entities would be declared, is damage, and so is a
    section of CDATA, which calamine reads as blank.
    """

    def refuse(*_: object) -> None:
        raise KeyError(part)

    parser = parser or expat.ParserCreate()
    parser.StartElementHandler = begun
    parser.EndElementHandler = ended
    parser.CharacterDataHandler = said
    parser.StartDoctypeDeclHandler = refuse
    parser.StartCdataSectionHandler = refuse
    with archive.open(part) as file:
        parser.ParseFile(file)


def _local(name: str) -> str:
    return name.rpartition(":")[2]


# Cells as text


def _table(
    rows: list[list[Any]], path: str | Path, reading: Reading, masks: Mapping[int, set[str]]
) -> pl.DataFrame:
    """The rows below the names that are not blank, as text. masks: as of `_Sheet`."""
    width = max((_filled(row) for row in rows), default=0)
    if not rows or not width:
        raise InputError(f"file '{path}': is empty; the first row must name the columns")
    top = reading.header - 1
    if top >= len(rows):
        raise InputError(f"file '{path}': has no row {reading.header}; correct --read header")
    width = max(_filled(row) for row in rows[top:])
    header = [_text(cell, reading) for cell in rows[top][:width]]
    full = (n for n, row in enumerate(rows, 1) if n > reading.header and "" not in row[:width])
    header = check_names(header, str(path), next(full, 3))
    records = [row[:width] for row in rows[top + 1 :] if _filled(row)]
    findings, columns = [], {}
    for j, name in enumerate(header):
        cells, own = [row[j] for row in records], reading.of(name)
        long = sum(_is_too_long(cell) for cell in cells)
        if long:
            are = "1 cell is a number" if long == 1 else f"{long} cells are numbers"
            findings.append(
                f"column '{name}': {are} of more than 15 digits, all a spreadsheet keeps; store"
                " them as text"
            )
        formats = masks.get(j + 1, set())
        mask = max(formats) if len(formats) == 1 else ""
        digits = mask.count("0")
        texts = [
            _text(cell, own, mask).zfill(0 if isinstance(cell, str) else digits) or None
            for cell in cells
        ]
        columns[name] = pl.Series(name, texts, pl.String)
    InputError.raise_for(findings)
    return pl.DataFrame(columns)


def _filled(row: Sequence[Any]) -> int:
    """How many cells there are up to the last that is not blank."""
    return next((j + 1 for j in range(len(row) - 1, -1, -1) if row[j] != ""), 0)


def _is_too_long(cell: Any) -> bool:
    is_number = isinstance(cell, (int, float)) and not isinstance(cell, bool)
    return is_number and abs(cell) >= MOST_EXACT and cell == math.floor(cell)


def _text(cell: Any, reading: Reading, mask: str = "") -> str:
    """A cell as text: whole numbers without a point, midnight as a date, durations in hours.

    mask: the format of its column, where that says more.
    """
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, (int, float)):
        return number_text(cell).replace(".", reading.decimal)
    if mask == MOMENT and reading.dates is None and isinstance(cell, date):
        return str(cell) if isinstance(cell, datetime) else f"{cell} {time()}"
    if isinstance(cell, datetime) and cell.time() == time():
        cell = cell.date()
    if isinstance(cell, date) and reading.dates is not None:
        return cell.strftime(reading.dates)
    return _hours(cell) if isinstance(cell, timedelta) else str(cell.isoformat())


def number_text(number: float) -> str:
    """A finite number as a sheet gives it back."""
    return str(int(number)) if number == math.floor(number) else repr(number)


def _hours(duration: timedelta) -> str:
    """Hours and minutes, and seconds where there are some, as `[h]:mm` shows them."""
    minutes, seconds = divmod(round(abs(duration).total_seconds()), 60)
    sign, rest = "-" * (duration < timedelta()), f":{seconds:02}" * (seconds > 0)
    return f"{sign}{minutes // 60}:{minutes % 60:02}{rest}"


# Out


def write(sheets: Mapping[str, pl.DataFrame], file: BinaryIO) -> None:
    """Writes tables as the sheets of their names; the same tables give the same bytes.

    Raises InputError where a sheet can't hold one, MissingExtraError without the extra.
    """
    with of_extra("output: .xlsx needs the extra 'excel'", "excel"):
        import xlsxwriter
    # numbers and dates of which a sheet can't hold all are texts
    sheets = {
        title: pl.DataFrame([column if _is_held(column) else as_text(column) for column in frame])
        for title, frame in sheets.items()
    }
    InputError.raise_for(finding for frame in sheets.values() for finding in _too_large(frame))
    options = {
        "in_memory": True,
        "strings_to_numbers": False,
        "strings_to_formulas": False,
        "strings_to_urls": False,
    }
    book = xlsxwriter.Workbook(file, options)
    book.set_properties({"created": MADE})
    formats = {
        pl.Date: book.add_format({"num_format": DAY}),
        pl.Datetime: book.add_format({"num_format": MOMENT}),
    }
    for title, frame in sheets.items():
        sheet = book.add_worksheet(title)
        for j, name in enumerate(frame.columns):
            sheet.write_string(0, j, name)
            _write_column(sheet, j, frame[name], formats)
    try:
        book.close()
    except xlsxwriter.exceptions.FileCreateError as failed:
        raise failed.args[0] from None  # what the disk refuses


class _Exact(float):
    """A number that is written with all of its digits; the library would write 16."""

    def __format__(self, _: str) -> str:
        return number_text(self)


def _is_held(column: pl.Series) -> bool:
    """Whether a sheet gives all cells back. It has no infinity, no zone of time, no fraction of a
    second that shows, and no other day.
    """
    if column.dtype in (pl.Date, pl.Datetime("ms"), pl.Datetime("us"), pl.Datetime("ns")):
        is_whole = not as_text(column).str.contains(".", literal=True).any()
        return is_whole and bool(column.cast(pl.Date).is_between(FIRST, LAST).all())
    if not column.dtype.is_numeric():
        return False
    numbers = _shortest(column)
    is_kept = (numbers.abs() < MOST_EXACT) & (numbers.cast(column.dtype, strict=False) == column)
    return bool(is_kept.all())


def _shortest(column: pl.Series) -> pl.Series:
    """Numbers as floats of the digits that they show: a float of 32 bits shows fewer."""
    return column.cast(pl.String).cast(pl.Float64)


def _write_column(sheet: Any, j: int, column: pl.Series, formats: Mapping[Any, Any]) -> None:
    of_dates, is_number = formats.get(column.dtype.base_type()), column.dtype.is_numeric()
    cells = _shortest(column) if is_number else column
    for row, cell in enumerate(cells.to_list(), 1):  # the first one is below the names
        if cell in (None, ""):
            continue
        if of_dates is not None:
            sheet.write_datetime(row, j, cell, of_dates)
        elif is_number:
            sheet.write_number(row, j, _Exact(cell))
        else:
            sheet.write_string(row, j, cell)


def _too_large(frame: pl.DataFrame) -> Iterator[str]:
    if frame.height > ROWS:
        yield f"output: {frame.height} rows, a sheet holds {ROWS}; write .csv or .parquet"
    if frame.width > COLUMNS:
        yield f"output: {frame.width} columns, a sheet holds {COLUMNS}; write .csv or .parquet"
    is_blank = pl.DataFrame([as_text(column).fill_null("") == "" for column in frame])
    blank = is_blank.filter(pl.all_horizontal(pl.all())).height
    if blank:  # readers take a blank row for none
        yield inflected(
            "output: {} [row has|rows have] no value in any column, and a sheet holds no such row;"
            " write .csv or .parquet",
            blank,
        )
    for name in frame.columns:
        if frame[name].dtype != pl.String:
            continue
        lengths = frame[name].str.len_chars()
        long = int((lengths > CHARACTERS).sum() or 0)
        if long:
            cells = "1 cell" if long == 1 else f"{long} cells"
            yield (
                f"output: {cells} of '{name}' longer than the {CHARACTERS} characters a sheet's"
                " cell holds; write .csv or .parquet"
            )
