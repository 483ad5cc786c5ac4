"""Average class size, in units of what was asked for.

LeFevre, DeWitt, Ramakrishnan. ICDE 2006 (C_avg = records / (classes * k)).
Reading: k is the k that the policy asks, not the smallest class found; sizes are counted in
subjects like k itself, so that 1 means that every class has exactly k. Suppressed records are in no
class and don't count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shoal.data.release import Release
from shoal.protocols import Metric


@dataclass(frozen=True)
class AverageClassSize(Metric):
    """Mean number of subjects in a class, divided by the k asked for; None without k or classes."""

    name: ClassVar[str] = "average_class_size"

    def score(self, release: Release) -> float | None:
        if release.required_k is None or not release.shown.count:
            return None
        return float(release.shown.people().mean()) / release.required_k
