"""Attack a release that its owner made, or had made, with the original at hand: a part of the table
is published exactly as the whole was, for comparison, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from shoal.attacks.beside.audit import ReleaseBeside, audit_together
from shoal.attacks.beside.others import Audited, OtherRelease, Others, OthersLike, audited
from shoal.attacks.run.attack import attacked
from shoal.attacks.run.people import OTHER_METHOD, AttackedRelease, with_days_of
from shoal.attacks.run.request import ALL, Asked, AttackRequest, asked_attacks, asked_of, unmeasured
from shoal.auditor.audit import AuditResult, own_certificate, write_certificate
from shoal.auditor.verdict import Publication
from shoal.connectors.traces import read_trace
from shoal.data.attack_scene import Replay
from shoal.data.certificate import Certificate
from shoal.data.classes import Classes, Population, encode_sensitive_columns
from shoal.data.encoding import EncodedTable, encode_populations
from shoal.data.progress import Progress, no_progress, watched
from shoal.data.release import PublishedColumn, label_classes, read_columns
from shoal.data.schema import Role
from shoal.data.table import Table
from shoal.data.warnings import warn
from shoal.errors import InputError
from shoal.policy import plug_ins, registry
from shoal.policy.binding.files import Source
from shoal.policy.binding.past_memory import refuse_whole
from shoal.policy.binding.table import BoundTable
from shoal.policy.policy import Policy, PolicyLike
from shoal.policy.problem import Problem
from shoal.privacy.promises import BoundPromises
from shoal.protocols import Promises
from shoal.recoding.recode import find_classes, recoding_of_whole_table


def attack(
    released: Source | Publication[Any],
    policy: PolicyLike | None = None,
    original: Source | None = None,
    attacks: Asked = ALL,
    *,
    control: Source | None = None,
    external: Source | None = None,
    others: OthersLike | None = None,
    folds: int = 1,
    trace: str | Path | ArrayLike | None = None,
    read: Mapping[str, Any] | None = None,
    progress: Progress | bool = False,
) -> Certificate:
    """An audit's certificate of a release, with what attacks on it found under `attacks`.

    released: a frame or a file, or a publication, which brings its policy, its method and its
    trace. Every other table is a frame or a file, too.

    attacks: names, with parameters if need be (`inference:tolerance=0.1`, or a dict); `all` tries
    every one that has what it needs. control: people who are not in the release; by default some
    are left out of a second release, where the policy names its method. external: a list of people.
    others: other releases of the same people, as of `shoal.audit`. trace, read: as of that; of a
    stream the trace is the file that its `--trace` wrote, with the records in the order in which
    they were read.
    A control that holds people of the original is a `ReleaseWarning`. Raises InputError where
    tables, policy and attacks don't fit each other.
    """
    if isinstance(released, Publication):
        policy = Policy.of(released.policy if policy is None else policy)
        policy = with_stated_method(policy, released.certificate)
        trace, released = released.trace if trace is None else trace, released.data
    if policy is None or original is None:
        what = "policy" if policy is None else "original"
        raise InputError(f"attack: needs the {what} of the release; give it")
    policy, progress = Policy.of(policy, read), watched(progress)
    outside, listed = (
        None if given is None else policy.tables.read_beside(given, what)
        for given, what in ((control, "control"), (external, "external"))
    )
    request = AttackRequest(asked_attacks(attacks), outside, listed, folds=folds)
    request = asked_of(policy, request)
    if others is not None:
        request = Others.of(others).attacking(policy, request)
    own = OtherRelease(release=released, policy=policy, original=original, trace=trace)
    found = _attacked(audited(own, policy, progress), request, progress)
    for doubt in found.doubts:
        warn(doubt)
    return found


def attack_file(
    own: OtherRelease,
    request: AttackRequest,
    progress: Progress = no_progress,
    *,
    others: Others | None = None,
    output: str | None = None,
    downstream: bool = False,
) -> AuditResult:
    """The audit of a file, with the attacks that are asked for, or that the policy asks for, and
    with what it gives away beside others.

    output: of the certificate, if it is written. Without the original no attack can be tried: what
    the policy accepts then stays open.
    """
    policy = Policy.of(own.policy)
    request = asked_of(policy, request)
    releases: list[ReleaseBeside] = []
    if others is not None:
        releases, request = others.read(policy, request, progress)
    if request.attacks and not own.is_stream:
        refuse_whole({"an attack": request.attacks}, own.release, own.original)
    found = audited(own, policy, progress, downstream)
    certificate = found.result.certificate
    if request.attacks:
        certificate = _attacked(found, request, progress)
    if others is not None and releases:
        beside = audit_together([found.beside("released"), *releases], others, progress)
        certificate = certificate.extended(beside=beside)
    if output is not None:
        write_certificate(certificate, output)
    return replace(found.result, certificate=certificate)


def _attacked(found: Audited, request: AttackRequest, progress: Progress) -> Certificate:
    """The certificate of a release with what attacks on it find."""
    result, own, policy = found.result, found.named, found.policy
    if own.original is None:
        accept = unmeasured(policy.model.accept)
        return result.certificate.extended(attacks={"accept": accept})
    if own.is_file and not own.is_stream:
        policy = with_stated_method(policy, str(own.release))
    target = AttackedRelease.of_audited(result, found.table, found.original, policy)
    outside = (request.control, request.external)
    control, external = (with_days_of(target.original, one) for one in outside)
    request = replace(request, control=control, external=external)
    if own.is_stream:  # other streams have their records by their places among those it took
        taken = np.sort(read_trace(str(own.trace))["seq"].to_numpy())
        request = replace(request, earlier=tuple(each.among(taken) for each in request.earlier))
    else:
        target = published_again(target)
    return attacked(result.certificate, target, request, progress)


def published_again(target: AttackedRelease) -> AttackedRelease:
    """The release by the method that its policy names, if it names one."""
    problem = target.problem
    if problem.policy.model.method is None:
        return target
    try:
        problem.build_method()
    except InputError:
        return replace(target, no_republish=_why_not(problem.method_name))
    return by_method_of(problem, target)


def by_method_of(problem: Problem, target: AttackedRelease) -> AttackedRelease:
    """The release with how this method publishes a part of its original again, and how it decides
    about a class alone.
    """
    again = replace(target, republish=republisher(target.original, target.encoded, problem))
    if target.truth is None:
        return again
    replay, why = replay_of(target.original, target.encoded, target.truth.rows, problem)
    known = target.recoding
    made = replace(known, method=known.method or problem.method_name, replay=replay, no_replay=why)
    return replace(again, recoding=made)


def _why_not(method: str) -> str:
    """Why a method publishes nothing again: it is not here, or publishes no table."""
    if registry.is_missing(method):
        return NOT_INSTALLED
    return OTHER_METHOD if registry.verb_of(method) else UNKNOWN_METHOD


# The method of a release whose policy names none: its certificate says which one it was.


def with_stated_method(policy: Policy, released: str | Certificate) -> Policy:
    """The policy; where it names no method, with the one that published the file, and with all of
    its parameters, unless a plan was applied.

    That is what the certificate says, which stands beside a file and is about this very one. Where
    it is not, the policy stays as it is.
    """
    if policy.names_method:
        return policy
    try:
        certificate = own_certificate(released) if isinstance(released, str) else released
    except (InputError, OSError):
        return policy
    if certificate is None or certificate["verb"] != "publish" or "plan" in certificate:
        return policy
    try:
        method = certificate["method"]
        stated = policy.with_method(method["name"], method["parameters"])
        stated.build_method("publish")
    except (InputError, KeyError):
        return policy  # a method or a parameter that is not known here
    return stated


def republisher(
    table: Table, encoded: EncodedTable, problem: Problem
) -> Callable[[np.ndarray], tuple[tuple[PublishedColumn, ...], np.ndarray, int]]:
    """Publishes some rows of a table under its policy, with its method, parameters and seed.

    Domains, orders and hierarchies stay those of the whole table. Returns the cells, the class of
    each row and how many there are; raises InfeasibleError.
    """

    schema = problem.schema
    only_quasi = replace(schema, attributes=schema.with_role(Role.QUASI))

    def publish_rows(rows: np.ndarray) -> tuple[tuple[PublishedColumn, ...], np.ndarray, int]:
        bound = _part(table, encoded, problem, rows)
        classes, _ = find_classes(*bound.method_input(), problem)
        recoding = recoding_of_whole_table(classes, bound.encoded, schema.render)
        frame = pl.DataFrame(
            [
                recoding.column(j, attribute, schema.render)
                for j, attribute in enumerate(bound.encoded.attributes)
            ]
        )
        columns, unreadable = read_columns(Table(frame), only_quasi)
        InputError.raise_for(unreadable)
        labels, count = label_classes(columns, recoding.suppressed)
        return columns, labels, count

    return publish_rows


def _part(table: Table, encoded: EncodedTable, problem: Problem, rows: np.ndarray) -> BoundTable:
    """Some rows of a bound table; everything that only the data tells stays that of the whole."""
    part, schema = encoded.take(rows), problem.schema
    names = [a.name for a in schema.sensitive]
    smaller = Table(pl.DataFrame([table.frame[name].gather(rows) for name in names]))
    sensitive, strange = encode_sensitive_columns(smaller, schema, problem.earlier)
    populations, wrong = encode_populations(problem.tables.populations, schema, encoded)
    InputError.raise_for([*strange, *wrong])
    label = None if schema.label is None else table.column(schema.label).codes[rows]
    everyone = np.zeros(len(rows), dtype=np.int32)
    whole = Classes(everyone, 1, part.subjects, sensitive)
    return BoundTable(problem, part, whole, label, populations)


# Whether a method would leave records in one class, whoever of them had which sensitive value.


NOT_INSTALLED = f"its method is not installed; {plug_ins.INSTALL}"
UNKNOWN_METHOD = "the policy's method is not known here; if it is your own, install its package"
NO_ACCOUNT = "no account of what this method would have done otherwise"
WHOLE_TABLE = "a promise compares classes with the whole table"


def replay_of(
    table: Table, encoded: EncodedTable, rows: np.ndarray | None, problem: Problem
) -> tuple[Replay | None, str]:
    """How the policy's method decides about a class alone; else None and why.

    rows: the original's row of every published record, None where they are the same.
    """
    if registry.is_missing(problem.method_name):
        return None, NOT_INSTALLED
    promises = problem.promises
    if not decides_locally(problem, encoded):
        return None, NO_ACCOUNT
    if any(p.compares_with_table or p.whole_table or p.population or p.of_sample for p in promises):
        return None, WHOLE_TABLE
    sensitive, strange = encode_sensitive_columns(table, problem.schema, problem.earlier)
    if strange:
        return None, NO_ACCOUNT
    method = problem.build_method()
    rng = np.random.default_rng(problem.seed)
    originals = np.arange(encoded.records) if rows is None else rows

    def candidates(published: np.ndarray) -> list[np.ndarray]:
        asked = _Refusing(problem.required_k or 1)
        # in the scale of the whole table
        method.partition(encoded.take(np.sort(originals[published])).matrix(), asked, rng)
        return asked.candidates

    def stays_whole(published: np.ndarray, name: str, assigned: np.ndarray) -> np.ndarray:
        chosen = originals[published]
        order = np.argsort(chosen)  # as the method sees them
        ways, people = assigned.shape
        columns = {
            other: replace(column, codes=np.tile(column.codes[chosen[order]], ways))
            for other, column in sensitive.items()
        }
        dealt = sensitive[name].codes[chosen[assigned[:, order]]].ravel()
        columns[name] = replace(sensitive[name], codes=dealt)
        everyone = np.zeros(ways * people, dtype=np.int32)
        bound = BoundPromises(promises, Classes(everyone, 1, None, columns))
        whole = np.ones(ways, dtype=bool)
        for parts in candidates(published):
            count = int(parts.max()) + 1
            labels = (np.arange(ways)[:, None] * count + parts).ravel().astype(np.int32)
            whole &= ~bound.holds(labels, ways * count).reshape(ways, count).all(axis=1)
        return whole

    return Replay(lambda published: bool(candidates(published)), stays_whole), ""


def decides_locally(problem: Problem, encoded: EncodedTable) -> bool:
    """Whether the method cuts a class by its own records alone, whatever was cut before."""
    if encoded.subjects is not None or encoded.suppressed.any():
        return False
    method = problem.build_method()
    has_trees = any(a.attribute.hierarchy is not None for a in encoded.attributes)
    says = getattr(method, "decides_locally", None)
    return says is not None and bool(says(has_trees))


class _Refusing(Promises):
    """Refuses every cut, so that a method shows all that it would try on a class."""

    needs_more_than_k = True

    def __init__(self, k: int) -> None:
        self.k = k
        self.candidates: list[np.ndarray] = []

    def holds(
        self,
        labels: np.ndarray,
        count: int,
        quasi: Mapping[str, np.ndarray] | None = None,
        population: Mapping[str, Population] | None = None,
    ) -> np.ndarray:
        if count:  # a method that has nothing left to try may ask about no class
            self.candidates.append(np.array(labels))
        return np.zeros(count, dtype=bool)

    def restricted_to(self, kept: np.ndarray) -> Any:
        return self
