"""Anatomy: quasi-identifiers as they are in one table, sensitive values in another.

Xiao, Tao. Anatomy: simple and effective privacy preservation. VLDB 2006. From general knowledge
of the paper: its text was not at hand.
Promise: all values of a group differ, and a group has l records or more. Whoever knows that a
person is in the table finds the group, and any way to deal its values to its rows fits both tables;
so the person has each value with probability 1/l at most.
Promises neither k people who look alike nor to hide who is in the table.
Steps: 1 buckets by value; refused where the largest has more than n/l records. 2 While l buckets
have records: a random one of each of the l largest makes a group. 3 Each of the fewer than l
records that are left joins a random group without its value. 4 Group numbers are shuffled.
Why step 3 finds one: taking from the largest leaves no bucket with more than a record in the end
(the paper's property 1), so all n/l groups, rounded down, are made. A value that is left over and
in every group would have one record more than that, and step 1 refused it (property 2).
Reading: of equally large buckets, those of the lower code. One record a person. One sensitive
attribute. Texts that stand for no value are one value.
Ours: `near` takes, instead of random records of the other buckets, those nearest to the first.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.data import option, recoding
from shoal.data.classes import SensitiveColumn
from shoal.data.partition import Matrix, Partition
from shoal.errors import InfeasibleError
from shoal.protocols import Bucketizer, Promises
from shoal.search.clustering import points_of
from shoal.tables.kernels.buckets import largest_buckets, nearest_of_buckets


@dataclass(frozen=True)
class Anatomy(Bucketizer):
    """Groups of l different sensitive values. Draws random numbers."""

    name: ClassVar[str] = "anatomy"
    paper: ClassVar[str] = (
        "Xiao, Tao. Anatomy: simple and effective privacy preservation. VLDB 2006."
    )
    renders: ClassVar[str] = recoding.TWO_TABLES

    l: int = option.parameter(
        "least number of sensitive values in a group, all different", default=2, low=2
    )
    near: bool = option.parameter(
        "groups of people who are near each other; ours, helps whoever guesses from"
        " quasi-identifiers, and takes time with the square of the records",
        default=False,
    )

    def bucketize(
        self,
        matrix: Matrix,
        sensitive: SensitiveColumn,
        promises: Promises,
        rng: np.random.Generator,
    ) -> Partition:
        """Groups whose values all differ; raises InfeasibleError where one is too frequent."""
        codes = sensitive.with_missing_as_one().codes
        counts = np.bincount(codes).astype(np.int64)  # step 1
        self._require_eligible(counts, sensitive.name)
        chosen = largest_buckets(counts, self.l)
        shuffled = rng.permutation(len(codes))
        records = shuffled[np.argsort(codes[shuffled], kind="stable")]  # bucket by bucket
        starts = np.concatenate(([0], np.cumsum(counts)))
        if self.near:
            points = np.ascontiguousarray(points_of(matrix, "range").T)
            taken = nearest_of_buckets(chosen, records.copy(), starts, points)
        else:
            taken = _drawn(chosen, records, starts)
        labels = np.full(len(codes), -1, dtype=np.int32)
        labels[taken] = np.arange(len(chosen), dtype=np.int32)[:, None]  # step 2
        _place_rest(labels, codes, chosen, rng)
        return Partition(rng.permutation(len(chosen)).astype(np.int32)[labels], len(chosen))

    def _require_eligible(self, counts: np.ndarray, name: str) -> None:
        """Raises InfeasibleError where some value has more than n / l records."""
        records, most = int(counts.sum()), int(counts.max(initial=0))
        if most * self.l <= records and records >= self.l:
            return
        largest = records // most if most else 0
        way_out = f"the largest l is {largest}" if largest > 1 else "no l of 2 or more is possible"
        raise InfeasibleError(
            f"method 'anatomy': the most frequent value of '{name}' has {most} of {records}"
            f" records, more than one of l = {self.l}; {way_out}"
        )


def _drawn(chosen: np.ndarray, records: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """(groups, l), the next record of each bucket wherever it is chosen.

    records: (n,) bucket by bucket, in the order in which they are drawn; starts: of the buckets.
    """
    asked = chosen.ravel()
    order = np.argsort(asked, kind="stable")
    times = np.bincount(asked, minlength=len(starts) - 1)
    # how often the same bucket was chosen before
    turn = np.arange(len(asked)) - np.repeat(np.cumsum(times) - times, times)
    taken = np.empty(len(asked), dtype=np.int64)
    taken[order] = records[starts[asked[order]] + turn]
    return taken.reshape(chosen.shape)


def _place_rest(
    labels: np.ndarray, codes: np.ndarray, chosen: np.ndarray, rng: np.random.Generator
) -> None:
    """Step 3: puts every record that is left, fewer than l, into a random group without its value.

    labels: changed. Their values differ, so that it does not matter who else was put there.
    """
    for record in np.flatnonzero(labels < 0):
        without = np.flatnonzero((chosen != codes[record]).all(axis=1))
        labels[record] = without[rng.integers(len(without))]
