"""What a released file is, for whoever reads it: its format and how cells are written."""

from __future__ import annotations

import codecs
import gzip
from pathlib import Path
from typing import Any

from shoal.connectors import files
from shoal.connectors.database.address import is_address
from shoal.connectors.delimited import delimiter_of
from shoal.connectors.dialect import DELIMITED, Dialect
from shoal.data.notation import PLAIN, Notation
from shoal.data.regular_files import is_pipe
from shoal.data.schema import Render

HEAD = 1 << 16  # bytes, more than any header


def describe_file(
    path: str | Path,
    name: str,
    sha256: str | None,
    render: Render | None,
    dialect: Dialect | None = None,
    notation: Notation = PLAIN,
) -> dict[str, Any]:
    """The hash, size, format and dialect of a file.

    path: where its bytes are; null for what can be read only once. name: what it is called, which
    names the format. render, notation: how its cells are written. dialect: of delimited text, found
    in the file if it is not given.
    """
    kind = files.format_of(name)
    packed = name.lower().endswith(".gz") and not is_address(name)
    is_text = kind in DELIMITED
    is_there = str(path) != files.STANDARD and Path(path).is_file() and not is_pipe(path)
    return {
        "sha256": sha256,
        "bytes": Path(path).stat().st_size if is_there else None,
        "format": kind[1:] + (".gz" if packed else ""),
        "dialect": {
            **(_delimited(path, kind, dialect) if is_there and is_text else UNDELIMITED),
            "decimal": notation.decimal,
            "dates": notation.dates,
            "intervals": None if render is None else render.intervals,
            "mark": None if render is None else render.suppressed,
        },
    }


def described_second(path: Path | None, sha256: str | None) -> dict[str, Any]:
    """The part about the second of two tables, written as the first is; empty without one."""
    if path is None:
        return {}
    size = path.stat().st_size if path.is_file() and not is_pipe(path) else None
    return {"sensitive": {"sha256": sha256, "bytes": size}}


UNDELIMITED = dict.fromkeys(("delimiter", "encoding", "newline", "bom"))


def _delimited(path: str | Path, kind: str, dialect: Dialect | None) -> dict[str, Any]:
    return vars(_found(_head(path), kind) if dialect is None else dialect)


def _found(head: bytes, kind: str) -> Dialect:
    first, _, rest = head.partition(b"\n")
    ends = "\r\n" if first.endswith(b"\r") and (rest or head.endswith(b"\n")) else "\n"
    return Dialect(delimiter_of(head, kind), newline=ends, bom=head.startswith(codecs.BOM_UTF8))


def _head(path: str | Path) -> bytes:
    with open(path, "rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rb") if is_packed else open(path, "rb") as file:
        return bytes(file.read(HEAD))
