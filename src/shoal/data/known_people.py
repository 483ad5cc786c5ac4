"""Everybody who was published so far."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class KnownPeople:
    """Everybody published so far.

    In sorted runs that are merged when they are of like size, so that looking up stays cheap.
    """

    def __init__(self, runs: Sequence[np.ndarray] = ()) -> None:
        """runs: sorted tokens of people who are known already."""
        self._runs = list(runs)

    def holds(self, people: np.ndarray) -> np.ndarray:
        """Which of these tokens are known; (n,) bool."""
        known = np.zeros(len(people), dtype=bool)
        for run in self._runs:
            index = np.minimum(np.searchsorted(run, people), len(run) - 1)
            known |= run[index] == people
        return known

    def add_and_count_known(self, subjects: np.ndarray) -> int:
        """Add these tokens; how many of them were known before."""
        people = np.unique(subjects)
        is_known = self.holds(people)
        fresh = people[~is_known]
        while self._runs and len(self._runs[-1]) <= len(fresh):
            fresh = np.sort(np.concatenate([self._runs.pop(), fresh]), kind="stable")
        if len(fresh):
            self._runs.append(fresh)
        return int(is_known.sum())
