"""A release and its original in numbers: people who are in it, and people who are not."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import time
from itertools import pairwise

import numpy as np
import polars as pl

from shoal.attacks.run.request import NEEDS_CONTROL, AttackRequest
from shoal.auditor.audit import AuditResult
from shoal.auditor.reading import read_again
from shoal.data import attack_scene
from shoal.data.attack_scene import Axis, Control, People, Recoding, ShownRelease, Trial
from shoal.data.classes import Classes, SensitiveColumn, encode_sensitive_columns
from shoal.data.encoding import EncodedTable, values_beside
from shoal.data.person_names import names_of, names_of_nobody, refuse_spelling, taken_for_others
from shoal.data.progress import Progress
from shoal.data.release import PublishedColumn, Release
from shoal.data.schema import Attribute, Kind, Role, Schema
from shoal.data.table import Column, Table, cell_texts
from shoal.data.truth import Truth
from shoal.data.warnings import CONTROL_IN_ORIGINAL, VALUES_UNPLACED, ReleaseWarning
from shoal.errors import InfeasibleError, InputError
from shoal.policy.binding.files import PolicyTables
from shoal.policy.binding.table import bound_original, with_values_of
from shoal.policy.consistency import require_one_record_each
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
        problem, release = result.problem.again(policy), result.release
        return cls(released, release, problem, original, encoded, truth, no_republish=why)


@dataclass(frozen=True)
class Ground:
    """The whole table in numbers, to which every release of it and its people are bound.

    schema: with places for the values of tables beside the original, too. sensitive: columns whose
    codes hold the release's records, then the original's, then the control's. people: everybody of
    the original, in its own order. around: the policy's table of the population, or its
    frequencies. doubts: about people of other tables who have no place.
    """

    target: AttackedRelease
    schema: Schema
    axes: tuple[Axis, ...]
    blind: tuple[str, ...]
    sensitive: dict[str, SensitiveColumn]
    people: People
    around: Table | None
    doubts: list[ReleaseWarning]
    outsiders: People | None = None

    def shown(
        self,
        columns: tuple[PublishedColumn, ...],
        classes: Classes,
        sensitive: dict[str, SensitiveColumn],
        plain: dict[str, np.ndarray],
    ) -> ShownRelease:
        """A release in numbers; classes: with its people."""
        again = [read_again(one, self.schema[one.name], self.schema) for one in columns]
        boxes = attack_scene.boxes_of(self.axes, again, classes.labels, classes.people())
        return ShownRelease(boxes, classes.labels, classes.subjects, sensitive, plain)

    def values_of(self, rows: np.ndarray) -> dict[str, SensitiveColumn]:
        """The sensitive columns of some records of the original."""
        return {
            name: replace(column, codes=self.people.values[name][rows].astype(np.int32))
            for name, column in self.sensitive.items()
        }

    def points_of(self, table: Table, known: Sequence[int], what: str) -> np.ndarray:
        """Where people of another table stand on some axes, (m, known) int32; raises InputError
        where a column holds nothing like what the original does.

        A value outside the domain is one that no cell covers but the suppression mark.
        """
        axes = [self.axes[j] for j in known]
        points = _points(table, axes, self.schema)
        InputError.raise_for(
            f"{what}: none of its values of '{axis.name}' is in the domain of the release; write"
            " them as in the original"
            for axis, j, places in zip(axes, known, points.T, strict=True)
            if not self._has_like(axis, places, self.people.points[:, j])
        )
        return points

    def _has_like(self, axis: Axis, places: np.ndarray, own: np.ndarray) -> bool:
        """Whether some of these are in the domain: also new ones that a rule places, which one
        directly below the mark does not.
        """
        tree, is_placed = axis.tree, places < axis.size
        is_as_bound = tree is self.target.problem.schema[axis.name].hierarchy
        if tree is not None and tree.height <= 1 and not is_as_bound:
            is_placed &= np.isin(places, own)
        return bool(is_placed.any())


def _points(table: Table, axes: Sequence[Axis], schema: Schema) -> np.ndarray:
    points = np.zeros((table.records, len(axes)), dtype=np.int32)
    for j, axis in enumerate(axes):
        column = table.column(axis.name)
        points[:, j] = axis.points(values_beside(schema[axis.name], column, schema))[column.codes]
    return points


def ground_of(target: AttackedRelease, request: AttackRequest) -> Ground:
    """The ground of a release; raises InputError where the tables beside it do not fit it."""
    schema, control = target.problem.schema, request.control
    if control is not None:
        _require_columns(control, schema)
    for what, table in (("control", control), ("external", request.external)):
        if table is not None:
            _require_known_spellings(table, what, target.original, schema)
    around = _population_of(target.problem)
    beside = {"control": control, "external": request.external, "population": around}
    schema = _with_values_of(schema, beside, target.problem.tables)
    doubts, is_left_out = _unplaced(schema, beside)
    if control is not None and is_left_out.any() and not is_left_out.all():
        control = Table(control.frame.filter(pl.Series(~is_left_out)))
    people = [target.original, *([] if control is None else [control])]
    sensitive = _sensitive_of([target.released, *people], schema)
    ends = np.cumsum([target.released.records, *(table.records for table in people)])
    parts = [
        {name: column.codes[start:stop].astype(np.int64) for name, column in sensitive.items()}
        for start, stop in pairwise(ends.tolist())
    ]
    axes, blind = attack_scene.axes_of(
        replace(e, attribute=schema[e.attribute.name]) for e in target.encoded.attributes
    )
    own = People(_points(target.original, axes, schema), parts[0], _persons(target.encoded))
    ground = Ground(target, schema, axes, tuple(blind), sensitive, own, around, doubts)
    if control is None:
        return ground
    InputError.raise_for(
        f"control: none of its values of '{name}' is among those of the original; write them as"
        " in the original"
        for name, column in sensitive.items()
        if _is_strange(column, parts[0][name], parts[1][name])
    )
    outside = ground.points_of(control, range(len(axes)), "control")
    doubts += _lacking(control, target, schema)
    return replace(ground, outsiders=People(outside, parts[1], persons_of(control, schema)))


def _population_of(problem: Problem) -> Table | None:
    """The table of the population, or of its frequencies, that the policy names."""
    around, tables = problem.policy.model.population, problem.tables
    if around is None or around.fraction is not None:
        return None
    what = f"population '{around.table or around.frequencies}'"
    table = tables.read_beside(tables.base / (around.table or around.frequencies or ""), what)
    if around.table:
        require_one_record_each(table, tables.model, what)
    return table


def _read_of(
    beside: Mapping[str, Table | None], schema: Schema
) -> Iterator[tuple[str, Attribute, Column]]:
    """What each such table is, and its columns that are read and have a hierarchy or an order."""
    for what, table in beside.items():
        roles = (Role.QUASI, *([Role.SENSITIVE] if what == "control" else []))
        for attribute in schema.with_role(*roles):
            has_places = attribute.hierarchy is not None or attribute.order is not None
            if has_places and table is not None and attribute.name in table.names:
                yield what, attribute, table.column(attribute.name)


def _with_values_of(
    schema: Schema, beside: Mapping[str, Table | None], tables: PolicyTables
) -> Schema:
    """The schema with places for their values, as far as rules place them."""
    attributes = {attribute.name: attribute for attribute in schema.attributes}
    for _, attribute, column in _read_of(beside, schema):
        own = attributes[attribute.name]
        attributes[own.name] = with_values_of(own, column, tables)
    return replace(schema, attributes=tuple(attributes.values()))


def _unplaced(
    schema: Schema, beside: Mapping[str, Table | None]
) -> tuple[list[ReleaseWarning], np.ndarray]:
    """Findings about records that have no place, and which of the control's these are."""
    doubts, is_left_out = [], np.zeros(1, dtype=bool)
    for what, attribute, column in _read_of(beside, schema):
        rows = np.isinf(values_beside(attribute, column, schema))[column.codes]
        is_control = what == "control"
        is_left_out = is_left_out | rows if is_control else is_left_out
        text = (
            f"{what}: the hierarchy or order of '{attribute.name}' lacks the values of"
            f" {rows.sum()} of {len(rows)} records, which"
            f" {'are left out' if is_control else 'fit no class'}; add the values to it, or correct"
            " the records"
        )
        doubts += [ReleaseWarning(VALUES_UNPLACED, text, attribute.name)] if rows.any() else []
    return doubts, is_left_out


