"""Columns of few distinct texts, as messages carry them and as the fused table holds them."""

from __future__ import annotations

import json
import struct

import numpy as np
import polars as pl

from shoal.algorithms.fusion.party_tds import pack, packed_size, unpack
from shoal.algorithms.steps.candidates import MOST_CHILDREN
from shoal.data.table import Column
from shoal.errors import PartyError

_LENGTH = struct.Struct("<Q")


def restricted_column(column: Column, rows: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The texts of these rows, and which of them each row has; nothing of the other rows.

    Returns the texts in the column's order, and (rows,) codes.
    """
    codes = column.codes[rows]
    used = np.flatnonzero(np.bincount(codes, minlength=len(column.cells)))
    new_code = np.zeros(len(column.cells), dtype=np.min_scalar_type(max(len(used) - 1, 0)))
    new_code[used] = np.arange(len(used))
    return [column.cells[code] for code in used], new_code[codes]


def series_of(texts: list[str], codes: np.ndarray) -> pl.Series:
    """A column that holds each text once; its values sort as texts do."""
    return pl.Series(texts, dtype=pl.Enum(sorted(set(texts)))).gather(codes)


def pack_column(name: str, texts: list[str], codes: np.ndarray) -> bytes:
    """A column as a message: its name and texts as JSON, then the codes of its rows."""
    head = json.dumps([name, texts]).encode()
    if len(texts) <= MOST_CHILDREN:
        body = pack(codes.astype(np.uint16), len(texts))
    else:
        body = codes.astype("<u4").tobytes()
    return _LENGTH.pack(len(head)) + head + body


def unpack_column(content: bytearray, rows: int) -> tuple[str, list[str], np.ndarray]:
    """Name, texts and codes of a column; raises PartyError where it is not one of so many rows."""
    try:
        end = _LENGTH.size + _LENGTH.unpack_from(content)[0]
        name, texts = json.loads(content[_LENGTH.size : end])
        is_packed = len(texts) <= MOST_CHILDREN
        codes = (
            unpack(content[end:], rows, len(texts))
            if is_packed
            else np.frombuffer(content[end:], dtype="<u4")
        )
        if len(codes) != rows or (rows and int(codes.max()) >= len(texts)):
            raise ValueError
        if len({str(text) for text in texts}) < len(texts):
            raise ValueError
        if not all(isinstance(text, str) for text in (name, *texts)):
            raise TypeError
        if is_packed and len(content) - end != packed_size(rows, len(texts)):
            raise ValueError
    except (ValueError, TypeError, struct.error):
        raise PartyError(
            "another party: sent a column that can't be read; run the same version everywhere"
        ) from None
    return name, texts, codes


def shuffled_rows(table: pl.DataFrame, seed: int) -> pl.DataFrame:
    """The rows in an order that follows from their content alone.

    Columns are as `series_of` makes them, so they are sorted as text without a copy as text.
    """
    by_content = table.sort(table.columns)
    return by_content[np.random.default_rng([seed, 1]).permutation(by_content.height)]
