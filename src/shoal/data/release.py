"""A published table as its readers see it, read back from what was published."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.data.classes import Classes


@dataclass(frozen=True)
class PublishedColumn:
    """One quasi-identifier as published.

    codes: (n,) int32, which distinct cell each record shows. cells: text of each distinct cell.
    widths: (cells,) float64, the normalised width of each cell in [0, 1]; NaN where it can't be
        told without the original (no declared domain). lo, hi: (cells,) float64 bounds of a numeric
        cell, NaN for cells that are no number or interval.
    """

    name: str
    codes: np.ndarray
    cells: tuple[str, ...]
    widths: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


@dataclass(frozen=True)
class Release:
    """What was published, measured class by class.

    classes: equal published quasi-identifiers are one class; suppressed records are in none.
    columns: the quasi-identifiers. asked_k: the policy's k, None without a k-anonymity promise.
    label: (n,) int32 class label for the classification metric, or None.
    originals: the true value of each numeric quasi-identifier, (n,) float64 with NaN where missing,
        aligned with the published records; empty where the original is not at hand.
    """

    columns: tuple[PublishedColumn, ...]
    classes: Classes
    asked_k: int | None = None
    label: np.ndarray | None = None
    originals: dict[str, np.ndarray] | None = None

    @property
    def records(self) -> int:
        return len(self.classes.labels)

    @property
    def suppressed(self) -> int:
        return int((self.classes.labels < 0).sum())
