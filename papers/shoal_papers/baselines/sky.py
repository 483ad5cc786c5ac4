"""SKY: regions of the declared domain, cut finer where k people arrived, and published whole. A
reconstruction.

Li, Ooi, Wang. Anonymizing streaming data for privacy protection. ICDE, 2008 (three pages).
Promise: every record leaves before `delta` further ones have arrived; a region is first published
for k distinct subjects; bounds of regions don't depend on any record (`cut=middle`). State: `delta`
records, and nodes for 4 * c0 * delta / k cuts in two.
Paper: specialization tree, work node     Here: tree of regions, a node that works
Reading: only accounts of the paper were at hand. A record waits in the leaf where it falls. When k
    people wait in one, all of them leave with its region, the leaf works, and it is cut in the
    middle of the side on which it loses most (over hierarchies, into the node's children). A record
    that is due leaves with the smallest region over it that works. A leaf that can't be cut is used
    again at once.
Reading: the paper deletes published nodes to stay bounded. Here, of the nodes whose children are
    all leaves, the one used longest ago loses its children; it works on, and is cut again when k
    more people have come.
Ours: missing values are a region of their own, once their attribute is cut.
Trap: a record that leaves alone often leaves exactly `delta` - 1 records after it came.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import ceil
from typing import ClassVar

import numpy as np

from shoal.data.option import parameter
from shoal.data.stream import NEW, REUSE, Space, State
from shoal.protocols import StreamMethod, StreamPromises
from shoal.streams.methods.emission import SNAP, STAR_OR_DROP, TICK, with_effective_delay
from shoal_papers.baselines.kernels import regions
from shoal_papers.baselines.region_tree import RegionTree
from shoal_papers.baselines.swaf import DELTA
from shoal_papers.baselines.waiting import OneByOne

NODES = 8
"""Nodes at most, in units of c0 * delta / k."""


@dataclass(frozen=True)
class Sky(StreamMethod):
    """A tree over the domain; a reconstruction."""

    name: ClassVar[str] = "sky"
    paper: ClassVar[str] = (
        "Li, Ooi, Wang. Anonymizing streaming data for privacy protection. ICDE 2008. A"
        " reconstruction."
    )

    delta: int = field(default=10_000, metadata=DELTA)
    c0: float = parameter("regions kept, in units of 8 * delta / k", default=1.0, low=1.0)
    cut: str = parameter(
        "where numbers are cut: in the middle, or at the median of who was published",
        default="middle",
        choices=("middle", "median"),
    )
    leftovers: str = field(default="star", metadata=STAR_OR_DROP)
    snap: int = field(default=0, metadata=SNAP)
    tick: int = field(default=1, metadata=TICK)

    def start(self, space: Space, promises: StreamPromises, seed: int) -> SkyPublisher:
        """The whole domain, not published yet."""
        parameters = with_effective_delay(self, promises.k)
        return SkyPublisher(parameters, space, promises, seed)


class SkyPublisher(OneByOne):
    """The tree, and the records that wait in its leaves."""

    def __init__(self, parameters: Sky, space: Space, promises: StreamPromises, seed: int) -> None:
        super().__init__(parameters, space, promises, seed)
        self._by_median = parameters.cut == "median"
        most = NODES * ceil(parameters.c0 * parameters.delta / promises.k) + 1
        self._tree = RegionTree(space, most)
        self._leaf_of = np.full(parameters.delta, -1, np.int32)

    @property
    def _live(self) -> np.ndarray:
        return self._tree.working

    def _arrive(self, slots: np.ndarray) -> Iterator[None]:
        """Each record waits in its leaf; a leaf where k people wait is published."""
        self._leaf_of[slots] = -1
        slots, at = slots[~self._slots.lacking[slots]], 0
        while at < len(slots):
            at, leaf = self._enter(at, slots, self._enough())
            if leaf >= 0:
                self._now = int(self._slots.seq[slots[at - 1]])
                self._publish(leaf)
                yield

    def _enough(self) -> np.ndarray:
        """How many records have to wait in each leaf before it is looked at."""
        tree = self._tree
        return np.where(tree.is_last & (tree.cluster >= 0), 1, self._promises.k)

    def _enter(self, at: int, slots: np.ndarray, enough: np.ndarray) -> tuple[int, int]:
        tree, held = self._tree, self._slots
        return regions.enter(
            at, slots, held.values, tree.lo, tree.hi, tree.nodes, self._leaf_of, enough
        )

    def _publish(self, leaf: int) -> None:
        """Who waits in a leaf leaves with its region, if they may; then it is cut."""
        tree, slots = self._tree, np.flatnonzero(self._slots.held & (self._leaf_of == leaf))
        slots = slots[np.argsort(self._slots.seq[slots])]
        if not tree.is_last[leaf] and len(np.unique(self._slots.people[slots])) < self._promises.k:
            return
        if tree.cluster[leaf] >= 0:
            leaving = self._join(leaf, slots)
        else:
            leaving = self._make(leaf, slots)
        if len(leaving):
            values = self._slots.values[leaving]
            if not tree.is_last[leaf]:
                self._move(tree.cut(leaf, values if self._by_median else None))

    def _make(self, leaf: int, slots: np.ndarray) -> np.ndarray:
        """Publishes a region for the first time; the slots of who left."""
        tree, records = self._tree, self._slots.records(slots)
        if self._promises.needs_more_than_k:
            # the promises are asked about records that span the region, as its cells show it
            corners = np.repeat(tree.hi[leaf][None], len(slots), axis=0)
            corners[0] = tree.lo[leaf]
            nought = np.zeros(len(slots), np.int32)
            spanning = replace(records, values=corners)
            if not self._promises.holds(spanning, nought, 1)[0]:
                return slots[:0]
            stays = self._promises.capped(records, nought) < 0
            slots, records = slots[~stays], records.part(~stays)
        lo, hi, _ = self._space.published_bounds(tree.lo[leaf][None], tree.hi[leaf][None])
        made = self._decided.made
        self._decided.made += 1
        tree.cluster[leaf] = made
        self._decided.add(records, NEW, made, self._now, (lo, hi))
        self._left(slots, leaf)
        return slots

    def _join(self, node: int, slots: np.ndarray) -> np.ndarray:
        """Records leave with a region that was published before; the slots of those who may."""
        cluster, records = int(self._tree.cluster[node]), self._slots.records(slots)
        allowed = self._promises.may_join(records, np.full(len(slots), cluster))
        slots, records = slots[allowed], records.part(allowed)
        if len(slots):
            self._decided.add(records, REUSE, cluster, self._now)
            self._left(slots, node)
        return slots

    def _left(self, slots: np.ndarray, node: int) -> None:
        """These records wait no longer; their region has just been used."""
        np.subtract.at(self._tree.nodes[regions.WAITING], self._leaf_of[slots], 1)
        self._slots.held[slots] = False
        self._tree.used[node] = self._now

    def _move(self, nodes: np.ndarray) -> None:
        """Who waits in these nodes waits in the leaves that took their place."""
        moving = np.flatnonzero(self._slots.held & np.isin(self._leaf_of, nodes))
        never = np.full(len(self._tree.cluster), len(self._leaf_of) + 1)
        self._enter(0, moving, never)

    def _leave(self, slot: int) -> None:
        one = np.array([slot])
        for node in self._tree.upwards(int(self._leaf_of[slot])):
            if self._tree.cluster[node] >= 0 and len(self._join(node, one)):
                return
        np.subtract.at(self._tree.nodes[regions.WAITING], self._leaf_of[one], 1)
        self._alone(slot, self._leftover)

    def snapshot(self) -> State:
        """The tree, the records that wait, and counters."""
        return {**super().snapshot(), **self._tree.snapshot(), "leaf_of": self._leaf_of.copy()}

    def restore(self, state: State) -> None:
        """All of it as it was."""
        super().restore(state)
        self._tree.restore(state)
        self._leaf_of = state["leaf_of"].copy()
