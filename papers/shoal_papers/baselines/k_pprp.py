"""k-PPRP: new records join published classes, whose boxes only grow.

Wu, Ni, Zhang et al. k-APPRP: a partitioning based privacy preserving k-anonymous algorithm for
re-publication of incremental datasets. Journal of Chinese Computer Systems 30(8):1581-1587, 2009. A
RECONSTRUCTION: the paper was not available. What is known of it is a paragraph in Li, Liu, Cai,
Zhou 2016: records are inserted one by one, selectively, by a principle of monotonicity, into the
latest published classes, which are then generalised.
Promise: the later cell of every published record covers the earlier one, and every class keeps
every promise.
Reading: a record joins the published class of least loss among those whose boxes contain it; if
there is none, the class that loses least by it.
Reading: the principle of monotonicity is that boxes only grow. Classes are never cut.
Reading: what is published first, and by which method, is not said; see `by`.
Ours, not the paper's: `arrivals=together`, the default. A single new record in a published class
is exposed as soon as two releases are compared: it is the one that was not there before. So at
least k new people who keep every promise among themselves join a class together, or none do.
`arrivals=any` is the reconstruction as it stands; the audit of the history then withholds the
release.
Ours, too: `arrivals=subclass`. New people wait at the published class that would grow least; once
those at one keep every promise, they become a class of their own with its own box. Published rows
never change, and boxes don't grow. The paper cuts classes in some way that is not known; this is
not it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shoal.data.ledger_view import LedgerView, Placement
from shoal.data.option import parameter
from shoal.data.partition import Matrix, Partition
from shoal.protocols import Promises, Republisher
from shoal.search.kernels import nearest_class
from shoal.search.segments import costs_of, merge_failing, require_people
from shoal_papers.baselines.kernels import join_boxes
from shoal_papers.baselines.rebuild import BY, rebuilt


@dataclass(frozen=True)
class KPprp(Republisher):
    """New records join published classes."""

    name: ClassVar[str] = "k-pprp"
    paper: ClassVar[str] = (
        "Reconstruction of: Wu, Ni, Zhang and others. k-APPRP. Journal of Chinese Computer Systems"
        " 30(8), 2009."
    )
    covers: ClassVar[str] = "table"
    needs: ClassVar[str] = "boxes"
    guards: ClassVar[str] = "cells"
    changes: ClassVar[bool] = False
    remedy: ClassVar[str] = (
        "Nearest safe way: --set arrivals=together, by which at least k new people join a class"
        " together."
    )

    arrivals: str = parameter(
        "how new people join a published class: at least k together; any number (which"
        " exposes them); or at least k as a class of their own beside it, others waiting",
        default="together",
        choices=("together", "any", "subclass"),
    )
    by: str = field(default="rounded-partition", metadata=BY)

    def publish(
        self, increment: Matrix, view: LedgerView, promises: Promises, rng: np.random.Generator
    ) -> Placement:
        """A published class for every record; new classes where nothing is published yet.

        With `arrivals=subclass` new classes, beside the published ones; some records wait.
        """
        require_people(increment, promises)
        if not view.classes:
            return rebuilt(self.by, increment, view, promises, rng)
        codes = increment.codes
        ones = np.ones(increment.records, dtype=np.int64)
        costs = costs_of(increment)
        boxes = view.lo.copy(), view.hi.copy(), view.people.astype(np.int64)
        if self.arrivals == "any":
            labels = join_boxes.join_boxes(codes, codes, ones, *boxes, True, costs)
            return Placement(labels, view.classes)
        # groups of new records that are near the same box
        near = join_boxes.join_boxes(codes, codes, ones, *boxes, False, costs)
        if self.arrivals == "subclass":
            return _beside(view, Partition.of(near), promises)
        groups = merge_failing(increment, Partition.of(near), promises.holds)
        # each group joins one box as a whole, and the box grows before the next group chooses
        lo, hi, sizes = nearest_class.boxes(codes, groups.labels, groups.count)
        chosen = join_boxes.join_boxes(lo, hi, sizes, *boxes, True, costs)
        return Placement(chosen[groups.labels], view.classes)


def _beside(view: LedgerView, groups: Partition, promises: Promises) -> Placement:
    """A new class for each of these groups that keeps every promise; the others wait."""
    holds = promises.holds(groups.labels, groups.count)
    number = np.where(holds, view.classes + np.cumsum(holds) - 1, -1).astype(np.int32)
    return Placement(number[groups.labels], view.classes + int(holds.sum()))
