"""The next release as it would be published: which records it holds, in which class each is, and
how that reads.

Three ways, by what a method needs of published records: nothing, their originals, or the boxes of
their classes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from shoal.binding.release import bind_release
from shoal.binding.table import BoundTable, bind
from shoal.data.classes import Classes
from shoal.data.ledger_view import LedgerView, Placement
from shoal.data.partition import Partition
from shoal.data.progress import Progress
from shoal.data.recoding import Recoding
from shoal.data.release import PublishedColumn
from shoal.data.schema import Attribute, Role, Schema
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.errors import InputError
from shoal.jobs.audit.reading import read_release
from shoal.jobs.publish.recode import recode, shuffled_order
from shoal.jobs.republish import identities
from shoal.jobs.republish.export import parts_of, table_as_of
from shoal.jobs.republish.identities import CandidateRecords, DeferredRecords, Identities
from shoal.policy.policy import Policy
from shoal.privacy.promises import BoundPromises, nearest_feasible
from shoal.state.ledger import Ledger


@dataclass(frozen=True)
class PlannedRelease:
    """A release, row by row; not yet measured.

    identities: who stands behind each row. originals: the records that the private part keeps of
    it, in the order of
    its real rows. truth: what the owner knows of the rows that `known` counts, None for all of
    them.
    counterfeits: how many rows of each published class are invented; None where the method invents
    none.
    again: people of the increment who waited already.
    """

    frame: pl.DataFrame
    schema: Schema
    identities: Identities
    originals: pl.DataFrame
    truth: Truth
    waiting: DeferredRecords
    seconds: float
    known: np.ndarray | None = None
    counterfeits: pl.DataFrame | None = None
    again: int = 0


def plan(
    frame: pl.DataFrame, policy: Policy, method: Any, ledger: Ledger, progress: Progress
) -> PlannedRelease | DeferredRecords:
    """The next release; only what waits where there is none. Raises InputError, PromiseError or
    InfeasibleError.
    """
    progress("checking the data against the policy")
    material = identities.collect_candidates(frame, policy, method, ledger)
    if not material.is_new:
        return material.waiting_for("the increment holds nothing new")
    if method.needs == "boxes" and ledger.exists and ledger.releases():
        return _into_boxes(material, policy, method, ledger, progress)
    bound = _bound(material.table, policy)
    matrix = bound.matrix()
    whole_table = bound.published(matrix.subjects)
    promises = policy.build_promises()
    reasons = nearest_feasible(promises, whole_table)
    if reasons:
        return material.waiting_for(*reasons)
    progress(f"finding classes by {policy.method_name}")
    began = time.process_time()
    view, values = _view(material, bound, policy, method, ledger)
    rng = np.random.default_rng(policy.model.seed)
    placed: Placement = method.publish(matrix, view, BoundPromises(promises, whole_table), rng)
    seconds = time.process_time() - began
    kept = np.ones(material.table.records, dtype=bool)
    kept[~bound.encoded.suppressed] = placed.labels >= 0
    if not kept.any():
        return material.waiting_for("no class can be made of it yet")
    if not material.shows_new(kept):
        return material.waiting_for("no class has room for them yet")
    waiting = DeferredRecords()
    if not kept.all():
        waiting = material.only(~kept).waiting_for("no class has room for them yet")
        material = material.only(kept)
        bound = _bound(material.table, policy)
    progress("recoding")
    return _written_out(material, bound, placed, values, policy, waiting, seconds)


def _written_out(
    material: CandidateRecords,
    bound: BoundTable,
    placed: Placement,
    values: list[str] | None,
    policy: Policy,
    waiting: DeferredRecords,
    seconds: float,
) -> PlannedRelease:
    """The rows of all these records and, behind them, of invented ones; then shuffled where the
    policy says so.
    """
    partition = Partition(placed.labels[placed.labels >= 0], placed.count)
    recoded = recode(material.table, _in_order(bound), partition, policy)
    frame, identities, counted = recoded.frame, material.identities(), None
    records = frame.height
    if values is not None:
        frame, identities = _with_counterfeits(
            frame, identities, placed, partition, values, bound.schema
        )
        counted = _counterfeits_by_class(frame, records, bound.schema)
    order = (
        np.arange(frame.height)
        if bound.schema.render.order == "input"
        else shuffled_order(frame, policy.model.seed)
    )
    real = order[order < records]
    known = None if frame.height == records else np.flatnonzero(order < records)
    truth = replace(recoded.truth, rows=real)
    originals = material.table.frame[real]
    return PlannedRelease(
        frame[order], bound.schema, identities.at(order), originals, truth, waiting, seconds, known, counted,
        material.again,
    )  # fmt: skip


def _bound(table: Table, policy: Policy) -> BoundTable:
    bound, findings = bind(table, policy)
    if bound is None:
        raise InputError.from_findings(findings)
    return bound


def _in_order(bound: BoundTable) -> BoundTable:
    """The same table, to be recoded in its own order."""
    return replace(
        bound, schema=replace(bound.schema, render=replace(bound.schema.render, order="input"))
    )


# What a method sees of the past


def _view(
    material: CandidateRecords, bound: BoundTable, policy: Policy, method: Any, ledger: Ledger
) -> tuple[LedgerView, list[str] | None]:
    """What a method may know, and the text of each sensitive value where it asks for them."""
    placed = ~bound.encoded.suppressed
    earlier = material.records[placed] >= 0
    if method.guards != "signatures":
        return LedgerView(earlier=earlier), None
    name = _sensitive_of(policy, material)
    column = material.table.column(name)
    shown = _signatures_shown(ledger, policy, name) if earlier.any() else {}
    texts = sorted({*column.cells, *(value for values in shown.values() for value in values)})
    number = {text: i for i, text in enumerate(texts)}
    sets = sorted({tuple(sorted(number[value] for value in values)) for values in shown.values()})
    place = {values: i for i, values in enumerate(sets)}
    of_record = {
        record: place[tuple(sorted(number[v] for v in values))] for record, values in shown.items()
    }
    signature = np.array(
        [of_record.get(r, -1) for r in material.records[placed].tolist()], dtype=np.int32
    )
    sensitive = np.array([number[cell] for cell in column.cells], dtype=np.int32)[column.codes][
        placed
    ]
    view = LedgerView(
        earlier=earlier,
        signature=signature,
        signatures=tuple(sets),
        sensitive=sensitive,
        values=len(texts),
    )
    return view, texts


def _sensitive_of(policy: Policy, material: CandidateRecords) -> str:
    """The one sensitive attribute; raises InputError with whatever keeps signatures from guarding
    the table.
    """
    roles: dict[str, list[str]] = {}
    for name, attribute in policy.model.attributes.items():
        roles.setdefault(attribute.role, []).append(name)
    findings = []
    if len(roles.get("sensitive", [])) != 1:
        findings.append(
            "policy: signatures need exactly one sensitive attribute; give the others the role"
            " 'drop'"
        )
    if "plain" in roles or policy.model.other == "plain":
        findings.append(
            "policy: a plain column would show which rows are invented; give it the role 'drop'"
        )
    if material.subjects is None:
        findings.append("policy: signatures need a subject: the same person must be known again")
    elif len(np.unique(material.subjects)) < len(material.subjects):
        findings.append(
            "increment: some people have several records, those that wait included; signatures need"
            " one to a person"
        )
    if findings:
        raise InputError.from_findings(findings)
    return roles["sensitive"][0]


def _signatures_shown(ledger: Ledger, policy: Policy, name: str) -> dict[int, tuple[str, ...]]:
    """By record number, the sensitive values that its class shows in the last release."""
    today = CurrentRelease.of(ledger, policy)
    values = today.frame[name].fill_null("").to_list()
    of_class: dict[int, set[str]] = {}
    for label, value in zip(today.labels.tolist(), values, strict=True):
        of_class.setdefault(label, set()).add(value)
    sets = {label: tuple(sorted(found)) for label, found in of_class.items()}
    records = today.identities.records.tolist()
    return {
        r: sets[label] for r, label in zip(records, today.labels.tolist(), strict=True) if r >= 0
    }


# Invented rows


def _with_counterfeits(
    frame: pl.DataFrame,
    identities: Identities,
    placed: Placement,
    partition: Partition,
    values: list[str],
    schema: Schema,
) -> tuple[pl.DataFrame, Identities]:
    """The rows of the table and behind them the invented ones, which show what their class shows.

    Each bears the token of a member of its class, so that it never counts as a person of its own.
    """
    assert identities.subjects is not None  # signatures need a subject
    member = np.zeros(partition.count, dtype=np.int64)
    member[partition.labels] = np.arange(len(partition.labels))
    like = member[placed.counterfeits[:, 0]]
    invented = frame[like].with_columns(
        pl.Series(a.name, [values[v] for v in placed.counterfeits[:, 1].tolist()])
        for a in schema.sensitive
    )
    invented = invented.with_columns(
        pl.col(name).cast(dtype) for name, dtype in frame.schema.items()
    )
    more = len(like)
    return pl.concat([frame, invented]), Identities(
        np.concatenate([identities.records, np.full(more, -1, dtype=np.int64)]),
        np.concatenate([identities.subjects, identities.subjects[like]]),
        np.concatenate([np.zeros(len(identities.records), dtype=bool), np.ones(more, dtype=bool)]),
        np.concatenate([identities.is_changed, np.zeros(more, dtype=bool)]),
    )


def _counterfeits_by_class(frame: pl.DataFrame, real: int, schema: Schema) -> pl.DataFrame:
    """The cells of each class that has invented rows, and how many."""
    quasi = [a.name for a in schema.quasi]
    text = frame[real:].select(pl.col(quasi).cast(pl.String))
    return text.group_by(quasi).agg(pl.len().alias("counterfeits")).sort(quasi)


# Published classes that take new records in


@dataclass(frozen=True)
class CurrentRelease:
    """The published table of today: its rows as text, who stands behind them, and its classes."""

    frame: pl.DataFrame
    identities: Identities
    schema: Schema
    columns: tuple[PublishedColumn, ...]
    classes: Classes

    @classmethod
    def of(cls, ledger: Ledger, policy: Policy) -> CurrentRelease:
        number = ledger.releases()[-1]
        frame = table_as_of(ledger, number)
        identities = Identities.joined(
            [Identities.read(ledger.step_of(part)) for part in parts_of(ledger, number)]
        )
        if policy.subject is not None and identities.subjects is not None:
            frame = frame.with_columns(pl.Series(policy.subject, identities.subjects))
        schema, findings = bind_release(Table(frame), policy)
        if schema is None:
            raise InputError.from_findings(findings)
        release = read_release(Table(frame), schema, policy, None)
        return cls(frame, identities, schema, release.columns, release.classes)

    @property
    def labels(self) -> np.ndarray:
        return self.classes.labels


def _into_boxes(
    material: CandidateRecords, policy: Policy, method: Any, ledger: Ledger, progress: Progress
) -> PlannedRelease | DeferredRecords:
    """New records placed in published classes. Each class is in the matrix as two corners of its
    box.
    """
    today = CurrentRelease.of(ledger, policy)
    count, new = today.classes.count, material.table.records
    table = Table(pl.concat([_corners(today, material.table.frame, policy), material.table.frame]))
    bound = _bound(table, policy)
    whole = bound.matrix()
    lo, hi = (
        np.minimum(whole.codes[: 2 * count : 2], whole.codes[1 : 2 * count : 2]),
        np.maximum(whole.codes[: 2 * count : 2], whole.codes[1 : 2 * count : 2]),
    )
    increment = whole.take(np.arange(2 * count, whole.records))
    is_new = np.arange(whole.records) >= 2 * count
    whole_table = bound.whole_table.only(is_new, increment.subjects)
    promises = policy.build_promises()
    reasons = nearest_feasible(promises, whole_table)
    if reasons:
        return material.waiting_for(*reasons)
    progress(f"finding classes by {policy.method_name}")
    began = time.process_time()
    view = LedgerView(lo=lo, hi=hi, people=today.classes.people())
    rng = np.random.default_rng(policy.model.seed)
    placed: Placement = method.publish(increment, view, BoundPromises(promises, whole_table), rng)
    seconds = time.process_time() - began
    progress("recoding")
    of_corners = np.repeat(np.arange(count, dtype=np.int32), 2)
    encoded = bound.encoded
    recoding = Recoding.of(
        np.concatenate([of_corners, placed.labels]), placed.count, encoded.attributes
    )
    shown = replace(recoding, labels=np.concatenate([today.labels, placed.labels]))
    frame = _shown(today, material.table, shown, bound)
    identities = Identities.joined([today.identities, material.identities()])
    order = (
        np.arange(frame.height)
        if bound.schema.render.order == "input"
        else shuffled_order(frame, policy.model.seed)
    )
    old = frame.height - new
    known = np.flatnonzero(order >= old)
    truth = Truth(table, encoded, order[known] - old + 2 * count)
    nothing = material.table.frame.clear()
    return PlannedRelease(
        frame[order],
        bound.schema,
        identities.at(order),
        nothing,
        truth,
        DeferredRecords(),
        seconds,
        known,
        again=material.again,
    )


def _shown(
    today: CurrentRelease, new: Table, recoding: Recoding, bound: BoundTable
) -> pl.DataFrame:
    """Published rows and new ones, with the cells of their classes as they are now."""
    place = {e.attribute.name: j for j, e in enumerate(bound.encoded.attributes)}
    columns = []
    for attribute in bound.schema.published:
        if attribute.role is Role.QUASI:
            j = place[attribute.name]
            columns.append(recoding.column(j, bound.encoded.attributes[j], bound.schema.render))
        else:
            columns.append(
                pl.concat([today.frame[attribute.name].cast(pl.String), new.frame[attribute.name]])
            )
    return pl.DataFrame(columns)


def _corners(today: CurrentRelease, like: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """Two invented records for every class, least and greatest in every quasi-identifier; the rest
    as some member's.
    """
    member = np.zeros(today.classes.count, dtype=np.int64)
    kept = np.flatnonzero(today.labels >= 0)
    member[today.labels[kept]] = kept
    twice = np.repeat(member, 2)
    columns = []
    published = {column.name: column for column in today.columns}
    for name in like.columns:
        if name in published:
            column, attribute = published[name], today.schema[name]
            ends = [
                _ends(attribute, column, i, today.schema, like[name])
                for i in range(len(column.cells))
            ]
            cells = [ends[code][side] for code in column.codes[member].tolist() for side in (0, 1)]
        elif name in today.frame.columns:
            cells = today.frame[name].cast(pl.String)[twice].to_list()
        else:
            cells = [None] * len(twice)
        columns.append(pl.Series(name, cells, dtype=pl.String))
    return pl.DataFrame(columns)


def _ends(
    attribute: Attribute, column: PublishedColumn, i: int, schema: Schema, new: pl.Series
) -> tuple[str | None, str | None]:
    """The texts of the least and greatest value of one published cell."""
    cell, tree = column.cells[i], attribute.hierarchy
    if not schema.is_value(cell) and cell != schema.render.suppressed:
        return None, None
    if tree is not None and (
        cell != schema.render.suppressed or tree.node_of_label(cell) == tree.root
    ):
        node = tree.node_of_label(cell)
        return tree.labels[int(tree.first[node])], tree.labels[int(tree.last[node])]
    if cell == schema.render.suppressed:
        present = [
            text
            for text in {*column.cells, *new.to_list()}
            if text is not None and schema.is_value(text)
        ]
        # no value and some value: nothing narrower than the mark covers both
        return None, _a_value(attribute, present)
    if column.lo[i] == column.hi[i]:
        return cell, cell
    if attribute.order is not None:
        return attribute.order[int(column.lo[i])], attribute.order[int(column.hi[i])]
    head, middle, tail = schema.render.parts
    lo, hi = cell[len(head) : len(cell) - len(tail)].split(middle)
    return lo.strip(), hi.strip()


def _a_value(attribute: Attribute, present: list[str]) -> str:
    if attribute.domain is not None:
        return str(attribute.domain[0])
    return attribute.order[0] if attribute.order is not None else min(present)
