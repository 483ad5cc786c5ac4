"""From a bound table to the frame that would be published: classes or cut, recoding, order."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from shoal.algorithms.steps.repair import repair
from shoal.binding.table import BoundTable
from shoal.data.classes import Classes
from shoal.data.cut import Cut
from shoal.data.matrix import Matrix
from shoal.data.partition import Partition
from shoal.data.progress import Progress, no_progress
from shoal.data.recoding import GlobalRecoding, Recoding
from shoal.data.schema import Role
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.errors import InfeasibleError
from shoal.jobs.publish.pseudonyms import pseudonyms
from shoal.policy import registry
from shoal.policy.policy import Policy
from shoal.privacy.promises import BoundPromises, nearest_feasible


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
            partition = method.partition(matrix, bound, rng)
            if len(partition.labels) != matrix.records:
                raise ValueError("a label for each record")
            classes = repair(matrix, partition, bound)
    return classes, time.process_time() - started


@dataclass(frozen=True)
class Recoded:
    """The published frame, and what the owner knows about its rows."""

    frame: pl.DataFrame
    truth: Truth


def recode(
    table: Table, bound: BoundTable, classes: Partition | Cut | GlobalRecoding, policy: Policy
) -> Recoded:
    """The release as it would be published, shuffled where the policy says so."""
    recoding = _of_whole_table(classes, bound)
    suppressed = recoding.suppressed
    withheld = _must_withhold(policy.build_promises(), bound.whole_table, suppressed)
    frame = _recoded(table, bound, recoding, withheld)
    rows = None
    if bound.schema.render.order != "input":
        rows = shuffled_order(frame, policy.model.seed)
        frame = frame[rows]
    return Recoded(frame, Truth(table, bound.encoded, rows, suppressed))


def _of_whole_table(
    classes: Partition | Cut | GlobalRecoding, bound: BoundTable
) -> Recoding | GlobalRecoding:
    """What was found for the records that have all values, carried to the whole table."""
    if isinstance(classes, GlobalRecoding):
        return classes
    encoded = bound.encoded
    of_record = np.full(encoded.records, -1, dtype=np.int32)
    if isinstance(classes, Cut):
        of_record[~encoded.suppressed] = classes.round_of_record()
        return GlobalRecoding.of(classes, of_record, encoded.attributes, bound.schema.render)
    of_record[~encoded.suppressed] = classes.labels
    return Recoding.of(of_record, classes.count, encoded.attributes)


def _must_withhold(promises: list[Any], classes: Classes, suppressed: np.ndarray) -> bool:
    """Whether the suppressed records must hide their sensitive values, too.

    Who lies in no published class is known to be among the suppressed; they are safe only if they
    keep the promises as a class of their own.
    """
    if not suppressed.any():
        return False
    labels = np.where(suppressed, 0, -1).astype(np.int32)
    return not BoundPromises(promises, classes).holds(labels, 1)[0]


def _recoded(
    table: Table, bound: BoundTable, recoding: Recoding | GlobalRecoding, withheld: bool
) -> pl.DataFrame:
    """The published columns, in the order of the input."""
    attributes, render = bound.encoded.attributes, bound.schema.render
    index = {encoded.attribute.name: j for j, encoded in enumerate(attributes)}
    columns = []
    for attribute in bound.schema.published:
        name = attribute.name
        if attribute.role is Role.IDENTIFIER:
            columns.append(pseudonyms(table.frame[name]))
        elif attribute.role is Role.QUASI:
            columns.append(recoding.column(index[name], attributes[index[name]], render))
        elif attribute.role is Role.SENSITIVE and withheld:
            columns.append(
                suppress_cells(table.frame[name], recoding.suppressed, render.suppressed)
            )
        else:
            columns.append(table.frame[name])
    return pl.DataFrame(columns)


def shuffled_order(frame: pl.DataFrame, seed: int) -> np.ndarray:
    """An order of the rows that follows from what they show: the published seed can't undo it."""
    return _by_content(frame)[np.random.default_rng([seed, 1]).permutation(frame.height)]


def _by_content(frame: pl.DataFrame) -> np.ndarray:
    """Rows in the order of what they show as text; equal rows are in any order."""
    text = frame.select(pl.all().cast(pl.String))
    return text.select(pl.arg_sort_by(text.columns)).to_series().to_numpy()


def suppress_cells(series: pl.Series, rows: np.ndarray, mark: str) -> pl.Series:
    """The column without the values of these rows: the mark in text, null in other types."""
    if series.dtype in (pl.Categorical, pl.Enum):
        series = series.cast(pl.String)
    star = pl.Series([mark if series.dtype == pl.String else None], dtype=series.dtype)
    return series.zip_with(~pl.Series(rows), star.new_from_index(0, len(series)))
