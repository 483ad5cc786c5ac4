"""FADS, one record at a time: the oldest leaves when its delay is over, with its nearest or alone.

Guo, Zhang. Fast clustering-based anonymization approaches with time constraints for data streams.
Knowledge-Based Systems 46:95-108, 2013: what most later papers mean by FADS.
Promise: every record leaves before `delta` further ones have arrived; every new cluster has k
distinct subjects of its own; a cluster is used again for `lifetime` records after it was made.
Paper: T_kc                               Here: lifetime
Reading: written from public programs that port it; the paper's text was not at hand. Lifetime is
    counted in records that arrived. At the end of the stream the records leave oldest first by the
    same rules.
Reading: the programs let the oldest go when the buffer holds `delta` records. When a cluster has
    left, others then wait for its places to be filled again, far longer than `delta`; here each
    record's own delay counts.
Reading: a new cluster that breaks a promise beyond k takes in its nearest, doubling its people
until it keeps it.
Trap: a record that leaves alone leaves exactly `delta` - 1 records after it came, which reveals
when it came.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shoal.data.option import parameter
from shoal.data.stream import NEW, REUSE, SUPPRESS, Arrivals, Emissions, Space, State
from shoal.protocols import StreamMethod, StreamPromises
from shoal.streams.methods.emission import (
    KIND_OF_LEFTOVER,
    SNAP,
    STAR_OR_DROP,
    TICK,
    Buffer,
    ReusableClusters,
    boxes,
    emissions,
    person_codes,
    with_effective_delay,
)
from shoal_papers.baselines.kernels import nearest_around


@dataclass(frozen=True)
class FadsTuple(StreamMethod):
    """FADS by single records, with clusters that expire."""

    name: ClassVar[str] = "fads-tuple"
    paper: ClassVar[str] = (
        "Guo, Zhang. Fast clustering-based anonymization approaches with time constraints for data"
        " streams. Knowledge-Based Systems 46, 2013."
    )

    delta: int = parameter("records that wait at most", default=2000, low=2)
    lifetime: int = parameter("records for which a cluster may be used again", default=200, low=0)
    leftovers: str = field(default="star", metadata=STAR_OR_DROP)
    snap: int = field(default=0, metadata=SNAP)
    tick: int = field(default=1, metadata=TICK)

    def start(self, space: Space, promises: StreamPromises, seed: int) -> FadsTuplePublisher:
        """An empty buffer."""
        parameters = with_effective_delay(self, promises.k)
        return FadsTuplePublisher(parameters, space, promises, seed)


class FadsTuplePublisher:
    """The records that wait, and the clusters that have not expired."""

    def __init__(
        self, parameters: FadsTuple, space: Space, promises: StreamPromises, seed: int
    ) -> None:
        self._parameters = parameters
        self._space = space
        self._promises = promises
        self._seed = seed
        self._leftover = KIND_OF_LEFTOVER[parameters.leftovers]
        self._buffer = Buffer(parameters.delta, space.attributes)
        self._reusable = ReusableClusters(space.attributes)
        self._release, self._made, self._now = 0, 0, -1

    def push(self, arrivals: Arrivals) -> Iterator[Emissions]:
        """Whenever the delay of the oldest record is over, it leaves."""
        at = 0
        while at < len(arrivals):
            end = min(at + self._room, len(arrivals))
            self._buffer.add(arrivals.part(slice(at, end)))
            self._now, at = int(arrivals.seq[end - 1]), end
            if not self._room:
                yield self._publish()

    @property
    def _room(self) -> int:
        """Records that may still come before the oldest must leave."""
        oldest = int(self._buffer.records.seq[0]) if len(self._buffer) else self._now + 1
        return oldest + self._parameters.delta - 1 - self._now

    def expire(self, seq: int) -> Iterator[Emissions]:
        """Everybody up to this record, oldest first."""
        while len(self._buffer) and self._buffer.records.seq[0] <= seq:
            yield self._publish()

    def flush(self) -> Iterator[Emissions]:
        """Everybody, oldest first."""
        yield from self.expire(self._now)

    def _publish(self) -> Emissions:
        """The oldest record leaves: alone under an earlier cluster, in a cluster of its own, or
        suppressed.
        """
        young = self._now - self._reusable.since <= self._parameters.lifetime
        if not young.all():
            self._reusable.keep(young)
        records = self._buffer.records
        oldest = records.part(slice(0, 1))
        if np.isnan(oldest.values).any():
            return self._alone(SUPPRESS, -1)
        draw = np.random.default_rng([self._seed, 6, int(oldest.seq[0])]).random(1)
        used = int(self._reusable.covering(oldest.values, draw)[0])
        if used >= 0 and not self._promises.may_join(oldest, self._reusable.number[[used]])[0]:
            used = -1
        members = self._cluster(records)
        if members is None:
            return self._alone(REUSE, used) if used >= 0 else self._alone(self._leftover, -1)
        lo, hi, loss = self._space.published_bounds(
            *boxes(records.values[members], np.zeros(len(members), np.int64), 1)
        )
        if used >= 0 and self._reusable.loss[used] < loss[0]:
            return self._alone(REUSE, used)
        made = np.array([self._made], np.int64)
        self._reusable.add(made, lo, hi, loss, self._now)
        self._made += 1
        kind, cluster = np.full(len(members), NEW), np.full(len(members), made[0])
        return self._out(members, kind, cluster, made, lo, hi)

    def _cluster(self, records: Arrivals) -> np.ndarray | None:
        """Places of the oldest record and its k - 1 nearest of other people; None where there are
        too few.
        """
        whole = np.flatnonzero(~np.isnan(records.values).any(axis=1))
        part = records.part(whole)
        near, leaf, people = (
            self._space.scaled_positions(part.values),
            self._space.leaf(part.values),
            person_codes(part.people),
        )
        have = people.max() + 1 if len(people) else len(part)
        k = self._promises.k
        while k <= have:
            member = nearest_around.around(near, leaf, people, 0, k, *self._space.costs)
            if (
                not self._promises.needs_more_than_k
                or self._promises.holds(part, np.where(member, 0, -1).astype(np.int32), 1)[0]
            ):
                return whole[member]
            k = min(2 * k, have) if k < have else have + 1
        return None

    def _alone(self, kind: int, used: int) -> Emissions:
        nothing = np.zeros((0, self._space.attributes))
        cluster = self._reusable.number[used] if used >= 0 else -1
        return self._out(
            np.array([0]),
            np.array([kind]),
            np.array([cluster]),
            np.zeros(0, np.int64),
            nothing,
            nothing,
        )

    def _out(
        self,
        rows: np.ndarray,
        kind: np.ndarray,
        cluster: np.ndarray,
        made: np.ndarray,
        lo: np.ndarray,
        hi: np.ndarray,
    ) -> Emissions:
        out = emissions(
            self._buffer.records.part(rows),
            kind,
            cluster,
            self._release,
            self._now,
            made,
            lo,
            hi,
            self._reusable.number,
        )
        stays = np.ones(len(self._buffer), dtype=bool)
        stays[rows] = False
        self._buffer.keep(stays)
        self._release += 1
        return out

    def snapshot(self) -> State:
        """Buffer, reusable clusters and counters."""
        counters = np.array([self._release, self._made, self._now], np.int64)
        return {**self._buffer.snapshot(), **self._reusable.snapshot(), "counters": counters}

    def restore(self, state: State) -> None:
        """All of it as it was."""
        self._buffer.restore(state)
        self._reusable.restore(state)
        self._release, self._made, self._now = (int(n) for n in state["counters"])
