"""What a method sees of a table, the quasi-identifiers as one matrix of codes, and what it says:
which class every record belongs to, or how every value is generalized, which is global recoding.

Every attribute, numeric or categorical, becomes a column of ordered integer codes, so that a class
is a pair of bounds (lo, hi) on every attribute:

- numbers and ordinals are *linear*: the loss of a span is `(hi - lo) * scale`;
- hierarchies have their leaves in depth-first order, so that every node is a span of leaves: the
  loss of a span is the width of the lowest node that covers it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shoal.data import cores
from shoal.data.hierarchies.hierarchy import Hierarchy, climbed
from shoal.data.room import IN_MEMORY, Room, blocks

_BLOCK = 1 << 16
"""Records whose codes stay in the cache while rows become columns."""


@dataclass(frozen=True)
class Matrix:
    """Codes of n records on d quasi-identifiers, and what a span of codes costs.

    codes: (n, d) int32, C-contiguous. Linear attributes: code differences are proportional to
        differences of value. Tree attributes: the leaf's place in depth-first order.
    scale: (d,) float64. Linear: loss per unit of code, weight included; 0 for trees.
    base: (d,) int32. Trees: where the attribute's nodes start in the three arrays below, so that
        leaf `c` is node `base + c`; -1 for linear attributes.
    parent, last: (nodes,) int32. Parent node (absolute number, -1 at a root); last leaf code
    covered.
    width: (nodes,) float64. Loss of the node, `weight * (leaves - 1) / (leaves(root) - 1)`.
    subjects: (n,) int32 dense person numbers 0..people-1, or None when every record is its own
    person.

    first, level: (nodes,) int32. First leaf code covered; how high the node stands in the
    hierarchy's table.
    heights: (d,) int32, generalization levels above the values; 1 (nothing but the whole) for
    linear attributes.
    reach: (d,) float64. Linear: width of the domain in units of code; 0 for trees.
    unit: (d,) float64. Linear: difference of value per unit of code; 1 for trees. Empty where the
        values behind the codes are not known.
    missing: (d,) int32, code of a missing value, -1 where none is missing. It is a tree's last
        leaf, right under the root, and lies beyond all values of a linear attribute.
    populations: by name, (m, d) int32 codes of the people of a population table, for promises about
    it.
    label: (n,) int32, the class of each record for methods that keep it predictable, or None.
    count: (n,) int32, how many records each row of codes stands for, or None where it is one.
        Methods that recode globally may be given one row for all records that agree; it has no
        subjects then.

    The loss of span (lo, hi) on tree attribute j: start at node base[j] + lo and climb `parent`
    until `last[node] >= hi`; the loss is `width[node]`.
    """

    codes: np.ndarray
    scale: np.ndarray
    base: np.ndarray
    parent: np.ndarray
    last: np.ndarray
    width: np.ndarray
    subjects: np.ndarray | None = None
    names: tuple[str, ...] = ()
    first: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    level: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    heights: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    reach: np.ndarray = field(default_factory=lambda: np.zeros(0))
    unit: np.ndarray = field(default_factory=lambda: np.zeros(0))
    missing: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    label: np.ndarray | None = None
    populations: Mapping[str, np.ndarray] = field(default_factory=dict)
    count: np.ndarray | None = None

    @property
    def records(self) -> int:
        return int(self.codes.shape[0])

    @property
    def total(self) -> int:
        """Records that the rows stand for, as many as there are rows unless `count` says more."""
        return self.records if self.count is None else int(self.count.sum(dtype=np.int64))

    @property
    def attributes(self) -> int:
        return len(self.scale)

    def columns(self, spare: int) -> np.ndarray:
        """(d + spare + 1, n) int32: the codes attribute by attribute, rows for the method's own use
        and, last, the record's number.
        """
        d = self.attributes
        columns = np.zeros((d + spare + 1, self.records), dtype=np.int32)
        columns[-1] = np.arange(self.records, dtype=np.int32)

        def turn(start: int) -> None:
            columns[:d, start : start + _BLOCK] = self.codes[start : start + _BLOCK].T

        cores.side_by_side(turn, range(0, self.records, _BLOCK), self.records)
        return columns

    @property
    def people(self) -> int:
        """Distinct subjects; the number of records where every record is its own person."""
        if self.subjects is None:
            return self.total
        return int(self.subjects.max()) + 1 if self.records else 0

    def take(self, rows: np.ndarray) -> "Matrix":
        """The matrix of some of the records, people numbered densely."""
        subjects = self.subjects
        if subjects is not None:
            subjects = np.unique(subjects[rows], return_inverse=True)[1].astype(np.int32)
        label = None if self.label is None else self.label[rows]
        codes = np.ascontiguousarray(self.codes[rows])
        count = None if self.count is None else self.count[rows]
        return replace(self, codes=codes, subjects=subjects, label=label, count=count)

    @classmethod
    def from_columns(
        cls,
        codes: np.ndarray,
        ranges: Sequence[float | Hierarchy],
        subjects: np.ndarray | None = None,
        weights: list[float] | None = None,
        names: tuple[str, ...] = (),
        missing: list[int] | None = None,
        label: np.ndarray | None = None,
    ) -> "Matrix":
        """A matrix from codes and, by attribute, its domain width in code units or its hierarchy.

        codes: (n, d) integers. ranges: d entries; a number is the width of a linear domain (0 means
        that the attribute never costs anything), a Hierarchy makes it a tree attribute. missing:
        codes of missing values, -1 where none is missing.
        """
        d = len(ranges)
        weight = weights or [1.0] * d
        scale = np.zeros(d)
        base = np.full(d, -1, dtype=np.int32)
        heights, reach = np.ones(d, dtype=np.int32), np.zeros(d)
        parents, firsts, lasts, widths, levels = [], [], [], [], []
        nodes = 0
        for j, span in enumerate(ranges):
            if isinstance(span, Hierarchy):
                base[j] = nodes
                parents.append(np.where(span.parent < 0, -1, span.parent + nodes))
                firsts.append(span.first)
                lasts.append(span.last)
                levels.append(span.levels)
                heights[j] = span.height
                widths.append(weight[j] * span.widths())
                nodes += len(span.parent)
            else:
                scale[j] = weight[j] / span if span > 0 else 0.0
                reach[j] = span
        return cls(
            codes=np.ascontiguousarray(codes, dtype=np.int32),
            scale=scale,
            base=base,
            parent=_joined(parents, np.int32),
            last=_joined(lasts, np.int32),
            width=_joined(widths, np.float64),
            subjects=None if subjects is None else np.ascontiguousarray(subjects, dtype=np.int32),
            names=names,
            first=_joined(firsts, np.int32),
            level=_joined(levels, np.int32),
            heights=heights,
            reach=reach,
            missing=(
                np.full(d, -1, dtype=np.int32)
                if missing is None
                else np.array(missing, dtype=np.int32)
            ),
            label=None if label is None else np.ascontiguousarray(label, dtype=np.int32),
        )

    def is_tree(self, j: int) -> bool:
        return bool(self.base[j] >= 0)

    def leaves(self, j: int) -> int:
        """How many leaves tree attribute j has, a missing value included."""
        return int(self.last[self.root(j)]) + 1

    def root(self, j: int) -> int:
        """The node over all leaves of tree attribute j."""
        node = int(self.base[j])
        while self.parent[node] >= 0:
            node = int(self.parent[node])
        return node

    def nodes_of(self, j: int) -> slice:
        """Where the nodes of tree attribute j stand among those of all trees."""
        first = int(self.base[j])
        later = self.base[self.base > first]
        return slice(first, int(later.min()) if len(later) else len(self.parent))

    @property
    def whole(self) -> np.ndarray:
        """(d,) float64, what a record loses that shows nothing of an attribute."""
        whole = self.scale * self.reach
        for j in np.flatnonzero(self.base >= 0).tolist():
            whole[j] = self.width[self.root(j)]
        return whole

    def nodes_at(self, j: int, level: int) -> np.ndarray:
        """(leaves,) int32, the highest node above each leaf of tree j no higher than `level`."""
        node = np.arange(self.base[j], self.base[j] + self.leaves(j), dtype=np.int32)
        return climbed(node, self.parent, self.level, level)

    def nodes_by_level(self, j: int) -> np.ndarray:
        """`nodes_at` of every level of tree j; (heights[j] + 1, leaves) int32."""
        node = np.arange(self.base[j], self.base[j] + self.leaves(j), dtype=np.int32)
        nodes = np.empty((int(self.heights[j]) + 1, len(node)), dtype=np.int32)
        for level in range(len(nodes)):
            nodes[level] = node = climbed(node, self.parent, self.level, level)
        return nodes

    def starts_at(self, j: int, level: int) -> np.ndarray:
        """First codes of the spans of attribute j at a level: 0 its values, `heights[j]` the whole.

        A linear attribute keeps each value in a span of its own at level 0.
        """
        if level >= self.heights[j]:
            return np.zeros(1, dtype=np.int32)
        if self.is_tree(j):
            # leaves stand in depth-first order: a span begins where a node's first leaf stands
            first = self.first[self.nodes_at(j, level)]
            return np.flatnonzero(first == np.arange(len(first))).astype(np.int32)
        values = np.unique(self.codes[:, j])
        return np.unique(np.concatenate(([0], values, values + 1))).astype(np.int32)


def _joined(parts: list[np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate(parts).astype(dtype) if parts else np.zeros(0, dtype=dtype)


class UnfitAnswer(Exception):
    """What a method returned can't be used; says why, without a value of the data."""


