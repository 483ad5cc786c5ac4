"""Static I and Static II: the two simple ways to publish a table again.

As described by Li, Liu, Cai, Zhou. Computer Engineering and Science 38(11):2191-2196, 2016.
Sections 2 and 4.1.
Static I: the increment is anonymised alone, by any method for tables, and appended.
Static II: the whole table is anonymised anew. Each release keeps its promises; two of them together
need not: a record's later class may be narrower, and fewer than k people may share both of its
classes. The audit of the history says how many people that concerns, and a ledger takes such a
release only with `--allow-leaks`.
Reading: which method anonymises is not said; see `by`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shoal.data.ledger_view import LedgerView, Placement
from shoal.data.partition import Matrix
from shoal.ledgers.methods.waiting import TABLE_METHODS
from shoal.protocols import Promises, Republisher
from shoal.search.segments import repair

BY = {"help": "the method for tables that finds the classes", "choices": TABLE_METHODS}
PAPER = (
    "Comparator in Li, Liu, Cai, Zhou. A wearable data re-dissemination method based on K-anonymity"
    " clustering. Computer Engineering and Science 38(11), 2016."
)


@dataclass(frozen=True)
class Static1(Republisher):
    """The increment alone, by a method for tables."""

    name: ClassVar[str] = "static-1"
    paper: ClassVar[str] = PAPER
    covers: ClassVar[str] = "increment"
    needs: ClassVar[str] = "nothing"
    guards: ClassVar[str] = "cells"
    changes: ClassVar[bool] = False
    remedy: ClassVar[str] = "Leave out the records of people who were published before."

    by: str = field(default="rounded-partition", metadata=BY)

    def publish(
        self, increment: Matrix, view: LedgerView, promises: Promises, rng: np.random.Generator
    ) -> Placement:
        """Classes of at least `promises.k` people, every promise kept; all of them new."""
        return rebuilt(self.by, increment, view, promises, rng)


@dataclass(frozen=True)
class Static2(Republisher):
    """The whole table anew, by a method for tables, whatever was published before."""

    name: ClassVar[str] = "static-2"
    paper: ClassVar[str] = PAPER
    covers: ClassVar[str] = "table"
    needs: ClassVar[str] = "originals"
    guards: ClassVar[str] = "cells"
    changes: ClassVar[bool] = False
    remedy: ClassVar[str] = (
        "Nearest safe way: --method crp, which leaves published rows as they are; --allow-leaks"
        " publishes this one all the same, and its certificate says so."
    )

    by: str = field(default="rounded-partition", metadata=BY)

    def publish(
        self, increment: Matrix, view: LedgerView, promises: Promises, rng: np.random.Generator
    ) -> Placement:
        """Classes of at least `promises.k` people, every promise kept in this release."""
        return rebuilt(self.by, increment, view, promises, rng)


def rebuilt(
    by: str, matrix: Matrix, view: LedgerView, promises: Promises, rng: np.random.Generator
) -> Placement:
    """The classes of a method for tables, every promise kept."""
    partition = repair(matrix, view.partition(by, matrix, promises, rng), promises)
    return Placement(partition.labels, partition.count)
