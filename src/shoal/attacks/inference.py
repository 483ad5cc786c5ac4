"""Inference: guess a person's sensitive value from all of their quasi-identifiers.

Kifer. Attacks on privacy and deFinetti's theorem. SIGMOD 2009; Giomi and others. A unified
framework for quantifying privacy risk in synthetic data. PETS 2023.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shoal.attacks import counts as counting
from shoal.attacks import scores as scoring
from shoal.attacks.counts import ClassValues, Share
from shoal.attacks.scores import Attackers, Guesses, Near
from shoal.data.attack_scene import AttackScene, Axis, Boxes, Findings, ShownRelease, Trial
from shoal.data.classes import pairs_of
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.numbers import weighted_sum
from shoal.data.option import parameter
from shoal.errors import MissingExtraError
from shoal.protocols import Attack

LEARNED = "learned"
Guess = Callable[[np.ndarray, np.ndarray, Near | None], dict[str, Guesses]]
MOST_SCORES = 1 << 26  # cells times values that marginals may take


@dataclass(frozen=True)
class Inference(Attack):
    """How often a sensitive value is guessed, of people in the release and of others like them."""

    name: ClassVar[str] = "inference"
    number: ClassVar[int] = 3

    tolerance: float = parameter(
        "how far off a number may be guessed, as a share of its released range",
        default=0.05,
        low=0.0,
        high=1.0,
    )

    learned: bool = parameter(
        "also an attacker that learns (gradient boosting); needs the extra ml", default=False
    )

    def run(self, scene: AttackScene) -> Findings:
        """Every sensitive attribute by name."""
        trials = scoring.drawn_trials(scene, self.number)
        return {name: self._attribute(scene, trials, name) for name in scene.release.sensitive}

    def _attribute(self, scene: AttackScene, trials: list[Trial], name: str) -> Findings:
        counts = counting.class_values(scene.release, name)
        column = scene.release.sensitive[name]
        near = scoring.near_values(column, counts.totals > 0, self.tolerance)
        found = _exact(scene.release, counts, column.codes, near)
        if near is not None:
            found |= {"tolerance": near.tolerance, "tolerance_share": self.tolerance}
        boxes = scene.release.boxes
        cells = max((len(np.unique(boxes.lo[:, j])) for j in range(len(boxes.axes))), default=1)
        if 2 * cells * len(counts.totals) > MOST_SCORES:
            why = "too many values to try each"
            return found | {"attackers": None, "gain": None, "why": why}
        names = (*scoring.ATTACKERS, LEARNED) if self.learned else scoring.ATTACKERS
        tried = {attacker: _Tried() for attacker in names}
        for trial in trials:
            own = counts
            if trial.release is not scene.release:
                own = counting.class_values(trial.release, name)
            _try(tried, Attackers.on(trial.release.boxes, own).guesses, trial, name, near)
            if self.learned:
                model = Learned.on(trial.release, name, scene.rng(self.number))
                _try(tried, model.guesses, trial, name, near)
        baseline = found["baseline"]["share"]
        attackers = {attacker: t.report(baseline) for attacker, t in tried.items()}
        strongest = max(names, key=lambda a: _gain(attackers[a]))
        best = strongest if _gain(attackers[strongest]) > 0 else None
        return found | {"attackers": attackers, "best": best} | tried[strongest].summary(baseline)


def _gain(found: Findings) -> float:
    gain = found["gain"]["share"]
    return -np.inf if gain is None else gain


def _exact(
    release: ShownRelease, counts: ClassValues, codes: np.ndarray, near: Near | None
) -> Findings:
    """What is counted, not tried: guessing without the release's classes, and with them.

    Who has several records is met by one of them, drawn at random.
    """
    kept = release.labels >= 0
    label, values = release.labels[kept], codes[kept]
    parts = counting.parts_of_people(release)[kept]
    totals = np.bincount(values, parts, minlength=len(counts.totals))[None]
    whole = totals if near is None else near.summed(totals)
    if near is None:
        most, hits = counting.mode(counts, label, values)
    else:
        most, hits = _window(counts, label, values, release.persons[kept], near)
    sure = most >= scoring.SURE * counts.people - 1e-9
    in_sure, surely = np.zeros(len(kept), dtype=bool), sure[label]
    in_sure[kept] = surely
    n, certain = counting.people_in(release), counting.people_in(release, in_sure)
    right = (
        weighted_sum(parts[surely], hits[surely]) / float(parts[surely].sum()) if certain else None
    )
    return {
        "baseline": counting.counted(float(whole.max()), n),
        "class": counting.counted(weighted_sum(parts, hits), n),
        "certain": counting.counted(certain, n),
        "certain_right": counting.exact(right, certain),
    }


def _window(
    counts: ClassValues, label: np.ndarray, values: np.ndarray, persons: np.ndarray, near: Near
) -> tuple[np.ndarray, np.ndarray]:
    """The guess that most people are near to, for numbers: the lowest of several that do as well.

    A guess can be raised until its window begins at a value that somebody has, and loses nobody; so
    the greatest guess near each value of the class is tried.
    """
    width = len(counts.totals) + 1
    keys = counts.classes * width + counts.values
    running = np.concatenate([[0], np.cumsum(counts.counts)])
    guess = near.stop[counts.values] - 1
    begun = counts.classes * width + near.first[guess]
    ended = counts.classes * width + near.stop[guess]
    inside = running[np.searchsorted(keys, ended)] - running[np.searchsorted(keys, begun)]
    inside -= _counted_twice(label.astype(np.int64), values, persons, width, begun, ended)
    most = np.zeros(len(counts.people), dtype=np.int64)
    np.maximum.at(most, counts.classes, inside)
    best = np.flatnonzero(inside == most[counts.classes])[::-1]
    guess_of = np.zeros(len(most), dtype=np.int64)
    guess_of[counts.classes[best]] = guess[best]  # the lowest is written last
    own = guess_of[label]
    return most, ((near.first[own] <= values) & (values < near.stop[own])).astype(np.float64)


def _counted_twice(
    label: np.ndarray,
    values: np.ndarray,
    persons: np.ndarray,
    width: int,
    begun: np.ndarray,
    ended: np.ndarray,
) -> np.ndarray:
    """(windows,) how often people are counted again in each window, as they have several values.

    begun, ended: where each window begins and ends, as class * width + value; both ascend.
    """
    different, number = np.unique(persons, return_inverse=True)
    people = max(len(different), 1)
    key, number, _ = pairs_of(label * width + values, number)
    who = key // width * people + number
    order = np.argsort(who, kind="stable")
    again = np.flatnonzero(np.diff(who[order]) == 0) + 1
    # who stands at `later`, too, counts once more in windows that hold both places
    earlier, later = order[again - 1], order[again]
    since = np.searchsorted(np.searchsorted(key, ended), later, side="right")
    until = np.searchsorted(np.searchsorted(key, begun), earlier, side="right")
    both = since < until
    windows = len(begun) + 1
    more = np.bincount(since[both], minlength=windows) - np.bincount(until[both], minlength=windows)
    return np.cumsum(more)[:-1]


class _Tried:
    """One attacker's hits over all trials."""

    def __init__(self) -> None:
        self.members: list[Guesses] = []
        self.outsiders: list[Guesses] = []

    def report(self, baseline: float) -> Findings:
        """As the certificate states it."""
        member, control = _total(self.members), _total(self.outsiders)
        found: Findings = {
            "member": counting.wilson(*member),
            "control": counting.wilson(*control) if self.outsiders else None,
            "gain": self._gain(baseline),
        }
        groups = {"member": self.members, "control": self.outsiders}
        found["certain"] = {who: _sure(group) for who, group in groups.items() if group}
        found["certain_right"] = {who: _right(group) for who, group in groups.items() if group}
        return found

    def summary(self, baseline: float) -> Findings:
        """The gain, of all that could be gained, and beyond the most frequent value."""
        control = _total(self.outsiders)
        share = control[0] / control[1] if self.outsiders and control[1] else baseline
        gain, over = self._gain(baseline), counting.over(_total(self.members), baseline)
        return {"gain": gain, "residual": counting.scaled(gain, 1 - share), "over_baseline": over}

    def _gain(self, baseline: float) -> Share:
        if self.outsiders:
            return counting.newcombe(_total(self.members), _total(self.outsiders))
        return counting.over(_total(self.members), baseline)


