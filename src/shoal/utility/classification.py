"""Classification metric: records whose class would be labelled wrongly.

Iyengar. KDD 2002.
Reading: the minority of a class is everybody but its most frequent label, for any number of labels.
Iyengar penalises a suppressed record like a wrongly labelled one, and so do we. Not divided by n.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.data.release import Release
from shoal.utility.in_parts import InParts


@dataclass(frozen=True)
class Classification(InParts):
    """Records without the most frequent label of their class, suppressed records included."""

    name: ClassVar[str] = "classification"

    def total(self, parts: Sequence[int | None]) -> float | None:
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None

    def part(self, release: Release) -> int | None:
        if release.label is None:
            return None
        labels, values = release.shown.labels, release.label
        if release.suppressed:
            labels, values = labels[labels >= 0], values[labels >= 0]
        return release.records - _majorities(labels, values)


def _majorities(labels: np.ndarray, values: np.ndarray) -> int:
    """Records with the most frequent value of their class, over all classes."""
    if not len(labels):
        return 0
    least = int(values.min())
    width = int(values.max()) - least + 1
    cells = (int(labels.max()) + 1) * width
    if cells <= 4 * len(labels):  # a table of all counts takes no more room than the records
        numbers = labels.astype(np.int64)
        numbers *= width
        numbers += values
        numbers -= least
        counts = np.bincount(numbers, minlength=cells)
        return int(counts.reshape(-1, width).max(axis=1).sum())
    pairs = np.sort(labels.astype(np.int64) * width + (values.astype(np.int64) - least))
    starts = np.flatnonzero(np.concatenate(([True], pairs[1:] != pairs[:-1])))
    counts = np.diff(np.append(starts, len(pairs)))
    class_of = pairs[starts] // width
    first = np.flatnonzero(np.concatenate(([True], class_of[1:] != class_of[:-1])))
    return int(np.maximum.reduceat(counts, first).sum())
