"""Publish: one table, once, proved on what was published or withheld.

read > bind > encode > partition > repair > recode > write > read back > audit > publish
                     > cut ------------------> recode
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.attacks.run.request import NO_ATTACK, AttackRequest, asked_of
from shoal.auditor.description import described, file_metadata
from shoal.auditor.measure import measure, measure_two_tables
from shoal.auditor.verdict import CertifiedRelease, Publication, require_kept
from shoal.connectors import files
from shoal.connectors.dialect import unescaped
from shoal.connectors.frames import Frame, FrameT, like, ordered_categories, refuse_path, table_of
from shoal.connectors.location import FRAME, Location
from shoal.connectors.outputs import check_not_read, described_second, misplaced, second_output
from shoal.connectors.release_drafts import FrameDraft, check_output, release_draft
from shoal.connectors.traces import private_draft, write_trace
from shoal.data.certificate import Certificate
from shoal.data.coded_table import CodedTable, ShownTable
from shoal.data.progress import Progress
from shoal.data.release import Release
from shoal.data.room import Room
from shoal.data.table import Table, as_text
from shoal.data.truth import with_contradicted
from shoal.data.warnings import warn
from shoal.errors import InputError
from shoal.policy.binding.columns import input_warnings, population_warnings
from shoal.policy.binding.past_memory import refuse_whole, room_for
from shoal.policy.binding.table import bound_table
from shoal.policy.consistency import named_as
from shoal.policy.policy import Policy, PolicyLike
from shoal.recoding.recode import require_key
from shoal.tables.draft import BOUNDED, WITHHELD, Outcome, RecodedDraft, prepare, with_bound
from shoal.tables.request import NOTHING_ELSE, PublishRequest

if TYPE_CHECKING:
    import polars as pl

    from shoal.attacks.beside.guard import BesideGuard
    from shoal.policy.from_columns import Columns
    from shoal.tables.global_recoding import Plan
# what few publications ask for is imported where it is done


def publication(
    frame: FrameT, policy: PolicyLike | None, request: PublishRequest, columns: Columns
) -> Publication[FrameT]:
    """A release of a frame; what there is to warn about stands in its certificate."""
    refuse_path(frame, ", or publish it by shoal.publish_file(table, policy, output)")
    if policy is None and columns and columns.get("method") is None:
        _refuse_without_method(request)
    policy = policy_of_call(frame, policy, columns)
    outcome = publish_file(frame, policy, FRAME, request)
    known = ordered_categories(frame).items()
    orders = {name: labels for name, labels in known if name not in policy.quasi}
    data, *second = (like(frame, released, orders) for released in outcome.frames)
    labels, trace = outcome.release.classes.labels, outcome.draft.truth.trace
    certificate, sensitive = outcome.certificate, second[0] if second else None
    return Publication(data, certificate, labels, policy, outcome, sensitive, trace)


def _refuse_without_method(request: PublishRequest) -> None:
    """Raises InputError for options that need a method, which columns alone can't name."""
    asked = [name for name in ("plan", "explain") if getattr(request, name)]
    InputError.raise_for(
        f"{name}: is for methods of global recoding; name one, such as method='full-domain'"
        for name in asked
    )


def policy_of_call(
    frame: Frame, policy: PolicyLike | None, columns: Columns, verb: str = "publish"
) -> Policy:
    """The policy that is given, or the one that columns and numbers say; raises InputError.

    verb: the call, as findings name it.
    """
    from shoal.policy.from_columns import words_of_frame

    if policy is not None:
        return policy_and_words(policy, columns, verb)
    return Policy.of_words(words_of_frame(frame, columns, verb))


def policy_and_words(policy: PolicyLike, columns: Columns, verb: str = "publish") -> Policy:
    """The policy with what may be named beside it; raises InputError where more is."""
    from shoal.policy.from_columns import BESIDE, words_of_call

    given = words_of_call(columns)
    if given.keys() - {*BESIDE}:
        raise InputError(
            f"{verb}: takes a policy or columns, not both; leave out one of them. Beside a policy"
            f" go {', '.join(BESIDE)}"
        )
    return Policy.of(policy).changed(given)


def save(
    publication: Publication[Any], path: str, overwrite: bool, trace: str | None
) -> Certificate:
    """Writes a release that is a frame, and its certificate; see `Publication.save`."""
    place, tables = Location(path), publication.policy.tables
    if publication.policy.is_in_two_tables:
        raise InputError("publication: has two tables; 'shoal.publish_file' writes both")
    if publication.is_changed:
        raise InputError(
            "publication: its data were changed since they were measured; publish again, and change"
            " a copy"
        )
    try:
        check_output(path, overwrite)
        if trace is not None:
            _check_trace(publication, path, overwrite, trace)
    except InputError as taken:  # in the words of this call
        said = [finding.replace("--replace", "overwrite=True") for finding in taken.said]
        raise InputError.from_findings(said) from None
    released, _ = tables.published_table(table_of(publication.data, allow_empty=True))
    frame = tables.written_frame(released.frame, place.kind_to_write)
    if tables.model.read.decimal != ".":
        _tell_of_marks(released.frame, frame, path)
    dialect = tables.output_dialect(path, None, path)
    with private_draft(trace) as traced, release_draft(path, overwrite) as draft:
        draft.write(frame, dialect)
        back = tables.read_draft(draft, dialect)
        if tables.model.write.formulas == "escape" and place.kind.is_delimited:
            frame = unescaped(frame)
        shown, _ = tables.published_table(Table(frame))
        _require_same(back.table, shown, path)
        render, notation = tables.cells.render, tables.model.read.notation.written
        described = draft.described(back.sha256, render, dialect, notation)
        certificate = publication.certificate.extended(output=described)
        if traced is not None and publication.trace is not None:
            write_trace(publication.trace, traced)
        draft.certify(certificate.to_json())
    return certificate


