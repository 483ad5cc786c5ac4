"""Global certainty penalty: how much of every domain a published cell leaves open, on average.

Xu, Wang, Pei, Wang, Shi, Fu. KDD 2006 (normalised certainty penalty); Ghinita, Karras, Kalnis,
Mamoulis. VLDB 2007 (its mean over the table).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shoal.data.numbers import exact_sum, weighted_sum
from shoal.data.release import PublishedColumn, Release
from shoal.data.single_ends import shares_of_ends, single_ends
from shoal.data.truth import Truth
from shoal.utility.in_parts import CellCounts, OfCells


@dataclass(frozen=True)
class GlobalCertaintyPenalty(OfCells):
    """Mean width of the published cells over records and quasi-identifiers, in [0, 1].

    The width of a span is taken of the declared domain (`PublishedColumn.widths`); a suppressed
    record has width 1 everywhere. None where a published cell's width can't be told. Attributes
    weigh the same.
    """

    name: ClassVar[str] = "gcp"

    def of_cells(self, cells: CellCounts) -> float | None:
        if not cells.records or not cells.columns:
            return None
        widths = [_width(*pair) for pair in zip(cells.columns, cells.counts, strict=True)]
        mean = exact_sum(widths) / len(widths) + cells.suppressed * 1.0
        return None if np.isnan(mean) else mean / cells.records

    def per_attribute(self, release: Release) -> dict[str, float | None]:
        """The penalty of each quasi-identifier by itself, by name."""
        return loss_by_attribute(self.part(release))


def loss_by_attribute(cells: CellCounts) -> dict[str, float | None]:
    """The penalty of each quasi-identifier by itself, by name."""
    losses: dict[str, float | None] = {}
    for column, counts in zip(cells.columns, cells.counts, strict=True):
        width = _width(column, counts) + cells.suppressed
        known = cells.records and not np.isnan(width)
        losses[column.name] = width / cells.records if known else None
    return losses


def _width(column: PublishedColumn, shown: np.ndarray) -> float:
    """Sum of the widths that the records in classes publish; NaN where one of them is unknown."""
    return weighted_sum(shown[shown > 0], column.widths[shown > 0])


# What a release did to each of its columns, in figures.


@dataclass(frozen=True)
class ColumnFigures:
    """By name: what quasi-identifiers lost, and the share of ends that are one person's own; how
    many are alone in a class with what a column shows that no promise covers.
    """

    losses: Mapping[str, float | None]
    single_ends: Mapping[str, float]
    alone_if_known: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, release: Release, truth: Truth | None) -> "ColumnFigures":
        ends = {} if truth is None else shares_of_ends([single_ends(release, truth)])
        return cls(GlobalCertaintyPenalty().per_attribute(release), ends)
