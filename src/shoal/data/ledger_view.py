"""What a method of re-publication may know of earlier releases, and what it answers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.data.partition import Matrix, Partition

# People who are published again and again: in which group each is, and what became of them.


LOCKSTEP, TOGETHER, CARRIED = "lockstep", "together", "carried"
"""How a group is published while some of its people are absent: not at all, without them, or with
what they showed before.
"""

LIVE, RETIRED, CLOSED = 0, 1, 2
"""Published with the group; left behind by it; in a group that is published no more."""


def _none(*shape: int) -> np.ndarray:
    return np.zeros(shape, dtype=np.int32)


@dataclass(frozen=True)
class Panel:
    """Everybody whom earlier releases hold, m people in g groups.

    group: (m,) int32. status: (m,) int8, `LIVE`, `RETIRED` or `CLOSED`.
    rounds: (m, words) uint64, a bit for each release that holds the person.
    silent: (g,) int32, increments since the group was last published.
    loss: (g,) float64, what a record of the group lost when the group was founded.
    """

    mode: str = LOCKSTEP
    group: np.ndarray = field(default_factory=lambda: _none(0))
    status: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int8))
    rounds: np.ndarray = field(default_factory=lambda: np.zeros((0, 1), dtype=np.uint64))
    silent: np.ndarray = field(default_factory=lambda: _none(0))
    loss: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def people(self) -> int:
        return len(self.group)

    @property
    def groups(self) -> int:
        return len(self.silent)

    @property
    def is_live(self) -> np.ndarray:
        """(m,) bool."""
        return self.status == LIVE

    def live_people(self) -> np.ndarray:
        """How many people of each group are still published with it; (g,) int64."""
        return np.bincount(self.group[self.is_live], minlength=self.groups)


@dataclass(frozen=True)
class PanelChange:
    """What a release makes of the panel.

    after: the same people, in groups of which the last ones may be new.
    founded: (n,) int32, the group that the person of each record of the matrix begins in; -1 for
    those who have one, or wait.
    """

    after: Panel
    founded: np.ndarray


TablePartition = Callable[[str, Matrix, Any, np.random.Generator], Partition]
"""Finds classes by a method for tables: its name, the matrix, the promises and the random draws."""


def no_table_methods(
    method: str, matrix: Matrix, promises: Any, rng: np.random.Generator
) -> Partition:
    """What a view offers that was given no methods for tables."""
    raise LookupError(f"this view offers no method for tables, and so not '{method}'")


@dataclass(frozen=True)
class LedgerView:
    """Earlier releases, in the codes of the matrix that the method is given.

    For methods that place new records in published classes:
    lo, hi: (classes, d) int32, the boxes of the published table.
    people: (classes,) how many are in each.

    For methods that publish the whole table anew:
    earlier: (n,) bool, which records of the matrix are published already.
    signature: (n,) int32, the set of sensitive values that each of those was published among, -1
    for new ones. signatures: the values of each such set, sorted.
    sensitive: (n,) int32, the sensitive value of each record, `values` in all; given to methods
    that guard signatures. no_value: those of them that are texts for no value, which count as one.

    For methods that publish people again:
    panel: everybody whom earlier releases hold. person: (n,) int32, the person of each record as a
    place in it, -1 for newcomers. is_carried: (n,) bool, records of people who are absent: their
    sensitive values are those published before, their codes those of somebody in their group.

    For methods that let small increments wait:
    waited: (n,) int32, how many increments each record has waited through. arrivals: records of an
    increment, a mean of the last four.

    For methods that let a method for tables find the classes:
    partition: calls the method of that name with its default parameters.
    """

    lo: np.ndarray = field(default_factory=lambda: _none(0, 0))
    hi: np.ndarray = field(default_factory=lambda: _none(0, 0))
    people: np.ndarray = field(default_factory=lambda: _none(0))
    earlier: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    signature: np.ndarray = field(default_factory=lambda: _none(0))
    signatures: tuple[tuple[int, ...], ...] = ()
    sensitive: np.ndarray = field(default_factory=lambda: _none(0))
    values: int = 0
    no_value: frozenset[int] = frozenset()
    panel: Panel = field(default_factory=Panel)
    person: np.ndarray = field(default_factory=lambda: _none(0))
    is_carried: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    waited: np.ndarray = field(default_factory=lambda: _none(0))
    arrivals: float = 0.0
    partition: TablePartition = no_table_methods

    @property
    def classes(self) -> int:
        return len(self.lo)


@dataclass(frozen=True)
class Placement:
    """Where a method puts the records of its matrix.

    labels: (n,) int32. Below `LedgerView.classes` a published class, from there on new ones; where
    no boxes were given all are new. -1: the record waits for a later release.
    count: classes in all, published ones included.
    counterfeits: (m, 2) int32, class and sensitive value of each invented record.
    panel: what becomes of the people whom earlier releases hold, for methods that publish them
    again.
    """

    labels: np.ndarray
    count: int
    counterfeits: np.ndarray = field(default_factory=lambda: _none(0, 2))
    panel: PanelChange | None = None
