"""One-pass k-means: random seeds, one pass to the nearest, then groups are trimmed and fed to size.

Lin, Wei. An efficient clustering method for k-anonymization. PAIS workshop at EDBT 2008. Settled
from the abstract and re-implementations, not checked against the text.
Promise: floor(n / k) classes, none below k records.
Paper: K = floor(n / k) seeds      Here: the first groups of a drawn order
Reading: a group's mean moves with every record that comes or goes; a group above k gives up its
farthest record first; what is given up joins groups below k as long as there are any.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shoal.data.partition import Matrix, Partition
from shoal.protocols import Partitioner, Promises
from shoal.search.clustering import BLOCK, SCALE, Targets, in_blocks, points_of, targets_of
from shoal.search.segments import require_people
from shoal_papers.baselines.kernels import one_pass


@dataclass(frozen=True)
class Oka(Partitioner):
    """One-pass k-means algorithm."""

    name: ClassVar[str] = "oka"
    paper: ClassVar[str] = (
        "Lin, Wei. An efficient clustering method for k-anonymization. PAIS 2008."
    )

    scale: str = field(default="range", metadata=SCALE)
    block: int = field(default=1 << 14, metadata=BLOCK)

    def partition(self, matrix: Matrix, promises: Promises, rng: np.random.Generator) -> Partition:
        """Classes of at least `promises.k` records; the shared repair sees to people with
        several.
        """
        require_people(matrix, promises)
        k = promises.k

        def cluster(points: np.ndarray, subject_ids: np.ndarray, targets: Targets) -> np.ndarray:
            return one_pass.one_pass(points, rng.permutation(points.shape[1]), k)

        points, targets = points_of(matrix, self.scale), targets_of(promises, matrix.records)
        return Partition.of(in_blocks(matrix, points, targets, self.block, k, cluster))