@dataclass(frozen=True)
class Partition:
    """Class labels of n records.

    labels: (n,) int32, classes numbered 0..count-1 without gaps; -1 where the record is suppressed.
    search_statistics: what a search says about itself, for the certificate. has_stars: whether
    members of a class that differ show the suppression mark, and not what spans them.
    """

    labels: np.ndarray
    count: int
    search_statistics: Mapping[str, Any] = field(default_factory=dict)
    has_stars: bool = False

    @classmethod
    def of(cls, labels: np.ndarray) -> "Partition":
        """A partition from any integer labels, renumbered in order of first appearance."""
        kept = labels >= 0
        _, first, inverse = np.unique(labels[kept], return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int32)
        rank[np.argsort(first, kind="stable")] = np.arange(len(first), dtype=np.int32)
        dense = np.full(len(labels), -1, dtype=np.int32)
        dense[kept] = rank[inverse]
        return cls(dense, len(first))

    @classmethod
    def of_runs(
        cls, numbers: np.ndarray, starts: np.ndarray, room: Room = IN_MEMORY
    ) -> "Partition":
        """Classes that are runs of records.

        numbers: (n,) the records, class after class. starts: (classes + 1,) where each class
        begins, and the end.
        """
        labels = room.array(len(numbers), np.int32)
        for some in blocks(len(starts) - 1):
            ends = starts[some.start : some.stop + 1]
            classes = np.arange(some.start, some.stop, dtype=np.int32)
            labels[numbers[ends[0] : ends[-1]]] = np.repeat(classes, np.diff(ends))
        return cls(labels, len(starts) - 1)

    @classmethod
    def answered(cls, answer: object, records: int) -> "Partition":
        """What a method answers; raises UnfitAnswer where that is not a `Partition` with one class
        a record.
        """
        if not isinstance(answer, Partition):
            raise UnfitAnswer(f"gave {type(answer).__name__}, not a Partition")
        labels = np.asarray(answer.labels)
        if labels.shape != (records,) or labels.dtype.kind not in "iu":
            raise UnfitAnswer(
                f"gave labels of type {labels.dtype} and shape {labels.shape}, not a whole number"
                f" for each of {records} records"
            )
        if records and (labels.min() < -1 or labels.max() >= answer.count):
            raise UnfitAnswer(
                f"gave labels beyond -1 to {answer.count - 1}; make its Partition by Partition.of"
            )
        return answer

    def sizes(self) -> np.ndarray:
        """Records per class, (count,) int64."""
        return np.bincount(self.labels[self.labels >= 0], minlength=self.count)


