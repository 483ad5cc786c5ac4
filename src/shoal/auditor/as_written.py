"""How a released file is written, against what its certificate says of that."""

import base64
import binascii
import codecs
import gzip
import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl

from shoal.auditor.checks import Check, Stated, figure
from shoal.auditor.description import file_content
from shoal.connectors import workbooks
from shoal.connectors.dialect import UTF8, is_written_in
from shoal.connectors.formats import PACKED, is_alike
from shoal.connectors.location import Location
from shoal.connectors.outputs import UNDELIMITED, cells_written
from shoal.connectors.release_drafts import listed_files
from shoal.data.certificate_shape import DialectReport
from shoal.data.findings import some_named
from shoal.data.recoding import COUNT, GROUP, sensitive_path
from shoal.data.regular_files import is_pipe, unpacked
from shoal.errors import InputError
from shoal.policy.policy import Policy

NAME = "output"
HEAD = 1 << 16  # bytes, more than any header


def as_written(stated: Stated, path: str, policy: Policy | None) -> Check:
    """Whether size, format and dialect are those of the file, and cells written as the policy says.

    The delimiter and the encoding are right if the file can be read with them.
    """
    if stated.is_earlier:
        return Check(NAME, None, "a certificate of schema 1 does not say how the file is written")
    if stated.at("output", "dialect") is None:
        return Check(NAME, None, "the certificate does not say how the file is written")
    if is_pipe(path):
        return Check(NAME, None, "a pipe is read once; name a file to compare how it is written")
    more = _beside_the_table(stated, Path(path))
    if more:
        text = f"holds {some_named(more)} beside the table, which Shoal never writes"
        return Check(NAME, False, f"{text}; look at it before you pass it on")
    wrong = [f"'{key}'" for key in _wrong(stated, path)]
    if policy is not None:
        wrong += [f"'dialect.{key}'" for key in _unlike_policy(stated, policy)]
    if wrong:
        return Check(NAME, False, f"{some_named(wrong)}: not what the certificate says")
    return Check(NAME, True, f"{stated.at('output', 'format')}, written as the certificate says")


def _wrong(stated: Stated, name: str) -> Iterator[str]:
    """The keys of `output` that the file denies."""
    path, place = Path(name), Location(name)
    size, format_stated = stated.at("output", "bytes"), stated.at("output", "format")
    for key in ("bytes", "format", "files"):
        stated.note("output", key)
    for key in UNDELIMITED:
        stated.note("output", "dialect", key)
    if place.is_table and place.address.release is not None:
        return  # of a ledger: the hash is that of its file, which says all of this
    named = stated.at("output", "files")
    if named is not None and (not path.is_dir() or named != listed_files(path)):
        yield "files"
    is_unsaid = size is None and stated.verb == "audit"  # which may have read a pipe
    if not is_unsaid and path.is_file() and size != path.stat().st_size:
        yield "bytes"
    kind = place.kind
    packed = kind.is_text and path.is_file() and _head(path)[:2] == GZIP
    if not is_alike(kind, f".{format_stated}".removesuffix(PACKED)) or (
        format_stated.endswith(PACKED) != packed
    ):
        yield "format"
    dialect = stated.at("output", "dialect")
    if kind.is_delimited:
        content = _content(path, packed, dialect["encoding"])
        yield from (f"dialect.{key}" for key in _wrong_in_text(dialect, content))
    else:
        yield from (f"dialect.{key}" for key in UNDELIMITED if dialect[key] is not None)


def _beside_the_table(stated: Stated, path: Path) -> list[str]:
    """What a file of Shoal's own holds beside its table, where a reader may not look.

    An audit may be of any maker's file.
    """
    if stated.verb == "audit" or not path.is_file():
        return []
    if stated.at("presence") is None:
        dialect = stated.at("output", "dialect")
        return carried(path, stated.published, file_content(stated.at("columns") or [], dialect))
    names, second = [*stated.published, GROUP, COUNT], Path(sensitive_path(str(path)))
    both = (path, second) if second.is_file() else (path,)
    return [found for one in both for found in carried(one, names, {})]


def _wrong_in_text(dialect: DialectReport, head: bytes) -> Iterator[str]:
    """The mark before the text, and how its first line ends."""
    yield from (key for key in ("delimiter", "encoding") if dialect[key] is None)
    encoding = codecs.lookup(str(dialect["encoding"] or UTF8)).name
    marked = head.startswith(codecs.BOM_UTF8)
    if encoding != UTF8 and not is_written_in(head, encoding):
        yield "encoding"
        return
    if encoding == UTF8 and dialect["bom"] is not marked:
        yield "bom"
    first, end, _ = head.decode(encoding, errors="ignore").partition("\n")
    if not end or first.count('"') % 2:  # a name in quotes goes over several lines
        return
    if dialect["newline"] != ("\r\n" if first.endswith("\r") else "\n"):
        yield "newline"


def _head(path: Path) -> bytes:
    """The bytes that say whether a file is compressed, and what its compression names."""
    with open(path, "rb") as file:
        return file.read(4)


def _content(path: Path, packed: bool, encoding: object) -> bytes:
    """What the file holds; its beginning alone where UTF-8 tells all texts apart."""
    if packed and encoding != UTF8:
        return unpacked(path.read_bytes(), f"file '{path}'")
    with gzip.open(path, "rb") if packed else open(path, "rb") as file:
        return bytes(file.read(HEAD if encoding == UTF8 else -1))


