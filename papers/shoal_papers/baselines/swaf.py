"""SWAF: the records that wait are a window, cut into a tree; who is due leaves with its leaf. A
reconstruction; with `split=density`, of KIDS.

Wang, Li, Ai, Li. Anonymizing streaming data for privacy protection by sliding window (SWAF).
CollaborateCom, 2007. KIDS: Zhang, Yang, Zhang, Yuan. KIDS: K-anonymization data stream base on
sliding window. ICFCC, 2010.
Promise: every record leaves before `delta` further ones have arrived; every new cluster has k
distinct subjects of its own; a record has one cluster for life. State: `delta` records,
ceil(c0 * delta / k) clusters, and cuts for four windows.
Reading: only abstracts were at hand. A window slides by one record; its tree's leaves hold k people
    each. We keep a cut while both sides keep every promise, and else cut anew at the median of the
    attribute over which the node's records lose most. Over a hierarchy, cuts are between children
    of a node.
Reading: letting the records of a leaf leave one by one, each under the leaf's box of that day,
    breaks k. Here all of a leaf leave together, and later records only under what was published.
Reading: KIDS takes the density of the data into account. We cut in the widest gap of the middle
    half of a node's records, at the median where they are equal.
Trap: a record that leaves alone leaves exactly `delta` - 1 records after it came, which reveals
when it came.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil
from typing import ClassVar, Protocol

import numpy as np

from shoal.data.option import parameter
from shoal.data.stream import NEW, REUSE, Space, State
from shoal.protocols import StreamMethod, StreamPromises
from shoal.streams.methods.emission import (
    SNAP,
    STAR_OR_DROP,
    TICK,
    ReusableClusters,
    with_effective_delay,
)
from shoal_papers.baselines.waiting import OneByOne, Waits
from shoal_papers.baselines.window_tree import WindowTree

DELTA = {"help": "records that wait at most", "low": 2}
C0 = {"help": "clusters kept for use again, in units of delta / k", "low": 1.0}


@dataclass(frozen=True)
class Swaf(StreamMethod):
    """A tree over a sliding window; a reconstruction."""

    name: ClassVar[str] = "swaf"
    paper: ClassVar[str] = (
        "Wang, Li, Ai, Li. Anonymizing streaming data for privacy protection by sliding window."
        " CollaborateCom 2007. A reconstruction."
    )

    delta: int = field(default=10_000, metadata=DELTA)
    c0: float = field(default=1.0, metadata=C0)
    split: str = parameter(
        "where the window is cut: at the median, or in the widest gap near it, as KIDS",
        default="median",
        choices=("median", "density"),
    )
    leftovers: str = field(default="star", metadata=STAR_OR_DROP)
    snap: int = field(default=0, metadata=SNAP)
    tick: int = field(default=1, metadata=TICK)

    def start(self, space: Space, promises: StreamPromises, seed: int) -> SwafPublisher:
        """An empty window."""
        parameters = with_effective_delay(self, promises.k)
        return SwafPublisher(parameters, space, promises, seed)


class Cuts(Waits, Protocol):
    """Parameters of a method that cuts its window."""

    @property
    def c0(self) -> float: ...

    @property
    def split(self) -> str: ...


class SwafPublisher(OneByOne):
    """The window, its tree, and the clusters that may be used again."""

    def __init__(self, parameters: Cuts, space: Space, promises: StreamPromises, seed: int) -> None:
        super().__init__(parameters, space, promises, seed)
        self._capacity = ceil(parameters.c0 * parameters.delta / promises.k)
        self._reusable = ReusableClusters(space.attributes)
        self._tree = WindowTree(self._slots, space, promises, parameters.split == "density")

    @property
    def _live(self) -> np.ndarray:
        return self._reusable.number

    def _arrive(self, slots: np.ndarray) -> Iterator[None]:
        """Records only wait."""
        return iter(())

    def _leave(self, slot: int) -> None:
        # step 1: the published cluster that covers it and loses least
        used = self._covering(slot)
        # step 2: its leaf
        leaf = self._tree.leaf(slot)
        if leaf is None:
            if used >= 0:
                self._alone(slot, REUSE, int(self._reusable.number[used]))
            else:
                self._alone(slot, self._leftover)
            return
        # step 3: whichever loses less
        lo, hi, loss = self._bounds(leaf)
        if used >= 0 and self._reusable.loss[used] <= loss[0]:
            self._alone(slot, REUSE, int(self._reusable.number[used]))
        else:
            self._publish(leaf, lo, hi, loss)

    def _covering(self, slot: int) -> int:
        """The place among the clusters of the one that the record may join; -1 where none."""
        one = self._slots.records(np.array([slot]))
        draw = np.random.default_rng([self._seed, 7, int(one.seq[0])]).random(1)
        used = int(self._reusable.covering(one.values, draw)[0])
        if used >= 0 and not self._promises.may_join(one, self._reusable.number[[used]])[0]:
            return -1
        return used

    def _bounds(self, leaf: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the leaf's records would publish, without those that a cap keeps back."""
        values = self._slots.values[self._uncapped(leaf)]
        return self._space.published_bounds(values.min(axis=0)[None], values.max(axis=0)[None])

    def _uncapped(self, leaf: np.ndarray) -> np.ndarray:
        if not self._promises.needs_more_than_k:
            return leaf
        labels = self._promises.capped(self._slots.records(leaf), np.zeros(len(leaf), np.int32))
        return leaf[labels >= 0]

    def _publish(self, leaf: np.ndarray, lo: np.ndarray, hi: np.ndarray, loss: np.ndarray) -> None:
        """All of a leaf leave as a new cluster; whom a cap keeps back goes on waiting."""
        leaves, made = self._uncapped(leaf), self._decided.made
        self._decided.made += 1
        self._reusable.add(np.array([made]), lo, hi, loss)
        self._reusable.newest(self._capacity)
        self._decided.add(self._slots.records(leaves), NEW, made, self._now, (lo, hi))
        self._slots.held[leaves] = False

    def snapshot(self) -> State:
        """The window, its tree, the clusters and counters."""
        return {**super().snapshot(), **self._reusable.snapshot(), **self._tree.snapshot()}

    def restore(self, state: State) -> None:
        """All of it as it was."""
        super().restore(state)
        self._reusable.restore(state)
        self._tree.restore(state)
