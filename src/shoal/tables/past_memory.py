"""Publish of a table that does not fit into memory: the bytes that any other publish gives.

read by pieces > codes > columns > classes, cut where the columns lie > written by blocks
> read back by pieces > audited range by range > published
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.description import described, file_metadata
from shoal.auditor.in_parts import measure_in_parts
from shoal.auditor.verdict import require_kept
from shoal.connectors.coded_files import write_blocks
from shoal.connectors.dialect import UTF8
from shoal.connectors.location import Format, Location
from shoal.connectors.release_drafts import FileDraft, FolderDraft, release_draft
from shoal.connectors.spread_files import write_spread
from shoal.connectors.traces import write_trace
from shoal.data import cores
from shoal.data.certificate import Certificate
from shoal.data.classes import Classes
from shoal.data.coded_table import (
    CodedTable,
    Codes,
    Rows,
    ShownColumn,
    as_is,
    block_frames,
    global_columns,
    hidden_where,
    in_order,
    labels_of,
    local_columns,
    of_all,
    of_kept,
)
from shoal.data.formulas import formula_sentences_of
from shoal.data.progress import Progress
from shoal.data.room import Room, blocks, needs_whole
from shoal.data.row_order import RankedColumn, ascending, by_importance, cell_ranks
from shoal.data.schema import Role
from shoal.data.shared_room import SharedRoom
from shoal.data.truth import Truth
from shoal.data.warnings import FORMULA_CELLS, ReleaseWarning
from shoal.errors import InfeasibleError, InputError
from shoal.policy import registry
from shoal.policy.binding.columns import input_warnings
from shoal.policy.binding.files import PolicyTables
from shoal.policy.binding.past_memory import floor, refuse_each, require_memory
from shoal.policy.binding.table import BoundTable, bound_table
from shoal.policy.model import PolicyModel
from shoal.policy.policy import Policy
from shoal.policy.problem import Problem
from shoal.privacy.promises import BoundPromises, CountedRows, nearest_feasible
from shoal.protocols import ColumnPartitioner
from shoal.search.distinct_rows import WORTHWHILE, rows_within
from shoal.tables.draft import BOUNDED, WITHHELD, with_bound
from shoal.tables.request import PublishRequest

ROWS_SHARE, ROW_BYTES = 4, 16
"""The part of the limit that distinct rows may take, and the bytes of each of their codes."""


def publish_coded(
    path: str, policy: Policy, output: str, request: PublishRequest, started: float, room: Room
) -> Certificate:
    """Publishes a file past memory; the certificate of what was written.

    started: the CPU seconds that were spent before.
    """
    progress = request.progress
    _require_writable(output, room)
    kind = Location(output).kind
    if not (kind.is_delimited or kind.is_parquet):
        raise needs_whole(f"'{output}': files of the format {kind[1:]} are written")
    tables = policy.tables
    _require_possible(path, policy)
    source = tables.read_original(path, room)
    assert isinstance(source.table, CodedTable)
    dialect = tables.output_dialect(path, source.dialect, output)
    if dialect.encoding != UTF8:
        raise needs_whole(f"'{output}': text in {dialect.encoding} is written")
    progress("checking the data against the policy")
    table, k = source.table, policy.required_k or 1
    require_memory(table.room.limit or 0, floor(table.records, len(policy.quasi), k))
    _require_restorable(path, table, policy.model)
    draft = prepare_coded(table, bound_table(table, policy), progress, kind.is_typed)
    remarks = input_warnings(source.table, policy.model)
    with release_draft(output, request.replace) as draft_file:
        assert isinstance(draft_file, FileDraft | FolderDraft)
        progress("writing the release")
        columns = _written(draft.columns, tables, kind)
        metadata = file_metadata([column.name for column in columns], draft.problem)
        if isinstance(room, SharedRoom):
            write_spread(columns, draft.records, draft_file.path, metadata, room)
        else:
            frames = block_frames(columns, draft.records)
            write_blocks(
                frames, draft_file.path, kind, draft_file.name.is_packed, dialect, metadata
            )
            del frames
        del columns
        draft.columns.clear()  # classes and cells are not needed to read what was written
        progress("reading the release back")
        back = tables.read_draft(draft_file, dialect, room=room)
        assert isinstance(back.table, CodedTable)
        measured = measure_in_parts(back.table, draft.problem, draft.truth, progress)
        certificate = measured.certificate.extended(
            verb="publish",
            method=draft.method,
            seed=draft.problem.seed,
            seconds={"total": time.process_time() - started, "method": draft.seconds},
            scale={"threads": cores.threads(), **measured.scale},
        )
        certificate = described(
            certificate, back.table, measured.figures, draft.problem, draft.truth
        )
        kept = certificate["records"]["out"] - certificate["records"]["withheld"]
        everyone = Classes(np.broadcast_to(np.int32(0), kept), 1)
        if draft.method["name"] == BOUNDED:
            certificate = with_bound(certificate, draft.problem, everyone)
        certificate = certificate.extended(
            input={"sha256": source.sha256},
            output=draft_file.described(
                back.sha256, draft.problem.schema.render, dialect, draft.problem.notation
            ),
        )
        formulas = formula_sentences_of(back.table) if kind.is_delimited else ()
        of_formulas = [ReleaseWarning(FORMULA_CELLS, sentence) for sentence in formulas]
        certificate = certificate.warned(*remarks, *of_formulas)
        require_kept(
            certificate, WITHHELD, request.require_together or policy.model.require_together
        )
        if request.trace is not None:  # whose row is whose, for the owner alone
            write_trace(draft.truth.trace, request.trace)
        draft_file.certify(certificate.to_json())
    return certificate


def _require_writable(path: str, room: Room) -> None:
    """Raises InputError where a release past memory can't go to this place."""
    is_folder = Location(path).is_folder
    if isinstance(room, SharedRoom) and not is_folder:
        raise InputError(
            f"engine: '{path}' is one file, and tasks write one each; end its name with / for a"
            " folder of Parquet files, or leave out --engine"
        )
    if is_folder and not isinstance(room, SharedRoom):
        raise needs_whole("a folder is written")


