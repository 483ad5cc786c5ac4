"""Large tables in blocks: cut first, then cluster every block by itself.

A block is half of a larger one, cut at the median of the coordinate that varies most. Where
t-closeness is asked, a cut must leave both halves within half of t of the whole table, so that
classes inside a block can come close to it; where no coordinate allows that, records are dealt to
the halves in turn, in the order of their sensitive values, so that both are distributed as the
whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from shoal.data.matrix import Matrix
from shoal.search.kernels import value_chains
from shoal.search.targets import Targets

Cluster = Callable[[np.ndarray, np.ndarray, Targets], np.ndarray]
"""`cluster(points, subject_ids, targets)`: the class of each record of a block, numbered from 0."""

BLOCK = {
    "help": "records clustered together, 8k at least: larger is slower and loses less; 0 is all",
    "low": 0,
}

CANDIDATES = {
    "help": "nearest records tried to bring a class within t; 0 is all, as printed",
    "low": 0,
}


def in_blocks(
    matrix: Matrix, points: np.ndarray, targets: Targets, block: int, k: int, cluster: Cluster
) -> np.ndarray:
    """The class of each record when every block is clustered by itself, (n,) int32."""
    subject_ids = np.zeros(0, dtype=np.int32) if matrix.subjects is None else matrix.subjects
    blocks = rows_of_blocks(points, targets, block, k)
    if len(blocks) == 1:
        return cluster(points, subject_ids, targets)
    labels = np.full(matrix.records, -1, dtype=np.int32)
    count = 0
    for rows in blocks:
        people = (
            np.unique(subject_ids[rows], return_inverse=True)[1].astype(np.int32)
            if len(subject_ids)
            else subject_ids
        )
        own = cluster(np.ascontiguousarray(points[:, rows]), people, targets.take(rows))
        labels[rows] = own + count
        count = int(labels[rows].max()) + 1
    return labels


def rows_of_blocks(points: np.ndarray, targets: Targets, block: int, k: int) -> list[np.ndarray]:
    """The rows of each block as the parameter `block` asks; all in one where that is all."""
    most = max(block, 8 * k)
    if block <= 0 or points.shape[1] <= most:
        return [np.arange(points.shape[1])]
    return blocks_of(points, targets, most, k)


def blocks_of(points: np.ndarray, targets: Targets, most: int, size: int) -> list[np.ndarray]:
    """The rows of each block, rising; none has more than `most`, at least 4 * size.

    All blocks but one hold a multiple of `size`, so that they make no fewer classes than the whole
    would.
    """
    waiting, blocks = [np.arange(points.shape[1])], []
    stricter = replace(targets, limit=targets.limit / 2)
    while waiting:
        rows = waiting.pop()
        if len(rows) <= most:
            blocks.append(rows)
            continue
        half = len(rows) // 2 // size * size
        chosen = _half(np.ascontiguousarray(points[:, rows]), stricter.take(rows), half)
        waiting += [rows[~chosen], rows[chosen]]
    return blocks


def _half(points: np.ndarray, targets: Targets, half: int) -> np.ndarray:
    """Which records go to a part of `half` records, (n,) bool."""
    records = points.shape[1]
    for j in np.argsort(-points.var(axis=1), kind="stable"):
        chosen = np.zeros(records, dtype=bool)
        chosen[np.argsort(points[j], kind="stable")[:half]] = True
        if not len(targets.limit):
            return chosen
        excess = value_chains.excesses(chosen.astype(np.int32), 2, *targets.arrays)
        if (excess <= 0).all():
            return chosen
    chosen = np.zeros(records, dtype=bool)
    chosen[np.lexsort((points[0], *targets.codes.T))[np.arange(half) * records // half]] = True
    return chosen
