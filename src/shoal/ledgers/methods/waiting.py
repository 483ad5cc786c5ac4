"""Priced waiting: new records wait while one release more would make their class much narrower.

Ours: Li, Liu, Cai, Zhou 2016 leave small increments to future work.
A class of n records loses about n ** (-1 / d) on d quasi-identifiers. So a class that loses c among
w records loses c' = c * ((w + e) / w) ** (-1 / d) once e more have come. It is published if c - c'
is at most `price`, or if somebody in it has waited `deadline` increments. One look ahead is best as
c - c' falls while w grows.
Only quasi-identifiers decide, so that waiting tells nothing of sensitive values; promises besides k
shape classes, as ever.
"""

import numpy as np

from shoal.data.ledger_view import LedgerView
from shoal.data.partition import Matrix, Partition
from shoal.errors import InfeasibleError
from shoal.protocols import Promises
from shoal.search.segments import losses_of, repair

AT_ONCE, PRICED = "at-once", "priced"
WAITING = {
    "help": (
        "when new classes are published: at once, or when waiting for one increment more gains no"
        " more than `price`"
    ),
    "choices": (AT_ONCE, PRICED),
}
PRICE = {
    "help": "waiting=priced: information loss (gcp) that one more increment must save",
    "low": 0,
}
DEADLINE = {
    "help": (
        "waiting=priced: increments that nobody waits longer than; fewer than k people are left"
        " out then"
    ),
    "low": 1,
}


def is_due(
    matrix: Matrix, partition: Partition, view: LedgerView, price: float, deadline: int
) -> np.ndarray:
    """Which classes are published now, (count,) bool; those that share people go together."""
    labels, waiting = partition.labels, int((partition.labels >= 0).sum())
    if not waiting:
        return np.zeros(partition.count, dtype=bool)
    part = _parts(matrix.subjects, partition)
    sizes = partition.sizes()
    lost = np.bincount(part, losses_of(matrix, partition) * sizes)
    loss = lost / np.bincount(part, sizes) / max(float(matrix.whole.sum()), 1e-300)
    more = (waiting + view.arrivals) / waiting
    gain = loss * (1 - more ** (-1 / max(matrix.attributes, 1)))
    late = np.zeros(len(loss), dtype=bool)
    late[part[labels[(labels >= 0) & (view.waited >= deadline)]]] = True
    return ((gain <= price) | late)[part]


def without_waiting(
    matrix: Matrix, partition: Partition, due: np.ndarray, promises: Promises
) -> Partition:
    """The classes that are due; none where promises that compare with all fail without the rest."""
    kept = np.where(partition.labels >= 0, due[partition.labels], False)
    labels = np.where(kept, partition.labels, -1).astype(np.int32)
    return Partition.of(labels) if kept.all() else holding(matrix, labels, promises)


def holding(matrix: Matrix, groups: np.ndarray, promises: Promises) -> Partition:
    """A class for each group, united until all promises hold; none where they can't."""
    if not (groups >= 0).any():
        return Partition(groups.astype(np.int32), 0)
    asked = promises.restricted_to(groups >= 0) if promises.relative else promises
    try:
        return repair(matrix, Partition.of(groups), asked)
    except InfeasibleError:
        return Partition(np.full(len(groups), -1, dtype=np.int32), 0)


def _parts(subjects: np.ndarray | None, partition: Partition) -> np.ndarray:
    """The part of each class, from 0: classes that share people are in one."""
    part = np.arange(partition.count)
    if subjects is None:
        return part
    kept = partition.labels >= 0
    labels, people = partition.labels[kept], subjects[kept]
    while True:
        least = np.full(int(people.max()) + 1, partition.count)
        np.minimum.at(least, people, part[labels])
        joined = part.copy()
        np.minimum.at(joined, labels, least[people])
        if (joined == part).all():
            return np.unique(part, return_inverse=True)[1].reshape(-1)
        part = joined


# The methods for tables that a method for republication may call.


TABLE_METHODS = (
    "rounded-partition",
    "lattice-peeling",
    "k-member",
    "mondrian",
    "top-down-greedy",
    "mdav",
    "tcloseness",
)
"""The methods for tables that may find the classes; a view offers them by name."""