def _lacking(control: Table, target: AttackedRelease, schema: Schema) -> Iterator[ReleaseWarning]:
    """Findings about values, or missing ones, that the original lacks and no rule places."""
    for attribute in schema.with_role(Role.QUASI, Role.SENSITIVE):
        name, tree = attribute.name, attribute.hierarchy
        column, own = control.column(name), target.original.column(name)
        if tree is not None and tree.height <= 1:  # it has a leaf for any value
            attribute = target.problem.schema[name]
        is_odd = ~np.isfinite(values_beside(attribute, column, schema))
        is_odd |= attribute.hierarchy is None and attribute.kind is Kind.CATEGORY
        is_odd &= ~column.texts.is_in(own.texts.implode()).to_numpy()
        text = (
            f"control: in '{name}', {is_odd[column.codes].sum()} of {control.records} records have"
            " a value that the original lacks and no rule places, or none; write them as in the"
            " original, or leave them out"
        )
        yield from [ReleaseWarning(VALUES_UNPLACED, text, name)] if is_odd.any() else []


def _sensitive_of(tables: list[Table], schema: Schema) -> dict[str, SensitiveColumn]:
    """The sensitive columns of several tables, one after the other; raises InputError."""
    texts = {
        a.name: pl.concat([cell_texts(table.frame[a.name]) for table in tables])
        for a in schema.sensitive
    }
    sensitive, findings = encode_sensitive_columns(Table(pl.DataFrame(texts)), schema, {})
    InputError.raise_for(f"attack: {finding}" for finding in findings)
    return {
        name: replace(found, values=max(found.values, int(found.codes.max(initial=-1)) + 1))
        for name, found in sensitive.items()
    }


