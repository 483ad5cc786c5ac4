"""How many groups have each size: what is left of a list of sizes when its order says nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Sizes:
    """Sizes that occur, ascending, none of them 0, and how many groups have each; (m,) int64."""

    sizes: np.ndarray
    groups: np.ndarray

    @classmethod
    def of(cls, people: np.ndarray) -> Sizes:
        """Of the size of each group; those of nobody are left out."""
        most = int(people.max(initial=0))
        if most > 4 * len(people) + 1024:  # a table of all sizes would be longer than their list
            sizes, groups = np.unique(people, return_counts=True)
        else:
            groups = np.bincount(people)
            sizes = np.flatnonzero(groups)
            groups = groups[sizes]
        kept = sizes > 0
        return cls(sizes[kept].astype(np.int64), groups[kept].astype(np.int64))

    @classmethod
    def joined(cls, parts: Iterable[Sizes]) -> Sizes:
        """Of the groups of all parts."""
        parts = list(parts)
        if len(parts) == 1:
            return parts[0]
        nothing = np.zeros(0, dtype=np.int64)
        listed = np.concatenate([nothing, *(part.sizes for part in parts)])
        sizes, place = np.unique(listed, return_inverse=True)
        groups = np.zeros(len(sizes), dtype=np.int64)
        np.add.at(groups, place.reshape(-1), np.concatenate([nothing, *(p.groups for p in parts)]))
        return cls(sizes, groups)

    @property
    def count(self) -> int:
        """How many groups there are."""
        return int(self.groups.sum())

    @property
    def total(self) -> int:
        """The people of all groups."""
        return int(self.sizes @ self.groups)

    @property
    def least(self) -> int | None:
        return int(self.sizes[0]) if len(self.sizes) else None

    @property
    def greatest(self) -> int | None:
        return int(self.sizes[-1]) if len(self.sizes) else None

    @property
    def mean(self) -> float | None:
        return self.total / self.count if len(self.sizes) else None
