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
    nodes: for each tree, (levels, codes) int32 the node of each code; None for other attributes.
    """

    codes: np.ndarray
    span: np.ndarray
    place: tuple[np.ndarray, ...]
    groups: tuple[np.ndarray, ...]
    values: tuple[np.ndarray, ...]
    present: tuple[np.ndarray, ...]
    nodes: tuple[np.ndarray | None, ...]

    @classmethod
    def of(cls, matrix: Matrix) -> Levels:
        codes, values = _dense(matrix)
        records = codes[: matrix.records]
        spans: list[np.ndarray] = []
        place, groups, present = [], [], []
        nodes: list[np.ndarray | None] = []
        room = 0
        for j in range(matrix.attributes):
            levels = int(matrix.heights[j]) + 1
            if matrix.is_tree(j):
                numbered, number = _numbered(matrix, j)
                spans += [row[values[j]] for row in number]
                nodes.append(np.take(numbered, values[j], axis=1))
                groups.append(number[:, -1] + 1)
            else:
                starts = [matrix.starts_at(j, level) for level in range(levels)]
                spans += [np.searchsorted(s, values[j], side="right") - 1 for s in starts]
                nodes.append(None)
                groups.append(np.array([len(s) for s in starts]))
            place.append(room + len(values[j]) * np.arange(levels))
            counted = np.bincount(records[:, j], weights=matrix.count, minlength=len(values[j]))
            present.append(counted.astype(np.int64, copy=False))
            room += len(values[j]) * levels
        flat = np.concatenate(spans).astype(np.int32) if spans else np.zeros(0, np.int32)
        return cls(
            codes, flat, tuple(place), tuple(groups), tuple(values), tuple(present), tuple(nodes)
        )

    def at(self, j: int, level: int) -> np.ndarray:
        """The group of each code of attribute j at a level."""
        start = self.place[j][level]
        return self.span[start : start + len(self.present[j])]


def _numbered(matrix: Matrix, j: int) -> tuple[np.ndarray, np.ndarray]:
    """The node of each leaf of a tree at each level, and its number there; (levels, leaves)."""
    nodes = matrix.nodes_by_level(j)
    begins = matrix.first[nodes] == np.arange(nodes.shape[1])
    begins[-1] = np.arange(nodes.shape[1]) == 0  # the whole domain, whatever the tree says
    return nodes, np.cumsum(begins, axis=1, dtype=np.int32) - 1


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
