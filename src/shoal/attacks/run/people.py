"""A release and its original in numbers: people who are in it, and people who are not."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import time
from itertools import pairwise

import numpy as np
import polars as pl

from shoal.attacks.run.request import NEEDS_CONTROL, points_of
from shoal.auditor.audit import AuditResult
from shoal.data.attack_scene import (
    Axis,
    Control,
    People,
    Recoding,
    ShownRelease,
    Trial,
    axes_of,
    boxes_of,
)
from shoal.data.classes import Classes, SensitiveColumn, encode_sensitive
from shoal.data.encoding import EncodedTable
from shoal.data.progress import Progress
from shoal.data.release import PublishedColumn, Release
from shoal.data.schema import Role, Schema
from shoal.data.table import Column, Table
from shoal.data.truth import Truth
from shoal.data.warnings import CONTROL_IN_ORIGINAL, ReleaseWarning
from shoal.errors import InfeasibleError, InputError
from shoal.policy.binding.table import bound_original
from shoal.policy.policy import Policy
from shoal.policy.problem import Problem

MIDNIGHT = time()
NOT_KNOWN = (
    "neither the policy nor a certificate beside the release names a method, so nothing can be"
    " published again"
)
OTHER_METHOD = "the policy's method does not publish one table, so nothing is published again"

Republish = Callable[[np.ndarray], tuple[tuple[PublishedColumn, ...], np.ndarray, int]]
"""Publishes some rows of the original as the release was: cells, labels, number of classes. Raises
InfeasibleError where they can't be."""


@dataclass(frozen=True)
class AttackedRelease:
    """A release and what its owner has beside it.

    truth: None where rows can't be matched. republish: publishes some rows as the release was; None
    for the reason `no_republish`. recoding: how the method decides about a class alone.
    """

    released: Table
    release: Release
    problem: Problem
    original: Table
    encoded: EncodedTable
    truth: Truth | None
    republish: Republish | None = None
    recoding: Recoding = field(default_factory=Recoding)
    no_republish: str = NOT_KNOWN

    @classmethod
    def of_audited(
        cls, result: AuditResult, released: Table, original: Table, policy: Policy
    ) -> "AttackedRelease":
        """An audited release, which is not published again."""
        truth = result.truth
        encoded = bound_original(original, policy)[1] if truth is None else truth.encoded
        why = NOT_KNOWN if policy.model.method is None else OTHER_METHOD
        return cls(
            released,
            result.release,
            result.problem.again(policy),
            original,
            encoded,
            truth,
            no_republish=why,
        )


@dataclass(frozen=True)
class Ground:
    """The whole table in numbers, to which every release of it and its people are bound.

    sensitive: columns whose codes hold the release's records, then the original's, then the
    control's. people: everybody of the original, in its own order.
    """

    target: AttackedRelease
    axes: tuple[Axis, ...]
    blind: tuple[str, ...]
    sensitive: dict[str, SensitiveColumn]
    people: People
    outsiders: People | None

    def shown(
        self,
        columns: tuple[PublishedColumn, ...],
        classes: Classes,
        sensitive: dict[str, SensitiveColumn],
        plain: dict[str, np.ndarray],
    ) -> ShownRelease:
        """A release in numbers; classes: with its people."""
        boxes = boxes_of(self.axes, columns, classes.labels, classes.people())
        return ShownRelease(boxes, classes.labels, classes.subjects, sensitive, plain)

    def values_of(self, rows: np.ndarray) -> dict[str, SensitiveColumn]:
        """The sensitive columns of some records of the original."""
        return {
            name: replace(column, codes=self.people.values[name][rows].astype(np.int32))
            for name, column in self.sensitive.items()
        }


