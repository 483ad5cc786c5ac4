"""Bottom-up: groups grow from single records, each merging with its cheapest neighbour.

Xu, Wang, Pei, Wang, Shi, Fu. Utility-based anonymization using local recoding. KDD 2006. Section
4.1. A reconstruction from the paper's outline and its re-implementations, not checked against the
text.
Promise: every class holds k people; with one record to a person, none holds more than 2k - 1
records.
Paper: G, G', NCP(G u G')          Here: group, neighbour, records times cost of the union's box
Reading: `neighbour="union"` takes the least NCP(G u G') as the outline has it; `added` takes the
least NCP(G u G') - NCP(G) - NCP(G'), which doesn't make neighbours dear by what they lost already,
and is the default because it loses much less; `box` looks at the union's box alone, without its
records.
Reading: in a round every group below k people chooses once, the smallest first and the lower number
first among equals, unless a merge of this round changed it; groups are numbered by their first
record.
Reading: how a group of 2k and more is cut is not said; we cut it into floor(|G| / k) parts with the
sizes of rounded partition, at the widest attribute, ties settled by the other attributes.
Reading: every choice looks at all groups, so the work is quadratic. Above `block` records the table
is first halved at medians until no piece is larger, and groups stay within their piece; a piece
that has too few people for one class joins its nearest class in the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.data.classes import Classes
from shoal.data.option import parameter
from shoal.data.partition import Matrix, Partition
from shoal.protocols import Partitioner, Promises
from shoal.search.kernels import cuts, nearest_class
from shoal.search.segments import (
    costs_of,
    cut_to_end,
    merge_failing,
    require_people,
    rows_of,
    rule_cutter,
    split_by_level,
)
from shoal_papers.baselines.kernels import agglomerate

RULES = {"added": agglomerate.ADDED, "union": agglomerate.UNION, "box": agglomerate.BOX}


@dataclass(frozen=True)
class BottomUp(Partitioner):
    """Bottom-up greedy search of Xu and others."""

    name: ClassVar[str] = "bottom-up"
    paper: ClassVar[str] = (
        "Xu, Wang, Pei, Wang, Shi, Fu. Utility-based anonymization using local recoding. KDD 2006."
    )

    neighbour: str = parameter(
        "what a group wants least of in a union: loss added, loss in all, or width of the box",
        default="added",
        choices=tuple(RULES),
    )
    block: int = parameter(
        "records searched together, 4k at least: larger is slower and loses less; 0 is all",
        default=32768,
        low=0,
    )

    def partition(self, matrix: Matrix, promises: Promises, rng: np.random.Generator) -> Partition:
        """Classes of at least `promises.k` people."""
        require_people(matrix, promises)
        k = promises.k
        block_of = self._blocks(matrix, k)
        labels = _numbered_by_block(np.arange(matrix.records), block_of)
        while True:
            block = np.zeros(labels.max() + 1, dtype=np.int64)
            block[labels] = block_of
            small = _people(matrix, labels, len(block)) < k
            small &= np.bincount(block)[block] > 1
            if not small.any():
                break
            labels = _merge_small(matrix, labels, block, small, RULES[self.neighbour])
            labels = _numbered_by_block(_cut_large(matrix, labels, promises), block_of)
        return merge_failing(
            matrix, Partition.of(labels), lambda own, count: _people(matrix, own, count) >= k
        )

    def _blocks(self, matrix: Matrix, k: int) -> np.ndarray:
        """The block of every record, (n,) int32."""
        block_of = np.zeros(matrix.records, dtype=np.int32)
        most = max(self.block, 4 * k)
        if self.block > 0 and most < matrix.records:
            rows = rows_of(matrix)
            starts, ends = cut_to_end(matrix, rows, cuts.HALVES, (most + 1) // 2, 1)
            cuts.number_segments(rows, matrix.attributes, starts, ends, block_of)
        return block_of


def _people(matrix: Matrix, labels: np.ndarray, count: int) -> np.ndarray:
    return Classes(labels, count, matrix.subjects).people()


def _merge_small(
    matrix: Matrix, labels: np.ndarray, block: np.ndarray, small: np.ndarray, rule: int
) -> np.ndarray:
    """Every small group merges within its block, the smallest first; the new group of each
    record.
    """
    lo, hi, sizes = nearest_class.boxes(matrix.codes, labels, len(block))
    people = _people(matrix, labels, len(block))
    into = np.arange(len(block))
    for first, end in _runs(block):
        turns = np.flatnonzero(small[first:end])
        turns = turns[np.argsort(people[first:end][turns], kind="stable")]
        if len(turns):
            into[first:end] = first + agglomerate.merge_round(
                lo[first:end], hi[first:end], sizes[first:end], turns, rule, costs_of(matrix)
            )
    return into[labels]


def _cut_large(matrix: Matrix, labels: np.ndarray, promises: Promises) -> np.ndarray:
    """Groups of 2k records and more in parts of nearly k; the new group of each record."""
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    ends = np.cumsum(sizes[sizes > 0])
    rows = rows_of(matrix)[order]
    cutter = rule_cutter(matrix, rows, cuts.ROUNDED, promises.k)
    return split_by_level(
        matrix, rows, promises, cutter, np.concatenate([[0], ends[:-1]]), ends
    ).labels


def _numbered_by_block(labels: np.ndarray, block_of: np.ndarray) -> np.ndarray:
    """The same groups numbered block by block, in order of their first record; (n,) int32."""
    _, first, group = np.unique(labels, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int32)
    number[np.lexsort((first, block_of[first]))] = np.arange(len(first), dtype=np.int32)
    return number[group]


def _runs(block: np.ndarray) -> Iterator[tuple[int, int]]:
    """Where each block begins and ends among groups that are numbered block by block."""
    edges = np.flatnonzero(np.diff(block, prepend=-1, append=-1))
    return zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
