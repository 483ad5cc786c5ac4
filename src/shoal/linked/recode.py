"""From templates to the tables that are published: cells, counts, moved dates, keys, and order."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from shoal.data import linked
from shoal.data.encoding import EncodedAttribute
from shoal.data.linked import Keys, Known, LinkedTable, LinkedTables, Templates
from shoal.data.partition import Partition
from shoal.data.recoding import Recoding, mean_text
from shoal.data.schema import Render, Shown
from shoal.linked.templates import hulls_of, names_of_bundles, slots_of, step_of
from shoal.recoding.recode import Boxes, pseudonyms


@dataclass(frozen=True)
class DraftTable:
    """One table as it is published.

    rows: (m,) the row of `LinkedRows` behind each published row.
    """

    frame: pl.DataFrame
    rows: np.ndarray


def recode(
    tables: LinkedTables, templates: Templates, k: int, rng: np.random.Generator
) -> dict[str, DraftTable]:
    """Every table but those that are sets, which stand in cells.

    k: of how many people nobody tells one by a date. rng: draws keys, the order of slots, and days;
    nobody who has not the whole data may foresee it.
    """
    return _Recoder(tables, templates, k, rng).tables()


class _Recoder:
    def __init__(
        self, tables: LinkedTables, templates: Templates, k: int, rng: np.random.Generator
    ) -> None:
        self.tree, self._rows, self._rng = tables.tree, tables.rows, rng
        names = [table.name for table in tables.tree.tables]
        self._slots = slots_of(tables, templates)
        covered = zip(names_of_bundles(tables), templates.covered, strict=True)
        self._covered = self._slots | dict(covered)
        self._counts = {n: int(slots.max(initial=-1)) + 1 for n, slots in self._slots.items()}
        self._person = {name: tables.person_of(name) for name in names}
        self._moved = None
        if tables.tree.anchor is not None:
            self._hulls = hulls_of(tables, self._slots, k)
            self._moved = self._drawn_days(tables)
        # drawn once for each slot: rows of all members of a class stand in one order
        self._slot_order = {n: rng.permutation(count) for n, count in self._counts.items()}

    def tables(self) -> dict[str, DraftTable]:
        keys: dict[str, pl.Series] = {}
        places: dict[str, np.ndarray] = {}  # where each row stands among those that are published
        drafts = {}
        for table in self.tree.tables:
            if table.separator is not None:
                continue
            above = None if table.parent is None else places[table.parent]
            order = self._order(table, above, keys)
            places[table.name] = np.zeros(self._rows[table.name].count, np.int64)
            places[table.name][order] = np.arange(len(order))
            shown = pl.DataFrame([cells.gather(order) for cells in self._cells(table)])
            drafts[table.name] = DraftTable(self._linked(table, order, keys, shown), order)
        return drafts

    # Keys and order.

    def _order(
        self, table: LinkedTable, above: np.ndarray | None, keys: dict[str, pl.Series]
    ) -> np.ndarray:
        """The published rows, in order: by their new keys, or those of their parents.

        above: place of each row of the parent in its published table.
        """
        rows, slots = self._rows[table.name], self._slots[table.name]
        kept = self._rng.permutation(np.flatnonzero(slots >= 0))
        is_keyed = self.tree.keys is Keys.KEYED
        if table.key is None and above is not None and self.tree.keys is not Keys.NONE:
            parent = above[rows.parents[kept]]
            return kept[np.lexsort((self._slot_order[table.name][slots[kept]], parent))]
        if table.key is None:
            return kept
        numbers = np.zeros(rows.count, np.int64)
        numbers[kept] = np.arange(1, len(kept) + 1)
        own = pl.Series(table.key, numbers)
        if is_keyed:
            own = pseudonyms(rows.table.frame[table.key], f"{table.name}.{table.key}")
            kept = kept[own.gather(kept).arg_sort().to_numpy()]
        keys[table.name] = own
        return kept

    def _linked(
        self, table: LinkedTable, order: np.ndarray, keys: dict[str, pl.Series], shown: pl.DataFrame
    ) -> pl.DataFrame:
        """The cells behind the columns of keys."""
        if self.tree.keys is Keys.NONE:
            return shown
        columns = []
        if table.key is not None:
            columns.append(keys[table.name].gather(order).cast(pl.String).alias(table.key))
        if table.parent is not None and table.link is not None:
            parents = self._rows[table.name].parents[order]
            columns.append(keys[table.parent].gather(parents).cast(pl.String).alias(table.link))
        return pl.DataFrame([*columns, *shown])

    # Cells.

    def _cells(self, table: LinkedTable) -> pl.DataFrame:
        """What each row shows, in the order of `LinkedRows`; -1 for withheld rows."""
        rows = self._rows[table.name]
        labels, count = self._covered[table.name].astype(np.int32), self._counts[table.name]
        schema = table.schema
        shown = Boxes().tables(rows.table, rows.encoded, Partition(labels, count), schema)[""]
        spans = Recoding.of(labels, count, rows.encoded.attributes)
        day_spans = spans
        if self.tree.anchor is not None and self.tree.anchor.is_exact:
            own = np.arange(rows.count, dtype=np.int32)
            day_spans = Recoding.of(own, rows.count, rows.encoded.attributes)
        for j, encoded in enumerate(rows.encoded.attributes):
            name = encoded.attribute.name
            if name == linked.ANCHOR:
                shown = self._with_anchor(shown, spans, j, encoded, schema.render)
            elif name in self.tree.dates.get(table.name, ()):
                moved = None if self._moved is None else self._moved[self._person[table.name]]
                shown = shown.with_columns(days_shown(day_spans, j, encoded, moved, schema.render))
        below = self.tree.below(table.name)
        sets = [self._sets(one) for one in below if one.separator is not None]
        counts = [self._row_counts(o, table) for o in below if o.known is not Known.NONE]
        return pl.DataFrame([*shown, *sets, *counts])  # there may be no other columns

    def _row_counts(self, below: LinkedTable, table: LinkedTable) -> pl.Series:
        """How many rows of a table below the members of each slot have, in the original."""
        render, labels = table.schema.render, self._covered[table.name]
        counts = self._rows[below.name].counts
        shown = labels >= 0
        number = self._counts[table.name]
        lo, hi = np.full(number, np.iinfo(np.int64).max), np.zeros(number, np.int64)
        np.minimum.at(lo, labels[shown], counts[shown])
        np.maximum.at(hi, labels[shown], counts[shown])
        sums = np.bincount(labels[shown], weights=counts[shown], minlength=number)
        sizes = np.bincount(labels[shown], minlength=number)
        head, middle, tail = render.parts
        texts = []
        for least, most, total, size in zip(lo, hi, sums, sizes, strict=True):
            text = str(least) if least == most else f"{head}{least}{middle}{most}{tail}"
            is_both = below.shown is Shown.BOTH and least < most
            texts.append(f"{mean_text(total / size, 1)} {text}" if is_both else text)
        name = linked.rows_column(below.name)
        return pl.Series(name, [*texts, render.suppressed], dtype=pl.String).gather(
            np.where(shown, labels, number)
        )

    def _sets(self, below: LinkedTable) -> pl.Series:
        """The elements of each row's set, in one order for all members of a slot."""
        rows, slots = self._rows[below.name], self._slots[below.name]
        (encoded,) = rows.encoded.attributes
        covered = self._covered[below.name].astype(np.int32)
        spans = Recoding.of(covered, self._counts[below.name], (encoded,))
        kept = np.flatnonzero(slots >= 0)
        order = kept[np.lexsort((self._slot_order[below.name][slots[kept]], rows.parents[kept]))]
        cells = spans.column(0, encoded, below.schema.render).cast(pl.String).gather(order)
        joined = (
            pl.DataFrame({"row": rows.parents[order], "cell": cells})
            .group_by("row", maintain_order=True)
            .agg(pl.col("cell").str.join(below.separator or ""))
        )
        everybody = pl.DataFrame({"row": np.arange(len(rows.starts) - 1)})
        return everybody.join(joined, on="row", how="left", maintain_order="left")["cell"].alias(
            encoded.attribute.name
        )

    # Days.

    def _drawn_days(self, tables: LinkedTables) -> np.ndarray:
        """(people,) int64: of each, a day drawn evenly from its class's days, and never looking at
        its own. So moved dates have one distribution for all members.

        Where the day of the week is kept, which members of a class share, from the days that have
        it.
        """
        step, classes = step_of(tables), self._slots[linked.PEOPLE]
        steps = (self._hulls.last - self._hulls.first) // step  # nothing is left
        return self._hulls.first[classes] + step * self._rng.integers(0, steps[classes] + 1)

    def _with_anchor(
        self,
        shown: pl.DataFrame,
        spans: Recoding,
        j: int,
        encoded: EncodedAttribute,
        render: Render,
    ) -> pl.DataFrame:
        """The drawn day of each person, and the days in which the anchors of its class lie."""
        assert self._moved is not None
        classes = self._slots[linked.PEOPLE]
        none = spans.column(j, encoded, render).cast(pl.String)
        has_day = pl.Series(spans.hi[:, j][classes] < encoded.present)
        hull = day_texts(self._hulls.first[classes], self._hulls.last[classes], render)
        return shown.with_columns(
            iso_days(self._moved).zip_with(has_day, none).alias(linked.ANCHOR),
            hull.zip_with(has_day, none).alias(linked.HULL),
        )


