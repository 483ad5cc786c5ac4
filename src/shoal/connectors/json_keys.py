"""Keys of JSON lines: each once in a line, or programs differ in which of two values they read."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import polars as pl

from shoal.data.unpacking import CELL, most_unpacked, require_room
from shoal.errors import InputError, library_errors_as

# a key with its colon, then its value; a line of plain values is read from left to right by it
PAIR = r'("(?:[^"\\]|\\.)*"\s*:)\s*(?:"(?:[^"\\]|\\.)*"|[^",}\]\s]+)'
MOST_SHOWN = 5
_KEY = re.compile(rb'"(?:[^"\\]|\\.)*"\s*:')


def check_keys(content: bytes, frame: pl.DataFrame, where: str, is_plain: bool = True) -> None:
    """Raises InputError where a line names a key twice, however the key is spelled.

    frame: the same lines as they were read. is_plain: whether no value is a list or an object.
    """
    texts = content.decode(errors="replace").split("\n")
    lines = pl.DataFrame({"text": texts}).with_row_index("line", offset=1)
    lines = lines.filter(pl.col("text").str.strip_chars() != "")
    if (
        frame.width and lines.height == frame.height
    ):  # with as many colons as values, no key is named twice
        values = frame.select(pl.sum_horizontal(pl.all().is_not_null())).to_series()
        lines = lines.filter(pl.col("text").str.count_matches(r'"\s*:') > values)
    shapes = lines["text"].str.replace_all(PAIR, "${1}0") if is_plain else lines["text"]
    twice = [shape for shape in shapes.unique().to_list() if _names_twice(shape)]
    found = lines.filter(shapes.is_in(twice))["line"].to_list()
    if found:
        shown = ", ".join(map(str, found[:MOST_SHOWN]))
        more = ", ..." if len(found) > MOST_SHOWN else ""
        are = "1 line names" if len(found) == 1 else f"{len(found)} lines name"
        raise InputError(
            f"{where}: {are} a key twice (line {shown}{more}), and programs differ in which value"
            " they read; write each key once, and one object a line"
        )


def _names_twice(shape: str) -> bool:
    """Whether a line, its values replaced, is anything but one object with each key once."""
    try:
        keys = json.loads(shape, object_pairs_hook=_keys)
    except (ValueError, RecursionError):
        return True
    return len({*keys}) < len(keys)


def _keys(pairs: list[tuple[str, Any]]) -> list[str]:
    return [key for key, _ in pairs]


EVERY, LONGEST = 2000, 200
"""Lines that are looked at, of all lines and of the longest ones."""


def require_keys_shared(content: bytes, what: str, allowed: int | None) -> None:
    """Raises InputError where lines name so different keys that their table would be far larger.

    The keys of some lines bound those of all from below. allowed: as in `most_unpacked`.
    """
    ends = np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n"))
    starts, ends = np.append(0, ends + 1), np.append(ends, len(content))
    chosen = {*range(0, len(ends), max(len(ends) // EVERY, 1))}
    chosen |= {*np.argsort(starts - ends, kind="stable")[:LONGEST].tolist()}
    some = b"\n".join(content[starts[line] : ends[line]] for line in sorted(chosen))
    keys = {*_KEY.findall(some)}
    require_room(CELL * len(keys) * len(ends), most_unpacked(len(content), allowed), what)


def objects(content: bytes) -> pl.DataFrame | None:
    """JSON lines as a table; None where they are none."""
    if not content.strip():
        return pl.DataFrame()
    try:
        with library_errors_as("is not JSON lines"):
            return pl.read_ndjson(content, infer_schema_length=None)
    except InputError:
        return None
