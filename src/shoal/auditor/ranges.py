"""Records of many classes in ranges: every range holds all records of its classes, in their order.

A range is small enough to be measured in memory. Which classes lie in which range follows from what
they show, and nothing that is measured depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.data.room import Room, blocks

RECORD_BYTES = 128
"""What measuring a record of a range takes in memory, at most."""

SHARE = 8
"""A range may take one part in so many of the limit."""

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio


class Ranges:
    """The records of a table by what some of its columns show."""

    def __init__(self, shown: Sequence[np.ndarray], records: int, room: Room) -> None:
        """shown: (n,) codes of each column that makes the classes."""
        self._room = room
        self.count = _how_many(records, room)
        self._range_of = room.array(records, np.uint16)
        sizes = np.zeros(self.count, dtype=np.int64)
        for rows in blocks(records):
            hashed = np.zeros(rows.stop - rows.start, dtype=np.uint64)
            for codes in shown:
                hashed ^= hashed >> np.uint64(29)
                hashed += codes[rows].astype(np.uint64)
                hashed *= _ODD
            number = (hashed >> np.uint64(32)) % np.uint64(self.count)
            self._range_of[rows] = number
            sizes += np.bincount(self._range_of[rows], minlength=self.count)
        self._starts = np.concatenate(([0], np.cumsum(sizes)))

    def rows(self, number: int) -> slice:
        """Where the records of a range stand in what `moved` gives."""
        return slice(int(self._starts[number]), int(self._starts[number + 1]))

    def moved(self, columns: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The same columns, range after range; within a range in the order of the records."""
        if self.count == 1:
            return list(columns)
        found = [self._room.array(len(column), column.dtype) for column in columns]
        at = self._starts[:-1].copy()
        for rows in blocks(len(self._range_of)):
            order = np.argsort(self._range_of[rows], kind="stable")
            sizes = np.bincount(self._range_of[rows], minlength=self.count)
            ends = np.cumsum(sizes)
            for column, target in zip(columns, found, strict=True):
                some = column[rows][order]
                for number in np.flatnonzero(sizes).tolist():
                    size, end = int(sizes[number]), int(ends[number])
                    begun = int(at[number])
                    target[begun : begun + size] = some[end - size : end]
            at += sizes
        return found


def _how_many(records: int, room: Room) -> int:
    if room.limit is None:
        return 1
    each = max(room.limit // SHARE // RECORD_BYTES, 1)
    return min(max(-(-records // each), 1), 1 << 15)