def days_shown(
    spans: Recoding, j: int, encoded: EncodedAttribute, moved: np.ndarray | None, render: Render
) -> pl.Series:
    """The days of column j as dates, moved by a number for each row: one, or from one to another.

    moved: (n,) int64, 0 where there is no day to count from, and then nothing is shown, not even
    whether there is a date. Where somebody has no day, what `span_texts` says of it.
    """
    others = spans.column(j, encoded, render).cast(pl.String)
    if not len(spans.lo):
        return others
    values = np.append(encoded.values, np.zeros(len(encoded.texts) - encoded.present))
    label = spans.labels
    by = np.ones(len(label), np.int64) if moved is None else moved
    first, last = (
        values[end[:, j]].astype(np.int64)[label] + (0 if moved is None else by)
        for end in (spans.lo, spans.hi)
    )
    is_day = (spans.hi[:, j][label] < encoded.present) & (label >= 0)
    days = day_texts(first, last, render).zip_with(pl.Series(is_day), others)
    mark = pl.Series([render.suppressed]).new_from_index(0, len(days))
    return mark.zip_with(pl.Series(by == 0), days).alias(encoded.attribute.name)


def day_texts(first: np.ndarray, last: np.ndarray, render: Render) -> pl.Series:
    """Each day, or span of days, as it is written."""
    head, middle, tail = render.parts
    lo, hi = iso_days(first), iso_days(last)
    span = pl.select(pl.lit(head) + lo + pl.lit(middle) + hi + pl.lit(tail)).to_series()
    return lo.zip_with(pl.Series(first == last), span)


def iso_days(numbers: np.ndarray) -> pl.Series:
    """Dates of days, 1 for 0001-01-01, as they are written in ISO 8601."""
    epoch = 719_163  # 1970-01-01
    return pl.Series(numbers - epoch).cast(pl.Int32).cast(pl.Date).dt.strftime("%Y-%m-%d")


def key_map(tables: LinkedTables, drafts: Mapping[str, DraftTable]) -> pl.DataFrame:
    """Which row of the input each published row was: table, row and, from 0, `seq`."""
    return pl.concat(
        pl.DataFrame(
            {
                "table": pl.Series([name]).new_from_index(0, len(draft.rows)),
                "row": np.arange(len(draft.rows)),
                "seq": tables.rows[name].source[draft.rows],
            }
        )
        for name, draft in drafts.items()
    )
