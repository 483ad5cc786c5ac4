"""Discernibility: from how many records each record can't be told apart.

Bayardo, Agrawal. ICDE 2005.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.data.release import Release
from shoal.utility.in_parts import InParts


@dataclass(frozen=True)
class Discernibility(InParts):
    """Sum of squared class sizes, plus the size of the table for every suppressed record."""

    name: ClassVar[str] = "discernibility"

    def part(self, release: Release) -> tuple[int, int, int]:
        """Squared sizes, suppressed records, records."""
        sizes = release.shown.sizes
        return int(np.dot(sizes, sizes)), release.suppressed, release.records

    def total(self, parts: Sequence[tuple[int, int, int]]) -> float | None:
        squares, suppressed, records = (sum(figures) for figures in zip(*parts, strict=True))
        return squares + suppressed * records
