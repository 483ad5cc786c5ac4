"""Local suppression: every cell is published as it is, or starred; as few cells as can be found.

Ours: lattice peeling over hierarchies of one step. Meyerson, Williams. PODS 2004 (the problem).
Promise: every combination of cells that occurs, stars included, is shared by k people. A star is a
value of its own and no wildcard, so whoever shows one hides among those who show it too.
Reading: what a star costs is the attribute's weight: columns of larger weights are starred less.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from shoal.data.hierarchies.flat import Flat
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.matrix import Matrix
from shoal.data.option import parameter
from shoal.data.partition import Partition
from shoal.data.progress import Progress, no_progress
from shoal.protocols import Partitioner, Promises
from shoal.search.efforts import REFINE, REFINE_HELP, SECONDS, STEPS, STOP
from shoal.tables.methods.lattice_peeling import LatticePeeling


@dataclass(frozen=True)
class SuppressCells(Partitioner):
    """Parameters of the search, as lattice peeling has them."""

    name: ClassVar[str] = "suppress-cells"
    paper: ClassVar[str] = "Ours; the problem: Meyerson, Williams. PODS 2004."

    refine: str = parameter(REFINE_HELP, default="auto", choices=REFINE)
    seconds: int = field(default=60, metadata=SECONDS)
    steps: int = field(default=0, metadata=STEPS)
    stop: int = field(default=-1, metadata=STOP)

    def partition(self, matrix: Matrix, promises: Promises, rng: np.random.Generator) -> Partition:
        """The classes that `search` finds."""
        return self.search(matrix, promises, rng, no_progress)

    def search(
        self, matrix: Matrix, promises: Promises, rng: np.random.Generator, progress: Progress
    ) -> Partition:
        """Classes of at least `promises.k` people that show stars where members differ."""
        peeling = LatticePeeling(
            refine=self.refine, seconds=self.seconds, steps=self.steps, stop=self.stop
        )
        found = peeling.search(all_or_nothing(matrix), promises, rng, progress)
        return replace(found, has_stars=True)


def all_or_nothing(matrix: Matrix) -> Matrix:
    """The matrix as if a class lost an attribute's whole weight wherever its members differ."""
    codes = np.empty(matrix.codes.shape, dtype=np.int32)
    trees: list[float | Hierarchy] = []
    for j in range(matrix.attributes):
        values, codes[:, j] = np.unique(matrix.codes[:, j], return_inverse=True)
        # leaves stand in the order of their labels
        trees.append(Flat().make(np.array([f"{place:010}" for place in range(len(values))])))
    flat = Matrix.from_columns(codes, trees, weights=_weights(matrix), names=matrix.names)
    return replace(
        flat, subjects=matrix.subjects, label=matrix.label, populations=matrix.populations
    )


def _weights(matrix: Matrix) -> list[float]:
    """What the whole of each attribute costs."""
    whole = matrix.scale * matrix.reach
    for j in np.flatnonzero(matrix.base >= 0).tolist():
        node = int(matrix.base[j])
        while matrix.parent[node] >= 0:
            node = int(matrix.parent[node])
        whole[j] = matrix.width[node]
    return [float(weight) or 1.0 for weight in whole]
