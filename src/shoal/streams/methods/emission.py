"""From clusters to emissions: repair, bounds, and the parameters that stream methods share."""

from dataclasses import replace
from typing import Any

import numpy as np

from shoal.data.classes import Classes
from shoal.data.partition import Matrix, Partition
from shoal.data.stream import DROP, HOLD, SUPPRESS, UNIT, Arrivals, Emissions, Space, State
from shoal.errors import InfeasibleError, InputError
from shoal.protocols import StreamPromises
from shoal.search.segments import merge_failing
from shoal.streams.kernels import nearest_clusters

LEFTOVERS = ("hold", "drop", "star")
"""What becomes of records that fit no cluster; HOLD: they wait, at the end unpublished."""

STAR_OR_DROP = {
    "help": "records that fit no cluster: suppressed (star) or dropped",
    "choices": ("star", "drop"),
}
SNAP = {
    "help": (
        "publish numbers in steps of this many to a domain, so that no true end shows; 0 for none"
    ),
    "low": 0,
}


TICK = {
    "help": (
        "records between releases, in which all that leaves is shuffled; 1 tells when each record"
        " came"
    ),
    "low": 1,
}


def person_codes(people: np.ndarray) -> np.ndarray:
    """(n,) int32 numbers 0.. of these people; empty where every record is its own person."""
    distinct, numbers = np.unique(people, return_inverse=True)
    return np.zeros(0, np.int32) if len(distinct) == len(people) else numbers.astype(np.int32)


