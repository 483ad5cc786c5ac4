"""The next release as it would be published: which records it holds, and in which classes.

In one of three ways, by what a method needs of published records: nothing or their originals
(here), or the boxes of their classes (`plan_into_boxes`). People who come again are planned
elsewhere (`returning`).
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.description import described
from shoal.auditor.ledger.history import LedgerHistory, ReleaseAudit
from shoal.auditor.ledger.release_view import ReleaseReading, measured_as_published
from shoal.auditor.ledger.terms import policy_files
from shoal.auditor.measure import measure
from shoal.auditor.reading import read_release
from shoal.connectors import files
from shoal.connectors.ledger import COUNTERFEITS, DATA
from shoal.connectors.ledger.private import DeferredRecords, Identities
from shoal.connectors.outputs import describe_file
from shoal.data.certificate import Certificate
from shoal.data.ledger_view import LedgerView
from shoal.data.progress import Progress
from shoal.data.recoding import Recoding
from shoal.data.release import PublishedColumn
from shoal.data.row_order import published_order
from shoal.data.schema import Attribute, Schema
from shoal.data.table import Table
from shoal.data.truth import Truth, faults
from shoal.data.warnings import SENSITIVE_UNPROMISED
from shoal.errors import InputError
from shoal.ledgers import planned_release
from shoal.ledgers.increment import NO_ROOM, CandidateRecords, Terms, collect_candidates, people_of
from shoal.ledgers.planned_release import PlannedRelease
from shoal.ledgers.returning import plan_returning, refuse_panel
from shoal.policy.binding.table import BoundTable, bound_table
from shoal.privacy.promises import infeasible_promises


def plan(
    frame: pl.DataFrame, terms: Terms, progress: Progress
) -> tuple[PlannedRelease | None, DeferredRecords]:
    """The next release, None where there is none; and the records that wait.

    Raises InputError, PromiseError or InfeasibleError.
    """
    deferred = DeferredRecords.of(terms.ledger)
    arrivals = deferred.arrivals_with(frame.height)
    progress("checking the data against the policy")
    terms.check_plain_columns(frame.columns, deferred)
    named = people_of(frame, deferred, terms)
    if terms.returns_people:
        planned, waiting = plan_returning(frame, deferred, terms, progress)
    else:
        refuse_panel(terms)
        candidates = collect_candidates(frame, deferred, terms)
        try:
            if not candidates.shows_new():
                planned, waiting = None, candidates.defer("the increment holds nothing new")
            elif terms.method.needs == "boxes" and terms.ledger.releases():
                planned, waiting = plan_into_boxes(candidates, terms, progress)
            else:
                planned, waiting = _plan_new_classes(candidates, arrivals, terms, progress)
        except InputError:
            # candidates have an order of their own; whoever corrects them needs the increment's
            terms.bound(candidates.lent_to_the_deleted(frame, terms))
            raise
    if terms.is_priced:
        waiting = waiting.after(terms.method.deadline, arrivals)
    return planned, replace(waiting, named=named)


def _plan_new_classes(
    candidates: CandidateRecords, arrivals: tuple[int, ...], terms: Terms, progress: Progress
) -> tuple[PlannedRelease | None, DeferredRecords]:
    """All candidates in new classes; the others wait. arrivals: of the last increments."""
    bound = bound_table(candidates.table, terms.policy)
    matrix, whole_table = bound.method_input()
    obstacles = infeasible_promises(terms.policy.build_promises(), whole_table)
    if obstacles:
        return None, candidates.defer(*obstacles)
    progress(f"finding classes by {terms.policy.method_name}")
    view, values = planned_release.view_of_records(candidates, bound, terms)
    view = replace(view, arrivals=sum(arrivals) / len(arrivals))
    placed, seconds = planned_release.place(matrix, view, whole_table, terms)
    kept = np.ones(candidates.table.records, dtype=bool)
    kept[~bound.encoded.suppressed] = placed.labels >= 0
    if not kept.any():
        return None, candidates.defer("no class can be made of it yet")
    if not candidates.shows_new(kept):
        return None, candidates.defer(NO_ROOM)
    waiting = candidates.waiting(kept)
    progress("recoding")
    planned = planned_release.recoded(candidates, bound, kept, placed, terms, values)
    return replace(planned, seconds=seconds), waiting


# New records placed in published classes, whose boxes grow to cover them.


def plan_into_boxes(
    candidates: CandidateRecords, terms: Terms, progress: Progress
) -> tuple[PlannedRelease | None, DeferredRecords]:
    """The next release of the whole table, in its published classes.

    Each class is bound as two corners of its box, in front of the new records, so that old and new
    are read in the same codes.
    """
    policy, current = terms.policy, planned_release.current_table(terms)
    classes = current.release.classes
    count = classes.count
    new = candidates.table
    table = Table(pl.concat([_corners(current, new.frame), new.frame]))
    bound = bound_table(table, policy)
    matrix = bound.matrix()
    increment = matrix.take(np.arange(2 * count, matrix.records))
    is_new = np.arange(matrix.records) >= 2 * count
    whole_table = bound.whole_table.only(is_new, increment.subjects)
    obstacles = infeasible_promises(policy.build_promises(), whole_table)
    if obstacles:
        return None, candidates.defer(*obstacles)
    progress(f"finding classes by {policy.method_name}")
    corners = matrix.codes[: 2 * count]
    view = LedgerView(
        lo=np.minimum(corners[::2], corners[1::2]),
        hi=np.maximum(corners[::2], corners[1::2]),
        people=classes.people(),
        partition=planned_release.partition_table,
    )
    placed, seconds = planned_release.place(increment, view, whole_table, terms)
    kept = placed.labels >= 0
    if not kept.any():
        return None, candidates.defer(NO_ROOM)
    waiting = candidates.waiting(kept)
    progress("recoding")
    labels = np.concatenate([np.repeat(np.arange(count, dtype=np.int32), 2), placed.labels])
    recoding = Recoding.of(labels, placed.count, bound.encoded.attributes)
    of_rows = replace(recoding, labels=np.concatenate([classes.labels, placed.labels]))
    old = current.frame.height
    stays = np.concatenate([np.ones(old, dtype=bool), kept])
    frame = _recoded_table(current.frame, new, of_rows, bound).filter(stays)
    order = published_order(frame, policy.quasi, bound.schema.render)
    known = np.flatnonzero(order >= old)
    people = [current.identities, candidates.only(kept).identities()]
    planned = PlannedRelease(
        frame[order],
        bound.asked,
        Identities.joined(people).take(order).numbered(terms.ledger.last_step().records),
        originals=new.frame.clear(),
        truth=Truth(table, bound.encoded, np.flatnonzero(kept)[order[known] - old] + 2 * count),
        seconds=seconds,
        known=known,
    )
    return planned, waiting


def _recoded_table(
    published: pl.DataFrame, new: Table, recoding: Recoding, bound: BoundTable
) -> pl.DataFrame:
    """Published rows and new ones, with the cells of their classes as they are now."""
    shown = {
        encoded.attribute.name: recoding.column(j, encoded, bound.schema.render)
        for j, encoded in enumerate(bound.encoded.attributes)
    }
    for attribute in bound.schema.published:
        if (name := attribute.name) not in shown:
            shown[name] = pl.concat([published[name].cast(pl.String), new.frame[name]])
    return pl.DataFrame([shown[attribute.name] for attribute in bound.schema.published])


def _corners(current: ReleaseReading, new: pl.DataFrame) -> pl.DataFrame:
    """Two invented records for every class: least and greatest in every quasi-identifier.

    In all other columns they are as some member is.
    """
    classes = current.release.classes
    member = np.zeros(classes.count, dtype=np.int64)
    kept = np.flatnonzero(classes.labels >= 0)
    member[classes.labels[kept]] = kept
    twice = np.repeat(member, 2)
    columns = []
    published = {column.name: column for column in current.release.columns}
    for name in new.columns:
        cells: list[Any]
        if name in published:
            column, attribute = published[name], current.problem.schema[name]
            ends = [
                _ends(attribute, column, i, current.problem.schema, new[name])
                for i in range(len(column.cells))
            ]
            cells = [ends[code][side] for code in column.codes[member].tolist() for side in (0, 1)]
        elif name in current.frame.columns:
            cells = current.frame[name].cast(pl.String)[twice].to_list()
        else:
            cells = [None] * len(twice)
        columns.append(pl.Series(name, cells, dtype=pl.String))
    return pl.DataFrame(columns)


def _ends(
    attribute: Attribute, column: PublishedColumn, i: int, schema: Schema, new: pl.Series
) -> tuple[str | None, str | None]:
    """The texts of the least and greatest value of one published cell."""
    cell, tree = column.cells[i], attribute.hierarchy
    is_suppressed = cell == schema.render.suppressed
    if not schema.is_value(cell) and not is_suppressed:
        return None, None
    if tree is not None and (not is_suppressed or tree.node_of_label(cell) == tree.root):
        node = tree.node_of_label(cell)
        return tree.labels[int(tree.first[node])], tree.labels[int(tree.last[node])]
    if is_suppressed:
        present = [
            text
            for text in {*column.cells, *new.to_list()}
            if text is not None and schema.is_value(text)
        ]
        # no value and some value: nothing narrower than the mark covers both
        return None, _any_value(attribute, present)
    if column.lo[i] == column.hi[i]:
        return cell, cell
    if attribute.order is not None:
        return attribute.order[int(column.lo[i])], attribute.order[int(column.hi[i])]
    head, middle, tail = schema.render.parts
    lo, hi = cell[len(head) : len(cell) - len(tail)].split(middle)
    return lo.strip(), hi.strip()


def _any_value(attribute: Attribute, present: list[str]) -> str:
    if attribute.domain is not None:
        return str(attribute.domain[0])
    return attribute.order[0] if attribute.order is not None else min(present)


# A planned release, written into a draft and audited there: by itself and with the history.


VERB = "republish"


def write_and_audit(
    planned: PlannedRelease,
    returning: int,
    terms: Terms,
    folder: Path,
    digest: str,
    progress: Progress,
) -> ReleaseAudit:
    """Writes the release into a folder, reads it back and audits it and the history.

    returning: people of the increment whose earlier records waited already.
    """
    ledger, policy = terms.ledger, terms.policy
    progress("writing the release")
    files.write(planned.frame, folder / DATA)
    progress("reading the release back")
    written = files.read_as(folder / DATA, categorical=policy.model.audited_columns)
    last = ledger.last_step()
    number = last.releases + 1
    made: dict[str, Any] = {
        "method": {"name": policy.method_name, "parameters": policy.parameters_for(VERB)},
        "seed": policy.model.seed,
        "seconds": {"total": None, "method": planned.seconds},
        "input": {"sha256": digest},
        "output": describe_file(folder / DATA, DATA, written.sha256, planned.problem.schema.render),
        "covers": terms.method.covers,
        "guards": terms.guards,
    }
    certificate = _measured(written.frame, planned, progress).extended(**made)
    progress("auditing the history")
    history = LedgerHistory(ledger, policy)
    panel = {} if planned.panel is None else {"panel": planned.panel}
    findings = history.next(number, made | panel, written.frame, planned.identities)
    digests = {}
    if any(one.check == "frequencies" and not one.is_violation for one in findings):
        # each value has at most one row in m of every class, though no promise asks for it
        open_ones = [w.report() for w in certificate.warnings if w.code != SENSITIVE_UNPROMISED]
        certificate = certificate.extended(warnings=open_ones)
    if planned.counterfeits is not None:
        planned.counterfeits.write_csv(folder / COUNTERFEITS)
        digests = {COUNTERFEITS: files.file_sha256(folder / COUNTERFEITS)}
    breaks = any(finding.is_violation for finding in findings)
    certificate = certificate.extended(
        history={
            "holds": not breaks,
            "allowed": breaks,  # else it is withheld
            "findings": [finding.report() for finding in findings],
        },
        ledger={
            "release": number,
            "previous": last.head if ledger.exists else policy_files(policy.tables).head,
            "files": digests,
            "returning_people": returning,
        },
    )
    if planned.counterfeits is not None:
        invented = int(planned.counterfeits["counterfeits"].sum())
        shown = {"records": invented, "classes": planned.counterfeits.height}
        certificate = certificate.extended(counterfeits=shown)
    if planned.panel is not None:
        certificate = history.with_panel(certificate, planned.panel)
    return ReleaseAudit(number, certificate, findings, returning)


def _measured(frame: pl.DataFrame, planned: PlannedRelease, progress: Progress) -> Certificate:
    """The certificate of the rows that were written, compared with the truth where it is known."""
    table, problem = Table(frame), planned.problem
    if planned.known is None:
        measured = measure(table, problem, planned.truth, progress)
        certificate = measured.certificate.extended(verb=VERB)
        return described(certificate, table, measured.figures, problem, planned.truth)
    _, measured = measured_as_published(frame, planned.identities, problem.policy)
    certificate = measured.certificate.extended(verb=VERB)
    certificate = described(certificate, table, measured.figures, problem, None)
    known = Table(frame[planned.known])
    release = read_release(known, problem, planned.truth)
    known_faults = faults(known, release, problem.schema, planned.truth)
    return certificate.extended(faults={**certificate.get("faults", {}), **known_faults})
