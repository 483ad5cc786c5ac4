"""Delimited text whose lines repeat: each different line is parsed once, however often it stands
there.
"""

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.connectors.dialect import mapped
from shoal.connectors.record_ends import first_end
from shoal.data.table import HEAD

LEAST = 1 << 24
"""Bytes of a text below which it is parsed as soon."""
CHUNK = 1 << 20
"""Bytes that are looked at at once; the names of the columns must end in the first of them."""
LONGEST = 1 << 12
"""Bytes of the longest line."""
MOST = 1 << 24
"""Different lines that are known, however long a text of short lines is: they take 500 MB."""
MOST_DIFFERENT = 0.3
"""The share of the first lines that may differ: more are parsed as soon as they are told apart."""


class DistinctLines(NamedTuple):
    """The names and each different line of a text.

    different: how many lines there are of them. line_of: (lines,) int32, which of them each is.
    """

    content: bytes
    different: int
    line_of: np.ndarray


def distinct_lines(content: bytes | Path) -> DistinctLines | None:
    """The different lines of a text that begins with the names of its columns.

    None where it is short, where few lines repeat, or where a line may be no record by itself.
    """
    if _size(content) < LEAST:
        return None
    text = mapped(content)
    head = bytes(text[:CHUNK])
    first = head.split(b"\n")
    begin = first_end(head)
    if not begin or len(set(first)) > MOST_DIFFERENT * len(first):
        return None
    return lines_of(np.frombuffer(text, dtype=np.uint8), begin)


def _size(content: bytes | Path) -> int:
    return len(content) if isinstance(content, bytes) else content.stat().st_size


def of_few_values(
    content: bytes | Path, separator: str, header: list[str], names: Collection[str]
) -> list[str]:
    """Those of some columns whose first cells repeat; of others categories cost more than texts."""
    found = [name for name in header if name in names]
    if _size(content) < LEAST:
        return found
    head = pl.read_csv(content, separator=separator, infer_schema=False, n_rows=HEAD)
    if head.columns != header:
        return found
    return [name for name in found if head[name].n_unique() <= head.height // 2]


def lines_of(text: np.ndarray, begin: int) -> DistinctLines | None:
    """The different lines of a text, (n,) uint8, whose records begin there; None as above."""
    from shoal.connectors.kernels import lines  # compiled for long texts alone

    factors = np.random.default_rng(0).integers(1 << 32, size=(2, LONGEST), dtype=np.uint32)
    found: list[np.ndarray] = []
    known, at = 0, begin
    while at < len(text):
        ends = at + np.flatnonzero(text[at : at + CHUNK] == lines.BREAK)
        if at + CHUNK >= len(text) and text[-1] != lines.BREAK:
            ends = np.append(ends, len(text))
        if not len(ends) or int(np.diff(ends, prepend=at - 1).max()) > LONGEST:
            return None
        if not found:
            lines_left = (len(text) - at) * len(ends) // int(ends[-1] + 1 - at)
            most = min(lines_left // 2 + len(ends) + 1, MOST)
            spans, keys = np.empty((most, 2), dtype=np.int64), np.empty(most, dtype=np.uint64)
            bits = (2 * most).bit_length()
            slot = np.full(1 << bits, -1, dtype=np.int32)
        line_of = np.empty(len(ends), dtype=np.int32)
        shift = np.uint64(64 - bits)
        known = lines.find_lines(text, at, ends, spans, line_of, keys, slot, shift, factors, known)
        found.append(line_of)
        at = int(ends[-1]) + 1
        if known in (lines.NO_RECORD, most):
            return None
    spans = spans[:known]
    size = int((spans[:, 1] - spans[:, 0]).sum()) + known
    copied = np.empty(begin + size, dtype=np.uint8)
    copied[:begin] = text[:begin]
    lines.copy_lines(text, spans, copied[begin:])
    return DistinctLines(copied.tobytes(), known, np.concatenate(found))
