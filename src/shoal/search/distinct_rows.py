"""Global recoding on distinct rows: a search that does not grow with the records.

Records that agree in every quasi-identifier show the same cells under any global recoding, so a
search looks at one row for all of them, and counts it as often as they are. The classes, their
sizes, what they cost and their order are those of the records. Promises beyond counts of people are
asked of the records.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import numpy as np

from shoal.data.classes import Population
from shoal.data.cut import Cut
from shoal.data.matrix import Matrix
from shoal.data.room import Room, blocks
from shoal.protocols import AnonymityRequirement, Promises, PromiseTerms
from shoal.search.kernels.distinct_rows import distinct_rows
from shoal.search.segments import require_people

WORTHWHILE = 2  # records to a row

CutMethod = Callable[..., Cut]


def on_distinct_rows(with_label: bool = False) -> Callable[[CutMethod], CutMethod]:
    """The `cut` of a method, given one row for all records that agree, and its `Matrix.count`.

    Where few records agree, the records themselves. with_label: those of a row agree in the
    matrix's label, too. Raises InfeasibleError where there are too few people for one class.
    """

    def decorated(cut: CutMethod) -> CutMethod:
        @wraps(cut)
        def searched(self: Any, matrix: Matrix, promises: Promises, *rest: Any, **more: Any) -> Cut:
            require_people(matrix, promises)
            rows = DistinctRows.of(matrix, with_label)
            if rows is None:
                return cut(self, matrix, promises, *rest, **more)
            asked = RowPromises(promises, rows.row_of)
            return of_records(cut(self, rows.matrix, asked, *rest, **more), rows.row_of)

        searched.takes_counts = True  # type: ignore[attr-defined]
        searched.minds_labels = with_label  # type: ignore[attr-defined]
        return searched

    return decorated


@dataclass(frozen=True)
class DistinctRows:
    """A matrix's distinct rows, by their first records. row_of: (records,) int32."""

    matrix: Matrix
    row_of: np.ndarray

    @classmethod
    def of(cls, matrix: Matrix, with_label: bool = False) -> "DistinctRows | None":
        """None where a row would stand for fewer than WORTHWHILE records on average."""
        row_of = np.empty(matrix.records, dtype=np.int32)
        nothing = np.zeros(0, dtype=np.int32)
        label = matrix.label if with_label and matrix.label is not None else nothing
        most = matrix.records // WORTHWHILE
        first, count = distinct_rows(matrix.codes, label, most, row_of)
        if not len(first):
            return None
        rows = replace(
            matrix,
            codes=matrix.codes[first],
            subjects=None,
            label=matrix.label[first] if len(label) and matrix.label is not None else None,
            count=count,
        )
        return cls(rows, row_of)


def rows_within(
    columns: np.ndarray, label: np.ndarray | None, most: int, room: Room
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first record of each distinct row, how many there are of it, and the row of each record.

    columns: (d + 1, n) int32, the record's number last; they may lie in files, as may what is given
    back. label: (n,) that has to agree, too. Nothing of the first two where there are more than
    `most` rows.
    """
    rows = room.array((columns.shape[1], len(columns) - 1), np.int32)
    for block in blocks(len(rows)):
        rows[block] = columns[:-1, block].T
    labels = np.zeros(0, dtype=np.int32) if label is None else label
    row_of = room.array(len(rows), np.int32)
    first, count = distinct_rows(rows, labels, most, row_of)
    return first, count, row_of


def of_records(cut: Cut, row_of: np.ndarray) -> Cut:
    """A cut of rows as one of the records that they stand for."""
    suppressed = cut.suppressed[row_of]
    if cut.next_round is None:
        return replace(cut, suppressed=suppressed)
    # the next round counts suppressed rows, and then records, from 0
    number = np.cumsum(cut.suppressed, dtype=np.int32) - 1
    later = of_records(cut.next_round, number[row_of[suppressed]])
    return replace(cut, suppressed=suppressed, next_round=later)


class RowPromises(Promises):
    """Promises about records, asked about the rows that stand for them.

    `sensitive` and `closeness` stay empty: records of a row differ in their values.
    """

    def __init__(self, promises: Promises, row_of: np.ndarray) -> None:
        self.k = promises.k
        self.needs_more_than_k = promises.needs_more_than_k
        self._promises = promises
        self._row_of = row_of

    @property
    def terms(self) -> tuple[PromiseTerms, ...]:
        return self._promises.terms

    @property
    def qids(self) -> tuple[AnonymityRequirement, ...]:
        return self._promises.qids

    @property
    def relative(self) -> bool:
        return self._promises.relative

    @property
    def about_release(self) -> bool:
        return self._promises.about_release

    @property
    def release_checks_are_monotone(self) -> bool:
        return self._promises.release_checks_are_monotone

    def release_holds(self, labels: np.ndarray, count: int) -> bool:
        return self._promises.release_holds(labels[self._row_of], count)

    @property
    def about_lone_records(self) -> bool:
        return self._promises.about_lone_records

    def restricted_to(self, kept: np.ndarray) -> "RowPromises":
        return RowPromises(self._promises.restricted_to(kept[self._row_of]), self._row_of)

    def holds(
        self,
        labels: np.ndarray,
        count: int,
        quasi: Mapping[str, np.ndarray] | None = None,
        population: Mapping[str, Population] | None = None,
    ) -> np.ndarray:
        shown = {name: codes[self._row_of] for name, codes in (quasi or {}).items()}
        return self._promises.holds(labels[self._row_of], count, shown or None, population or None)
