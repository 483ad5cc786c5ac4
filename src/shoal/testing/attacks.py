"""What every attack must keep."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from shoal.data.attack_scene import AttackScene, Axis, Boxes, Findings, People, ShownRelease, Trial
from shoal.data.certificate import Certificate
from shoal.data.classes import Classes, SensitiveColumn
from shoal.protocols import Attack

AXES = (7, 5)  # values of two quasi-identifiers


def small_scenes(seed: int = 0) -> Iterator[AttackScene]:
    """Scenes of all kinds: one person, several rows a person, suppressed records, with people who
    are not in the release or without, with shuffled rows.
    """
    rng = np.random.default_rng(seed)
    for records in (1, 9, 60):
        for shares_people in (False, True):
            scene = _scene(records, shares_people, rng)
            yield scene
            outsiders = replace(scene.people.take(np.arange(records)), classes=None)
            trial = Trial(scene.release, scene.people, outsiders)
            yield replace(scene, trials=(trial,))
            yield replace(scene, people=replace(scene.people, classes=None))


def _scene(records: int, shares_people: bool, rng: np.random.Generator) -> AttackScene:
    """People in classes whose boxes hold them and may overlap."""
    points = np.column_stack([rng.integers(0, size, records) for size in AXES]).astype(np.int32)
    labels = np.unique(rng.integers(0, 1 + records // 4, records), return_inverse=True)[1]
    labels = labels.reshape(-1).astype(np.int32)
    count = int(labels.max()) + 1
    lo, hi = np.full((count, 2), 99, np.int32), np.full((count, 2), -1, np.int32)
    np.minimum.at(lo, labels, points)
    np.maximum.at(hi, labels, points)
    subjects = None
    if shares_people:
        drawn = rng.integers(0, 1 + records // 2, records)
        subjects = np.unique(drawn, return_inverse=True)[1].reshape(-1).astype(np.int32)
    axes = tuple(Axis(f"q{j}", size) for j, size in enumerate(AXES))
    people = Classes(labels, count, subjects).people()
    boxes = Boxes(axes, lo, hi, (hi - lo + 1).astype(np.float64), people)
    values = rng.integers(0, 3, records)
    column = SensitiveColumn("s", values.astype(np.int32), 3)
    release = ShownRelease(boxes, labels, subjects, {"s": column})
    members = People(points, {"s": values}, release.persons, labels)
    return AttackScene(1, release, members, (Trial(release, members),), required_k=2)


def check_attack(attack: Attack, seed: int = 0) -> None:
    """JSON on every scene that has what the attack needs, the same twice; exact numbers are the
    same for any order of the records, and without people's quasi-identifiers where the attack says
    that it does not use them.
    """
    rng = np.random.default_rng(seed)
    for scene in small_scenes(seed):
        if set(attack.needs) - ({"alignment"} if scene.is_aligned else set()):
            continue
        found = _plain(attack.run(scene))
        text = json.dumps(found, sort_keys=True, allow_nan=False)
        again = json.dumps(_plain(attack.run(scene)), sort_keys=True)
        assert again == text, f"{attack.name}: asked twice, it answers differently"
        moved = _plain(attack.run(_in_order(scene, rng.permutation(scene.release.records))))
        same = np.allclose(_exact(found), _exact(moved), equal_nan=True)
        assert same, f"{attack.name}: the order of the records changes an exact number"
        if not attack.uses_people:
            blind = _plain(attack.run(_without_people(scene)))
            assert blind == found, f"{attack.name}: it uses people's quasi-identifiers after all"


def _plain(found: Any) -> Findings:
    return dict(Certificate(found))


def _exact(found: Any) -> list[float]:
    """Every share that was counted."""
    if isinstance(found, dict) and found.get("how") == "exact":
        return [np.nan if found["share"] is None else found["share"]]
    below = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
    return [number for item in below for number in _exact(item)]


def _without_people(scene: AttackScene) -> AttackScene:
    """The scene as a ledger that keeps no originals gives it: no boxes, no points."""
    none = np.zeros((scene.release.boxes.count, 0), dtype=np.int32)
    people = scene.release.boxes.people
    boxes = Boxes((), none, none, none.astype(np.float64), people)
    release = replace(scene.release, boxes=boxes)
    blind = replace(scene.people, points=scene.people.points[:, :0])
    return replace(
        scene,
        release=release,
        people=blind,
        trials=(Trial(release, blind),),
        no_people="they are left out",
    )


def _in_order(scene: AttackScene, rows: np.ndarray) -> AttackScene:
    release = scene.release
    moved = replace(
        release,
        labels=release.labels[rows],
        subjects=None if release.subjects is None else release.subjects[rows],
        sensitive={
            name: replace(column, codes=column.codes[rows])
            for name, column in release.sensitive.items()
        },
    )
    # people without a record of their own keep their order
    people = scene.people.take(rows) if scene.is_aligned else scene.people
    if release.subjects is None and scene.is_aligned:
        people = replace(people, persons=np.arange(len(rows)))
    trials = tuple(replace(trial, release=moved, members=people) for trial in scene.trials)
    return replace(scene, release=moved, people=people, trials=trials)
