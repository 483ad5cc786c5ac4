"""MDAV: classes of k near records around the records farthest from the mean.

Domingo-Ferrer, Mateo-Sanz. Practical data-oriented microaggregation for statistical disclosure
control. IEEE TKDE 14(1):189-201, 2002; the fixed-size form of Hundepool and others.
Promise: floor(n / k) classes, all of k people but the last, which holds fewer than 2k.
Paper: x bar, r, s                 Here: mean of what is left, seed, opposite
Reading: s is the record farthest from r among those that r's class leaves.
Reading: k counts people: a class takes the nearest records until k people are in it.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shoal.data.partition import Matrix, Partition
from shoal.protocols import Partitioner, Promises
from shoal.search.clustering import (
    BLOCK,
    SCALE,
    Cluster,
    Targets,
    in_blocks,
    points_of,
    targets_for,
)
from shoal.search.segments import require_people
from shoal.tables.kernels import around_extremes


@dataclass(frozen=True)
class Mdav(Partitioner):
    """Maximum distance to average vector, fixed class size. Ties go to the lower record."""

    name: ClassVar[str] = "mdav"
    paper: ClassVar[str] = (
        "Domingo-Ferrer, Mateo-Sanz. Practical data-oriented microaggregation. IEEE TKDE 14(1),"
        " 2002."
    )

    scale: str = field(default="deviation", metadata=SCALE)
    block: int = field(default=1 << 17, metadata=BLOCK)

    def partition(self, matrix: Matrix, promises: Promises, rng: np.random.Generator) -> Partition:
        """Classes of at least `promises.k` people."""
        require_people(matrix, promises)
        points = points_of(matrix, self.scale)
        nothing = targets_for((), matrix.records)
        return Partition.of(
            in_blocks(matrix, points, nothing, self.block, promises.k, microaggregation(promises.k))
        )


def microaggregation(k: int) -> Cluster:
    """MDAV, whatever is asked beyond k."""

    def cluster(points: np.ndarray, subject_ids: np.ndarray, targets: Targets) -> np.ndarray:
        nothing = targets_for((), points.shape[1])
        return around_extremes.around_extremes(points, subject_ids, k, 0, *nothing.arrays)

    return cluster
