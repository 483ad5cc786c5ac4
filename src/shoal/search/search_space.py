"""A matrix as the local searches see it: ranks, losses as whole numbers, and who is near.

Losses are counted in units of 1/65,536 of the mean width of the attributes, so that every machine
makes the same moves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.data.matrix import Matrix
from shoal.data.partition import Partition
from shoal.search.kernels import near_records
from shoal.search.segments import loss_of, lowest_nodes

UNIT = 1 << 16
LANES = 8  # linear columns come in multiples of so many
LARGEST_SUM = 2.0**30  # of all widths: a record's loss fits 32 bits
MOST_LEAVES = 1024  # a tree of up to so many leaves gets a table of all pairs
DRAWS = 512  # weights of the columns, drawn before they are used


@dataclass(frozen=True)
class SearchSpace:
    """The records of a matrix, and what boxes of them lose.

    rows: (n, columns) int32. layout: (2 + 2 * trees,) int64 and table: int32, as `shape` without
    its first two entries and `table` in `kernels.slots`.
    """

    rows: np.ndarray
    layout: np.ndarray
    table: np.ndarray

    @classmethod
    def of(cls, matrix: Matrix) -> SearchSpace:
        """All records of a matrix with one record at least."""
        lines = np.flatnonzero(matrix.base < 0).tolist()
        trees = np.flatnonzero(matrix.base >= 0).tolist()
        linear = -(-len(lines) // LANES) * LANES
        rows = np.zeros((matrix.records, linear + len(trees)), dtype=np.int32)
        unit = _unit(matrix)
        for column, j in enumerate(lines):
            codes = matrix.codes[:, j]
            position = (codes - np.int64(codes.min())) * (matrix.scale[j] * unit)
            rows[:, column] = np.rint(position)
        layout, tables, used = [linear, len(trees)], [np.zeros(0, dtype=np.int32)], 0
        for column, j in enumerate(trees, start=linear):
            values, rows[:, column] = np.unique(matrix.codes[:, j], return_inverse=True)
            apart = matrix.width[lowest_nodes(matrix, j, values[:-1], values[1:])]
            losses = _losses_of_tree(np.rint(apart * unit).astype(np.int32))
            layout += [used, len(values) if len(values) <= MOST_LEAVES else -len(values)]
            tables.append(losses)
            used += len(losses)
        return cls(rows, np.array(layout, dtype=np.int64), np.concatenate(tables))

    @property
    def has_trees(self) -> bool:
        return len(self.layout) > 2

    def shape(self, k: int, capacity: int) -> np.ndarray:
        """As in `kernels.slots`, for classes of k to `capacity` records."""
        return np.concatenate([np.array([k, capacity]), self.layout])

    def order(self, rows: np.ndarray, run: int, rng: np.random.Generator) -> np.ndarray:
        """The numbers of some rows so that near ones come together, in runs of `run`; (m,)
        int32.
        """
        order = np.arange(len(rows), dtype=np.int32)
        weights = rng.integers(1 << 10, 1 << 12, (DRAWS, rows.shape[1]))
        near_records.order_by_halves(rows, self.shape(0, 0), self.table, weights, run, order)
        return order

    def nearest(
        self, rows: np.ndarray, most: int, run: int, orders: int, rng: np.random.Generator
    ) -> np.ndarray:
        """For each row its nearest others, (m, most) int32; where they are fewer, itself.

        Looked for in so many orders, among the `run` rows around it in each.
        """
        near = np.full((len(rows), most), -1, dtype=np.int32)
        distance = np.full((len(rows), most), np.iinfo(np.int32).max, dtype=np.int32)
        for _ in range(orders):
            order = self.order(rows, run, rng)
            near_records.nearest_records(
                rows, order, run, self.shape(0, 0), self.table, near, distance
            )
        return np.where(near < 0, np.arange(len(rows), dtype=np.int32)[:, None], near)

    def side_by_side(self, labels: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
        """The classes' numbers so that near classes have near numbers, (count,) int32."""
        members = np.argsort(labels, kind="stable")
        size = np.bincount(labels, minlength=count)
        starts = np.cumsum(size) - size
        least = np.minimum.reduceat(self.rows[members], starts)
        greatest = np.maximum.reduceat(self.rows[members], starts)
        number = np.empty(count, dtype=np.int32)
        number[self.order(least + (greatest - least) // 2, 1, rng)] = np.arange(
            count, dtype=np.int32
        )
        return number


def mean_loss(matrix: Matrix, partition: Partition) -> float:
    """The mean loss of a record, in mean widths of an attribute."""
    return loss_of(matrix, partition) / max(matrix.records, 1) * _unit(matrix) / UNIT


def _unit(matrix: Matrix) -> float:
    """How many units an attribute's loss of 1 is."""
    widest = matrix.scale * np.ptp(matrix.codes.astype(np.int64), axis=0)
    for j in np.flatnonzero(matrix.base >= 0).tolist():
        ends = np.array([0]), np.array([matrix.leaves(j) - 1])
        widest[j] = matrix.width[lowest_nodes(matrix, j, *ends)[0]]
    total = float(widest.sum())
    return min(UNIT * len(widest), LARGEST_SUM) / total if total > 0 else 1.0


def _losses_of_tree(apart: np.ndarray) -> np.ndarray:
    """A tree's part of `table`. apart: (leaves - 1,) int32, loss of each leaf with the next."""
    leaves = len(apart) + 1
    if leaves <= MOST_LEAVES:
        pairs = np.zeros((leaves, leaves), dtype=np.int32)
        for leaf in range(leaves - 1):
            pairs[leaf, leaf + 1 :] = np.maximum.accumulate(apart[leaf:])
        return (pairs + pairs.T).ravel()
    logarithm = np.zeros(leaves, dtype=np.int32)
    level, step = np.append(apart, np.int32(0)), 1
    levels = [logarithm, level]
    while 2 * step < leaves:
        logarithm[2 * step :] += 1
        level = level.copy()
        level[:-step] = np.maximum(level[:-step], level[step:])
        levels.append(level)
        step *= 2
    return np.concatenate(levels)
