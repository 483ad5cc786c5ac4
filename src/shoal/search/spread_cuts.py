"""A large table cut by many processes: the same classes as by one.

Level by level, every open node is a task: its records are copied, cut once by the kernel that cuts
them in one process, and both sides are the nodes of the next level. A node of few records is cut to
the end. So whatever a cut depends on - the records of its node in the order of their numbers - is
the same wherever it is made; see `subtrees`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shoal.data.room import Room, SharedRoom

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


def cut(columns: np.ndarray, once: Once, to_end: ToEnd, most: int, room: SharedRoom) -> np.ndarray:
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