def ground_of(target: AttackedRelease, control: Table | None) -> Ground:
    """The ground of a release; raises InputError where the control does not fit it."""
    schema, encoded = target.problem.schema, target.encoded
    axes, blind = axes_of(encoded.attributes)
    tables = [target.released, target.original, *([] if control is None else [control])]
    if control is not None:
        _require_columns(control, schema)
        _require_others(control, target.original, schema)
    sensitive: dict[str, SensitiveColumn] = {}
    findings: list[object] = []
    for attribute in schema.sensitive:
        column = _joined([table.column(attribute.name) for table in tables])
        found, wrong = encode_sensitive(attribute, column, schema)
        findings += wrong
        if found is not None:
            values = max(found.values, int(found.codes.max(initial=-1)) + 1)
            sensitive[attribute.name] = replace(found, values=values)
    InputError.raise_for(f"attack: {finding}" for finding in findings)
    ends = np.cumsum([table.records for table in tables])
    parts = [
        {name: column.codes[start:stop].astype(np.int64) for name, column in sensitive.items()}
        for start, stop in pairwise(ends.tolist())
    ]
    if control is not None:
        InputError.raise_for(
            f"control: none of its values of '{name}' is among those of the original; write them as"
            " in the original"
            for name, column in sensitive.items()
            if _is_strange(column, parts[0][name], parts[1][name])
        )
    by_name = {e.attribute.name: e for e in encoded.attributes}
    points = np.zeros((target.original.records, len(axes)), dtype=np.int32)
    for j, axis in enumerate(axes):
        own = by_name[axis.name]
        points[:, j] = axis.points(own.value_of_code())[own.codes]
    people = People(points, parts[0], _persons(encoded))
    outsiders = None
    if control is not None:
        outside = points_of(control, axes, schema, "control")
        outsiders = People(outside, parts[1], persons_of(control, schema))
    return Ground(target, axes, tuple(blind), sensitive, people, outsiders)


def persons_of(table: Table, schema: Schema) -> np.ndarray:
    """Whose record each is, (m,); each its own where no column says so."""
    subject = schema.subject
    codes = None if subject is None else table.codes_of(subject.name)
    return np.arange(table.records) if codes is None else codes.astype(np.int64)


def plain_columns(released: Table, schema: Schema) -> dict[str, np.ndarray]:
    """The codes of the columns that pass through."""
    return {
        attribute.name: released.column(attribute.name).codes.astype(np.int64)
        for attribute in schema.with_role(Role.PLAIN)
        if attribute.name in released.names
    }


def _persons(encoded: EncodedTable) -> np.ndarray:
    if encoded.subjects is None:
        return np.arange(encoded.records)
    return encoded.subjects.astype(np.int64)


def _joined(columns: list[Column]) -> Column:
    first, *others = columns
    for other in others:
        first = first.joined(other)
    return first


def _require_columns(control: Table, schema: Schema) -> None:
    needed = [a.name for a in (*schema.quasi, *schema.sensitive)]
    absent = [name for name in needed if name not in control.names]
    if absent:
        raise InputError(
            f"control: has no column '{absent[0]}'; give people with all quasi-identifiers and"
            " sensitive attributes of the policy",
            [f"control: has no column '{name}'" for name in absent[1:]],
        )


def _is_strange(column: SensitiveColumn, original: np.ndarray, control: np.ndarray) -> bool:
    """Whether no value of the control is one of the original's; of numbers, lies in their span."""
    own, others = (codes[codes < column.values - column.missing] for codes in (original, control))
    if not len(own):
        return False
    if column.numbers is not None:
        return not ((own.min() <= others) & (others <= own.max())).any()
    return not np.isin(others, own).any()


def _require_others(control: Table, original: Table, schema: Schema) -> None:
    """Raises InputError where the subject column says that people of the control are published."""
    subject = schema.subject
    if subject is None or subject.name not in control.names:
        return
    everybody = original.column(subject.name).joined(control.column(subject.name))
    inside, outside = np.split(everybody.codes, [original.records])
    both = {everybody.cells[code] for code in np.intersect1d(inside, outside)}
    shared = len(both - {"", *schema.missing_values})
    if shared:
        who = "1 person is" if shared == 1 else f"{shared} people are"
        raise InputError(
            f"control: {who} in the original, too, by '{subject.name}'; leave them out, or"
            " nothing is compared with people who are not in the release"
        )


