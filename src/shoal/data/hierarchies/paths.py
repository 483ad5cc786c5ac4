"""Leaf-to-root paths, coded, and the tree that they spell.

A path lists the labels of one leaf and of everything above it: `13053, 1305*, 130**, *`. Paths may
differ in length. A label that repeats next to itself within a path is one node (padded tables).
Everything here is done on whole columns of codes, so that a hundred thousand leaves take a moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
import polars as pl


@dataclass(frozen=True)
class Paths:
    """n paths as codes into their distinct labels.

    labels: distinct labels in the order in which they first occur.
    codes: (n, longest) int32, column 0 is the leaf, the root is the last code of a row; -1 behind
    it.
    lengths: (n,) int64, labels in each path.
    repeated: how many paths were left out because an earlier one says the same.
    """

    labels: tuple[str, ...]
    codes: np.ndarray
    lengths: np.ndarray
    repeated: int = 0

    @classmethod
    def of(cls, rows: Iterable[Sequence[str]]) -> Paths:
        """Rows of labels, leaf first."""
        rows = list(rows)
        lengths = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
        cells = pl.Series(list(chain.from_iterable(rows)), dtype=pl.String)
        return cls.of_cells(cells, lengths)

    @classmethod
    def of_cells(cls, cells: pl.Series, lengths: np.ndarray) -> Paths:
        """All rows behind one another. cells: (sum of lengths,) text."""
        distinct = cells.unique(maintain_order=True)
        codes = np.full((len(lengths), int(lengths.max(initial=0))), -1, dtype=np.int32)
        filled = np.arange(codes.shape[1]) < lengths[:, None]
        codes[filled] = cells.cast(pl.Enum(distinct)).to_physical().to_numpy()
        return cls(tuple(distinct.to_list()), codes, lengths)

    def without_repeats(self) -> Paths:
        """Each path once, where it first stands."""
        if not len(self) or len(np.unique(self.leaf_codes)) == len(self):
            return self
        first = np.sort(np.unique(self.codes, axis=0, return_index=True)[1])
        return replace(
            self,
            codes=self.codes[first],
            lengths=self.lengths[first],
            repeated=len(self) - len(first),
        )

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def leaf_codes(self) -> np.ndarray:
        return self.codes[:, 0]

    @property
    def root_codes(self) -> np.ndarray:
        return self.codes[np.arange(len(self)), self.lengths - 1]

    @cached_property
    def trie(self) -> Trie:
        return Trie.of(self)


@dataclass(frozen=True)
class Trie:
    """The nodes that paths run through, before chains of only children become one node.

    Nodes are numbered parents first. Node 0 lies above the root, so that several roots are still a
    tree.

    label: (nodes,) int32 code of the label; parent: (nodes,) int32.
    level: (nodes,) int32, the longest way down to a leaf, counted in cells of the paths.
    first, size: (nodes,) int64, the span of rows below a node when rows are put in depth-first
        order; children stand in the order in which the paths name them first.
    """

    label: np.ndarray
    parent: np.ndarray
    level: np.ndarray
    first: np.ndarray
    size: np.ndarray

    @classmethod
    def of(cls, paths: Paths) -> Trie:
        return _Grower(paths).grow()


class _Grower:
    """Grows the trie from the root, all paths one node further at a time.

    cells, places: (n, deepest), from the root down: the labels of a path without its repeats, and
    the column nearest the leaf in which each stands; -1 behind the leaf.
    """

    def __init__(self, paths: Paths) -> None:
        n = len(paths)
        self.choices = len(paths.labels)
        self.cells, self.places = _without_repeats(paths)
        self.at = np.zeros(n, dtype=np.int64)  # the node that each path has reached
        self.count = 1
        self.label, self.parent, self.level = [np.array([-1])], [np.array([-1])], [np.array([0])]
        self.earliest, self.size = [np.array([0])], [np.array([n])]

    def grow(self) -> Trie:
        for step in range(self.cells.shape[1]):
            rows = np.flatnonzero(self.cells[:, step] >= 0)
            self._enter(rows, self.cells[rows, step], self.places[rows, step])
        self._add_leaves_that_are_inner_labels()
        return self._spans()

    def _enter(self, rows: np.ndarray, cell: np.ndarray, place: np.ndarray) -> None:
        """Moves rows to the child of their node with this label, made where it is new."""
        key = self.at[rows] * self.choices + cell
        pairs, earliest, child = np.unique(key, return_index=True, return_inverse=True)
        level = np.zeros(len(pairs), dtype=np.int64)
        np.maximum.at(level, child, place)
        self.label.append(pairs % self.choices)
        self.parent.append(pairs // self.choices)
        self.level.append(level)
        self.earliest.append(rows[earliest])
        self.size.append(np.bincount(child, minlength=len(pairs)))
        self.at[rows] = self.count + child
        self.count += len(pairs)

    def _add_leaves_that_are_inner_labels(self) -> None:
        """`Other, Other, *` beside `x, Other, *`: the leaf lies below the inner node `Other`."""
        inner = np.zeros(self.count, dtype=bool)
        inner[np.concatenate(self.parent)[1:]] = True
        rows = np.flatnonzero(inner[self.at])
        label = np.concatenate(self.label)[self.at[rows]]
        self._enter(rows, label, np.zeros(len(rows), dtype=np.int64))

    def _spans(self) -> Trie:
        """Where each node's rows start: after its earlier siblings', inside its parent's."""
        parent, size = np.concatenate(self.parent), np.concatenate(self.size)
        order = np.lexsort((np.concatenate(self.earliest), parent))
        before = np.cumsum(size[order]) - size[order]
        head = np.r_[True, np.diff(parent[order]) != 0]
        first = np.empty(self.count, dtype=np.int64)
        first[order] = before - np.maximum.accumulate(np.where(head, before, 0))
        start = 1
        for batch in self.label[1:]:
            made = slice(start, start + len(batch))
            first[made] += first[parent[made]]
            start += len(batch)
        label, level = np.concatenate(self.label), np.concatenate(self.level)
        return Trie(
            label.astype(np.int32), parent.astype(np.int32), level.astype(np.int32), first, size
        )


def _without_repeats(paths: Paths) -> tuple[np.ndarray, np.ndarray]:
    codes = paths.codes
    starts = codes >= 0
    starts[:, 1:] &= codes[:, 1:] != codes[:, :-1]
    steps = np.cumsum(starts[:, ::-1], axis=1)[:, ::-1] - 1
    row, place = np.nonzero(starts)
    cells, places = np.full((2, *codes.shape), -1, dtype=np.int32)
    cells[row, steps[row, place]] = codes[row, place]
    places[row, steps[row, place]] = place
    return cells, places
