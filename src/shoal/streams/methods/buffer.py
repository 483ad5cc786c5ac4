"""What stream methods share: the buffer, published clusters that may be used again, and
emissions.
"""

from __future__ import annotations

import numpy as np

from shoal.data.stream import Arrivals, State
from shoal.streams.kernels import covering

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
        """Keeps at most so many, dropping the oldest."""
        if len(self) > most:
            self.keep(slice(len(self) - most, None))

    def covering(self, values: np.ndarray, draws: np.ndarray) -> np.ndarray:
        """The place of the covering cluster of least loss, -1 where none; ties by draw. (n,)
        int64
        """
        if not len(self) or not len(values):
            return np.full(len(values), -1, dtype=np.int64)
        order, lo, hi, loss = self._by_loss
        found = covering.covering(np.ascontiguousarray(values), lo, hi, loss, draws)
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


"""What becomes of records that fit no cluster; HOLD means that they wait, and stay unpublished at
the end.
"""
