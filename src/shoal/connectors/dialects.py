"""What a released file is, for whoever reads it: its format and how cells are written."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from shoal.connectors import files
from shoal.data.regular_files import is_pipe
from shoal.data.schema import Render

DELIMITED = (".csv", ".tsv")
HEAD = 1 << 16  # bytes, more than any header


def describe_file(
    path: str | Path, name: str, sha256: str | None, render: Render | None
) -> dict[str, Any]:
    """The hash, size, format and dialect of a file.

    path: where its bytes are; null for what can be read only once. name: what it is called, which
    names the format. render: how its cells are written.
    """
    kind = files.format_of(name)
    packed = name.lower().endswith(".gz")
    is_there = str(path) != files.STANDARD and Path(path).is_file() and not is_pipe(path)
    return {
        "sha256": sha256,
        "bytes": Path(path).stat().st_size if is_there else None,
        "format": kind[1:] + (".gz" if packed else ""),
        "dialect": {
            **(_delimited(_head(path), kind) if is_there and kind in DELIMITED else UNDELIMITED),
            "intervals": None if render is None else render.intervals,
            "mark": None if render is None else render.suppressed,
        },
    }


UNDELIMITED = dict.fromkeys(("delimiter", "encoding", "newline", "bom", "decimal", "dates"))


def _delimited(head: bytes, kind: str) -> dict[str, Any]:
    first, _, rest = head.partition(b"\n")
    ends = "\r\n" if first.endswith(b"\r") and (rest or head.endswith(b"\n")) else "\n"
    return {
        "delimiter": files.delimiter_of(head, kind),
        "encoding": "utf-8",
        "newline": ends,
        "bom": head.startswith(b"\xef\xbb\xbf"),
        "decimal": ".",
        "dates": None,
    }


def _head(path: str | Path) -> bytes:
    with open(path, "rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rb") if is_packed else open(path, "rb") as file:
        return bytes(file.read(HEAD))
