"""How much published cells leave open, on average: of a domain, or of its range in the table.

Global certainty penalty: Xu, Wang, Pei, Wang, Shi, Fu. KDD 2006 (normalised certainty penalty);
Ghinita, Karras, Kalnis, Mamoulis. VLDB 2007 (its mean over the table).

Generalized loss: Iyengar. KDD 2002 (general loss metric), with the range that the k-means++
t-closeness paper takes: an attribute's own least and greatest value in the table.
Paper: GL(a) = (H_a - L_a) / (H - L); IL(r) = sum over attributes; IL(D) = sum over records.
Here: the mean, IL(D) / (records * attributes), so that tables of any size compare.
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


@dataclass(frozen=True)
class GeneralizedLoss(OfCells):
    """Mean loss of the published cells over records and quasi-identifiers, in [0, 1].

    Differs from the global certainty penalty in what a span is divided by: not by the declared
    domain but by the range from the least to the greatest bound that the release publishes for the
    attribute (numbers, places of an order, leaves of a hierarchy). So it needs no declared domain,
    and outliers that a domain allows but the table lacks do not flatter it. The suppression mark
    loses 1 and has no bounds; a suppressed record loses 1 everywhere. A cell that shows a mean
    spans what lies behind it. None where a cell is not a span. Attributes weigh the same.
    """

    name: ClassVar[str] = "generalized_loss"

    def of_cells(self, cells: CellCounts) -> float | None:
        if not cells.records or not cells.columns:
            return None
        of_shown = [_loss(*pair) for pair in zip(cells.columns, cells.counts, strict=True)]
        losses = [(loss + cells.suppressed) / cells.records for loss in of_shown]
        mean = exact_sum(losses) / len(losses)
        return None if np.isnan(mean) else mean


def _loss(column: PublishedColumn, shown: np.ndarray) -> float:
    """Sum of what the records in classes lose; NaN where a cell is not a span."""
    return weighted_sum(shown[shown > 0], _losses(column, shown > 0))


def _losses(column: PublishedColumn, shown: np.ndarray) -> np.ndarray:
    """Loss of each cell that is shown; NaN where it is not a span."""
    lo, hi, widths = column.lo[shown], column.hi[shown], column.widths[shown]
    if column.observed_bounds is not None:  # means: their ranges are known with the original only
        if np.isnan(widths).any():
            return widths
        spanned = ~np.isnan(column.observed_bounds[0][shown])
        lo, hi = np.where(spanned, column.observed_bounds[:, shown], (lo, hi))
    spans = np.isfinite(lo)
    if not spans.any():
        return widths
    whole = hi[spans].max() - lo[spans].min()
    losses = np.where(spans & (hi > lo), (hi - lo) / (whole or 1.0), 0.0)
    return np.where(spans, losses, widths)
