"""How large tables are searched: on their distinct rows, or by several threads or many processes.

Records that agree in every quasi-identifier show the same cells under any global recoding, so a
search looks at one row for all of them, and counts it as often as they are: it does not grow with
the records. The classes, their sizes, what they cost and their order are those of the records.
Promises beyond counts of people are asked of the records.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import numpy as np

from shoal.data import cores
from shoal.data.classes import Closeness, Population, SensitiveColumn
from shoal.data.partition import Cut, Matrix
from shoal.data.room import IN_MEMORY, Room, SharedRoom
from shoal.protocols import AnonymityRequirement, Promises, PromiseTerms
from shoal.search.kernels import rounded_cut, row_cuts
from shoal.search.kernels.distinct_rows import lay_out, number_rows
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


class _OnBehalf(Promises):
    """Promises about records, asked about what a search has in their place."""

    def __init__(self, promises: Promises) -> None:
        self.k = promises.k
        self.needs_more_than_k = promises.needs_more_than_k
        self._promises = promises

    @property
    def terms(self) -> tuple[PromiseTerms, ...]:
        return self._promises.terms

    @property
    def qids(self) -> tuple[AnonymityRequirement, ...]:
        return self._promises.qids


class RowPromises(_OnBehalf):
    """Promises about records, asked about the rows that stand for them.

    `sensitive` and `closeness` stay empty: records of a row differ in their values.
    """

    def __init__(self, promises: Promises, row_of: np.ndarray) -> None:
        super().__init__(promises)
        self._row_of = row_of

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


class PartPromises(_OnBehalf):
    """Promises asked about some records of a table, for searches that go on with the rest."""

    def __init__(self, promises: Promises, rows: np.ndarray, records: int) -> None:
        super().__init__(promises)
        self._rows = rows
        self._records = records

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


# A table cut by its distinct rows, or by several threads or many processes: these find the same
# classes, in the same order, as one does.
#
# Why the number of threads changes nothing:
#
# 1. A cut depends on the records of its node in the order of their numbers, and on nothing else.
#    Large nodes are parted so that both sides keep that order, and nothing random is drawn.
# 2. Whether a node is cut where it lies or by sorted lists follows from the size of the whole
#    table, not from that of the part that a thread was given.
# 3. Nodes share no record, so threads never write to the same place, and where classes start is
#    sorted in the end.
#
# Among processes, level by level, every open node is a task: its records are copied, cut once by
# the kernel that cuts them in one process, and both sides are the nodes of the next level. A node
# of few records is cut to the end. So whatever a cut depends on - the records of its node in the
# order of their numbers - is the same wherever it is made.


GRAIN = 300_000
"""Nodes of more records are cut once, and both sides are taken on by whoever is free."""

FEW, SELDOM = 1 << 18, 16
"""Distinct rows that find a place in memory, or records to each, however many there are."""

Rules = tuple[int, bool, bool, int]


def cut_by_rows(
    columns: np.ndarray, k: int, rules: Rules, sample: int, costs: np.ndarray, room: Room
) -> np.ndarray | None:
    """Cuts one node that holds every record by its distinct rows, as `rounded_cut.cut` is asked;
    None where few records agree, whatever the memory.
    """
    records = columns.shape[1]
    most = min(records // WORTHWHILE, max(records // SELDOM, FEW))
    first, held, row_of = rows_within(columns[:-1], most, room)
    if not len(first):
        return None
    codes = columns[:-1, first]
    parts, starts = row_cuts.cut(codes, held, k, rules, sample, costs)
    numbers = room.array(records, np.int32)
    numbers[:] = columns[-1]
    lay_out(columns, numbers, codes, row_of, parts)
    return starts


def cut_by_threads(
    columns: np.ndarray,
    k: int,
    rules: Rules,
    sample: int,
    costs: np.ndarray,
    room: Room = IN_MEMORY,
) -> np.ndarray:
    """Cuts one node that holds every record, on as many threads as may work.

    room: where what is needed beside the columns finds a place. Under a limit, nodes are cut depth
    first, and those that don't fit into half of it one after another, so that what is at work stays
    in memory.
    """
    records = columns.shape[1]
    nodes = np.array([0, records])
    listed = rounded_cut.is_listed(records, k, sample)
    least = max(rounded_cut.most_listed(k, sample), 2 * k - 1)
    if isinstance(room, SharedRoom) and not listed:
        node = _Node(k, rules, sample, costs)
        most = max(room.most_records(records, BYTES * len(columns)), least)
        return cut_by_processes(columns, node.once, node.to_end, most, room)
    is_free = room.limit is None
    if (cores.threads() == 1 and is_free) or listed or records <= GRAIN:
        return rounded_cut.cut(columns, nodes, k, rules, sample, costs)
    whole = max(GRAIN, least)

    sides, aside = room.array(records, np.int8), room.array(records, np.int32)

    def task(begin: int, end: int) -> tuple[np.ndarray, list[tuple[int, int]]]:
        """Where the classes of a node start, or the two nodes that it is cut into."""
        if end - begin > whole:
            beside = sides[begin:end], aside[begin:end]
            middle = rounded_cut.halve(columns, begin, end, k, rules, sample, costs, beside)
            return nodes[:0], [(begin, middle), (middle, end)]
        # whole columns: a slice of them would be another type of array, and compiled once more
        node = np.array([begin, end])
        return rounded_cut.cut(columns, node, k, rules, sample, costs, False)[:-1], []

    def is_large(begin: int, end: int) -> bool:
        return room.limit is not None and 4 * len(columns) * (end - begin) > room.limit // 2

    found = []
    waiting = [(-records, 0, records)]
    large = False
    running: set[Future[tuple[np.ndarray, list[tuple[int, int]]]]] = set()
    with ThreadPoolExecutor(cores.threads()) as pool:
        while waiting or running:
            while waiting and len(running) < (1 if large else cores.threads()):
                _, begin, end = heapq.heappop(waiting)  # the largest: it has most to hand out
                large = is_large(begin, end)
                running.add(pool.submit(task, begin, end))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                starts, parts = future.result()
                found.append(starts)
                for begin, end in parts:
                    heapq.heappush(waiting, (begin - end if is_free else -begin, begin, end))
    return np.append(np.sort(np.concatenate(found)), records)


@dataclass(frozen=True)
class _Node:
    """How a node of a large table is cut by whoever has its records; as in `cut`."""

    k: int
    rules: Rules
    sample: int
    costs: np.ndarray

    def once(self, columns: np.ndarray, room: Room) -> list[tuple[int, int]]:
        size = columns.shape[1]
        beside = room.array(size, np.int8), room.array(size, np.int32)
        rules, sample = self.rules, self.sample
        middle = rounded_cut.halve(columns, 0, size, self.k, rules, sample, self.costs, beside)
        return [(0, middle), (middle, size)]

    def to_end(self, columns: np.ndarray, room: Room) -> np.ndarray:
        node = np.array([0, columns.shape[1]])
        return rounded_cut.cut(columns, node, self.k, self.rules, self.sample, self.costs, False)


BYTES = 8
"""What a task needs in memory for each code of a record."""

Parts = list[tuple[int, int]]
"""Where nodes begin and end."""

Once = Callable[[np.ndarray, Room], Parts]
"""Moves the records of a node, columns (d + 1, m) int32, so that its parts are runs of them."""

ToEnd = Callable[[np.ndarray, Room], np.ndarray]
"""Cuts until classes are runs: where each starts, and m."""


@dataclass(frozen=True)
class _Task:
    """Takes on a node. most: records up to which it is cut to the end."""

    once: Once
    to_end: ToEnd
    most: int
    limit: int

    def __call__(self, node: np.ndarray) -> tuple[np.ndarray, Parts, np.ndarray]:
        """The records as they were moved, the nodes that are open, and where classes start."""
        room = Room(self.limit)
        columns = room.array(node.shape, np.int32)
        columns[:] = node
        if columns.shape[1] <= self.most:
            return columns, [], self.to_end(columns, room)
        parts = self.once(columns, room)
        ends = np.array([0, columns.shape[1]])
        return (columns, [], ends) if len(parts) < 2 else (columns, parts, ends[:0])


def cut_by_processes(
    columns: np.ndarray, once: Once, to_end: ToEnd, most: int, room: SharedRoom
) -> np.ndarray:
    """Moves the columns so that classes are runs of them; where each starts, and the end.

    once: cuts a node of more than `most` records, or says that it has one part.
    """
    task = _Task(once, to_end, most, room.limit)
    nodes = [(0, columns)]
    done: list[tuple[int, np.ndarray, np.ndarray]] = []
    while nodes:
        found = room.each(task, [node for _, node in nodes])
        coming = []
        for (begun, _), (moved, parts, starts) in zip(nodes, found, strict=True):
            coming += [(begun + first, moved[:, first:end]) for first, end in parts]
            if not parts:
                done.append((begun, moved, starts))
        nodes = coming
    starts_of_all = []
    for begun, moved, starts in sorted(done, key=lambda one: one[0]):
        columns[:, begun : begun + moved.shape[1]] = moved
        starts_of_all.append(begun + starts[:-1])
    return np.append(np.concatenate(starts_of_all), columns.shape[1])
