"""Releases as they are compared with others: who is in which class, and what the classes show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shoal.attacks.beside.audit import ReleaseBeside, ShownValues, matched
from shoal.auditor.ledger import history, terms
from shoal.auditor.ledger.release_view import ReleaseReading
from shoal.auditor.sharing import Links, fitting_pairs, profiles_of
from shoal.connectors.ledger import Ledger, sha256_of
from shoal.connectors.ledger.private import KnownPeople, NamedPeople, token_of
from shoal.data.person_names import same_value
from shoal.data.schema import REMOVED, Role
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.model import PolicyModel
from shoal.policy.policy import Policy

LEAST_VALUES = {"l-diversity": "l", "k-l-diversity": "l", "p-sensitive-k-anonymity": "p"}
"""By promise, the parameter that says how many different values every class shows."""


def least_values_of(promises: Sequence[Any]) -> dict[str, int]:
    """By sensitive attribute, how many different values every class is promised to show."""
    least: dict[str, int] = {}
    for promise in promises:
        asked = promise.parameters.get(LEAST_VALUES.get(promise.model, ""))
        for name in promise.sensitive if asked is not None else ():
            least[name] = max(int(asked), least.get(name, 0))
    return least


def values_of(released: Table, labels: np.ndarray, model: PolicyModel) -> dict[str, ShownValues]:
    """What classes show of every column but the quasi-identifiers, and names nobody."""
    roles = {name: a.role for name, a in model.attributes.items()}
    hidden = (Role.QUASI, *REMOVED)
    kept, is_value = labels >= 0, model.is_value
    found = {}
    for name in released.names:
        if roles.get(name, model.other or "plain") in hidden:
            continue
        column = released.column(name)
        texts = tuple(same_value(cell) if is_value(cell) else "" for cell in column.cells)
        place = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        code = np.array([place[text] for text in texts], dtype=np.int64)[column.codes]
        found[name] = ShownValues(labels[kept], code[kept], tuple(place))
    return found


# Ledgers


def of_ledger(path: str | Path, what: str) -> ReleaseBeside:
    """A ledger as one source: people with the same classes in all of its releases are one class.

    Raises InputError where it names no people, or its chain is damaged.
    """
    ledger = Ledger.at(path)
    policy = terms.policy_of(ledger)
    if policy.subject is None:
        raise InputError(
            f"{what}: its policy names no 'subject', so nobody can be found again in another"
            " release; such a ledger can't be judged beside others"
        )
    if not ledger.steps():
        raise InputError(
            f"{what}: its private part, which knows whose row is whose, is missing; restore it"
        )
    with ledger.appends_held_off():
        known = KnownPeople(ledger)
    head = sha256_of(ledger.last)  # before all else: a release that comes meanwhile is not judged
    audited = history.audit_releases(path)
    if audited.damage:
        raise InputError(f"{what}: {audited.damage[0]}", list(audited.damage[1:]))
    none = np.zeros(0, dtype=np.int64)
    nothing = _LedgerRows(none, none.astype(np.uint64), none, 0, {})
    releases = [nothing, *(_rows_of(ledger, number, policy) for number in ledger.releases())]
    first = np.cumsum([0, *(release.count for release in releases)])
    begun = list(zip(releases, first.tolist(), strict=False))
    records = np.concatenate([release.records for release in releases])
    classes = np.concatenate([release.labels + start for release, start in begun])
    _, row, number_of = np.unique(records, return_index=True, return_inverse=True)
    places = Links.of(number_of, classes, len(row), int(first[-1]))
    labels, one_each = profiles_of(places)
    tokens = np.concatenate([release.tokens for release in releases])[row]
    people, person = np.unique(tokens, return_inverse=True)
    key = ledger.key
    return ReleaseBeside(
        what,
        "ledger",
        tuple(f"{token:016x}" for token in people.tolist()),
        person.astype(np.int64),
        labels,
        len(one_each),
        _values_of_all(begun, places.of_items(np.isin(np.arange(len(row)), one_each)), labels),
        tuple(name for name, a in policy.model.attributes.items() if a.role == "sensitive"),
        policy.required_k,
        least_values_of(policy.build_promises()),
        audited.holds,
        head,
        token=lambda name: token_of(name, key),
        taken=lambda names: known.taken_for_others(names, NamedPeople.of(names, key), key),
        together=policy.model.together,
    )


@dataclass(frozen=True)
class _LedgerRows:
    """The rows of one release of a ledger that are in a class 0..count-1 and that nobody invented.

    records, tokens, labels: (n,). values: what its classes show, by attribute.
    """

    records: np.ndarray
    tokens: np.ndarray
    labels: np.ndarray
    count: int
    values: Mapping[str, ShownValues]


def _rows_of(ledger: Ledger, number: int, policy: Policy) -> _LedgerRows:
    reading = ReleaseReading.at(ledger, number, policy)
    assert reading.identities.subjects is not None
    classes = reading.release.classes
    kept = (classes.labels >= 0) & reading.identities.is_real
    labels = classes.labels.astype(np.int64)
    return _LedgerRows(
        reading.identities.records[kept],
        reading.identities.subjects[kept],
        labels[kept],
        classes.count,
        values_of(Table(reading.frame), labels, policy.model),
    )


def _values_of_all(
    releases: Sequence[tuple[_LedgerRows, int]], cells: Links, labels: np.ndarray
) -> dict[str, ShownValues]:
    """The values that all classes of a cell show, if these never change.

    releases: each with the number of its first class. cells: the classes of one record of each.
    """
    found = {}
    for name in dict.fromkeys(name for release, _ in releases for name in release.values):
        shown = [(each.values[name], first) for each, first in releases if name in each.values]
        fits, texts = matched(shown, cells.class_count)
        pairs = fitting_pairs(cells, fits)
        found[name] = ShownValues(labels[pairs.classes], pairs.items, texts)
    return found
