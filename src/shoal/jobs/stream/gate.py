"""The gate: what is about to leave a stream is measured as its readers will see it.

It sees cells, people and true values, and no cluster of the method: equal cells are one class. A class
that shows up for the first time must keep every promise on the records that are let out together; one
that was let out before, and may still be used, may grow.
Promise: nothing passes that does not. Shares no code with the methods.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from shoal.data.release import is_suppressed, label_classes, read_columns, spans_cover
from shoal.data.schema import Schema
from shoal.data.table import Table
from shoal.errors import PromiseError
from shoal.jobs.stream.measures import Measures

Cells = tuple[str | None, ...]


@dataclass
class Gate:
    """What has been let out so far, and may be used again.

    known: published cells of classes that kept every promise. least: the fewest people of a class at its
    first appearance. suppressed: rows that show nothing.
    """

    schema: Schema
    measures: Measures
    known: set[Cells] = field(default_factory=set)
    least: int | None = None
    rows: int = 0
    suppressed: int = 0
    loss: float = 0.0

    def measure(self, released: pl.DataFrame, people: np.ndarray, values: np.ndarray, live: list[Cells]) -> np.ndarray:
        """The loss of each row, (n,) float64; raises PromiseError where a promise fails.

        released: rows as they were read back. people: (n,) who is behind each. values: (n, d) true numbers,
        places or leaves, NaN where missing. live: cells under which later records may be published.
        """
        columns, unreadable = read_columns(Table(released), self.schema)
        self._demand(not unreadable, "a published cell says nothing that can be read")
        suppressed = is_suppressed(columns, self.schema.render.suppressed)
        for j, column in enumerate(columns):
            covered = spans_cover(column.lo[column.codes], column.hi[column.codes], values[:, j])
            self._demand(bool(covered[~suppressed].all()), "a published cell does not cover the truth")
        labels, count = label_classes(columns, suppressed)
        first = np.zeros(count + 1, dtype=np.int64)  # the last place takes the suppressed
        first[labels[::-1]] = np.arange(len(labels))[::-1]
        first = first[:count]
        shown = [c.name for c in columns]
        cells = list(zip(*(released[name].gather(first).to_list() for name in shown), strict=True)) if count else []
        fresh = np.array([cell not in self.known for cell in cells], dtype=bool)
        self._hold(released, people, labels, fresh)
        held = self.known | set(cells)
        self.known = {cell for cell in live if cell in held}
        self.rows += released.height
        self.suppressed += int(suppressed.sum())
        loss = np.zeros(released.height)
        weight = np.array([a.weight for a in self.schema.quasi])
        for column, share in zip(columns, weight / weight.sum(), strict=True):
            loss += float(share) * np.where(suppressed, 1.0, column.widths[column.codes])
        self.loss += float(loss.sum())
        return loss

    def _hold(self, released: pl.DataFrame, people: np.ndarray, labels: np.ndarray, fresh: np.ndarray) -> None:
        """Every promise on every class that is new."""
        if not fresh.any():
            return
        number = np.append(np.where(fresh, np.cumsum(fresh) - 1, -1), -1)[labels]
        kept = number >= 0
        classes = self.measures.classes(
            people[kept], released.filter(pl.Series(kept)), number[kept].astype(np.int32), int(fresh.sum())
        )
        for model in self.measures.models:
            holds = self.measures.holds(model, classes)
            self._demand(bool(holds.all()), f"promise '{model.model}' does not hold in a new class")
        fewest = int(classes.people().min())
        self.least = fewest if self.least is None else min(self.least, fewest)

    def _demand(self, holds: bool, else_: str) -> None:
        if not holds:
            raise PromiseError(f"{else_}; the release is withheld, the stream has stopped")

    def snapshot(self) -> dict[str, Any]:
        """What is known, as a frame and plain values."""
        names = [str(j) for j in range(len(self.schema.quasi))]
        known = pl.DataFrame(sorted(self.known, key=repr), schema=dict.fromkeys(names, pl.String), orient="row")
        return {
            "known": known, "least": self.least, "rows": self.rows, "suppressed": self.suppressed, "loss": self.loss,
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on with what was known."""
        self.known = set(state["known"].iter_rows())
        self.least, self.rows = state["least"], state["rows"]
        self.suppressed, self.loss = state["suppressed"], state["loss"]