def with_days_of(original: Table, other: Table | None) -> Table | None:
    """Another table with days of the type that the original has: the same days are dates in some
    libraries of frames, and times of midnight in others.
    """
    if other is None:
        return None
    days = []
    for name in {*other.names} & {*original.names}:
        own, held = original.frame[name].dtype, other.frame[name]
        is_moment = own == pl.Datetime
        if held.dtype == pl.Date and is_moment:
            days.append(held.cast(own))
        elif held.dtype == pl.Datetime and not is_moment and (held.dt.time() == MIDNIGHT).all():
            days.append(held.dt.date())
    return Table(other.frame.with_columns(days)) if days else other


def control_warnings(
    control: Table | None, original: Table, schema: Schema
) -> list[ReleaseWarning]:
    """That more rows of a control are rows of the original than chance explains, where no column
    says whose they are: as many as rows of the original that have an equal one, with three more of
    these, since that is an estimate, and three standard deviations.
    """
    subject = schema.subject
    if control is None or (subject is not None and subject.name in control.names):
        return []
    joined = [
        original.column(name).joined(control.column(name)).codes
        for name in original.names
        if name in control.names
    ]
    rows = pl.DataFrame([pl.Series(str(j), codes) for j, codes in enumerate(joined)])
    own, others = rows[: original.records], rows[original.records :]
    found = others.join(own.unique(), on=rows.columns, how="semi").height
    alike, each = int(own.is_duplicated().sum()), others.height / max(own.height, 1)
    at_most = (alike + 3) * each
    if found <= at_most + 3 * at_most**0.5:
        return []
    by_chance = f"some {alike * each:.0f}" if alike * each >= 1 else "less than 1"
    text = (
        f"{found} of {others.height} rows of the control are equal to rows of the original, by"
        f" chance {by_chance}: the control must be people who are not in the release"
    )
    return [ReleaseWarning(CONTROL_IN_ORIGINAL, text)]


# People who are not in a release, so that an attack shows what being in it costs.


NEEDS_HALVES = ("singling-out",)
LARGEST = 20_000  # people who are set aside
FEWEST = 10  # people set aside, so that there is anything to compare

Trials = tuple[tuple[Trial, ...], Control, Trial | None]
"""What people outside a release are tried on, where they come from, and one of both halves."""


def trials_of(
    ground: Ground,
    release: ShownRelease,
    people: People,
    seed: int,
    folds: int,
    attacks: Collection[str],
    progress: Progress,
) -> Trials:
    """The trials, by the best control there is. attacks: names of those that are tried on them."""
    republish, given = ground.target.republish, ground.outsiders
    known = None if given is None else Control("given", len(np.unique(given.persons)))
    own = (Trial(release, people, given),)
    if republish is None:
        return own, known or Control("none", reason=ground.target.no_republish), None
    order = np.random.default_rng([seed, 5, 0]).permutation(np.unique(ground.people.persons))
    aside = min(len(order) // 5, LARGEST)
    if aside < FEWEST:
        reason = "too few people to set some of them aside"
        return own, known or Control("none", reason=reason), None
    try:
        trials = []
        for fold in range(folds if given is None and {*attacks} & {*NEEDS_CONTROL} else 0):
            progress(f"publishing without a fifth of the people, {fold + 1} of {folds}")
            outside = np.isin(ground.people.persons, order[fold * aside : (fold + 1) * aside])
            trials.append(_trial(ground, republish, ~outside, outside))
        halves = None
        if {*attacks} & {*NEEDS_HALVES}:
            progress("publishing one half of the people")
            half = len(order) // 2
            parts = order[:half], order[half : 2 * half]
            both = (np.isin(ground.people.persons, part) for part in parts)
            halves = _trial(ground, republish, *both)
    except InfeasibleError:
        reason = "a part of the people can't be published alone"
        return own, known or Control("none", reason=reason), None
    return tuple(trials) or own, known or Control("republished", aside, folds), halves


def _trial(ground: Ground, republish: Republish, inside: np.ndarray, outside: np.ndarray) -> Trial:
    """A second release, which nobody keeps, of some records, (n,) bool; and others outside it."""
    rows = np.flatnonzero(inside)
    columns, labels, count = republish(rows)
    classes = Classes(labels, count, ground.target.encoded.take(rows).subjects)
    release = ground.shown(columns, classes, ground.values_of(rows), {})
    members = replace(ground.people.take(rows), classes=labels)
    return Trial(release, members, ground.people.take(np.flatnonzero(outside)))
