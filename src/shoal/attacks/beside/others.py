"""Other releases of the same people: how they are named, read and audited, for whoever compares.

named by a file or in Python > read > audited with its original > people and their classes
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from pydantic import ConfigDict, ValidationInfo, field_validator, model_validator

from shoal.attacks.beside.audit import OWN, Question, ReleaseBeside, audit_together, people_of
from shoal.attacks.beside.sources import least_values_of, of_ledger, values_of
from shoal.attacks.intersection import Earlier
from shoal.attacks.run.request import NO_ATTACK, AttackRequest
from shoal.auditor.audit import (
    AuditResult,
    as_certified,
    audit_file,
    audit_table,
    noted,
    policy_or_columns,
)
from shoal.auditor.linked.audit import audit_linked
from shoal.auditor.stream_trace import StreamSource, audit_stream, read_source
from shoal.connectors import files
from shoal.connectors.frames import Frame
from shoal.connectors.ledger import GENESIS
from shoal.connectors.linked_tables import LinkedSource
from shoal.connectors.location import seen_from
from shoal.connectors.outputs import describe_file
from shoal.connectors.traces import is_of_stream, read_trace, rows_given
from shoal.data import cores
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.binding.columns import audit_warnings
from shoal.policy.binding.files import PolicyTables, Source
from shoal.policy.checked import checked
from shoal.policy.from_columns import given_words
from shoal.policy.linked import one_table_findings
from shoal.policy.loading import read_mapping
from shoal.policy.model import _Strict
from shoal.policy.policy import Policy, PolicyLike


class OtherRelease(_Strict):
    """Another release of the same people, with what stands behind it; of a ledger its folder alone.

    release: a table or what a stream published, as a frame or a file. policy: by default that of
    the release that it is compared with. original: by it people are found again; without it, only
    attacks use the release. trace: whose row is whose; it may be left out where rows are in the
    original's order.
    """

    model_config = ConfigDict(hide_input_in_errors=True)

    release: Any
    policy: Any = None
    original: Any = None
    trace: Any = None

    @field_validator("release", "policy", "original", "trace")
    @classmethod
    def _placed(cls, given: Any, info: ValidationInfo) -> Any:
        """What a file names, relative to it; what Python gives stays as it is."""
        if info.context is None or given is None:
            return given
        if not isinstance(given, str) or not given:
            raise ValueError("is not the name of a file; write one, relative to this file")
        return seen_from(info.context, given)

    @property
    def files(self) -> list[str]:
        """All files that are read."""
        named = (self.release, self.policy, self.original, self.trace)
        return [str(name) for name in named if isinstance(name, str | Path)]

    @property
    def is_file(self) -> bool:
        """Whether it is named, and no frame."""
        return isinstance(self.release, str | Path)

    @property
    def is_all_named(self) -> bool:
        """Whether the release and all that stands behind it are named, and no frames."""
        given = (self.release, self.original, self.trace)
        return all(isinstance(one, str | Path) for one in given if one is not None)

    @property
    def is_ledger(self) -> bool:
        """Whether it is named by the folder of a ledger."""
        return self.is_file and (Path(self.release) / GENESIS).is_file()

    @cached_property
    def is_stream(self) -> bool:
        """Whether it has the original and the trace of a stream."""
        is_named = self.original is not None and isinstance(self.trace, str | Path)
        return is_named and is_of_stream(str(self.trace))

    def table(self, tables: PolicyTables) -> Table:
        """Its cells."""
        if not self.is_stream:
            return self.published(tables)[0]
        if self.is_file:
            return Table(files.read(str(self.release)).frame)
        return tables.released_table(self.release)

    def published(self, tables: PolicyTables) -> tuple[Table, int | None]:
        """Its cells without derived columns, and how many records these contradict."""
        if self.is_file:
            source = tables.read_released(str(self.release))
            return Table(source.frame), source.contradicted
        return tables.published_table(tables.released_table(self.release))

    def original_table(self, tables: PolicyTables) -> Table:
        """The cells that it was made of."""
        return tables.read_source(self.original, no_progress)

    @cached_property
    def audited(self) -> Audited:
        """The release, audited alone with its original."""
        return audited(self, Policy.of(self.policy))

    def beside(self, what: str) -> ReleaseBeside:
        """Who is in which of its classes. what: its name in findings."""
        return of_ledger(self.release, what) if self.is_ledger else self.audited.beside(what)

    def earlier(self, subject: str | None, what: str) -> Earlier:
        """What attacks compare a release with whose policy names this subject, or none."""
        if self.original is not None:
            if subject is None:
                raise InputError(
                    f"{what}: people are found again by their ids, and the policy of the release"
                    " that is attacked names no 'subject'; leave out 'original' where both have the"
                    " same records"
                )
            shown = self.audited
            people = None if shown.result.truth is None else shown.people(what)
            return Earlier(shown.table, shown.policy, people=people)
        own = Policy.of(self.policy)
        rows = None if self.trace is None else rows_given(self.trace)
        if not self.is_file:
            return Earlier(self.table(own.tables), own, rows)
        released = own.tables.read_released(str(self.release))
        own = as_certified(own, str(self.release), released.sha256)
        return Earlier(Table(released.frame), own, rows)


class Others(Question):
    """Other releases of the same people, and how strict a comparison with them is.

    strict: a publish beside them also guards those who are missing from the new release.
    """

    releases: tuple[OtherRelease, ...]
    strict: bool = False

    @field_validator("releases", mode="before")
    @classmethod
    def _listed(cls, given: Any) -> Any:
        if isinstance(given, list | tuple) and given:
            return given
        raise ValueError("is not a list of releases; write for instance [{release: FILE}]")

    @field_validator("releases")
    @classmethod
    def _ledgers_alone(cls, given: tuple[OtherRelease, ...]) -> tuple[OtherRelease, ...]:
        for number, one in enumerate(given, 1):
            if one.is_ledger and len(one.files) > 1:
                raise ValueError(
                    f"release {number} is a ledger, which has its own policy and private part;"
                    " leave out its policy, original and trace"
                )
        return given

    @model_validator(mode="after")
    def _possible(self) -> Others:
        if self.strict and self.attacker == OWN:
            raise ValueError(
                "strict: is about who knows which people are missing, and attacker 'own' does not;"
                " leave out one of them"
            )
        return self

    @classmethod
    def of(cls, given: OthersLike) -> Others:
        """The releases that a file or Python names; raises InputError with every finding."""
        if isinstance(given, Others):
            return given
        if isinstance(given, str | Path):
            content, what = read_mapping(given, "others"), f"others '{given}'"
            return checked(cls, content, what, _KEYS, Path(given).parent)
        content = dict(given) if isinstance(given, Mapping) else {"releases": given}
        return checked(cls, content, "others", _KEYS)

    @property
    def files(self) -> list[str]:
        """All files that are read, those of the releases' policies as well."""
        policies = [Policy.of(one.policy) for one in self.releases if one.policy is not None]
        own = [name for release in self.releases for name in release.files]
        return [*own, *(name for policy in policies for name in policy.files)]

    def read(
        self, policy: Policy, request: AttackRequest, progress: Progress = no_progress
    ) -> tuple[list[ReleaseBeside], AttackRequest]:
        """The releases that are judged together with one of this policy, and the attacks on that
        one with those that attacks can use.

        Raises InputError where there are no attacks, for a release without its original.
        """
        asked = self._with_policy(policy)
        request = asked.attacking(policy, request)
        return asked.judged(progress, is_attacked=bool(request.attacks)), request

    def judged(self, progress: Progress, *, is_attacked: bool = False) -> list[ReleaseBeside]:
        """The releases in which people can be found again, each audited alone."""
        found = []
        for what, release in self._named():
            if release.is_ledger or release.original is not None:
                progress(f"auditing {what}")
                found.append(release.beside(what))
            elif not is_attacked:
                raise InputError(
                    f"{what}: has no 'original', by which people are found again; name the table"
                    " that it was made of"
                )
        return found

    def attacking(self, policy: Policy, request: AttackRequest) -> AttackRequest:
        """The attacks with these releases, but ledgers, whose people are known by keys alone."""
        if not request.attacks:
            return request
        named = self._with_policy(policy)._named()
        found = [one.earlier(policy.subject, what) for what, one in named if not one.is_ledger]
        return replace(request, earlier=tuple(found))

    def _named(self) -> list[tuple[str, OtherRelease]]:
        return [(f"others, release {n}", one) for n, one in enumerate(self.releases, 1)]

    def _with_policy(self, policy: Policy) -> Others:
        """With this policy for each that names none."""
        filled = tuple(
            one
            if one.is_ledger or one.policy is not None
            else one.model_copy(update={"policy": policy})
            for one in self.releases
        )
        return self.model_copy(update={"releases": filled})


