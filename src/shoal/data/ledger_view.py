"""What a method of re-publication may know of earlier releases, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


def _none(*shape: int) -> np.ndarray:
    return np.zeros(shape, dtype=np.int32)


@dataclass(frozen=True)
class LedgerView:
    """Earlier releases, in the codes of the matrix that the method is given.

    lo, hi: (classes, d) int32, the boxes of the published table; people: (classes,) how many are in
        each. Given to methods that place new records in published classes.
    earlier: (n,) bool, which records of the matrix are published already; signature: (n,) int32,
        the set of sensitive values each of those was published among, -1 for new ones; signatures:
        the values of each such set, sorted. Given to methods that publish the whole table anew.
    sensitive: (n,) int32, the sensitive value of each record, `values` in all; for methods that ask
    for it.
    """

    lo: np.ndarray = field(default_factory=lambda: _none(0, 0))
    hi: np.ndarray = field(default_factory=lambda: _none(0, 0))
    people: np.ndarray = field(default_factory=lambda: _none(0))
    earlier: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    signature: np.ndarray = field(default_factory=lambda: _none(0))
    signatures: tuple[tuple[int, ...], ...] = ()
    sensitive: np.ndarray = field(default_factory=lambda: _none(0))
    values: int = 0

    @property
    def classes(self) -> int:
        return len(self.lo)


@dataclass(frozen=True)
class Placement:
    """Where a method puts the records of its matrix.

    labels: (n,) int32. Below `LedgerView.classes` a published class, from there on new ones; where
        no boxes were given all are new. -1: the record waits for a later release.
    count: classes in all, published ones included.
    counterfeits: (m, 2) int32, class and sensitive value of each invented record.
    """

    labels: np.ndarray
    count: int
    counterfeits: np.ndarray = field(default_factory=lambda: _none(0, 2))
