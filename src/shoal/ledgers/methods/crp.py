"""CRP: the next release of a growing table is the increment alone, in classes of near records.

Li, Liu, Cai, Zhou. Computer Engineering and Science 38(11):2191-2196, 2016. Algorithm 1.
Promise: what was published stays as it is, byte by byte, so no later version of a record is more
specific; and the increment gives floor(n / k) classes of k to 2k - 1 people each, where every
person has one record.
Paper: dT, LF, L          Here: increment, records left, records in a class
       C, k_i                   centre, one over the attribute's domain, times the policy's weight
Reading: the impact factors k_i are not given. We take a fixed domain, never that of the increment,
so that distances mean the same in every release; the weight stands inside the square, as in
equation 1.
Reading: the first centre is not given: the record farthest from the mean of the increment, or see
`first`.
Reading: the algorithm jumps from step 7 to 9. The records of the fewer than k people who are left
join the class with the nearest mean, one by one, as long as it has fewer than 2k - 1 people, or
theirs; or see `leftovers`.
Reading: attributes that are not numbers become coordinates in which the squared distance of two
leaves is the squared width of the lowest node over both; the paper only says that they must be
converted.
Ours, not the paper's: `cluster` chooses another way to find the classes, `block` clusters large
increments in parts, `waiting` lets small ones wait.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shoal.data.ledger_view import LedgerView, Placement
from shoal.data.option import parameter
from shoal.data.partition import Matrix, Partition
from shoal.ledgers.kernels import farthest_first
from shoal.ledgers.methods import waiting as waits
from shoal.protocols import Promises, Republisher
from shoal.search.clustering import BLOCK, people_of, points_of, rows_of_blocks, targets_for
from shoal.search.kernels import nearest_class
from shoal.search.segments import lowest_nodes, repair, require_people

PAPER = "paper"
NEAREST, LEAST_LOSS = "nearest-mean", "least-loss"


@dataclass(frozen=True)
class Crp(Republisher):
    """Clustering-based re-publication. Draws a random number only for `first=random`."""

    name: ClassVar[str] = "crp"
    paper: ClassVar[str] = (
        "Li, Liu, Cai, Zhou. A wearable data re-dissemination method based on K-anonymity"
        " clustering. Computer Engineering and Science 38(11), 2016."
    )
    covers: ClassVar[str] = "increment"
    needs: ClassVar[str] = "nothing"
    guards: ClassVar[str] = "cells"
    changes: ClassVar[bool] = False
    remedy: ClassVar[str] = "Leave out the records of people who were published before."

    first: str = parameter(
        "the first centre: the record farthest from the mean, the first record, or a random one",
        default="farthest",
        choices=("farthest", "first", "random"),
    )
    cluster: str = parameter(
        "how the classes of the increment are found: by the paper's own steps, or by a"
        " method for tables",
        default=PAPER,
        choices=(PAPER, *waits.TABLE_METHODS),
    )
    leftovers: str = parameter(
        "the class that leftover people join: that with the nearest mean, or with the least"
        " added loss",
        default=NEAREST,
        choices=(NEAREST, LEAST_LOSS),
    )
    block: int = field(default=1 << 17, metadata=BLOCK)
    waiting: str = field(default=waits.AT_ONCE, metadata=waits.WAITING)
    price: float = field(default=0.005, metadata=waits.PRICE)
    deadline: int = field(default=6, metadata=waits.DEADLINE)

    def publish(
        self, increment: Matrix, view: LedgerView, promises: Promises, rng: np.random.Generator
    ) -> Placement:
        """Classes of at least `promises.k` people, every promise kept; all of them new.

        With `waiting=priced` some of them wait.
        """
        require_people(increment, promises)
        if self.cluster == PAPER:
            partition = self._partition(increment, promises.k, rng)
        else:
            partition = view.partition(self.cluster, increment, promises, rng)
        partition = repair(increment, partition, promises)
        if self.waiting == waits.PRICED:
            due = waits.is_due(increment, partition, view, self.price, self.deadline)
            partition = waits.without_waiting(increment, partition, due, promises)
        return Placement(partition.labels, partition.count)

    def _partition(self, increment: Matrix, k: int, rng: np.random.Generator) -> Partition:
        """The paper's classes, block by block."""
        points = points_of(increment, "range")
        no_targets = targets_for((), increment.records)
        labels = np.empty(increment.records, dtype=np.int32)
        count = 0
        for rows in rows_of_blocks(points, no_targets, self.block, k):
            own = self._classes(increment.take(rows), np.ascontiguousarray(points[:, rows]), k, rng)
            labels[rows] = own + count
            count += int(own.max()) + 1
        return Partition(labels, count)

    def _classes(
        self, block: Matrix, points: np.ndarray, k: int, rng: np.random.Generator
    ) -> np.ndarray:
        """The class of each record of a block, from 0."""
        people, first = people_of(block), self._first_centre(points, rng)
        labels = farthest_first.around_far_centres(points, people, k, first)  # steps 3 to 7
        return with_leftovers(block, points, labels, k, self.leftovers)  # step 8

    def _first_centre(self, points: np.ndarray, rng: np.random.Generator) -> int:
        if self.first == "first":
            return 0
        if self.first == "random":
            return int(rng.integers(points.shape[1]))
        return int(((points - points.mean(axis=1, keepdims=True)) ** 2).sum(axis=0).argmax())


