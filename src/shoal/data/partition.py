"""Which class every record belongs to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.data.room import IN_MEMORY, Room, blocks


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

    def sizes(self) -> np.ndarray:
        """Records per class, (count,) int64."""
        return np.bincount(self.labels[self.labels >= 0], minlength=self.count)


class UnfitAnswer(Exception):
    """What a method returned can't be used; says why, without a value of the data."""


def require_partition(answer: object, records: int) -> None:
    """Raises UnfitAnswer for what is not a `Partition` with one class a record."""
    if not isinstance(answer, Partition):
        raise UnfitAnswer(f"gave {type(answer).__name__}, not a Partition")
    labels = np.asarray(answer.labels)
    if labels.shape != (records,) or labels.dtype.kind not in "iu":
        raise UnfitAnswer(
            f"gave labels of type {labels.dtype} and shape {labels.shape}, not a whole number for"
            f" each of {records} records"
        )
    if records and (labels.min() < -1 or labels.max() >= answer.count):
        raise UnfitAnswer(
            f"gave labels beyond -1 to {answer.count - 1}; make its Partition by Partition.of"
        )