@dataclass(frozen=True)
class CodedDraft:
    """What would be published: as `RecodedDraft`, column by column instead of a frame."""

    columns: list[ShownColumn]
    records: int
    problem: Problem
    truth: Truth
    method: dict[str, Any]
    seconds: float


def prepare_coded(
    table: CodedTable, bound: BoundTable, progress: Progress, typed: bool
) -> CodedDraft:
    """The release as it would be published; raises InputError with what needs a whole table."""
    method = _method_of(bound)
    if isinstance(method, ColumnPartitioner):
        k, quasi = bound.asked.required_k or 1, len(bound.schema.quasi)
        needed = floor(table.records, quasi, k, method.column_bytes)
        require_memory(table.room.limit or 0, needed)
        classes = _local(bound, table, method, progress)
    else:
        classes = _global(bound, table, method, progress)
    progress("recoding")
    records = table.records
    starred, count = _starred(classes.shown, records)
    shown = {column.name: column for column in classes.shown}
    hides = _hides(bound, count, records)
    mark = bound.schema.render.suppressed
    for attribute in bound.schema.published:
        if attribute.role is not Role.QUASI:
            column = as_is(table.column(attribute.name), table.cells(attribute.name))
            if hides and attribute.role is Role.SENSITIVE:
                is_text = table.is_text(attribute.name) or not typed
                column = hidden_where(column, starred, mark if is_text else None, records)
            shown[attribute.name] = column
    columns = [shown[attribute.name] for attribute in bound.schema.published]
    rows = None
    if bound.schema.render.order != "input":
        rows = _order(columns, bound, table)
        columns = [in_order(column, rows) for column in columns]
    return CodedDraft(
        columns,
        records,
        bound.asked,
        Truth(table, bound.encoded, rows),
        {**bound.problem.stated_method(), **classes.stated},
        classes.seconds,
    )


