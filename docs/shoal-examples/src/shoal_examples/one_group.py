"""One group: whatever has been collected is published as one cluster."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shoal.extend import (
    NEW,
    SUPPRESS,
    Arrivals,
    Emissions,
    InputError,
    Space,
    State,
    StreamMethod,
    StreamPromises,
    StreamPublisher,
)


@dataclass(frozen=True)
class OneGroup(StreamMethod):
    """Parameters of the method."""

    name: ClassVar[str] = "one-group"
    paper: ClassVar[str] = "none; an example from Shoal's documentation"

    delta: int = field(
        default=100, metadata={"help": "records collected before a release", "low": 2}
    )

    def start(self, space: Space, promises: StreamPromises, seed: int) -> "OneGroupPublisher":
        """A publisher that has seen nothing."""
        if self.delta < promises.k:
            raise InputError(
                f"method 'one-group': delta = {self.delta} is less than k = {promises.k}; raise it"
            )
        return OneGroupPublisher(self.delta, space, promises)


class OneGroupPublisher(StreamPublisher):
    """The records that wait, and the number of the next release."""

    def __init__(self, delta: int, space: Space, promises: StreamPromises) -> None:
        self._delta, self._space, self._promises = delta, space, promises
        self._waiting = Arrivals.joined([], space.attributes)
        self._release = 0

    def push(self, arrivals: Arrivals) -> Iterator[Emissions]:
        """A release whenever delta records are waiting."""
        at = 0
        while at < len(arrivals):
            end = min(at + self._delta - len(self._waiting), len(arrivals))
            parts = [self._waiting, arrivals.part(slice(at, end))]
            self._waiting, at = Arrivals.joined(parts, self._space.attributes), end
            if len(self._waiting) == self._delta:
                yield self._publish()

    def expire(self, seq: int) -> Iterator[Emissions]:
        """A release before its time, if a record that old is waiting."""
        if len(self._waiting) and self._waiting.seq[0] <= seq:
            yield self._publish()

    def flush(self) -> Iterator[Emissions]:
        """The last release."""
        if len(self._waiting):
            yield self._publish()

    def _publish(self) -> Emissions:
        records, promises = self._waiting, self._promises
        complete = ~np.isnan(records.values).any(axis=1)  # the others must be suppressed
        labels = promises.capped(records, np.where(complete, 0, -1).astype(np.int32))
        members = labels == 0
        fits = len(np.unique(records.people[members])) >= promises.k
        if not (fits and promises.holds(records, labels, 1)[0]):
            members = np.zeros(len(records), dtype=bool)
        clusters = [records.values[members]] if members.any() else []
        shape = (len(clusters), self._space.attributes)
        lo = np.reshape([values.min(axis=0) for values in clusters], shape)
        hi = np.reshape([values.max(axis=0) for values in clusters], shape)
        lo, hi, _ = self._space.published_bounds(
            lo, hi
        )  # widened to whole nodes of the hierarchies
        decided = Emissions(
            seq=records.seq,
            people=records.people,
            values=records.values,
            kind=np.where(members, NEW, SUPPRESS).astype(np.int8),
            release=np.full(len(records), self._release, np.int64),
            cluster=np.where(members, self._release, -1),
            emitted=np.full(len(records), records.seq[-1], np.int64),
            made=np.full(len(clusters), self._release, np.int64),
            lo=lo,
            hi=hi,
            live=np.zeros(0, np.int64),  # no cluster is used a second time
        )
        self._waiting = Arrivals.joined([], self._space.attributes)
        self._release += 1
        return decided

    def snapshot(self) -> State:
        """All state, as arrays."""
        waiting = self._waiting
        return {
            "seq": waiting.seq.copy(),
            "values": waiting.values.copy(),
            "people": waiting.people.copy(),
            "release": np.array(self._release),
        }

    def restore(self, state: State) -> None:
        """Continues where the snapshot was taken."""
        self._waiting = Arrivals(state["seq"], state["values"], state["people"])
        self._release = int(state["release"])
