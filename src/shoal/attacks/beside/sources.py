"""The joint audit, from frames and from files: who is in which class of tables, streams, ledgers.

Each release is audited alone first: its rows must be those of its original, or nobody could be
found again in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from shoal.attacks.beside.audit import (
    PRESENCE,
    BesideQuestion,
    ReleaseBeside,
    ShownValues,
    audit_together,
    matched,
    people_of,
)
from shoal.attacks.beside.sharing import Links, fitting_pairs, profiles_of
from shoal.auditor.audit import AuditResult, audit_file, audit_table
from shoal.auditor.ledger import terms
from shoal.auditor.ledger.history import audit_releases
from shoal.auditor.ledger.release_view import ReleaseReading
from shoal.auditor.stream_trace import StreamSource, audit_stream, audit_traced
from shoal.connectors import files
from shoal.connectors.frames import Frame, table_of
from shoal.connectors.ledger import Ledger
from shoal.connectors.ledger.private import token_of
from shoal.connectors.traces import is_of_stream, read_trace, rows_given
from shoal.data.person_names import same_value
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.binding.files import original_table, published_table, read_released, table_given
from shoal.policy.policy import Policy, PolicyLike

ReleaseLike: TypeAlias = (
    tuple[Frame, PolicyLike, Frame]
    | tuple[Frame, PolicyLike, Frame, str | Path | ArrayLike]
    | str
    | Path
)
"""A table or a stream with what stands behind it, or the folder of a ledger."""


@dataclass(frozen=True)
class BesideAudit:
    """What several releases about the same people give away together."""

    found: Mapping[str, Any]

    @property
    def holds(self) -> bool:
        """Whether every release keeps its promises, and enough people and values remain."""
        return bool(self.found["holds"])

    def report(self) -> dict[str, Any]:
        """As JSON states it: counts, and never who."""
        return dict(self.found)


def audit_beside(
    *releases: ReleaseLike,
    k: int | None = None,
    l: int | None = None,
    same: str | Iterable[str] = (),
    attacker: str = PRESENCE,
    progress: Progress = no_progress,
) -> BesideAudit:
    """Whether everybody who is in several releases stays among k people and l values in all.

    releases: a tuple of the released frame, its policy, its original and its trace, which may be
    left out where rows are in the original's order; of a ledger its folder. k, l: by default the
    least that the policies ask.
    same: attributes that never change, such as `disease=diagnosis`; by default all sensitive ones
    of the same name. attacker: `presence` knows who is in which release, `own` only of one person.
    Raises InputError where people can't be found again.
    """
    texts = (same,) if isinstance(same, str) else tuple(same)
    question = BesideQuestion(attacker, texts, k, l)
    question.check()
    read = []
    for number, release in enumerate(releases, 1):
        progress(f"auditing release {number}")
        read.append(of_frames(release, f"release {number}", progress))
    return BesideAudit(audit_together(read, question, progress))


def of_frames(release: ReleaseLike, what: str, progress: Progress) -> ReleaseBeside:
    """A release as Python names it, audited alone."""
    if isinstance(release, str | Path):
        return of_ledger(release, what)
    if not isinstance(release, tuple) or len(release) not in (3, 4):
        raise InputError(
            f"{what}: is not a tuple of the released frame, its policy, its original and its trace;"
            " a ledger is named by its folder"
        )
    released, original = release[0], release[2]
    policy = Policy.of(release[1])
    policy.refuse_two_tables(what)
    trace = release[3] if len(release) == 4 else None
    if isinstance(trace, str | Path) and is_of_stream(str(trace)):
        lines = read_trace(str(trace))
        table = table_of(released)
        records = table_given(original, policy).frame
        read = StreamSource(records, np.arange(records.height), None)
        result = audit_traced(table, policy, read, lines, progress)
        return of_audited(result, table, policy, what, "stream")
    table, _ = published_table(table_of(released), policy)
    source = original_table(table_given(original, policy), policy)
    rows = None if trace is None else rows_given(trace)
    result = audit_table(table, policy, source, progress, trace=rows)
    return of_audited(result, table, policy, what)


@dataclass(frozen=True)
class NamedRelease:
    """A release by its files; a ledger by its folder alone."""

    released: str
    policy: str | None = None
    original: str | None = None
    trace: str | None = None
    record_lines: int | None = None
    option: str = "--with"

    @property
    def files(self) -> list[str]:
        """All files that are read."""
        named = (self.released, self.policy, self.original, self.trace)
        return [name for name in named if name is not None]

    def check(self) -> None:
        """Raises InputError, before anything is read, for what can't be judged."""
        if is_ledger(self.released):
            if len(self.files) > 1 or self.record_lines is not None:
                raise InputError(
                    f"{self.option} '{self.released}': is a ledger, which has its own policy and"
                    " private part; leave out its -p, --original and --trace"
                )
            return
        lacking = [
            option
            for option, given in (("-p", self.policy), ("--original", self.original))
            if given is None
        ]
        if lacking:
            raise InputError(
                f"{self.option} '{self.released}': needs {' and '.join(lacking)} behind it; write"
                " --with RELEASED -p POLICY --original ORIGINAL"
            )

    def read(self, what: str, progress: Progress) -> ReleaseBeside:
        """The release as it was read, audited alone."""
        self.check()
        if is_ledger(self.released):
            return of_ledger(self.released, what)
        assert self.policy is not None
        assert self.original is not None
        policy = Policy.load(Path(self.policy))
        is_stream = self.trace is not None and is_of_stream(self.trace)
        if not is_stream:
            result = audit_file(
                self.released, policy, self.original, trace_path=self.trace, progress=progress
            )
        else:
            assert self.trace is not None
            if policy.model.method is None:
                policy = policy.with_method("fads")
            result = audit_stream(
                self.released,
                policy,
                self.original,
                self.trace,
                self.record_lines,
                progress=progress,
            )
        return of_file(result, self.released, policy, what, is_stream=is_stream)