def _require_possible(path: str, policy: Policy) -> None:
    """Raises InputError with all that the policy asks for and only a whole table allows."""
    findings = [
        f"promise '{promise.model}' is asked of every cut"
        for promise in policy.build_promises()
        if promise.model != "k-anonymity"
    ]
    for name, attribute in policy.model.attributes.items():
        if attribute.pseudonym is not None:
            findings.append(f"attribute '{name}': pseudonyms are drawn for all people")
        if attribute.render != "range":
            findings.append(f"attribute '{name}': means are taken of all values")
    method = policy.build_method("publish")
    needs = _unfit(policy.method_name, _why_whole(method, sys.maxsize))
    refuse_each([*needs, *(f"{each}, which needs" for each in findings)], path)


def _require_restorable(path: str, table: CodedTable, model: PolicyModel) -> None:
    """Raises InputError with each column whose cells would be written otherwise than they are."""
    findings = [
        f"attribute '{name}': its cells would not be written as they are, which needs"
        for name, attribute in model.attributes.items()
        if attribute.role in ("sensitive", "plain")
        and name in table
        and not table.is_restorable(name)
    ]
    refuse_each(findings, path)


def _method_of(bound: BoundTable) -> Any:
    """The policy's method; raises InputError where it needs more than columns in files."""
    method, name = bound.problem.build_method(), bound.problem.method_name
    if not bound.schema.quasi:
        raise InputError(f"method '{name}': the policy has no quasi-identifier to partition on")
    why = _why_whole(method, bound.encoded.records)
    if not why and bound.encoded.subjects is not None:
        raise InputError(
            "memory: people who have several records are counted in the whole table, whatever the"
            " method; publish one record of each, or leave out --memory"
        )
    refuse_each(_unfit(name, why))
    return method


def _why_whole(method: Any, records: int) -> str:
    """What a method does that needs more than columns in files, if anything."""
    if isinstance(method, ColumnPartitioner):
        return method.only_in_memory(records)
    takes_counts = getattr(getattr(method, "cut", None), "takes_counts", False)
    return "" if takes_counts else "holds all records"


def _unfit(name: str, why: str) -> list[str]:
    """The finding that a method needs a whole table; none without a reason why."""
    others = "unlike rounded-partition with refine: none, mondrian or full-domain"
    return [f"method '{name}' {why}, which, {others}, needs"] if why else []


@dataclass(frozen=True)
class _Classes:
    """What records show in the quasi-identifiers. stated: what a certificate says of the search."""

    shown: list[ShownColumn]
    seconds: float
    stated: dict[str, Any] = field(default_factory=dict)


def _require_feasible(models: Sequence[Any], records: int, k: int) -> Classes:
    """Some of the records in one class; raises InfeasibleError where there are too few."""
    # of how many there are more than k, nothing is asked
    some = Classes(np.zeros(min(records, k + 1), dtype=np.int32), 1)
    InfeasibleError.raise_for(nearest_feasible(models, some))
    return some


