"""Columns of few distinct texts, as messages carry them and as the fused table holds them."""

from __future__ import annotations

import json
import struct

import numpy as np
import polars as pl

from shoal.data.table import Column
from shoal.errors import InputError, PartyError
from shoal.fusion.codes import pack, packed_size, unpack
from shoal.fusion.wire.parser import parse_json
from shoal.search.candidates import MOST_CHILDREN

MOST_HEAD = 1 << 28  # bytes of the texts of a column
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
    """A column as a message: its name and texts as JSON, then the codes of its rows.

    Raises InputError where the texts are more than the others take.
    """
    head = json.dumps([name, texts]).encode()
    if len(head) > MOST_HEAD:
        raise InputError(
            f"column '{name}': its distinct values take {len(head)} bytes, {MOST_HEAD} are"
            " possible; give it the role 'drop'"
        )
    if len(texts) <= MOST_CHILDREN:
        body = pack(codes.astype(np.uint16), len(texts))
    else:
        body = codes.astype("<u4").tobytes()
    return _LENGTH.pack(len(head)) + head + body


def most_column(records: int) -> int:
    """Bytes of a packed column of at most so many rows."""
    return _LENGTH.size + MOST_HEAD + 4 * records


def column_head(content: bytes | bytearray) -> tuple[str, list[str], int]:
    """Name and texts of a packed column, and where its codes begin; raises ValueError."""
    if len(content) < _LENGTH.size:
        raise ValueError
    end = _LENGTH.size + _LENGTH.unpack_from(content)[0]
    if end > len(content):
        raise ValueError
    head = parse_json(bytes(content[_LENGTH.size : end]), MOST_HEAD)
    if type(head) is not list or len(head) != 2 or type(head[1]) is not list:
        raise ValueError
    name, texts = head
    if not all(type(text) is str for text in (name, *texts)) or len(set(texts)) < len(texts):
        raise ValueError
    return name, texts, end


def unpack_column(content: bytearray, rows: int) -> tuple[str, list[str], np.ndarray]:
    """Name, texts and codes of a column; raises PartyError where it is not one of so many rows."""
    try:
        name, texts, end = column_head(content)
        is_packed = len(texts) <= MOST_CHILDREN
        size = packed_size(rows, len(texts)) if is_packed else 4 * rows
        if len(content) - end != size:
            raise ValueError
        codes = (
            unpack(content[end:], rows, len(texts))
            if is_packed
            else np.frombuffer(content[end:], dtype="<u4")
        )
        if rows and int(codes.max()) >= len(texts):
            raise ValueError
    except ValueError:
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
