"""Top-down specialization of a cut through the attributes' taxonomies: what one owner and several
have in common.

Fung, Wang, Yu. Top-down specialization for information and privacy preservation. ICDE 2005;
Anonymizing classification data for privacy preservation. IEEE TKDE 19(5):711-725, 2007. Scores:
Yang, Wang. Computer Technology and Development 27(5):102-107, 2017, section 3.4.
Promise: after every step each group of each QID has at least its k people, and no step could be
added at the end.
Paper: Cut, v -> child(v), a(qid), A(QID)    Here: the open candidates, a candidate's starts, sizes, the least size
Column form of TIPS: every attribute keeps the rows under each node of its cut, every QID the group
of each row and the size of each group. A step reads and writes the rows under its node, nothing
else.

An attribute is a row of *cells* 0..m-1: the leaves of a hierarchy in depth-first order, or the
points of a number's grid. A node is a span of cells, and a specialization is where its children
start.
Reading: a number splits in two at the occupied cell of most gain, the lowest among equals, whatever
is valid; a node whose records share one cell is no candidate. Reading: 0/0 is 0: a category's node
with one child in use scores nothing and is specialized while that is valid; a node without records
is left as it is.
Reading: scores are whole numbers, 2**24 for 1, from counts summed in a fixed order, so that
everybody computes the same; among equals the attribute first in name and then the leftmost node
goes first, whoever owns it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.errors import InputError
from shoal.kernels import specialize

SCORES = ("gain-ratio", "gain", "gain-per-loss")
UNIT = 1 << 24
FINE_UNIT = 1 << 40  # gain divided by lost people needs finer steps
MOST_CHILDREN = 1 << 16

Span = tuple[int, int]
"""First and last cell of a node."""


@dataclass(frozen=True)
class Taxonomy:
    """The public part of an attribute: how many cells it has, and the children of its nodes.

    children: node -> first cells of its children, ascending. is_number: whether the data splits
    other nodes in two.
    """

    cells: int
    children: Mapping[Span, np.ndarray] = field(default_factory=dict)
    is_number: bool = False

    @classmethod
    def of_tree(cls, hierarchy: Hierarchy) -> Taxonomy:
        below: dict[int, list[int]] = {}
        for node, parent in enumerate(hierarchy.parent.tolist()):
            if parent >= 0:
                below.setdefault(parent, []).append(int(hierarchy.first[node]))
        spans = {node: (int(hierarchy.first[node]), int(hierarchy.last[node])) for node in below}
        return cls(
            hierarchy.leaves,
            {spans[node]: np.array(sorted(starts)) for node, starts in below.items()},
        )

    @property
    def root(self) -> Span:
        return 0, self.cells - 1


@dataclass(frozen=True)
class AnonymityRequirement:
    """Attributes, by their number, that somebody could combine, and how many people must share each
    combination.
    """

    attributes: tuple[int, ...]
    k: int


def without_implied(qids: Sequence[AnonymityRequirement]) -> tuple[AnonymityRequirement, ...]:
    """Those QIDs that no other one with at least their attributes and at least their k makes
    superfluous.
    """
    kept: list[AnonymityRequirement] = []
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
    """The groups of one QID. labels: (n,) int32 group of each row. sizes: (room,) int32, `count` of
    them in use.
    """

    qid: AnonymityRequirement
    labels: np.ndarray
    sizes: np.ndarray
    place: np.ndarray
    count: int = 1

    @classmethod
    def of_everybody(cls, qid: AnonymityRequirement, records: int) -> _Groups:
        room = records // qid.k + 2
        sizes = np.zeros(room, dtype=np.int32)
        sizes[0] = records
        return cls(qid, np.zeros(records, dtype=np.int32), sizes, np.full(room, -1, dtype=np.int32))

    @property
    def least(self) -> int:
        return int(self.sizes[: self.count].min())


class _Tally(NamedTuple):
    """What a step would do to the groups of a QID: those it touches, and their parts by child."""

    groups: _Groups
    seen: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class Done:
    """A step that was done, and what it takes to take it back."""

    step: Step
    rows: np.ndarray
    groups: tuple[tuple[np.ndarray, np.ndarray, np.ndarray, int], ...]


class Specialization:
    """What is common knowledge of n rows: their nodes on every attribute, and their groups by QID.

    codes: for each attribute the cell of every row, (n,) integers; of somebody else's attribute any
    cell under the row's known node. allows: asked after every step that keeps the QIDs; a step that
    it does not allow is undone.
    touched: how many rows all steps and trials have read, counted once for each QID that they bear
    on.
    """

    def __init__(
        self,
        codes: Sequence[np.ndarray],
        cells: Sequence[int],
        qids: Sequence[AnonymityRequirement],
        allows: Callable[[Specialization], bool] | None = None,
    ) -> None:
        self.codes = list(codes)
        self.records = len(codes[0])
        everybody = np.arange(self.records, dtype=np.int32)
        self.rows: list[dict[Span, np.ndarray]] = [{(0, m - 1): everybody} for m in cells]
        self.groups = [_Groups.of_everybody(qid, self.records) for qid in without_implied(qids)]
        self._allows = allows
        self._of = [
            [g for g in self.groups if j in g.qid.attributes] for j in range(len(self.codes))
        ]
        self.touched = 0

    def least_after(self, step: Candidate | Step) -> list[int] | None:
        """The least group of every QID with the attribute, were the step done; None where one would
        be too small.
        """
        tried = self._try(step)
        if tried is None:
            return None
        least = []
        for tally in tried[1]:
            others = np.ones(tally.groups.count, dtype=bool)
            others[tally.seen] = False
            rest = tally.groups.sizes[: tally.groups.count][others]
            least.append(
                min(
                    int(rest.min(initial=np.iinfo(np.int32).max)),
                    int(tally.counts[tally.counts > 0].min()),
                )
            )
        return least

    def least_of(self, attribute: int) -> list[int]:
        """The least group of every QID with the attribute, as things are."""
        return [groups.least for groups in self._of[attribute]]

    def step(self, step: Candidate | Step) -> Done | None:
        """Specializes the node if every QID stays valid; what takes it back, or None where it would
        not.
        """
        tried = self._try(step)
        if tried is None:
            return None
        child, tallies = tried
        at = (step.lo, step.hi)
        rows = self.rows[step.attribute].pop(at)
        kept = []
        for groups, seen, counts in tallies:
            kept.append((groups.labels[rows], seen, groups.sizes[seen], groups.count))
            groups.count = specialize.relabel(
                rows,
                child,
                groups.labels,
                groups.place,
                seen,
                len(seen),
                counts,
                groups.sizes,
                groups.count,
            )
        parted, begins = specialize.part(rows, child, len(step.starts))
        for c, span in enumerate(spans_of(step)):
            self.rows[step.attribute][span] = parted[begins[c] : begins[c + 1]]
        done = Done(Step(step.attribute, *at, step.starts), rows, tuple(kept))
        if self._allows is None or self._allows(self):
            return done
        self.undo(done)
        return None

    def undo(self, done: Done) -> None:
        """Takes the last step back."""
        for span in spans_of(done.step):
            del self.rows[done.step.attribute][span]
        self.rows[done.step.attribute][done.step.lo, done.step.hi] = done.rows
        for groups, (labels, seen, sizes, count) in zip(
            self._of[done.step.attribute], done.groups, strict=True
        ):
            groups.labels[done.rows] = labels
            groups.sizes[seen] = sizes
            groups.count = count

    def cut(self, attribute: int) -> list[Span]:
        """The nodes of the attribute's cut, from left to right."""
        return sorted(self.rows[attribute])

    def nodes(self, attribute: int) -> np.ndarray:
        """The place of every row's node in the attribute's cut, (n,) int32."""
        places = np.empty(self.records, dtype=np.int32)
        for place, span in enumerate(self.cut(attribute)):
            places[self.rows[attribute][span]] = place
        return places

    def _try(self, step: Candidate | Step) -> tuple[np.ndarray, list[_Tally]] | None:
        """The child of every row under the node, and a tally for each QID; None where a part would
        be too small.
        """
        rows = self.rows[step.attribute][step.lo, step.hi]
        child = specialize.children_of(
            rows, self.codes[step.attribute], step.lo, child_of_cell(step)
        )
        tallies = []
        for groups in self._of[step.attribute]:
            self.touched += len(rows)
            room = min(len(rows), groups.count)
            seen, counts = (
                np.empty(room, dtype=np.int32),
                np.empty((room, len(step.starts)), dtype=np.int32),
            )
            found = specialize.tally(
                rows, child, len(step.starts), groups.labels, groups.place, seen, counts
            )
            tally = _Tally(groups, seen[:found], counts[:found])
            if specialize.least_count(tally.counts, found) < groups.qid.k:
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