def _global(bound: BoundTable, table: CodedTable, method: Any, progress: Progress) -> _Classes:
    """By a method that recodes globally, on distinct rows with counts."""
    problem, encoded, room = bound.problem, bound.encoded, table.room
    problem.require_promised([one.attribute.name for one in encoded.attributes])
    models = problem.promises
    columns = encoded.columns(room, 0)
    records = columns.shape[1]
    _require_feasible(models, records, problem.required_k or 1)
    label = None
    if method.cut.minds_labels and bound.label is not None:
        label = of_kept(bound.label, encoded.suppressed, records, room)
    fitting = (room.limit or 0) // ROWS_SHARE // (ROW_BYTES * (len(columns) + 4))
    most = min(fitting, records // WORTHWHILE)
    first, count, row_of = rows_within(columns, label, most, room)
    if records and not len(first):
        raise InputError(
            f"memory: the table has more than {most} different rows, which method"
            f" '{problem.method_name}' holds; allow more, or take rounded-partition"
        )
    matrix = replace(
        encoded.costs_alone(),
        codes=np.ascontiguousarray(columns[:-1, first].T),
        label=None if label is None else label[first],
        count=count,
    )
    del columns
    promises = CountedRows(models, Classes(np.zeros(len(first), dtype=np.int32), 1))
    progress(f"finding classes by {problem.method_name}")
    started = time.process_time()
    with registry.blaming_plug_in(problem.method_name, "publish"):
        cut = method.cut(matrix, promises, np.random.default_rng(problem.seed), progress)
    rounds_of_row = cut.round_of_record().astype(np.int8)
    rounds = of_all(room.gather(rounds_of_row, row_of), encoded.suppressed, room)
    seconds = time.process_time() - started
    shown = list(global_columns(cut, rounds, encoded, bound.schema.render))
    return _Classes(shown, seconds, {"search_statistics": dict(cut.search_statistics)})


def _local(
    bound: BoundTable, table: CodedTable, method: ColumnPartitioner, progress: Progress
) -> _Classes:
    """By a method of local recoding, on columns that may lie in files."""
    problem, encoded, room = bound.problem, bound.encoded, table.room
    matrix = encoded.costs_alone()
    columns = encoded.columns(room, method.spare_columns(matrix))
    k = problem.required_k or 1
    promises = problem.promises
    some = _require_feasible(promises, columns.shape[1], k)
    progress(f"finding classes by {problem.method_name}")
    started = time.process_time()
    starts = method.cut_columns(columns, matrix, BoundPromises(promises, some), room)
    assert int(np.diff(starts).min()) >= k, "the method made a class of fewer than k records"
    labels = of_all(labels_of(columns[-1], starts, room), encoded.suppressed, room)
    seconds = time.process_time() - started
    render = bound.schema.render
    shown = list(local_columns(columns, starts, labels, encoded, render, room))
    return _Classes(shown, seconds)


def _order(columns: list[ShownColumn], bound: BoundTable, table: CodedTable) -> np.ndarray:
    """The published order of rows whose columns may lie in files."""
    by_name = {column.name: column for column in columns}
    ranked = [
        RankedColumn(by_name[name].codes, cell_ranks(by_name[name].cells, bound.schema.render))
        for name in by_importance(list(by_name), bound.asked.quasi)
    ]
    return ascending(ranked, table.records, table.room)


def _starred(shown: list[ShownColumn], records: int) -> tuple[Codes, int]:
    """Which records of a block show the mark in every quasi-identifier, and how many do in all."""

    starred = partial(_all_suppressed, shown)
    if any(column.suppressed < 0 for column in shown):
        return starred, 0
    return starred, sum(int(np.count_nonzero(starred(rows))) for rows in blocks(records))


def _all_suppressed(shown: list[ShownColumn], rows: Rows) -> np.ndarray:
    found: np.ndarray = np.logical_and.reduce([column.is_suppressed(rows) for column in shown])
    return found


def _hides(bound: BoundTable, starred: int, records: int) -> bool:
    """Whether starred records show no sensitive value, as they break a promise where they do.

    Raises InputError where only the whole table tells.
    """
    asked = bound.problem.promises
    if not starred or (not bound.schema.sensitive and starred < records):
        return False
    if all(starred >= promise.k for promise in asked):
        return False
    if starred == records:
        raise InfeasibleError(
            "no quasi-identifier can be shown, and all records as one class break a promise;"
            " relax the promises, or allow fewer records to be suppressed"
        )
    if any(promise.attributes for promise in asked):
        raise InputError(
            "memory: fewer records than k show nothing, and promises cover some columns only,"
            " which needs the whole table in memory; leave out --memory"
        )
    return True


def _written(columns: list[ShownColumn], tables: PolicyTables, kind: Format) -> list[ShownColumn]:
    """The columns as they are written in files of a kind."""
    found = []
    for column in columns:
        cells = tables.written_frame(pl.DataFrame([column.cells.alias(column.name)]), kind)
        found.append(replace(column, cells=cells[column.name]))
    return found
