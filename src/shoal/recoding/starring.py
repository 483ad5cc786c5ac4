"""Records that show the mark in every quasi-identifier: one class, whatever made them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from shoal.auditor.promises import promise_reports
from shoal.auditor.reading import read_release
from shoal.data.cut import Cut
from shoal.data.partition import Partition
from shoal.data.recoding import GlobalRecoding
from shoal.data.release import is_withheld
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.errors import InfeasibleError
from shoal.policy.binding.table import BoundTable
from shoal.policy.policy import Policy
from shoal.privacy.promises import BoundPromises, nearest_feasible
from shoal.recoding.boxes import Boxes
from shoal.search.repair import repair


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
    policy: Policy
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
        """The same, without the sensitive values of starred records if a promise fails with
        them, or they are `withheld`.
        """
        starred = self._starred(frame)
        names = self._sensitive
        if not starred.any() or not (names or starred.all()):
            return frame
        if (not self.withheld or starred.all()) and self._holds(frame):
            return frame
        if starred.all():
            raise InfeasibleError(
                "no quasi-identifier can be shown, and all records as one class break a promise;"
                " relax the promises, or allow fewer records to be suppressed",
                nearest_feasible(self.policy.build_promises(), self.bound.whole_table),
            )
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
            for model in self.policy.build_promises()
        )

    def _is_withheld(self, frame: pl.DataFrame, starred: np.ndarray) -> bool:
        return is_withheld(frame, self._sensitive, starred, self._mark)

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
        released, schema = Table(frame), self.bound.schema
        truth = Truth(self.table, self.bound.encoded)
        release = read_release(released, schema, self.policy, truth)
        reports = promise_reports(self.policy, schema, release, released)
        return all(report["holds"] for report in reports)

    def _merged_among(self, partition: Partition, shown: np.ndarray) -> Partition:
        """Fewer classes, which keep every promise without the records that are not shown; one of
        all, where there are none.
        """
        matrix, whole_table = self.bound.method_input()
        promises = BoundPromises(self.policy.build_promises(), whole_table).restricted_to(shown)
        among = Partition.of(np.where(shown, partition.labels, np.int32(-1)))
        try:
            merged = repair(matrix, among, promises)
        except InfeasibleError:
            merged = among
        if merged.count == among.count:
            return Partition(np.zeros_like(partition.labels), 1)
        return Partition.of(np.where(shown, merged.labels, np.int32(merged.count)))


def suppress_cells(series: pl.Series, rows: np.ndarray, mark: str, typed: bool = True) -> pl.Series:
    """The column without the values of these rows: the mark in text, null in other types."""
    if series.dtype in (pl.Categorical, pl.Enum) or not typed:
        series = series.cast(pl.String)
    star = pl.Series([mark if series.dtype == pl.String else None], dtype=series.dtype)
    return series.zip_with(~pl.Series(rows), star.new_from_index(0, len(series)))
