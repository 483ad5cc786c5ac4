"""Top-down specialization of a cut through taxonomies: the state, and what a step does to it.

Fung, Wang, Yu. Top-down specialization for information and privacy preservation. ICDE 2005;
Anonymizing classification data for privacy preservation. IEEE TKDE 19(5):711-725, 2007. Scores:
Yang, Wang. Computer Technology and Development 27(5):102-107, 2017, section 3.4.
Promise: after every step each group of each QID has at least its k people, and no step could be
added at the end.
Paper: Cut, v -> child(v)    Here: the open candidates (candidates.py), a candidate's starts
       a(qid), A(QID)              sizes, the least size
Column form of TIPS: every attribute keeps the rows under each node of its cut, every QID the group
of each row and the size of each group. A step reads and writes the rows under its node, nothing
else. One owner (tables/methods/tds.py) and several (fusion/methods/party_tds.py) use the same
state.

Cells, nodes and taxonomies are those of `data/taxonomy.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shoal.data.taxonomy import IndexedRequirement, Span
from shoal.search.kernels import specialize


def without_implied(qids: Sequence[IndexedRequirement]) -> tuple[IndexedRequirement, ...]:
    """The QIDs that no other one implies, by at least their attributes and at least their k."""
    kept: list[IndexedRequirement] = []
    for i, qid in enumerate(qids):
        others = [*kept, *qids[i + 1 :]]
        if not any(
            set(qid.attributes) <= set(other.attributes) and qid.k <= other.k for other in others
        ):
            kept.append(qid)
    return tuple(kept)


class Candidate(NamedTuple):
    """A node of the cut that may be specialized; candidates sort from best to worst."""

    minus_score: int
    attribute: int
    lo: int
    hi: int
    starts: tuple[int, ...]

    @property
    def score(self) -> int:
        return -self.minus_score


class Step(NamedTuple):
    """A specialization that was done: the node, and the first cells of its children."""

    attribute: int
    lo: int
    hi: int
    starts: tuple[int, ...]


@dataclass
class _Groups:
    """The groups of one QID, `count` of them.

    labels: (n,) int32, group of each row. sizes: (room,) int32, rows of each group. slots: (room,)
    int32, scratch of the kernels, all -1 between calls.
    """

    qid: IndexedRequirement
    labels: np.ndarray
    sizes: np.ndarray
    slots: np.ndarray
    count: int = 1

    @classmethod
    def of_all_rows(cls, qid: IndexedRequirement, rows: int, records: int) -> _Groups:
        room = min(rows, records // qid.k) + 2
        labels = np.zeros(rows, dtype=np.int32)
        sizes = np.zeros(room, dtype=np.int32)
        sizes[0] = records
        return cls(qid, labels, sizes, np.full(room, -1, dtype=np.int32))

    @property
    def least(self) -> int:
        return int(self.sizes[: self.count].min())


class _Tally(NamedTuple):
    """What a step would do to the groups of a QID.

    touched: (t,) int32, the groups with rows under the node. counts: (t, children) int32, their
    rows by child.
    """

    groups: _Groups
    touched: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class Done:
    """A step that was done, and what is needed to undo it.

    groups: of each QID with the attribute, the labels of the rows, the touched groups, their sizes
    and the number of groups, all as they were before.
    """

    step: Step
    rows: np.ndarray
    groups: tuple[tuple[np.ndarray, np.ndarray, np.ndarray, int], ...]


class Specialization:
    """What is common knowledge of n rows: their nodes on every attribute, and their groups by QID.

    codes: for each attribute the cell of every row, (n,) integers; of another party's attribute any
    cell under the row's known node. allows: asked after every step that keeps the QIDs; a step that
    it does not allow is undone. keeps: asked before a step, for each QID: the parts, by any number,
    that the rows under the node would be in, and these rows. counts: (n,) int32, records that each
    row stands for; one each if None.
    touched: how many rows all steps and trials have read, counted once for each QID concerned.
    """

    def __init__(
        self,
        codes: Sequence[np.ndarray],
        cells: Sequence[int],
        qids: Sequence[IndexedRequirement],
        allows: Callable[[Specialization], bool] | None = None,
        keeps: Callable[[np.ndarray, np.ndarray], bool] | None = None,
        counts: np.ndarray | None = None,
    ) -> None:
        self.codes = list(codes)
        self.records = len(codes[0])
        all_rows = np.arange(self.records, dtype=np.int32)
        self.rows: list[dict[Span, np.ndarray]] = [{(0, m - 1): all_rows} for m in cells]
        self.weights = np.zeros(0, dtype=np.int32) if counts is None else counts
        total = self.records if counts is None else int(counts.sum(dtype=np.int64))
        self.groups = [
            _Groups.of_all_rows(qid, self.records, total) for qid in without_implied(qids)
        ]
        self._allows = allows
        self._keeps = keeps
        self._groups_with = [
            [groups for groups in self.groups if j in groups.qid.attributes]
            for j in range(len(self.codes))
        ]
        self.touched = 0

    def least_after(self, step: Candidate | Step) -> list[int] | None:
        """The least group of every QID with the attribute after the step; None if it is invalid."""
        tried = self._try(step)
        if tried is None:
            return None
        least = []
        for groups, touched, counts in tried[1]:
            untouched = np.ones(groups.count, dtype=bool)
            untouched[touched] = False
            least_untouched = groups.sizes[: groups.count][untouched].min(
                initial=np.iinfo(np.int32).max
            )
            least.append(min(int(least_untouched), int(counts[counts > 0].min())))
        return least

    def least_of(self, attribute: int) -> list[int]:
        """The least group of every QID with the attribute now."""
        return [groups.least for groups in self._groups_with[attribute]]

    def step(self, step: Candidate | Step) -> Done | None:
        """Specializes the node if every QID stays valid, and returns what undoes it; else None."""
        tried = self._try(step)
        if tried is None:
            return None
        child, tallies = tried
        node = (step.lo, step.hi)
        rows = self.rows[step.attribute].pop(node)
        before = []
        for groups, touched, counts in tallies:
            before.append((groups.labels[rows], touched, groups.sizes[touched], groups.count))
            groups.count = specialize.relabel(
                rows,
                child,
                groups.labels,
                groups.slots,
                touched,
                len(touched),
                counts,
                groups.sizes,
                groups.count,
            )
        by_child, begins = specialize.part(rows, child, len(step.starts))
        for c, span in enumerate(spans_of(step)):
            self.rows[step.attribute][span] = by_child[begins[c] : begins[c + 1]]
        done = Done(Step(step.attribute, *node, step.starts), rows, tuple(before))
        if self._allows is None or self._allows(self):
            return done
        self.undo(done)
        return None

    def undo(self, done: Done) -> None:
        """Undoes the last step."""
        for span in spans_of(done.step):
            del self.rows[done.step.attribute][span]
        self.rows[done.step.attribute][done.step.lo, done.step.hi] = done.rows
        groups_with = self._groups_with[done.step.attribute]
        for groups, (labels, touched, sizes, count) in zip(groups_with, done.groups, strict=True):
            groups.labels[done.rows] = labels
            groups.sizes[touched] = sizes
            groups.count = count

    def cut(self, attribute: int) -> list[Span]:
        """The nodes of the attribute's cut, from left to right."""
        return sorted(self.rows[attribute])

    def nodes(self, attribute: int) -> np.ndarray:
        """The number of every row's node in the attribute's cut, (n,) int32."""
        numbers = np.empty(self.records, dtype=np.int32)
        for number, span in enumerate(self.cut(attribute)):
            numbers[self.rows[attribute][span]] = number
        return numbers

    def _try(self, step: Candidate | Step) -> tuple[np.ndarray, list[_Tally]] | None:
        """The child of every row under the node, a tally for each QID; None if it is invalid."""
        rows = self.rows[step.attribute][step.lo, step.hi]
        child = specialize.children_of(
            rows, self.codes[step.attribute], step.lo, child_of_cell(step)
        )
        tallies = []
        for groups in self._groups_with[step.attribute]:
            self.touched += len(rows)
            room = min(len(rows), groups.count)
            touched = np.empty(room, dtype=np.int32)
            counts = np.empty((room, len(step.starts)), dtype=np.int32)
            used = specialize.tally(
                rows,
                child,
                self.weights,
                len(step.starts),
                groups.labels,
                groups.slots,
                touched,
                counts,
            )
            tally = _Tally(groups, touched[:used], counts[:used])
            if specialize.least_count(tally.counts, used) < groups.qid.k:
                return None
            if self._keeps is not None:
                parts = groups.labels[rows].astype(np.int64) * len(step.starts) + child
                if not self._keeps(parts, rows):
                    return None
            tallies.append(tally)
        return child, tallies


def spans_of(step: Candidate | Step) -> list[Span]:
    """The children of a step, from left to right."""
    ends = [*step.starts[1:], step.hi + 1]
    return [(lo, end - 1) for lo, end in zip(step.starts, ends, strict=True)]


def child_of_cell(step: Candidate | Step) -> np.ndarray:
    """The child that holds each cell of the node; (cells,) uint16."""
    ends = np.array([*step.starts[1:], step.hi + 1])
    return np.repeat(np.arange(len(ends), dtype=np.uint16), ends - np.array(step.starts))
