"""New clusters of a stream refined as table methods refine their classes, by k alone.

Ours. Clusters keep their sizes and how many people each has, see `steps.refinement`; what else is
promised is repaired afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shoal.data.classes import Population
from shoal.data.partition import Partition
from shoal.data.space import Space
from shoal.data.stream import Arrivals
from shoal.protocols import Promises
from shoal.search.refinement import quick_search, refine
from shoal.search.refinery import Search
from shoal.streams.methods.emission import matrix_of, people_of

EFFORTS = ("none", "light", "full")


class _PeopleAlone(Promises):
    """k different people in every cluster, and nothing else."""

    needs_more_than_k = False

    def __init__(self, people: np.ndarray, k: int) -> None:
        self._people, self.k = people, k

    def holds(
        self,
        labels: np.ndarray,
        count: int,
        quasi: Mapping[str, np.ndarray] | None = None,
        population: Mapping[str, Population] | None = None,
    ) -> np.ndarray:
        return people_of(self._people, labels, count) >= self.k


def refined(
    space: Space,
    records: Arrivals,
    labels: np.ndarray,
    count: int,
    k: int,
    effort: str,
    rng: np.random.Generator,
) -> tuple[np.ndarray, int]:
    """Clusters that lose no more, of the same sizes and numbers of people.

    labels: (n,) int32, every record in some cluster. effort: one of `EFFORTS`.
    """
    if effort == "none" or count < 2:
        return labels, count
    matrix = matrix_of(space, records)
    search = Search(1, 4, 0.01, 0.005, resizes=False, rebuilds=False, run=64, orders=2)
    if effort == "full":
        search = quick_search(matrix, k, resizes=False)
    promises = _PeopleAlone(records.people, k)
    found = refine(matrix, Partition(labels, count), promises, search, rng)
    return found.labels, found.count
