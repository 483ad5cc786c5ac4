"""A large table cut by its distinct rows, or by several threads or many processes: these find the
same classes, in the same order, as one does.

Why the number of threads changes nothing:

1. A cut depends on the records of its node in the order of their numbers, and on nothing else.
   Large nodes are parted so that both sides keep that order, and nothing random is drawn.
2. Whether a node is cut where it lies or by sorted lists follows from the size of the whole table,
   not from that of the part that a thread was given.
3. Nodes share no record, so threads never write to the same place, and where classes start is
   sorted in the end.

Among processes, level by level, every open node is a task: its records are copied, cut once by the
kernel that cuts them in one process, and both sides are the nodes of the next level. A node of few
records is cut to the end. So whatever a cut depends on - the records of its node in the order of
their numbers - is the same wherever it is made.
"""

import heapq
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np

from shoal.data import cores
from shoal.data.room import IN_MEMORY, Room, SharedRoom
from shoal.search.distinct_rows import WORTHWHILE, rows_within
from shoal.search.kernels import rounded_cut, row_cuts
from shoal.search.kernels.distinct_rows import lay_out

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
