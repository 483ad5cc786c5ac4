"""Generalized loss: how much of its range in the table every published cell leaves open.

Iyengar. KDD 2002 (general loss metric), with the range that the k-means++ t-closeness paper takes:
an attribute's own least and greatest value in the table.
Paper: GL(a) = (H_a - L_a) / (H - L); IL(r) = sum over attributes; IL(D) = sum over records.
Here: the mean, IL(D) / (records * attributes), so that tables of any size compare.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.data.numbers import exact_sum, weighted_sum
from shoal.data.release import PublishedColumn, Release
from shoal.utility.in_parts import CellCounts, OfCells


@dataclass(frozen=True)
class GeneralizedLoss(OfCells):
    """Mean loss of the published cells over records and quasi-identifiers, in [0, 1].

    Differs from the global certainty penalty in what a span is divided by: not by the declared
    domain but by the range from the least to the greatest bound that the release publishes for the
    attribute (numbers, places of an order, leaves of a hierarchy). So it needs no declared domain,
    and outliers that a domain allows but the table lacks do not flatter it. A cell that shows the
    suppression mark spans the whole declared domain, which then is the range. A suppressed record
    loses 1 everywhere. A cell that shows a mean spans what lies behind it. None where a cell is not
    a span. Attributes weigh the same.
    """

    name: ClassVar[str] = "generalized_loss"

    def of_cells(self, cells: CellCounts) -> float | None:
        losses = list(_loss_by_attribute(cells).values())
        known = [loss for loss in losses if loss is not None]
        return exact_sum(known) / len(known) if known and len(known) == len(losses) else None

    def per_attribute(self, release: Release) -> dict[str, float | None]:
        """Mean loss over the records, of every quasi-identifier by name."""
        return _loss_by_attribute(self.part(release))


def _loss_by_attribute(cells: CellCounts) -> dict[str, float | None]:
    if not cells.records:
        return {column.name: None for column in cells.columns}
    return {
        column.name: _mean_loss(column, shown, cells.records)
        for column, shown in zip(cells.columns, cells.counts, strict=True)
    }


def _mean_loss(column: PublishedColumn, shown: np.ndarray, records: int) -> float | None:
    losses = np.zeros(len(column.cells))
    losses[shown > 0] = _losses(column, shown > 0)
    total = weighted_sum(shown, losses) + float(records - shown.sum())
    return None if np.isnan(total) else total / records


def _losses(column: PublishedColumn, shown: np.ndarray) -> np.ndarray:
    """Loss of each cell that is shown; NaN where it is not a span."""
    lo, hi, widths = column.lo[shown], column.hi[shown], column.widths[shown]
    if column.observed_bounds is not None:  # means: their ranges are known with the original only
        if np.isnan(widths).any():
            return widths
        spanned = ~np.isnan(column.observed_bounds[0][shown])
        lo, hi = np.where(spanned, column.observed_bounds[:, shown], (lo, hi))
    marked, spans = np.isneginf(lo), np.isfinite(lo)
    if (marked.any() and not np.isnan(widths).any()) or not spans.any():
        return widths
    whole = hi[spans].max() - lo[spans].min()
    losses = np.where(spans & (hi > lo), (hi - lo) / (whole or 1.0), 0.0)
    losses[marked] = 1.0
    losses[~marked & ~spans] = widths[~marked & ~spans]
    return losses
