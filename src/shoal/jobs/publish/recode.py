"""From a bound table to the frame that would be published: classes or cut, recoding, order of the
rows.
"""

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
from shoal.data.encoding import EncodedTable
from shoal.data.matrix import Matrix
from shoal.data.partition import Partition
from shoal.data.progress import Progress, no_progress
from shoal.data.recoding import GlobalRecoding, Recoding
from shoal.data.schema import Render, Role, Schema
from shoal.data.table import Table
from shoal.errors import InfeasibleError, InputError
from shoal.jobs.audit.truth import Truth
from shoal.jobs.publish.pseudonyms import pseudonyms
from shoal.policy.policy import Policy
from shoal.privacy.promises import BoundPromises, nearest_feasible


def ordered(table: Table, policy: Policy) -> Table:
    """The table as methods see it: as it came, or by content where the release is to be shuffled."""
    if policy.model.render.order == "input":
        return table
    # ties are broken by what records hold, so that nothing of the input's order is left
    return Table(table.frame[_by_content(table.frame)])


def find_classes(
    matrix: Matrix, whole_table: Classes, policy: Policy, progress: Progress = no_progress
) -> tuple[Partition | Cut, float]:
    """The classes, every promise kept, and the CPU seconds it took; raises InfeasibleError where
    there are none.

    A method that recodes globally finds a cut, which tells the classes.
    """
    promises = policy.build_promises()
    findings = nearest_feasible(
        promises, whole_table, {name: len(codes) for name, codes in matrix.populations.items()}
    )
    if findings:
        raise InfeasibleError(findings[0], findings[1:])
    bound = BoundPromises(promises, whole_table)
    method, rng = policy.build_method("publish"), np.random.default_rng(policy.model.seed)
    started = time.process_time()
    found: Partition | Cut
    if callable(getattr(method, "cut", None)):
        _require_covered(promises, matrix)
        found = method.cut(matrix, bound, rng, progress)
    else:
        found = repair(matrix, method.partition(matrix, bound, rng), bound)
    return found, time.process_time() - started


def _require_covered(promises: list[Any], matrix: Matrix) -> None:
    """Raises InputError where some quasi-identifier is in no promise: a cut would publish it as it
    is.
    """
    if any(promise.model != "k-anonymity" or not promise.attributes for promise in promises):
        return
    covered = {name for promise in promises for name in promise.attributes}
    left = [name for name in matrix.names if name not in covered]
    if left:
        raise InputError.from_findings(
            [
                f"attribute '{name}': is a quasi-identifier and in no k-anonymity promise, so it"
                " would be published as it is; add it to a promise, or give it the role 'plain'"
                for name in left
            ]
        )


@dataclass(frozen=True)
class Recoded:
    """The published frame, and what the owner knows about its rows."""

    frame: pl.DataFrame
    truth: Truth


def recode(
    table: Table, fitting: BoundTable, found: Partition | Cut | GlobalRecoding, policy: Policy
) -> Recoded:
    """The release as it would be published, shuffled where the policy says so."""
    encoded = fitting.encoded
    recoding = _recoding(found, encoded, fitting.schema.render)
    suppressed = recoding.suppressed
    withheld = _must_withhold(policy.build_promises(), fitting.whole_table, suppressed)
    frame = _recoded(table, fitting.schema, encoded, recoding, withheld)
    if fitting.schema.render.order == "input":
        return Recoded(frame, Truth(table, encoded, None, suppressed))
    rows = mixed(frame, policy.model.seed)
    return Recoded(frame[rows], Truth(table, encoded, rows, suppressed))


def _recoding(
    found: Partition | Cut | GlobalRecoding, encoded: EncodedTable, render: Render
) -> Recoding | GlobalRecoding:
    """What was found for the records that have all values, carried to the whole table."""
    if isinstance(found, GlobalRecoding):
        return found
    of_record = np.full(encoded.records, -1, dtype=np.int32)
    if isinstance(found, Cut):
        of_record[~encoded.suppressed] = found.round_of_record()
        return GlobalRecoding.of(found, of_record, encoded.attributes, render)
    of_record[~encoded.suppressed] = found.labels
    return Recoding.of(of_record, found.count, encoded.attributes)


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
    table: Table,
    schema: Schema,
    encoded: EncodedTable,
    recoding: Recoding | GlobalRecoding,
    withheld: bool,
) -> pl.DataFrame:
    """The published columns, in the order of the input."""
    place = {e.attribute.name: j for j, e in enumerate(encoded.attributes)}
    columns = []
    for attribute in schema.published:
        if attribute.role is Role.QUASI:
            j = place[attribute.name]
            columns.append(recoding.column(j, encoded.attributes[j], schema.render))
        elif attribute.role is Role.IDENTIFIER:
            columns.append(pseudonyms(table.frame[attribute.name]))
        elif attribute.role is Role.SENSITIVE and withheld:
            columns.append(
                _starred(table.frame[attribute.name], recoding.suppressed, schema.render.suppressed)
            )
        else:
            columns.append(table.frame[attribute.name])
    return pl.DataFrame(columns)


def mixed(frame: pl.DataFrame, seed: int) -> np.ndarray:
    """An order of the rows that follows from what they show alone: the seed, which is published,
    does not undo it.
    """
    return _by_content(frame)[np.random.default_rng([seed, 1]).permutation(frame.height)]


def _by_content(frame: pl.DataFrame) -> np.ndarray:
    """Rows in the order of what they show as text; which of several equal rows comes first shows
    nowhere.
    """
    text = frame.select(pl.all().cast(pl.String))
    return text.select(pl.arg_sort_by(text.columns)).to_series().to_numpy()


def _starred(series: pl.Series, rows: np.ndarray, mark: str) -> pl.Series:
    """The column without the values of these rows: the mark in text, no value in other types."""
    if series.dtype in (pl.Categorical, pl.Enum):
        series = series.cast(pl.String)
    star = pl.Series([mark if series.dtype == pl.String else None], dtype=series.dtype)
    return series.zip_with(~pl.Series(rows), star.new_from_index(0, len(series)))