OthersLike: TypeAlias = (
    Others | Mapping[str, Any] | Sequence[OtherRelease | Mapping[str, Any]] | str | Path
)
"""Other releases: a file's name, its content, or the releases alone."""

_KEYS = (
    "its keys are releases, attacker, strict, same, k and l, and those of a release are release,"
    " policy, original and trace"
)


@dataclass(frozen=True)
class Audited:
    """A release that was audited, with its original if that was given."""

    result: AuditResult
    named: OtherRelease
    policy: Policy

    @cached_property
    def table(self) -> Table:
        """Its cells."""
        return self.named.table(self.policy.tables)

    @property
    def original(self) -> Table:
        """The cells that it was made of."""
        truth = self.result.truth
        return self.named.original_table(self.policy.tables) if truth is None else truth.original

    def people(self, what: str) -> tuple[tuple[str, ...], np.ndarray]:
        """The distinct names of its people, and which of them each row is of.

        what: its name in findings. Raises InputError where it is not known whose row is whose.
        """
        self.policy.refuse_two_tables(what)
        if self.policy.subject is None:
            raise InputError(
                f"{what}: its policy names no 'subject', so nobody can be found again in another"
                " release; give the column that names the person this role"
            )
        if self.result.truth is None:
            raise InputError(
                f"{what}: its rows can't be matched with its original; give the original and the"
                " trace"
            )
        if any((self.result.certificate.get("faults") or {}).values()):
            raise InputError(
                f"{what}: is not a true release of its original, so whose row is whose is not"
                " known; audit it alone, and give the original that it was made of"
            )
        names, person = people_of(self.result.truth, self.result.problem.schema)
        return names, self.result.truth.aligned(person)

    def beside(self, what: str) -> ReleaseBeside:
        """Who is in which of its classes; raises InputError as `people` does."""
        names, people = self.people(what)
        certificate, classes = self.result.certificate, self.result.release.classes
        labels = classes.labels.astype(np.int64)
        kept = labels >= 0
        return ReleaseBeside(
            what,
            "stream" if self.named.is_stream else "table",
            names,
            people[kept],
            labels[kept],
            classes.count,
            values_of(self.table, labels, self.policy.model),
            tuple(a.name for a in self.result.problem.schema.sensitive),
            self.policy.required_k,
            least_values_of(self.policy.build_promises()),
            certificate.holds,
            (certificate.get("output") or {}).get("sha256"),
            self.result,
            together=self.policy.model.together,
        )


