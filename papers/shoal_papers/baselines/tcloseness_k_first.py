"""k-anonymity first: near records make a class, which then swaps members until it is within t.

Soria-Comas, Domingo-Ferrer, Sanchez, Martinez. t-closeness through microaggregation: strict privacy
with enhanced utility preservation. IEEE TKDE 27(11):3098-3110, 2015. Algorithm 2; settled from
descriptions and the authors' tool, not checked against the text.
Promise: every class holds k people and is within t of the whole table, by the merging of algorithm
1 in the end. The distance of a class never rises while it swaps.
Paper: x0, x1, y, y'               Here: seed, opposite, candidate, replaced member
Reading: a candidate is looked at once for each class, used or not; a replaced member stays free for
later classes, and is not a candidate of this one.
Reading: several sensitive attributes: distance means the greatest distance beyond an attribute's t.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shoal.data.partition import Matrix, Partition
from shoal.protocols import Partitioner, Promises
from shoal.search.clustering import BLOCK, CANDIDATES, SCALE, Targets
from shoal.tables.kernels import around_extremes
from shoal_papers.baselines.tcloseness_merge import clustered


@dataclass(frozen=True)
class TClosenessKFirst(Partitioner):
    """k-anonymity-first t-closeness. Without t-closeness among the promises it is MDAV."""

    name: ClassVar[str] = "tcloseness-k-first"
    paper: ClassVar[str] = (
        "Soria-Comas, Domingo-Ferrer, Sanchez, Martinez. t-closeness through microaggregation. "
        "IEEE TKDE 27(11), 2015. Algorithm 2."
    )

    scale: str = field(default="deviation", metadata=SCALE)
    candidates: int = field(default=0, metadata=CANDIDATES)
    block: int = field(default=1 << 14, metadata=BLOCK)

    def partition(self, matrix: Matrix, promises: Promises, rng: np.random.Generator) -> Partition:
        """Classes of at least `promises.k` people within t where swapping got them there, else
        merged.
        """
        k, most = promises.k, self.candidates or matrix.records

        def cluster(points: np.ndarray, subject_ids: np.ndarray, targets: Targets) -> np.ndarray:
            return around_extremes.around_extremes(points, subject_ids, k, most, *targets.arrays)

        return clustered(matrix, promises, self.scale, self.block, cluster)