def _tell_of_marks(released: pl.DataFrame, written: pl.DataFrame, path: str) -> None:
    """Warns where numbers of a frame become text with the decimal mark of what it read as text."""
    floats = [name for name in released.columns if released[name].dtype.is_float()]
    if marked := [name for name in floats if not written[name].dtype.is_float()]:
        warn(
            f"output '{path}': {named_as('column', marked)} with the decimal mark ',' of numbers"
            " that were read as text; shoal.read_release reads it, and pandas.read_csv(decimal=',')"
        )


def _check_trace(publication: Publication[Any], path: str, overwrite: bool, trace: str) -> None:
    """Raises InputError where a publication has no trace, or it can't be put there."""
    if publication.trace is None:
        raise InputError(
            "trace: a publication that was stored or copied has none; save it before it is stored"
        )
    place = Location(path)
    taken = [Path(name).resolve() for name in (path, place.certificate) if place.is_path]
    if Path(trace).resolve() in taken:
        raise InputError(
            f"trace '{trace}': is also the release or its certificate; name a file of its own"
        )
    InputError.raise_for(misplaced("release", [path], trace))
    files.check_writable(trace, overwrite)


def _require_same(back: Table, written: Table, path: str) -> None:
    """Raises InputError with every column that does not read as it was written.

    Numbers with a fraction are the same however they are written: 12, 12.0.
    """
    findings = []
    for name in written.names:
        read, text = (as_text(table.frame[name]) for table in (back, written))
        kind = written.dtype(name)
        if kind.is_float() or kind.is_decimal():
            read, text = (cells.cast(kind, strict=False) for cells in (read, text))
        if not read.equals(text, null_equal=True):
            findings.append(
                f"output '{path}': column '{name}' does not read as written; take another format"
            )
    InputError.raise_for(findings)


def publish_file(
    table: str | Frame, policy: Policy, output: str, request: PublishRequest = NOTHING_ELSE
) -> Outcome:
    """One release; writes the output and its certificate, both whole or neither.

    The release is audited from the bytes that were written before they take their place. table: a
    frame, or the name of a table. output: a name, or `FRAME` where the release stays in memory.
    Raises InputError, InfeasibleError or PromiseError, and then nothing is released.
    """
    started = time.process_time()
    progress = request.progress
    policy.require_answers()
    require_key(policy.model)
    tables = policy.tables
    attack = asked_of(policy, request.attack or NO_ATTACK)
    read = [*policy.files, *attack.files]
    if isinstance(table, str):
        _check_outputs(table, output, request, read)
    second = None
    if policy.is_in_two_tables:
        second = second_output(output, table, read) if isinstance(table, str) else FRAME
    if request.plan is not None:
        policy.require_global("plan: there is none to save or apply")
    plan = _plan_to_apply(request.plan, request.explain)
    kind = Location(output).kind_to_write
    progress("reading the table")
    room = room_for(table, beside=output) if isinstance(table, str) else None
    if room is not None:
        _refuse_past_memory(str(table), policy, output, request, attack, room)
    guard: BesideGuard | None = None
    if request.others is not None:
        from shoal.attacks.beside.guard import guard_of

        guard, attack = guard_of(request.others, policy, attack, progress)
    source = tables.read_original(table, room)
    policy.build_method("publish")  # an unusable method is rejected before the data is searched
    progress("checking the data against the policy")
    dialect, digest = tables.output_dialect(table, source.dialect, output), source.sha256
    if isinstance(source.table, CodedTable):
        from shoal.tables.past_memory import prepare_coded

        draft = prepare_coded(source.table, policy, dialect, progress, kind.is_typed)
    else:
        bound = bound_table(source.table, policy)
        draft = prepare(source.table, bound, progress, plan, request.explain, kind.is_typed, guard)
        del bound
    remarks = [*source.remarks, *input_warnings(source.table, policy.model)]
    remarks += population_warnings(policy.tables)
    del source  # the quasi-identifiers' cells are no longer needed
    with ExitStack() as outputs:
        traced = outputs.enter_context(private_draft(request.trace))
        found = draft.plan  # none where one was applied, which stays as it is
        planned = outputs.enter_context(private_draft(request.plan if found else None))
        first_file = outputs.enter_context(release_draft(output, request.replace, second))
        # moved into place first
        second_file = None
        if second is not None:
            second_file = outputs.enter_context(release_draft(second, replace=True))
        progress("writing the release")
        for frame, file in ((draft.shown, first_file), (draft.sensitive, second_file)):
            if isinstance(frame, ShownTable):
                from shoal.tables.past_memory import write_shown

                write_shown(frame, first_file, tables, dialect, draft.asked, room)
            elif frame is not None and file is not None:
                # a certificate describes the columns of two tables together
                about = file_metadata(frame.columns, draft.asked) if second is None else None
                file.write(tables.written_frame(frame, kind), dialect, about)
        progress("reading the release back")
        back = tables.read_draft(first_file, dialect, second_file, room)
        formulas = tables.formula_warnings(back.table, kind)
        measured = _measured(back.table, draft, progress, started)
        certificate = measured.certificate
        if attack.attacks:
            release = measured.release
            certificate = attack_draft(certificate, back.table, release, draft, attack, progress)
        notation, render = draft.asked.notation, draft.asked.schema.render
        certificate = with_contradicted(certificate, back.contradicted)
        if kind.is_file:
            certificate = certificate.extended(
                input={"sha256": digest},
                output=first_file.described(back.sha256, render, dialect, notation)
                | described_second(None if second_file is None else second_file.path, back.second),
            )
        certificate = certificate.warned(*remarks, *formulas)
        require_kept(
            certificate, WITHHELD, request.require_together or policy.model.require_together
        )
        if found is not None and planned is not None:
            planned.write_text(found.to_json(), encoding="utf-8")
        if traced is not None:  # whose row is whose, for the owner alone
            write_trace(draft.truth.trace, traced)
        first_file.certify(certificate.to_json())
    frames = [one.held[0] for one in (first_file, second_file) if isinstance(one, FrameDraft)]
    return Outcome(certificate, measured.held, draft, frames)


