"""Publish: one table, once, proved on what was published or withheld.

read > bind > encode > partition > repair > recode > write > read back > audit > let out
                     > cut ------------------> recode
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.binding.table import BoundTable, bind
from shoal.connectors import files
from shoal.connectors.frames import like, table_of
from shoal.connectors.outputs import certificate_path, remove_uncommitted_certificate
from shoal.data.certificate import Certificate
from shoal.data.classes import Classes
from shoal.data.cut import Cut
from shoal.data.matrix import Matrix
from shoal.data.partition import Partition
from shoal.data.progress import Progress, no_progress
from shoal.data.recoding import GlobalRecoding
from shoal.data.release import Release
from shoal.data.schema import Schema
from shoal.data.table import Table
from shoal.errors import InputError, PromiseError
from shoal.jobs.audit.audit import measure
from shoal.jobs.audit.truth import Truth
from shoal.jobs.publish.explain import explain as explanation_of
from shoal.jobs.publish.plan import Plan, follow
from shoal.jobs.publish.recode import find_classes, ordered, recode
from shoal.policy.policy import Policy


@dataclass(frozen=True)
class Publication:
    """A release that kept its promises.

    data: the published frame, of the kind that came in. certificate: what was measured on it.
    classes: (n,) int32 class of each published row, -1 where suppressed.
    """

    data: Any
    certificate: Certificate
    classes: np.ndarray


@dataclass(frozen=True)
class Draft:
    """What would be published, before anyone has measured it.

    plan: to be saved; None for local recoding, and where one was applied. told: more keys of the
    certificate.
    """

    frame: pl.DataFrame
    schema: Schema
    truth: Truth
    method: dict[str, Any]
    reasons: dict[str, int]
    seconds: float
    plan: Plan | None = None
    told: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """A published file: its certificate, and what a report needs to be drawn from it."""

    certificate: Certificate
    release: Release
    draft: Draft


def publish(
    frame: Any,
    policy: Policy | str | Path | dict[str, Any],
    *,
    plan: str | Path | None = None,
    explain: bool = False,
    progress: Progress = no_progress,
) -> Publication:
    """One release of a pandas, polars or pyarrow frame; the same kind of frame comes back.

    Every promise of the policy holds on `data`, measured on its cells; raises InputError,
    InfeasibleError or PromiseError and returns nothing otherwise. plan: a file; the plan in it is
    applied if it exists, else the one that was found is saved there. explain: why, in the
    certificate. Both are for methods of global recoding.
    """
    started = time.process_time()
    policy = Policy.of(policy)
    draft = prepare(table_of(frame), policy, progress, _existing(plan, policy, explain), explain)
    published = Table(draft.frame)
    certificate, release = measure(published, draft.schema, policy, draft.truth, progress)
    certificate = _complete(certificate, policy, draft, started)
    _demand(certificate)
    _save_plan(draft, plan)
    return Publication(like(frame, draft.frame), certificate, release.classes.labels)


def publish_file(
    input_path: str,
    policy: Policy,
    output_path: str,
    *,
    plan: str | None = None,
    explain: bool = False,
    progress: Progress = no_progress,
) -> Outcome:
    """One release from file to file; writes the output and its certificate, both whole or neither.

    The release is audited from the bytes that were written before they take their place. plan,
    explain: as in `publish`.
    """
    started = time.process_time()
    _check_paths(input_path, output_path, policy)
    known = _existing(plan, policy, explain)
    kind = files.format_of(output_path)
    progress("reading the table")
    table, digest = _read(input_path, policy)
    draft = prepare(table, policy, progress, known, explain)
    del table  # the quasi-identifiers' cells are no longer needed
    with remove_uncommitted_certificate(output_path), files.atomic_write(output_path) as path:
        progress("writing the release")
        files.write(draft.frame, path, kind, compressed=output_path.endswith(".gz"))
        progress("reading the release back")
        written = files.read_as(path, kind, policy.audited_columns)
        certificate, release = measure(
            Table(written.frame), draft.schema, policy, draft.truth, progress
        )
        certificate = _complete(certificate, policy, draft, started).extended(
            input={"sha256": digest}, output={"sha256": written.sha256}
        )
        _demand(certificate)
        _save_plan(draft, plan)
        if output_path != files.STANDARD:
            with files.atomic_write(certificate_path(output_path)) as proof:
                proof.write_text(certificate.to_json())
    return Outcome(certificate, release, draft)


def _existing(path: str | Path | None, policy: Policy, explain: bool) -> Plan | None:
    """The plan in a file that exists already; raises InputError where a plan can be neither made
    nor applied.
    """
    if path is None:
        return None
    if not policy.recodes_globally:
        raise InputError(
            "plan: the policy's method recodes each class on its own; name one such as full-domain"
        )
    if not Path(path).exists():
        return None
    if explain:
        raise InputError(
            f"plan '{path}': exists and is applied, so nothing is searched; explain it where it is"
            " made"
        )
    return Plan.load(path)


def _save_plan(draft: Draft, path: str | Path | None) -> None:
    """Writes the plan of a release that was let out, whole; one that was applied stays as it is."""
    if path is not None and draft.plan is not None:
        with files.atomic_write(str(path)) as place:
            place.write_text(draft.plan.to_json(), encoding="utf-8")


def _read(path: str, policy: Policy) -> tuple[Table, str]:
    source = files.read(path, policy.audited_columns)
    return Table(source.frame), source.sha256


def _check_paths(input_path: str, output_path: str, policy: Policy) -> None:
    """Raises InputError where an output would overwrite what is read."""
    if output_path == files.STANDARD:
        return
    read = [Path(name) for name in (input_path, *policy.files) if name != files.STANDARD]
    for output in (Path(output_path), Path(certificate_path(output_path))):
        if any(output.exists() and name.exists() and output.samefile(name) for name in read):
            what = (
                "the input"
                if output.exists() and output.samefile(read[0])
                else "a file that the policy reads"
            )
            raise InputError(
                f"output '{output}': is {what}; name another file, nothing that is read is"
                " overwritten"
            )


def prepare(
    table: Table,
    policy: Policy,
    progress: Progress = no_progress,
    plan: Plan | None = None,
    explained: bool = False,
) -> Draft:
    """The release as it would be published; not yet measured. plan: to be applied instead of a
    search.
    """
    policy.build_method("publish")  # a method that can't be is told before the data is looked at
    progress("checking the data against the policy")
    table = ordered(table, policy)
    fitting, found = bind(table, policy)
    if fitting is None:
        raise InputError.from_findings(found)
    policy = policy.with_default_method(fitting.schema)
    way = _decide_recoding(fitting, policy, progress, plan, explained)
    table = table.without([attribute.name for attribute in fitting.schema.quasi])
    progress("recoding")
    recoded = recode(table, fitting, way.found, policy)
    missing = int(fitting.encoded.suppressed.sum())
    reasons = ({"missing quasi-identifier": missing} if missing else {}) | way.reasons
    return Draft(
        recoded.frame,
        fitting.schema,
        recoded.truth,
        way.method,
        reasons,
        way.seconds,
        way.plan,
        way.told,
    )


class RecodingDecision(NamedTuple):
    """How a table is recoded, and what there is to say about it."""

    found: Partition | Cut | GlobalRecoding
    seconds: float
    method: dict[str, Any]
    reasons: dict[str, int]
    plan: Plan | None = None
    told: dict[str, Any] = {}


def _decide_recoding(
    fitting: BoundTable, policy: Policy, progress: Progress, plan: Plan | None, explained: bool
) -> RecodingDecision:
    """What the policy's method, or a plan, does with the table."""
    method = {"name": policy.method_name, "parameters": policy.method_parameters}
    if plan is not None:
        return _planned(fitting, policy, progress, plan)
    matrix = fitting.matrix()
    whole_table = fitting.published(matrix.subjects)
    progress(f"finding classes by {policy.method_name}")
    found, seconds = find_classes(matrix, whole_table, policy, progress)
    if not isinstance(found, Cut):
        if explained:
            raise InputError(
                f"method '{policy.method_name}': recodes each class on its own, so no level or"
                " column forced it; --explain is for methods of global recoding, such as"
                " full-domain"
            )
        return RecodingDecision(found, seconds, method, {})
    method["account"] = dict(found.account)
    suppressed_count = int((found.round_of_record() < 0).sum())
    reasons = {"suppressed by the method": suppressed_count} if suppressed_count else {}
    saved = Plan.of(found, fitting.encoded.attributes, fitting.schema.render, method)
    told: dict[str, Any] = {}
    if explained:
        progress("asking what would be cheaper")
        told["explanation"] = explanation_of(matrix, whole_table, found, policy, _search)
    return RecodingDecision(found, seconds, method, reasons, saved, told)


