"""The next release as it would be published: which records it holds, and in which classes.

In one of three ways, by what a method needs of published records: nothing or their originals
(here), or the boxes of their classes (`published_boxes`). People who come again are planned
elsewhere (`returning`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.description import described
from shoal.auditor.ledger import terms
from shoal.auditor.ledger.history import LedgerHistory, stated
from shoal.auditor.ledger.release_view import HistoryFinding, read_as_published
from shoal.auditor.measure import measure
from shoal.auditor.reading import read_release
from shoal.connectors import files
from shoal.connectors.ledger import DATA, Ledger
from shoal.connectors.ledger.identities import Identities
from shoal.connectors.outputs import describe_file
from shoal.data.certificate import Certificate
from shoal.data.faults import faults
from shoal.data.ledger_view import LedgerView
from shoal.data.progress import Progress
from shoal.data.recoding import Recoding
from shoal.data.release import PublishedColumn
from shoal.data.row_order import published_order
from shoal.data.schema import Attribute, Role, Schema
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.ledgers.increment import (
    CandidateRecords,
    DeferredRecords,
    collect_candidates,
    last_arrivals,
    waits_for_a_price,
)
from shoal.ledgers.planned_release import (
    NO_ROOM,
    CurrentRelease,
    PlannedRelease,
    bound_table,
    partition_table,
    place,
    recoded,
    view_of_records,
)
from shoal.ledgers.returning import plan_again, refuse_panel
from shoal.policy.binding.table import BoundTable
from shoal.policy.policy import Policy
from shoal.policy.problem import Problem
from shoal.privacy.promises import nearest_feasible


def plan(
    frame: pl.DataFrame, policy: Policy, method: Any, ledger: Ledger, progress: Progress
) -> PlannedRelease | DeferredRecords:
    """The next release; only the deferred records where there is none.

    Raises InputError, PromiseError or InfeasibleError.
    """
    planned = _plan(frame, policy, method, ledger, progress)
    if not waits_for_a_price(method):
        return planned
    arrivals = last_arrivals(ledger, frame.height)
    if isinstance(planned, DeferredRecords):
        return planned.after(method.deadline, arrivals)
    return replace(planned, waiting=planned.waiting.after(method.deadline, arrivals))


def _plan(
    frame: pl.DataFrame, policy: Policy, method: Any, ledger: Ledger, progress: Progress
) -> PlannedRelease | DeferredRecords:
    if terms.returns_people(method):
        return plan_again(frame, policy, method, ledger, progress)
    progress("checking the data against the policy")
    refuse_panel(method, ledger)
    candidates = collect_candidates(frame, policy, method, ledger)
    if not candidates.shows_new():
        return candidates.defer("the increment holds nothing new")
    if method.needs == "boxes" and ledger.exists and ledger.releases():
        return plan_into_boxes(candidates, policy, method, ledger, progress)
    return _plan_new_classes(candidates, frame.height, policy, method, ledger, progress)


def _plan_new_classes(
    candidates: CandidateRecords,
    arrived: int,
    policy: Policy,
    method: Any,
    ledger: Ledger,
    progress: Progress,
) -> PlannedRelease | DeferredRecords:
    """All candidates in new classes; those for which the method finds none wait.

    arrived: records of the increment.
    """
    bound = bound_table(candidates.table, policy)
    matrix, whole_table = bound.method_input()
    obstacles = nearest_feasible(policy.build_promises(), whole_table)
    if obstacles:
        return candidates.defer(*obstacles)
    progress(f"finding classes by {policy.method_name}")
    view, values = view_of_records(candidates, bound, policy, method, ledger)
    if waits_for_a_price(method) and candidates.waited is not None:
        waited = candidates.waited[~bound.encoded.suppressed]
        recent = last_arrivals(ledger, arrived)
        view = replace(view, waited=waited, arrivals=sum(recent) / len(recent))
    placed, seconds = place(matrix, view, whole_table, policy, method)
    kept = np.ones(candidates.table.records, dtype=bool)
    kept[~bound.encoded.suppressed] = placed.labels >= 0
    if not kept.any():
        return candidates.defer("no class can be made of it yet")
    if not candidates.shows_new(kept):
        return candidates.defer(NO_ROOM)
    waiting = DeferredRecords()
    if not kept.all():
        waiting = candidates.only(~kept).defer(NO_ROOM)
        candidates = candidates.only(kept)
        bound = bound_table(candidates.table, policy)
    progress("recoding")
    planned = recoded(candidates, bound, placed, values, policy)
    return replace(planned, waiting=waiting, seconds=seconds)


# New records placed in published classes, whose boxes grow to cover them.


def plan_into_boxes(
    candidates: CandidateRecords, policy: Policy, method: Any, ledger: Ledger, progress: Progress
) -> PlannedRelease | DeferredRecords:
    """The next release of the whole table, in its published classes.

    Each class is bound as two corners of its box, in front of the new records, so that old and new
    are read in the same codes.
    """
    current = CurrentRelease.of(ledger, policy)
    count = current.classes.count
    new = candidates.table
    table = Table(pl.concat([_corners(current, new.frame), new.frame]))
    bound = bound_table(table, policy)
    matrix = bound.matrix()
    increment = matrix.take(np.arange(2 * count, matrix.records))
    is_new = np.arange(matrix.records) >= 2 * count
    whole_table = bound.whole_table.only(is_new, increment.subjects)
    obstacles = nearest_feasible(policy.build_promises(), whole_table)
    if obstacles:
        return candidates.defer(*obstacles)
    progress(f"finding classes by {policy.method_name}")
    corners = matrix.codes[: 2 * count]
    view = LedgerView(
        lo=np.minimum(corners[::2], corners[1::2]),
        hi=np.maximum(corners[::2], corners[1::2]),
        people=current.classes.people(),
        partition=partition_table,
    )
    placed, seconds = place(increment, view, whole_table, policy, method)
    kept = placed.labels >= 0
    if not kept.any():
        return candidates.defer(NO_ROOM)
    shown, waiting = candidates, DeferredRecords()
    if not kept.all():
        shown, waiting = candidates.only(kept), candidates.only(~kept).defer(NO_ROOM)
    progress("recoding")
    labels = np.concatenate([np.repeat(np.arange(count, dtype=np.int32), 2), placed.labels])
    recoding = Recoding.of(labels, placed.count, bound.encoded.attributes)
    of_rows = replace(recoding, labels=np.concatenate([current.labels, placed.labels]))
    old = current.frame.height
    stays = np.concatenate([np.ones(old, dtype=bool), kept])
    frame = _recoded_table(current, new, of_rows, bound).filter(stays)
    order = published_order(frame, policy.quasi, bound.schema.render)
    known = np.flatnonzero(order >= old)
    return PlannedRelease(
        frame[order],
        bound.schema,
        Identities.joined([current.identities, shown.identities()]).take(order),
        originals=new.frame.clear(),
        truth=Truth(table, bound.encoded, np.flatnonzero(kept)[order[known] - old] + 2 * count),
        waiting=waiting,
        seconds=seconds,
        known=known,
        returning=candidates.returning,
    )


def _recoded_table(
    current: CurrentRelease, new: Table, recoding: Recoding, bound: BoundTable
) -> pl.DataFrame:
    """Published rows and new ones, with the cells of their classes as they are now."""
    index = {e.attribute.name: j for j, e in enumerate(bound.encoded.attributes)}
    columns = []
    for attribute in bound.schema.published:
        if attribute.role is Role.QUASI:
            j = index[attribute.name]
            columns.append(recoding.column(j, bound.encoded.attributes[j], bound.schema.render))
        else:
            published = current.frame[attribute.name].cast(pl.String)
            columns.append(pl.concat([published, new.frame[attribute.name]]))
    return pl.DataFrame(columns)


def _corners(current: CurrentRelease, new: pl.DataFrame) -> pl.DataFrame:
    """Two invented records for every class: least and greatest in every quasi-identifier.

    In all other columns they are as some member is.
    """
    member = np.zeros(current.classes.count, dtype=np.int64)
    kept = np.flatnonzero(current.labels >= 0)
    member[current.labels[kept]] = kept
    twice = np.repeat(member, 2)
    columns = []
    published = {column.name: column for column in current.columns}
    for name in new.columns:
        cells: list[Any]
        if name in published:
            column, attribute = published[name], current.schema[name]
            ends = [
                _ends(attribute, column, i, current.schema, new[name])
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


COUNTERFEITS = "counterfeits.csv"
VERB = "republish"


@dataclass(frozen=True)
class AuditedDraft:
    """A planned release that was written and audited.

    records: how many the ledger has published with it.
    """

    certificate: Certificate
    findings: Sequence[HistoryFinding]
    identities: Identities
    records: int

    @property
    def violations(self) -> list[HistoryFinding]:
        """The findings that break the history."""
        return [finding for finding in self.findings if finding.is_violation]


def write_and_audit(
    planned: PlannedRelease,
    policy: Policy,
    method: Any,
    ledger: Ledger,
    folder: Path,
    digest: str,
    progress: Progress,
) -> AuditedDraft:
    """Writes the release into a folder, reads it back and audits it and the history."""
    progress("writing the release")
    files.write(planned.frame, folder / DATA, ".csv")
    progress("reading the release back")
    written = files.read_as(folder / DATA, ".csv", policy.audited_columns)
    last = ledger.last_step()
    head = last.head if ledger.exists else terms.policy_files(policy).head
    identities, records = planned.identities.numbered(last.records)
    certificate = _measured(written.frame, planned, identities, policy, progress)
    progress("auditing the history")
    number = last.releases + 1
    history = LedgerHistory(ledger, policy)
    findings = history.next(number, method, written.frame, identities)
    certificate = certificate.extended(
        method={"name": policy.method_name, "parameters": policy.parameters_for("republish")},
        seed=policy.model.seed,
        seconds={"total": None, "method": planned.seconds},
        input={"sha256": digest},
        output=describe_file(folder / DATA, DATA, written.sha256, planned.schema.render),
        covers=method.covers,
        guards=terms.guards_of(policy, method),
        history=stated(findings, allowed=any(finding.is_violation for finding in findings)),
        ledger={
            "release": number,
            "previous": head,
            "files": {},
            "returning_people": planned.returning,
        },
    )
    if planned.counterfeits is not None:  # how many rows of each class are invented
        by_class = planned.counterfeits
        by_class.write_csv(folder / COUNTERFEITS)
        digests = {COUNTERFEITS: files.file_sha256(folder / COUNTERFEITS)}
        invented = int(by_class["counterfeits"].sum())
        certificate = certificate.extended(
            ledger={**certificate["ledger"], "files": digests},
            counterfeits={"records": invented, "classes": by_class.height},
        )
    if planned.panel is not None:
        risk = {**certificate["risk"], "at_least_once": history.at_least_once(certificate)}
        certificate = certificate.extended(panel=planned.panel.stated, risk=risk)
    return AuditedDraft(certificate, findings, identities, records)


def _measured(
    frame: pl.DataFrame,
    planned: PlannedRelease,
    identities: Identities,
    policy: Policy,
    progress: Progress,
) -> Certificate:
    """The certificate of the rows that were written, compared with the truth where it is known."""
    table, problem = Table(frame), Problem(planned.schema, policy)
    if planned.known is None:
        certificate, _, figures = measure(table, problem, planned.truth, progress)
        certificate = certificate.extended(verb=VERB)
        return described(certificate, table, figures, problem, planned.truth)
    reading = read_as_published(frame, identities, policy)
    certificate = reading.certificate.extended(verb=VERB)
    certificate = described(certificate, table, reading.figures, problem, None)
    known = Table(frame[planned.known])
    release = read_release(known, problem, planned.truth)
    known_faults = faults(known, release, problem.schema, planned.truth)
    return certificate.extended(faults={**certificate.get("faults", {}), **known_faults})
