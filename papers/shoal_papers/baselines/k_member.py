"""k-member: greedy clusters, each grown by the record that adds least information loss.

Byun, Kamra, Bertino, Li. Efficient k-anonymization using clustering techniques. DASFAA 2007. Figure
3.
Promise: floor(n / k) classes, of k people each but for what is left in the end.
Paper: r, c, IL                    Here: seed, class, loss of the box times its records
Reading: the first seed is farthest from a record that is drawn; the work is quadratic, so larger
tables are clustered in blocks. Ties go to the lower record.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shoal.data.partition import Matrix, Partition
from shoal.protocols import Partitioner, Promises
from shoal.search.clustering import BLOCK, blocks_of, points_of, targets_of
from shoal.search.segments import costs_of, require_people
from shoal_papers.baselines.kernels import greedy_clusters


@dataclass(frozen=True)
class KMember(Partitioner):
    """Greedy k-member clustering."""

    name: ClassVar[str] = "k-member"
    paper: ClassVar[str] = (
        "Byun, Kamra, Bertino, Li. Efficient k-anonymization using clustering techniques. DASFAA"
        " 2007."
    )

    block: int = field(default=1 << 13, metadata=BLOCK)

    def partition(self, matrix: Matrix, promises: Promises, rng: np.random.Generator) -> Partition:
        """Classes of at least `promises.k` people."""
        require_people(matrix, promises)
        k = promises.k
        labels = np.full(matrix.records, -1, dtype=np.int32)
        count = 0
        for rows in self._blocks(matrix, promises):
            subject_ids = np.zeros(0, dtype=np.int32)
            if matrix.subjects is not None:
                subject_ids = np.unique(matrix.subjects[rows], return_inverse=True)[1].astype(
                    np.int32
                )
            codes = np.ascontiguousarray(matrix.codes[rows])
            own = greedy_clusters.k_member(
                codes, subject_ids, k, int(rng.integers(len(rows))), costs_of(matrix)
            )
            labels[rows] = np.maximum(own, 0) + count
            count = int(labels[rows].max()) + 1
        return Partition.of(labels)

    def _blocks(self, matrix: Matrix, promises: Promises) -> list[np.ndarray]:
        most = max(self.block, 8 * promises.k)
        if self.block == 0 or matrix.records <= most:
            return [np.arange(matrix.records)]
        return blocks_of(
            points_of(matrix, "range"), targets_of(promises, matrix.records), most, promises.k
        )