def _try(
    tried: dict[str, _Tried], guess: Guess, trial: Trial, name: str, near: Near | None
) -> None:
    """Adds the guesses of some attackers about both groups."""
    members, others = trial.members, trial.outsiders
    for attacker, guesses in guess(members.points, members.values[name], near).items():
        tried[attacker].members.append(guesses)
    if others is None:
        return
    for attacker, guesses in guess(others.points, others.values[name], near).items():
        tried[attacker].outsiders.append(guesses)


def _total(parts: list[Guesses]) -> tuple[float, int]:
    return float(sum(part.hits.sum() for part in parts)), sum(len(part.hits) for part in parts)


def _sure(parts: list[Guesses]) -> Share:
    certain = sum(int(part.certain.sum()) for part in parts)
    return counting.wilson(certain, sum(len(part.hits) for part in parts))


def _right(parts: list[Guesses]) -> Share:
    hits = float(sum(part.hits[part.certain].sum() for part in parts))
    return counting.wilson(hits, sum(int(part.certain.sum()) for part in parts))


# An attacker that learns: gradient boosting on the released rows. Needs the extra `ml`.
#
# Weaker than naive Bayes on some tables, stronger on others, so it is one more attacker, not the
# one that decides. A cell is seen as what it says for sure: the middle of an interval; for a
# hierarchy one feature for each node, 1 where the cell lies under it.


