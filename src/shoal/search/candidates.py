"""Candidates of top-down specialization: which nodes can be specialized, and what that is worth.

Fung, Wang, Yu. Top-down specialization for information and privacy preservation. ICDE 2005;
Anonymizing classification data for privacy preservation. IEEE TKDE 19(5):711-725, 2007. Scores:
Yang, Wang. Computer Technology and Development 27(5):102-107, 2017, section 3.4.
Reading: a number splits in two at the occupied cell of most gain, the lowest among equals, whatever
is valid; a node whose records share one cell is not a candidate.
Reading: 0/0 is 0: a category's node with one child in use scores nothing and is specialized while
that is valid; a node without records is left as it is.
Reading: scores are whole numbers, 2**24 for 1, from counts summed in a fixed order, so that all
parties compute the same; among equals the attribute first in name and then the leftmost node goes
first, whoever owns it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from shoal.data.taxonomy import Span, Taxonomy
from shoal.errors import InputError
from shoal.search.kernels import specialize
from shoal.search.specialization import Candidate, Done, Specialization, Step, spans_of

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
        best = (
            self._most_per_loss(among)
            if self.score == "gain-per-loss"
            else self._first_valid(among)
        )
        if best is None:
            return None
        candidate, score, done = best
        before = list(self.open)
        self.open.remove(candidate)
        return Taken(done, score, before, self.admit(spans_of(candidate), candidate.attribute))

    def take_back(self, taken: Taken) -> None:
        """Undoes the last step."""
        self.state.undo(taken.done)
        self.open = taken.before

    def close(self, step: Step) -> None:
        """Never does this step, which was refused for a reason that is not known here."""
        node = step.attribute, step.lo, step.hi
        self.open = [c for c in self.open if (c.attribute, c.lo, c.hi) != node]

    def _first_valid(self, among: Sequence[Candidate]) -> tuple[Candidate, int, Done] | None:
        for candidate in sorted(among):
            done = self.state.step(candidate)
            if done is not None:
                return candidate, candidate.score, done
            self.open.remove(candidate)
        return None

    def _most_per_loss(self, among: Sequence[Candidate]) -> tuple[Candidate, int, Done] | None:
        """The same for a score that depends on the anonymity lost, which every step changes."""
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
        for minus_score, _, _, candidate in sorted(scored):
            done = self.state.step(candidate)
            if done is not None:
                return candidate, -minus_score, done
            self.open.remove(candidate)
        return None


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
