"""Local suppression: every cell is published as it is, or starred; as few cells as can be found.

Ours: lattice peeling over hierarchies of one step. Meyerson, Williams. PODS 2004 (the problem).
Promise: every combination of cells that occurs, stars included, is shared by k people. A star is a
value of its own and no wildcard, so whoever shows one hides among those who show it too.
Under a bound of the release as a whole, such as the global risk, k is found by halving, as larger
classes tend to leave less risk: k - 1 was found to break it, a k still smaller may keep it. A
further promise changes the classes of each k, and so may find a smaller one.
Reading: what a star costs is the attribute's weight: columns of larger weights are starred less.
"""

from bisect import bisect_left
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from typing import ClassVar

import numpy as np

from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.hierarchies.labels import Flat
from shoal.data.option import parameter
from shoal.data.partition import Matrix, Partition
from shoal.data.progress import Progress
from shoal.protocols import Promises, SearchingPartitioner
from shoal.search.efforts import REFINE, REFINE_HELP, SECONDS, STEPS, STOP
from shoal.search.segments import as_read
from shoal.tables.methods.lattice_peeling import LatticePeeling


@dataclass(frozen=True)
class SuppressCells(SearchingPartitioner):
    """Parameters of the search, as lattice peeling has them."""

    name: ClassVar[str] = "suppress-cells"
    paper: ClassVar[str] = "Ours; the problem: Meyerson, Williams. PODS 2004."

    refine: str = parameter(REFINE_HELP, default="auto", choices=REFINE)
    seconds: int = field(default=60, metadata=SECONDS)
    steps: int = field(default=0, metadata=STEPS)
    stop: int = field(default=-1, metadata=STOP)

    def search(
        self, matrix: Matrix, promises: Promises, rng: np.random.Generator, progress: Progress
    ) -> Partition:
        """Classes that show stars where members differ, of at least `promises.k` people.

        Where something is promised about the release as a whole, of a k found by halving;
        `search_statistics` states that k.
        """
        table = all_or_nothing(matrix)
        if not promises.about_release:
            return replace(self._peeled(table, promises, rng, progress), has_stars=True)
        # a thorough search would take its time for every k
        quick = "auto" if self.refine == "thorough" else self.refine

        @cache
        def classes_of(k: int, refine: str) -> Partition:
            """What readers find at this k: all who show the same cells are one class."""
            method, asked = replace(self, refine=refine), promises.of_classes(k)
            found = method._peeled(table, asked, deepcopy(rng), progress)
            statistics = {"k": k, **found.search_statistics}
            return replace(as_read(table, found), search_statistics=statistics, has_stars=True)

        def keeps(k: int, refine: str) -> bool:
            found = classes_of(k, refine)
            return promises.release_holds(found.labels, found.count)

        ks = range(max(qid.k for qid in promises.qids), promises.k)
        k = ks.start + bisect_left(ks, True, key=lambda k: keeps(k, quick))
        return classes_of(k, self.refine if keeps(k, self.refine) else quick)

    def _peeled(
        self, table: Matrix, promises: Promises, rng: np.random.Generator, progress: Progress
    ) -> Partition:
        return LatticePeeling(**vars(self)).search(table, promises, rng, progress)


def all_or_nothing(matrix: Matrix) -> Matrix:
    """The matrix as if a class lost an attribute's whole weight wherever its members differ."""
    codes = np.empty(matrix.codes.shape, dtype=np.int32)
    trees: list[float | Hierarchy] = []
    for j in range(matrix.attributes):
        values, codes[:, j] = np.unique(matrix.codes[:, j], return_inverse=True)
        # leaves stand in the order of their labels
        trees.append(Flat().make(np.array([f"{place:010}" for place in range(len(values))])))
    weights = [float(weight) or 1.0 for weight in matrix.whole]
    flat = Matrix.from_columns(codes, trees, weights=weights, names=matrix.names)
    return replace(
        flat, subjects=matrix.subjects, label=matrix.label, populations=matrix.populations
    )
