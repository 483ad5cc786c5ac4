"""Top-down specialization of a cut through taxonomies: the state, and what a step does to it.

Fung, Wang, Yu. Top-down specialization for information and privacy preservation. ICDE 2005;
Anonymizing classification data for privacy preservation. IEEE TKDE 19(5):711-725, 2007. Scores:
Yang, Wang. Computer Technology and Development 27(5):102-107, 2017, section 3.4.
Promise: after every step each group of each QID has at least its k people, and no step could be
added at the end.
Paper: Cut, v -> child(v)    Here: the open candidates, a candidate's starts
       a(qid), A(QID)              sizes, the least size
Column form of TIPS: every attribute keeps the rows under each node of its cut, every QID the group
of each row and the size of each group. A step reads and writes the rows under its node, nothing
else. One owner (tables/methods/tds.py) and several (fusion/methods/party_tds.py) use the same
state.

Cells, nodes and taxonomies are those of `data/schema.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from shoal.data.schema import IndexedRequirement, Span, Taxonomy
from shoal.errors import InputError
from shoal.search.kernels import specialize

MOST_ROWS = np.iinfo(np.int32).max


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
    def of_all_rows(cls, qid: IndexedRequirement, rows: int, records: int) -> "_Groups":
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

    @property
    def least(self) -> int:
        """The smallest part of a group that is not empty."""
        return int(self.counts.min(initial=MOST_ROWS, where=self.counts > 0))


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
        allows: "Callable[[Specialization], bool] | None" = None,
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
        for tally in tried[1]:
            untouched = np.ones(tally.groups.count, dtype=bool)
            untouched[tally.touched] = False
            sizes = tally.groups.sizes[: tally.groups.count]
            least.append(min(int(sizes.min(initial=MOST_ROWS, where=untouched)), tally.least))
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
            if tally.least < groups.qid.k:
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


# Candidates of top-down specialization: which nodes can be specialized, and what that is worth.
#
# Reading: a number splits in two at the occupied cell of most gain, the lowest among equals,
# whatever is valid; a node whose records share one cell is not a candidate. Reading: 0/0 is 0: a
# category's node with one child in use scores nothing and is specialized while that is valid; a
# node without records is left as it is. Reading: scores are whole numbers, 2**24 for 1, from counts
# summed in a fixed order, so that all parties compute the same; among equals the attribute first in
# name and then the leftmost node goes first, whoever owns it.


SCORES = ("gain-ratio", "gain", "gain-per-loss")
UNIT = 1 << 24
FINE_UNIT = 1 << 40  # gain divided by lost people needs finer steps
MOST_CHILDREN = 1 << 16


class Taken(NamedTuple):
    """The best candidate's step: its score, the candidates open before, the children admitted."""

    done: Done
    score: int
    before: list[Candidate]
    admitted: list[Candidate]