@dataclass(frozen=True)
class Cut:
    """Spans of codes, the same for all records: whoever has a code of a span shows that span.

    starts: for each attribute, int32, the first code of every span, ascending from 0; a span ends
        before the next one starts, the last one after all codes. A set of nodes that covers every
        leaf of a hierarchy once is the sorted list of their first leaves.
    suppressed: (n,) bool, records that show the suppression mark in every quasi-identifier.
    levels: (d,) where every attribute is generalized to one level of its hierarchy, else None. A
        span then bears the label of that column of the hierarchy's table.
    next_round: another cut for the records that this one suppresses, in their order; None if there
        is none.
    search_statistics: what the search can say about itself; numbers and names of attributes, never
        a value.
    """

    starts: tuple[np.ndarray, ...]
    suppressed: np.ndarray
    levels: tuple[int, ...] | None = None
    next_round: "Cut | None" = None
    search_statistics: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def at_levels(
        cls,
        matrix: Matrix,
        levels: tuple[int, ...],
        suppressed: np.ndarray | None = None,
        **more: Any,
    ) -> "Cut":
        """Full-domain generalization: every attribute at one level of its hierarchy."""
        if suppressed is None:
            suppressed = np.zeros(matrix.records, dtype=bool)
        starts = tuple(matrix.starts_at(j, level) for j, level in enumerate(levels))
        return cls(starts, suppressed, levels, **more)

    def spans(self, j: int, codes: np.ndarray) -> np.ndarray:
        """The number of the span that each code of attribute j lies in; (len(codes),) int32."""
        return (np.searchsorted(self.starts[j], codes, side="right") - 1).astype(np.int32)

    @property
    def rounds(self) -> "list[Cut]":
        """This cut and all that follow it."""
        return [self, *(self.next_round.rounds if self.next_round is not None else [])]

    def round_of_record(self) -> np.ndarray:
        """Which of `rounds` each record shows, -1 where it is suppressed in the end; (n,) int32."""
        number = np.where(self.suppressed, -1, 0).astype(np.int32)
        if self.next_round is not None:
            later = self.next_round.round_of_record()
            number[self.suppressed] = np.where(later < 0, -1, later + 1)
        return number

    def partition(self, matrix: Matrix) -> Partition:
        """The classes that it makes of the records: those of one round that show the same spans."""
        shown = self.round_of_record()
        labels = shown.astype(np.int64)
        for j in range(matrix.attributes):
            spans = np.zeros(matrix.records, dtype=np.int64)
            for number, cut in enumerate(self.rounds):
                of_round = shown == number
                spans[of_round] = cut.spans(j, matrix.codes[of_round, j])
            labels = np.unique(labels << 32 | spans, return_inverse=True)[1]
        return Partition.of(np.where(shown < 0, -1, labels))
