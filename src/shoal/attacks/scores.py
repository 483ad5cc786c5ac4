"""Attackers: how likely each of them finds every sensitive value of a person.

    cover       counts of the classes that cover the person, each divided by its volume
    bayes       naive Bayes: how frequent the value is, and the marginals of every column given it
    definetti   cover, each class weighted by the marginals within its cells; after Kifer, Attacks
                on privacy and deFinetti's theorem, SIGMOD 2009, without others' exact values

Whom no class covers is judged by bayes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from shoal.attacks.counts import ClassValues
from shoal.attacks.covering import covering_pairs
from shoal.attacks.marginals import Marginal, Members, marginals
from shoal.data.boxes import Boxes
from shoal.data.classes import SensitiveColumn

ATTACKERS = ("cover", "bayes", "definetti")
SURE = 0.9  # posterior of a guess that an attacker calls certain
TIED = 1e-9  # relative; sums in another order differ by less
BLOCK = 1 << 22  # scores, or entries of covering classes, that are held at a time
ROOM = 1e-12


@dataclass(frozen=True)
class Near:
    """Which values of a numeric attribute count as right for each other: those within a tolerance.

    first, stop: (values,) the values that are near each value, as a span of the sorted values.
    """

    first: np.ndarray
    stop: np.ndarray
    tolerance: float

    def summed(self, table: np.ndarray) -> np.ndarray:
        """(m, values) for each value the sum over those that are near it."""
        running = np.concatenate([np.zeros((len(table), 1)), np.cumsum(table, axis=1)], axis=1)
        return running[:, self.stop] - running[:, self.first]


def near_values(column: SensitiveColumn, released: np.ndarray, share: float) -> Near | None:
    """What counts as right for a numeric attribute; None for others.

    released: (values,) bool, values that occur in the release; share: of their range.
    """
    if column.numbers is None:
        return None
    numbers = column.numbers
    real = np.isfinite(numbers) & released[: len(numbers)]
    spread = np.ptp(numbers[real]) if real.any() else 0.0
    tolerance = float(share * spread)
    slack = 1e-9 * max(float(spread), 1.0)
    first = np.searchsorted(numbers, numbers - tolerance - slack)
    stop = np.searchsorted(numbers, numbers + tolerance + slack, side="right")
    missing = ~np.isfinite(numbers)
    first = np.where(missing, np.arange(len(numbers)), first)
    stop = np.where(missing, np.arange(len(numbers)) + 1, stop)
    return Near(first, stop, tolerance)


@dataclass(frozen=True)
class Guesses:
    """One attacker's guesses: hits (m,) in 0..1, ties shared; posterior: (m,) of the guess."""

    hits: np.ndarray
    posterior: np.ndarray

    @property
    def certain(self) -> np.ndarray:
        return self.posterior >= SURE - ROOM


def judged(scores: np.ndarray, truth: np.ndarray, near: Near | None) -> Guesses:
    """Scores (m, values) against the true values (m,), -1 for one that nobody could guess."""
    whole = scores.sum(axis=1)
    if near is not None:
        scores = near.summed(scores)
    top = scores.max(axis=1)
    tied = scores >= (top * (1 - TIED))[:, None]
    if near is None:
        right = tied[np.arange(len(truth)), np.maximum(truth, 0)].astype(float)
    else:
        running = np.concatenate([np.zeros((len(tied), 1)), np.cumsum(tied, axis=1)], axis=1)
        at, row = np.maximum(truth, 0), np.arange(len(truth))
        right = running[row, near.stop[at]] - running[row, near.first[at]]
    hits = np.where(truth < 0, 0.0, right / tied.sum(axis=1))
    return Guesses(hits, top / np.maximum(whole, np.finfo(float).tiny))


@dataclass(frozen=True)
class Attackers:
    """All attackers on one release and one sensitive attribute."""

    boxes: Boxes
    counts: ClassValues
    marginals: list[Marginal]

    @classmethod
    def on(cls, boxes: Boxes, counts: ClassValues) -> Attackers:
        return cls(boxes, counts, marginals(boxes, Members.by_value(counts)))

    def guesses(
        self, points: np.ndarray, truth: np.ndarray, near: Near | None
    ) -> dict[str, Guesses]:
        """Every attacker's guesses about these people, by name."""
        found: dict[str, list[Guesses]] = {name: [] for name in ATTACKERS}
        step = max(BLOCK // len(self.counts.totals), 1)
        for start in range(0, len(points), step):
            rows = slice(start, start + step)
            for name, scores in self._scores(points[rows]).items():
                found[name].append(judged(scores, truth[rows], near))
        return {name: _joined(parts) for name, parts in found.items()}

    def _scores(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """Scores of these people, (m, values), by attacker."""
        likelihood = np.zeros((len(points), len(self.counts.totals)))
        for j, axis in enumerate(self.marginals):
            likelihood += np.log(axis.of_values(points[:, j]))
        likelihood = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
        bayes = likelihood * self.counts.totals
        sums, covered = self._sums(points)
        return {
            "cover": np.where(covered[:, None], sums[0], bayes),
            "bayes": bayes,
            "definetti": np.where(covered[:, None], sums[1] * likelihood, bayes),
        }

    def _sums(self, points: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """For every weight the sum over covering classes, (m, values), and who is covered."""
        values = len(self.counts.totals)
        sums = [np.zeros(len(points) * values) for _ in range(2)]
        covered = np.zeros(len(points), dtype=bool)
        starts, weights = self.counts.starts, self._weights()
        for person, label in covering_pairs(self.boxes, points):
            covered[person] = True
            for persons, entries in _entries(person, label, starts):
                keys = persons * values + self.counts.values[entries]
                for total, weight in zip(sums, weights, strict=True):
                    total += np.bincount(keys, weight[entries], minlength=len(total))
        return [total.reshape(-1, values) for total in sums], covered

    def _weights(self) -> list[np.ndarray]:
        """(k,) what each entry of a class weighs for cover and for definetti."""
        label, value = self.counts.classes, self.counts.values
        volume = self.boxes.log_volumes()[label]
        inside = np.zeros(len(label))
        for axis in self.marginals:
            inside += np.log(axis.of_cell[axis.cell_of[label], value])
        people = np.log(self.counts.counts)
        return [np.exp(w - w.max(initial=-np.inf)) for w in (people - volume, people - inside)]


def _entries(
    person: np.ndarray, label: np.ndarray, starts: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For pairs of a person and a class, the person and every entry of the class; in blocks."""
    lengths = starts[label + 1] - starts[label]
    ends = np.cumsum(lengths)
    cuts = np.searchsorted(ends, np.arange(BLOCK, ends[-1] if len(ends) else 0, BLOCK))
    for part in np.split(np.arange(len(person)), np.unique(cuts)):
        own = lengths[part]
        before = np.cumsum(own) - own
        entries = np.repeat(starts[label[part]] - before, own) + np.arange(own.sum())
        yield np.repeat(person[part], own), entries


def _joined(parts: list[Guesses]) -> Guesses:
    if not parts:
        return Guesses(np.zeros(0), np.zeros(0))
    return Guesses(
        np.concatenate([part.hits for part in parts]),
        np.concatenate([part.posterior for part in parts]),
    )