class Taken(NamedTuple):
    """The best candidate's step: how it scored, which candidates were open before, and its children
    among them.
    """

    done: Done
    score: int
    before: list[Candidate]
    admitted: list[Candidate]


@dataclass
class Candidates:
    """The open candidates of some attributes, whose raw columns and classes are at hand.

    taxonomies: by attribute number. counts: by attribute, records up to each cell by class, (cells
    + 1, classes).
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
                self.state.codes[j], self.classes, taxonomy.cells, labels
            )
            self.counts[j] = np.concatenate(
                [np.zeros((1, labels), dtype=np.int64), by_cell.cumsum(axis=0)]
            )
            self.admit([taxonomy.root], j)

    def admit(self, spans: Sequence[Span], attribute: int) -> list[Candidate]:
        """Scores the nodes and puts those that can be specialized among the open candidates."""
        fresh = [
            found
            for found in (self._scored(attribute, span) for span in spans)
            if found is not None
        ]
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
        """Does the step of the best valid candidate and admits its children; None where none is
        valid.

        among: the open candidates to choose from, all by default. Those that are found invalid are
        closed: a group never grows, so they stay invalid.
        """
        among = self.open if among is None else among
        found = (
            self._most_per_loss(among)
            if self.score == "gain-per-loss"
            else self._first_valid(among)
        )
        if found is None:
            return None
        candidate, score, done = found
        before = list(self.open)
        self.open.remove(candidate)
        return Taken(done, score, before, self.admit(spans_of(candidate), candidate.attribute))

    def take_back(self, taken: Taken) -> None:
        """Undoes the last step."""
        self.state.undo(taken.done)
        self.open = taken.before

    def _first_valid(self, among: Sequence[Candidate]) -> tuple[Candidate, int, Done] | None:
        for candidate in sorted(among):
            done = self.state.step(candidate)
            if done is not None:
                return candidate, candidate.score, done
            self.open.remove(candidate)
        return None

    def _most_per_loss(self, among: Sequence[Candidate]) -> tuple[Candidate, int, Done] | None:
        """The same where a score depends on how much anonymity the step costs, which every step
        changes.
        """
        scored = []
        for candidate in sorted(among):
            after = self.state.least_after(candidate)
            if after is None:
                self.open.remove(candidate)
                continue
            losses = [
                before - a
                for before, a in zip(self.state.least_of(candidate.attribute), after, strict=True)
            ]
            score = quantized(
                candidate.score / UNIT / (float(np.mean(losses)) + 1 if losses else 1), FINE_UNIT
            )
            scored.append((-score, candidate.attribute, candidate.lo, candidate))
        for minus_score, _, _, candidate in sorted(scored):
            done = self.state.step(candidate)
            if done is not None:
                return candidate, -minus_score, done
            self.open.remove(candidate)
        return None


def quantized(score: float, unit: int = UNIT) -> int:
    return max(int(np.rint(score * unit)), 0)


def n_log_n(counts: np.ndarray) -> np.ndarray:
    """n * log2(n), 0 for 0; the entropy of counts is (n_log_n(sum) - sum of n_log_n) / sum."""
    counts = counts.astype(np.float64)
    return counts * np.log2(np.where(counts > 0, counts, 1.0))


def gain_and_split(counts: np.ndarray, starts: np.ndarray, hi: int) -> tuple[float, float]:
    """Gain and SplitInfo (both in bits) of a node whose children start at these cells. counts:
    running, as above.
    """
    parts = np.diff(counts[np.append(starts, hi + 1)], axis=0)
    whole, sizes = parts.sum(axis=0), parts.sum(axis=1)
    n = sizes.sum()
    split = n_log_n(n[None])[0] - n_log_n(sizes).sum()
    gain = split - n_log_n(whole).sum() + n_log_n(parts).sum()
    return max(gain / n, 0.0), max(split / n, 0.0)


def best_split(counts: np.ndarray, lo: int, hi: int) -> tuple[tuple[int, int] | None, float]:
    """Where a span of cells splits in two with most gain: the children's first cells, and the gain;
    None where nowhere.

    Only cells that hold somebody begin a child.
    """
    within = counts[lo : hi + 2]
    running = within - within[0]
    totals = running.sum(axis=1)
    occupied = np.flatnonzero(np.diff(totals) > 0)
    if len(occupied) < 2:
        return None, 0.0
    places = occupied[1:]
    left, right = running[places], running[-1] - running[places]
    n, sizes = totals[-1], (totals[places], totals[-1] - totals[places])
    split = n_log_n(n[None])[0] - n_log_n(sizes[0]) - n_log_n(sizes[1])
    gain = (
        split - n_log_n(running[-1]).sum() + n_log_n(left).sum(axis=1) + n_log_n(right).sum(axis=1)
    )
    # compared in whole steps, so that rounding errors make no difference among equals
    best = int(np.argmax(np.rint(gain / n * UNIT)))
    return (lo, lo + int(places[best])), float(max(gain[best] / n, 0.0))
