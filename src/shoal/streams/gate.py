"""The gate: what is about to leave a stream is measured as its readers will see it.

It sees cells, people and true values: equal cells are one class. A class must keep every promise in
the one release in which it shows up first; one that was published before, and may still be used,
may grow. And every cluster that the method calls new must keep them by itself, whatever else shows
the same cells.
Promise: nothing passes that does not, in however many releases it comes. Shares no code with the
methods.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.reading import Measures
from shoal.data.release import is_starred, label_classes, read_columns, spans_cover
from shoal.data.schema import Schema
from shoal.data.table import Table
from shoal.errors import PromiseError

Cells = tuple[str | None, ...]


@dataclass(frozen=True)
class Passed:
    """What was measured of rows that may leave.

    losses: (n,) float64 of each. starred: how many show nothing, not even a sensitive value: they
    are withheld, in no class. least: the fewest people of a class that shows up first among them.
    """

    losses: np.ndarray = field(default_factory=lambda: np.zeros(0))
    starred: int = 0
    least: int | None = None


@dataclass
class Gate:
    """What has been published so far, and may be used again.

    known: published cells of classes that kept every promise.
    """

    schema: Schema
    measures: Measures
    known: set[Cells] = field(default_factory=set)

    def measure(
        self,
        released: pl.DataFrame,
        people: np.ndarray,
        values: np.ndarray,
        release: np.ndarray,
        new: np.ndarray,
        live: list[Cells],
    ) -> Passed:
        """What was measured of these rows; raises PromiseError where a promise fails.

        released: rows as they were read back. people: (n,) who is behind each. values: (n, d) true
        numbers, places or leaves, NaN where missing. release: (n,) the number of its release, never
        falling. new: (n,) the cluster whose first members it is among, -1 where none. live: cells
        under which later records may be published.
        """
        columns, unreadable = read_columns(Table(released), self.schema)
        self._demand(not unreadable, "a published cell can't be read")
        mark = self.schema.render.suppressed
        suppressed = is_starred(columns, mark)
        for attribute in self.schema.sensitive:
            hidden = released[attribute.name].filter(pl.Series(suppressed)) == mark
            self._demand(bool(hidden.fill_null(False).all()), "a starred row shows a value")
        for j, column in enumerate(columns):
            covered = spans_cover(column.lo[column.codes], column.hi[column.codes], values[:, j])
            self._demand(
                bool(covered[~suppressed].all()), "a published cell does not cover the truth"
            )
        labels, count = label_classes(columns, suppressed)
        first = np.zeros(count + 1, dtype=np.int64)  # the last place takes the suppressed
        first[labels[::-1]] = np.arange(len(labels))[::-1]
        first = first[:count]
        texts = (released[column.name].gather(first).to_list() for column in columns)
        cells = list(zip(*texts, strict=True))
        fresh = np.array([cell not in self.known for cell in cells], dtype=bool)
        is_fresh = np.append(fresh, False)[labels]
        is_first = is_fresh & (release == np.append(release[first], -1)[labels])
        judged = [(labels, is_first, self.measures.models)]
        shares = [model for model in self.measures.models if not model.counts_people_only]
        # who joined it since can have broken them
        if shares and not np.array_equal(is_first, is_fresh):
            judged.append((labels, is_fresh, shares))
        is_new = (new >= 0) & ~suppressed
        if not np.array_equal(is_first, is_new) or not _one_to_one(labels[is_new], new[is_new]):
            judged.append((new, is_new, self.measures.models))
        fewest = [self._fewest(released, people, *one) for one in judged if one[1].any()]
        held = self.known | set(cells)
        self.known = {cell for cell in live if cell in held}
        loss = np.zeros(released.height)
        weight = np.array([a.weight for a in self.schema.quasi])
        for column, share in zip(columns, weight / weight.sum(), strict=True):
            loss += float(share) * np.where(suppressed, 1.0, column.widths[column.codes])
        return Passed(loss, int(suppressed.sum()), min(fewest, default=None))

    def _fewest(
        self,
        released: pl.DataFrame,
        people: np.ndarray,
        labels: np.ndarray,
        judged: np.ndarray,
        models: Sequence[Any],
    ) -> int:
        """The fewest people of any group of equal labels among the rows that are judged.

        Raises PromiseError where a group breaks one of these promises.
        """
        groups = _dense(labels[judged])
        count = int(groups.max()) + 1
        classes = self.measures.classes(
            people[judged], released.filter(pl.Series(judged)), groups, count
        )
        for model in models:
            holds = self.measures.holds(model, classes)
            self._demand(bool(holds.all()), f"promise '{model.model}' does not hold in a new class")
        return int(classes.people().min())

    def _demand(self, holds: bool, else_: str) -> None:
        if not holds:
            raise PromiseError(f"{else_}; the release is withheld, the stream has stopped")

    def snapshot(self) -> pl.DataFrame:
        schema = {str(j): pl.String for j in range(len(self.schema.quasi))}
        return pl.DataFrame(sorted(self.known, key=repr), schema=schema, orient="row")

    def restore(self, known: pl.DataFrame) -> None:
        self.known = set(known.iter_rows())


def _dense(labels: np.ndarray) -> np.ndarray:
    """(n,) int32 numbers 0.. in the order of these labels, which lie near to each other."""
    from_least = labels - labels.min()
    used = np.bincount(from_least) > 0
    return (np.cumsum(used) - 1).astype(np.int32)[from_least]


def _one_to_one(labels: np.ndarray, others: np.ndarray) -> bool:
    """Whether both part the rows in the same way."""
    if not len(labels):
        return True
    these, those = _dense(labels), _dense(others)
    of_this = np.zeros(int(these.max()) + 1, np.int32)
    of_this[these] = those
    return bool((of_this[these] == those).all()) and these.max() == those.max()