def audited(
    named: OtherRelease, policy: Policy, progress: Progress = no_progress, downstream: bool = False
) -> Audited:
    """A release, audited alone, with its original if that is given."""
    InputError.raise_for(one_table_findings(policy.model, "attack"))
    original, trace = named.original, named.trace
    if named.is_stream:
        if policy.model.method is None:
            policy = policy.with_method("fads")
        result = _audited_stream(named, policy, progress)
    elif named.is_all_named:
        result = audit_file(
            str(named.release),
            policy,
            None if original is None else str(original),
            trace_path=None if trace is None else str(trace),
            downstream=downstream,
            progress=progress,
        )
    else:
        source = None if original is None else named.original_table(policy.tables)
        table, contradicted = named.published(policy.tables)
        rows = None if trace is None else rows_given(trace)
        result = audit_table(table, policy, source, progress, downstream, rows)
        result = noted(result, contradicted, audit_warnings(table, source, policy.tables))
    return Audited(result, named, policy)


def _audited_stream(named: OtherRelease, policy: Policy, progress: Progress) -> AuditResult:
    """A stream, audited with its source and its trace."""
    progress("reading the source and the trace")
    lines = read_trace(str(named.trace))
    if isinstance(named.original, str | Path):
        source = read_source(str(named.original), policy.fields)
    else:
        records = policy.tables.table_given(named.original).frame
        source = StreamSource(records, np.arange(records.height), None)
    if not named.is_all_named:
        return audit_stream(named.table(policy.tables), policy, source, lines, progress)
    name = str(named.release)
    released = files.read(name)
    result = audit_stream(released.table, policy, source, lines, progress)
    output = describe_file(name, name, released.sha256, result.problem.schema.render)
    certificate = result.certificate.extended(input={"sha256": source.sha256}, output=output)
    return replace(result, certificate=certificate)


