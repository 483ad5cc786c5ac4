"""FAANST: windows clustered by k-means; who is in no cluster of k people waits for the next window.

Zakerzadeh, Osborn. FAANST: Fast anonymizing algorithm for numerical streaming data. DPM 2010, LNCS
6514.
Delay variants: Zakerzadeh, Osborn. Delay-sensitive approaches for anonymizing numerical streaming
data. International Journal of Information Security 12(5):423-437, 2013.
Promise: every new cluster has k distinct subjects of its own. With `delay=none`, as in the first
paper, nobody is promised when they leave; `passive` and `proactive` release everybody before
`delta` further records have arrived.
Paper: delta, mu, accepted clusters       Here: delta, reusable
Reading: written from the abstracts and from Guo, Zhang 2013 section 3.1.2. First centres are random
    records, at most `rounds` rounds, a centre without records stays (see `kernels.mixed_means`).
    Only members of clusters that are too small wait. Where more than half of the window would wait,
    clusters that are too small are merged with their nearest, and if even that keeps no promise,
    the oldest are
    suppressed: a window always makes room.
Reading: hierarchies have leaves for centres; the paper is about numbers alone. `keep` bounds the
    clusters kept for use again, which the paper keeps for ever.
Reading: who is forced out joins a published cluster that covers them, else the cluster of this
    window whose loss grows least, else is suppressed. Before the first record's time is over,
    `passive` forces only those who can't wait for the next record; `proactive` all who, as half a
    window comes, would be late.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil
from typing import ClassVar

import numpy as np

from shoal.data.option import parameter
from shoal.data.partition import Partition
from shoal.data.stream import NEW, REUSE, SUPPRESS, Arrivals, Emissions, Space, State
from shoal.errors import InfeasibleError
from shoal.protocols import StreamMethod, StreamPromises
from shoal.search.segments import merge_failing
from shoal.streams.kernels import nearest_clusters
from shoal.streams.methods.castle import KEEP
from shoal.streams.methods.emission import (
    SNAP,
    TICK,
    Buffer,
    ReusableClusters,
    boxes,
    emissions,
    matrix_of,
    people_of,
    repaired,
    with_effective_delay,
)
from shoal_papers.baselines.kernels import mixed_means

DELAYS = ("none", "passive", "proactive")


@dataclass(frozen=True)
class Faanst(StreamMethod):
    """k-means over windows."""

    name: ClassVar[str] = "faanst"
    paper: ClassVar[str] = (
        "Zakerzadeh, Osborn. FAANST: Fast anonymizing algorithm for numerical streaming data. DPM"
        " 2010, LNCS 6514. A reconstruction."
    )

    delta: int = parameter("records in a window", default=10_000, low=2)
    tau: float = parameter("clusters that lose less are used again", default=0.5, low=0.0, high=1.0)
    delay: str = parameter(
        "who is forced out before the next window", default="passive", choices=DELAYS
    )
    rounds: int = parameter("rounds of k-means at most", default=20, low=1)
    keep: int = field(default=1000, metadata=KEEP)
    snap: int = field(default=0, metadata=SNAP)
    tick: int = field(default=1, metadata=TICK)

    def start(self, space: Space, promises: StreamPromises, seed: int) -> FaanstPublisher:
        """An empty window."""
        parameters = with_effective_delay(self, promises.k)
        return FaanstPublisher(parameters, space, promises, seed)


class FaanstPublisher:
    """The window and the clusters that may be used again."""

    def __init__(
        self, parameters: Faanst, space: Space, promises: StreamPromises, seed: int
    ) -> None:
        self._parameters = parameters
        self._space = space
        self._promises = promises
        self._seed = seed
        self._buffer = Buffer(parameters.delta, space.attributes)
        self._reusable = ReusableClusters(space.attributes)
        self._release, self._made, self._now = 0, 0, -1

    def push(self, arrivals: Arrivals) -> Iterator[Emissions]:
        """A round whenever the window is full, or the oldest can't wait for the next record."""
        at = 0
        while at < len(arrivals):
            end = min(at + self._room, len(arrivals))
            self._buffer.add(arrivals.part(slice(at, end)))
            self._now, at = int(arrivals.seq[end - 1]), end
            if self._room == 0:
                yield self._round(at_end=False)

    @property
    def _room(self) -> int:
        """Records that may still come before the next round."""
        room = self._buffer.room
        if self._parameters.delay != "none" and len(self._buffer):
            room = min(
                room, int(self._buffer.records.seq[0]) + self._parameters.delta - 1 - self._now
            )
        return room

    def expire(self, seq: int) -> Iterator[Emissions]:
        """A round before its time, if some record is that old; it forces all out who are."""
        if len(self._buffer) and self._buffer.records.seq[0] <= seq:
            yield self._round(at_end=False, forced=seq)

    def flush(self) -> Iterator[Emissions]:
        """The last round, which forces everybody out."""
        if len(self._buffer):
            yield self._round(at_end=True)

    def _round(self, at_end: bool, forced: int = -1) -> Emissions:
        records, count = self._buffer.records, len(self._buffer)
        rng = np.random.default_rng([self._seed, 5, self._release])
        kind, cluster = np.full(count, -1), np.full(count, -1, np.int64)
        lacking = np.isnan(records.values).any(axis=1)
        kind[lacking] = SUPPRESS

        # step 1: records that a good published cluster covers, and may join, leave under it
        used = self._reusable.covering(records.values, rng.random(count))
        asks = np.flatnonzero(used >= 0)
        if len(asks):
            numbers = self._reusable.number[used[asks]]
            fits = self._promises.may_join(records.part(asks), numbers)
            kind[asks[fits]], cluster[asks[fits]] = REUSE, numbers[fits]

        # step 2: the others are clustered
        rest = np.flatnonzero(kind < 0)
        part = records.part(rest)
        must_leave = part.seq <= (self._now if at_end else max(forced, self._latest_to_force()))
        partition = self._cluster(part, must_leave, rng)
        made = self._made + np.arange(partition.count, dtype=np.int64)
        self._made += partition.count
        lo, hi, loss = self._space.published_bounds(
            *boxes(part.values, partition.labels, partition.count)
        )
        in_one = partition.labels >= 0
        kind[rest[in_one]], cluster[rest[in_one]] = NEW, made[partition.labels[in_one]]
        # step 3: records that may not wait longer are suppressed, and so are the oldest of too many
        kind[rest[~in_one & must_leave]] = SUPPRESS
        crowd = np.flatnonzero(kind < 0)[
            : max(0, int((kind < 0).sum()) - self._parameters.delta // 2)
        ]
        kind[crowd] = SUPPRESS
        good = loss < self._parameters.tau
        self._reusable.add(made[good], lo[good], hi[good], loss[good])
        if self._parameters.keep:
            self._reusable.newest(self._parameters.keep)

        out = kind >= 0
        decided = emissions(
            records.part(out),
            kind[out],
            cluster[out],
            self._release,
            self._now,
            made,
            lo,
            hi,
            self._reusable.number,
        )
        self._buffer.keep(~out)
        self._release += 1
        return decided

    def _latest_to_force(self) -> int:
        """The last record whose time would be over before the next round."""
        ahead = {
            "none": -self._parameters.delta,
            "passive": 1,
            "proactive": ceil(self._parameters.delta / 2),
        }[self._parameters.delay]
        return (
            self._now - self._parameters.delta + ahead if self._parameters.delay != "none" else -1
        )

    def _cluster(
        self, records: Arrivals, must_leave: np.ndarray, rng: np.random.Generator
    ) -> Partition:
        """The clusters of this window: those of k-means that keep every promise, joined by who is
        forced out.
        """
        k, n = self._promises.k, len(records)
        people = people_of(records.people, np.zeros(n, np.int64), 1)[0] if n else 0
        if people < k:
            return Partition(np.full(n, -1, np.int32), 0)
        near, leaf, costs = (
            self._space.scaled_positions(records.values),
            self._space.leaf(records.values),
            self._space.costs,
        )
        # k-means from as many random records as there could be clusters of k
        starts = np.sort(rng.permutation(n)[: n // k])
        labels = mixed_means.lloyd(near, leaf, starts, self._parameters.rounds, *costs)
        found = Partition.of(labels)
        good = self._hold(records, found.labels, found.count)
        waiting = ~good[found.labels]
        if waiting.sum() > self._parameters.delta // 2 or not good.any():
            return self._merged(records, found)
        # clusters that hold leave; of the others, only records that must leave are joined to them
        labels = np.where(waiting, -1, found.labels).astype(np.int32)
        forced = np.flatnonzero(waiting & must_leave)
        kept = Partition.of(labels)
        if not len(forced):
            return repaired(self._space, self._promises, records, kept.labels, kept.count)
        chosen = np.flatnonzero((kept.labels >= 0) | (waiting & must_leave))
        own = kept.labels[chosen].copy()
        nobody = np.zeros(0, np.int32)
        nearest_clusters.join(
            np.ascontiguousarray(near[:, chosen]),
            np.ascontiguousarray(leaf[:, chosen]),
            nobody,
            own,
            kept.count,
            *costs,
        )
        joined = np.full(n, -1, np.int32)
        joined[chosen] = own
        return repaired(self._space, self._promises, records, joined, kept.count)

    def _hold(self, records: Arrivals, labels: np.ndarray, count: int) -> np.ndarray:
        holds = people_of(records.people, labels, count) >= self._promises.k
        if self._promises.needs_more_than_k:
            holds &= self._promises.holds(records, labels, count)
        return holds

    def _merged(self, records: Arrivals, found: Partition) -> Partition:
        """The clusters with those that are too small merged into their nearest."""
        try:
            merged = merge_failing(
                matrix_of(self._space, records),
                found,
                lambda labels, count: self._hold(records, labels, count),
            )
        except InfeasibleError:
            return Partition(np.full(len(records), -1, np.int32), 0)
        return repaired(self._space, self._promises, records, merged.labels, merged.count)

    def snapshot(self) -> State:
        """Window, reusable clusters and counters."""
        counters = np.array([self._release, self._made, self._now], np.int64)
        return {**self._buffer.snapshot(), **self._reusable.snapshot(), "counters": counters}

    def restore(self, state: State) -> None:
        """All of it as it was."""
        self._buffer.restore(state)
        self._reusable.restore(state)
        self._release, self._made, self._now = (int(n) for n in state["counters"])
