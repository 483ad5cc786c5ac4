"""Attack a ledger: its newest release, alone and beside all earlier ones.

The private part knows whose row is whose in every release. Only methods that publish the whole
table anew keep the originals too; without them, attacks that start from people's quasi-identifiers
can't be tried.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from shoal.attacks.intersection import ABSENT, Newer, by_row, published_classes, row_order
from shoal.attacks.run.attack import in_boxes, scene_of, tried
from shoal.attacks.run.people import AttackedRelease, plain_columns
from shoal.attacks.run.request import Asked, AttackRequest, asked_attacks
from shoal.auditor.ledger.history import LedgerAudit, audit_releases
from shoal.auditor.ledger.release_view import ReleaseReading, rows_of_release
from shoal.auditor.ledger.terms import policy_of
from shoal.connectors.ledger import Ledger
from shoal.connectors.ledger.private import Identities, read_originals
from shoal.data.attack_scene import (
    AttackScene,
    Control,
    EarlierRelease,
    Findings,
    People,
    ShownRelease,
    Trial,
    boxes_of,
)
from shoal.data.numbers import places_among
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Table, texts_of
from shoal.data.truth import Truth
from shoal.errors import InputError
from shoal.policy.binding.table import bound_original
from shoal.policy.policy import Policy
from shoal.protocols import Attack

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
    found = attack_ledger(ledger, policy_of(ledger, k), request, progress)
    return replace(audit, attacks=found)


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
    target = AttackedRelease(
        Table(own.frame),
        own.release,
        problem,
        original,
        encoded,
        Truth(original, encoded),
        no_republish=NO_CONTROL,
    )
    return scene_of(target, request, attacks)


def _without_originals(own: ReleaseReading, why: str) -> AttackScene:
    """What readers see, and nothing of its people but who is in which class."""
    classes = in_boxes(own.release)
    boxes = boxes_of((), (), classes.labels, classes.people())
    shown = ShownRelease(
        boxes,
        classes.labels,
        classes.subjects,
        dict(classes.sensitive),
        plain_columns(Table(own.frame), own.problem.schema),
        None if own.identities.is_real.all() else own.identities.is_real,
    )
    nothing = np.zeros((shown.records, 0), dtype=np.int32)
    values = {name: column.codes.astype(np.int64) for name, column in shown.sensitive.items()}
    people = People(nothing, values, shown.persons, shown.labels)
    return AttackScene(
        own.problem.seed,
        shown,
        people,
        (Trial(shown, people),),
        Control("none", reason=NO_CONTROL),
        required_k=own.problem.required_k,
        no_people=why,
    )


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
    return person[number.reshape(-1)].astype(np.int64)
