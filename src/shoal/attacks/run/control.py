"""People who are not in a release, so that an attack shows what being in it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from shoal.attacks.run.people import Ground
from shoal.data.attack_scene import Control, Halves, People, ShownRelease, Trial
from shoal.data.classes import Classes
from shoal.data.progress import Progress
from shoal.data.release import PublishedColumn
from shoal.errors import InfeasibleError

LARGEST = 20_000  # people who are set aside
FEWEST = 10  # people set aside, so that there is anything to compare

Republish = Callable[[np.ndarray], tuple[tuple[PublishedColumn, ...], np.ndarray, int]]
"""Publishes some rows of the original as the release was: cells, labels, number of classes. Raises
InfeasibleError where they can't be."""


@dataclass(frozen=True)
class Trials:
    """What people outside a release are tried on."""

    trials: tuple[Trial, ...]
    control: Control
    halves: Halves | None = None


@dataclass(frozen=True)
class ControlPlan:
    """How the control is made.

    republish: None where the method is not known, for the reason that `reason` gives. has_trials,
    has_halves: which of them some attack needs.
    """

    seed: int
    folds: int
    republish: Republish | None
    reason: str
    has_trials: bool
    has_halves: bool


def trials_of(
    ground: Ground, release: ShownRelease, people: People, plan: ControlPlan, progress: Progress
) -> Trials:
    """The trials, by the best control there is."""
    if ground.outsiders is not None:
        control = Control("given", len(np.unique(ground.outsiders.persons)))
        return Trials((Trial(release, people, ground.outsiders),), control)
    if plan.republish is None:
        return _without(release, people, plan.reason)
    order = _random_people(ground, plan.seed)
    aside = min(len(order) // 5, LARGEST)
    if aside < FEWEST:
        return _without(release, people, "too few people to set some of them aside")
    try:
        trials = []
        for fold in range(plan.folds if plan.has_trials else 0):
            progress(f"publishing without a fifth of the people, {fold + 1} of {plan.folds}")
            trials.append(_trial(ground, plan.republish, order[fold * aside : (fold + 1) * aside]))
        halves = None
        if plan.has_halves:
            progress("publishing one half of the people")
            halves = _halves(ground, plan.republish, order)
    except InfeasibleError:
        return _without(release, people, "a part of the people can't be published alone")
    control = Control("republished", aside, plan.folds)
    return Trials(tuple(trials) or (Trial(release, people),), control, halves)


def _without(release: ShownRelease, people: People, reason: str) -> Trials:
    return Trials((Trial(release, people),), Control("none", reason=reason))


def _random_people(ground: Ground, seed: int) -> np.ndarray:
    persons = np.unique(ground.people.persons)
    return persons[np.random.default_rng([seed, 5, 0]).permutation(len(persons))]


def _trial(ground: Ground, republish: Republish, aside: np.ndarray) -> Trial:
    outside = np.isin(ground.people.persons, aside)
    release, members = _published(ground, republish, np.flatnonzero(~outside))
    return Trial(release, members, ground.people.take(np.flatnonzero(outside)))


def _halves(ground: Ground, republish: Republish, order: np.ndarray) -> Halves:
    size = len(order) // 2
    inside, outside = (
        np.flatnonzero(np.isin(ground.people.persons, part))
        for part in (order[:size], order[size : 2 * size])
    )
    release, members = _published(ground, republish, inside)
    return Halves(release, members, ground.people.take(outside))


def _published(
    ground: Ground, republish: Republish, rows: np.ndarray
) -> tuple[ShownRelease, People]:
    """A second release, which nobody keeps, and the people who are in it."""
    columns, labels, count = republish(rows)
    subjects = None
    if ground.encoded.subjects is not None:
        subjects = np.unique(ground.encoded.subjects[rows], return_inverse=True)[1]
        subjects = subjects.reshape(-1).astype(np.int32)
    classes = Classes(labels, count, subjects)
    release = ground.shown(columns, classes, ground.values_of(rows), {})
    return release, replace(ground.people.take(rows), classes=labels)
