"""How a table that does not fit into memory is recoded and written, as any other would be.

codes > columns > classes, cut where the columns lie > cells > written by blocks
"""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.auditor.description import file_metadata
from shoal.connectors.coded_files import write_blocks, write_spread
from shoal.connectors.dialect import UTF8, Dialect
from shoal.connectors.location import Location
from shoal.connectors.release_drafts import ReleaseDraft
from shoal.data import coded_table
from shoal.data.classes import Classes
from shoal.data.coded_table import CodedTable, Codes, Rows, ShownColumn, ShownTable
from shoal.data.partition import Partition
from shoal.data.progress import Progress
from shoal.data.room import Room, SharedRoom, blocks, needs_whole
from shoal.data.row_order import RankedColumn, ascending, by_importance, cell_ranks
from shoal.data.schema import Role
from shoal.data.truth import Truth
from shoal.errors import InfeasibleError, InputError
from shoal.policy import registry
from shoal.policy.binding.files import PolicyTables
from shoal.policy.binding.past_memory import JOINED_BYTES, enough_for, floor, require_memory
from shoal.policy.binding.table import BoundTable, bound_table
from shoal.policy.policy import Policy
from shoal.policy.problem import Problem
from shoal.privacy.promises import BoundPromises, CountedRows, infeasible_promises
from shoal.protocols import ColumnPartitioner
from shoal.recoding.recode import NOTHING_SHOWN
from shoal.search.large_tables import WORTHWHILE, rows_within
from shoal.tables.draft import RecodedDraft

ROWS_SHARE, ROW_BYTES = 4, 16
"""The part of the limit that distinct rows may take, and the bytes of each of their codes."""


def require_writable(path: str, room: Room) -> None:
    """Raises InputError where a release past memory can't go to this place."""
    is_folder, kind = Location(path).is_folder, Location(path).kind_to_write
    if isinstance(room, SharedRoom) and not is_folder:
        raise InputError(
            f"engine: '{path}' is one file, and tasks write one each; end its name with / for a"
            " folder of Parquet files, or leave out --engine"
        )
    if is_folder and not isinstance(room, SharedRoom):
        raise needs_whole("a folder is written")
    if not kind.fits_past_memory:
        raise needs_whole(f"'{path}': files of the format {kind[1:]} are written")


def prepare_coded(
    table: CodedTable, policy: Policy, dialect: Dialect, progress: Progress, typed: bool
) -> RecodedDraft:
    """The release as it would be published; raises InputError with what needs a whole table."""
    limit, quasi, k = table.room.limit or 0, len(policy.quasi), policy.required_k or 1
    require_memory(limit, floor(table.records, quasi, k))
    _require_written(table, policy, dialect)
    bound = bound_table(table, policy)
    if bound.encoded.sample is not None:
        require_memory(limit, floor(table.records, quasi, k, JOINED_BYTES))
    method = _method_of(bound)
    if isinstance(method, ColumnPartitioner):
        require_memory(limit, floor(table.records, quasi, k, method.column_bytes))
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
            column = coded_table.as_is(table.column(attribute.name), table.cells(attribute.name))
            if hides and attribute.role is Role.SENSITIVE:
                is_text = table.is_text(attribute.name) or not typed
                column = coded_table.hidden_where(
                    column, starred, mark if is_text else None, records
                )
            shown[attribute.name] = column
    columns = [shown[attribute.name] for attribute in bound.schema.published]
    rows = None
    if bound.schema.render.order != "input":
        rows = _order(columns, bound, table)
        columns = [coded_table.in_order(column, rows) for column in columns]
    return RecodedDraft(
        ShownTable(columns, records),
        bound.asked,
        Truth(table, bound.encoded, rows),
        bound.problem.stated_method(classes.statistics),
        {},
        classes.seconds,
    )


def write_shown(
    shown: ShownTable,
    draft: ReleaseDraft,
    tables: PolicyTables,
    dialect: Dialect,
    problem: Problem,
    room: Room | None,
) -> None:
    """Writes a release, whose columns are not needed to read what was written, and forgets them."""
    kind = draft.name.kind
    metadata = file_metadata([column.name for column in shown.columns], problem)
    for i, column in enumerate(shown.columns):
        cells = tables.written_frame(pl.DataFrame([column.cells.alias(column.name)]), kind)
        shown.columns[i] = replace(column, cells=cells[column.name])
    if isinstance(room, SharedRoom):
        write_spread(shown.columns, shown.records, draft.path, metadata, room)
    else:
        write_blocks(shown.blocks(), draft.path, kind, draft.name.is_packed, dialect, metadata)
    shown.columns.clear()


