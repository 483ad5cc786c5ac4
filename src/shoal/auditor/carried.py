"""What a released file carries beside its table, where readers of the table don't look but others
do: names in a compressed file, properties of a workbook, metadata of a column.

Shoal writes none of it, so whatever is found was put there by somebody else. The checks know what
Shoal's own files hold, in every version of the libraries that write them; bytes that no program
shows, such as the padding of a format, are not looked at.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl

from shoal.connectors import files, workbooks
from shoal.errors import InputError

OWN_METADATA = frozenset({"shoal", "ARROW:schema"})
"""The entries that Shoal's own Parquet files have."""

GZIP_EXTRA, GZIP_NAME, GZIP_COMMENT = 4, 8, 16
ARROW_MARK = b"ARROW1"

TAGS = {
    "xl/worksheets/sheet1.xml": "worksheet dimension sheetViews sheetView selection sheetFormatPr"
    " cols col sheetData row c v pageMargins",
    "xl/sharedStrings.xml": "sst si t",
    "xl/workbook.xml": "workbook fileVersion workbookPr bookViews workbookView sheets sheet calcPr",
    "xl/styles.xml": "styleSheet numFmts numFmt fonts font sz color name family scheme fills fill"
    " patternFill borders border left right top bottom diagonal cellStyleXfs cellXfs xf cellStyles"
    " cellStyle dxfs tableStyles alignment protection",
    "docProps/core.xml": "cp:coreProperties dc:creator cp:lastModifiedBy dcterms:created"
    " dcterms:modified",
    "docProps/app.xml": "Properties Application DocSecurity ScaleCrop HeadingPairs vt:vector"
    " vt:variant vt:lpstr vt:i4 TitlesOfParts Company LinksUpToDate SharedDoc HyperlinksChanged"
    " AppVersion",
}
"""The elements of a workbook without a comment, a formula, a note or a defined name, by part."""

PROPERTY = re.compile(r"|true|false|[\d.]+|[\d-]+T[\d:]+Z|Microsoft Excel|Worksheets|data")
FORMATS = frozenset({b"yyyy\\-mm\\-dd", b"yyyy-mm-dd", b"yyyy-mm-dd hh:mm:ss"})


def carried(path: Path, names: Sequence[str], described: dict[str, Any]) -> list[str]:
    """What the file carries beside its table, in words; nothing where all is Shoal's own.

    names: the columns of the table. described: what a Parquet file of Shoal's says about itself.
    """
    kind = files.format_of(str(path))
    with suppress(InputError, OSError, KeyError, zipfile.BadZipFile, pl.exceptions.PolarsError):
        if kind == files.XLSX:
            return [*_in_workbook(path)]
        if kind == ".parquet":
            return [*_in_parquet(path, names, described)]
        if kind == ".arrow":
            return [*_in_arrow(path, names)]
        return [*_in_compression(path)]
    return []  # it can't be read at all, which others say


def _in_compression(path: Path) -> Iterator[str]:
    with open(path, "rb") as file:
        head = file.read(4)
    if head[:2] == b"\x1f\x8b" and head[3:] and head[3] & (GZIP_EXTRA | GZIP_NAME | GZIP_COMMENT):
        yield "a name or a comment in its compression"


# Parquet and Arrow


def _in_parquet(path: Path, names: Sequence[str], described: dict[str, Any]) -> Iterator[str]:
    entries = pl.read_parquet_metadata(path)
    more = len(entries.keys() - OWN_METADATA)
    if more:
        yield "1 entry of metadata" if more == 1 else f"{more} entries of metadata"
    if _parsed(entries.get("shoal")) not in (None, described):
        yield "another description of its columns"
    with suppress(binascii.Error):
        if _words(base64.b64decode(entries.get("ARROW:schema", "")), names):
            yield "metadata of its columns"
    if _has_dictionary(pl.read_parquet_schema(path)):
        yield "a list of values that no cell may show"


def _parsed(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text


def _in_arrow(path: Path, names: Sequence[str]) -> Iterator[str]:
    content = path.read_bytes()
    if not content.startswith(ARROW_MARK) or not content.endswith(ARROW_MARK):
        return
    end = len(content) - len(ARROW_MARK) - 4
    size = int.from_bytes(content[end : end + 4], "little")
    if _words(content[max(end - size, 0) : end], names):
        yield "metadata of its columns"
    if _has_dictionary(pl.read_ipc_schema(path)):
        yield "a list of values that no cell may show"


def _words(schema: bytes, names: Sequence[str]) -> bool:
    """Whether there is text in a schema beside the names of columns: types are but numbers."""
    for name in sorted(names, key=len, reverse=True):
        schema = schema.replace(name.encode(), b"\0")
    return re.search(r"\w{4}", schema.decode(errors="ignore")) is not None


def _has_dictionary(schema: Any) -> bool:
    return any(dtype in (pl.Enum, pl.Categorical) for dtype in schema.values())


# Workbooks


def _in_workbook(path: Path) -> Iterator[str]:
    more = workbooks.foreign_parts(path)
    if more:
        yield "1 part" if more == 1 else f"{more} parts"
    with zipfile.ZipFile(path) as archive:
        if archive.comment:
            yield "a comment in its archive"
        for part, tags in TAGS.items():
            content = archive.read(part)
            if _other_tag(tags).search(content):
                yield f"more than cells, in {part}"
            elif part.startswith("docProps/") and not all(map(PROPERTY.fullmatch, _texts(content))):
                yield f"properties, in {part}"
        if {*re.findall(rb'formatCode="([^"]*)"', archive.read("xl/styles.xml"))} - FORMATS:
            yield "a format that can show any text"
        sheets = re.findall(rb'<sheet [^>]*?name="([^"]*)"', archive.read("xl/workbook.xml"))
        if sheets != [workbooks.SHEET.encode()]:
            yield "another name of its sheet"


def _other_tag(tags: str) -> re.Pattern[bytes]:
    """Finds a tag that is none of these; comments and sections count as tags."""
    known = "|".join(map(re.escape, tags.split()))
    return re.compile(rf"<(?!\?xml |/?(?:{known})[\s/>])".encode())


def _texts(content: bytes) -> list[str]:
    return [text.strip() for text in re.findall(r">([^<]*)<", content.decode(errors="replace"))]
