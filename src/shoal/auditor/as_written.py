"""How a released file is written, against what its certificate says of that."""

from __future__ import annotations

import codecs
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shoal.auditor.carried import carried
from shoal.auditor.checks import Check, Stated, listed
from shoal.auditor.columns import REMOVED
from shoal.connectors import files
from shoal.connectors.database.address import is_address, parse
from shoal.connectors.dialect import DELIMITED, UTF8, is_written_in
from shoal.connectors.file_description import UNDELIMITED
from shoal.connectors.folder_draft import listed_files
from shoal.data.regular_files import is_pipe
from shoal.data.two_tables import COUNT, GROUP, sensitive_path
from shoal.policy.policy import Policy

NAME = "output"
HEAD = 1 << 16  # bytes, more than any header
OF_POLICY = ("decimal", "dates", "intervals", "mark")
OF_COLUMN = ("name", "role", "type", "technique", "round", "derived_from")


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
        text = f"holds {listed(more)} beside the table, which Shoal never writes; look at it before"
        text += " you pass it on"
        return Check(NAME, False, text)
    wrong = [f"'{key}'" for key in _wrong(stated, path)]
    if policy is not None:
        wrong += [f"'dialect.{key}'" for key in _unlike_policy(stated, policy)]
    if wrong:
        return Check(NAME, False, f"{listed(wrong)}: not what the certificate says")
    return Check(NAME, True, f"{stated.at('output', 'format')}, written as the certificate says")


def _wrong(stated: Stated, name: str) -> Iterator[str]:
    """The keys of `output` that the file denies."""
    path = Path(name)
    size, format_stated = stated.at("output", "bytes"), stated.at("output", "format")
    for key in ("bytes", "format", "files"):
        stated.note("output", key)
    if is_address(name) and parse(name).release is not None:
        # of a ledger: the hash is that of its file, which says all of this
        for key in UNDELIMITED:
            stated.note("output", "dialect", key)
        return
    named = stated.at("output", "files")
    if named is not None and (not path.is_dir() or named != listed_files(path)):
        yield "files"
    if size is not None and path.is_file() and size != path.stat().st_size:
        yield "bytes"
    kind = files.format_of(name)
    packed = _is_packed(path) and kind not in files.TYPED
    if f".{format_stated}".removesuffix(files.PACKED) not in _alike(kind) or (
        format_stated.endswith(files.PACKED) != packed
    ):
        yield "format"
    for key in UNDELIMITED:
        stated.note("output", "dialect", key)
    dialect = stated.at("output", "dialect")
    if kind in DELIMITED:
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
        return carried(path, stated.published, _described(stated))
    names, second = [*stated.published, GROUP, COUNT], Path(sensitive_path(str(path)))
    both = (path, second) if second.is_file() else (path,)
    return [found for one in both for found in carried(one, names, {})]


def _described(stated: Stated) -> dict[str, Any]:
    """What a Parquet file says about itself, by its certificate."""
    columns = [
        {key: column[key] for key in OF_COLUMN if column.get(key) is not None}
        for column in stated.at("columns") or []
        if column["technique"] != REMOVED
    ]
    return {
        "columns": columns,
        "dialect": {key: stated.at("output", "dialect", key) for key in OF_POLICY},
    }


def _alike(kind: str) -> tuple[str, ...]:
    """The formats that differ by name alone."""
    return DELIMITED if kind in DELIMITED else (kind,)


def _wrong_in_text(dialect: dict[str, object], head: bytes) -> Iterator[str]:
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


def _is_packed(path: Path) -> bool:
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _content(path: Path, packed: bool, encoding: object) -> bytes:
    """What the file holds; its beginning alone where UTF-8 tells all texts apart."""
    with gzip.open(path, "rb") if packed else open(path, "rb") as file:
        return bytes(file.read(HEAD if encoding == UTF8 else -1))


def _unlike_policy(stated: Stated, policy: Policy) -> Iterator[str]:
    """How cells are written, where that is not as the policy says."""
    written = policy.notation.written
    asked = {
        "decimal": written.decimal,
        "dates": written.dates,
        "intervals": policy.render.intervals,
        "mark": policy.render.suppressed,
    }
    for key in OF_POLICY:
        stated.note("output", "dialect", key)
        if stated.at("output", "dialect", key) != asked[key]:
            yield key