def persons_of(table: Table, schema: Schema) -> np.ndarray:
    """Whose record each is, (m,); each its own where no column says so."""
    codes = table.codes_of(None if schema.subject is None else schema.subject.name)
    return np.arange(table.records) if codes is None else codes.astype(np.int64)


def plain_columns(released: Table, schema: Schema) -> dict[str, np.ndarray]:
    """The codes of the columns that pass through."""
    return {
        attribute.name: released.column(attribute.name).codes.astype(np.int64)
        for attribute in schema.with_role(Role.PLAIN)
        if attribute.name in released.names
    }


def _persons(encoded: EncodedTable) -> np.ndarray:
    subjects = encoded.subjects
    return np.arange(encoded.records) if subjects is None else subjects.astype(np.int64)


def _require_columns(control: Table, schema: Schema) -> None:
    InputError.raise_for(
        f"control: has no column '{attribute.name}'; give people with all quasi-identifiers and"
        " sensitive attributes of the policy"
        for attribute in schema.with_role(Role.QUASI, Role.SENSITIVE)
        if attribute.name not in control.names
    )


def _is_strange(column: SensitiveColumn, original: np.ndarray, control: np.ndarray) -> bool:
    """Whether no value of the control is one of the original's; of numbers, lies in their span."""
    own, others = (codes[codes < column.values - column.missing] for codes in (original, control))
    if not len(own):
        return False
    if column.numbers is not None:
        return not ((own.min() <= others) & (others <= own.max())).any()
    return not np.isin(others, own).any()


def _require_known_spellings(table: Table, what: str, original: Table, schema: Schema) -> None:
    """Raises InputError where the subject column names people of the original in another spelling,
    or a control names any of them.
    """
    subject = schema.subject
    if subject is None or subject.name not in table.names:
        return
    names, known = (names_of(one.column(subject.name).texts).unique() for one in (table, original))
    refuse_spelling("the original", what, taken_for_others(names, known))
    nobody = names_of_nobody(schema.missing_values)
    shared = names.filter(names.is_in(known.implode()) & ~names.is_in(nobody)).len()
    if shared and what == "control":
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
    both = [name for name in original.names if name in control.names]
    joined = [original.column(name).joined(control.column(name)).codes for name in both]
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
