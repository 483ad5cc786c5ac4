"""Clusters of a stream: what a policy promises about them, and how they are published."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.reading import Measures
from shoal.data.schema import Role, Schema
from shoal.data.stream import NEW, REUSE, Arrivals, Emissions, Space
from shoal.privacy.promise import as_written
from shoal.privacy.promises import terms_of
from shoal.privacy.subject_share import SubjectShare
from shoal.protocols import PromiseTerms, StreamPromises
from shoal.streams.methods.emission import boxes

MOST_MEMBERS = 100_000
"""A cluster whose members must be known for another one to join takes no more than this."""

MARKS = 1 << 24
"""Places for marks of cells that were published."""

NOBODY = np.zeros(0, np.int64)

Sensitive = Callable[[np.ndarray], pl.DataFrame]
"""`sensitive(seq)`: the sensitive cells of records that are held."""

Cells = tuple[str | None, ...]
"""What a cluster shows, attribute by attribute."""


class BoundToStream(StreamPromises):
    """Promises about clusters, each measured on its own members.

    k: the largest number of subjects that some promise can't do without. Promises that every
    further member leaves intact (k, distinct values) are asked when a cluster is made; for the
    others the members of every cluster that may be used again are remembered, and asked again with
    whoever joins.

    Where people have several records, clusters that show the same cells may share people, and what
    each keeps their union may break. So (`by_cells`) clusters of equal cells are judged as the one
    class that readers see: members are remembered by cells, and cells that were published and whose
    members are forgotten are not made again. Those are known by a mark in a table of bounded size:
    cells that happen to have the same mark are not made again either, so memory is flat and the
    error is on the safe side.
    """

    def __init__(self, measures: Measures, sensitive: Sensitive, space: Space) -> None:
        self._measures, self._sensitive, self._space = measures, sensitive, space
        models = self._models = measures.models
        self.k = max([2, *(int(model.least_subjects(True)) for model in models)])
        self.needs_more_than_k = not all(model.counts_people_only for model in models)
        self._caps = [model for model in models if isinstance(model, SubjectShare)]
        self._recheck = [
            model
            for model in models
            if not model.counts_people_only and not model.survives_additions
        ]
        self.by_cells = measures.has_subject and len(self._recheck) > len(self._caps)
        self._members: dict[str, tuple[np.ndarray, pl.DataFrame]] = {}
        self._live: dict[int, str] = {}
        # cells that somebody may join in this release: no new cluster shows them
        self._joined: set[str] = set()
        self._marks = np.zeros(MARKS // 8 if self.by_cells else 0, np.uint8)

    @property
    def terms(self) -> tuple[PromiseTerms, ...]:
        """What each promise asks, in the order of the policy."""
        return terms_of(self._models)

    def capped(self, records: Arrivals, labels: np.ndarray) -> np.ndarray:
        """The labels with -1 for records by which somebody would own too much of a new cluster; the
        earliest stay.

        A cluster of too few people for any cap stays as it is, and fails.
        """
        for model in self._caps:
            kept = np.flatnonzero(labels >= 0)
            own = labels[kept]
            stays = within_share(as_written(model.share), own, records.people[kept])
            stays |= (np.bincount(own, stays, int(own.max(initial=-1)) + 1) == 0)[own]
            labels = labels.copy()
            labels[kept[~stays]] = -1
        return labels

    def holds(self, records: Arrivals, labels: np.ndarray, count: int) -> np.ndarray:
        """For each new cluster, `capped`, whether every promise holds; (count,) bool."""
        labels = self.capped(records, labels)
        kept = labels >= 0
        part, own = records.part(kept), labels[kept]
        values = self._sensitive(part.seq)
        holds = self._hold(part.people, values, own, count, self._models)
        if not self.by_cells or not count:
            return holds
        shown = self.cells(part, own, count)
        numbers = {cell: number for number, cell in enumerate(sorted(set(shown)))}
        as_read = np.array([numbers[cell] for cell in shown], dtype=np.int32)
        return holds & self._hold_as_read(part.people, values, as_read[own], list(numbers))[as_read]

    def _hold_as_read(
        self, people: np.ndarray, values: pl.DataFrame, labels: np.ndarray, shown: list[str]
    ) -> np.ndarray:
        """Whether every promise holds in what readers see as one class, published or new."""
        parts = [(people, values, labels)]
        known = np.ones(len(shown), dtype=bool)
        for number, cell in enumerate(shown):
            if cell in self._members:
                before, cells = self._members[cell]
                known[number] = len(before) <= MOST_MEMBERS and cell not in self._joined
                parts.append((before, cells, np.full(len(before), number, np.int32)))
            else:
                known[number] = not self._is_marked(cell)
        who, what, where = zip(*parts, strict=True)
        return known & self._hold(
            np.concatenate(who), pl.concat(what), np.concatenate(where), len(shown), self._recheck
        )

    def cells(self, records: Arrivals, labels: np.ndarray, count: int) -> list[str]:
        """A text for what each cluster, `capped`, would show; equal where they show the same."""
        labels = self.capped(records, labels)
        lo, hi, _ = self._space.published_bounds(*boxes(records.values, labels, count))
        return cells_of(lo, hi)

    def may_join(self, records: Arrivals, clusters: np.ndarray) -> np.ndarray:
        """Which records may join: those who don't own too much of their cluster; all or none."""
        allowed = np.ones(len(records), dtype=bool)
        if not self._recheck:
            return allowed
        asked = np.array([self._live[number] for number in clusters.tolist()])
        self._joined = set()
        for cell in np.unique(asked).tolist():
            asks = np.flatnonzero(asked == cell)
            before, known = self._members[cell]
            for model in self._caps:
                nought = np.zeros(len(asks), np.int32)
                fits = within_share(as_written(model.share), nought, records.people[asks], before)
                allowed[asks[~fits]], asks = False, asks[fits]
            people = np.concatenate([before, records.people[asks]])
            cells = pl.concat([known, self._sensitive(records.seq[asks])])
            allowed[asks] = len(people) <= MOST_MEMBERS and bool(
                self._hold(people, cells, np.zeros(len(people), np.int32), 1, self._recheck)[0]
            )
            if allowed[asks].any():
                self._joined.add(cell)
        return allowed

    def settle(self, decided: Emissions) -> None:
        """Remembers who is in the clusters to be used again; of others, which cells they showed."""
        if not self._recheck:
            return
        self._joined = set()
        cells = [str(number) for number in decided.made.tolist()]
        if self.by_cells:
            cells = cells_of(decided.lo, decided.hi)
            for cell in cells:
                self._mark(cell)
        shows = self._live | dict(zip(decided.made.tolist(), cells, strict=True))
        self._live = {number: shows[number] for number in decided.live.tolist()}
        kept = set(self._live.values())
        self._members = {cell: members for cell, members in self._members.items() if cell in kept}
        published = np.flatnonzero((decided.kind == NEW) | (decided.kind == REUSE))
        order = published[np.argsort(decided.cluster[published], kind="stable")]
        numbers, starts = np.unique(decided.cluster[order], return_index=True)
        for number, rows in zip(
            numbers.tolist(), np.split(order, starts[1:]), strict=bool(len(numbers))
        ):
            if (cell := shows[number]) not in kept:
                continue
            people, own = decided.people[rows], self._sensitive(decided.seq[rows])
            if cell in self._members:
                before, known = self._members[cell]
                people, own = np.concatenate([before, people]), pl.concat([known, own])
            self._members[cell] = people, own

    def remembers(self, cell: str) -> bool:
        """Whether the members of what shows these cells are known."""
        return cell in self._members

    def _mark(self, cell: str) -> None:
        place = _place(cell)
        self._marks[place >> 3] |= np.uint8(1 << (place & 7))

    def _is_marked(self, cell: str) -> bool:
        place = _place(cell)
        return bool(self._marks[place >> 3] >> (place & 7) & 1)

    def _hold(
        self,
        people: np.ndarray,
        cells: pl.DataFrame,
        labels: np.ndarray,
        count: int,
        models: Sequence[Any],
    ) -> np.ndarray:
        classes = self._measures.classes(people, cells, labels, count)
        result = np.bincount(labels, minlength=count) > 0
        for model in models:
            result &= self._measures.holds(model, classes)
        return result

    def snapshot(self) -> dict[str, Any]:
        """Members of reusable clusters, one row each, with cells and person; and marks."""
        if not self._recheck:
            return {}
        parts = [
            cells.with_columns(pl.lit(cell).alias("\0cells"), pl.Series("\0person", people))
            for cell, (people, cells) in self._members.items()
        ]
        live = pl.DataFrame(
            {"number": list(self._live), "cells": list(self._live.values())},
            schema={"number": pl.Int64, "cells": pl.String},
        )
        return {
            "members": pl.concat(parts) if parts else pl.DataFrame(),
            "live": live,
            "marks": self._marks.copy(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        if not self._recheck:
            return
        self._live, self._members = dict(state["live"].iter_rows()), {}
        self._marks = state["marks"].copy()
        if state["members"].height:
            parts = state["members"].partition_by("\0cells", as_dict=True, maintain_order=True)
            for (cell,), part in parts.items():
                self._members[str(cell)] = (
                    part["\0person"].to_numpy(),
                    part.drop("\0cells", "\0person"),
                )


def _place(cell: str) -> int:
    """Where the mark of these cells stands."""
    return int.from_bytes(hashlib.blake2b(cell.encode(), digest_size=8).digest(), "big") % MARKS


def cells_of(lo: np.ndarray, hi: np.ndarray) -> list[str]:
    """A text for what each published box shows; equal for equal boxes. lo, hi: (c, d) float64."""
    return [
        " ".join(map(repr, (*a, *b)))
        for a, b in zip((lo + 0.0).tolist(), (hi + 0.0).tolist(), strict=True)
    ]


def within_share(
    share: Fraction, labels: np.ndarray, people: np.ndarray, before: np.ndarray = NOBODY
) -> np.ndarray:
    """Which records may be in their clusters, so that nobody owns more than a share of any; (n,)
    bool.

    labels: (n,) int, a cluster each. people: (n,) int64, the earliest records first. before: (m,)
    int64, who owns the records that are in cluster 0 already, within their share; they stay.
    Everybody may own as many records of a cluster as the same largest number allows, so as many
    stay as can. A cluster in which fewer than 1 / share people are loses all of them.
    """
    everybody = np.unique(np.concatenate([people, before]), return_inverse=True)[1].reshape(-1)
    who = everybody[: len(people)]
    known = np.bincount(everybody[len(people) :], minlength=len(everybody) + 1)
    pairs, pair, asks = np.unique(
        labels.astype(np.int64) << 32 | who, return_inverse=True, return_counts=True
    )
    cluster = pairs >> 32
    clusters = int(cluster.max(initial=-1)) + 1
    owned = np.where(cluster == 0, known[pairs & 0xFFFFFFFF], 0)
    stands = np.zeros(clusters, np.int64)
    stands[:1] = len(before)

    def added(most: np.ndarray) -> np.ndarray:
        """Records of each pair that may join. most: how many of a cluster one person may own."""
        return np.clip(most[cluster] - owned, 0, asks)

    fits = np.zeros(clusters, np.int64)
    over = np.full(clusters, int((owned + asks).max(initial=0)) + 1)
    # the more each may own the larger the cluster, but never faster: halving finds it
    while (fits + 1 < over).any():
        middle = (fits + over) // 2
        size = stands + np.bincount(cluster, added(middle), clusters).astype(np.int64)
        good = middle * share.denominator <= share.numerator * size
        fits, over = np.where(good, middle, fits), np.where(good, over, middle)
    order = np.argsort(pair, kind="stable")
    rank = np.empty(len(people), np.int64)
    rank[order] = np.arange(len(people)) - (np.cumsum(asks) - asks)[pair[order]]
    return rank < added(fits)[pair]


# From clusters to published cells: each cluster is written once, for all its records.


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
