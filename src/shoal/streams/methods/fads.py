"""FADS: whole buffers published at once, by clusters that were published before, then by new ones.

Guo, Zhang. Fast clustering-based anonymization algorithm for data streams. Journal of Software
24(8):1852-1867, 2013. Algorithm 1, procedures 1 and 2, function 1.
Promise: every record is published before `delta` further ones have arrived; every new cluster has k
distinct subjects of its own; a record joins an older cluster only if that covers it, and one more
never makes k fewer. State: `delta` records and ceil(c0 * delta / k) clusters.
Paper: Set_tp, Set_wc, C_s                Here: buffer, reusable, `capacity`
Reading: "least increase of loss" among covering clusters is 0 for each of them; the prose's least
    loss decides, ties at random (D1). At most ceil(c0 * delta / k) clusters are kept (D2).
Reading: the paper's k - 1 nearest have another person than the first record, but may share one
    among them, which breaks its own definition 1. `strict` takes pairwise distinct people (D3), and
    goes on while k people are left (D4). Records left over join the cluster whose loss grows least
    (D5).
Reading: a cluster of loss tau or more is published, and not used again (D6).
Reading: the paper's distance of two records is 0 for all of them (equation 4); here it is the loss
    of the smallest box over both, a metric.
Reading: the pseudo-code takes the k - 1 nearest of the first record (`neighbour=knn`), while the
    stated cost and the flat curve of figure 11 fit a cluster that grows by the record which adds
    least loss (`neighbour=grow`); both are here (D9).
Reading: what grows most often meets ties, as the box covers many records already. The paper is
    silent; we take the rarest of them, which other clusters would have to stretch for. The k - 1
    nearest take the earliest (D7).
Ours: `neighbour=near`, the default, grows the cluster among the first record's 3k nearest people,
    and then divides near clusters anew where that loses less: less loss than `grow`, nearer to the
    time of `knn`. `refine` exchanges records between new clusters by annealing, as methods for
    tables do.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import ClassVar

import numpy as np

from shoal.data.classes import Population
from shoal.data.option import parameter
from shoal.data.partition import Partition
from shoal.data.stream import DROP, HOLD, NEW, REUSE, SUPPRESS, Arrivals, Emissions, Space, State
from shoal.errors import InputError
from shoal.protocols import Promises, StreamMethod, StreamPromises
from shoal.search.refinement import quick_search, refine
from shoal.search.refinery import Search
from shoal.streams.kernels import grown_clusters, nearest_clusters, stream_distances
from shoal.streams.methods import emission

# New clusters of a stream refined as table methods refine their classes, by k alone.
#
# Ours. Clusters keep their sizes and how many people each has, see `search.refinement`; what else
# is promised is repaired afterwards.


EFFORTS = ("none", "light", "full")


class _PeopleAlone(Promises):
    """k different people in every cluster, and nothing else."""

    needs_more_than_k = False

    def __init__(self, people: np.ndarray, k: int) -> None:
        self._people, self.k = people, k

    def holds(
        self,
        labels: np.ndarray,
        count: int,
        quasi: Mapping[str, np.ndarray] | None = None,
        population: Mapping[str, Population] | None = None,
    ) -> np.ndarray:
        return emission.people_of(self._people, labels, count) >= self.k


def refined(
    space: Space,
    records: Arrivals,
    labels: np.ndarray,
    count: int,
    k: int,
    effort: str,
    rng: np.random.Generator,
) -> tuple[np.ndarray, int]:
    """Clusters of the same sizes that lose no more. labels: (n,) int32. effort: of `EFFORTS`."""
    if effort == "none" or count < 2:
        return labels, count
    matrix = emission.matrix_of(space, records)
    search = Search(1, 4, 0.01, 0.005, resizes=False, rebuilds=False, run=64, orders=2)
    if effort == "full":
        search = quick_search(matrix, k, resizes=False)
    promises = _PeopleAlone(records.people, k)
    found = refine(matrix, Partition(labels, count), promises, search, rng)
    return found.labels, found.count


PAPER: dict[str, str | bool] = {
    **{"neighbour": "knn", "refine": "none", "leftovers": "star"},
    **{"strict": False, "strict_release": False},
}
"""What preset=paper sets."""
NEIGHBOURS = ("near", "knn", "grow")
REACH = 3
"""With neighbour=near, a cluster grows among this many times k people."""
PROBES = 16
"""A record is as rare as its distances to this number of random ones add up to."""
TRIES, ROUNDS = 2, 2
"""With neighbour=near, each cluster is divided with each of its TRIES nearest, ROUNDS times."""


@dataclass(frozen=True)
class Fads(StreamMethod):
    """Fast clustering-based anonymization of data streams."""

    name: ClassVar[str] = "fads"
    paper: ClassVar[str] = (
        "Guo, Zhang. Fast clustering-based anonymization algorithm for data streams. Journal of"
        " Software 24(8), 2013."
    )

    delta: int = parameter("records that are collected before a release", default=10_000, low=2)
    tau: float = parameter("clusters that lose less are used again", default=0.5, low=0.0, high=1.0)
    c0: float = parameter(
        "clusters kept for use again, in units of delta / k", default=1.0, low=1.0
    )
    neighbour: str = parameter(
        "a cluster grows by least loss among all (grow), or near its first record and is"
        " then divided anew with near ones (near), or is the nearest (knn)",
        default="near",
        choices=NEIGHBOURS,
    )
    refine: str = parameter(
        "exchange records between near new clusters afterwards (ours): less loss, and"
        " slower; full: more of both",
        default="none",
        choices=EFFORTS,
    )
    strict: bool = parameter("all members of a cluster are different people", default=True)
    strict_release: bool = parameter(
        "use a cluster again only for k different people in the same release", default=False
    )
    leftovers: str = parameter(
        "records that fit no cluster: suppressed (star), kept for later, or dropped",
        default="star",
        choices=emission.LEFTOVERS,
    )
    snap: int = field(default=0, metadata=emission.SNAP)
    preset: str = parameter(
        "paper: as printed, members may share people", default="", choices=("", "paper")
    )

    def __post_init__(self) -> None:
        if self.preset == "paper":
            for name, value in PAPER.items():
                object.__setattr__(self, name, value)

    def start(self, space: Space, promises: StreamPromises, seed: int) -> "FadsPublisher":
        parameters = emission.with_effective_delay(self, promises.k)
        if self.neighbour != "knn" and not self.strict:
            raise InputError(
                f"method 'fads': neighbour={self.neighbour} takes different people always; set"
                " neighbour=knn"
            )
        if self.refine != "none" and not self.strict:
            raise InputError(
                "method 'fads': refine keeps different people in a cluster; set strict=true"
            )
        return FadsPublisher(parameters, space, promises, seed)


class FadsPublisher:
    """Set_tp and Set_wc, and how they change."""

    def __init__(self, parameters: Fads, space: Space, promises: StreamPromises, seed: int) -> None:
        self._parameters = parameters
        self._space = space
        self._promises = promises
        self._seed = seed
        self._capacity = ceil(parameters.c0 * parameters.delta / promises.k)
        self._buffer = emission.Buffer(parameters.delta, space.attributes)
        self._reusable = emission.ReusableClusters(space.attributes)
        self._release, self._made, self._now = 0, 0, -1

    def push(self, arrivals: Arrivals) -> Iterator[Emissions]:
        """Releases whenever `delta` records are held."""
        at = 0
        while at < len(arrivals):
            end = min(at + self._buffer.room, len(arrivals))
            self._buffer.add(arrivals.part(slice(at, end)))
            self._now, at = int(arrivals.seq[end - 1]), end
            if not self._buffer.room:
                yield self._release_buffer(at_end=False)

    def expire(self, seq: int) -> Iterator[Emissions]:
        """A release before its time, if some record is that old."""
        if len(self._buffer) and self._buffer.records.seq[0] <= seq:
            yield self._release_buffer(at_end=False)

    def flush(self) -> Iterator[Emissions]:
        if len(self._buffer):
            yield self._release_buffer(at_end=True)

    def _release_buffer(self, at_end: bool) -> Emissions:
        records = self._buffer.records
        rng = np.random.default_rng([self._seed, 2, self._release])
        lacking = np.isnan(records.values).any(axis=1)
        kind = np.where(lacking, SUPPRESS, emission.KIND_OF_LEFTOVER[self._parameters.leftovers])
        cluster = np.full(len(records), -1, np.int64)

        # first, records that a published cluster covers leave under it
        used = self._output_with_work_cluster(records, rng.random(len(records)))
        kind[used >= 0], cluster[used >= 0] = REUSE, self._reusable.number[used[used >= 0]]

        # the others form new clusters
        rest = np.flatnonzero((used < 0) & ~lacking)
        labels, made, lo, hi = self._output_with_condensation(records.part(rest), rng)
        new = rest[labels >= 0]
        kind[new], cluster[new] = NEW, made[labels[labels >= 0]]

        # what is held for later may fill half of the buffer; beyond that the oldest are dropped
        waits = (kind == HOLD) & (not at_end)
        if waits.sum() > self._parameters.delta // 2:
            old = np.flatnonzero(waits)[: int(waits.sum()) - self._parameters.delta // 2]
            kind[old], waits[old] = DROP, False
        out = ~waits
        decided = emission.emissions(
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
        self._buffer.keep(waits)
        self._release += 1
        return decided

    def _output_with_work_cluster(self, records: Arrivals, draws: np.ndarray) -> np.ndarray:
        """Procedure 1: the place of the reusable cluster that publishes each record, else -1."""
        # a published cluster already holds k subjects, so one more is safe (section 3.2); NaN is
        # covered by nothing
        used = self._reusable.covering(records.values, draws)
        while self._promises.needs_more_than_k and (used >= 0).any():
            covered = np.flatnonzero(used >= 0)
            allowed = self._promises.may_join(
                records.part(covered), self._reusable.number[used[covered]]
            )
            used[covered[~allowed]] = -1
            if not self._drop_few(records.people, used):
                return used  # those who may join are those who do
        self._drop_few(records.people, used)
        return used

    def _drop_few(self, people: np.ndarray, used: np.ndarray) -> bool:
        """With `strict_release`, takes back clusters of fewer than k people; whether it did."""
        if not self._parameters.strict_release:
            return False
        enough = emission.people_of(people, used, len(self._reusable)) >= self._promises.k
        few = (used >= 0) & ~np.append(enough, False)[used]
        used[few] = -1
        return bool(few.any())

    def _output_with_condensation(
        self, records: Arrivals, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Procedure 2: each record's new cluster, else -1; the clusters' numbers and cells."""
        partition = emission.repaired(
            self._space, self._promises, records, *self._greedy_condense(records, rng)
        )
        made = self._made + np.arange(partition.count, dtype=np.int64)
        lo, hi, loss = self._space.published_bounds(
            *emission.boxes(records.values, partition.labels, partition.count)
        )
        self._made += partition.count
        again = loss < self._parameters.tau
        self._reusable.add(made[again], lo[again], hi[again], loss[again])
        self._reusable.newest(self._capacity)
        return partition.labels, made, lo, hi

    def _greedy_condense(
        self, records: Arrivals, rng: np.random.Generator
    ) -> tuple[np.ndarray, int]:
        """Function 1: clusters of k people; whoever is left joins where the loss grows least."""
        near, leaf = self._space.scaled_positions(records.values), self._space.leaf(records.values)
        people, picks = emission.person_codes(records.people), rng.permutation(len(records))
        k, nobody, costs = self._promises.k, np.zeros(0, np.int32), self._space.costs
        if self._parameters.neighbour == "knn":
            rule = (
                nearest_clusters.BY_NEAREST
                if self._parameters.strict
                else nearest_clusters.OWN_ONLY
            )
            labels, count = nearest_clusters.nearest(near, leaf, people, picks, k, rule, *costs)
        else:
            labels, count = self._grown(near, leaf, people, picks)
        # records that are left over join the cluster whose loss grows least
        if count:
            nearest_clusters.join(near, leaf, nobody, labels, count, *costs)
        return refined(self._space, records, labels, count, k, self._parameters.refine, rng)

    def _grown(
        self, near: np.ndarray, leaf: np.ndarray, people: np.ndarray, picks: np.ndarray
    ) -> tuple[np.ndarray, int]:
        """Clusters that grow by least loss; of equals the rarest, as kernels take the first."""
        k, costs = self._promises.k, self._space.costs
        order = np.argsort(
            -stream_distances.rarity(near, leaf, picks[:PROBES], *costs), kind="stable"
        )
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        near, leaf = np.ascontiguousarray(near[:, order]), np.ascontiguousarray(leaf[:, order])
        people, picks = people[order] if len(people) else people, place[picks]
        if self._parameters.neighbour == "grow":
            labels, count = grown_clusters.grown(near, leaf, people, picks, k, *costs)
        else:
            labels, count = grown_clusters.grown_near(near, leaf, people, picks, k, REACH, *costs)
            grown_clusters.regrouped(near, leaf, people, labels, k, TRIES, ROUNDS, *costs)
        return labels[place], count

    def snapshot(self) -> State:
        counters = np.array([self._release, self._made, self._now], np.int64)
        return {**self._buffer.snapshot(), **self._reusable.snapshot(), "counters": counters}

    def restore(self, state: State) -> None:
        self._buffer.restore(state)
        self._reusable.restore(state)
        self._release, self._made, self._now = (int(n) for n in state["counters"])
