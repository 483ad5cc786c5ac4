"""Discernibility: from how many records each record can't be told apart.

Bayardo, Agrawal. ICDE 2005.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.data.release import Release
from shoal.protocols import Metric


@dataclass(frozen=True)
class Discernibility(Metric):
    """Sum of squared class sizes, plus the size of the table for every suppressed record."""

    name: ClassVar[str] = "discernibility"

    def score(self, release: Release) -> float | None:
        sizes = release.shown.sizes
        return int(np.dot(sizes, sizes)) + release.suppressed * release.records
