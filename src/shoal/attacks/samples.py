"""Whom an attack is tried on: people drawn at random, one record of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.data.attack_scene import AttackScene, People

MOST = 5_000
MOST_OF_MANY = 2_000
MANY_CLASSES = 50_000


@dataclass(frozen=True)
class Groups:
    """Drawn people of one trial: members, and as many who are not in its release."""

    members: People
    outsiders: People | None


def drawn(people: People, rng: np.random.Generator, most: int) -> People:
    """At most so many people, a random record of each; a larger draw holds the smaller one."""
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


def groups(scene: AttackScene, number: int) -> list[Groups]:
    """The people of every trial; equally many inside and outside where there is a control."""
    rng, most, found = scene.rng(number), most_drawn(scene), []
    for trial in scene.trials:
        members = drawn(trial.members, rng, most)
        outsiders = None
        if trial.outsiders is not None:
            outsiders = drawn(trial.outsiders, rng, most)
            least = min(members.records, outsiders.records)
            members = members.take(np.arange(least))
            outsiders = outsiders.take(np.arange(least))
        found.append(Groups(members, outsiders))
    return found
