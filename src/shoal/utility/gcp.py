"""Global certainty penalty: how much of every domain a published cell leaves open, on average.

Xu, Wang, Pei, Wang, Shi, Fu. KDD 2006 (normalised certainty penalty); Ghinita, Karras, Kalnis,
Mamoulis. VLDB 2007 (its mean over the table).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.data.release import PublishedColumn, Release
from shoal.protocols import Metric


@dataclass(frozen=True)
class GlobalCertaintyPenalty(Metric):
    """Mean width of the published cells over records and quasi-identifiers, in [0, 1].

    The width of a span is taken of the declared domain (`PublishedColumn.widths`); a suppressed
    record has width 1 everywhere. None where a published cell's width can't be told. Attributes
    weigh the same.
    """

    name: ClassVar[str] = "gcp"

    def score(self, release: Release) -> float | None:
        if not release.records or not release.columns:
            return None
        widths = [_width(column, release.cell_counts[column.name]) for column in release.columns]
        mean = sum(widths) / len(widths) + release.suppressed * 1.0
        return None if np.isnan(mean) else mean / release.records

    def per_attribute(self, release: Release) -> dict[str, float | None]:
        """The same for each quasi-identifier by itself, by name."""
        losses: dict[str, float | None] = {}
        for column in release.columns:
            width = _width(column, release.cell_counts[column.name]) + release.suppressed
            known = release.records and not np.isnan(width)
            losses[column.name] = width / release.records if known else None
        return losses


def _width(column: PublishedColumn, shown: np.ndarray) -> float:
    """Sum of the widths that the records in classes publish; NaN where one of them is unknown."""
    return float(np.dot(shown[shown > 0], column.widths[shown > 0]))
