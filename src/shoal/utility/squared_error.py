"""Squared error: what is lost when every record is replaced by the mean of its class.

Domingo-Ferrer, Mateo-Sanz. IEEE TKDE 14(1):189-201, 2002 (SSE, and IL = 100 SSE / SST of
microaggregation).
Reading: raw is neither scaled nor divided, as the k-means++ t-closeness paper writes it. Normalised
is as the tool of the t-closeness-through-microaggregation group has it: every difference divided by
the attribute's standard deviation, the sum by the number of records. In percent, both sums are of
attributes of variance 1. Deviations divide by n. An attribute that never varies adds nothing. A
suppressed record publishes nothing about itself, so it is replaced by the mean of the whole
attribute. Missing values have no error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shoal.data.release import Release
from shoal.protocols import Metric


@dataclass(frozen=True)
class SquaredError(Metric):
    """Sum of (value - class mean)**2 over records and numbers; None without originals."""

    name: ClassVar[str] = "squared_error"

    def score(self, release: Release) -> float | None:
        if not release.originals:
            return None
        return sum(error for error, _ in release.squared_errors.values())


@dataclass(frozen=True)
class SquaredErrorNormalised(Metric):
    """Mean over records of ((value - class mean) / deviation)**2; None without originals."""

    name: ClassVar[str] = "squared_error_normalised"

    def score(self, release: Release) -> float | None:
        shares = _shares_lost(release)
        return None if shares is None else sum(shares)


@dataclass(frozen=True)
class InformationLossPercent(Metric):
    """100 SSE / SST of numbers of variance 1; None without originals or where none varies."""

    name: ClassVar[str] = "information_loss_percent"

    def score(self, release: Release) -> float | None:
        shares = _shares_lost(release)
        return 100 * sum(shares) / len(shares) if shares else None


def _shares_lost(release: Release) -> list[float] | None:
    """Squared error / total sum of squares of what varies; None without originals."""
    if not release.originals:
        return None
    return [error / whole for error, whole in release.squared_errors.values() if whole > 0]