def people_of(people: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
    """Distinct people of every cluster, (count,) int64. labels: (n,), -1 in none."""
    return Classes(labels, count, np.unique(people, return_inverse=True)[1]).people()


def boxes(values: np.ndarray, labels: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest value of every cluster's members, (count, d) float64."""
    order = np.argsort(labels, kind="stable")
    order = order[np.searchsorted(labels[order], 0) :]
    starts = np.searchsorted(labels[order], np.arange(count))
    members = values[order]
    return np.minimum.reduceat(members, starts), np.maximum.reduceat(members, starts)


def repaired(
    space: Space, promises: StreamPromises, records: Arrivals, labels: np.ndarray, count: int
) -> Partition:
    """The clusters with those that break a promise merged into their nearest; all in none where
    nothing helps.

    Without the records that a cap keeps out of their cluster. Where clusters that show the same
    cells must be judged as one, they become one.
    """
    if not count or not promises.needs_more_than_k:
        return Partition(labels, count)
    matrix, found = matrix_of(space, records), Partition(labels, count)
    try:
        while True:
            found = merge_failing(
                matrix, found, lambda labels, count: promises.holds(records, labels, count)
            )
            shown = promises.cells(records, found.labels, found.count) if promises.by_cells else []
            if len(set(shown)) == len(shown):
                return Partition(promises.capped(records, found.labels), found.count)
            one = np.unique(shown, return_inverse=True)[1].reshape(-1)
            found = Partition.of(np.where(found.labels >= 0, one[found.labels], -1))
    except InfeasibleError:
        return Partition(np.full(len(records), -1, np.int32), 0)


def codes_of(space: Space, values: np.ndarray) -> np.ndarray:
    """Positions in units of loss and leaves, (n, d) int32; anything where a value is missing."""
    values = np.nan_to_num(values)
    is_tree = space.is_tree
    codes = np.empty(values.shape, np.int32)
    codes[:, ~is_tree], codes[:, is_tree] = space.scaled_positions(values).T, space.leaf(values).T
    return codes


def tree_table(space: Space) -> np.ndarray:
    """The trees as kernels take them that know records by `codes_of`: (nodes + d, 4) int32.

    A row for each node: parent, first and last leaf, and price. Then one for each attribute: the
    row of its first node, -1 for linear ones, and nothing else.
    """
    nodes, d = len(space.parent), space.attributes
    table = np.zeros((nodes + d, 4), np.int32)
    table[:nodes] = np.column_stack([space.parent, space.first, space.last, space.cost])
    table[nodes:, 0] = space.bases
    return table


def matrix_of(space: Space, records: Arrivals) -> Matrix:
    """The records as table methods see them, a loss of 1 being everything suppressed."""
    codes, base = codes_of(space, records.values), space.bases
    scale = np.where(space.is_tree, 0.0, 1.0 / UNIT)
    people = person_codes(records.people)
    who = people if len(people) else None
    return Matrix(codes, scale, base, space.parent, space.last, space.cost / UNIT, who)


def emissions(
    records: Arrivals,
    kind: np.ndarray,
    cluster: np.ndarray,
    release: int,
    now: int,
    made: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    live: np.ndarray,
) -> Emissions:
    seq, values, people = (column.copy() for column in _columns(records))
    at = np.full(len(seq), now, np.int64)
    return Emissions(
        seq,
        people,
        values,
        kind.astype(np.int8),
        np.full(len(seq), release, np.int64),
        cluster.astype(np.int64),
        at,
        made,
        lo,
        hi,
        live.copy(),
    )


KIND_OF_LEFTOVER = {"star": SUPPRESS, "drop": DROP, "hold": HOLD}


def with_effective_delay(parameters: Any, k: int) -> Any:
    """The parameters with a delay from which a record may still wait for the next tick.

    Raises InputError where what is held could never be k people.
    """
    tick = getattr(parameters, "tick", 1)
    if parameters.delta - tick + 1 < k:
        waits = (
            f" and tick = {tick} leave {max(0, parameters.delta - tick + 1)} records,"
            if tick > 1
            else " is"
        )
        raise InputError(
            f"method '{parameters.name}': delta = {parameters.delta}{waits} less than k = {k}, so"
            f" no cluster could ever be filled; set delta to {k + tick - 1} or more"
        )
    return replace(parameters, delta=parameters.delta - tick + 1)


# What stream methods share: the buffer, published clusters that may be used again, and emissions.


NONE = np.zeros(0, dtype=np.int64)


class Buffer:
    """Records that wait, in order of arrival; room for `capacity`."""

    def __init__(self, capacity: int, attributes: int) -> None:
        self._all = Arrivals(
            np.zeros(capacity, np.int64),
            np.zeros((capacity, attributes)),
            np.zeros(capacity, np.int64),
        )
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def room(self) -> int:
        return len(self._all) - self._count

    @property
    def records(self) -> Arrivals:
        """A view of what is held; good until the next change."""
        return self._all.part(slice(0, self._count))

    def add(self, arrivals: Arrivals) -> None:
        end = self._count + len(arrivals)
        for mine, theirs in zip(_columns(self._all), _columns(arrivals), strict=True):
            mine[self._count : end] = theirs
        self._count = end

    def keep(self, rows: np.ndarray) -> None:
        """Keeps these rows only. rows: (n,) bool or ascending places."""
        kept = self.records.part(rows)
        self._count = 0
        self.add(kept)

    def snapshot(self) -> State:
        seq, values, people = (column.copy() for column in _columns(self.records))
        return {"buffer.seq": seq, "buffer.values": values, "buffer.people": people}

    def restore(self, state: State) -> None:
        self._count = 0
        self.add(Arrivals(state["buffer.seq"], state["buffer.values"], state["buffer.people"]))


def _columns(records: Arrivals) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return records.seq, records.values, records.people


class ReusableClusters:
    """Published clusters under which later records may be published, the oldest first."""

    def __init__(self, attributes: int) -> None:
        self.number, self.loss, self.since = NONE, np.zeros(0), NONE
        self.lo, self.hi = np.zeros((0, attributes)), np.zeros((0, attributes))
        self._sorted: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self.number)

    def add(
        self, number: np.ndarray, lo: np.ndarray, hi: np.ndarray, loss: np.ndarray, since: int = 0
    ) -> None:
        self._sorted = None
        self.number = np.concatenate([self.number, number])
        self.lo, self.hi = np.concatenate([self.lo, lo]), np.concatenate([self.hi, hi])
        self.loss = np.concatenate([self.loss, loss])
        self.since = np.concatenate([self.since, np.full(len(number), since, np.int64)])

    def keep(self, rows: np.ndarray | slice) -> None:
        self._sorted = None
        self.number, self.loss, self.since = self.number[rows], self.loss[rows], self.since[rows]
        self.lo, self.hi = self.lo[rows], self.hi[rows]

    def newest(self, most: int) -> None:
        """Keeps at most this number, dropping the oldest."""
        if len(self) > most:
            self.keep(slice(len(self) - most, None))

    def covering(self, values: np.ndarray, draws: np.ndarray) -> np.ndarray:
        """The place of the covering cluster of least loss, -1 where none; ties by draw: (n,)."""
        if not len(self) or not len(values):
            return np.full(len(values), -1, dtype=np.int64)
        order, lo, hi, loss = self._by_loss
        found = nearest_clusters.covering(np.ascontiguousarray(values), lo, hi, loss, draws)
        return np.where(found >= 0, order[found], -1)

    @property
    def _by_loss(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The places of all clusters in ascending order of loss, and their bounds and losses."""
        if self._sorted is None:
            order = np.argsort(self.loss, kind="stable")
            lo, hi = (np.ascontiguousarray(bound[order].T) for bound in (self.lo, self.hi))
            self._sorted = order, lo, hi, self.loss[order]
        return self._sorted

    def snapshot(self) -> State:
        names = ("number", "loss", "since", "lo", "hi")
        return {f"reusable.{name}": getattr(self, name).copy() for name in names}

    def restore(self, state: State) -> None:
        for name in ("number", "loss", "since", "lo", "hi"):
            setattr(self, name, state[f"reusable.{name}"].copy())
        self._sorted = None