def _check_outputs(table: str, output: str, request: PublishRequest, read: list[str]) -> None:
    """Raises InputError, before any work, where an output can't be put.

    read: all other files that are read.
    """
    for written in filter(None, (output, request.plan, request.trace)):
        check_not_read(written, table, read)
    InputError.raise_for(misplaced("release", [output], request.plan, request.trace))
    check_output(output, request.replace)


def _refuse_past_memory(
    table: str,
    policy: Policy,
    output: str,
    request: PublishRequest,
    attack: AttackRequest,
    room: Room,
) -> None:
    """Raises InputError for what needs the whole table."""
    from shoal.tables.past_memory import require_possible, require_writable

    asked = {
        "--plan": request.plan,
        "--explain": request.explain,
        "--attack": attack.attacks,
        "--others": request.others,
    }
    refuse_whole(asked, table)
    require_writable(output, room)
    require_possible(table, policy)


def _plan_to_apply(path: str | Path | None, explain: bool) -> Plan | None:
    """The plan in a file that exists already; raises InputError where one can't be explained."""
    if path is None or not Path(path).exists():
        return None
    from shoal.tables.global_recoding import Plan

    if explain:
        raise InputError(
            f"plan '{path}': exists and is applied, so nothing is searched; use --explain where it"
            " is made"
        )
    return Plan.load(path)


def _measured(
    published: Table, draft: RecodedDraft, progress: Progress, started: float
) -> CertifiedRelease:
    """The published cells, measured."""
    if draft.sensitive is None:
        measured = measure(published, draft.asked, draft.truth, progress)
    else:
        original = draft.truth.original
        measured, published = measure_two_tables(
            published, draft.asked, draft.truth, original, progress
        )
    seconds = {"total": time.process_time() - started, "method": draft.seconds}
    certificate = measured.certificate.extended(
        verb="publish",
        method=draft.method,
        seed=draft.asked.seed,
        seconds=seconds,
        scale=measured.scale,
        **draft.certificate_extras,
    )
    if draft.method["name"] == BOUNDED:
        certificate = with_bound(certificate, draft.asked, measured.held)
    certificate = described(certificate, published, measured.figures, draft.asked, draft.truth)
    if draft.beside is not None:
        from shoal.auditor.audit import AuditResult

        audited = AuditResult(certificate, measured.held, draft.asked, draft.truth)
        certificate = certificate.extended(beside=draft.beside(audited))
    return CertifiedRelease(certificate, measured.held)


# Attack what is about to be published, before it takes its place.


def attack_draft(
    certificate: Certificate,
    published: Table,
    release: Release,
    draft: RecodedDraft,
    request: AttackRequest,
    progress: Progress,
) -> Certificate:
    """The certificate with what the attacks found that are asked for."""
    # most releases are not attacked, and all attacks are imported with these
    from shoal.attacks.run.attack import attacked
    from shoal.attacks.run.people import AttackedRelease
    from shoal.data.attack_scene import Recoding
    from shoal.tables.attack import by_method_of

    asked, truth = draft.asked, draft.truth
    made = Recoding.of(draft.method, truth.encoded.records)
    target = AttackedRelease(
        published, release, asked, truth.original, truth.encoded, truth, recoding=made
    )
    if "plan" not in draft.certificate_extras:
        target = by_method_of(asked.with_default_method(truth.encoded), target)
    return attacked(certificate, target, request, progress)
