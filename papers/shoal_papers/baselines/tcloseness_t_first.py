"""t-closeness first: one record from each of k' equal runs of the sensitive values makes a class.

Soria-Comas, Domingo-Ferrer, Sanchez, Martinez. t-closeness through microaggregation: strict privacy
with enhanced utility preservation. IEEE TKDE 27(11):3098-3110, 2015. Algorithm 3; settled from
descriptions and the authors' tool, not checked against the text.
Promise: every class holds k people and is within t of the whole table. With n different values, one
from each of k' runs of n / k' is at most (n - k') / (2(n - 1)k') away (proposition 2), which
k' = ceil(n / (2(n - 1)t + 1)) brings within t; merging sees to everything else.
Paper: k'                          Here: subsets
Reading: where n mod k' reaches floor(n / k'), k' grows by their quotient, as in the authors' tool;
what is left then is in the middle run, and one class each takes one of these records more.
Reading: one sensitive attribute orders the records, the first that is asked for and varies; the
classes merge where another one, repeated values or the middle run break t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shoal.data.partition import Matrix, Partition
from shoal.protocols import Partitioner, Promises
from shoal.search.clustering import BLOCK, SCALE, Targets
from shoal.tables.kernels import from_subsets
from shoal_papers.baselines.tcloseness_merge import clustered


@dataclass(frozen=True)
class TClosenessTFirst(Partitioner):
    """t-closeness-first. Without t-closeness among the promises records are taken in table
    order.
    """

    name: ClassVar[str] = "tcloseness-t-first"
    paper: ClassVar[str] = (
        "Soria-Comas, Domingo-Ferrer, Sanchez, Martinez. t-closeness through microaggregation. "
        "IEEE TKDE 27(11), 2015. Algorithm 3."
    )

    scale: str = field(default="deviation", metadata=SCALE)
    block: int = field(default=1 << 17, metadata=BLOCK)

    def partition(self, matrix: Matrix, promises: Promises, rng: np.random.Generator) -> Partition:
        """Classes of k' records or one more, merged where they are too far."""
        k = promises.k

        def cluster(points: np.ndarray, subject_ids: np.ndarray, targets: Targets) -> np.ndarray:
            records = points.shape[1]
            codes, t = _ordering(targets)
            count = subsets(records, k, t)
            return from_subsets.from_subsets(points, _in_runs(codes, count), count, count // 2)

        return clustered(matrix, promises, self.scale, self.block, cluster)


def _ordering(targets: Targets) -> tuple[np.ndarray, float]:
    """The first sensitive attribute that varies, and its t; nothing to keep apart where none
    does.
    """
    for s in range(len(targets.limit)):
        if np.ptp(targets.codes[:, s]) > 0:
            return targets.codes[:, s], float(targets.limit[s])
    return np.zeros(len(targets.codes), dtype=np.int32), 1.0


def subsets(records: int, k: int, t: float) -> int:
    """k': the number of runs of sensitive values, which is the size of classes."""
    count = max(k, math.ceil(records / (2 * (records - 1) * t + 1) - 1e-9))
    count += records % count // (records // count)
    # the middle run can't hand out more than one to a class
    while records % count > records // count:
        count += 1
    return count


def _in_runs(codes: np.ndarray, count: int) -> np.ndarray:
    """The run of each record, (n,) int32: equally long in the order of the values, the middle one
    longer.
    """
    each, spare = divmod(len(codes), count)
    lengths = np.full(count, each)
    lengths[count // 2] += spare
    runs = np.empty(len(codes), dtype=np.int32)
    runs[np.argsort(codes, kind="stable")] = np.repeat(np.arange(count, dtype=np.int32), lengths)
    return runs