def with_leftovers(
    block: Matrix, points: np.ndarray, labels: np.ndarray, k: int, rule: str
) -> np.ndarray:
    """Step 8: each record left joins the nearest class with room below 2k people, by that rule.

    A block of fewer than k people is one class, which the repair merges with its nearest.
    """
    left = np.flatnonzero(labels < 0)
    kept = np.flatnonzero(labels >= 0)
    if not len(kept):
        return np.zeros_like(labels)
    if not len(left):
        return labels
    person, people, is_in = _people_in(block.subjects, labels, left, kept)
    lo, hi, sizes = nearest_class.boxes(block.codes, labels, len(people))
    means = np.stack([np.bincount(labels[kept], row[kept], len(people)) for row in points]) / sizes
    losses = _losses(block, lo, hi)
    for i, own in zip(left.tolist(), person.tolist(), strict=True):
        low, high = np.minimum(lo, block.codes[i]), np.maximum(hi, block.codes[i])
        if rule == LEAST_LOSS:  # to add least to records times loss
            wider = _losses(block, low, high)
            distance = (sizes + 1) * wider - sizes * losses
        else:
            distance = ((points[:, i, None] - means) ** 2).sum(axis=0)
        has_room = (people < 2 * k - 1) | is_in[own]
        best = int(np.where(has_room, distance, np.inf).argmin())
        labels[i] = best
        people[best] += not is_in[own, best]
        is_in[own, best] = True
        if rule == LEAST_LOSS:
            lo[best], hi[best], losses[best] = low[best], high[best], wider[best]
            sizes[best] += 1
    return labels


def _losses(block: Matrix, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """What a record of each box loses; (boxes,) float64, summed in the order of the attributes."""
    losses = np.zeros(len(lo))
    for j in range(block.attributes):
        if block.base[j] < 0:
            losses += (hi[:, j] - lo[:, j]) * block.scale[j]
        else:
            losses += block.width[lowest_nodes(block, j, lo[:, j], hi[:, j])]
    return losses


def _people_in(
    subject_ids: np.ndarray | None, labels: np.ndarray, left: np.ndarray, kept: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The person of each record left, how many people each class has, and who is in which.

    is_in: (people left, classes) bool, whether a person left has other records in a class.
    """
    count = int(labels.max()) + 1
    if subject_ids is None:
        nowhere = np.zeros((len(left), count), dtype=bool)
        return np.arange(len(left)), np.bincount(labels[kept]), nowhere
    people_left, person = np.unique(subject_ids[left], return_inverse=True)
    pairs = np.unique(np.stack([labels[kept], subject_ids[kept]]), axis=1)
    people = np.bincount(pairs[0], minlength=count)
    is_in = np.zeros((len(people_left), count), dtype=bool)
    elsewhere = kept[np.isin(subject_ids[kept], people_left)]
    is_in[np.searchsorted(people_left, subject_ids[elsewhere]), labels[elsewhere]] = True
    return person, people, is_in
