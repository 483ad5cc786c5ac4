"""What is measured of a release, added up over parts that hold whole classes.

A release in memory is one part. One past memory has many, and nothing depends on which.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shoal.data.certificate_shape import KNOWN, UNKNOWN, SizesReport, TogetherReport
from shoal.data.classes import Classes, Sizes
from shoal.data.release import Release
from shoal.data.schema import Schema
from shoal.data.single_ends import Ends, shares_of_ends, single_ends
from shoal.data.table import Column, Table
from shoal.data.truth import Truth, faults
from shoal.protocols import Metric, PartedMetric
from shoal.utility.gcp import ColumnFigures, loss_by_attribute
from shoal.utility.in_parts import CellCounts

_TABLE = 1 << 20
"""Places of a table that is always small enough."""


class Crowd:
    """Distinct people, whichever parts they are met in."""

    def __init__(self) -> None:
        self._records, self._met = 0, np.zeros(0, dtype=bool)

    def add(self, subjects: np.ndarray | None, chosen: np.ndarray) -> None:
        """Those of the chosen records, (n,) bool. subjects: None where each is its own person."""
        if subjects is None:
            self._records += int(chosen.sum())
        else:
            self.add_people(subjects[chosen])

    def add_people(self, people: np.ndarray) -> None:
        """Those of some records. people: (m,) int32 numbers."""
        most = int(people.max(initial=-1)) + 1
        if most > len(self._met):
            self._met = np.append(self._met, np.zeros(most - len(self._met), dtype=bool))
        self._met[people] = True

    def absorb(self, other: "Crowd") -> None:
        """All people of another crowd, numbered alike."""
        self._records += other._records
        self.add_people(other.numbers())

    def met(self, people: np.ndarray) -> np.ndarray:
        """Those of these people, (m,) int32 numbers, who are in the crowd."""
        people = people[people < len(self._met)]
        return people[self._met[people]]

    def numbers(self) -> np.ndarray:
        """Its people, ascending, but for those without a number."""
        return np.flatnonzero(self._met)

    def __len__(self) -> int:
        return self._records + int(np.count_nonzero(self._met))


class Several:
    """People with records in several classes, over parts that hold whole classes."""

    def __init__(self) -> None:
        self.people, self._placed = Crowd(), Crowd()

    def add(self, classes: Classes) -> None:
        """Those of a part; nobody where each record is its own person."""
        if classes.subjects is None:
            return
        kept = classes.labels >= 0
        people, labels = classes.subjects[kept], classes.labels[kept]
        # of all classes of a person one is known; whichever is another says that there are several
        known = np.zeros(int(people.max(initial=-1)) + 1, dtype=labels.dtype)
        known[people] = labels
        self.people.add_people(people[known[people] != labels])
        self._add_placed(people)

    def absorb(self, other: "Several") -> None:
        """Those of other classes, people numbered alike."""
        self.people.absorb(other.people)
        self._add_placed(other._placed.numbers())

    def _add_placed(self, people: np.ndarray) -> None:
        self.people.add_people(self._placed.met(people))
        self._placed.add_people(people)


class Tally:
    """The figures of every part that was added; `scores`, `together`, ... are of all of them."""

    def __init__(
        self, schema: Schema, metrics: Mapping[str, Metric], not_promised: Sequence[str] = ()
    ) -> None:
        """not_promised: published columns by which somebody may be alone in a class."""
        self.schema, self.not_promised = schema, not_promised
        self.records = self.suppressed = self.withheld = self.unrounded = 0
        self.faults = {"uncovered": 0, "changed": 0}
        self.required_k: int | None = None
        self._names: list[str] = []
        self._sizes: list[Sizes] = []
        self._everybody, self._withheld_people, self.found_by_order = Crowd(), Crowd(), Crowd()
        self._together = {name: Crowd() for name in ("alone", "below", "people")}
        self._in_several = Several()
        each = {(name,): Crowd() for name in not_promised}
        self._alone_if_known = each | {tuple(not_promised): Crowd()}
        self._metrics = dict(metrics)
        self._parts: dict[str, list[Any]] = {name: [] for name in self._metrics}
        self._cells: list[CellCounts] = []
        self._ends: list[dict[str, Ends]] = []

    def take(
        self, released: Table, release: Release, truth: Truth | None, near: np.ndarray | None
    ) -> None:
        """All that a part tells. near: (n,) bool, records that are found by the order of rows."""
        self.add(released, release)
        if truth is not None:
            self.compare(released, release, truth)
        if near is not None:
            self.found_by_order.add(release.classes.subjects, near)

    def add(self, released: Table, release: Release) -> None:
        """Everything that the release alone tells. released: its cells."""
        classes = release.classes
        self.required_k = release.required_k
        self._names = [column.name for column in release.columns]
        self.records += release.records
        self.suppressed += release.suppressed
        self.withheld += release.withheld
        self.unrounded += release.unrounded(self.schema)
        self._sizes.append(Sizes.of(classes.people()))
        self._everybody.add(classes.subjects, np.ones(release.records, dtype=bool))
        self._withheld_people.add(classes.subjects, classes.labels < 0)
        self._in_several.add(classes)
        self._add_together(classes)
        alone = np.zeros(release.records, dtype=bool)
        for names, crowd in self._alone_if_known.items():
            # whoever is alone with one column's value is alone with all of them
            chosen = [released.column(name) for name in names]
            is_alone = _is_alone(classes, chosen, alone if names[1:] else None)
            crowd.add(classes.subjects, is_alone)
            alone |= is_alone
        for name, metric in self._metrics.items():
            found = metric.part if isinstance(metric, PartedMetric) else metric.score
            self._parts[name].append(found(release))
        self._cells.append(CellCounts.of(release))

    def compare(self, released: Table, release: Release, truth: Truth) -> None:
        """What the original beside it tells."""
        for name, count in faults(released, release, self.schema, truth).items():
            self.faults[name] += count
        self._ends.append(single_ends(release, truth))

    def absorb(self, other: "Tally") -> None:
        """Everything that was added to another tally, of other classes."""
        self.required_k, self._names = other.required_k, other._names
        for name in ("records", "suppressed", "withheld", "unrounded"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name, count in other.faults.items():
            self.faults[name] += count
        for name, parts in other._parts.items():
            self._parts[name] += parts
        self._sizes += other._sizes
        self._cells += other._cells
        self._ends += other._ends
        self._everybody.absorb(other._everybody)
        self._withheld_people.absorb(other._withheld_people)
        self.found_by_order.absorb(other.found_by_order)
        self._in_several.absorb(other._in_several)
        for name, crowd in other._together.items():
            self._together[name].absorb(crowd)
        for names, crowd in other._alone_if_known.items():
            self._alone_if_known[names].absorb(crowd)

    def _add_together(self, classes: Classes) -> None:
        people, asked = classes.people(), self.required_k
        below = np.zeros(len(people), dtype=bool) if asked is None else people < asked
        chosen_classes = {"alone": people == 1, "below": below, "people": people > 0}
        for name, chosen in chosen_classes.items():
            if chosen.any():
                # the last place takes what is in no class
                self._together[name].add(classes.subjects, np.append(chosen, False)[classes.labels])

    @property
    def subjects(self) -> int:
        return len(self._everybody)

    @property
    def withheld_people(self) -> int:
        """The people of the records that are in no class, as far as they are known."""
        return len(self._withheld_people)

    def classes(self) -> SizesReport:
        """How many there are, and how many people they have."""
        return Sizes.joined(self._sizes).stated

    def together(self, people: str) -> TogetherReport:
        """How many people are alike in every quasi-identifier, as a certificate states it.

        people: whose the records are, as a certificate states it.
        asked: the largest k that is asked over any of them. alone, below: people in a class of one
        person, and of fewer than asked. in_several: people with records in several classes, where
        somebody has several records.
        """
        found = {name: len(crowd) for name, crowd in self._together.items()}
        stated: TogetherReport = {
            "attributes": self._names,
            "asked": self.required_k,
            "min": Sizes.joined(self._sizes).least,
            "alone": found["alone"],
            "below": None if self.required_k is None else found["below"],
            "people": found["people"],
            "alone_if_known": None if people == UNKNOWN else self._alone_with_all(),
        }
        if people == KNOWN and self.subjects < self.records:
            stated["in_several"] = len(self._in_several.people)
        return stated

    def _alone_with_all(self) -> int:
        return len(self._alone_if_known[max(self._alone_if_known, key=len)])

    def scores(self) -> dict[str, float | None]:
        """Every measure of utility and risk."""
        return {
            name: metric.total(parts) if isinstance(metric, PartedMetric) else parts[0]
            for (name, metric), parts in zip(
                self._metrics.items(), self._parts.values(), strict=True
            )
        }

    def starred(self) -> dict[str, int]:
        """How many records show the mark in a quasi-identifier, but not in all of them; by name,
        where there are any.
        """
        cells = CellCounts.joined(self._cells)
        counted = {
            column.name: int(counts[np.isneginf(column.lo)].sum())
            for column, counts in zip(cells.columns, cells.counts, strict=True)
        }
        return {name: records for name, records in counted.items() if records}

    def figures(self) -> ColumnFigures:
        """What each quasi-identifier lost; and of numbers, the share of ends that are one person's
        own, empty without the original.
        """
        losses = loss_by_attribute(CellCounts.joined(self._cells))
        alone = {names[0]: len(c) for names, c in self._alone_if_known.items() if len(names) == 1}
        return ColumnFigures(losses, shares_of_ends(self._ends), alone)


def _is_alone(
    classes: Classes, columns: Sequence[Column], known: np.ndarray | None = None
) -> np.ndarray:
    """(n,) bool, records of whoever is the only person of a class with what these columns show.

    known: (n,) bool, records of whom that is known already.
    """
    alone = np.zeros(len(classes.labels), dtype=bool) if known is None else known.copy()
    rows = np.flatnonzero((classes.labels >= 0) & ~alone)
    if not columns or not len(rows):
        return alone
    keys, room = classes.labels[rows].astype(np.int64), classes.count
    for column in columns:
        keys = keys * len(column.texts) + column.codes[rows]
        room *= len(column.texts)
        if room > 4 * len(keys) + _TABLE:
            distinct, keys = np.unique(keys, return_inverse=True)
            room = len(distinct)
    persons = rows if classes.subjects is None else classes.subjects[rows]
    # of all who show the same, one is known; whoever else does says that there are several
    known = np.zeros(room, dtype=persons.dtype)
    known[keys] = persons
    is_several = np.zeros(room, dtype=bool)
    is_several[keys[known[keys] != persons]] = True
    alone[rows] = ~is_several[keys]
    return alone
