"""Tables, streams and ledgers as they are read beside one another: who is in which class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from shoal.attacks.beside.sharing import Links, fitting_pairs, profiles_of
from shoal.auditor.audit import AuditResult
from shoal.auditor.ledger import terms
from shoal.auditor.ledger.history import audit_releases
from shoal.auditor.ledger.release_view import read_as_published, rows_of_release
from shoal.connectors.ledger import Ledger
from shoal.connectors.ledger.identities import token_of
from shoal.data.beside import ReleaseBeside, ShownValues
from shoal.data.person_names import person_name, same_value
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.policy import Policy

LEAST_VALUES = {"l-diversity": "l", "k-l-diversity": "l", "p-sensitive-k-anonymity": "p"}
"""By promise, the parameter that says how many different values every class shows."""


def of_audited(
    result: AuditResult, released: Table, policy: Policy, what: str, kind: str = "table"
) -> ReleaseBeside:
    """A table, or a stream with its trace, that was audited with its original.

    what: its name in findings. Raises InputError where it is not known whose row is whose.
    """
    policy.refuse_two_tables(what)
    if policy.subject is None:
        raise InputError(
            f"{what}: its policy names no 'subject', so nobody can be found again in another"
            " release; give the column that names the person this role"
        )
    if result.truth is None:
        raise InputError(
            f"{what}: its rows can't be matched with its original; give --original, and audit a"
            " release in the order of its input ('render: {order: input}')"
        )
    if any((result.certificate.get("faults") or {}).values()):
        raise InputError(
            f"{what}: is not a true release of its original, so whose row is whose is not known;"
            " audit it alone, and give the original that it was made of"
        )
    named = result.truth.original.column(policy.subject)
    names, person = stripped(named.cells)
    people = person[result.truth.aligned(named.codes)]
    classes = result.release.classes
    labels = classes.labels.astype(np.int64)
    kept = labels >= 0
    output = result.certificate.get("output") or {}
    return ReleaseBeside(
        kind,
        names,
        people[kept],
        labels[kept],
        classes.count,
        _values(released, labels, policy),
        tuple(a.name for a in result.schema.sensitive),
        policy.required_k,
        least_values_of(policy),
        result.certificate.holds,
        output.get("sha256"),
    )


def stripped(cells: Iterable[str]) -> tuple[tuple[str, ...], np.ndarray]:
    """Distinct names as they are compared, and which of them each cell holds."""
    place: dict[str, int] = {}
    number = [place.setdefault(person_name(cell), len(place)) for cell in cells]
    return tuple(place), np.array(number, dtype=np.int64)


def least_values_of(policy: Policy) -> dict[str, int]:
    """By sensitive attribute, how many different values the policy wants every class to show."""
    least: dict[str, int] = {}
    for promise in policy.build_promises():
        asked = promise.parameters.get(LEAST_VALUES.get(promise.model, ""))
        for name in promise.sensitive if asked is not None else ():
            least[name] = max(int(asked), least.get(name, 0))
    return least


def _values(released: Table, labels: np.ndarray, policy: Policy) -> dict[str, ShownValues]:
    """What classes show of every column but the quasi-identifiers, and names nobody."""
    roles = {name: a.role for name, a in policy.model.attributes.items()}
    hidden = ("quasi", "subject", "identifier", "drop", "time", "operation")
    kept = labels >= 0
    found = {}
    for name in released.names:
        if roles.get(name, policy.model.other or "plain") in hidden:
            continue
        column = released.column(name)
        texts = tuple(same_value(cell) if policy.is_value(cell) else "" for cell in column.cells)
        place = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        code = np.array([place[text] for text in texts], dtype=np.int64)[column.codes]
        found[name] = ShownValues(labels[kept], code[kept], tuple(place))
    return found


# Ledgers


def is_ledger(path: str | Path) -> bool:
    """Whether a name is that of a folder, as ledgers are."""
    return Path(path).is_dir()


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
    audited = audit_releases(path)
    if audited.damage:
        raise InputError(f"{what}: {audited.damage[0]}", list(audited.damage[1:]))
    cells = LedgerCells()
    for number in ledger.releases():
        frame, identities = rows_of_release(ledger, number, policy)
        reading = read_as_published(frame, identities, policy)
        assert reading.identities is not None
        assert reading.identities.subjects is not None
        classes = reading.release.classes
        kept = (classes.labels >= 0) & reading.is_real
        labels = classes.labels.astype(np.int64)
        cells.take(
            reading.identities.records[kept],
            reading.identities.subjects[kept],
            labels[kept],
            classes.count,
            _values(Table(reading.frame), labels, policy),
        )
    key = ledger.key
    tokens, people = np.unique(cells.tokens, return_inverse=True)
    return ReleaseBeside(
        "ledger",
        tuple(f"{token:016x}" for token in tokens.tolist()),
        people.reshape(-1).astype(np.int64),
        cells.labels,
        cells.count,
        cells.values(),
        tuple(name for name, a in policy.model.attributes.items() if a.role == "sensitive"),
        policy.required_k,
        least_values_of(policy),
        audited.holds,
        token=lambda name: token_of(name, key),
    )


# A ledger as one release: people with the same classes in all of its releases are one class.


class LedgerCells:
    """The classes of every record of a ledger in all releases so far."""

    def __init__(self) -> None:
        none = np.zeros(0, dtype=np.int64)
        self._records, self._classes, self._tokens = [none], [none], [none.astype(np.uint64)]
        self._shown: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
        self._places: dict[str, dict[str, int]] = {}
        self._first = 0

    def take(
        self,
        records: np.ndarray,
        tokens: np.ndarray,
        labels: np.ndarray,
        count: int,
        shown: Mapping[str, ShownValues],
    ) -> None:
        """The next release; records, tokens, labels: (n,) of its rows that are in a class
        0..count-1 and that nobody invented. shown: the values of every class.
        """
        self._records.append(records)
        self._classes.append(labels + self._first)
        self._tokens.append(tokens)
        for name, values in shown.items():
            place = self._places.setdefault(name, {})
            code = np.array([place.setdefault(t, len(place)) for t in values.texts], dtype=np.int64)
            pair = (values.classes + self._first, code[values.codes])
            self._shown.setdefault(name, []).append(pair)
        self._first += count

    @property
    def _places_of_records(self) -> tuple[Links, np.ndarray]:
        """Records and their classes, and the first row of each record."""
        records = np.concatenate(self._records)
        distinct, first, number = np.unique(records, return_index=True, return_inverse=True)
        classes = np.concatenate(self._classes)
        return Links.of(number.reshape(-1), classes, len(distinct), self._first), first

    @property
    def tokens(self) -> np.ndarray:
        """(records,) whose each of them is."""
        return np.concatenate(self._tokens)[self._places_of_records[1]]

    @property
    def labels(self) -> np.ndarray:
        """(records,) the cell of each."""
        return profiles_of(self._places_of_records[0])[0]

    @property
    def count(self) -> int:
        return int(self.labels.max(initial=-1)) + 1

    def values(self) -> Mapping[str, ShownValues]:
        """The values that all classes of a cell show, if these never change."""
        records, _ = self._places_of_records
        labels, first = profiles_of(records)
        chosen = np.zeros(records.item_count, dtype=bool)
        chosen[first] = True
        cells = records.of_items(chosen)
        found = {}
        for name, parts in self._shown.items():
            classes, codes = (np.concatenate(part) for part in zip(*parts, strict=True))
            texts = tuple(self._places[name])
            pairs = fitting_pairs(cells, Links.of(codes, classes, len(texts), self._first))
            found[name] = ShownValues(labels[pairs.classes], pairs.items, texts)
        return found
