"""B-CASTLE: CASTLE whose candidate clusters stay balanced. A reconstruction.

Wang, Lu, Zhao, Yang. B-CASTLE: An efficient publishing algorithm for k-anonymizing data streams.
Second WRI Global Congress on Intelligent Systems, 2010.
Promise: as CASTLE's.
Reading: only the abstract, and a paragraph in Guo, Zhang 2013, were at hand: CASTLE's candidates
    tend to one giant and many crumbs, so their size is bounded, and publishing merges no more than
    it needs. Here a candidate of `alpha` people takes no more records while another one or room for
    a new one is left; and a cluster that is too small takes, from the last candidate it needs, the
    nearest records only until it has k people. All else is CASTLE. The abstract says that it is
    faster than CASTLE: with `alpha` at 2k, the default, it is; with more it loses less, and is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shoal.data.option import parameter
from shoal.data.stream import Space
from shoal.protocols import StreamMethod, StreamPromises
from shoal.streams.methods import castle
from shoal.streams.methods.castle import BETA, DELTA, KEEP, MU
from shoal.streams.methods.emission import SNAP, STAR_OR_DROP, TICK, with_effective_delay


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
    alpha: int = parameter(
        "people from which on a candidate cluster is full, 0 for 2k", default=0, low=0
    )
    keep: int = field(default=1000, metadata=KEEP)
    leftovers: str = field(default="star", metadata=STAR_OR_DROP)
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
        self.full = parameters.alpha or 2 * promises.k

    def _absorb(self, cluster: int, other: int) -> None:
        """The other's records, the nearest first, until the cluster could leave."""
        theirs = self._members(other)
        held, k = self._held, self._promises.k
        codes, lo, hi = held["codes"][theirs], held["lo"][cluster], held["hi"][cluster]
        costs = self._costs(np.minimum(codes, lo), np.maximum(codes, hi))
        theirs = theirs[np.lexsort((held["seq"][theirs], costs))]
        # as many as bring k people, at once
        here, people = np.unique(held["people"][self._members(cluster)]), held["people"][theirs]
        is_first = np.zeros(len(theirs), bool)
        is_first[np.unique(people, return_index=True)[1]] = True
        together = len(here) + np.cumsum(is_first & ~np.isin(people, here))
        enough = int(np.searchsorted(together, k)) + 1
        self._move(theirs[:enough], cluster)
        for slot in theirs[enough:]:
            if self._is_enough(self._members(cluster)):
                return
            self._move(np.array([slot]), cluster)
