"""k-means++ t-closeness: records of alike sensitive values are grouped, classes take one of each
group.

Wu Rongshi, Ye Xinxin, Xu Lintao, Pei Chengfei. A multi-sensitive-attribute t-closeness algorithm
based on k-means++ clustering. Algorithm 1, 35 lines.
Promise: every class holds k people and is within t of the whole table on every sensitive attribute
(definition 3: the farthest attribute counts). The distance of a class never rises in lines 11 to
21, and lines 28 to 32 end: a union is no farther than the farther part, and everybody is at 0.
Paper: C_1..C_k, EC, r1, D', y, y0
Here: groups, members, centre, waiting candidates, candidate, replaced member
Reading (line 1): the k of k-anonymity is the number of groups; k-means runs once per seed, on
sensitive attributes of variance 1, or as they are (`scale="raw"`); categories and hierarchies,
beyond the paper, are points whose squared distances are those of the tree.
Reading (line 5): where C_1 is empty, r is drawn from the first group that is not.
Reading (line 7): "nearest" is to r; when groups 2..k are empty, from C_1. A paragraph on road
surfaces between lines 7 and 8 belongs to another article.
Reading (lines 12 to 20, garbled): the candidate nearest to the centre of the class, whose
replacement of the best member lowers the distance, takes that member's place; the member returns to
its group, but not to the candidates; the candidate is used up either way; the centre is measured
anew.
Reading (line 24): what is left, 2k - 1 records at most, is one class. It is often the worst and
makes others merge: `leftovers="spread"` gives each record to the class where it costs least.
Reading (line 30): near means near means of the quasi-identifiers.
Reading: "the best of 50 runs" (`preset="paper"`) is the one of least squared error.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from shoal.data.option import parameter
from shoal.data.partition import Matrix, Partition
from shoal.protocols import Partitioner, Promises
from shoal.search import clustering as geometry
from shoal.search.clustering import Targets, targets_of
from shoal.search.segments import require_people
from shoal.tables.kernels import from_subsets, unassigned_pool

ROUNDS = 100
"""Of k-means at most."""

AN_EXCESS = 5e7
"""What a distance of 1 beyond t weighs against squared errors when leftovers are handed out."""


@dataclass(frozen=True)
class TClosenessKMeansPP(Partitioner):
    """Algorithm 1. Without t-closeness among the promises all records are one group."""

    name: ClassVar[str] = "tcloseness-kmeanspp"
    paper: ClassVar[str] = (
        "Wu, Ye, Xu, Pei. A multi-sensitive-attribute t-closeness algorithm based on k-means++"
        " clustering."
    )

    preset: str = parameter(
        "one run, or as the paper measured: the best of 50 runs, leftovers in a class of their own",
        default="once",
        choices=("once", "paper"),
    )
    leftovers: str = parameter(
        "what is left below 2k records: one class, as printed, or spread over the others",
        default="class",
        choices=("class", "spread"),
    )
    scale: str = field(default="deviation", metadata=geometry.SCALE)
    candidates: int = field(default=0, metadata=geometry.CANDIDATES)
    block: int = field(default=1 << 14, metadata=geometry.BLOCK)

    def partition(self, matrix: Matrix, promises: Promises, rng: np.random.Generator) -> Partition:
        """Classes of k records that swapped until they were within t, merged where they are not."""
        require_people(matrix, promises)
        points, targets = (
            geometry.points_of(matrix, self.scale),
            targets_of(promises, matrix.records),
        )
        runs = range(50 if self.preset == "paper" else 1)
        found = (self._once(matrix, points, promises.k, targets, rng) for _ in runs)
        return min(found, key=partial(squared_error, points))

    def _once(
        self, matrix: Matrix, points: np.ndarray, k: int, targets: Targets, rng: np.random.Generator
    ) -> Partition:
        def cluster(points: np.ndarray, subject_ids: np.ndarray, targets: Targets) -> np.ndarray:
            records = points.shape[1]
            sensitive = geometry.sensitive_points(targets.columns, targets.codes, self.scale)
            group = from_subsets.k_means(sensitive, k, rng.random(k), ROUNDS)  # line 1
            labels = from_subsets.from_groups(  # lines 2 to 23
                points,
                subject_ids,
                group,
                k,
                self.candidates or records,
                True,
                rng.random(records // k),
                *targets.arrays,
            )
            return self._with_leftovers(points, labels, targets)

        # lines 28 to 32
        return geometry.merged(
            points, geometry.in_blocks(matrix, points, targets, self.block, k, cluster), targets
        )

    def _with_leftovers(
        self, points: np.ndarray, labels: np.ndarray, targets: Targets
    ) -> np.ndarray:
        """Lines 24 to 27."""
        classes = int(labels.max()) + 1
        if self.leftovers == "spread" and self.preset != "paper" and classes:
            rows = np.ascontiguousarray(points.T)
            unassigned_pool.assign_leftovers(rows, labels, classes, AN_EXCESS, *targets.arrays)
            return labels
        return with_last_class(labels)


def with_last_class(labels: np.ndarray) -> np.ndarray:
    """The records without a class as one more class."""
    return np.where(labels < 0, labels.max() + 1, labels).astype(np.int32)


def squared_error(points: np.ndarray, partition: Partition) -> float:
    """Sum over records of the squared distance to the mean of their class."""
    sizes = np.bincount(partition.labels, minlength=partition.count)
    sums = [np.bincount(partition.labels, weights=row, minlength=partition.count) for row in points]
    return float((points**2).sum() - sum((total**2 / sizes).sum() for total in sums))
