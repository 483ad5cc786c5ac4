"""Audit: measure what a released table promises, on nothing but what was released; with a policy,
or by the columns that others could know.

The auditor reads cells, not partitions: equal published quasi-identifiers are one class, whoever
made them. With the original beside it, it also counts people instead of rows and checks that every
published cell covers the truth.

Without a policy, cells are compared as text, and the mark is `*`; what a cell spans is not known,
so no loss is.

Coverage, without a trace, is whether each published row can have a row of the original of its own.
A row of the original fits a published one whose cells cover its values and whose other columns show
what its own do. Whose row is whose stays unknown; but where the largest matching leaves published
rows over, these were made of nothing that the original has.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.checks import K_ANONYMITY, Stated
from shoal.auditor.description import described
from shoal.auditor.downstream import downstream as downstream_of
from shoal.auditor.kernels.matching import HIDDEN, find_fitting, left_over
from shoal.auditor.measure import measure, measure_two_tables
from shoal.auditor.verdict import CertifiedRelease
from shoal.connectors import files, outputs
from shoal.connectors.location import Location
from shoal.connectors.traces import traced_rows
from shoal.data.certificate import Certificate
from shoal.data.encoding import EncodedAttribute, EncodedTable, encode
from shoal.data.numbers import alike, is_long
from shoal.data.option import suggestion
from shoal.data.progress import Progress, no_progress
from shoal.data.recoding import GROUP, sensitive_path
from shoal.data.release import PublishedColumn, Release, shows_nothing
from shoal.data.row_order import is_in_order
from shoal.data.schema import Attribute, Role, Schema
from shoal.data.table import Table
from shoal.data.truth import Truth, as_values, with_contradicted
from shoal.data.warnings import ReleaseWarning
from shoal.errors import InputError
from shoal.policy.binding.columns import audit_warnings, check_columns
from shoal.policy.binding.past_memory import room_for
from shoal.policy.binding.table import bind_original, bound_release
from shoal.policy.from_columns import listed, named_twice, promises_of, require_text
from shoal.policy.model import PolicyModel
from shoal.policy.policy import Policy, PolicyLike
from shoal.policy.problem import Problem
from shoal.utility.gcp import ColumnFigures


@dataclass(frozen=True)
class AuditResult(CertifiedRelease):
    """What an audit found, and what a report needs to be drawn from it."""

    problem: Problem
    truth: Truth | None


def policy_or_columns(
    policy: PolicyLike | None, columns: Mapping[str, Any], original: object
) -> Policy:
    """The policy that is given, or the one that columns and numbers say; raises InputError."""
    if policy is not None:
        if columns:
            raise InputError("audit: takes a policy or columns, not both; leave out one of them")
        return Policy.of(policy)
    if "quasi" not in columns or "k" not in columns:
        raise InputError("audit: needs a policy, or 'quasi' and 'k'; give one of them")
    if original is not None:
        raise InputError(
            "audit: without a policy it is not known what cells stand for, so they can't be"
            " compared with an original; give the policy"
        )
    return policy_of_columns(**columns)


def audit_table(
    released: Table,
    policy: Policy,
    original: Table | None,
    progress: Progress = no_progress,
    trained: bool = False,
    trace: np.ndarray | None = None,
) -> AuditResult:
    """`audit` of a table, with what it read from it."""
    started = time.process_time()
    shown = released
    if policy.is_made_of_columns:
        check_named(released.names, policy.model)
    if policy.is_in_two_tables:
        shown = Table(released.frame.drop(GROUP))
        if trained:
            policy.refuse_two_tables("downstream")
    encoded: EncodedTable | None = None
    truth: Truth | None = None
    if original is None:
        if trace is not None:
            raise InputError("trace: can only be checked against the original; give that, too")
        problem = bound_release(shown, policy)
    else:
        problem, encoded, truth = bound_with_original(shown, policy, original, trace)
    if policy.is_in_two_tables:
        measured, released = measure_two_tables(released, problem, None, original, progress)
        # the original is compared by row here, not by group
        measured = replace(measured, figures=ColumnFigures.of(measured.release, truth))
    else:
        measured = measure(released, problem, truth, progress)
        if truth is None and original is not None and encoded is not None and measured.held:
            progress("matching rows with the original's")
            left = unmatched(released, measured.held, problem.schema, original, encoded)
            if left is not None:
                faults = measured.certificate.get("faults") or {}
                certificate = measured.certificate.extended(faults={**faults, "unmatched": left})
                measured = replace(measured, certificate=certificate)
    certificate = described(measured.certificate, released, measured.figures, problem, truth)
    if policy.is_made_of_columns:
        certificate = without_guesses(certificate)
    if trained:
        progress("training on the release")
        certificate = certificate.extended(
            downstream=downstream_of(measured.release, problem.schema, truth, problem.seed)
        )
    seconds = {"total": time.process_time() - started, "method": None}
    certificate = certificate.extended(seconds=seconds, scale=measured.scale)
    return AuditResult(certificate, measured.held, problem, truth)


def bound_with_original(
    released: Table, policy: Policy, original: Table, trace: np.ndarray | None
) -> tuple[Problem, EncodedTable, Truth | None]:
    """The problem of the original, the original encoded, and what it tells about the release, None
    where nobody knows whose row is where: there is no trace, and rows are not in the original's
    order. Raises InputError with every finding.

    trace: (n,) the original's row behind each published one.
    """
    _ = policy.tables.populations  # what is wrong with these is not the original's
    findings: list[Any] = []
    try:
        problem = bind_original(original, policy)
    except InputError as unbound:
        findings += [f"original: {finding}" for finding in unbound.found]
    findings += check_columns(released.names, policy.tables, released=True)
    if original.records != released.records:
        findings.append(
            f"original: has {original.records} records, the release {released.records}; "
            "give the table that it was made of"
        )
    elif trace is not None and not np.array_equal(np.sort(trace), np.arange(original.records)):
        findings.append(
            "trace: does not name each row of the original once; give the trace that was written"
            " with the release"
        )
    InputError.raise_for(findings)
    encoded, wrong = encode(original, problem.schema)
    if encoded is None or wrong:
        raise InputError.from_findings([f"original: {finding}" for finding in wrong])
    is_known = trace is not None or problem.schema.render.order == "input"
    return problem, encoded, Truth(original, encoded, trace) if is_known else None


def audit_file(
    released_path: str,
    policy: Policy,
    original_path: str | None = None,
    *,
    trace_path: str | None = None,
    downstream: bool = False,
    progress: Progress = no_progress,
) -> AuditResult:
    """`audit` from files."""
    progress("reading the release")
    room = room_for(released_path, original_path)
    released = policy.tables.read_released(released_path, room)
    original = None if original_path is None else policy.tables.read_original(original_path, room)
    truth, second = None if original is None else original.table, released.second
    trace = None if trace_path is None else traced_rows(trace_path)
    policy = as_certified(policy, released_path, released.sha256)
    result = audit_table(released.table, policy, truth, progress, downstream, trace)
    warnings = audit_warnings(released.table, truth, policy.tables)
    result = noted(result, released.contradicted, warnings)
    render, notation = result.problem.schema.render, result.problem.notation
    output = outputs.describe_file(
        released_path, released_path, released.sha256, render, released.dialect, notation
    )
    if render.order == "content" and not is_in_order(released.table, policy.quasi, render):
        output["dialect"]["order"] = None  # such as a stream's, sorted within each release
    second_path = None if second is None else Path(sensitive_path(released_path))
    certificate = result.certificate.extended(
        input=None if original is None else {"sha256": original.sha256},
        output=output | outputs.described_second(second_path, second),
    )
    return replace(result, certificate=certificate)


def noted(
    result: AuditResult, contradicted: int | None, warnings: Iterable[ReleaseWarning]
) -> AuditResult:
    """What was audited, with how many cells contradict the column that they were derived from, and
    what else its tables give reason to say.
    """
    certificate = with_contradicted(result.certificate, contradicted)
    return replace(result, certificate=certificate.warned(*warnings))


def as_certified(policy: Policy, released_path: str, sha256: str) -> Policy:
    """The policy with the order of rows that the certificate beside a release states, if it is of
    these bytes.
    """
    stated = own_certificate(released_path, sha256)
    return policy if stated is None else policy.as_certified(stated["output"])


def own_certificate(released_path: str, sha256: str | None = None) -> Certificate | None:
    """The certificate beside a release, if there is one that can be read and is of its bytes.

    sha256: their hash, where it is known already.
    """
    try:
        beside = outputs.certificate_beside(released_path)
        stated = None if beside is None else Certificate.parsed(beside, released_path)
    except InputError:
        return None
    output = None if stated is None else stated.get("output")
    is_its = output and output["sha256"] == (sha256 or files.table_sha256(released_path))
    return stated if is_its else None


def write_certificate(certificate: Certificate, path: str) -> None:
    """Writes it whole; a signature of what stood there before is removed."""
    files.write_text(path, certificate.to_json())
    if not Location(path).is_standard:
        outputs.remove_stale_signature(path)


SPANS = ("gcp", "generalized_loss")
OF_COLUMNS = ("type", "technique", "loss")


def policy_of_columns(
    quasi: str | Sequence[str],
    k: int,
    *,
    subject: str | Sequence[str] | None = None,
    sensitive: str | Sequence[str] = (),
    l: int | None = None,
    t: float | None = None,
) -> Policy:
    """The policy that these columns and numbers say; raises InputError with every finding.

    l, t: distinct l-diversity and t-closeness with equal distances, of every sensitive column.
    """
    roles = {"quasi": quasi, "sensitive": sensitive, "subject": () if subject is None else subject}
    roles = {role: listed(names) for role, names in roles.items()}
    named = [(name, role) for role, names in roles.items() for name in names]
    require_text("audit", (name for name, _ in named))
    findings = named_twice(name for name, _ in named)
    if (l is not None or t is not None) and not roles["sensitive"]:
        findings.append("audit: l and t are about sensitive columns; name one as sensitive")
    if not roles["quasi"]:
        findings.append("audit: no quasi-identifier; name the columns that an attacker could know")
    InputError.raise_for(findings)
    return _policy(dict(named), promises_of(roles["sensitive"], k, l, t))


def stated_policy(stated: Stated) -> Policy | None:
    """The policy that a certificate's columns and its k-anonymity promises say.

    None where it names no columns. Raises InputError where they say none that could be.
    """
    shown = [column for column in stated.at("columns") or [] if column["technique"] != "removed"]
    roles = {c["name"]: c["role"] for c in shown if c["role"] in ("quasi", "sensitive", "subject")}
    asked = [promise for promise in stated.promises if promise["model"] == K_ANONYMITY]
    if "quasi" not in roles.values() or not asked:
        return None
    promises = [
        {"model": promise["model"], "k": promise["asked"]}
        | ({"attributes": promise["attributes"]} if promise["attributes"] else {})
        for promise in asked
    ]
    mark = stated.at("output", "dialect", "mark") or "*"
    return _policy(roles, promises, render={"suppressed": mark})


def _policy(roles: Mapping[str, str], promises: Sequence[Mapping[str, Any]], **more: Any) -> Policy:
    """The policy of these columns, by role; all others are plain."""
    attributes = {name: {"role": role} for name, role in roles.items()}
    content = {"version": 1, "attributes": attributes, "other": "plain", "promises": promises}
    return replace(Policy.from_dict(content | more), is_made_of_columns=True)


def check_named(names: list[str], model: PolicyModel) -> None:
    """Raises InputError with every column that was named and is not in the release."""
    findings = [
        f"column '{name}': is not in the release; {suggestion(name, names)}name one of its columns"
        for name in model.attributes
        if name not in names
    ]
    InputError.raise_for(findings)


def without_guesses(certificate: Certificate) -> Certificate:
    """The certificate without what nobody said: the policy, and what cells span."""
    columns = [{**column, **dict.fromkeys(OF_COLUMNS)} for column in certificate["columns"]]
    utility = certificate["utility"] | dict.fromkeys(SPANS)
    return certificate.extended(policy=None, columns=columns, utility=utility)


MOST_WORK = 1_000_000_000
"""Pairs of distinct rows that are compared, and steps of the search for a matching, at most."""
MOST_FITTING = 20_000_000
"""Pairs of distinct rows that fit, at most."""


def unmatched(
    released: Table, release: Release, schema: Schema, original: Table, encoded: EncodedTable
) -> int | None:
    """The least number of published rows for which the original has no row of their own.

    None where it is not judged: past the bounds on work, where cells show a mean alone, or where
    numbers have more digits than a float tells apart.
    """
    if any(column.observed_bounds is not None for column in release.columns) or any(
        is_long(texts).any()
        for column, one in zip(release.columns, encoded.attributes, strict=True)
        if column.ends is not None
        for texts in (*column.ends, one.texts)
    ):
        return None
    others = [
        _side_by_side(attribute, released, original, release.shown.labels < 0, schema)
        for attribute in schema.published
        if attribute.role in (Role.SENSITIVE, Role.PLAIN)
    ]
    own, rows, wanted = _distinct([one for one, _ in others], release.columns)
    theirs, places, free = _distinct([one for _, one in others], encoded.attributes)
    first, last = _alike(own, theirs)
    if int((last - first).sum()) > MOST_WORK:
        return None
    pairs = (
        np.column_stack([column.lo[column.codes[rows]] for column in release.columns]),
        np.column_stack([column.hi[column.codes[rows]] for column in release.columns]),
        own,
        np.column_stack([one.value_of_code()[one.codes[places]] for one in encoded.attributes]),
        theirs,
        first,
        last,
    )
    starts = np.zeros(len(rows) + 1, dtype=np.int64)
    find_fitting(*pairs, starts, np.zeros(0, dtype=np.int32))
    if starts[-1] > MOST_FITTING:
        return None
    fitting = np.empty(starts[-1], dtype=np.int32)
    find_fitting(*pairs, starts, fitting)
    left = left_over(starts, fitting, wanted, free, MOST_WORK)
    return None if left < 0 else left


def _side_by_side(
    attribute: Attribute, released: Table, original: Table, starred: np.ndarray, schema: Schema
) -> tuple[np.ndarray, np.ndarray]:
    """(n,) codes of a column in the release and in the original, equal where its values are.

    HIDDEN where a published row that shows nothing else hides its value, too.
    """
    codes = pl.concat(as_values(attribute, released, original)).rank("dense").to_numpy()
    shown, known = np.split(codes.astype(np.int64), [released.records])
    is_mark = shows_nothing(released, attribute.name, schema.render.suppressed)
    hides = is_mark[released.column(attribute.name).codes] & starred
    return np.where(hides, HIDDEN, shown), known


def _distinct(
    others: list[np.ndarray], quasi: Sequence[PublishedColumn | EncodedAttribute]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of distinct rows, in ascending order of other columns, their codes in these, (m, others), one
    row each, and how many there are of each.
    """
    key = alike([*others, *(column.codes for column in quasi)], len(quasi[0].codes))
    _, rows, times = np.unique(key, return_index=True, return_counts=True)
    none = np.zeros((len(rows), 0), dtype=np.int64)
    return np.column_stack([none, *(codes[rows] for codes in others)]), rows, times


def _alike(shown: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(published,) int64 first and end of the original's distinct rows that may fit each.

    shown, known: codes of other columns, the original's rows in ascending order of theirs.
    """
    key = alike(np.concatenate([shown, known]).T, len(shown) + len(known))
    first, last = (
        np.searchsorted(key[len(shown) :], key[: len(shown)], side) for side in ("left", "right")
    )
    hides = (shown == HIDDEN).any(axis=1)
    return np.where(hides, 0, first), np.where(hides, len(known), last)
