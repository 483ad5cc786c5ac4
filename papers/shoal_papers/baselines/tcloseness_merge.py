"""t-closeness by merging: microaggregate first, then merge classes that are too far from the table.

Soria-Comas, Domingo-Ferrer, Sanchez, Martinez. t-closeness through microaggregation: strict privacy
with enhanced utility preservation. IEEE TKDE 27(11):3098-3110, 2015. Algorithm 1; settled from
descriptions and the authors' tool, not checked against the text.
Promise: every class holds k people and is within t of the whole table. Merging ends: a union is no
farther than the farther of its parts, and one class of everybody is at distance 0.
Reading: several sensitive attributes: the class farthest beyond its t merges first.
Reading: near means near means of the quasi-identifiers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shoal.data.partition import Matrix, Partition
from shoal.protocols import Partitioner, Promises
from shoal.search.clustering import BLOCK, SCALE, Cluster, in_blocks, merged, points_of, targets_of
from shoal.search.segments import require_people
from shoal.tables.methods.mdav import microaggregation


@dataclass(frozen=True)
class TClosenessMerge(Partitioner):
    """MDAV, then merging. Without t-closeness among the promises it is MDAV."""

    name: ClassVar[str] = "tcloseness-merge"
    paper: ClassVar[str] = (
        "Soria-Comas, Domingo-Ferrer, Sanchez, Martinez. t-closeness through microaggregation. "
        "IEEE TKDE 27(11), 2015. Algorithm 1."
    )

    scale: str = field(default="deviation", metadata=SCALE)
    block: int = field(default=1 << 17, metadata=BLOCK)

    def partition(self, matrix: Matrix, promises: Promises, rng: np.random.Generator) -> Partition:
        """Classes of at least `promises.k` people, merged until they are close enough."""
        return clustered(matrix, promises, self.scale, self.block, microaggregation(promises.k))


def clustered(
    matrix: Matrix, promises: Promises, scale: str, block: int, cluster: Cluster
) -> Partition:
    """The classes that `cluster` makes of every block, merged where they are too far."""
    require_people(matrix, promises)
    points, targets = points_of(matrix, scale), targets_of(promises, matrix.records)
    return merged(points, in_blocks(matrix, points, targets, block, promises.k, cluster), targets)