@dataclass
class Candidates:
    """The open candidates of some attributes, whose raw columns and classes are at hand.

    taxonomies: by attribute number. counts: by attribute, running counts of the records by class,
    (cells + 1, classes).
    """

    state: Specialization
    taxonomies: Mapping[int, Taxonomy]
    classes: np.ndarray
    score: str = "gain-ratio"
    open: list[Candidate] = field(default_factory=list)
    counts: dict[int, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        labels = int(self.classes.max(initial=-1)) + 1
        for j, taxonomy in self.taxonomies.items():
            by_cell = specialize.class_counts(
                self.state.codes[j], self.classes, self.state.weights, taxonomy.cells, labels
            )
            self.counts[j] = np.concatenate(
                [np.zeros((1, labels), dtype=np.int64), by_cell.cumsum(axis=0)]
            )
            self.admit([taxonomy.root], j)

    def admit(self, spans: Sequence[Span], attribute: int) -> list[Candidate]:
        """Scores the nodes and puts those that can be specialized among the open candidates."""
        scored = (self._scored(attribute, span) for span in spans)
        fresh = [candidate for candidate in scored if candidate is not None]
        self.open = sorted(self.open + fresh)
        return fresh

    def _scored(self, attribute: int, span: Span) -> Candidate | None:
        lo, hi = span
        taxonomy, counts = self.taxonomies[attribute], self.counts[attribute]
        starts: np.ndarray | tuple[int, int] | None = taxonomy.children.get(span)
        if starts is not None and (counts[hi + 1] - counts[lo]).any():
            gain, split = gain_and_split(counts, np.asarray(starts), hi)
            score = gain if self.score != "gain-ratio" else gain / split if split > 0 else 0.0
        elif starts is None and taxonomy.is_number:
            starts, score = best_split(counts, lo, hi)
        else:
            return None
        if starts is None:
            return None
        if len(starts) > MOST_CHILDREN:
            raise InputError(
                f"a hierarchy has a node with {len(starts)} children, {MOST_CHILDREN} are possible;"
                " add levels"
            )
        return Candidate(-quantized(score), attribute, lo, hi, tuple(np.asarray(starts).tolist()))

    def take_best(self, among: Sequence[Candidate] | None = None) -> Taken | None:
        """Does the step of the best valid candidate and admits its children; None if none is valid.

        among: the open candidates to choose from, all by default. Invalid ones are closed on the
        way: a group never grows, so they stay invalid.
        """
        among = self.open if among is None else among
        scored = [(candidate.score, candidate) for candidate in sorted(among)]
        for score, candidate in self._per_loss(among) if self.score == "gain-per-loss" else scored:
            done = self.state.step(candidate)
            before = list(self.open)
            self.open.remove(candidate)
            if done is not None:
                admitted = self.admit(spans_of(candidate), candidate.attribute)
                return Taken(done, score, before, admitted)
        return None

    def take_back(self, taken: Taken) -> None:
        self.state.undo(taken.done)
        self.open = taken.before

    def close(self, step: Step) -> None:
        """Never does this step, which was refused for a reason that is not known here."""
        node = step.attribute, step.lo, step.hi
        self.open = [c for c in self.open if (c.attribute, c.lo, c.hi) != node]

    def _per_loss(self, among: Sequence[Candidate]) -> list[tuple[int, Candidate]]:
        """By a score that depends on the anonymity lost, which every step changes; best first."""
        scored = []
        for candidate in sorted(among):
            after = self.state.least_after(candidate)
            if after is None:
                self.open.remove(candidate)
                continue
            before = self.state.least_of(candidate.attribute)
            losses = [least - later for least, later in zip(before, after, strict=True)]
            divisor = float(np.mean(losses)) + 1 if losses else 1
            score = quantized(candidate.score / UNIT / divisor, FINE_UNIT)
            scored.append((-score, candidate.attribute, candidate.lo, candidate))
        return [(-minus_score, candidate) for minus_score, _, _, candidate in sorted(scored)]


def quantized(score: float, unit: int = UNIT) -> int:
    """The score as a whole number of units, at least 0."""
    return max(int(np.rint(score * unit)), 0)


def n_log_n(counts: np.ndarray) -> np.ndarray:
    """n * log2(n), 0 for 0; the entropy of counts is (n_log_n(sum) - sum of n_log_n) / sum."""
    counts = counts.astype(np.float64)
    return counts * np.log2(np.where(counts > 0, counts, 1.0))


def gain_and_split(counts: np.ndarray, starts: np.ndarray, hi: int) -> tuple[float, float]:
    """Gain and SplitInfo (both in bits) of a node whose children start at these cells.

    counts: as in Candidates.
    """
    parts = np.diff(counts[np.append(starts, hi + 1)], axis=0)
    whole = parts.sum(axis=0)
    sizes = parts.sum(axis=1)
    n = sizes.sum()
    split = n_log_n(n[None])[0] - n_log_n(sizes).sum()
    gain = split - n_log_n(whole).sum() + n_log_n(parts).sum()
    return max(gain / n, 0.0), max(split / n, 0.0)


def best_split(counts: np.ndarray, lo: int, hi: int) -> tuple[tuple[int, int] | None, float]:
    """Where a span of cells splits in two with most gain: the children's first cells, and the gain.

    Only cells with records begin a child, so there is no split (None) with fewer than two of them.
    """
    within = counts[lo : hi + 2]
    running = within - within[0]
    totals = running.sum(axis=1)
    occupied = np.flatnonzero(np.diff(totals) > 0)
    if len(occupied) < 2:
        return None, 0.0
    starts = occupied[1:]  # where the second child can begin
    left = running[starts]
    right = running[-1] - left
    n = totals[-1]
    split = n_log_n(n[None])[0] - n_log_n(totals[starts]) - n_log_n(n - totals[starts])
    gain = (
        split - n_log_n(running[-1]).sum() + n_log_n(left).sum(axis=1) + n_log_n(right).sum(axis=1)
    )
    # compared in whole steps, so that rounding errors make no difference among equals
    best = int(np.argmax(np.rint(gain / n * UNIT)))
    return (lo, lo + int(starts[best])), float(max(gain[best] / n, 0.0))
