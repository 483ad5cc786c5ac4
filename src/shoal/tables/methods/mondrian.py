"""Mondrian, strict: cuts the space of quasi-identifiers at medians, equal records stay together.

LeFevre, DeWitt, Ramakrishnan. Mondrian multidimensional k-anonymity. ICDE 2006. Sections 3 and 4.
Promise: every class holds k people, and no two classes overlap in the space of codes. With one
record to a person and `cut="nearest"`, no class is larger than 2d(k - 1) + c, c the most copies of
one record (theorem 2; the one-sided cut can stop earlier).
Paper: P, dim, fs, splitVal        Here: segment, attribute by falling cost, code counts, median
Reading: `cut="median"` is the named baseline: lhs are the codes up to the lower median (the
smallest code with at least half of the records at or below it), one-sided as printed. An attribute
whose commonest value is at the upper end then can't be cut at all, so the order of values matters a
great deal; `cut="nearest"` also tries the cut just below the median, the nearer to equal halves
first.
Reading: hierarchies are ordered by their leaves in depth-first order (`trees="order"`), or are cut
into all children of the covering node at once, each of k people (`trees="children"`), as
implementations with hierarchies do.
Reading: the median counts records, the promise counts people.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from shoal.data.option import parameter
from shoal.data.partition import Matrix, Partition
from shoal.data.room import Room, SharedRoom, blocks
from shoal.protocols import Partitioner, Promises
from shoal.search import large_tables, segments
from shoal.search.kernels import cuts


@dataclass(frozen=True)
class Mondrian(Partitioner):
    """Strict Mondrian. Permuting the records permutes the classes and changes nothing else."""

    name: ClassVar[str] = "mondrian"
    paper: ClassVar[str] = (
        "LeFevre, DeWitt, Ramakrishnan. Mondrian multidimensional k-anonymity. ICDE 2006."
    )

    column_bytes: ClassVar[int] = 16

    cut: str = parameter(
        "where an attribute is cut: at the lower median, the paper's baseline, or at the "
        "nearest cut to the median that is feasible",
        default="median",
        choices=("median", "nearest"),
    )
    trees: str = parameter(
        "how hierarchies are cut: as ordered leaves, or into the children of the covering node",
        default="order",
        choices=("order", "children"),
    )

    def decides_locally(self, over_trees: bool) -> bool:
        """Whether a class is cut by its own records alone, whatever was cut before."""
        return True

    def partition(self, matrix: Matrix, promises: Promises, rng: np.random.Generator) -> Partition:
        """Classes of at least `promises.k` people; equal records are always in one class."""
        segments.require_people(matrix, promises)
        return segments.cut_by_rule(matrix, promises, self._rule)

    @property
    def _rule(self) -> int:
        rules = {
            ("median", "order"): cuts.MEDIAN,
            ("nearest", "order"): cuts.NEAREST,
            ("median", "children"): cuts.CHILDREN,
            ("nearest", "children"): cuts.NEAREST_CHILDREN,
        }
        return rules[self.cut, self.trees]

    def spare_columns(self, matrix: Matrix) -> int:
        """None."""
        return 0

    def only_in_memory(self, records: int) -> str:
        return ""

    def cut_columns(
        self, columns: np.ndarray, matrix: Matrix, promises: Promises, room: Room
    ) -> np.ndarray:
        """Cuts for k alone, on columns that may lie in files."""
        node = _Node(matrix, self._rule, promises.k)
        if isinstance(room, SharedRoom):
            most = room.most_records(columns.shape[1], 2 * large_tables.BYTES * len(columns))
            return large_tables.cut_by_processes(columns, node.once, node.to_end, most, room)
        return node.to_end(columns, room)


@dataclass(frozen=True)
class _Node:
    """How columns of records are cut. matrix: without any record."""

    matrix: Matrix
    rule: int
    k: int

    def to_end(self, columns: np.ndarray, room: Room) -> np.ndarray:
        """Moves them so that classes are runs: where each starts, and the end."""
        rows = _rows_of(columns, room)
        starts, ends = segments.cut_to_end(self.matrix, rows, self.rule, self.k, self.k)
        _move(rows, columns)
        return np.append(starts, ends[-1:])

    def once(self, columns: np.ndarray, room: Room) -> list[tuple[int, int]]:
        """Moves them so that the parts of one cut are runs."""
        rows = _rows_of(columns, room)
        cutter = segments.rule_cutter(self.matrix, rows, self.rule, self.k)
        first, last = np.zeros(1, dtype=np.int64), np.array([len(rows)], dtype=np.int64)
        _, ends = cutter(first, last, np.zeros(1, dtype=np.int64), 0)
        _move(rows, columns)
        return list(pairwise([0, *ends.tolist()]))


def _rows_of(columns: np.ndarray, room: Room) -> np.ndarray:
    rows = room.array(columns.T.shape, np.int32)
    for block in blocks(len(rows)):
        rows[block] = columns[:, block].T
    return rows


def _move(rows: np.ndarray, columns: np.ndarray) -> None:
    for block in blocks(len(rows)):
        columns[:, block] = rows[block].T
