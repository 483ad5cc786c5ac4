"""Which classes cover whom: the pairs of a person and a class that an attacker can't tell apart."""

from collections.abc import Iterator, Sequence

import numpy as np

from shoal.data.attack_scene import AttackScene, Boxes, People, Surroundings, Trial

WORD = 64
BITS = 1 << 28  # pairs that are held as one bit each
BLOCK = 1 << 24  # pairs that are held as one byte each


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
        rows = max(BLOCK // boxes.count, 1)
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
        rows = max(BLOCK // boxes.count, 1)
        for start in range(0, len(values), rows):
            part = covered[start : start + rows][:, cell_of.reshape(-1)]
            packed[start : start + rows, : -(-boxes.count // 8)] = np.packbits(part, axis=1)
        bits &= packed[value_of.reshape(-1)]
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
