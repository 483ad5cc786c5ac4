"""B-CASTLE: CASTLE whose candidate clusters stay balanced. A reconstruction.

Wang, Lu, Zhao, Yang. B-CASTLE: An efficient publishing algorithm for k-anonymizing data streams.
Second WRI Global Congress on Intelligent Systems, 2010.
Promise: as CASTLE's.
Reading: only the abstract, and a paragraph in Guo, Zhang 2013, were at hand: CASTLE's candidates
    tend to one giant and many crumbs, so their size is bounded, and publishing merges no more than
    it needs. Here a candidate of `alpha` people takes no more records while another one or room for
    a new one is left; and a cluster that is too small takes, from the last candidate it needs, the
    nearest records only until it has k people. All else is CASTLE.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shoal.algorithms.stream import castle
from shoal.algorithms.stream.castle import BETA, DELTA, KEEP, LEFTOVERS, MU
from shoal.algorithms.stream.emission import SNAP, TICK, with_effective_delay
from shoal.data.space import Space
from shoal.protocols import StreamMethod, StreamPromises


@dataclass(frozen=True)
class BCastle(StreamMethod):
    """CASTLE with balanced candidate clusters; a reconstruction."""

    name: ClassVar[str] = "b-castle"
    paper: ClassVar[str] = (
        "Wang, Lu, Zhao, Yang. B-CASTLE: An efficient publishing algorithm for k-anonymizing data"
        " streams. GCIS, 2010. A reconstruction."
    )

    delta: int = field(default=10_000, metadata=DELTA)
    beta: int = field(default=50, metadata=BETA)
    mu: int = field(default=100, metadata=MU)
    alpha: int = field(
        default=0,
        metadata={
            "help": "people in a candidate cluster, 0 for 4 * delta / beta and no less than 2k",
            "low": 0,
        },
    )
    keep: int = field(default=1000, metadata=KEEP)
    leftovers: str = field(default="star", metadata=LEFTOVERS)
    snap: int = field(default=0, metadata=SNAP)
    tick: int = field(default=1, metadata=TICK)

    def start(self, space: Space, promises: StreamPromises, seed: int) -> BCastlePublisher:
        """No cluster yet."""
        parameters = with_effective_delay(self, promises.k)
        return BCastlePublisher(parameters, space, promises, seed)


class BCastlePublisher(castle.CastlePublisher):
    """CASTLE's, with full candidates and sparing merges."""

    def __init__(
        self, parameters: BCastle, space: Space, promises: StreamPromises, seed: int
    ) -> None:
        super().__init__(parameters, space, promises, seed)
        self.full = parameters.alpha or max(2 * promises.k, 4 * parameters.delta // parameters.beta)

    def _absorb(self, cluster: int, other: int) -> None:
        """The other's records, the nearest first, until the cluster could leave."""
        theirs = self._members(other)
        held = self._held
        codes, lo, hi = held["codes"][theirs], held["lo"][cluster], held["hi"][cluster]
        costs = self._costs(np.minimum(codes, lo), np.maximum(codes, hi))
        for slot in theirs[np.lexsort((held["seq"][theirs], costs))]:
            self._move(np.array([slot]), cluster)
            if self._held["size"][cluster] >= self._promises.k and self._is_enough(
                self._members(cluster)
            ):
                return
