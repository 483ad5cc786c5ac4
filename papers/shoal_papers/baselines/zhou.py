"""Zhou et al.: a leaf of the window's tree may leave by chance as soon as it is good enough. A
reconstruction.

Zhou, Han, Pei, Jiang, Tao, Jia. Continuous privacy preserving publishing of data streams. EDBT,
2009.
Promise: as SWAF's.
Paper: three steps                        Here: `_chance`, from its first factor to the last
Reading: only the abstract, and accounts of it, were at hand: publishing is randomized, by the loss
    of a cluster, by what the stream lets expect, and by how sure that is. All formulas are ours.
    When a record arrives, its leaf in SWAF's tree leaves with probability
    max(0, 1 - loss / tau) * (1 - c * (1 - q)): tau is the mean loss of the last `mu` clusters, 1 at
    first; q is by how much the leaf's loss would fall if as many more came, before its first is
    due, as the last `delta` arrivals let expect; and c, how sure that is, grows with how many of
    these lie in its box.
Who is due leaves as in SWAF.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shoal.data.option import parameter
from shoal.data.stream import Arrivals, Space, State
from shoal.protocols import StreamMethod, StreamPromises
from shoal.streams.methods.emission import SNAP, STAR_OR_DROP, TICK, with_effective_delay
from shoal_papers.baselines.swaf import C0, DELTA, SwafPublisher

NEARLY = 1e-6
"""By how much positions in whole units may add up to another loss."""


@dataclass(frozen=True)
class Zhou(StreamMethod):
    """Randomized publishing of leaves; a reconstruction."""

    name: ClassVar[str] = "zhou"
    paper: ClassVar[str] = (
        "Zhou, Han, Pei, Jiang, Tao, Jia. Continuous privacy preserving publishing of data streams."
        " EDBT 2009. A reconstruction."
    )

    delta: int = field(default=10_000, metadata=DELTA)
    c0: float = field(default=1.0, metadata=C0)
    mu: int = parameter(
        "published clusters whose mean loss decides what is good", default=100, low=1
    )
    leftovers: str = field(default="star", metadata=STAR_OR_DROP)
    snap: int = field(default=0, metadata=SNAP)
    tick: int = field(default=1, metadata=TICK)

    @property
    def split(self) -> str:
        """The window is cut at medians."""
        return "median"

    def start(self, space: Space, promises: StreamPromises, seed: int) -> ZhouPublisher:
        """An empty window."""
        parameters = with_effective_delay(self, promises.k)
        return ZhouPublisher(parameters, space, promises, seed)


class ZhouPublisher(SwafPublisher):
    """SWAF's, with leaves that leave early."""

    at_once = 1

    def __init__(self, parameters: Zhou, space: Space, promises: StreamPromises, seed: int) -> None:
        super().__init__(parameters, space, promises, seed)
        self._losses, self._mu = np.zeros(0), parameters.mu
        self._good: np.ndarray | None = None  # the leaf of the record that has just come

    def _take_in(self, arrivals: Arrivals, codes: np.ndarray, lacking: np.ndarray) -> np.ndarray:
        """Up to the first whose leaf may be good enough."""
        if self._promises.needs_more_than_k:  # a cap may keep the widest back
            slots = super()._take_in(arrivals, codes, lacking)
            self._good = None if lacking[0] else self._tree.leaf(int(slots[0]))
            return slots
        count, leaf = self._tree.arrive(arrivals, codes, lacking, self._tau + NEARLY)
        self._good = leaf if len(leaf) else None
        return arrivals.seq[:count] % self._delta

    def _arrive(self, slots: np.ndarray) -> Iterator[None]:
        """The leaf of the last record may leave."""
        self._now = int(self._slots.seq[slots[-1]])
        leaf = self._good
        if leaf is None:
            return
        lo, hi, loss = self._bounds(leaf)
        chance = self._chance(leaf, lo, hi, float(loss[0]))
        if chance > 0 and np.random.default_rng([self._seed, 8, self._now]).random() < chance:
            self._publish(leaf, lo, hi, loss)
            yield

    @property
    def _tau(self) -> float:
        """What a good leaf loses at most."""
        return float(self._losses.mean()) if len(self._losses) else 1.0

    def _chance(self, leaf: np.ndarray, lo: np.ndarray, hi: np.ndarray, loss: float) -> float:
        """The probability with which a leaf leaves now."""
        # step 1: the less it loses
        tau = self._tau
        good = max(0.0, 1 - loss / tau) if tau > 0 else float(loss == 0)
        if good == 0:
            return 0.0
        # step 2: the less it would gain by those who may still come
        slots = self._slots  # the records that left stand there until others need their place
        in_box = ((slots.values >= lo) & (slots.values <= hi)).all(axis=1)
        seen = int((in_box & (slots.seq >= 0)).sum())
        left = int(slots.seq[leaf].min()) + self._delta - 1 - self._now
        expected = seen / min(self._now + 1, self._delta) * left
        shrinks_to = (len(leaf) / (len(leaf) + expected)) ** (1 / self._space.attributes)
        # step 3: the less sure that is
        sure = seen / (seen + self._promises.k)
        return good * (1 - sure * (1 - shrinks_to))

    def _publish(self, leaf: np.ndarray, lo: np.ndarray, hi: np.ndarray, loss: np.ndarray) -> None:
        super()._publish(leaf, lo, hi, loss)
        self._losses = np.append(self._losses, loss)[-self._mu :]

    def snapshot(self) -> State:
        """SWAF's, and the last losses."""
        return {**super().snapshot(), "losses": self._losses.copy()}

    def restore(self, state: State) -> None:
        """All of it as it was."""
        super().restore(state)
        self._losses = state["losses"].copy()
