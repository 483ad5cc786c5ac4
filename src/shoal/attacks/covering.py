"""Which classes cover whom: the pairs of a person and a class that an attacker can't tell apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from shoal.data.boxes import Boxes

WORD = 64
BITS = 1 << 28  # pairs that are held as one bit each
BLOCK = 1 << 24  # pairs that are held as one byte each


def covering_pairs(
    boxes: Boxes, points: np.ndarray, columns: Sequence[int] | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Persons and classes that cover them, (p,) and (p,), persons ascending; block by block.

    points: (m, d). columns: the axes that the attacker knows, all by default. All pairs of a person
    come in one block.
    """
    known = list(range(len(boxes.axes)) if columns is None else columns)
    if not boxes.count or not len(points):
        return
    step = max(BITS // boxes.count, 1)
    for start in range(0, len(points), step):
        words = _bits(boxes, points[start : start + step], known).view("<u8")
        rows = max(BLOCK // boxes.count, 1)
        for first in range(0, len(words), rows):
            part = words[first : first + rows]
            # few classes cover a person: most words are zero
            person, word = np.nonzero(part)
            bits = np.unpackbits(part[person, word].view(np.uint8).reshape(-1, 8), axis=1)
            at, bit = np.nonzero(bits)
            yield person[at] + (start + first), word[at] * WORD + bit


def _bits(boxes: Boxes, points: np.ndarray, known: Sequence[int]) -> np.ndarray:
    """(m, bytes) uint8, a bit for each class, 1 where it covers the person on all axes; whole words
    of 64 bits, those beyond the classes 0.
    """
    width = -(-boxes.count // WORD) * (WORD // 8)
    everybody = np.zeros(width, dtype=np.uint8)
    everybody[: -(-boxes.count // 8)] = np.packbits(np.ones(boxes.count, dtype=bool))
    bits = np.tile(everybody, (len(points), 1))
    for j in known:
        values, value_of = np.unique(points[:, j], return_inverse=True)
        spans = np.stack([boxes.lo[:, j], boxes.hi[:, j]])
        cells, cell_of = np.unique(spans, axis=1, return_inverse=True)
        # classes show few distinct cells: judge each once
        covered = (cells[0] <= values[:, None]) & (values[:, None] <= cells[1])
        packed = np.zeros((len(values), width), dtype=np.uint8)
        rows = max(BLOCK // boxes.count, 1)
        for start in range(0, len(values), rows):
            part = covered[start : start + rows][:, cell_of.reshape(-1)]
            packed[start : start + rows, : -(-boxes.count // 8)] = np.packbits(part, axis=1)
        bits &= packed[value_of.reshape(-1)]
    return bits
