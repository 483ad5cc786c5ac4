"""Membership: tell people in the release from people who are not in it.

Knows all quasi-identifiers of a person. Nergiz, Atzori, Clifton. Hiding the presence of individuals
from shared databases. SIGMOD 2007; Yeom and others. Privacy risk in machine learning. CSF 2018.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.attacks.counts import ClassValues, newcombe, wilson
from shoal.attacks.scores import covering_pairs, drawn_trials, marginals, people_fitting
from shoal.data.attack_scene import AttackScene, Boxes, Findings
from shoal.data.numbers import weighted_sum
from shoal.protocols import Attack

FALSE_ALARMS = 0.01


@dataclass(frozen=True)
class Membership(Attack):
    """How much better than a coin an attacker tells who is in the release."""

    name: ClassVar[str] = "membership"
    number: ClassVar[int] = 8

    def run(self, scene: AttackScene) -> Findings:
        """Advantage and area under the curve; null without people who are not in the release."""
        found = _presence(scene)
        inside, outside = [], []
        for trial in drawn_trials(scene, self.number):
            if trial.outsiders is None:
                continue
            inside.append(membership_scores(trial.release.boxes, trial.members.points))
            outside.append(membership_scores(trial.release.boxes, trial.outsiders.points))
        if not inside or not len(np.concatenate(outside)):
            why = scene.control.reason or "no people who are not in the release"
            return {"advantage": None, "auc": None, "why": why} | found
        return _told_apart(inside, outside) | found


def _told_apart(inside: list[np.ndarray], outside: list[np.ndarray]) -> Findings:
    """Scores of members and of others, trial by trial, as the certificate states them."""
    tuning = [part[::2] for part in inside], [part[::2] for part in outside]
    testing = [part[1::2] for part in inside], [part[1::2] for part in outside]
    level = _best_level(np.concatenate(tuning[0]), np.concatenate(tuning[1]))
    hits, alarms = (np.concatenate(part) >= level for part in testing)
    members, others = np.concatenate(inside), np.concatenate(outside)
    strict = np.sort(others)[::-1][min(int(FALSE_ALARMS * len(others)), len(others) - 1)]
    return {
        "advantage": newcombe((hits.sum(), len(hits)), (alarms.sum(), len(alarms))),
        "auc": _area(members, others),
        "tpr_at_1": wilson(int((members > strict).sum()), len(members)),
        "uncovered": wilson(int(np.isneginf(others).sum()), len(others)),
    }


def membership_scores(boxes: Boxes, points: np.ndarray) -> np.ndarray:
    """(m,) how much more people are shown at a place than by columns alone; -inf if uncovered."""
    inside = np.zeros(len(points))
    weights = np.log(np.maximum(boxes.people, 1)) - boxes.log_volumes()
    top = weights.max(initial=0.0)
    for person, label in covering_pairs(boxes, points):
        inside += np.bincount(person, np.exp(weights[label] - top), minlength=len(points))
    with np.errstate(divide="ignore"):
        scores = np.log(inside) + top
    classes = np.arange(boxes.count)
    of_one_value = ClassValues(
        classes, np.zeros_like(classes), boxes.people, boxes.people, np.ones(1)
    )
    for j, axis in enumerate(marginals(boxes, of_one_value)):
        scores -= np.log(axis.of_values(points[:, j])[:, 0])
    # sums in another order differ by less
    return np.where(np.isfinite(scores), np.round(scores, 9), -np.inf)


def _best_level(members: np.ndarray, others: np.ndarray) -> float:
    """The score from which on an attacker says `in`: hits less false alarms are greatest there."""
    levels = np.unique(np.concatenate([members, others]))
    if not len(levels):
        return np.inf
    hits = 1 - np.searchsorted(np.sort(members), levels) / max(len(members), 1)
    alarms = 1 - np.searchsorted(np.sort(others), levels) / max(len(others), 1)
    return float(levels[np.argmax(hits - alarms)])


def _area(members: np.ndarray, others: np.ndarray) -> float:
    """How often a member scores above somebody else; ties count one half."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, members) + np.searchsorted(ordered, members, side="right")
    return float(below.mean() / 2 / len(others))


def _presence(scene: AttackScene) -> Findings:
    """The share of the population's people of a class who are in the release; its table needed."""
    around = scene.surroundings
    if around is None or around.source != "table":
        return {}
    boxes = scene.release.boxes
    people, fits = boxes.people, people_fitting(boxes, around)
    if not len(people) or (fits < people).any():
        return {"presence": None}
    shares = people / fits
    mean = weighted_sum(shares, people) / float(people.sum())
    return {"presence": {"max": float(shares.max()), "mean": mean}}