def audit(
    released: Source | tuple[Frame, Frame] | LinkedSource,
    policy: PolicyLike | None = None,
    original: Source | LinkedSource | None = None,
    *,
    quasi: str | Sequence[str] = (),
    k: int | None = None,
    subject: str | None = None,
    sensitive: str | Sequence[str] = (),
    l: int | None = None,
    t: float | None = None,
    read: Mapping[str, Any] | None = None,
    trace: str | Path | ArrayLike | None = None,
    others: OthersLike | None = None,
    downstream: bool = False,
    threads: int | None = None,
    progress: Progress = no_progress,
) -> Certificate:
    """What a release promises, measured; `certificate.holds` says whether all of it is kept.

    released, original: frames or files. released: of a release of two tables, both as a pair. Of
    linked tables (a policy with `tables`): a folder, a workbook, a database, or frames or files by
    the name of their table.

    With the original and the trace (the row of the original behind each published one, as in
    `Publication.trace`, or the file that a table or a stream wrote) people are counted and every
    cell is checked to cover the truth. Without a
    trace that is done only where the policy says `order: input`; without a subject column in the
    release, rows are counted and the certificate's `counted` says so. downstream: also train
    classifiers on the release and test them on the original; needs the extra `ml`.
    others: other releases of the same people, an `OtherRelease` each, or what `--others` reads:
    whether everybody stays among k people and l values in all of them is then measured, too, and
    stands under `beside`.
    threads: how many may work at once,
    by default the process's cores; nothing depends on it. Raises InputError where the tables or
    policies don't fit each other.

    Instead of a policy, quasi names the columns that an attacker could know, and k how many people
    must look alike in them; subject, sensitive, l and t are as in a policy. Cells are then
    compared as text, and no loss of information is measured. read: how files are written, and
    `missing_values`, texts or numbers that stand for no value; may stand beside a policy, too.
    """
    columns = {"quasi": quasi, "k": k, "subject": subject, "sensitive": sensitive, "l": l, "t": t}
    policy = policy_or_columns(policy, given_words(columns), original)
    policy = Policy.of(policy, read)
    if policy.model.is_linked:
        if trace is not None or others is not None or downstream:
            raise InputError(
                "audit: 'trace', 'others' and 'downstream' are of one table; leave them out for"
                " linked tables"
            )
        return audit_linked(released, policy, original, progress=progress).certificate
    with cores.using(threads):
        own = OtherRelease(release=released, policy=policy, original=original, trace=trace)
        found = audited(own, policy, progress, downstream)
        certificate = found.result.certificate
        if others is None:
            return certificate
        asked, beside = Others.of(others), found.beside("released")
        releases, _ = asked.read(policy, NO_ATTACK, progress)
        return certificate.extended(beside=audit_together([beside, *releases], asked, progress))
