"""From a bound table to the frame that would be published: classes or cut, cells, order."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from shoal.algorithms.steps.repair import repair
from shoal.binding.table import BoundTable
from shoal.data.classes import Classes
from shoal.data.cut import Cut
from shoal.data.matrix import Matrix
from shoal.data.partition import Partition
from shoal.data.progress import Progress, no_progress
from shoal.data.recoding import GlobalRecoding
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.errors import InfeasibleError
from shoal.jobs.audit.promises import promise_reports
from shoal.jobs.audit.reading import read_release
from shoal.jobs.publish.boxes import Boxes
from shoal.policy import registry
from shoal.policy.policy import Policy
from shoal.privacy.promises import BoundPromises, nearest_feasible
from shoal.protocols import Partitioner, Promises, SearchingPartitioner


def ordered(table: Table, policy: Policy) -> Table:
    """The table as methods see it: in its own order, or by content if the release is shuffled."""
    if policy.model.render.order == "input":
        return table
    # ties are broken by what records hold, so that nothing of the input's order is left
    return Table(table.frame[_by_content(table.frame)])


def find_classes(
    matrix: Matrix, whole_table: Classes, policy: Policy, progress: Progress = no_progress
) -> tuple[Partition | Cut, float]:
    """The classes, every promise kept, and the CPU seconds it took.

    A method that recodes globally finds a cut, which tells the classes. Raises InfeasibleError
    where no classes keep the promises.
    """
    promises = policy.build_promises()
    method = policy.build_method("publish")
    recodes_globally = callable(getattr(method, "cut", None))
    if recodes_globally:
        policy.require_promised(matrix.names)
    people = {name: len(codes) for name, codes in matrix.populations.items()}
    findings = nearest_feasible(promises, whole_table, people)
    if findings:
        raise InfeasibleError(findings[0], findings[1:])
    bound = BoundPromises(promises, whole_table)
    rng = np.random.default_rng(policy.model.seed)
    started = time.process_time()
    classes: Partition | Cut
    with registry.blaming_plug_in(policy.method_name, "publish"):
        if recodes_globally:
            classes = method.cut(matrix, bound, rng, progress)
        else:
            partition = _partition(method, matrix, bound, rng, progress)
            if len(partition.labels) != matrix.records:
                raise ValueError("a label for each record")
            classes = replace(
                repair(matrix, partition, bound), search_statistics=partition.search_statistics
            )
    return classes, time.process_time() - started


def _partition(
    method: Partitioner,
    matrix: Matrix,
    promises: Promises,
    rng: np.random.Generator,
    progress: Progress,
) -> Partition:
    """The classes of a method of local recoding; one that searches says how far it is."""
    if isinstance(method, SearchingPartitioner):
        return method.search(matrix, promises, rng, progress)
    return method.partition(matrix, promises, rng)


@dataclass(frozen=True)
class Recoded:
    """The published frame, and what the owner knows about its rows."""

    frame: pl.DataFrame
    truth: Truth


def recode(
    table: Table,
    bound: BoundTable,
    classes: Partition | Cut | GlobalRecoding,
    policy: Policy,
    *,
    judged: bool = True,
    typed: bool = True,
) -> Recoded:
    """The release as it would be published, shuffled where the policy says so.

    Records that show the mark in every quasi-identifier are one class for its readers, whatever
    made them. If a promise fails with them as a class, they show no sensitive value either. Raises
    InfeasibleError where no record shows more, for then nothing is left to hide among.
    judged: False where rows are still to be added. typed: whether what is hidden is no value in
    columns that are not text; else they become text, and it is the mark.
    """
    frame = Boxes().tables(table, bound.encoded, classes, bound.schema)[""]
    if judged:
        frame = _safely_starred(frame, table, bound, policy, typed)
    rows = None
    if bound.schema.render.order != "input":
        # by what is shown now: an order by hidden values would tell them
        rows = shuffled_order(frame, policy.model.seed)
        frame = frame[rows]
    return Recoded(frame, Truth(table, bound.encoded, rows))


def _safely_starred(
    frame: pl.DataFrame, table: Table, bound: BoundTable, policy: Policy, typed: bool
) -> pl.DataFrame:
    """The same, without the sensitive values of starred records if a promise fails with them."""
    schema, mark = bound.schema, bound.schema.render.suppressed
    starred = _starred(frame, [attribute.name for attribute in schema.quasi], mark)
    names = [attribute.name for attribute in schema.sensitive]
    if not starred.any() or not (names or starred.all()):
        return frame
    released = Table(frame)
    release = read_release(released, schema, policy, Truth(table, bound.encoded))
    if all(report["holds"] for report in promise_reports(policy, schema, release, released)):
        return frame
    if starred.all():
        raise InfeasibleError(
            "no quasi-identifier can be shown, and all records as one class break a promise; relax"
            " the promises, or allow fewer records to be suppressed",
            nearest_feasible(policy.build_promises(), bound.whole_table),
        )
    return frame.with_columns(suppress_cells(frame[name], starred, mark, typed) for name in names)


def _starred(frame: pl.DataFrame, quasi: list[str], mark: str) -> np.ndarray:
    """(n,) bool, records that show the mark in every quasi-identifier."""
    starred = np.ones(frame.height, dtype=bool)
    for name in quasi:
        if not starred.any():
            break
        starred &= (frame[name] == mark).fill_null(False).to_numpy()
    return starred


def shuffled_order(frame: pl.DataFrame, seed: int) -> np.ndarray:
    """An order of the rows that follows from what they show: the published seed can't undo it."""
    return _by_content(frame)[np.random.default_rng([seed, 1]).permutation(frame.height)]


def _by_content(frame: pl.DataFrame) -> np.ndarray:
    """Rows in the order of what they show as text; equal rows are in any order."""
    text = frame.select(pl.all().cast(pl.String))
    return text.select(pl.arg_sort_by(text.columns)).to_series().to_numpy()


def suppress_cells(series: pl.Series, rows: np.ndarray, mark: str, typed: bool = True) -> pl.Series:
    """The column without the values of these rows: the mark in text, null in other types."""
    if series.dtype in (pl.Categorical, pl.Enum) or not typed:
        series = series.cast(pl.String)
    star = pl.Series([mark if series.dtype == pl.String else None], dtype=series.dtype)
    return series.zip_with(~pl.Series(rows), star.new_from_index(0, len(series)))
