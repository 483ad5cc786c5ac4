"""From clusters to published cells: each cluster is written once, for all its records."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import polars as pl

from shoal.data.schema import Role, Schema
from shoal.data.stream import NEW, Emissions, Space
from shoal.streams.promises import cells_of

Cells = tuple[str | None, ...]


class ClusterTexts:
    """The published cells of every cluster that may be shown again.

    by_cells: whether clusters that show the same cells are judged as one, and so written as one.
    """

    def __init__(self, schema: Schema, space: Space, by_cells: bool) -> None:
        self._schema = schema
        self._space = space
        self._by_cells = by_cells
        self._of_cluster: dict[int, Cells] = {}
        self._first_text: dict[str, Cells] = {}

    @property
    def shown(self) -> list[Cells]:
        return list(self._of_cluster.values())

    def needed(self) -> list[str]:
        """Quasi-identifiers whose own text may be published.

        These are numbers, and missing values that have several texts.
        """
        several = len(self._schema.missing_values) > 1 or "" not in self._schema.missing_values
        return [
            a.name
            for a, t in zip(self._schema.quasi, self._space.trees, strict=True)
            if t is None or several
        ]

    def forget(self, live: set[int], remembers: Callable[[str], bool]) -> None:
        """Drops clusters that can't be shown again, and cells that no promise remembers."""
        self._of_cluster = {n: cells for n, cells in self._of_cluster.items() if n in live}
        self._first_text = {c: text for c, text in self._first_text.items() if remembers(c)}

    def write(self, decided: Emissions, rows: pl.DataFrame) -> None:
        """Writes the cells of every cluster that was made, each attribute in one go."""
        if not len(decided.made):
            return
        new = np.flatnonzero(decided.kind == NEW)
        cluster = np.searchsorted(decided.made, decided.cluster[new])
        columns = [
            self._cells(j, decided, rows, new, cluster) for j in range(self._space.attributes)
        ]
        texts: list[Cells] = list(zip(*columns, strict=True))
        if self._by_cells:
            # judged as one class, so written as one: 1 and 1.0 are one number
            shown = cells_of(decided.lo, decided.hi)
            texts = [
                self._first_text.setdefault(cell, text)
                for cell, text in zip(shown, texts, strict=True)
            ]
        self._of_cluster.update(zip(decided.made.tolist(), texts, strict=True))

    def _cells(
        self, j: int, decided: Emissions, rows: pl.DataFrame, new: np.ndarray, cluster: np.ndarray
    ) -> list[str | None]:
        """What each new cluster shows of attribute j: the value, the span, or the lowest node.

        new: (n,) the decisions that are its first members. cluster: (n,) the new cluster of each.
        """
        attribute, tree = self._schema.quasi[j], self._space.trees[j]
        lo, hi, mark = decided.lo[:, j], decided.hi[:, j], self._schema.render.suppressed
        values = decided.values[new, j]
        no_value = min(self._schema.missing_values, default=mark)

        def texts_at(bound: np.ndarray, order: tuple[str, ...] | None = None) -> list[str | None]:
            """The text of each bound as its earliest member wrote it; where no member has it, as a
            plain number, or as it stands in the order. The mark would say that any value is
            possible, so people who have it for no value show another text for that.
            """
            plain = (
                plain_number
                if order is None  # beyond its places, where missing values are, nothing shows it
                else lambda place: order[int(place)] if place < len(order) else ""
            )
            at = np.flatnonzero(values == bound[cluster])[::-1]
            member = np.full(len(bound), -1, dtype=np.int64)
            member[cluster[at]] = at
            written = rows[attribute.name].gather(new[np.maximum(member, 0)]).to_list()
            return [
                ((no_value if text == mark else text) or None) if m >= 0 else plain(b)
                for text, m, b in zip(written, member.tolist(), bound.tolist(), strict=True)
            ]

        spans_missing = (hi >= self._space.beyond[j]) & (lo < hi)
        if tree is not None:
            node = tree.covering(lo.astype(np.int32), hi.astype(np.int32))
            texts = [
                mark if m else (tree.labels[n] or None)
                for m, n in zip(spans_missing, node.tolist(), strict=True)
            ]
            if attribute.name not in rows.columns:
                return texts
            missing = lo >= self._space.beyond[j]
            both = zip(texts_at(lo), missing, texts, strict=True)
            return [member if lacks else text for member, lacks, text in both]
        head, middle, tail = self._schema.render.parts
        least, most = (texts_at(bound, attribute.order) for bound in (lo, hi))
        return [
            mark if m else (a if s else f"{head}{a}{middle}{b}{tail}")
            for a, b, s, m in zip(least, most, lo == hi, spans_missing, strict=True)
        ]

    def frame(self, decided: Emissions, rows: pl.DataFrame) -> pl.DataFrame:
        """The published columns of every decided record, suppressed ones starred.

        Whoever lies in no published class is known to be among those whose rows show the mark
        everywhere, and how many these will be is not known yet. So they show no sensitive value,
        be they suppressed or of a cluster that shows nothing.
        """
        mark = self._schema.render.suppressed
        numbers, index = np.unique(decided.cluster, return_inverse=True)
        star = (mark,) * self._space.attributes
        texts = [self._of_cluster.get(n, star) for n in numbers.tolist()]
        starred = pl.Series([text == star for text in texts], dtype=pl.Boolean).gather(index)
        cells = list(zip(*texts, strict=True))
        columns, j = [], 0
        for attribute in self._schema.published:
            if attribute.role is Role.QUASI:
                columns.append(pl.Series(attribute.name, cells[j], dtype=pl.String).gather(index))
                j += 1
            elif attribute.role is Role.SENSITIVE and starred.any():
                columns.append(suppress_cells(rows[attribute.name], starred, mark))
            else:
                columns.append(rows[attribute.name])
        return pl.DataFrame(columns)

    def snapshot(self) -> dict[str, pl.DataFrame]:
        clusters = pl.Series("of", list(self._of_cluster), pl.Int64)
        cells = pl.Series("of", list(self._first_text), pl.String)
        return {
            "cells": _text_frame(clusters, self._of_cluster.values()),
            "written_as": _text_frame(cells, self._first_text.values()),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._of_cluster = {row[0]: row[1:] for row in state["cells"].iter_rows()}
        self._first_text = {row[0]: row[1:] for row in state["written_as"].iter_rows()}


def _text_frame(of: pl.Series, texts: Iterable[Cells]) -> pl.DataFrame:
    """Published cells, one row for each cluster, behind what they belong to."""
    columns = zip(*texts, strict=True)
    return pl.DataFrame(
        [of, *(pl.Series(str(j), column, pl.String) for j, column in enumerate(columns))]
    )


def plain_number(value: float) -> str:
    """A bound of the public grid as text, exactly."""
    short = f"{value:.12g}"
    text = short if float(short) == value else repr(value)
    return text.removesuffix(".0")


def suppress_cells(series: pl.Series, rows: pl.Series, mark: str) -> pl.Series:
    """The column without the values of these rows: the mark in text, no value in other types."""
    star = pl.Series([mark if series.dtype == pl.String else None], dtype=series.dtype)
    return series.zip_with(~rows, star.new_from_index(0, len(series)))