def of_file(
    result: AuditResult, released: str, policy: Policy, what: str, *, is_stream: bool
) -> ReleaseBeside:
    """A file that was audited, beside others."""
    source = files.read(released) if is_stream else read_released(released, policy)
    return of_audited(result, source.table, policy, what, "stream" if is_stream else "table")


def audit_named(
    first: ReleaseBeside,
    others: Sequence[NamedRelease],
    question: BesideQuestion,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """The `beside` part of the certificate of the first release."""
    releases = [first]
    for other in others:
        progress(f"auditing {other.released}")
        releases.append(other.read(f"--with '{other.released}'", progress))
    return audit_together(releases, question, progress)


# Who is in which class of a release that was audited.


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
            f"{what}: its rows can't be matched with its original; give the original and the trace"
        )
    if any((result.certificate.get("faults") or {}).values()):
        raise InputError(
            f"{what}: is not a true release of its original, so whose row is whose is not known;"
            " audit it alone, and give the original that it was made of"
        )
    names, person = people_of(result.truth, result.problem.schema)
    people = result.truth.aligned(person)
    classes = result.release.classes
    labels = classes.labels.astype(np.int64)
    kept = labels >= 0
    output = result.certificate.get("output") or {}
    return ReleaseBeside(
        what,
        kind,
        names,
        people[kept],
        labels[kept],
        classes.count,
        _values(released, labels, policy),
        tuple(a.name for a in result.problem.schema.sensitive),
        policy.required_k,
        least_values_of(policy),
        result.certificate.holds,
        output.get("sha256"),
        result,
    )


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
    none = np.zeros(0, dtype=np.int64)
    nothing = _LedgerRows(none, none.astype(np.uint64), none, 0, {})
    releases = [nothing, *(_rows_of(ledger, number, policy) for number in ledger.releases())]
    first = np.cumsum([0, *(release.count for release in releases)])
    begun = list(zip(releases, first.tolist(), strict=False))
    records = np.concatenate([release.records for release in releases])
    classes = np.concatenate([release.labels + start for release, start in begun])
    _, row, number_of = np.unique(records, return_index=True, return_inverse=True)
    places = Links.of(number_of.reshape(-1), classes, len(row), int(first[-1]))
    labels, one_each = profiles_of(places)
    tokens = np.concatenate([release.tokens for release in releases])[row]
    people, person = np.unique(tokens, return_inverse=True)
    key = ledger.key
    return ReleaseBeside(
        what,
        "ledger",
        tuple(f"{token:016x}" for token in people.tolist()),
        person.reshape(-1).astype(np.int64),
        labels,
        len(one_each),
        _values_of_all(begun, places.of_items(np.isin(np.arange(len(row)), one_each)), labels),
        tuple(name for name, a in policy.model.attributes.items() if a.role == "sensitive"),
        policy.required_k,
        least_values_of(policy),
        audited.holds,
        token=lambda name: token_of(name, key),
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
        _values(Table(reading.frame), labels, policy),
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
