"""Leaf-to-root paths, coded, the tree that they spell, and what is wrong with it, all at once and
before anything is built from it.

A path lists the labels of one leaf and of everything above it: `13053, 1305*, 130**, *`. Paths may
differ in length. A label that repeats next to itself within a path is one node (padded tables).
Everything here is done on whole columns of codes, so that a hundred thousand leaves take a moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import ClassVar, Protocol

import numpy as np
import polars as pl

from shoal.data.findings import AttributeFinding, Fault
from shoal.data.language import inflected
from shoal.errors import InputError


@dataclass(frozen=True)
class Paths:
    """n paths as codes into their distinct labels.

    labels: distinct labels in the order in which they first occur.
    codes: (n, longest) int32, column 0 is the leaf, the root is the last code of a row; -1 behind
    it.
    lengths: (n,) int64, labels in each path. Of paths that are too large for a tree, nothing else.
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
        if _too_large(lengths):
            return cls((), np.full((len(lengths), 1), -1, dtype=np.int32), lengths)
        distinct = cells.unique(maintain_order=True)
        codes = np.full((len(lengths), int(lengths.max(initial=0))), -1, dtype=np.int32)
        filled = np.arange(codes.shape[1]) < lengths[:, None]
        codes[filled] = cells.cast(pl.Enum(distinct)).to_physical().to_numpy()
        return cls(tuple(distinct.to_list()), codes, lengths)

    def without_repeats(self) -> Paths:
        """Each path once, where it first stands."""
        if not self.labels or len(np.unique(self.leaf_codes)) == len(self):
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
        return _Grower(self).grow()


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


MOST_PLACES = 5  # named in a message
MOST_STEPS = 1000
"""From a value to the root: what is built takes the square of it."""
MOST_CELLS = 20_000_000
"""Rows times the most columns of one: every row takes the room of the longest."""


def _too_large(lengths: np.ndarray) -> str:
    """What is too large about paths of these lengths, as a finding says it; empty if nothing is."""
    steps = int(lengths.max(initial=0))
    if steps > MOST_STEPS:
        return f"has {steps:,} columns, more than {MOST_STEPS:,}"
    if steps * len(lengths) > MOST_CELLS:
        cells = f"{len(lengths):,} rows of up to {steps:,} columns"
        return f"has {cells}, more than {MOST_CELLS:,} cells together"
    return ""


def diagnose(rows: Paths | Iterable[Sequence[str]], attribute: str = "") -> list[AttributeFinding]:
    """Everything wrong with the rows of a hierarchy, leaf first; empty when it can be built.

    Uneven rows are a fault of tables only; trees written as paths may well have leaves at different
    depths.
    """
    paths = rows if isinstance(rows, Paths) else Paths.of(rows)
    return [
        AttributeFinding(
            kind,
            attribute,
            count,
            f"{about(attribute)}the hierarchy {text}",
            tuple(paths.labels[code] for code in codes),
        )
        for kind, count, text, codes in _faults(paths)
    ]


_Found = tuple[Fault, int, str, Iterable[int]]
"""A fault, how many labels or rows it concerns, what is wrong, and the codes of these labels."""


def _faults(paths: Paths) -> Iterator[_Found]:
    if not len(paths):
        text = "has no rows; give one row for each value, the value first"
        yield Fault.NO_ROWS, 0, text, ()
    elif too_large := _too_large(paths.lengths):
        text = f"{too_large}; leave out steps or correct its separator"
        yield Fault.MANY_STEPS, int(paths.lengths.max()), text, ()
    else:
        yield from _faults_of_labels(paths)
        yield from _faults_of_lengths(paths)
        if not (paths.lengths == 0).any():
            yield from _faults_of_roots(paths)
            yield from _faults_of_leaves(paths)
            yield from _faults_of_nodes(paths)


class Rule(Protocol):
    """What a maker says about values it has no place for."""

    kind: ClassVar[str]
    unmatched_message: ClassVar[str]
    """What is wrong with them and a way out, as in `HierarchyMaker`."""

    def values_without_leaf(self, values: np.ndarray) -> np.ndarray:
        """Which values it has no place for; (n,) bool."""


def values_without_leaf(
    rule: Rule, attribute: str, values: np.ndarray, counts: np.ndarray | None = None
) -> list[AttributeFinding]:
    """The values that a maker has no place for; at most one finding.

    values: distinct texts of the column, missing ones left out. counts: records that hold each, if
    known.
    """
    unfit = rule.values_without_leaf(values)
    if not unfit.any():
        return []
    count = distinct = int(unfit.sum())
    if counts is None:
        numbers = [str(index + 1) for index in np.flatnonzero(unfit)]
        listed = ", ".join(numbers[:MOST_PLACES]) + (", ..." if len(numbers) > MOST_PLACES else "")
        who = f"{{}} distinct [value|values] of {len(values)} (number {listed})"
    else:
        count = int(np.asarray(counts)[unfit].sum())
        records = inflected("{} [record has|records have]", count)
        who = f"{records} [a value|{{}} distinct values] that"
    lost = tuple(np.asarray(values, dtype=object)[unfit])
    return [
        AttributeFinding(
            Fault.MISFIT,
            attribute,
            count,
            about(attribute) + inflected(f"{who} {rule.unmatched_message}", distinct),
            lost,
        )
    ]


def refuse_values_without_leaf(rule: Rule, values: np.ndarray) -> None:
    """Raises InputError where a maker has no place for some of the values."""
    InputError.raise_for(values_without_leaf(rule, "", values))


