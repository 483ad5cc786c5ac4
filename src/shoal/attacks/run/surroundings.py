"""What the owner knows around a release: its population, and lists that attackers hold."""

from __future__ import annotations

from math import isfinite

import numpy as np

from shoal.attacks.run.people import Ground
from shoal.attacks.run.places import points_of
from shoal.data.attack_scene import ExternalList, ShownRelease, Surroundings
from shoal.data.notation import PublishedNumbers
from shoal.data.numbers import parse_numbers
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.binding.files import read_beside
from shoal.policy.model import PopulationPolicy
from shoal.policy.policy import Policy
from shoal.privacy.uniqueness import ESTIMATORS

DEFAULT_ESTIMATOR = "pitman"  # as the promise's


def surroundings_of(policy: Policy, ground: Ground, people: np.ndarray) -> Surroundings | None:
    """The population as the policy describes it; None without one. Raises InputError.

    people: of every class, from which a fraction's uniques are estimated.
    """
    around = policy.model.population
    if around is None:
        return None
    if around.table is not None:
        table = _read(policy, around.table)
        _require(table, [axis.name for axis in ground.axes])
        points = points_of(table, ground.axes, ground.schema, "population")
        distinct, counts = np.unique(points, axis=0, return_counts=True)
        every = tuple(range(len(ground.axes)))
        return Surroundings("table", every, distinct, counts.astype(np.float64))
    if around.frequencies is not None:
        return _frequencies(policy, around, ground)
    assert around.fraction is not None
    estimator = around.estimator or DEFAULT_ESTIMATOR
    uniques = _uniques(people, estimator, around.fraction)
    return Surroundings("fraction", fraction=around.fraction, estimator=estimator, uniques=uniques)


def _uniques(people: np.ndarray, estimator: str, fraction: float) -> float | None:
    """The share of the population that is alone in its class, as the promise estimates it; None
    where the model can't be fitted.
    """
    sizes, counts = np.unique(people[people > 0], return_counts=True)
    if not len(sizes):
        return None
    share = ESTIMATORS[estimator](sizes, counts, fraction) if sizes[0] == 1 else 0.0
    return share if isfinite(share) else None


def _frequencies(policy: Policy, around: PopulationPolicy, ground: Ground) -> Surroundings:
    assert around.frequencies is not None
    assert around.column is not None
    assert around.people is not None
    table = _read(policy, around.frequencies)
    _require(table, [around.column])
    known = tuple(j for j, axis in enumerate(ground.axes) if axis.name in table.names)
    if not known:
        raise InputError("population: its frequencies name no quasi-identifier; add some")
    axes = tuple(ground.axes[j] for j in known)
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
    points = points_of(table, axes, ground.schema, "population")
    # relative frequencies may be written as counts
    whole = max(float(weights.sum()), 1.0)
    return Surroundings("frequencies", known, points, weights / whole * around.people)


def external_list(
    external: Table, ground: Ground, release: ShownRelease, persons: np.ndarray
) -> ExternalList:
    """A list of people with some quasi-identifiers; who they are where it has the subject column.

    persons: (n,) whose record each of the release is.
    """
    known = tuple(j for j, axis in enumerate(ground.axes) if axis.name in external.names)
    if not known:
        raise InputError("external: has no quasi-identifier of the policy; add some")
    axes = tuple(ground.axes[j] for j in known)
    points = points_of(external, axes, ground.schema, "external")
    subject = ground.schema.subject
    if subject is None or subject.name not in external.names:
        return ExternalList(known, points, None)
    own = ground.original.column(subject.name)
    # any record of a person leads to the same number
    number_of = dict(zip(own.cells, _numbers(own.codes, ground.people.persons), strict=True))
    listed = external.column(subject.name)
    number = np.array([number_of.get(cell, -1) for cell in listed.cells])[listed.codes]
    class_of = np.full(int(persons.max(initial=-1)) + 2, -1)
    class_of[persons] = release.labels
    return ExternalList(known, points, class_of[number])


def _numbers(codes: np.ndarray, persons: np.ndarray) -> np.ndarray:
    number = np.full(int(codes.max()) + 1, -1)
    number[codes] = persons
    return number


def _read(policy: Policy, name: str) -> Table:
    return read_beside(str(policy.base / name), policy, f"population '{name}'")


def _require(table: Table, names: list[str]) -> None:
    findings = [
        f"population: has no column '{name}'; add it" for name in names if name not in table.names
    ]
    if findings:
        raise InputError.from_findings(findings)
