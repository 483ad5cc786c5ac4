"""New records placed in published classes, whose boxes grow to cover them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from shoal.connectors.ledger import Ledger
from shoal.connectors.ledger.identities import Identities
from shoal.data.ledger_view import LedgerView
from shoal.data.matrix import Matrix
from shoal.data.progress import Progress
from shoal.data.recoding import Recoding
from shoal.data.release import PublishedColumn
from shoal.data.schema import Attribute, Role, Schema
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.ledgers.current_release import CurrentRelease
from shoal.ledgers.increment import CandidateRecords, DeferredRecords
from shoal.ledgers.placing import bound_table, partition_table, place
from shoal.ledgers.planned_release import NO_ROOM, PlannedRelease, row_order
from shoal.policy.binding.table import BoundTable
from shoal.policy.policy import Policy
from shoal.privacy.promises import nearest_feasible


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
    began = time.process_time()
    view = _view_of_boxes(matrix, current)
    placed = place(increment, view, whole_table, policy, method)
    seconds = time.process_time() - began
    kept = placed.labels >= 0
    if not kept.any():
        return candidates.defer(NO_ROOM)
    shown, waiting = candidates, DeferredRecords()
    if not kept.all():
        shown, waiting = candidates.only(kept), candidates.only(~kept).defer(NO_ROOM)
    progress("recoding")
    corners = np.repeat(np.arange(count, dtype=np.int32), 2)
    recoding = Recoding.of(
        np.concatenate([corners, placed.labels]), placed.count, bound.encoded.attributes
    )
    of_rows = replace(recoding, labels=np.concatenate([current.labels, placed.labels]))
    old = current.frame.height
    stays = np.concatenate([np.ones(old, dtype=bool), kept])
    frame = _recoded_table(current, new, of_rows, bound).filter(stays)
    order = row_order(frame, bound.schema, policy.model.seed)
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


def _view_of_boxes(matrix: Matrix, current: CurrentRelease) -> LedgerView:
    """The published boxes, from the corners in front of the matrix."""
    corners = matrix.codes[: 2 * current.classes.count]
    return LedgerView(
        lo=np.minimum(corners[::2], corners[1::2]),
        hi=np.maximum(corners[::2], corners[1::2]),
        people=current.classes.people(),
        partition=partition_table,
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