MOST_ROWS = 10_000
MOST_NODES = 200  # features of one hierarchy: its widest nodes
SETTINGS = {"max_iter": 30, "max_leaf_nodes": 15, "learning_rate": 0.15}


@dataclass(frozen=True)
class Learned:
    """A model of one sensitive attribute; values: what it can answer."""

    model: Any
    axes: tuple[Axis, ...]
    values: np.ndarray
    count: int

    @classmethod
    def on(cls, release: ShownRelease, attribute: str, rng: np.random.Generator) -> "Learned":
        """Trained on drawn rows of a release; raises MissingExtraError without scikit-learn."""
        make = _maker()
        boxes, column = release.boxes, release.sensitive[attribute]
        rows = rng.permutation(np.flatnonzero(release.labels >= 0))[:MOST_ROWS]
        label = release.labels[rows]
        truth = column.codes[rows]
        values = np.unique(truth)
        model = None
        if len(values) > 1:
            features = _seen(boxes.axes, boxes.lo[label], _ends(boxes, label))
            with _one_thread():  # the same figures everywhere
                model = make(random_state=0, **SETTINGS).fit(features, truth)
        return cls(model, boxes.axes, values, column.values)

    def guesses(
        self, points: np.ndarray, truth: np.ndarray, near: Near | None
    ) -> dict[str, Guesses]:
        """What it guesses about these people, by its name."""
        scores = np.zeros((len(points), self.count))
        if self.model is None:
            scores[:, self.values] = 1.0
        else:
            with _one_thread():
                scores[:, self.values] = self.model.predict_proba(_seen(self.axes, points, points))
        return {LEARNED: scoring.judged(scores, truth, near)}


def _maker() -> Any:
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ImportError:
        raise MissingExtraError.of("an attacker that learns needs scikit-learn", "ml") from None
    return HistGradientBoostingClassifier


def _one_thread() -> Any:
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)


def _ends(boxes: Boxes, label: np.ndarray) -> np.ndarray:
    """Last places of cells; the suppression mark ends with the domain."""
    return np.minimum(boxes.hi[label], np.array([axis.size for axis in boxes.axes]) - 1)


def _seen(axes: tuple[Axis, ...], lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """The features of cells, or of values, (n, features) float64."""
    columns = [np.zeros((len(lo), 1))]
    for j, axis in enumerate(axes):
        if axis.tree is None:
            columns.append(((lo[:, j] + hi[:, j].astype(float)) / 2)[:, None])
        else:
            first, last = _nodes(axis.tree)
            under = (first <= lo[:, j, None]) & (hi[:, j, None] <= last)
            columns.append(under.astype(np.float64))
    return np.concatenate(columns, axis=1)


def _nodes(tree: Hierarchy) -> tuple[np.ndarray, np.ndarray]:
    """The spans of the widest nodes, but for the root."""
    nodes = np.delete(np.arange(len(tree.parent)), tree.root)
    widest = nodes[np.argsort(tree.first[nodes] - tree.last[nodes], kind="stable")[:MOST_NODES]]
    return tree.first[widest], tree.last[widest]
