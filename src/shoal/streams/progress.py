"""What a stream has done so far: counts, a short history for charts, a line of progress."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from shoal.data.stream import KINDS, NEW
from shoal.streams.core import Batch

MOST_HISTORY = 400
STRETCHES = 20
LATELY = 1000  # records


@dataclass
class StreamCounters:
    """Counts since the beginning of the stream, over all runs.

    late: of the last records that came, at most LATELY, which were set aside, as their numbers.
    window: how many they are. history: stretches of records in the order in which they left, as
    `history_array`.
    """

    read: int = 0
    bad: int = 0
    published: int = 0
    kinds: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    releases: int = 0
    clusters: int = 0
    longest: int = 0
    waited: int = 0
    closed: bool = False
    late: list[int] = field(default_factory=list)
    window: int = 0
    history: list[list[float]] = field(default_factory=list)

    @property
    def decided(self) -> int:
        return sum(self.kinds.values())

    @property
    def mean_delay(self) -> float | None:
        """Further records that arrived before one left; None where none has left."""
        return self.waited / self.decided if self.decided else None

    def came(self, positions: np.ndarray, bad: np.ndarray) -> None:
        """Counts records. positions: (n,) of all of them in the source; bad: those set aside."""
        places = self.read + np.searchsorted(np.sort(positions), bad)
        self.read += len(positions)
        self.bad += len(bad)
        self.window = min(self.read, LATELY)
        late = [*self.late, *places.tolist()]
        self.late = [place for place in late if place >= self.read - LATELY]

    @property
    def mostly_aside(self) -> str:
        """What to say first where more than half of the last records were set aside; else empty."""
        if 2 * len(self.late) <= self.window:
            return ""
        return f"{len(self.late)} of the last {self.window} records were set aside"

    def add(self, batch: Batch, losses: np.ndarray) -> None:
        """Counts what a batch has decided. losses: (rows,) of each published row."""
        decided = batch.decided
        self.published += batch.frame.height
        self.clusters += len(decided.made)
        for number, name in enumerate(KINDS):
            self.kinds[name] += int((decided.kind == number).sum())
        self.releases = int(decided.release.max()) + 1
        delay = decided.emitted - decided.seq
        self.longest = max(self.longest, int(delay.max()))
        self.waited += int(delay.sum())
        self._add_history(batch, np.append(losses, 0.0)[batch.row], delay)

    def _add_history(self, batch: Batch, loss: np.ndarray, delay: np.ndarray) -> None:
        """Adds some stretches for each batch; neighbours are joined as they become many."""
        decided = batch.decided
        stretches = min(len(decided), STRETCHES)
        stretch = np.arange(len(decided)) * stretches // len(decided)
        kinds = [
            np.bincount(stretch, decided.kind == kind, minlength=stretches)
            for kind in range(len(KINDS))
        ]
        members = np.isin(decided.cluster, decided.made) & (decided.kind == NEW)
        first = np.unique(decided.cluster[members], return_index=True)[1]
        made = np.bincount(stretch[members][first], minlength=stretches)
        sums = [np.bincount(stretch, weights, minlength=stretches) for weights in (loss, delay)]
        self.history += np.stack([*kinds, *sums, made], axis=1).tolist()
        while len(self.history) > MOST_HISTORY:
            self.history[:] = _joined_in_pairs(self.history)

    def history_array(self) -> np.ndarray:
        """(stretches, 8) float64, in order of leaving.

        Records of each kind, the sums of their loss and of their delay, clusters made.
        """
        return np.array(self.history, dtype=np.float64).reshape(-1, len(KINDS) + 3)

    def line(self, rate: float, waiting: int, loss: float) -> str:
        """Progress in one line. rate: records a second; loss: the mean over published rows."""
        decided = max(self.decided, 1)
        return (
            f"{self.read} records, {rate:.0f} a second, {waiting} waiting; mean delay"
            f" {self.waited / decided:.0f} records, {100 * self.kinds['reuse'] / decided:.0f} % in"
            f" earlier clusters, {self.kinds['suppress']} suppressed, {self.bad} set aside, loss"
            f" {loss:.3f}"
        )


def _joined_in_pairs(history: list[list[float]]) -> list[list[float]]:
    paired = [
        [a + b for a, b in zip(*two, strict=True)]
        for two in zip(history[::2], history[1::2], strict=False)
    ]
    return paired + history[2 * len(paired) :]
