"""People who are published again and again: in which group each is, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

LOCKSTEP, TOGETHER, CARRIED = "lockstep", "together", "carried"
"""How a group is published while some of its people are absent: not at all, without them, or with
what they showed before.
"""

LIVE, RETIRED, CLOSED = 0, 1, 2
"""Published with the group; left behind by it; in a group that is published no more."""


def _no_numbers() -> np.ndarray:
    return np.zeros(0, dtype=np.int32)


@dataclass(frozen=True)
class Panel:
    """Everybody whom earlier releases hold, m people in g groups.

    group: (m,) int32. status: (m,) int8, `LIVE`, `RETIRED` or `CLOSED`.
    rounds: (m, words) uint64, a bit for each release that holds the person.
    silent: (g,) int32, increments since the group was last published.
    loss: (g,) float64, what a record of the group lost when the group was founded.
    """

    mode: str = LOCKSTEP
    group: np.ndarray = field(default_factory=_no_numbers)
    status: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int8))
    rounds: np.ndarray = field(default_factory=lambda: np.zeros((0, 1), dtype=np.uint64))
    silent: np.ndarray = field(default_factory=_no_numbers)
    loss: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def people(self) -> int:
        return len(self.group)

    @property
    def groups(self) -> int:
        return len(self.silent)

    @property
    def is_live(self) -> np.ndarray:
        """(m,) bool."""
        return self.status == LIVE

    def live_people(self) -> np.ndarray:
        """How many people of each group are still published with it; (g,) int64."""
        return np.bincount(self.group[self.is_live], minlength=self.groups)


@dataclass(frozen=True)
class PanelChange:
    """What a release makes of the panel.

    after: the same people, in groups of which the last ones may be new.
    founded: (n,) int32, the group that the person of each record of the matrix begins in; -1 for
    those who have one, or wait.
    """

    after: Panel
    founded: np.ndarray
