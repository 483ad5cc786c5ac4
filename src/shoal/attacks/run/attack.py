"""Attack: try on a release what others might, with its original at hand.

bind to the whole table > publish without some people > attack those in and those out > certify
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shoal.attacks.counts import people_in
from shoal.attacks.intervals import CONFIDENCE
from shoal.attacks.run.accept import judged
from shoal.attacks.run.control import ControlPlan, Republish, trials_of
from shoal.attacks.run.earlier import Newer, aligned
from shoal.attacks.run.people import Ground, ground_of, plain_columns
from shoal.attacks.run.request import AttackRequest, lacking
from shoal.attacks.run.surroundings import external_list, surroundings_of
from shoal.data.attack_scene import AttackScene, EarlierRelease, Recoding, ShownRelease
from shoal.data.certificate import Certificate
from shoal.data.classes import Classes
from shoal.data.encoding import EncodedTable
from shoal.data.progress import Progress, no_progress
from shoal.data.release import Release
from shoal.data.schema import Schema
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.errors import InputError
from shoal.policy.policy import Policy
from shoal.protocols import Attack

FEWEST_COUNTED = 200  # people; of fewer, counts are not stated
COUNTS = ("of", "classes", "candidates", "changed", "left_out", "people_listed", "false")
NEEDS_CONTROL = ("inference", "membership")
NEEDS_HALVES = ("singling-out",)
NOT_KNOWN = (
    "neither the policy nor a certificate beside the release names a method, so nothing can be"
    " published again"
)


@dataclass(frozen=True)
class AttackedRelease:
    """A release and what its owner has beside it.

    truth: None where rows are shuffled. republish: publishes some rows as the release was; None
    for the reason `no_republish`.
    """

    released: Table
    release: Release
    schema: Schema
    original: Table
    encoded: EncodedTable
    truth: Truth | None
    republish: Republish | None = None
    recoding: Recoding = field(default_factory=Recoding)
    no_republish: str = NOT_KNOWN


def attacked(
    target: AttackedRelease,
    policy: Policy,
    request: AttackRequest,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """The `attacks` part of a certificate: what was asked for, or why it can't be measured.

    Raises InputError for an attack that is named and lacks what it needs; `all` says so instead.
    """

    def scene(attacks: list[Attack]) -> AttackScene:
        return scene_of(target, policy, request, attacks, progress)

    return tried(scene, policy, request, progress)


def tried(
    scene_for: Callable[[list[Attack]], AttackScene],
    policy: Policy,
    request: AttackRequest,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """`attacked` on the scene that these attacks are given."""
    started = time.process_time()
    attacks = request.built()
    progress("preparing the attacks")
    scene = scene_for(attacks)
    seconds = {"republish": time.process_time() - started}
    found: dict[str, Any] = {}
    skipped: dict[str, str] = {}
    for attack in attacks:
        why = lacking(attack, scene)
        if why is not None and not request.is_all:
            raise InputError(f"attack '{attack.name}': can't be run, {why}")
        if why is not None:
            skipped[attack.name] = why
            continue
        progress(f"attacking: {attack.name}")
        begun = time.process_time()
        found[attack.name] = attack.run(scene)
        seconds[attack.name] = time.process_time() - begun
    seconds["total"] = time.process_time() - started
    section = _head(scene) | {"skipped": skipped, "seconds": seconds, **found}
    section["accept"] = judged(policy, section)
    return _stated(section, section["people"] >= FEWEST_COUNTED)


def _head(scene: AttackScene) -> dict[str, Any]:
    """How the attacks were made, whatever they found."""
    control = scene.control
    return {
        "seed": scene.seed,
        "confidence": CONFIDENCE,
        "people": people_in(scene.release),
        "control": {
            "kind": control.kind,
            "people": control.people,
            "folds": control.folds,
            "reason": control.reason,
        },
        "blind": list(scene.blind),
    }


def with_attacks(certificate: Certificate, section: dict[str, Any]) -> Certificate:
    """The certificate with what attacks found; a known population makes its risks true ones."""
    risk = dict(certificate["risk"])
    around = section.get("population") or {}
    for name in ("journalist_max", "marketer"):
        if around.get(name) is not None:
            risk[name] = around[name]["share"]
    return certificate.extended(attacks=section, risk=risk)


def scene_of(
    target: AttackedRelease,
    policy: Policy,
    request: AttackRequest,
    attacks: list[Attack],
    progress: Progress = no_progress,
) -> AttackScene:
    """All that these attacks are given."""
    ground = ground_of(
        target.released, target.original, target.schema, target.encoded, request.control
    )
    release = _shown(ground, target)
    people, seed = ground.people, policy.model.seed
    if target.truth is not None:
        rows = target.truth.rows
        people = replace(people if rows is None else people.take(rows), classes=release.labels)
    names = {attack.name for attack in attacks}
    needs = bool(names & {*NEEDS_CONTROL}), bool(names & {*NEEDS_HALVES})
    plan = ControlPlan(seed, request.folds, target.republish, target.no_republish, *needs)
    trials = trials_of(ground, release, people, plan, progress)
    others = _others(target, release, request)
    external = None
    if request.external is not None:
        external = external_list(request.external, ground, release, people.persons)
    return AttackScene(
        seed,
        release,
        people,
        trials.trials,
        trials.control,
        trials.halves,
        tuple(each for each in others if each is not None),
        sum(each is None for each in others),
        external,
        surroundings_of(policy, ground, release.boxes.people),
        target.recoding,
        policy.required_k,
        ground.blind,
    )


def _others(
    target: AttackedRelease, release: ShownRelease, request: AttackRequest
) -> list[EarlierRelease | None]:
    """Other releases of the same people; None for one whose people can't be aligned."""
    if target.truth is None:
        return []
    newer = Newer(target.released, release, target.schema)
    return [aligned(earlier, newer, target.truth) for earlier in request.earlier]


def _shown(ground: Ground, target: AttackedRelease) -> ShownRelease:
    """The published release in numbers."""
    records = target.released.records
    sensitive = {
        name: replace(column, codes=column.codes[:records])
        for name, column in ground.sensitive.items()
    }
    plain = plain_columns(target.released, target.schema)
    release = target.release
    return ground.shown(release.columns, in_boxes(release), sensitive, plain)


def in_boxes(release: Release) -> Classes:
    """The classes without records that show the mark everywhere: nobody is found by such a box.

    Where all records do, they are one class as any other.
    """
    classes, starred = release.classes, release.starred
    if starred is None or not starred.any() or starred.all():
        return classes
    labels = np.where(starred, -1, classes.labels).astype(np.int32)
    count = int(labels.max()) + 1  # starred records are the last class
    return Classes(labels, count, classes.subjects)


def _stated(found: Any, has_counts: bool, key: str = "") -> Any:
    """As a certificate states it: four decimals, and no count where people are few."""
    if isinstance(found, Mapping):
        return {
            name: found[name] if name == "seconds" else _stated(found[name], has_counts, name)
            for name in found
        }
    if isinstance(found, (list, tuple)):
        return [_stated(item, has_counts, key) for item in found]
    if isinstance(found, np.generic):
        found = found.item()
    if isinstance(found, float):
        return round(found, 4)
    if isinstance(found, int) and not isinstance(found, bool) and not has_counts and key in COUNTS:
        return None
    return found