def _unlike_policy(stated: Stated, policy: Policy) -> Iterator[str]:
    """How cells are written, where that is not as the policy says."""
    asked = cells_written(policy.notation.written, policy.render)
    for key, value in ({"missing": None} | asked).items():
        stated.note("output", "dialect", key)
        known = stated.at("output", "dialect", key)
        is_unsaid = key == "missing" and {*(known or ())} <= {*(value or ())}  # by earlier builds
        if known != value and not is_unsaid:
            yield f"{key} ({figure(known)} stated, {figure(value)} by the policy)"


# What a released file carries beside its table, where readers of the table don't look but others
# do: names in a compressed file, properties of a workbook, metadata of a column.
#
# Shoal writes none of it, so whatever is found was put there by somebody else. The checks know
# what Shoal's own files hold, in every version of the libraries that write them; bytes that no
# program shows, such as the padding of a format, are not looked at.


OWN_METADATA = frozenset({"shoal", "ARROW:schema"})
"""The entries that Shoal's own Parquet files have."""

GZIP = b"\x1f\x8b"
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
FORMATS = frozenset(
    form.encode()
    for own in (workbooks.DAY, workbooks.MOMENT)
    for form in (own, re.sub("([- ])", r"\\\1", own))
)


def carried(path: Path, names: Sequence[str], described: Mapping[str, Any]) -> list[str]:
    """What the file carries beside its table, in words; nothing where all is Shoal's own.

    names: the columns of the table. described: what a Parquet file of Shoal's says about itself.
    """
    kind = Location(path).kind
    with suppress(InputError, OSError, KeyError, zipfile.BadZipFile, pl.exceptions.PolarsError):
        if kind.has_sheets:
            return [*_in_workbook(path)]
        if kind.is_parquet:
            return [*_in_parquet(path, names, described)]
        if kind.is_columnar:
            return [*_in_arrow(path, names)]
        head = _head(path)
        if head[:2] == GZIP and head[3:] and head[3] & (GZIP_EXTRA | GZIP_NAME | GZIP_COMMENT):
            return ["a name or a comment in its compression"]
    return []  # it can't be read at all, which others say


# Parquet and Arrow


def _in_parquet(path: Path, names: Sequence[str], described: Mapping[str, Any]) -> Iterator[str]:
    entries = pl.read_parquet_metadata(path)
    more = len(entries.keys() - OWN_METADATA)
    if more:
        yield "1 entry of metadata" if more == 1 else f"{more} entries of metadata"
    said: Any = entries.get("shoal")
    with suppress(ValueError, RecursionError):
        said = None if said is None else json.loads(said)
    if said not in (None, described):
        yield "another description of its columns"
    content = b""
    with suppress(binascii.Error):
        content = base64.b64decode(entries.get("ARROW:schema", ""))
    yield from _in_schema(content, pl.read_parquet_schema(path), names)


def _in_arrow(path: Path, names: Sequence[str]) -> Iterator[str]:
    content = path.read_bytes()
    if not content.startswith(ARROW_MARK) or not content.endswith(ARROW_MARK):
        return
    end = len(content) - len(ARROW_MARK) - 4
    size = int.from_bytes(content[end : end + 4], "little")
    yield from _in_schema(content[max(end - size, 0) : end], pl.read_ipc_schema(path), names)


def _in_schema(content: bytes, types: Mapping[str, Any], names: Sequence[str]) -> Iterator[str]:
    """Text beside the names of columns, since types are but numbers and time zones, and lists of
    values.
    """
    zones = {dtype.time_zone or "" for dtype in types.values() if isinstance(dtype, pl.Datetime)}
    for name in sorted((*names, *zones - {""}), key=len, reverse=True):
        content = content.replace(name.encode(), b"\0")
    if re.search(r"\w{4}", content.decode(errors="ignore")):
        yield "metadata of its columns"
    if any(dtype in (pl.Enum, pl.Categorical) for dtype in types.values()):
        yield "a list of values that no cell may show"


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
            # a tag that is none of these; comments and sections count as tags
            known = "|".join(map(re.escape, tags.split()))
            if re.search(rf"<(?!\?xml |/?(?:{known})[\s/>])".encode(), content):
                yield f"more than cells, in {part}"
            elif part.startswith("docProps/") and not all(map(PROPERTY.fullmatch, _texts(content))):
                yield f"properties, in {part}"
        if {*re.findall(rb'formatCode="([^"]*)"', archive.read("xl/styles.xml"))} - FORMATS:
            yield "a format that can show any text"
        if _sheets(archive.read("xl/workbook.xml")) != [workbooks.SHEET.encode()]:
            yield "another name of its sheet"


def _sheets(content: bytes) -> list[bytes]:
    named = (re.match(rb'[^>]*?name="([^"]*)"', part) for part in content.split(b"<sheet ")[1:])
    return [name[1] for name in named if name]


def _texts(content: bytes) -> list[str]:
    behind = (part.partition(">") for part in content.decode(errors="replace").split("<")[:-1])
    return [text.strip() for _, ends, text in behind if ends]
