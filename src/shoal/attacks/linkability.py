"""Linkability: pick a person's record by what a list says of them, or by another release.

El Emam. Guide to the De-Identification of Personal Health Information, 2013; Giomi and others. PETS
2023.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.attacks.counts import counted, exact, mean_of, people_in
from shoal.attacks.scores import covering_pairs, drawn, most_drawn
from shoal.attacks.singling_out import alone_with
from shoal.data.attack_scene import AttackScene, Boxes, ExternalList, Findings, People, ShownRelease
from shoal.data.numbers import alike
from shoal.data.option import parameter
from shoal.errors import InputError
from shoal.protocols import Attack

TIED = 1e-9


@dataclass(frozen=True)
class Linkability(Attack):
    """How often a list of quasi-identifiers picks the right record."""

    name: ClassVar[str] = "linkability"
    number: ClassVar[int] = 2
    needs: ClassVar[tuple[str, ...]] = ("alignment",)

    known: tuple[str, ...] = parameter(
        "what lists know, columns joined by +, lists separated by commas; all columns by default",
        default=(),
    )

    def run(self, scene: AttackScene) -> Findings:
        """The first list's figures; below them those of others, a given one, earlier releases."""
        people = drawn(scene.people, scene.rng(self.number), most_drawn(scene))
        boxes = scene.release.boxes
        lists = [self._columns(boxes, text) for text in self.known] or [[*range(len(boxes.axes))]]
        everybody = people_in(scene.release)
        found = [_linked(boxes, people, columns, scene.required_k, everybody) for columns in lists]
        result = found[0] | ({"others": found[1:]} if found[1:] else {})
        if scene.release.naming:
            result["by_names"] = _by_names(scene.release)
        if scene.external is not None:
            result["external"] = _external(boxes, scene.external)
        if scene.earlier:
            result["order"] = [_order(earlier.order) for earlier in scene.earlier]
        return result

    def _columns(self, boxes: Boxes, text: str) -> list[int]:
        names = [name.strip() for name in text.split("+")]
        strange = [name for name in names if name not in boxes.names]
        if strange:
            raise InputError(
                f"attack '{self.name}': knows '{strange[0]}', which is not a quasi-identifier of"
                f" the release; name some of {', '.join(boxes.names)}"
            )
        return [boxes.names.index(name) for name in names]


def _linked(
    boxes: Boxes, people: People, known: Sequence[int], k: int | None, everybody: int
) -> Findings:
    assert people.classes is not None
    success, candidates = picks(boxes, people.points, people.classes, known)
    places = int(boxes.people.sum())
    return {
        "known": [boxes.names[j] for j in known],
        "success": mean_of(success),
        "worst": float(success.max()) if len(success) else None,
        "candidates": _candidates(candidates),
        "baseline": counted(1, everybody),
        "prosecutor_mean": boxes.count / places if places else None,
        "bound": None if k is None else 1 / k,
    }


def picks(
    boxes: Boxes, points: np.ndarray, classes: np.ndarray, known: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """For each person the chance that a record drawn from their likeliest class is theirs, and how
    many people stand in the classes that cover them. Equal classes share the chance.
    """
    best, right = np.zeros(len(points)), np.zeros(len(points))
    tied, candidates = np.zeros(len(points)), np.zeros(len(points))
    weights = np.log(np.maximum(boxes.people, 1)) - boxes.log_volumes(known)
    weights = np.exp(weights - weights.max(initial=-np.inf))
    for person, label in covering_pairs(boxes, points, known):
        np.maximum.at(best, person, weights[label])
        likeliest = weights[label] >= best[person] * (1 - TIED)
        tied += np.bincount(person, likeliest, minlength=len(points))
        own = likeliest & (classes[person] == label)
        right += np.bincount(person, own / boxes.people[label], minlength=len(points))
        candidates += np.bincount(person, boxes.people[label], minlength=len(points))
    return right / np.maximum(tied, 1), candidates


def _candidates(candidates: np.ndarray) -> Findings:
    if not len(candidates):
        return {"min": None, "median": None}
    return {"min": int(candidates.min()), "median": float(np.median(candidates))}


def _by_names(release: ShownRelease) -> Findings:
    """Whom a list finds that has the columns that name people, and all quasi-identifiers."""
    values = {name: column.codes for name, column in release.sensitive.items()} | {**release.plain}
    codes = alike([values[name] for name in release.naming], release.records)
    return {"known": [*release.naming], "success": alone_with(release, codes)}


def _external(boxes: Boxes, listed: ExternalList) -> Findings:
    """What a given list finds; whether it is right only where the list says who is who."""
    none = np.full(len(listed.points), -1)
    points = np.zeros((len(listed.points), len(boxes.axes)), dtype=np.int32)
    points[:, list(listed.columns)] = listed.points
    classes = none if listed.classes is None else listed.classes
    success, candidates = picks(boxes, points, classes, listed.columns)
    found: Findings = {"known": [boxes.names[j] for j in listed.columns], "people": len(points)}
    found |= {"candidates": _candidates(candidates), "success": None}
    if listed.classes is None:
        return found | {"why": "the list has no subject column, so nobody knows who is who"}
    return found | {"success": mean_of(success)}


def _order(order: tuple[float, float] | None) -> Findings:
    """Whether rows of two releases belong together by their places alone."""
    if order is None:
        return {"agree": None, "chance": None, "why": "rows of the releases can't be compared"}
    return {"agree": exact(order[0]), "chance": exact(order[1])}
