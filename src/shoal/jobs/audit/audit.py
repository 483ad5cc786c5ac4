"""Audit: measure what a released table promises, on nothing but what was released.

The auditor reads cells, not partitions: equal published quasi-identifiers are one class, whoever
made them. With the original beside it, it also counts people instead of rows and checks that every
published cell covers the truth.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from shoal.binding.populations import fitting
from shoal.connectors import files
from shoal.connectors.frames import table_of
from shoal.data.certificate import Certificate
from shoal.data.classes import Classes
from shoal.data.encoding import EncodedAttribute, encode
from shoal.data.progress import Progress, no_progress
from shoal.data.release import Release, is_suppressed, label_classes, read_columns
from shoal.data.schema import Kind, Schema
from shoal.data.sensitive import encode_sensitive
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.jobs.audit.downstream import downstream as downstream_of
from shoal.jobs.audit.faults import faults
from shoal.jobs.audit.reference import Measures
from shoal.jobs.audit.truth import Truth
from shoal.policy import registry
from shoal.policy.policy import Policy
from shoal.version import VERSION


@dataclass(frozen=True)
class AuditResult:
    """What an audit found, and what a report needs to be drawn from it."""

    certificate: Certificate
    release: Release
    schema: Schema
    truth: Truth | None


def audit(
    released: Any,
    policy: Policy | str | Path | dict[str, Any],
    original: Any = None,
    *,
    downstream: bool = False,
    progress: Progress = no_progress,
) -> Certificate:
    """What a released frame promises, measured; `certificate.holds` says whether all of it is kept.

    With the original (the same records in the same order) people are counted and every cell is
    checked to cover the truth. Without it, and without a subject column in the release, rows are
    counted and the certificate's `counted` says so. downstream: also train classifiers on the
    release and test them on the original; needs the extra `ml`. Raises InputError where the two
    tables or the policy don't fit each other.
    """
    policy = Policy.of(policy)
    truth = None if original is None else table_of(original)
    return audit_table(table_of(released), policy, truth, progress, downstream).certificate


def audit_table(
    released: Table,
    policy: Policy,
    original: Table | None,
    progress: Progress = no_progress,
    trained: bool = False,
) -> AuditResult:
    """`audit` of a table, with what it read from it."""
    started = time.process_time()
    truth = None
    if original is None:
        schema, findings = policy.bind_release(released)
    else:
        schema, truth, findings = _bound_to(released, policy, original)
    if schema is None or findings:
        raise InputError.from_findings(findings)
    certificate, release = measure(released, schema, policy, truth, progress)
    if trained:
        progress("training on the release")
        certificate = certificate.extended(
            downstream=downstream_of(release, schema, truth, policy.model.seed)
        )
    seconds = {"total": time.process_time() - started, "method": None}
    return AuditResult(certificate.extended(verb="audit", seconds=seconds), release, schema, truth)


def _bound_to(
    released: Table, policy: Policy, original: Table
) -> tuple[Schema | None, Truth | None, list[Any]]:
    """The schema of the original, and what it tells about the release; or every finding."""
    schema, found = policy.bind(original)
    findings: list[Any] = [f"original: {finding}" for finding in found]
    findings += policy.check_columns(released.names, released=True)
    if original.records != released.records:
        findings.append(
            f"original: has {original.records} records, the release {released.records}; "
            "give the table that it was made of"
        )
    if schema is None or findings:
        return None, None, findings
    if schema.render.order != "input":
        return schema, None, []  # shuffled rows can't be matched with the original's
    encoded, wrong = encode(original, schema)
    return (
        schema,
        None if encoded is None else Truth(original, encoded),
        [f"original: {f}" for f in wrong],
    )


def audit_file(
    released_path: str,
    policy: Policy,
    original_path: str | None = None,
    output_path: str | None = None,
    *,
    downstream: bool = False,
    progress: Progress = no_progress,
) -> AuditResult:
    """`audit` from files; writes the certificate to `output_path`, if given."""
    progress("reading the release")
    released = files.read(released_path, policy.audited_columns)
    original = None if original_path is None else files.read(original_path, policy.audited_columns)
    truth = None if original is None else Table(original.frame)
    found = audit_table(Table(released.frame), policy, truth, progress, downstream)
    certificate = found.certificate.extended(
        input=None if original is None else {"sha256": original.sha256},
        output={"sha256": released.sha256},
    )
    if output_path is not None:
        with files.atomic_write(output_path) as draft:
            draft.write_text(certificate.to_json())
    return replace(found, certificate=certificate)


def measure(
    released: Table, schema: Schema, policy: Policy, truth: Truth | None, progress: Progress = no_progress,
    measures: Measures | None = None,
) -> tuple[Certificate, Release]:  # fmt: skip
    """The certificate of a released table, and the table as its readers see it.

    measures: what a stream's promises are measured with; by default, where the policy names a
    reference, it alone.
    """
    progress("reading the release")
    release = read_release(released, schema, policy, truth)
    progress("measuring the promises")
    promises = _reports(policy, schema, release, released, measures)
    progress("measuring utility and risk")
    scores = {name: metric().score(release) for name, metric in registry.metrics().items()}
    people = release.classes.people()
    content = {
        "shoal": VERSION,
        "verb": "audit",
        "method": None,
        "seed": None,
        "records": {
            "in": None if truth is None else truth.original.records,
            "out": release.records,
            "suppressed": release.suppressed,
        },
        "subjects": _subject_count(release, schema),
        "counted": (
            "subjects"
            if policy.subject is None or _people_known(released, schema, truth)
            else "rows"
        ),
        "classes": {
            "count": release.classes.count,
            "min": int(people.min()) if len(people) else None,
            "mean": float(people.mean()) if len(people) else None,
            "max": int(people.max()) if len(people) else None,
        },
        "promises": promises,
        "utility": {name: scores[name] for name in scores if name not in _RISK},
        "risk": {name: scores[name] for name in scores if name in _RISK},
        "input": None,
        "output": None,
    }
    found: dict[str, int] = {}
    if truth is not None:
        progress("comparing with the original")
        found = faults(released, release, schema, truth)
    kept = policy.unremoved_identifiers(released, None if truth is None else truth.original)
    if kept:
        found["not_removed"] = len(kept)
    if truth is not None or kept:
        content["faults"] = found
    return Certificate(content), release


def _reports(
    policy: Policy, schema: Schema, release: Release, released: Table, measures: Measures | None
) -> list[dict[str, Any]]:
    """Every promise as the certificate states it; t-closeness to the reference that is declared."""
    models = policy.build_promises()
    if measures is None:
        close = [model for model in models if model.model == "t-closeness"]
        if policy.reference_table is None or not close:
            return [model.report(release.classes) for model in models]
        measures = Measures(close, schema, policy.reference_table)
    return [measures.report(model, release, released.frame) for model in models]


_RISK = ("prosecutor_max", "prosecutor_mean", "journalist_max", "marketer")


def read_release(released: Table, schema: Schema, policy: Policy, truth: Truth | None) -> Release:
    """The released table as its readers see it; raises InputError with everything that can't be
    read.
    """
    columns, unreadable = read_columns(released, schema)
    findings: list[Any] = list(unreadable)
    sensitive = {}
    for attribute in schema.sensitive:
        earlier = policy.earlier.get(attribute.name)
        column, found = encode_sensitive(
            attribute, released.column(attribute.name), schema, earlier
        )
        findings += found
        if column is not None:
            sensitive[attribute.name] = column
    if findings:
        raise InputError.from_findings(findings)
    if truth is not None:
        columns = tuple(
            (
                column
                if column.behind is None
                else column.with_values(truth.values(encoded), _domain_width(encoded))
            )
            for column, encoded in zip(columns, truth.encoded.attributes, strict=True)
        )
    suppressed = is_suppressed(columns, schema.render.suppressed)
    if truth is not None:
        # who was not suppressed but shows the mark everywhere is in a class like everybody else
        suppressed &= truth.aligned(_suppressed_in_original(truth, suppressed, policy))
    labels, count = label_classes(columns, suppressed)
    classes = Classes(
        labels,
        count,
        _subjects(released, schema, truth),
        sensitive,
        {c.name: c.codes for c in columns},
    )
    if policy.populations:
        classes = replace(classes, population=fitting(policy.populations, schema, columns, classes))
    return Release(
        columns, classes, policy.required_k, _label(released, schema), _originals(schema, truth)
    )


def _domain_width(encoded: EncodedAttribute) -> float:
    domain = encoded.attribute.domain
    return np.nan if domain is None else domain[1] - domain[0]


def _suppressed_in_original(truth: Truth, marked: np.ndarray, policy: Policy) -> np.ndarray:
    """Records of the original that are in no class; (n,) bool. marked: those that show the mark
    everywhere.
    """
    if truth.suppressed is not None:
        return truth.suppressed
    if policy.recodes_globally and not marked.all():
        return np.ones(
            len(marked), dtype=bool
        )  # its method suppresses what would be too small a class
    return truth.encoded.suppressed


def _people_known(released: Table, schema: Schema, truth: Truth | None) -> bool:
    return truth is not None or (
        schema.subject is not None and schema.subject.name in released.names
    )


def _subjects(released: Table, schema: Schema, truth: Truth | None) -> np.ndarray | None:
    if truth is not None:
        return None if truth.encoded.subjects is None else truth.aligned(truth.encoded.subjects)
    if schema.subject is not None and schema.subject.name in released.names:
        return released.column(schema.subject.name).codes.astype(np.int32)
    return None


def _subject_count(release: Release, schema: Schema) -> int:
    subjects = release.classes.subjects
    return release.records if subjects is None else len(np.unique(subjects))


def _label(released: Table, schema: Schema) -> np.ndarray | None:
    return (
        None
        if schema.label is None or schema.label not in released.names
        else released.column(schema.label).codes
    )


def _originals(schema: Schema, truth: Truth | None) -> dict[str, np.ndarray]:
    if truth is None:
        return {}
    return {
        encoded.attribute.name: truth.values(encoded)
        for encoded in truth.encoded.attributes
        if encoded.attribute.kind is Kind.NUMBER and encoded.attribute.hierarchy is None
    }