def about(attribute: str) -> str:
    """How a message about an attribute begins."""
    return f"attribute '{attribute}': " if attribute else ""


def _empty_code(paths: Paths) -> int:
    return paths.labels.index("") if "" in paths.labels else -2


def _faults_of_labels(paths: Paths) -> Iterator[_Found]:
    empty = paths.codes == _empty_code(paths)
    count = int(empty.sum()) + int((paths.lengths == 0).sum())
    if count:
        rows = int((empty.any(axis=1) | (paths.lengths == 0)).sum())
        text = (
            f"has {inflected('{} [empty label|empty labels]', count)} in"
            f" {inflected('{} [row|rows]', rows)}; name every level, and end no row in a separator"
        )
        yield Fault.EMPTY_LABELS, count, text, ()


def _faults_of_lengths(paths: Paths) -> Iterator[_Found]:
    lengths, rows = np.unique(paths.lengths, return_counts=True)
    if len(lengths) > 1:
        shares = ", ".join(
            f"{inflected('{} [row has|rows have]', int(many))} {length}"
            for length, many in zip(lengths, rows, strict=True)
        )
        text = (
            f"has rows of unequal length in columns ({shares}); fill the shorter ones by repeating"
            " a label"
        )
        yield Fault.UNEVEN_ROWS, int(rows.sum() - rows.max()), text, ()


def _faults_of_roots(paths: Paths) -> Iterator[_Found]:
    roots = np.unique(paths.root_codes)
    if len(roots) > 1:
        is_header = len(roots) == 2 and int((paths.root_codes == paths.root_codes[0]).sum()) == 1
        hint = "; if its first line names the columns, take that out" if is_header else ""
        text = f"has {len(roots)} roots; end every row in the same label, such as '*'{hint}"
        yield Fault.SEVERAL_ROOTS, len(roots), text, roots


def _faults_of_leaves(paths: Paths) -> Iterator[_Found]:
    listed = np.bincount(paths.leaf_codes, minlength=len(paths.labels))
    often = np.setdiff1d(np.flatnonzero(listed > 1), [_empty_code(paths)])
    if len(often):
        text = (
            f"lists {inflected('{} [value|values]', len(often))} more than once"
            f" ({int(listed[often].sum())} rows); list every value once"
        )
        yield Fault.DUPLICATE_LEAVES, len(often), text, often


def _faults_of_nodes(paths: Paths) -> Iterator[_Found]:
    """Labels of several nodes that do not lie on one line from a leaf to the root."""
    unrelated = np.setdiff1d(_labels_of_unrelated_nodes(paths), [_empty_code(paths)])
    if not len(unrelated):
        return
    torn = np.intersect1d(unrelated, _labels_with_two_parents(paths))
    if len(torn):
        text = (
            f"puts {inflected('{} [label|labels]', len(torn))} under two different labels of the"
            " next level; give every label one parent"
        )
        yield Fault.TWO_PARENTS, len(torn), text, torn
    twice = np.setdiff1d(unrelated, np.concatenate([torn, _consequences(paths, unrelated)]))
    if len(twice):
        text = (
            f"uses {inflected('{} [label|labels]', len(twice))} for two groups of which neither"
            " contains the other; give them different labels"
        )
        yield Fault.TWO_NODES, len(twice), text, twice


def _labels_of_unrelated_nodes(paths: Paths) -> np.ndarray:
    """Labels of nodes that neither contain one another nor are contained.

    Spans of one label's nodes, widest first at each start: each must lie inside the one before it.
    """
    trie = paths.trie
    order = np.lexsort((-trie.size, trie.first, trie.label))
    same = trie.label[order][1:] == trie.label[order][:-1]
    end = (trie.first + trie.size)[order]
    return np.unique(trie.label[order][1:][same & (end[1:] > end[:-1])])


def _labels_with_two_parents(paths: Paths) -> np.ndarray:
    """Labels that have different next labels above them within one column."""
    above = np.full(len(paths), -1, dtype=np.int32)
    torn = []
    for column in range(paths.codes.shape[1] - 2, -1, -1):
        cell, upper = paths.codes[:, column], paths.codes[:, column + 1]
        above = np.where(upper == cell, above, upper)
        used = (cell >= 0) & (above >= 0)
        pairs = np.unique(cell[used].astype(np.int64) * len(paths.labels) + above[used])
        labels, parents = np.unique(pairs // len(paths.labels), return_counts=True)
        torn.append(labels[parents > 1])
    return np.unique(np.concatenate(torn)) if torn else np.zeros(0, dtype=np.int64)


def _consequences(paths: Paths, unrelated: np.ndarray) -> np.ndarray:
    """Labels in two places only because the one label above them is, or because roots differ."""
    trie = paths.trie
    roots = np.unique(paths.root_codes)
    to_blame = np.union1d(unrelated, roots) if len(roots) > 1 else unrelated
    above = trie.label[trie.parent[1:]]
    least = np.full(len(paths.labels), len(paths.labels), dtype=np.int64)
    most = np.full(len(paths.labels), -1, dtype=np.int64)
    np.minimum.at(least, trie.label[1:], above)
    np.maximum.at(most, trie.label[1:], above)
    under_one = (least == most)[unrelated] & np.isin(least[unrelated], to_blame)
    is_torn_root = (len(roots) > 1) & np.isin(unrelated, roots)
    return unrelated[under_one | is_torn_root]
