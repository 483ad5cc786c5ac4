"""From a bound table to the frame that would be published: classes or cut, the box around each,
cells, order.
"""

import hashlib
import hmac
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl

from shoal.auditor.reading import promise_reports, read_release
from shoal.data.classes import Classes
from shoal.data.encoding import EncodedTable
from shoal.data.partition import Cut, Matrix, Partition
from shoal.data.progress import Progress, no_progress
from shoal.data.recoding import GlobalRecoding, Recoding
from shoal.data.release import is_withheld
from shoal.data.row_order import published_order
from shoal.data.schema import Render, Role, Schema
from shoal.data.table import Table, as_text, cell_texts, encode_text
from shoal.data.truth import Truth
from shoal.errors import InfeasibleError, InputError
from shoal.policy import registry
from shoal.policy.binding.table import BoundTable
from shoal.policy.model import PolicyModel
from shoal.policy.problem import Problem
from shoal.privacy.promises import BoundPromises, infeasible_promises
from shoal.protocols import SearchingPartitioner
from shoal.search.segments import repair


def find_classes(
    matrix: Matrix, whole_table: Classes, problem: Problem, progress: Progress = no_progress
) -> tuple[Partition | Cut, float]:
    """The classes, every promise kept, and the CPU seconds it took.

    A method that recodes globally finds a cut, which tells the classes. Raises InfeasibleError
    where no classes keep the promises.
    """
    promises, method = problem.promises, problem.build_method()
    recodes_globally = callable(getattr(method, "cut", None))
    if recodes_globally:
        problem.require_promised(matrix.names)
    people = {name: len(codes) for name, codes in matrix.populations.items()}
    InfeasibleError.raise_for(infeasible_promises(promises, whole_table, people))
    bound = BoundPromises(promises, whole_table)
    rng = np.random.default_rng(problem.seed)
    started = time.process_time()
    classes: Partition | Cut
    with registry.blaming_plug_in(problem.method_name, "publish"):
        if recodes_globally:
            classes = method.cut(matrix, bound, rng, progress)
        else:
            if isinstance(method, SearchingPartitioner):  # which says how far it is
                partition = method.search(matrix, bound, rng, progress)
            else:
                partition = method.partition(matrix, bound, rng)
            repaired = repair(matrix, Partition.answered(partition, matrix.records), bound)
            classes = replace(partition, labels=repaired.labels, count=repaired.count)
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
    *,
    judged: bool = True,
    merging: bool = True,
    typed: bool = True,
    withheld: bool = False,
) -> Recoded:
    """The release as it would be published, its rows in the order that the policy says.

    Records that show the mark in every quasi-identifier are one class for its readers, whatever
    made them; `Starring` sees to it that they keep every promise. Raises InfeasibleError where no
    record shows more and a promise fails, for then nothing is left to hide among.
    judged: False where rows are still to be added. merging: False where classes have to stay as
    they are. typed: whether what is hidden is missing in columns that are not text; else they
    become text, and it is the mark. withheld: such records show no sensitive value in any case.
    """
    frame = cells_of(table, bound, classes)
    if judged:
        frame = Starring(table, bound, typed, withheld).judged(
            frame, classes if merging and isinstance(classes, Partition) else None
        )
    rows = None
    if bound.schema.render.order != "input":
        # by what is shown now: an order by hidden values would tell them
        labels = None
        if isinstance(classes, Partition):
            labels = bound.encoded.of_all(classes.labels)
        rows = published_order(frame, bound.asked.quasi, bound.schema.render, table, labels)
        frame = frame[rows]
    return Recoded(frame, Truth(table, bound.encoded, rows))


# Records that show the mark in every quasi-identifier: one class, whatever made them.


NOTHING_SHOWN = (
    "no quasi-identifier can be shown, and all records as one class break a promise; relax the"
    " promises, or allow fewer records to be suppressed"
)


