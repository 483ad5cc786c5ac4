"""One row in so many of a table that does not fit into memory, read piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from shoal.connectors import delimited, files
from shoal.connectors.coded_files import PARQUET_ROWS, frames_of
from shoal.connectors.dialect import DELIMITED, UTF8, Reading
from shoal.connectors.pieces import PIECE, Pieces
from shoal.data import cores
from shoal.errors import InputError


@dataclass(frozen=True)
class SampledFile:
    """The first row, and then one in every so many. rows: of the whole table.

    It overstates who is alone: a person's other rows, and those who look alike, may be left out.
    """

    source: files.SourceFile
    rows: int


def read_sampled(path: str, every: int, reading: Reading) -> SampledFile:
    """One row in `every` of the table in a file; raises InputError where it is wrong.

    Whatever its size, no more is held than the sample and a piece.
    """
    kind = files.format_to_read(path)
    try:
        if kind == ".parquet":
            with cores.beside(files.file_sha256, path) as hashed:
                frame, rows = _every(_of_parquet(path), every)
                return SampledFile(files.SourceFile(frame, hashed()), rows)
        with open(path, "rb") as file:
            is_packed = file.read(2) == b"\x1f\x8b"
        if kind not in DELIMITED or is_packed:
            raise InputError(
                f"file '{path}': is too large to be read as a whole, and only plain delimited text"
                " and Parquet are sampled; convert it"
            )
        beginning = delimited.begin(Path(path), path, kind, reading)
        if beginning.above or beginning.dialect.encoding != UTF8:
            raise InputError(
                f"file '{path}': is too large to be read as a whole; write it as UTF-8 text without"
                " a title, or as Parquet"
            )
        pieces = Pieces(Path(path), PIECE, path=path)
        texts = [pl.String()] * len(beginning.header)
        frame, rows = _every(frames_of(pieces, Path(path), path, beginning, texts), every)
        return SampledFile(files.SourceFile(frame, pieces.sha256, beginning.dialect), rows)
    except OSError as failed:
        raise InputError(
            f"file '{path}': can't be read ({failed.strerror}); check the name and permissions"
        ) from None


def _every(frames: Iterator[pl.DataFrame], every: int) -> tuple[pl.DataFrame, int]:
    """One row in `every` of all that come, and how many came."""
    kept: list[pl.DataFrame] = []
    rows = 0
    for frame in frames:
        offset = -rows % every
        if offset < frame.height or not kept:
            kept.append(frame.gather_every(every, offset))
        rows += frame.height
    if not rows:
        raise InputError("file: holds no records; publish a table with at least k people")
    return pl.concat(kept), rows


def _of_parquet(path: str) -> Iterator[pl.DataFrame]:
    try:
        schema = pl.read_parquet_schema(path)
        files.check_plain(pl.DataFrame(schema=schema), f"file '{path}'")
        scanned = pl.scan_parquet(path, glob=False, low_memory=True)
        yield from scanned.collect_batches(chunk_size=PARQUET_ROWS, maintain_order=True)
    except pl.exceptions.PolarsError:
        raise InputError(f"file '{path}': is not a complete parquet file; write it again") from None
