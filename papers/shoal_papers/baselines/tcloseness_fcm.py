"""Equi-sized fuzzy c-means t-closeness: groups of alike sensitive values, classes of one record of
each.

Wang, Zhu, Chen, Chang. Privacy preservation for data with multiple sensitive attributes. Journal of
Computer Science and Technology 33(6):1231-1242, 2018. A reconstruction from the abstract and from
papers that describe it: never take its figures for the authors'.
Promise: every class holds k people and is within t of the whole table, by merging alone: nothing
looks at t while classes are built.
Reading: fuzzy c-means with k centres on sensitive attributes of variance 1, or as they are
(`scale="raw"`), fuzzifier 2; groups get
equally many records by handing each record to a centre in falling order of its share there, full
groups closed; a class is a record drawn from the first group and the nearest of every other group;
what is left below 2k records is one class; classes too far from the table merge with their nearest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shoal.data.option import parameter
from shoal.data.partition import Matrix, Partition
from shoal.protocols import Partitioner, Promises
from shoal.search.clustering import BLOCK, SCALE, Targets, sensitive_points
from shoal.tables.kernels import from_subsets
from shoal.tables.methods.tcloseness_kmeanspp import with_last_class
from shoal_papers.baselines.kernels import fuzzy_centres
from shoal_papers.baselines.tcloseness_merge import clustered

ROUNDS = 100
"""Of fuzzy c-means at most."""


@dataclass(frozen=True)
class TClosenessFcm(Partitioner):
    """Equi-sized fuzzy c-means, then merging."""

    name: ClassVar[str] = "tcloseness-fcm"
    paper: ClassVar[str] = (
        "Wang, Zhu, Chen, Chang. Privacy preservation for data with multiple sensitive attributes. "
        "JCST 33(6), 2018. A reconstruction."
    )

    fuzzifier: float = parameter(
        "how far records are shared between centres: near 1 hardly", default=2.0, low=1.1, high=10.0
    )
    scale: str = field(default="deviation", metadata=SCALE)
    block: int = field(default=1 << 14, metadata=BLOCK)

    def partition(self, matrix: Matrix, promises: Promises, rng: np.random.Generator) -> Partition:
        """Classes of k records, one of each group, merged where they are too far."""
        k = promises.k

        def cluster(points: np.ndarray, subject_ids: np.ndarray, targets: Targets) -> np.ndarray:
            records = points.shape[1]
            sensitive = sensitive_points(targets.columns, targets.codes, self.scale)
            share = fuzzy_centres.fuzzy_shares(sensitive, k, rng.random(k), self.fuzzifier, ROUNDS)
            group = fuzzy_centres.equal_groups(
                np.argsort(-share.ravel(), kind="stable"), k, records
            )
            labels = from_subsets.from_groups(
                points, subject_ids, group, k, 0, False, rng.random(records // k), *targets.arrays
            )
            return with_last_class(labels) if (labels < 0).any() else labels

        return clustered(matrix, promises, self.scale, self.block, cluster)
