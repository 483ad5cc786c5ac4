"""CASTLE: clusters that grow while records wait, each published when its oldest record has waited
enough.

Cao, Carminati, Ferrari, Tan. CASTLE: Continuously anonymizing data streams. IEEE Transactions on
Dependable and Secure Computing 8(3):337-352, 2011.
Promise: a record is published before more than `delta` further ones have arrived; every new cluster
has k distinct subjects of its own.
Paper: Gamma, Omega, k_s, tau     Here: candidates, reusable, reusable cluster, `_tau`
Reading: written from accounts of the paper, in Guo, Zhang 2013 section 3.1.2, and from how
    public programs behave; the paper's own text was not at hand. tau begins at 0 and is the mean
    loss of the last `mu` published clusters, refreshed before a cluster is judged. A cluster
    shrinks to the hull of those who stay when a record leaves it alone. At the end of the stream,
    records leave in order of arrival.
Reading: for promises beyond k, parts of a split that break one are merged with their nearest, in
    place of the paper's split by sensitive value.
Ours: the paper keeps every good cluster for ever; `keep` bounds them, so that memory is flat.
Trap: a record that leaves alone leaves exactly `delta` after it came, which tells its time of
arrival.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from shoal.data.partition import Partition
from shoal.data.stream import NEW, REUSE, SUPPRESS, UNIT, Arrivals, Emissions, Space, State
from shoal.protocols import StreamMethod, StreamPromises
from shoal.streams.kernels import candidates, nearest_clusters
from shoal.streams.methods import emission
from shoal.streams.methods.emission import ReusableClusters, boxes

DELTA = {"help": "further records that may arrive before one leaves", "low": 2}
BETA = {"help": "candidate clusters at most", "low": 1}
MU = {"help": "published clusters whose mean loss decides what is good", "low": 1}
KEEP = {"help": "good clusters kept for use again, 0 for all as in the paper", "low": 0}


@dataclass(frozen=True)
class Castle(StreamMethod):
    """Continuously anonymizing data streams via adaptive clustering."""

    name: ClassVar[str] = "castle"
    paper: ClassVar[str] = (
        "Cao, Carminati, Ferrari, Tan. CASTLE: Continuously anonymizing data streams. IEEE TDSC"
        " 8(3), 2011."
    )

    delta: int = field(default=10_000, metadata=DELTA)
    beta: int = field(default=50, metadata=BETA)
    mu: int = field(default=100, metadata=MU)
    keep: int = field(default=1000, metadata=KEEP)
    leftovers: str = field(default="star", metadata=emission.STAR_OR_DROP)
    snap: int = field(default=0, metadata=emission.SNAP)
    tick: int = field(default=1, metadata=emission.TICK)

    def start(self, space: Space, promises: StreamPromises, seed: int) -> "CastlePublisher":
        parameters = emission.with_effective_delay(self, promises.k)
        return CastlePublisher(parameters, space, promises, seed)


class CastlePublisher:
    """Candidates, good clusters, and who waits. full: most people of a candidate, 0: any."""

    full = 0

    def __init__(self, parameters: Any, space: Space, promises: StreamPromises, seed: int) -> None:
        self._parameters = parameters
        self._space = space
        self._promises = promises
        self._seed = seed
        self._leftover = emission.KIND_OF_LEFTOVER[parameters.leftovers]
        slots, beta, d = parameters.delta + 1, parameters.beta, space.attributes
        self._trees = (space.bases, space.parent, space.first, space.last, space.cost)
        places = 8 << int(slots).bit_length()
        self._names = np.zeros(places, np.int64)
        self._names[-1] = places  # so that the table is made anew before it is used
        self._latest = np.full(places, -1, np.int32)
        # a few arrays, as the kernel takes them, and the names of their parts
        codes = np.zeros((slots, d), np.int32)
        ids = np.stack([np.zeros(slots, np.int64), np.full(slots, -1, np.int64)])
        links = np.full((2, slots), -1, np.int32)
        boxes = np.zeros((3, beta, d), np.int32)
        counts = np.zeros((3, beta), np.int64)
        counts[2] = -1
        self._state = (
            self._names,
            self._latest,
            codes,
            ids,
            links,
            boxes,
            counts,
            emission.tree_table(space),
        )
        self._held: dict[str, np.ndarray] = {
            "codes": codes,
            "people": ids[0],
            "seq": ids[1],
            "member": links[0],
            "lo": boxes[0],
            "hi": boxes[1],
            "node": boxes[2],
            "cost": counts[0],
            "size": counts[1],
            "born": counts[2],
        }
        self._values = np.zeros((slots, d))
        self._reusable = ReusableClusters(d)
        self._losses = np.zeros(0)
        self._begun, self._made, self._release, self._now = 0, 0, 0, -1

    # the stream

    def push(self, arrivals: Arrivals) -> Iterator[Emissions]:
        """Puts each record into its cluster; records that waited for the whole delay leave."""
        # compiled code takes records in until one has to leave, or lacks a value
        codes = emission.codes_of(self._space, arrivals.values)
        lacking = np.isnan(arrivals.values).any(axis=1)
        slots, at = len(self._values), 0
        slot = arrivals.seq % slots
        records = np.stack([arrivals.people, arrivals.seq, lacking.astype(np.int64)])
        out: list[Emissions] = []
        while at < len(arrivals):
            begin = at
            rules = [self._begun, self._parameters.beta, self.full, int(self._tau * UNIT)]
            at, self._begun = candidates.arrive(
                at, np.array(rules, np.int64), codes, records, *self._state
            )
            self._values[slot[begin:at]] = arrivals.values[begin:at]
            if (
                at < len(arrivals)
                and lacking[at]
                and (at == begin or not self._is_held((slot[at - 1] + 1) % slots))
            ):
                self._now = int(arrivals.seq[at])
                out.append(self._emitted(arrivals.part(slice(at, at + 1)), SUPPRESS, -1))
                at += 1
            else:
                self._now = int(arrivals.seq[at - 1])
            out += self._delay_constraint(int((self._now + 1) % slots))
            if self._promises.needs_more_than_k or len(out) > MANY:
                yield from out
                out = []
        if out:
            yield Emissions.joined(out)

    def expire(self, seq: int) -> Iterator[Emissions]:
        held = np.flatnonzero((self._held["member"] >= 0) & (self._held["seq"] <= seq))
        for slot in held[np.argsort(self._held["seq"][held])].tolist():
            yield from self._delay_constraint(slot)

    def flush(self) -> Iterator[Emissions]:
        yield from self.expire(self._now)

    def _is_held(self, slot: int) -> bool:
        return bool(self._held["member"][slot] >= 0)

    @property
    def _tau(self) -> float:
        """What a good cluster loses at most: the mean of the last published ones."""
        return float(self._losses.mean()) if len(self._losses) else 0.0

    # releasing

    def _delay_constraint(self, slot: int) -> list[Emissions]:
        """The record in this slot has to leave, if it is still there."""
        if not self._is_held(slot):
            return []
        cluster = int(self._held["member"][slot])
        # its own cluster can leave
        if self._is_enough(self._members(cluster)):
            return self._output_cluster(cluster)
        # or a good published cluster covers it
        one = self._records(np.array([slot]))
        used = self._covering(one)
        if used >= 0:
            self._leave(np.array([slot]))
            return [self._emitted(one, REUSE, int(self._reusable.number[used]))]
        # an outlier if most clusters are larger; and nothing helps if all together are too few
        size, alive = self._held["size"], self._held["born"] >= 0
        larger = int((size[alive] > size[cluster]).sum())
        if larger > alive.sum() / 2 or not self._is_enough(
            np.flatnonzero(self._held["member"] >= 0)
        ):
            self._leave(np.array([slot]))
            return [self._emitted(one, self._leftover, -1)]
        # else its cluster takes in others until it can leave
        while not self._is_enough(self._members(cluster)):
            self._absorb(cluster, self._nearest(cluster))
        return self._output_cluster(cluster)

    def _is_enough(self, slots: np.ndarray) -> bool:
        """Whether these records could leave together: k people, and every promise."""
        # a cap keeps the earliest, as it will when they leave
        slots = slots[np.argsort(self._held["seq"][slots])]
        people = self._held["people"][slots]
        if len(np.unique(people)) < self._promises.k:
            return False
        if not self._promises.needs_more_than_k:
            return True
        return bool(
            self._promises.holds(self._records(slots), np.zeros(len(slots), np.int32), 1)[0]
        )

    def _covering(self, one: Arrivals) -> int:
        """A random one of the good clusters that cover the record and take it; -1 where none."""
        good = self._reusable
        fits = np.flatnonzero(((good.lo <= one.values[0]) & (one.values[0] <= good.hi)).all(axis=1))
        if not len(fits):
            return -1
        chosen = int(fits[self._rng(3, int(one.seq[0])).integers(len(fits))])
        return chosen if self._promises.may_join(one, good.number[[chosen]])[0] else -1

    def _nearest(self, cluster: int) -> int:
        """The other candidate whose union with this one costs least."""
        held = self._held
        others = np.flatnonzero(held["born"] >= 0)
        others = others[others != cluster]
        costs = self._costs(
            np.minimum(held["lo"][others], held["lo"][cluster]),
            np.maximum(held["hi"][others], held["hi"][cluster]),
        )
        return int(others[np.lexsort((held["born"][others], costs))[0]])

    def _absorb(self, cluster: int, other: int) -> None:
        self._move(self._members(other), cluster)

    def _output_cluster(self, cluster: int) -> list[Emissions]:
        """Publishes a cluster, in parts where it is large enough; good parts may be used again."""
        slots = self._members(cluster)
        slots = slots[np.argsort(self._held["seq"][slots])]
        records = self._records(slots)
        labels, count = self._split(records)
        parts = emission.repaired(self._space, self._promises, records, labels, count)
        if not parts.count:  # the whole holds, though no way to part it was found that does
            parts = Partition(self._promises.capped(records, np.zeros(len(records), np.int32)), 1)
        lo, hi, loss = self._space.published_bounds(
            *boxes(records.values, parts.labels, parts.count)
        )
        made = self._made + np.arange(parts.count, dtype=np.int64)
        self._made += parts.count
        for part in range(parts.count):
            self._losses = np.append(self._losses, loss[part])[-self._parameters.mu :]
            if loss[part] < self._tau:
                one = slice(part, part + 1)
                self._reusable.add(made[one], lo[one], hi[one], loss[one])
        if self._parameters.keep:
            self._reusable.newest(self._parameters.keep)
        # a record that a cap keeps back stays in the cluster, with all of its delay
        leaves = parts.labels >= 0
        self._leave(slots[leaves])
        kind = np.full(int(leaves.sum()), NEW)
        return [
            self._emissions(records.part(leaves), kind, made[parts.labels[leaves]], made, lo, hi)
        ]

    def _split(self, records: Arrivals) -> tuple[np.ndarray, int]:
        """Parts of a random record and the k - 1 nearest of one random record of every other
        person.

        What is left of each person goes as a whole to the part whose loss grows least.
        """
        k, costs = self._promises.k, self._space.costs
        people = emission.person_codes(records.people)
        if (people.max() + 1 if len(people) else len(records)) < 2 * k:
            return np.zeros(len(records), np.int32), 1
        near, leaf = self._space.scaled_positions(records.values), self._space.leaf(records.values)
        picks = self._rng(4, self._made).permutation(len(records))
        labels, count = nearest_clusters.nearest(
            near, leaf, people, picks, k, nearest_clusters.BY_DRAW, *costs
        )
        nearest_clusters.join(near, leaf, people, labels, count, *costs)
        return labels, count

    def _costs(self, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
        """What boxes cost, (boxes,) int64. lo, hi: (boxes, d) int32, positions and leaves."""
        base, parent, _, last, price = self._trees
        linear = base < 0
        total = (hi[:, linear].astype(np.int64) - lo[:, linear]).sum(axis=1)
        for j in np.flatnonzero(~linear):
            node = base[j] + lo[:, j]
            while (out := last[node] < hi[:, j]).any():
                node[out] = parent[node[out]]
            total += price[node]
        return total

    # candidates

    def _members(self, cluster: int) -> np.ndarray:
        return np.flatnonzero(self._held["member"] == cluster)

    def _records(self, slots: np.ndarray) -> Arrivals:
        return Arrivals(self._held["seq"][slots], self._values[slots], self._held["people"][slots])

    def _leave(self, slots: np.ndarray) -> None:
        """Records leave their cluster, which shrinks to the hull of the others."""
        cluster = int(self._held["member"][slots[0]])
        self._held["member"][slots] = -1
        self._refresh(cluster)

    def _move(self, slots: np.ndarray, cluster: int) -> None:
        """These records change over to another cluster."""
        left = np.unique(self._held["member"][slots])
        self._held["member"][slots] = cluster
        for changed in (*left.tolist(), cluster):
            self._refresh(changed)

    def _refresh(self, cluster: int) -> None:
        """Bounds and people of a cluster from its records; without records there is none."""
        held, slots = self._held, self._members(cluster)
        if not len(slots):
            held["born"][cluster] = -1
            return
        codes = held["codes"][slots]
        lo, hi = codes.min(axis=0), codes.max(axis=0)
        held["lo"][cluster], held["hi"][cluster] = lo, hi
        base, parent, _, last, _ = self._trees
        for j in np.flatnonzero(base >= 0):
            node = base[j] + lo[j]
            while last[node] < hi[j]:
                node = parent[node]
            held["node"][cluster, j] = node
        held["cost"][cluster] = self._costs(lo[None], hi[None])[0]
        held["size"][cluster] = len(np.unique(held["people"][slots]))

    # emissions

    def _rng(self, purpose: int, number: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, purpose, number])

    def _emitted(self, one: Arrivals, kind: int, cluster: int) -> Emissions:
        nothing = np.zeros((0, self._space.attributes))
        made = np.zeros(0, np.int64)
        return self._emissions(one, np.array([kind]), np.array([cluster]), made, nothing, nothing)

    def _emissions(
        self,
        records: Arrivals,
        kind: np.ndarray,
        cluster: np.ndarray,
        made: np.ndarray,
        lo: np.ndarray,
        hi: np.ndarray,
    ) -> Emissions:
        out = emission.emissions(
            records, kind, cluster, self._release, self._now, made, lo, hi, self._reusable.number
        )
        self._release += 1
        return out

    def snapshot(self) -> State:
        """Candidates, good clusters, the records that wait, and counters."""
        counters = np.array([self._begun, self._made, self._release, self._now], np.int64)
        held = {f"held.{name}": array.copy() for name, array in self._held.items()}
        own = {"values": self._values.copy(), "losses": self._losses, "counters": counters}
        return {**held, **own, **self._reusable.snapshot()}

    def restore(self, state: State) -> None:
        for name, array in self._held.items():
            array[:] = state[f"held.{name}"]
        self._values = state["values"].copy()
        self._latest[:], self._names[-1] = -1, len(self._names)
        self._losses = state["losses"]
        self._reusable.restore(state)
        self._begun, self._made, self._release, self._now = (int(n) for n in state["counters"])


MANY = 4096
"""Emissions that are joined before they go on."""