def _search(matrix: Matrix, whole_table: Classes, policy: Policy) -> Cut:
    found = find_classes(matrix, whole_table, policy)[0]
    assert isinstance(found, Cut)
    return found


def _planned(
    fitting: BoundTable, policy: Policy, progress: Progress, plan: Plan
) -> RecodingDecision:
    """The table recoded by a plan that another one gave."""
    progress("applying the plan")
    started = time.process_time()
    encoded = fitting.encoded
    followed = follow(
        plan,
        encoded.attributes,
        fitting.whole_table,
        encoded.suppressed,
        policy.build_promises(),
        fitting.schema.render,
    )
    not_covered = (
        int((followed.recoding.turn < 0).sum()) - followed.broken - int(encoded.suppressed.sum())
    )
    reasons = {"not covered by the plan": not_covered, "suppressed by the method": followed.broken}
    told = {"plan": {"uncovered": followed.uncovered, "suppressed": followed.broken}}
    reasons = {why: count for why, count in reasons.items() if count}
    made_by = {
        key: plan.method[key] for key in ("name", "parameters")
    }  # its account is about another table
    return RecodingDecision(
        followed.recoding, time.process_time() - started, made_by, reasons, None, told
    )


def _complete(
    certificate: Certificate, policy: Policy, draft: Draft, started: float
) -> Certificate:
    return certificate.extended(
        verb="publish",
        method=draft.method,
        seed=policy.model.seed,
        seconds={"total": time.process_time() - started, "method": draft.seconds},
        **draft.told,
    )


def _demand(certificate: Certificate) -> None:
    """Let nothing out that does not keep every promise."""
    broken = [
        f"promise '{p['model']}' does not hold on the release: asked {p['asked']}, measured"
        f" {p['measured']}"
        for p in certificate["promises"]
        if not p["holds"]
    ]
    broken += [
        f"{count} published records are {fault}"
        for fault, count in certificate["faults"].items()
        if count
    ]
    if broken:
        raise PromiseError(f"{broken[0]}; the release is withheld, nothing was written", broken[1:])
