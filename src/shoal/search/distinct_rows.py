"""Searches on less than a table: on its distinct rows or some of its records; promises asked so.

Records that agree in every quasi-identifier show the same cells under any global recoding, so a
search looks at one row for all of them, and counts it as often as they are: it does not grow with
the records. The classes, their sizes, what they cost and their order are those of the records.
Promises beyond counts of people are asked of the records.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np

from shoal.data.classes import Closeness, Population, SensitiveColumn
from shoal.data.partition import Cut, Matrix
from shoal.data.room import IN_MEMORY, Room
from shoal.protocols import AnonymityRequirement, Promises, PromiseTerms
from shoal.search.kernels.distinct_rows import number_rows
from shoal.search.segments import require_people

WORTHWHILE = 2  # records to a row
_EXACT = 1 << 64
_KEYS = 1 << 11  # that are made at once, and rows that room is made for first

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
            found = distinct_rows_of(matrix, with_label)
            if found is None:
                return cut(self, matrix, promises, *rest, **more)
            rows, row_of = found
            asked = RowPromises(promises, row_of)
            return of_records(cut(self, rows, asked, *rest, **more), row_of)

        searched.takes_counts = True  # type: ignore[attr-defined]
        searched.minds_labels = with_label  # type: ignore[attr-defined]
        return searched

    return decorated


def distinct_rows_of(matrix: Matrix, with_label: bool = False) -> tuple[Matrix, np.ndarray] | None:
    """A matrix's distinct rows, by their first records, and the row of each record, (n,) int32.

    None where a row would stand for fewer than WORTHWHILE records on average.
    """
    label = matrix.label if with_label else None
    columns = matrix.columns(int(label is not None))
    if label is not None:
        columns[-2] = label
    first, count, row_of = rows_within(columns[:-1], matrix.records // WORTHWHILE)
    if not len(first):
        return None
    rows = replace(
        matrix,
        codes=np.ascontiguousarray(columns[: matrix.attributes, first].T),
        subjects=None,
        label=None if label is None else label[first],
        count=count,
    )
    return rows, row_of


def rows_within(
    columns: np.ndarray, most: int, room: Room = IN_MEMORY
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first record of each distinct row, how many there are of it, and the row of each record.

    columns: (d, n) int32 that have to agree; they may lie in files, as may the rows of the records.
    Nothing of the first two where there are more than `most` rows.
    """
    row_of = room.array(columns.shape[1], np.int32)
    stride, exact = strides(columns.max(axis=1, initial=0) + 1)
    keys, some = np.empty(0, dtype=np.uint64), np.empty(_KEYS, dtype=np.uint64)
    first, size = np.empty((2, 0), dtype=np.int32)
    done, rows = 0, 0
    while done < columns.shape[1]:
        if rows == most:
            return first[:0], size[:0], row_of
        fitting = max(2 * rows, _KEYS)
        slot = np.full(2 * fitting, -1, dtype=np.int32)  # half full at most
        keys, first, size = (_with_room(known, min(fitting, most)) for known in (keys, first, size))
        done, rows = number_rows(
            columns, stride, exact, done, rows, slot, keys, first, size, some, row_of
        )
    return first[:rows], size[:rows], row_of


def _with_room(known: np.ndarray, size: int) -> np.ndarray:
    wider = np.empty(size, dtype=known.dtype)
    wider[: len(known)] = known
    return wider


def strides(values: Sequence[int]) -> tuple[np.ndarray, bool]:
    """(d,) uint64: a row's key is the sum of code * stride; whether no two rows can share one.

    values: how many each attribute may have. One that has but one counts for nothing.
    """
    stride, room = np.zeros(len(values), dtype=np.uint64), 1
    for j, value in enumerate(map(int, values)):
        if value > 1:
            # beyond 64 bits any odd factor will do
            stride[j] = room % (1 << 64) | (room >= _EXACT)
            room *= value
    return stride, room < _EXACT


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


class PartPromises(Promises):
    """Promises asked about some records of a table, for searches that go on with the rest."""

    def __init__(self, promises: Promises, rows: np.ndarray, records: int) -> None:
        self.k = promises.k
        self.needs_more_than_k = promises.needs_more_than_k
        self._promises = promises
        self._rows = rows
        self._records = records

    @property
    def terms(self) -> tuple[PromiseTerms, ...]:
        return self._promises.terms

    @property
    def sensitive(self) -> Mapping[str, SensitiveColumn]:
        """The sensitive columns of these records."""
        whole = self._promises.sensitive.items()
        return {name: replace(column, codes=column.codes[self._rows]) for name, column in whole}

    @property
    def closeness(self) -> tuple[Closeness, ...]:
        """As of the whole table, for these records."""
        return tuple(
            replace(target, column=replace(target.column, codes=target.column.codes[self._rows]))
            for target in self._promises.closeness
        )

    @property
    def qids(self) -> tuple[AnonymityRequirement, ...]:
        return self._promises.qids

    def holds(
        self,
        labels: np.ndarray,
        count: int,
        quasi: Mapping[str, np.ndarray] | None = None,
        population: Mapping[str, Population] | None = None,
    ) -> np.ndarray:
        return self._promises.holds(
            self._whole(labels, -1),
            count,
            {name: self._whole(codes, 0) for name, codes in (quasi or {}).items()},
        )

    def _whole(self, values: np.ndarray, rest: int) -> np.ndarray:
        """The values carried to all records."""
        whole = np.full(self._records, rest, dtype=values.dtype)
        whole[self._rows] = values
        return whole
