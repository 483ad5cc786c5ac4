"""From a bound table to the frame that would be published: classes or cut, cells, order."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from shoal.data.classes import Classes
from shoal.data.cut import Cut
from shoal.data.matrix import Matrix
from shoal.data.partition import Partition
from shoal.data.progress import Progress, no_progress
from shoal.data.recoding import GlobalRecoding
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.errors import InfeasibleError
from shoal.policy import registry
from shoal.policy.binding.table import BoundTable
from shoal.policy.policy import Policy
from shoal.privacy.promises import BoundPromises, nearest_feasible
from shoal.protocols import SearchingPartitioner
from shoal.recoding.starring import Starring, cells_of
from shoal.search.repair import repair


def ordered(table: Table, policy: Policy) -> Table:
    """The table as methods see it: in its own order, or by content if the release is shuffled."""
    if policy.render.order == "input":
        return table
    # ties are broken by what records hold, so that nothing of the input's order is left
    return Table(table.frame[by_content(table.frame)])


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
            if isinstance(method, SearchingPartitioner):  # which says how far it is
                partition = method.search(matrix, bound, rng, progress)
            else:
                partition = method.partition(matrix, bound, rng)
            if len(partition.labels) != matrix.records:
                raise ValueError("a label for each record")
            classes = replace(
                repair(matrix, partition, bound), search_statistics=partition.search_statistics
            )
    return classes, time.process_time() - started


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
    merging: bool = True,
    typed: bool = True,
    withheld: bool = False,
) -> Recoded:
    """The release as it would be published, shuffled where the policy says so.

    Records that show the mark in every quasi-identifier are one class for its readers, whatever
    made them; `Starring` sees to it that they keep every promise. Raises InfeasibleError where no
    record shows more and a promise fails, for then nothing is left to hide among.
    judged: False where rows are still to be added. merging: False where classes have to stay as
    they are. typed: whether what is hidden is missing in columns that are not text; else they
    become text, and it is the mark. withheld: such records show no sensitive value in any case.
    """
    frame = cells_of(table, bound, classes)
    if judged:
        frame = Starring(table, bound, policy, typed, withheld).judged(
            frame, classes if merging and isinstance(classes, Partition) else None
        )
    rows = None
    if bound.schema.render.order != "input":
        # by what is shown now: an order by hidden values would tell them
        rows = shuffled_order(frame, policy.model.seed)
        frame = frame[rows]
    return Recoded(frame, Truth(table, bound.encoded, rows))


def shuffled_order(frame: pl.DataFrame, seed: int) -> np.ndarray:
    """An order of the rows that follows from what they show: the published seed can't undo it."""
    return by_content(frame)[np.random.default_rng([seed, 1]).permutation(frame.height)]


def by_content(frame: pl.DataFrame) -> np.ndarray:
    """Rows in the order of what they show as text; equal rows are in any order."""
    text = frame.select(pl.all().cast(pl.String))
    return text.select(pl.arg_sort_by(text.columns)).to_series().to_numpy()
