"""How a release is written, as the certificate beside it says; options of `publish` may have
overridden what the policy says of that.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from shoal.connectors import files
from shoal.connectors.dialect import (
    DELIMITED,
    UTF8,
    Reading,
    codec_of,
    is_written_in,
    reading_as_stated,
)
from shoal.connectors.outputs import certificate_path
from shoal.data.certificate import Certificate
from shoal.errors import InputError


def certified_reading(path: str, asked: Reading) -> Reading | None:
    """How to read a release where its certificate says otherwise than the policy.

    asked: as the policy says. None where there is no certificate, or none that can be read, or it
    is another file's, or the file is not written in the encoding that it names.
    """
    beside = Path(certificate_path(path))
    if (
        path == files.STANDARD
        or files.format_to_read(path) not in DELIMITED
        or not beside.is_file()
    ):
        return None
    try:
        output = Certificate.load(beside).get("output") or {}
    except InputError:
        return None  # an audit needs no certificate
    stated = reading_as_stated(output.get("dialect"))
    if _is_same(stated, asked) or files.table_sha256(path) != output.get("sha256"):
        return None
    if _codec(stated) != UTF8 and not is_written_in(_content(path), _codec(stated)):
        return None
    return stated


def _is_same(stated: Reading, asked: Reading) -> bool:
    # where nothing is asked, the delimiter is guessed, and from a few columns wrongly
    parts_alike = stated.delimiter in (None, asked.delimiter)
    return parts_alike and _codec(stated) == _codec(asked)


def _codec(reading: Reading) -> str:
    return (codec_of(reading.encoding) if reading.encoding else None) or UTF8


def _content(path: str) -> bytes:
    content = Path(path).read_bytes()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
