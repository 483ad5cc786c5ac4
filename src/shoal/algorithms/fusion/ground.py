"""The common ground of a fusion: what all owners know of the joint rows when the rounds begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.algorithms.steps.specialization import IndexedRequirement, Taxonomy


@dataclass(frozen=True)
class Ground:
    """n joint rows as everybody sees them, and what must hold for their groups.

    taxonomies, weights: of every attribute, by its number. classes: (n,) integers, the label of
    every row. qids: how many people must share each combination. owners: who owns each attribute,
    by number. labels: how many different labels every group has at least.
    """

    taxonomies: Sequence[Taxonomy]
    classes: np.ndarray
    qids: Sequence[IndexedRequirement]
    weights: Sequence[float]
    owners: Sequence[int]
    labels: int = 1

    @property
    def people(self) -> int:
        return len(self.classes)

    @property
    def k(self) -> int:
        """The strictest k, which implies all QIDs where it holds over all attributes."""
        return max(qid.k for qid in self.qids)