def cells_of(
    table: Table, bound: BoundTable, classes: Partition | Cut | GlobalRecoding
) -> pl.DataFrame:
    """What classes or a cut show of every record, in the order of the table."""
    return Boxes().tables(table, bound.encoded, classes, bound.schema)[""]


@dataclass(frozen=True)
class Starring:
    """What starred records of one table may show.

    typed: whether what is hidden is missing in columns that are not text; else they become text,
    and it is the mark. withheld: whether they show no sensitive value in any case.
    """

    table: Table
    bound: BoundTable
    typed: bool
    withheld: bool = False

    def judged(self, frame: pl.DataFrame, classes: Partition | None) -> pl.DataFrame:
        """The frame, every promise kept as its readers find it.

        classes: those that it shows, if they may be merged.

        If a promise fails with the starred records as a class, they show no sensitive value either.
        Then they are in no class, and a promise about the release as a whole, or one that compares
        with the table, may have held by them alone: so more classes are merged until it holds.
        """
        frame = self._safely_starred(frame)
        if classes is None or not self._is_about_the_whole():
            return frame
        while classes.count > 1:
            starred = self._starred(frame)
            shown = ~starred[~self.bound.encoded.suppressed]
            if shown.all() or not self._is_withheld(frame, starred) or self._holds(frame):
                break
            classes = self._merged_among(classes, shown)
            frame = self._safely_starred(cells_of(self.table, self.bound, classes))
        return frame

    def _safely_starred(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The frame, without the sensitive values of starred records if a promise fails with
        them, or they are `withheld`.
        """
        starred = self._starred(frame)
        names = self._sensitive
        if not starred.any() or not (names or starred.all()):
            return frame
        if (not self.withheld or starred.all()) and self._holds(frame):
            return frame
        if starred.all():
            found = infeasible_promises(self.bound.asked.promises, self.bound.whole_table)
            raise InfeasibleError(NOTHING_SHOWN, found)
        return frame.with_columns(
            suppress_cells(frame[name], starred, self._mark, self.typed) for name in names
        )

    @property
    def _mark(self) -> str:
        return self.bound.schema.render.suppressed

    @property
    def _sensitive(self) -> list[str]:
        return [attribute.name for attribute in self.bound.schema.sensitive]

    def _is_about_the_whole(self) -> bool:
        """Whether any promise about a class depends on more than that class."""
        return any(
            model.whole_table or model.compares_with_table or not model.monotone
            for model in self.bound.asked.promises
        )

    def _is_withheld(self, frame: pl.DataFrame, starred: np.ndarray) -> bool:
        return is_withheld(Table(frame), self._sensitive, starred, self._mark)

    def _starred(self, frame: pl.DataFrame) -> np.ndarray:
        """(n,) bool, records that show the mark in every quasi-identifier."""
        starred = np.ones(frame.height, dtype=bool)
        for attribute in self.bound.schema.quasi:
            if not starred.any():
                break
            starred &= (frame[attribute.name] == self._mark).fill_null(False).to_numpy()
        return starred

    def _holds(self, frame: pl.DataFrame) -> bool:
        """Whether readers of the frame find every promise kept."""
        released, problem = Table(frame), self.bound.asked
        release = read_release(released, problem, Truth(self.table, self.bound.encoded))
        reports = promise_reports(problem, release, released)
        return all(report["holds"] for report in reports)

    def _merged_among(self, partition: Partition, shown: np.ndarray) -> Partition:
        """Fewer classes, which keep every promise without the records that are not shown; one of
        all, where there are none.
        """
        matrix, whole_table = self.bound.method_input()
        promises = BoundPromises(self.bound.asked.promises, whole_table).restricted_to(shown)
        among = Partition.of(np.where(shown, partition.labels, np.int32(-1)))
        try:
            merged = repair(matrix, among, promises)
        except InfeasibleError:
            merged = among
        if merged.count == among.count:
            return replace(partition, labels=np.zeros_like(partition.labels), count=1)
        fewer = Partition.of(np.where(shown, merged.labels, np.int32(merged.count)))
        return replace(partition, labels=fewer.labels, count=fewer.count)


def suppress_cells(series: pl.Series, rows: np.ndarray, mark: str, typed: bool = True) -> pl.Series:
    """The column without the values of these rows: the mark in text, null in other types."""
    if series.dtype in (pl.Categorical, pl.Enum) or not typed:
        series = cell_texts(series)
    star = pl.Series([mark if series.dtype == pl.String else None], dtype=series.dtype)
    return series.zip_with(~pl.Series(rows), star.new_from_index(0, len(series)))


class Boxes:
    """The renderer of every method so far: a cell covers what the members of its class hold."""

    name: ClassVar[str] = "boxes"

    def tables(
        self,
        table: Table,
        encoded: EncodedTable,
        classes: Partition | Cut | GlobalRecoding,
        schema: Schema,
    ) -> Mapping[str, pl.DataFrame]:
        """One table, rows and columns in the order of the input."""
        recoding = recoding_of_whole_table(classes, encoded, schema.render)
        index = {one.attribute.name: j for j, one in enumerate(encoded.attributes)}
        columns = []
        for attribute in schema.published:
            name = attribute.name
            if attribute.pseudonym is not None:
                columns.append(pseudonyms(table.series(name)))
            elif attribute.role is Role.QUASI:
                j = index[name]
                columns.append(recoding.column(j, encoded.attributes[j], schema.render))
            else:
                columns.append(table.series(name))
        return {"": pl.DataFrame(columns)}


def recoding_of_whole_table(
    classes: Partition | Cut | GlobalRecoding, encoded: EncodedTable, render: Render
) -> Recoding | GlobalRecoding:
    """What was found for the records that have all values, carried to the whole table."""
    if isinstance(classes, GlobalRecoding):
        return classes
    if isinstance(classes, Cut):
        of_record = encoded.of_all(classes.round_of_record())
        return GlobalRecoding.of(classes, of_record, encoded.attributes, render)
    recoding = Recoding.of(encoded.of_all(classes.labels), classes.count, encoded.attributes)
    return replace(recoding, has_stars=classes.has_stars)


# Keyed pseudonyms for direct identifiers.


KEY_VARIABLE = "SHOAL_PSEUDONYM_KEY"


def keyed_columns(model: PolicyModel) -> list[str]:
    """What a policy publishes by pseudonyms, which need the owner's secret."""
    named = [name for name, own in model.attributes_of_all.items() if own.pseudonym is not None]
    return named + (["keys"] if model.is_linked and model.keys == "keyed" else [])


def require_key(model: PolicyModel) -> bytes:
    """The owner's secret where pseudonyms are asked, else nothing; raises InputError, before data
    are read, where none is set.
    """
    return b"".join(map(_key_for, keyed_columns(model)[:1]))


def _key_for(name: str) -> bytes:
    """The owner's secret, from the environment and never from the policy, which is shared.

    Raises InputError where it is absent or shorter than 16 characters.
    """
    key = os.environ.get(KEY_VARIABLE, "")
    if len(key.strip()) < 16:
        raise InputError(
            f"identifier '{name}': a keyed pseudonym needs a secret; set {KEY_VARIABLE} to"
            " 16 characters or more, not counting blanks around them"
        )
    return key.encode()


def pseudonyms(series: pl.Series, domain: str | None = None) -> pl.Series:
    """32 hexadecimal digits for each identifier: its HMAC-SHA-256 under a key of its domain, which
    is the domain's HMAC under the owner's key.

    domain: what the identifiers name, by default the column's name. Equal identifiers have one
    pseudonym within a domain, and unrelated ones in two. Raises InputError where there is no key.
    """
    named = series.name if domain is None else domain
    key = hmac.digest(_key_for(series.name), named.encode(), hashlib.sha256)
    column = encode_text(as_text(series).alias(series.name))
    tokens = [hmac.digest(key, cell.encode(), hashlib.sha256).hex()[:32] for cell in column.cells]
    return pl.Series(series.name, tokens).gather(column.codes)
