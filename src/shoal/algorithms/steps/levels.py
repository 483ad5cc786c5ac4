"""The levels of every attribute's hierarchy, as tables of codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shoal.data.matrix import Matrix

Node = tuple[int, ...]


class NodeGroups(NamedTuple):
    """The classes of a node. first: (c,) int32 a record of each; size: (c,) int32 its records."""

    first: np.ndarray
    size: np.ndarray


@dataclass(frozen=True)
class Levels:
    """Every level of every attribute, as tables over codes.

    codes: (n, d) int32 of the records and then of all populations, dense enough to index tables.
    span: groups of each code; that of code c of attribute j at a level is span[place[j][level] +
    c].
    groups: how many there are, by attribute and level.
    values: for each attribute, the matrix's code behind each code; present: how many records have
    it.
    """

    codes: np.ndarray
    span: np.ndarray
    place: tuple[np.ndarray, ...]
    groups: tuple[np.ndarray, ...]
    values: tuple[np.ndarray, ...]
    present: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, matrix: Matrix) -> Levels:
        codes, values = _dense(matrix)
        records = codes[: matrix.records]
        spans, place, groups, present = [], [], [], []
        room = 0
        for j in range(matrix.attributes):
            starts = [matrix.starts_at(j, level) for level in range(int(matrix.heights[j]) + 1)]
            spans += [np.searchsorted(s, values[j], side="right") - 1 for s in starts]
            place.append(room + len(values[j]) * np.arange(len(starts)))
            groups.append(np.array([len(s) for s in starts]))
            counted = np.bincount(records[:, j], weights=matrix.count, minlength=len(values[j]))
            present.append(counted.astype(np.int64, copy=False))
            room += len(values[j]) * len(starts)
        flat = np.concatenate(spans).astype(np.int32) if spans else np.zeros(0, np.int32)
        return cls(codes, flat, tuple(place), tuple(groups), tuple(values), tuple(present))

    def at(self, j: int, level: int) -> np.ndarray:
        """The group of each code of attribute j at a level."""
        start = self.place[j][level]
        return self.span[start : start + len(self.present[j])]


def _dense(matrix: Matrix) -> tuple[np.ndarray, list[np.ndarray]]:
    """Codes that index short tables, and for each attribute the matrix's code behind each of
    them.
    """
    given = matrix.codes
    if matrix.populations:
        given = np.concatenate([given, *matrix.populations.values()])
    codes, values = given, []
    for j in range(matrix.attributes):
        whole = int(given[:, j].max(initial=0)) + 1
        if whole <= 2 * matrix.total + (1 << 17):
            values.append(np.arange(whole))
            continue
        distinct, ranks = np.unique(given[:, j], return_inverse=True)
        codes = codes.copy() if codes is given else codes
        codes[:, j] = ranks
        values.append(distinct)
    return codes, values
