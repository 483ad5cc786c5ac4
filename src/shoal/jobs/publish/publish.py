"""Publish: one table, once, proved on what was published or withheld.

read > bind > encode > partition > repair > recode > write > read back > audit > publish
                     > cut ------------------> recode
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shoal.binding.files import (
    original_table,
    output_dialect,
    published_frame,
    read_original,
    read_written,
    written_frame,
)
from shoal.connectors import files
from shoal.connectors.dialect import DELIMITED
from shoal.connectors.file_description import describe_file
from shoal.connectors.frames import like, table_of
from shoal.connectors.outputs import (
    certificate_path,
    check_not_read,
    remove_uncommitted_certificate,
)
from shoal.data.certificate import Certificate
from shoal.data.formulas import formula_sentences
from shoal.data.person_numbers import person_numbers
from shoal.data.progress import Progress, no_progress
from shoal.data.release import Release
from shoal.data.table import Table
from shoal.data.warnings import FORMULA_CELLS, PEOPLE_ASSUMED, ReleaseWarning
from shoal.errors import InputError
from shoal.jobs.attack.request import NO_ATTACK, AttackRequest
from shoal.jobs.audit.audit import measure
from shoal.jobs.audit.description import described, file_metadata
from shoal.jobs.audit.faults import with_contradicted
from shoal.jobs.audit.verdict import require_kept, require_together_kept
from shoal.jobs.publish.attack_draft import asked_of, attack_draft
from shoal.jobs.publish.draft import RecodedDraft, prepare
from shoal.jobs.publish.plan import Plan
from shoal.policy.policy import Policy

WITHHELD = "nothing was written"


@dataclass(frozen=True)
class Publication:
    """A release that kept its promises.

    data: the published frame, of the kind that came in. certificate: what was measured on it.
    classes: (n,) int32 class of each published row, -1 where it is withheld, in no class.
    """

    data: Any
    certificate: Certificate
    classes: np.ndarray


@dataclass(frozen=True)
class Outcome:
    """A published file: its certificate, and what a report needs to be drawn from it."""

    certificate: Certificate
    release: Release
    draft: RecodedDraft


def publish(
    frame: Any,
    policy: Policy | str | Path | dict[str, Any],
    *,
    plan: str | Path | None = None,
    explain: bool = False,
    require_together: bool = False,
    attack: Sequence[str | Mapping[str, Any]] = (),
    progress: Progress = no_progress,
) -> Publication:
    """One release of a pandas, polars or pyarrow frame; the same kind of frame comes back.

    Every promise of the policy holds on `data`, measured on its cells; raises InputError,
    InfeasibleError or PromiseError and returns nothing otherwise. plan: a file; the plan in it is
    applied if it exists, else the one that was found is saved there. explain: why, in the
    certificate. Both are for methods of global recoding. require_together: the largest k of any
    promise must hold over all quasi-identifiers, too. attack: as in `shoal.attack`; what is found
    stands in the certificate, and a threshold of the policy that is exceeded withholds the release.
    What the certificate warns about is a `ReleaseWarning` as well.
    """
    started = time.process_time()
    policy = Policy.of(policy)
    policy.require_answers()
    request = asked_of(policy, AttackRequest(tuple(attack)))
    table = original_table(table_of(frame), policy)
    draft = prepare(table, policy, progress, _existing(plan, policy, explain), explain)
    assumed = _people_assumed(table, policy)
    released = written_frame(draft.frame, policy, None)
    published, contradicted = published_frame(released, policy)
    certificate, release = _measured(Table(published), draft, policy, progress, started)
    certificate = attack_draft(
        certificate, Table(published), release, draft, policy, request, progress
    )
    certificate = with_contradicted(certificate, contradicted).warned(*assumed)
    require_kept(certificate, WITHHELD)
    if require_together:
        require_together_kept(certificate, WITHHELD)
    _save_plan(draft, plan)
    for warning in certificate.warnings:
        warnings.warn(warning, stacklevel=2)
    return Publication(like(frame, released), certificate, release.classes.labels)


def publish_file(
    input_path: str,
    policy: Policy,
    output_path: str,
    *,
    plan: str | None = None,
    explain: bool = False,
    require_together: bool = False,
    attack: AttackRequest = NO_ATTACK,
    progress: Progress = no_progress,
) -> Outcome:
    """One release from file to file; writes the output and its certificate, both whole or neither.

    The release is audited from the bytes that were written before they take their place. plan,
    explain, require_together, attack: as in `publish`.
    """
    started = time.process_time()
    policy.require_answers()
    request = asked_of(policy, attack)
    check_not_read(output_path, input_path, policy.files)
    known = _existing(plan, policy, explain)
    kind = files.format_of(output_path)
    progress("reading the table")
    source = read_original(input_path, policy)
    table, digest = Table(source.frame), source.sha256
    dialect = output_dialect(policy, input_path, source.dialect, output_path)
    del source
    draft = prepare(table, policy, progress, known, explain, files.is_typed(kind))
    assumed = _people_assumed(table, policy)
    del table  # the quasi-identifiers' cells are no longer needed
    with remove_uncommitted_certificate(output_path), files.atomic_write(output_path) as path:
        progress("writing the release")
        released = written_frame(draft.frame, policy, kind)
        described_columns = file_metadata(draft.frame.columns, draft.schema, policy)
        files.write(released, path, kind, output_path.endswith(".gz"), dialect, described_columns)
        progress("reading the release back")
        written = read_written(path, kind, policy, dialect)
        published = Table(written.frame)
        certificate, release = _measured(published, draft, policy, progress, started)
        certificate = attack_draft(
            certificate, published, release, draft, policy, request, progress
        )
        certificate = (
            with_contradicted(certificate, written.contradicted)
            .extended(
                input={"sha256": digest},
                output=describe_file(
                    path,
                    output_path,
                    written.sha256,
                    draft.schema.render,
                    dialect,
                    policy.notation.written,
                ),
            )
            .warned(*assumed, *_formulas(draft, policy, kind))
        )
        require_kept(certificate, WITHHELD)
        if require_together:
            require_together_kept(certificate, WITHHELD)
        _save_plan(draft, plan)
        if output_path != files.STANDARD:
            with files.atomic_write(certificate_path(output_path)) as proof:
                proof.write_text(certificate.to_json())
    return Outcome(certificate, release, draft)


def _people_assumed(table: Table, policy: Policy) -> list[ReleaseWarning]:
    """Columns that seem to number people, where every record is taken to be its own person."""
    if policy.subject is not None:
        return []
    return [ReleaseWarning(PEOPLE_ASSUMED, str(evidence)) for evidence in person_numbers(table)]


def _formulas(draft: RecodedDraft, policy: Policy, kind: str) -> list[ReleaseWarning]:
    """A warning for each column of delimited text that a spreadsheet would compute."""
    if kind not in DELIMITED or policy.model.write.formulas != "keep":
        return []
    return [ReleaseWarning(FORMULA_CELLS, told) for told in formula_sentences(draft.frame)]


def _existing(path: str | Path | None, policy: Policy, explain: bool) -> Plan | None:
    """The plan in a file that exists already.

    Raises InputError where a plan can be neither made nor applied.
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


def _measured(
    published: Table, draft: RecodedDraft, policy: Policy, progress: Progress, started: float
) -> tuple[Certificate, Release]:
    """The certificate of the published cells, and the release as its readers see it."""
    certificate, release = measure(published, draft.schema, policy, draft.truth, progress)
    seconds = {"total": time.process_time() - started, "method": draft.seconds}
    certificate = certificate.extended(
        verb="publish",
        method=draft.method,
        seed=policy.model.seed,
        seconds=seconds,
        **draft.certificate_extras,
    )
    certificate = described(certificate, published, release, draft.schema, policy, draft.truth)
    return certificate, release


def _save_plan(draft: RecodedDraft, path: str | Path | None) -> None:
    """Writes the plan that was found for a release, whole; one that was applied stays as it is."""
    if path is not None and draft.plan is not None:
        with files.atomic_write(str(path), is_private=True) as unfinished:
            unfinished.write_text(draft.plan.to_json(), encoding="utf-8")
