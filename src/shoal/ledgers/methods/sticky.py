"""Sticky groups: people who come again are published with the same group for ever.

Ours, not a paper's.
Promise: everybody shares the whole history of classes and absences with at least k people, so the
releases stay as they are under every permutation of whole sensitive trajectories among those who
share it. The argument: a class shows a box, made of quasi-identifiers alone, and the sensitive rows
of its people; classes are unions of groups of people with one history, so the rows of a class stay
the same rows. Whose trajectory is which is one in k, whether values stay or change.
Lemma: histories stay shared by k where each class is a union of whole groups, of parts of a group
where part and rest have k people, and of k newcomers or more. Who shares a history with fewer than
k never shares one with more again, so no later merging repairs it.
Where all sensitive values are fresh in every release (`together`), members may miss releases, and
the promise is weaker: at least k people were in every class that a person was in.
Where all stay for ever (`carried`), the absent show the values that they showed before, so that
nobody's absence is seen, and the first promise holds.
Promises besides k are kept in every release, not over the history.
Minimality: promises besides k decide which groups are united and which wait, so somebody who knows
how may conclude a little about values from a union. k alone never looks at a value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from shoal.data import ledger_view
from shoal.data.classes import Population
from shoal.data.ledger_view import LedgerView, Panel, PanelChange, Placement
from shoal.data.option import parameter
from shoal.data.partition import Matrix, Partition
from shoal.errors import InfeasibleError, InputError
from shoal.ledgers.methods import waiting as waits
from shoal.protocols import AnonymityRequirement, Promises, Republisher
from shoal.search.clustering import points_of
from shoal.search.large_tables import PartPromises
from shoal.search.segments import losses_of, repair, span_costs

Round = tuple[np.ndarray, Panel]
"""(n,) int32, the group that each record is published with, -1 for none; the panel after it."""


@dataclass(frozen=True)
class Sticky(Republisher):
    """Groups that stay. Draws no random number, unless `cluster` does."""

    name: ClassVar[str] = "sticky"
    paper: ClassVar[str] = "Ours; the proof is in the method's page."
    covers: ClassVar[str] = "increment"
    needs: ClassVar[str] = "nothing"
    guards: ClassVar[str] = "cells"
    returns: ClassVar[bool] = True
    changes: ClassVar[bool] = False
    remedy: ClassVar[str] = (
        "Please report it: by its construction, 'sticky' never breaks a history."
    )

    size: int = parameter(
        "least people of a new group; 0: twice k, or one and a half times k where the"
        " values of absent people are carried",
        default=0,
        low=0,
    )
    patience: int = parameter(
        "increments that a whole group waits for its absent people before it goes on"
        " without them; only where sensitive values may stay or change",
        default=2,
        low=0,
    )
    split: float = parameter(
        "a group parts for good once its loss is this multiple of a new group's; 0: never",
        default=0.0,
        low=0,
    )
    cluster: str = parameter(
        "the method for tables that finds new groups",
        default="rounded-partition",
        choices=waits.TABLE_METHODS,
    )
    waiting: str = field(default=waits.AT_ONCE, metadata=waits.WAITING)
    price: float = field(default=0.005, metadata=waits.PRICE)
    deadline: int = field(default=6, metadata=waits.DEADLINE)

    def publish(
        self, increment: Matrix, view: LedgerView, promises: Promises, rng: np.random.Generator
    ) -> Placement:
        """A class for each group that can be published, united where promises fail."""
        k = max(promises.k, 2)  # nobody is published alone
        size = self.size_for(view.panel.mode, k)
        if view.panel.mode == ledger_view.LOCKSTEP:
            published = _in_lockstep(increment, view, k, self.patience)
        else:
            published = _without_waiting(view, k), view.panel
        groups, panel = self._parted(increment, view, promises, k, published)
        new = self._new_groups(increment, view, promises, (k, size), rng)
        if self.waiting == waits.PRICED:
            due = waits.is_due(increment, new, view, self.price, self.deadline)
            is_out = (new.labels >= 0) & due[new.labels] if new.count else new.labels >= 0
            new = Partition.of(np.where(is_out, new.labels, -1))
        founded = np.where(new.labels >= 0, new.labels + panel.groups, -1).astype(np.int32)
        # all of it; else what can be published alone, as promises that compare with all may fail
        for shown in (np.where(founded >= 0, founded, groups), groups, founded):
            partition = waits.holding(increment, shown, promises)
            if partition.count:
                break
        founded = np.where(partition.labels >= 0, founded, np.int32(-1))
        if (founded >= 0).any():
            loss = np.concatenate([panel.loss, losses_of(increment, new)])
            silent = np.concatenate([panel.silent, np.zeros(new.count, dtype=np.int32)])
            panel = replace(panel, silent=silent, loss=loss)
        change = PanelChange(panel, founded)
        return Placement(partition.labels, partition.count, panel=change)

    def size_for(self, mode: str, k: int) -> int:
        """Least people of a new group; raises InputError where it is below k."""
        if not self.size:
            return 2 * k if mode != ledger_view.CARRIED else -(-3 * k // 2)
        if self.size < k:
            raise InputError(
                f"method 'sticky': 'size' is {self.size}, and a class needs {k} people; give"
                f" {k} or more"
            )
        return self.size

    def _parted(
        self, increment: Matrix, view: LedgerView, promises: Promises, k: int, published: Round
    ) -> Round:
        """The groups published again, in two where they are whole and have drifted apart."""
        groups, panel = published
        if not self.split or panel.mode == ledger_view.TOGETHER or not (groups >= 0).any():
            return published
        numbers, labels = np.unique(groups, return_inverse=True)
        labels = labels.reshape(-1).astype(np.int32) - np.int32(numbers[0] < 0)
        numbers = numbers[numbers >= 0]
        losses = losses_of(increment, Partition(labels, len(numbers)))
        here = np.bincount(labels[~view.is_carried & (labels >= 0)], minlength=len(numbers))
        is_whole = here == panel.live_people()[numbers]
        wide = (losses > self.split * float(panel.loss.mean())) & is_whole & (here >= 2 * k)
        groups, group_of = groups.copy(), panel.group.copy()
        new: list[int] = []
        for number in numbers[wide].tolist():
            rows = np.flatnonzero(groups == number)
            high = _far_half(increment, rows)
            sides = np.full(increment.records, -1, dtype=np.int32)
            sides[rows], sides[high] = 0, 1
            if promises.holds(sides, 2).all():
                groups[high] = group_of[view.person[high]] = panel.groups + len(new)
                new.append(number)
        silent = np.concatenate([panel.silent, panel.silent[new]])
        loss = np.concatenate([panel.loss, panel.loss[new]])
        return groups, replace(panel, group=group_of, silent=silent, loss=loss)

    def _new_groups(
        self,
        increment: Matrix,
        view: LedgerView,
        promises: Promises,
        sizes: tuple[int, int],
        rng: np.random.Generator,
    ) -> Partition:
        """Groups of newcomers, each keeping every promise; none where there are too few.

        sizes: least people of any group, and of a new one unless somebody waited too long.
        """
        labels = np.full(increment.records, -1, dtype=np.int32)
        rows = np.flatnonzero(view.person < 0)
        k, size = sizes
        if self.waiting == waits.PRICED and (view.waited[rows] >= self.deadline).any():
            size = min(size, max(k, len(rows)))
        if len(rows) < size:
            return Partition(labels, 0)
        newcomers = increment.take(rows)
        asked = _OfNewGroups(promises, rows, increment.records, size)
        try:
            found = repair(newcomers, view.partition(self.cluster, newcomers, asked, rng), asked)
        except InfeasibleError:  # they wait for others
            return Partition(labels, 0)
        labels[rows] = found.labels
        return Partition(labels, found.count)


class _OfNewGroups(PartPromises):
    """All promises of the newcomers, and `size` people in a group; everybody has one record."""

    def __init__(self, promises: Promises, rows: np.ndarray, records: int, size: int) -> None:
        super().__init__(promises, rows, records)
        self.k = size

    @property
    def qids(self) -> tuple[AnonymityRequirement, ...]:
        return (AnonymityRequirement((), self.k),)

    def holds(
        self,
        labels: np.ndarray,
        count: int,
        quasi: Mapping[str, np.ndarray] | None = None,
        population: Mapping[str, Population] | None = None,
    ) -> np.ndarray:
        enough = np.bincount(labels[labels >= 0], minlength=count) >= self.k
        return super().holds(labels, count, quasi, population) & enough


# Which groups are published again


def _in_lockstep(matrix: Matrix, view: LedgerView, k: int, patience: int) -> Round:
    """Groups all of whom are here; after `patience`, those of them who may go on alone.

    Whoever is left behind leaves with k people at least, so that they share a history, too.
    """
    panel = view.panel
    live = panel.live_people()
    group = (
        np.where(view.person >= 0, panel.group[view.person], -1) if panel.people else view.person
    )
    is_whole = (live > 0) & (np.bincount(group[group >= 0], minlength=panel.groups) == live)
    silent = np.where(is_whole, 0, panel.silent + (live > 0)).astype(np.int32)
    status = panel.status.copy()
    points = points_of(matrix, "range")
    for number in np.flatnonzero(silent > patience).tolist():
        members = np.flatnonzero((panel.group == number) & panel.is_live)
        here = np.flatnonzero(group == number)
        absent = np.setdiff1d(members, view.person[here])
        others = max(0, k - len(absent))
        if len(here) - others < k:
            status[members] = ledger_view.CLOSED
            silent[number] = 0
            continue
        status[absent] = ledger_view.RETIRED
        status[view.person[_farthest(points, here, others)]] = ledger_view.RETIRED
        is_whole[number], silent[number] = True, 0
    goes_on = (group >= 0) & is_whole[group] if panel.groups else group >= 0
    goes_on[goes_on] = status[view.person[goes_on]] == panel.status[view.person[goes_on]]
    groups = np.where(goes_on, group, -1).astype(np.int32)
    return groups, replace(panel, status=status, silent=silent)


def _without_waiting(view: LedgerView, k: int) -> np.ndarray:
    """The group that each record is published with where nobody waits for absent people.

    `together`: all of a group who are here and have company. `carried`: all of it, also by the
    records that are carried, where at least k are here.
    """
    groups = np.full(len(view.person), -1, dtype=np.int32)
    for number, rows in _rows_by_group(view):
        if view.panel.mode == ledger_view.TOGETHER:
            groups[rows[in_company(view.panel.rounds[view.person[rows]], k)]] = number
        elif int((~view.is_carried[rows]).sum()) >= k:
            groups[rows] = number
    return groups


def in_company(rounds: np.ndarray, k: int) -> np.ndarray:
    """The most of these people of whom each has k who were in every release that the person was in.

    rounds: (g, words) uint64, the releases that each was in. (g,) bool. Sets that are valid stay
    so when united, hence there is a greatest one, and whoever has too few is in none.
    """
    kept = np.ones(len(rounds), dtype=bool)
    was_there = ((rounds[:, None, :] & ~rounds[None, :, :]) == 0).all(axis=2)
    while True:
        alone = kept & ((was_there & kept[None, :]).sum(axis=1) < k)
        if not alone.any():
            return kept
        kept &= ~alone


def _rows_by_group(view: LedgerView) -> list[tuple[int, np.ndarray]]:
    rows = np.flatnonzero(view.person >= 0)
    if not len(rows):
        return []
    group = view.panel.group[view.person[rows]]
    order = np.argsort(group, kind="stable")
    numbers, starts = np.unique(group[order], return_index=True)
    return list(zip(numbers.tolist(), np.split(rows[order], starts[1:]), strict=True))


def _farthest(points: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
    """So many of these records, the farthest from their median."""
    own = points[:, rows]
    distance = ((own - np.median(own, axis=1, keepdims=True)) ** 2).sum(axis=0)
    return rows[np.argsort(-distance, kind="stable")[:count]]


def _far_half(matrix: Matrix, rows: np.ndarray) -> np.ndarray:
    """The upper half of these records on the attribute on which they lose most."""
    widest = int(span_costs(matrix, rows).argmax())
    order = np.argsort(matrix.codes[rows, widest], kind="stable")
    return rows[order[len(rows) // 2 :]]
