"""What a method says: which class every record belongs to, or how every value of every
quasi-identifier is generalized, which is global recoding.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.data.matrix import Matrix
from shoal.data.room import IN_MEMORY, Room, blocks


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
