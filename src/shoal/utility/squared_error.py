"""Squared error: what is lost when every record is replaced by the mean of its class.

Domingo-Ferrer, Mateo-Sanz. IEEE TKDE 14(1):189-201, 2002 (SSE of microaggregation).
Reading: raw values, neither scaled nor divided. A suppressed record publishes nothing about itself,
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
