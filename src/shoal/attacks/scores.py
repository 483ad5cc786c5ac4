"""Attackers: which classes cover whom, as nobody can tell the two apart, and how likely each
attacker finds every sensitive value of a person.

    cover       counts of the classes that cover the person, each divided by its volume
    bayes       naive Bayes: how frequent the value is, and the marginals of every column given it
    definetti   cover, each class weighted by the marginals within its cells; after Kifer, Attacks
                on privacy and deFinetti's theorem, SIGMOD 2009, without others' exact values

Whom no class covers is judged by bayes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.attacks.counts import ClassValues
from shoal.auditor.sharing import entries_of
from shoal.data.attack_scene import EVERYTHING, AttackScene, Boxes, People, Surroundings, Trial
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
    right = tied if near is None else near.summed(tied)
    right = right[np.arange(len(truth)), np.maximum(truth, 0)].astype(float)
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
        return cls(boxes, counts, marginals(boxes, counts))

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
    ends = np.cumsum(starts[label + 1] - starts[label])
    cuts = np.searchsorted(ends, np.arange(BLOCK, ends[-1] if len(ends) else 0, BLOCK))
    for part in np.split(np.arange(len(person)), np.unique(cuts)):
        row, entries = entries_of(label[part], starts)
        yield person[part][row], entries


def _joined(parts: list[Guesses]) -> Guesses:
    return Guesses(
        np.concatenate([np.zeros(0), *(part.hits for part in parts)]),
        np.concatenate([np.zeros(0), *(part.posterior for part in parts)]),
    )


# What a release tells about each quasi-identifier alone: P(v | s) for a value v of an axis.
#
# A cell is taken as spread evenly over the values it covers, and half a person is added to every
# value of the domain, so that nothing is impossible. Sums over the domain follow from the cells,
# so that domains of any size cost nothing.


PRIOR = 0.5  # people added to every value


@dataclass(frozen=True)
class Marginal:
    """P(v | s) of one axis, for the people of each of g sensitive values s.

    edges: (b,) int64, ascending places where the density changes. density: (b, g) people to each
    value from that edge to the next. whole: (g,) people altogether, those added included.
    cell_of: (classes,) which distinct cell each class shows. of_cell: (cells, g) P(cell | s).
    """

    edges: np.ndarray
    density: np.ndarray
    whole: np.ndarray
    cell_of: np.ndarray
    of_cell: np.ndarray

    def of_values(self, places: np.ndarray) -> np.ndarray:
        """P(v | s), (m, g)."""
        index = np.searchsorted(self.edges, places, side="right") - 1
        return (np.where((index >= 0)[:, None], self.density[index], 0.0) + PRIOR) / self.whole


def marginals(boxes: Boxes, counts: ClassValues) -> list[Marginal]:
    """The marginal of every axis."""
    return [_marginal(boxes, j, counts) for j in range(len(boxes.axes))]


def _marginal(boxes: Boxes, j: int, counts: ClassValues) -> Marginal:
    size, groups = boxes.axes[j].size, len(counts.totals)
    hi = boxes.hi[:, j].astype(np.int64)
    # the suppression mark covers the domain
    spans = np.stack([boxes.lo[:, j].astype(np.int64), np.where(hi == EVERYTHING, size - 1, hi)])
    cells, cell_of = np.unique(spans, axis=1, return_inverse=True)
    cell_of = cell_of.reshape(-1)
    first, stop = cells[0], cells[1] + 1
    width = np.maximum(stop - first, 1)[:, None]  # a number between two values covers neither
    keys = cell_of[counts.classes] * groups + counts.values
    people = np.bincount(keys, weights=counts.counts, minlength=len(first) * groups)
    people = people.reshape(len(first), groups)
    spread = people / width
    edges = np.unique(np.concatenate([first, stop, [0]]))
    change = np.zeros((len(edges), groups))
    np.add.at(change, np.searchsorted(edges, first), spread)
    np.subtract.at(change, np.searchsorted(edges, stop), spread)
    density = np.maximum(np.cumsum(change, axis=0), 0.0)
    steps = density[:-1] * np.diff(edges)[:, None]
    running = np.concatenate([np.zeros((1, groups)), np.cumsum(steps, axis=0)])
    whole = people.sum(axis=0) + PRIOR * size
    inside = running[np.searchsorted(edges, stop)] - running[np.searchsorted(edges, first)]
    return Marginal(edges, density, whole, cell_of, (inside + PRIOR * width) / whole)


WORD = 64
BITS = 1 << 28  # pairs that are held as one bit each
PAIRS = 1 << 24  # pairs that are held as one byte each


def covering_pairs(
    boxes: Boxes, points: np.ndarray, columns: Sequence[int] | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Persons and classes that cover them, (p,) and (p,), persons ascending; block by block.

    points: (m, d). columns: the axes that the attacker knows, all by default. All pairs of a person
    come in one block.
    """
    known = list(range(len(boxes.axes)) if columns is None else columns)
    if not boxes.count or not len(points):
        return
    step = max(BITS // boxes.count, 1)
    for start in range(0, len(points), step):
        words = _bits(boxes, points[start : start + step], known).view("<u8")
        rows = max(PAIRS // boxes.count, 1)
        for first in range(0, len(words), rows):
            part = words[first : first + rows]
            # few classes cover a person: most words are zero
            person, word = np.nonzero(part)
            bits = np.unpackbits(part[person, word].view(np.uint8).reshape(-1, 8), axis=1)
            at, bit = np.nonzero(bits)
            yield person[at] + (start + first), word[at] * WORD + bit


def _bits(boxes: Boxes, points: np.ndarray, known: Sequence[int]) -> np.ndarray:
    """(m, bytes) uint8, a bit for each class, 1 where it covers the person on all axes; whole words
    of 64 bits, those beyond the classes 0.
    """
    width = -(-boxes.count // WORD) * (WORD // 8)
    everybody = np.zeros(width, dtype=np.uint8)
    everybody[: -(-boxes.count // 8)] = np.packbits(np.ones(boxes.count, dtype=bool))
    bits = np.tile(everybody, (len(points), 1))
    for j in known:
        values, value_of = np.unique(points[:, j], return_inverse=True)
        spans = np.stack([boxes.lo[:, j], boxes.hi[:, j]])
        cells, cell_of = np.unique(spans, axis=1, return_inverse=True)
        # classes show few distinct cells: judge each once
        covered = (cells[0] <= values[:, None]) & (values[:, None] <= cells[1])
        packed = np.zeros((len(values), width), dtype=np.uint8)
        rows = max(PAIRS // boxes.count, 1)
        for start in range(0, len(values), rows):
            part = covered[start : start + rows][:, cell_of.reshape(-1)]
            packed[start : start + rows, : -(-boxes.count // 8)] = np.packbits(part, axis=1)
        bits &= packed[value_of]
    return bits


# How many people of a population fit each class.


def people_fitting(boxes: Boxes, around: Surroundings) -> np.ndarray:
    """(classes,) float64, people of the population whom all known cells of a class cover."""
    points = np.zeros((len(around.points), len(boxes.axes)), dtype=np.int32)
    points[:, list(around.columns)] = around.points
    counts = np.zeros(boxes.count)
    for person, label in covering_pairs(boxes, points, around.columns):
        counts += np.bincount(label, around.weights[person], minlength=boxes.count)
    return counts


# Whom an attack is tried on: people drawn at random, one record of each.


MOST = 5_000
MOST_OF_MANY = 2_000
MANY_CLASSES = 50_000


def drawn(people: People, rng: np.random.Generator, most: int) -> People:
    """Up to `most` people, a random record of each; a larger draw holds the smaller one."""
    rows = np.arange(people.records)
    if people.classes is not None:
        rows = rows[people.classes >= 0]  # a suppressed record is in no class
    persons = people.persons[rows]
    order = rng.permutation(len(rows))
    # the first record of each person in a random order is a random one of theirs
    _, first = np.unique(persons[order], return_index=True)
    return people.take(rows[order[np.sort(first)[:most]]])


def most_drawn(scene: AttackScene) -> int:
    """How many people an attack is tried on."""
    classes = max((trial.release.boxes.count for trial in scene.trials), default=0)
    return MOST_OF_MANY if classes > MANY_CLASSES else MOST


def drawn_trials(scene: AttackScene, number: int) -> list[Trial]:
    """Every trial with drawn people; equally many inside and outside where there is a control."""
    rng, most, found = scene.rng(number), most_drawn(scene), []
    for trial in scene.trials:
        members = drawn(trial.members, rng, most)
        outsiders = None
        if trial.outsiders is not None:
            outsiders = drawn(trial.outsiders, rng, most)
            least = min(members.records, outsiders.records)
            members = members.take(np.arange(least))
            outsiders = outsiders.take(np.arange(least))
        found.append(Trial(trial.release, members, outsiders))
    return found
