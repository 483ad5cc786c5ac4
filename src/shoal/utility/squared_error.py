"""Squared error: what is lost when every record is replaced by the mean of its class.

Domingo-Ferrer, Mateo-Sanz. IEEE TKDE 14(1):189-201, 2002 (SSE, and IL = 100 SSE / SST of microaggregation).
Reading: raw is neither scaled nor divided, as the k-means++ t-closeness paper writes it. Normalised is as the tool of
the t-closeness-through-microaggregation group has it: every difference divided by the attribute's standard
deviation, the sum by the number of records. In percent, both sums are of attributes of variance 1. Deviations
divide by n. An attribute that never varies adds nothing. A suppressed record publishes nothing about itself,
so it is replaced by the mean of the whole attribute. Missing values have no error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.data.release import Release


@dataclass(frozen=True)
class SquaredError:
    """Sum of (value - class mean)**2 over records and numeric quasi-identifiers; None without originals."""

    name: ClassVar[str] = "squared_error"
    lower_is_better: ClassVar[bool] = True

    def score(self, release: Release) -> float | None:
        if not release.originals:
            return None
        classes = release.classes
        with np.errstate(over="ignore", invalid="ignore"):  # beyond any float there is no figure to give
            return sum(_error(values, classes.labels, classes.count) for values in release.originals.values())


@dataclass(frozen=True)
class SquaredErrorNormalised:
    """Mean over records of the sum of ((value - class mean) / deviation)**2; None without originals."""

    name: ClassVar[str] = "squared_error_normalised"
    lower_is_better: ClassVar[bool] = True

    def score(self, release: Release) -> float | None:
        shares = _shares_lost(release)
        return None if shares is None else sum(shares)


@dataclass(frozen=True)
class InformationLossPercent:
    """100 SSE / SST of numeric quasi-identifiers of variance 1; None without originals or where none varies."""

    name: ClassVar[str] = "information_loss_percent"
    lower_is_better: ClassVar[bool] = True

    def score(self, release: Release) -> float | None:
        shares = _shares_lost(release)
        return 100 * sum(shares) / len(shares) if shares else None


def _shares_lost(release: Release) -> list[float] | None:
    """Of every attribute that varies, squared error / total sum of squares; None without originals."""
    if not release.originals:
        return None
    labels, count, everybody = release.classes.labels, release.classes.count, np.zeros(release.records, dtype=np.int64)
    with np.errstate(over="ignore", invalid="ignore"):
        pairs = [(_error(v, labels, count), _error(v, everybody, 1)) for v in release.originals.values()]
    return [error / whole for error, whole in pairs if whole > 0]


def _error(values: np.ndarray, labels: np.ndarray, count: int) -> float:
    present = ~np.isnan(values)
    if not present.all():
        values, labels = values[present], labels[present]
    if not len(values):
        return 0.0
    overall = values.mean()
    shifted = values - overall  # small numbers keep their digits
    # one more class than there are, for suppressed records: label -1 is the last, and its mean is 0
    places = np.where(labels >= 0, labels, count)
    sums = np.bincount(places, weights=shifted, minlength=count + 1)
    sizes = np.bincount(places, minlength=count + 1)
    means = sums / np.maximum(sizes, 1)
    means[count] = 0.0
    shifted -= means[places]
    return float(np.dot(shifted, shifted))