def require_possible(path: str, policy: Policy) -> None:
    """Raises InputError, before anything is read, with all that needs a whole table."""
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
    findings += _of_method(policy.method_name, policy.build_method("publish"), sys.maxsize)
    if findings:
        raise needs_whole(*findings, enough=enough_for(path))


def _of_method(name: str, method: Any, records: int) -> list[str]:
    """What a method does that needs more than columns in files, if anything."""
    why = "holds all records"
    if isinstance(method, ColumnPartitioner):
        why = method.only_in_memory(records)
    elif getattr(getattr(method, "cut", None), "takes_counts", False):
        why = ""
    others = "rounded-partition with refine: none, mondrian and full-domain do not"
    return [f"method '{name}' {why} ({others})"] if why else []


def _require_written(table: CodedTable, policy: Policy, dialect: Dialect) -> None:
    """Raises InputError with each column whose cells would be written otherwise than they are."""
    findings = [] if dialect.encoding == UTF8 else [f"text is written in {dialect.encoding}"]
    findings += [
        f"attribute '{name}': its cells would not be written as they are"
        for name, attribute in policy.model.attributes.items()
        if attribute.role in ("sensitive", "plain")
        and name in table
        and not table.is_restorable(name)
    ]
    if findings:
        raise needs_whole(*findings)


def _method_of(bound: BoundTable) -> Any:
    """The policy's method; raises InputError where it needs more than columns in files."""
    method, name = bound.problem.build_method(), bound.problem.method_name
    needed = _of_method(name, method, bound.encoded.records)
    if not needed and bound.encoded.subjects is not None:
        raise InputError(
            "memory: people who have several records are counted in the whole table, whatever the"
            " method; publish one record of each, or leave out --memory"
        )
    if needed:
        raise needs_whole(*needed)
    return method


class _Classes(NamedTuple):
    """What records show in the quasi-identifiers. statistics: of the search."""

    shown: list[ShownColumn]
    seconds: float
    statistics: Mapping[str, Any] | None = None


def _require_feasible(models: Sequence[Any], records: int, k: int) -> Classes:
    """Some of the records in one class; raises InfeasibleError where there are too few."""
    # of how many there are more than k, nothing is asked
    some = Classes(np.zeros(min(records, k + 1), dtype=np.int32), 1)
    InfeasibleError.raise_for(infeasible_promises(models, some))
    return some


def _global(bound: BoundTable, table: CodedTable, method: Any, progress: Progress) -> _Classes:
    """By a method that recodes globally, on distinct rows with counts."""
    problem, encoded, room = bound.problem, bound.encoded, table.room
    problem.require_promised([one.attribute.name for one in encoded.attributes])
    models = problem.promises
    label, d, records = None, len(encoded.attributes), encoded.kept_records
    _require_feasible(models, records, problem.required_k or 1)
    if method.cut.minds_labels and bound.label is not None:
        label = coded_table.of_kept(bound.label, encoded.suppressed, records, room)
    columns = encoded.columns(room, int(label is not None))
    if label is not None:
        columns[d] = label
    fitting = (room.limit or 0) // ROWS_SHARE // (ROW_BYTES * (d + 5))
    most = min(fitting, records // WORTHWHILE)
    first, count, row_of = rows_within(columns[:-1], most, room)
    if records and not len(first):
        raise InputError(
            f"memory: the table has more than {most} different rows, which method"
            f" '{problem.method_name}' holds; allow more, or take rounded-partition"
        )
    matrix = replace(
        encoded.costs_alone(),
        codes=np.ascontiguousarray(columns[:d, first].T),
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
    rounds = encoded.of_all(room.gather(rounds_of_row, row_of), room)
    seconds = time.process_time() - started
    shown = list(coded_table.global_columns(cut, rounds, encoded, bound.schema.render, room))
    return _Classes(shown, seconds, cut.search_statistics)


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
    labels = encoded.of_all(Partition.of_runs(columns[-1], starts, room).labels, room)
    seconds = time.process_time() - started
    render = bound.schema.render
    shown = list(coded_table.local_columns(columns, starts, labels, encoded, render, room))
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
        raise InfeasibleError(NOTHING_SHOWN)
    if any(promise.attributes for promise in asked):
        raise needs_whole("fewer records than k show nothing, and promises cover some columns only")
    return True
