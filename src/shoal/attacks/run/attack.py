"""Attack: try on a release what others might, with its original at hand; of a ledger on its newest
release, alone and beside all earlier ones.

bind to the whole table > publish without some people > attack those in and those out > certify

The private part knows whose row is whose in every release. Only methods that publish the whole
table anew keep the originals too; without them, attacks that start from people's quasi-identifiers
can't be tried.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from shoal.attacks.counts import CONFIDENCE, people_in
from shoal.attacks.intersection import ABSENT, Newer, aligned, by_row, published_classes, row_order
from shoal.attacks.run.people import (
    AttackedRelease,
    Ground,
    control_warnings,
    ground_of,
    plain_columns,
    trials_of,
)
from shoal.attacks.run.request import Accepted, Asked, AttackRequest, asked_attacks, judged, lacking
from shoal.attacks.scores import MOST_OF_MANY, covering_pairs, drawn
from shoal.auditor import reading, verdict
from shoal.auditor.ledger.history import LedgerAudit, audit_releases
from shoal.auditor.ledger.release_view import ReleaseReading, rows_of_release
from shoal.auditor.ledger.terms import policy_of
from shoal.connectors.ledger import Ledger
from shoal.connectors.ledger.private import Identities, read_originals
from shoal.data.attack_scene import (
    AttackScene,
    Control,
    EarlierRelease,
    ExternalList,
    Findings,
    People,
    ShownRelease,
    Surroundings,
    Trial,
    boxes_of,
)
from shoal.data.certificate import Certificate
from shoal.data.classes import Classes
from shoal.data.numbers import PublishedNumbers, parse_numbers, places_among
from shoal.data.person_names import person_name
from shoal.data.progress import Progress, no_progress
from shoal.data.release import Release
from shoal.data.table import Table, texts_of
from shoal.data.truth import Truth
from shoal.data.warnings import PLAIN_NAMES_PEOPLE
from shoal.errors import InputError
from shoal.policy.binding.table import bound_original
from shoal.policy.model import PopulationPolicy
from shoal.policy.policy import Policy
from shoal.privacy import class_sizes, reidentification
from shoal.protocols import Attack

FEWEST_COUNTED = 200  # people; of fewer, counts are not stated
COUNTS = ("of", "classes", "candidates", "changed", "left_out", "people_listed", "false")


def attacked(
    certificate: Certificate,
    target: AttackedRelease,
    request: AttackRequest,
    progress: Progress = no_progress,
) -> Certificate:
    """The certificate with what attacks found; a known population makes its risks true ones.

    Its `attacks` state what was asked for, or why it can't be measured. Raises InputError for an
    attack that is named and lacks what it needs; `all` says so instead.
    """
    ground = ground_of(target, request)

    def scene(attacks: list[Attack]) -> AttackScene:
        return scene_of(ground, request, attacks, progress)

    section = tried(scene, target.problem.policy.model.accept, request, progress)
    around = section.get("population") or {}
    known = (name for name in ("journalist_max", "marketer") if around.get(name) is not None)
    risk = {**certificate["risk"], **{name: around[name]["share"] for name in known}}
    doubts = control_warnings(request.control, target.original, ground.schema)
    return certificate.extended(attacks=section, risk=risk).warned(*ground.doubts, *doubts)


def tried(
    scene_for: Callable[[list[Attack]], AttackScene],
    accept: Accepted,
    request: AttackRequest,
    progress: Progress = no_progress,
) -> Findings:
    """The `attacks` part of a certificate. scene_for: all that these attacks are given.

    accept: the most of each measure that is accepted.
    """
    started = time.process_time()
    attacks = request.built()
    progress("preparing the attacks")
    scene = scene_for(attacks)
    seconds = {"republish": time.process_time() - started}
    found: Findings = {}
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
    section: Findings = {
        "seed": scene.seed,
        "confidence": CONFIDENCE,
        "people": people_in(scene.release),
        "control": vars(scene.control),
        "blind": list(scene.blind),
        "aligned": scene.is_aligned,
        "skipped": skipped,
        "seconds": seconds,
        **found,
    }
    section["accept"] = judged(accept, section)
    return _stated(section, section["people"] >= FEWEST_COUNTED)


def scene_of(
    ground: Ground, request: AttackRequest, attacks: list[Attack], progress: Progress = no_progress
) -> AttackScene:
    """All that these attacks are given."""
    target, problem, release = ground.target, ground.target.problem, _shown(ground)
    people, seed = ground.people, problem.seed
    if target.truth is not None:
        rows = target.truth.rows
        people = replace(people if rows is None else people.take(rows), classes=release.labels)
    _require_covered(release, people, seed)
    names = [attack.name for attack in attacks]
    trials = trials_of(ground, release, people, seed, request.folds, names, progress)
    newer = Newer(target.released, release, problem.schema)
    truth = target.truth
    others = [] if truth is None else [aligned(each, newer, truth) for each in request.earlier]
    return AttackScene(
        seed,
        release,
        people,
        *trials,
        tuple(each for each in others if each is not None),
        sum(each is None for each in others),
        external_list(request.external, ground, release, people.persons),
        surroundings_of(ground, release.boxes.people),
        target.recoding,
        problem.required_k,
        ground.blind,
        followed=None if truth is None else reading.most_followed(truth, problem.schema.render),
    )


def _require_covered(release: ShownRelease, people: People, seed: int) -> None:
    """Raises InputError where no record covers most people: such cells were not published."""
    tried = drawn(people, np.random.default_rng(seed), MOST_OF_MANY)
    pairs = covering_pairs(release.boxes, tried.points)
    strange = tried.records - sum(len(np.unique(person)) for person, _ in pairs)
    # without the trace nobody knows whose records are suppressed
    aside = 0 if people.classes is not None else 1 - release.in_classes.sum() / people.records
    if 2 * strange > (1 + aside) * tried.records:
        raise InputError(
            f"attack: no record covers {strange} of {tried.records} records of the original, as"
            " where numbers stand for ranges; give the release as published (`.data`, or its file)"
        )


def _shown(ground: Ground) -> ShownRelease:
    """The published release in numbers."""
    target = ground.target
    records = target.released.records
    sensitive = {
        name: replace(column, codes=column.codes[:records])
        for name, column in ground.sensitive.items()
    }
    plain = plain_columns(target.released, target.problem.schema)
    release = target.release
    shown = ground.shown(release.columns, in_boxes(release), sensitive, plain)
    said = verdict.of_cells(target.released, target.problem.policy)
    named = [one.column for one in said if one.code == PLAIN_NAMES_PEOPLE]
    known = plain.keys() | sensitive.keys()
    return replace(shown, naming=tuple(name for name in named if name in known))


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


# What the owner knows around a release: its population, and lists that attackers hold.


DEFAULT_ESTIMATOR = "pitman"  # as the promise's


def surroundings_of(ground: Ground, people: np.ndarray) -> Surroundings | None:
    """The population as the policy describes it, else as the weights of the original do; None
    without either. Raises InputError.

    people: of every class, from which a fraction's uniques are estimated.
    """
    around = ground.target.problem.policy.model.population
    if around is None:
        classes = ground.target.release.classes
        if classes.sample is None:
            return None
        return Surroundings("weights", weights=reidentification.people_and_weights(classes)[1])
    if around.table is not None:
        assert ground.around is not None
        _require(ground.around, [axis.name for axis in ground.axes])
        every = tuple(range(len(ground.axes)))
        points = ground.points_of(ground.around, every, "population")
        distinct, counts = np.unique(points, axis=0, return_counts=True)
        return Surroundings("table", every, distinct, counts.astype(np.float64))
    if around.frequencies is not None:
        return _frequencies(around, ground)
    assert around.fraction is not None
    estimator = around.estimator or DEFAULT_ESTIMATOR
    uniques = _uniques(people, estimator, around.fraction)
    return Surroundings("fraction", fraction=around.fraction, estimator=estimator, uniques=uniques)


def _uniques(people: np.ndarray, estimator: str, fraction: float) -> float | None:
    """The share of the population that is alone in its class; None where no model can be fitted."""
    sizes, counts = np.unique(people[people > 0], return_counts=True)
    if not len(sizes):
        return None
    share = class_sizes.ESTIMATORS[estimator](sizes, counts, fraction) if sizes[0] == 1 else 0.0
    return share if isfinite(share) else None


def _frequencies(around: PopulationPolicy, ground: Ground) -> Surroundings:
    policy = ground.target.problem.policy
    table = ground.around
    assert table is not None
    assert around.column is not None
    assert around.people is not None
    _require(table, [around.column])
    none = "population: its frequencies name no quasi-identifier; add some"
    known, points = _known_points(table, ground, "population", none)
    column = table.column(around.column)
    numbers = PublishedNumbers.of(policy.notation, None)
    plain = (numbers.translated(cell, policy.notation.plain) or "" for cell in column.cells)
    shares = parse_numbers(tuple(plain))
    if not (np.isfinite(shares) & (shares >= 0)).all() or not shares.max(initial=0) > 0:
        raise InputError(
            f"population: its column '{around.column}' holds something that is not a frequency;"
            " give numbers of 0 or more"
        )
    weights = shares[column.codes]
    # relative frequencies may be written as counts
    whole = max(float(weights.sum()), 1.0)
    return Surroundings("frequencies", known, points, weights / whole * around.people)


def _known_points(
    table: Table, ground: Ground, what: str, none: str
) -> tuple[tuple[int, ...], np.ndarray]:
    """The axes that a table has, and where its people stand on them. none: refuses no axis."""
    known = tuple(j for j, axis in enumerate(ground.axes) if axis.name in table.names)
    if not known:
        raise InputError(none)
    return known, ground.points_of(table, known, what)


def external_list(
    external: Table | None, ground: Ground, release: ShownRelease, persons: np.ndarray
) -> ExternalList | None:
    """A list of people with some quasi-identifiers; who they are where it has the subject column.

    persons: (n,) whose record each of the release is.
    """
    if external is None:
        return None
    none = "external: has no quasi-identifier of the policy; add some"
    known, points = _known_points(external, ground, "external", none)
    subject = ground.target.problem.schema.subject
    if subject is None or subject.name not in external.names:
        return ExternalList(known, points, None)
    own = ground.target.original.column(subject.name)
    numbers = np.full(int(own.codes.max()) + 1, -1)
    numbers[own.codes] = ground.people.persons  # any record of a person leads to the same number
    number_of = dict(zip(map(person_name, own.cells), numbers, strict=True))
    listed = external.column(subject.name)
    number = np.array([number_of.get(person_name(cell), -1) for cell in listed.cells])[listed.codes]
    class_of = np.full(int(persons.max(initial=-1)) + 2, -1)
    class_of[persons] = release.labels
    return ExternalList(known, points, class_of[number])


def _require(table: Table, names: list[str]) -> None:
    InputError.raise_for(
        f"population: has no column '{name}'; add it" for name in names if name not in table.names
    )


NO_CONTROL = "the releases of a ledger are not published again without some people"
NO_ORIGINALS = "the ledger keeps no originals; attack the release's file with its original"
INVENTED = "some rows of the newest release are invented, so there are no people behind them"


def audit_ledger(
    path: str | Path,
    *,
    k: int | None = None,
    attack: Asked = (),
    table: str | None = None,
    progress: Progress = no_progress,
) -> LedgerAudit:
    """Every check on every release of a ledger, from the published files.

    table: the address of the table in a database that the ledger writes; damage is also whatever
    is otherwise there than in the ledger, so that all that is measured holds of the table, too.
    attack: names, as in `shoal.attack`; tried on the newest release, beside all earlier ones.
    Raises InputError where there is no ledger, and for an attack that can't be tried on one.
    """
    request = AttackRequest(asked_attacks(attack))
    request.built()  # what is asked is judged before anything is read
    audit = audit_releases(path, k=k, table=table, progress=progress)
    if not attack or not audit.releases:
        return audit
    ledger = Ledger.at(path)
    return replace(audit, attacks=attack_ledger(ledger, policy_of(ledger, k), request, progress))


def attack_ledger(
    ledger: Ledger, policy: Policy, request: AttackRequest, progress: Progress = no_progress
) -> Findings:
    """What attacks find on the newest release, `release`; as in a certificate.

    Raises InputError where the private part is missing, and for an attack that is named and can't
    be tried.
    """
    if not ledger.steps():
        raise InputError(
            "attacks on a ledger: need its private part, which knows whose row is whose; restore it"
        )
    *earlier, newest = ledger.releases()
    own = ReleaseReading.at(ledger, newest, policy)

    def scene(attacks: list[Attack]) -> AttackScene:
        made = _scene(ledger, own, request, attacks)
        found = []
        for number in earlier:
            progress(f"reading release {number}")
            found.append(_aligned(ledger, number, own, made.release))
        return replace(made, earlier=tuple(found))

    return {"release": newest} | tried(scene, policy.model.accept, request, progress)


def _scene(
    ledger: Ledger, own: ReleaseReading, request: AttackRequest, attacks: list[Attack]
) -> AttackScene:
    """The newest release by itself, with its people where the ledger knows their records."""
    if not own.identities.is_real.all():
        return _without_originals(own, INVENTED)
    kept = read_originals(ledger)
    if kept is None or not np.array_equal(kept[1], own.identities.records):
        return _without_originals(own, NO_ORIGINALS)
    original = Table(texts_of(kept[0]))
    problem, encoded = bound_original(original, own.problem.policy, "originals")
    truth, why = Truth(original, encoded), NO_CONTROL
    target = AttackedRelease(
        Table(own.frame), own.release, problem, original, encoded, truth, no_republish=why
    )
    return scene_of(ground_of(target, request), request, attacks)


def _without_originals(own: ReleaseReading, why: str) -> AttackScene:
    """What readers see, and nothing of its people but who is in which class."""
    classes = in_boxes(own.release)
    boxes = boxes_of((), (), classes.labels, classes.people())
    plain = plain_columns(Table(own.frame), own.problem.schema)
    is_real = None if own.identities.is_real.all() else own.identities.is_real
    sensitive = dict(classes.sensitive)
    shown = ShownRelease(boxes, classes.labels, classes.subjects, sensitive, plain, is_real)
    nothing = np.zeros((shown.records, 0), dtype=np.int32)
    values = {name: column.codes.astype(np.int64) for name, column in shown.sensitive.items()}
    people = People(nothing, values, shown.persons, shown.labels)
    trials, control = (Trial(shown, people),), Control("none", reason=NO_CONTROL)
    k, seed = own.problem.required_k, own.problem.seed
    return AttackScene(seed, shown, people, trials, control, required_k=k, no_people=why)


def _aligned(
    ledger: Ledger, number: int, own: ReleaseReading, release: ShownRelease
) -> EarlierRelease:
    """An earlier release, record by record: an attacker knows who came only later."""
    model = own.problem.tables.model
    frame, identities = rows_of_release(ledger, number, model)
    table, now = Table(frame), Table(own.frame)
    newer = Newer(now, release, own.problem.schema)
    persons = _persons(own.identities, release, identities)
    rows = newer.shown_rows(table, published_classes(table, model), persons)
    row_of = _rows_of(own.identities, identities)
    known = np.flatnonzero(row_of >= 0)
    order = None
    if len(known) and (np.diff(row_of[known]) > 0).all():  # else their places tell nothing
        order = row_order(table, now, own.problem.schema, (row_of[known], known))
    found = by_row(release, rows, row_of, order, "ledger", absence_is_known=True)
    if "panel" not in ledger.certificate(number):
        return found
    # people come again with other values: a value that changed distinguishes nobody
    return replace(found, unchanged=np.ones(len(row_of), dtype=bool))


def _rows_of(own: Identities, earlier: Identities) -> np.ndarray:
    """(n,) the earlier row of each record of the newest release; ABSENT where there is none."""
    real = np.flatnonzero(earlier.is_real)
    order = real[np.argsort(earlier.records[real])]
    at = places_among(earlier.records[order], own.records)
    return np.where(own.is_real, np.append(order, ABSENT)[at], ABSENT)


def _persons(own: Identities, release: ShownRelease, earlier: Identities) -> np.ndarray:
    """(m,) the person of each earlier row, in the newest release's numbers."""
    known, first = np.unique(own.people, return_index=True)
    others, number = np.unique(earlier.people, return_inverse=True)
    at = places_among(known, others)
    strangers = release.records + np.arange(len(others))
    person = np.where(at >= 0, release.persons[first[at]], strangers)
    return person[number].astype(np.int64)
