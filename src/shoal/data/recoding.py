"""What is published: spans as text, of every class (local) or value (global recoding), or two
tables, of quasi-identifiers as they are and of sensitive values by group.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl

from shoal.data import cores
from shoal.data.encoding import EncodedAttribute, EncodedTable, linear_domain
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.numbers import (
    exact_text,
    is_long,
    mean_decimals,
    multiple_below,
    number_text,
    plain_text,
    position_unit,
)
from shoal.data.partition import Cut, Partition
from shoal.data.room import IN_MEMORY, blocks
from shoal.data.schema import Attribute, Kind, Render, Schema, Shown
from shoal.data.table import Table, as_text

TWO_TABLES = "two-tables"
OWN_METHODS = frozenset({"anatomy"})
"""Shoal's own methods that publish so, for whoever must know it and imports no method."""
GROUP, COUNT = "group", "count"
"""Columns of a release of two tables beside those of the original."""
SENSITIVE = "sensitive"
DISCLOSED = "disclosed"


@dataclass(frozen=True)
class Recoding:
    """Local recoding of n records.

    labels: (n,) int32 class of each record, -1 where suppressed.
    lo, hi: (classes, attributes) int32, least and greatest rank of each class.
    has_stars: whether a class shows the mark where its members differ.
    """

    labels: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    has_stars: bool = False

    @classmethod
    def of(
        cls, labels: np.ndarray, count: int, attributes: tuple[EncodedAttribute, ...]
    ) -> "Recoding":
        """The tightest spans that cover the members of each of `count` classes."""
        lo, hi = np.empty((2, count, len(attributes)), dtype=np.int32)

        def fill(j: int) -> None:
            lo[:, j], hi[:, j] = ends_by_label(attributes[j], labels, count)

        cores.side_by_side(fill, range(len(attributes)), len(labels))
        return cls(labels, lo, hi)

    @property
    def suppressed(self) -> np.ndarray:
        """(n,) bool."""
        return self.labels < 0

    def column(self, j: int, encoded: EncodedAttribute, render: Render) -> pl.Series:
        """The published cells of attribute j: the value all agree on, else span, mean or both."""
        if encoded.attribute.shown is Shown.RANGE or self.has_stars:
            texts, text_of_class = texts_of_classes(
                self.lo[:, j], self.hi[:, j], encoded, render, self.has_stars
            )
        else:
            one_each = (
                self._with_one_value
                if encoded.attribute.shown in (Shown.MEDIAN, Shown.MODE)
                else self._with_means
            )
            texts, text_of_class = one_each(j, encoded, render), np.arange(len(self.lo))
        texts, cell_of_class = cells_of_classes(texts, text_of_class, render)
        return _column(encoded.attribute.name, texts, cell_of_class, self.labels)

    def _with_means(self, j: int, encoded: EncodedAttribute, render: Render) -> list[str]:
        """The text of each class; where its members differ, their mean over records."""
        texts = span_texts(self.lo[:, j], self.hi[:, j], encoded, render)
        kept, values = (
            self.labels >= 0,
            np.append(encoded.values, np.zeros(len(encoded.texts) - encoded.present)),
        )
        sums = np.bincount(
            self.labels[kept], weights=values[encoded.ranks[kept]], minlength=len(texts)
        )
        sizes = np.bincount(self.labels[kept], minlength=len(texts))
        differ = (self.hi[:, j] < encoded.present) & (
            (values[self.lo[:, j]] != values[self.hi[:, j]]) | _hides_values(texts, encoded)
        )
        decimals = mean_decimals(encoded.texts[: encoded.present])
        for c in np.flatnonzero(differ):
            mean = mean_text(float(sums[c] / sizes[c]), decimals)
            texts[c] = mean if encoded.attribute.shown is Shown.MEAN else f"{mean} {texts[c]}"
        return texts

    def _with_one_value(self, j: int, encoded: EncodedAttribute, render: Render) -> list[str]:
        """The text of each class; where its members differ, their lower median or their mode."""
        texts = span_texts(self.lo[:, j], self.hi[:, j], encoded, render)
        kept = self.labels >= 0
        of, ranks = self.labels[kept].astype(np.int64), encoded.ranks[kept].astype(np.int64)
        if encoded.attribute.shown is Shown.MEDIAN:
            order = np.lexsort((ranks, of))
            sizes = np.bincount(of, minlength=len(texts))
            chosen = ranks[order[np.cumsum(sizes) - sizes + (sizes - 1) // 2]]
        else:
            # two texts of one value count together, missing ones apart
            alike = np.arange(len(encoded.texts))
            alike[: encoded.present] = np.searchsorted(encoded.values, encoded.values)
            pairs, counts = np.unique(of * len(alike) + alike[ranks], return_counts=True)
            order = np.lexsort((pairs, -counts, pairs // len(alike)))
            first = np.searchsorted((pairs // len(alike))[order], np.arange(len(texts)))
            chosen = pairs[order[first]] % len(alike)
        for c in np.flatnonzero(
            (self.hi[:, j] < encoded.present) & (self.lo[:, j] < self.hi[:, j])
        ):
            texts[c] = encoded.texts[chosen[c]]
        return texts


def ends_by_label(
    encoded: EncodedAttribute, labels: np.ndarray, classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest rank of each class, found record by record; (classes,) int32 both."""
    lo = np.full(classes, np.iinfo(np.int32).max, dtype=np.int32)
    hi = np.full(classes, -1, dtype=np.int32)
    for rows in blocks(len(labels)):
        members, codes = labels[rows], encoded.codes[rows]
        kept = members >= 0
        if not kept.all():
            members, codes = members[kept], codes[kept]
        ranks = IN_MEMORY.gather(encoded.rank_of_code, codes)
        np.minimum.at(lo, members, ranks)
        np.maximum.at(hi, members, ranks)
    return lo, hi


@dataclass(frozen=True)
class GlobalRecoding:
    """Global recoding of n records.

    texts: for each cut, for each attribute, the published text of each rank.
    round_of_record: (n,) int32, which of the cuts each record shows, -1 where it is suppressed.
    """

    texts: tuple[tuple[tuple[str, ...], ...], ...]
    round_of_record: np.ndarray

    @classmethod
    def of(
        cls,
        cut: Cut,
        round_of_record: np.ndarray,
        attributes: tuple[EncodedAttribute, ...],
        render: Render,
    ) -> "GlobalRecoding":
        """The recoding by a cut and its further rounds. round_of_record: -1 where suppressed."""
        texts = tuple(
            tuple(rank_texts(one, j, encoded, render) for j, encoded in enumerate(attributes))
            for one in cut.rounds
        )
        return cls(texts, round_of_record)

    @property
    def suppressed(self) -> np.ndarray:
        """(n,) bool."""
        return self.round_of_record < 0

    def column(self, j: int, encoded: EncodedAttribute, render: Render) -> pl.Series:
        """The published cells of attribute j."""
        places = (self.round_of_record, encoded.ranks)
        return _column(encoded.attribute.name, *self.cells(j, encoded, render), places)

    def cells(
        self, j: int, encoded: EncodedAttribute, render: Render
    ) -> tuple[list[str], np.ndarray]:
        """The distinct texts of attribute j, and which of them each rank shows in each round.

        The latter (rounds + 1, ranks) uint32; last the mark, where -1, a suppressed record, leads.
        """
        texts = [text for of_round in self.texts for text in of_round[j]]
        distinct, cell = cells_of_classes(texts, np.arange(len(texts)), render)
        of_rounds = cell[:-1].reshape(len(self.texts), len(encoded.texts))
        return distinct, np.append(of_rounds, np.full((1, len(encoded.texts)), cell[-1]), axis=0)


def cells_of_classes(
    texts: list[str], text_of_class: np.ndarray, render: Render
) -> tuple[list[str], np.ndarray]:
    """The distinct texts, and which of them each class shows.

    The latter (classes + 1,) uint32; last the mark, where label -1, a suppressed record, leads.
    """
    distinct: dict[str, int] = {}
    cell_of_text = np.array(
        [distinct.setdefault(text, len(distinct)) for text in texts], dtype=np.uint32
    )
    mark = distinct.setdefault(render.suppressed, len(distinct))
    return list(distinct), np.append(cell_of_text[text_of_class], np.uint32(mark))


def _column(
    name: str, texts: list[str], cell: np.ndarray, places: np.ndarray | tuple[np.ndarray, ...]
) -> pl.Series:
    """The published cells: these texts, "" as null.

    cell: which of the texts each place shows. places: (n,) what indexes `cell`, of each record.
    """
    kind = pl.Enum([text for text in texts if text])
    if "" in texts:
        return pl.Series(name, [text or None for text in texts], dtype=kind).gather(cell[places])
    # the numbers by which Polars itself knows the texts, so that nothing is looked up again
    numbers = cell.astype(pl.Series([], dtype=kind).to_physical().to_numpy().dtype)
    return pl.Series(name, numbers[places]).cat.to(kind)


def rank_texts(cut: Cut, j: int, encoded: EncodedAttribute, render: Render) -> tuple[str, ...]:
    """The published text of each rank of attribute j under a cut."""
    # ranks ascend by position, so those of a span stand side by side
    span = cut.spans(j, encoded.positions)
    used, first = np.unique(span, return_index=True)
    last = np.append(first[1:], len(span)) - 1
    labels = _labels_of_level(cut, j, encoded)
    texts: list[str] = []
    for number, lo, hi in zip(used.tolist(), first.tolist(), last.tolist(), strict=True):
        start, end = _ends(cut, j, encoded, number)
        if lo == hi >= encoded.present:
            text = encoded.texts[lo]
        elif hi >= encoded.present:
            # two texts for no value, or a value beside none: nothing narrower covers both
            text = render.suppressed
        elif start >= end and encoded.values[lo] == encoded.values[hi] and labels is None:
            text = _own_text(encoded, lo, render)
        else:
            text = _text_of_span(encoded, start, end, labels, render)
        texts += [text] * (hi - lo + 1)
    return tuple(texts)


def code_texts(
    cut: Cut, j: int, encoded: EncodedAttribute, codes: np.ndarray, render: Render
) -> list[str]:
    """The published text of any positions of attribute j but missing ones, occurring or not."""
    labels = _labels_of_level(cut, j, encoded)
    used, inverse = np.unique(cut.spans(j, codes), return_inverse=True)
    ends = [_ends(cut, j, encoded, number) for number in used.tolist()]
    texts = [_text_of_span(encoded, start, end, labels, render) for start, end in ends]
    return [texts[i] for i in inverse.tolist()]


def _labels_of_level(cut: Cut, j: int, encoded: EncodedAttribute) -> np.ndarray | None:
    """Labels of the leaves where one level of a hierarchy has them."""
    if cut.levels is None or not isinstance(encoded.reach, Hierarchy):
        return None
    return encoded.reach.labels_at(cut.levels[j])


def _ends(cut: Cut, j: int, encoded: EncodedAttribute, number: int) -> tuple[int, int]:
    """First and last position of a span."""
    starts = cut.starts[j]
    end = min(int(starts[number + 1]) - 1, encoded.end) if number + 1 < len(starts) else encoded.end
    return int(starts[number]), end


def _text_of_span(
    encoded: EncodedAttribute, start: int, end: int, labels: np.ndarray | None, render: Render
) -> str:
    if isinstance(encoded.reach, Hierarchy):
        if labels is not None:
            return str(labels[start])
        return encoded.reach.labels[
            int(encoded.reach.covering(np.array([start]), np.array([end]))[0])
        ]
    lo, hi = span_ends(encoded, start, end)
    return interval_text(lo, hi, encoded.attribute, render)


def mean_text(mean: float, decimals: int) -> str:
    """A mean as it is published: no exponent, no zeros at the end."""
    return plain_text(Decimal(f"{mean:.{decimals}f}"))


def _hides_values(texts: list[str], encoded: EncodedAttribute) -> np.ndarray:
    """Whether each text is an interval around a value that it does not show; (texts,) bool."""
    if encoded.attribute.round is None:
        return np.zeros(len(texts), dtype=bool)
    return np.array([text not in encoded.texts for text in texts], dtype=bool)


def _distinct(numbers: np.ndarray, below: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct numbers, ascending, and the index of each; by a table if that is small."""
    if below > 4 * len(numbers) + (1 << 16):
        return np.unique(numbers, return_inverse=True)
    occurs = np.zeros(below, dtype=bool)
    occurs[numbers] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[numbers]


def texts_of_classes(
    lo: np.ndarray,
    hi: np.ndarray,
    encoded: EncodedAttribute,
    render: Render,
    has_stars: bool = False,
) -> tuple[list[str], np.ndarray]:
    """The text of every span of ranks that occurs, and which of them each class shows."""
    ranks = len(encoded.texts)
    spans, text_of_class = _distinct(lo.astype(np.int64) * ranks + hi, ranks * ranks)
    return span_texts(spans // ranks, spans % ranks, encoded, render, has_stars), text_of_class


def span_texts(
    lo: np.ndarray,
    hi: np.ndarray,
    encoded: EncodedAttribute,
    render: Render,
    has_stars: bool = False,
) -> list[str]:
    """The text of each span of ranks. has_stars: the mark for all that hold several values."""
    hierarchy = encoded.attribute.hierarchy
    whole = hi < encoded.present
    node = np.zeros(len(lo), dtype=np.int32)
    if hierarchy is not None and whole.any():
        leaves = encoded.values.astype(np.int32)
        node[whole] = hierarchy.covering(leaves[lo[whole]], leaves[hi[whole]])
    texts = []
    for i in range(len(lo)):
        if lo[i] == hi[i] or (whole[i] and encoded.values[lo[i]] == encoded.values[hi[i]]):
            texts.append(_own_text(encoded, int(lo[i]), render))
        elif has_stars or not whole[i]:
            # some have a value and some have none: nothing narrower covers both
            texts.append(render.suppressed)
        elif hierarchy is not None:
            texts.append(hierarchy.labels[node[i]])
        else:
            ends = encoded.texts[lo[i]], encoded.texts[hi[i]]
            texts.append(interval_text(*ends, encoded.attribute, render))
    return texts


def _own_text(encoded: EncodedAttribute, rank: int, render: Render) -> str:
    """What is published of records that agree on a value."""
    text = encoded.texts[rank]
    if encoded.attribute.round is None or rank >= encoded.present:
        return text
    return interval_text(text, text, encoded.attribute, render)


# Ends of intervals, moved outward to round numbers: what is published is nobody's own value.


def interval_text(lo: str, hi: str, attribute: Attribute, render: Render) -> str:
    """The two ends as an interval; one value, if both are the same text."""
    head, middle, tail = render.parts
    if attribute.round is not None:
        lo, hi = rounded_ends(lo, hi, attribute)
    return lo if lo == hi else f"{head}{lo}{middle}{hi}{tail}"


def rounded_ends(lo: str, hi: str, attribute: Attribute) -> tuple[str, str]:
    """The nearest multiples of `round` outside the two ends, or the ends of the domain.

    A value that is a multiple itself stays as it is written.
    """
    assert attribute.round is not None
    assert attribute.domain is not None
    least, greatest = (Decimal(str(end)) for end in attribute.domain)
    low, high = Decimal(lo.strip()), Decimal(hi.strip())
    below = multiple_below(low, attribute.round)
    above = multiple_below(high.copy_negate(), attribute.round).copy_negate()
    if low == high == below:
        return lo, lo
    # a domain that was seen is a float, beyond which a longer number may lie
    return (
        plain_text(least if below < least <= low else below),
        plain_text(greatest if high <= greatest < above else above),
    )


def is_rounded(lo: float, hi: float, attribute: Attribute) -> bool:
    """Whether the ends of a published interval are multiples of `round` or ends of the domain."""
    assert attribute.round is not None
    outermost = attribute.domain or (None, None)
    return all(
        end == furthest or multiple_below(end, attribute.round) == Decimal(str(end))
        for end, furthest in zip((lo, hi), outermost, strict=True)
    )


def span_ends(encoded: EncodedAttribute, start: int, end: int) -> tuple[str, str]:
    """The two ends of a span of positions of a linear attribute, on the grid of its domain.

    They follow from the domain and the number of decimals alone, not from which values occur; but
    where a value has more digits than floats tell apart, they are at least as far out as it.
    """
    attribute = encoded.attribute
    if attribute.kind is Kind.ORDINAL:
        order = attribute.order or ()
        return order[start], order[end]
    return _around_long(encoded, start, end, *_grid_ends(encoded, start, end))


def _around_long(
    encoded: EncodedAttribute, start: int, end: int, lo: str, hi: str
) -> tuple[str, str]:
    """The ends, moved outward to the digits of outermost values that floats round."""
    inside = np.searchsorted(encoded.positions[: encoded.present], (start, end + 1))
    texts = encoded.texts[inside[0] : inside[1]]
    outermost = {texts[0], texts[-1]} if texts else set()
    for text in outermost:
        if is_long([text])[0]:
            lo, hi = min(lo, exact_text(text), key=Decimal), max(hi, exact_text(text), key=Decimal)
    return lo, hi


def _grid_ends(encoded: EncodedAttribute, start: int, end: int) -> tuple[str, str]:
    low, high = linear_domain(encoded.attribute, encoded.values)
    unit = position_unit(encoded.values, high - low)
    if end >= encoded.end:
        end = math.ceil((high - low) / unit)
    decimals = next((d for d in range(7) if unit == 10.0**-d), None)
    # positions are rounded values: the span's ends, and half a step for the rounding
    if decimals is None:
        ends = low + (start - 1) * unit, low + (end + 1) * unit
        return number_text(max(ends[0], low)), number_text(min(ends[1], high))
    # the multiples of the unit that are rounded to `start` and `end`
    least = math.ceil((low + (start - 0.5) * unit) / unit - 1e-6)
    greatest = math.floor((low + (end + 0.5) * unit) / unit + 1e-6)
    lo, hi = (Decimal(number).scaleb(-decimals) for number in (least, greatest))
    return (
        number_text(low) if lo <= Decimal(str(low)) else format(lo, "f"),
        number_text(high) if hi >= Decimal(str(high)) else format(hi, "f"),
    )


# A release of two tables. The first has the quasi-identifiers and the number of each row's group;
# the second has a row for each value of a group: group, value, count. Rows of a group and its
# values may be dealt to each other in any way.


def sensitive_path(path: str) -> str:
    """Where the second table goes: `r.csv` beside `r.sensitive.csv`."""
    parts = Path(path)
    packed = ".gz" if parts.suffix.lower() == ".gz" else ""
    name = parts.name.removesuffix(parts.suffix) if packed else parts.name
    stem, dot, kind = name.rpartition(".")
    last = parts.suffix if packed else ""
    return str(parts.with_name(f"{stem}.{SENSITIVE}{dot}{kind}{last}"))


class TwoTables:
    """The renderer of anatomy: no cell is changed, and no row shows a sensitive value."""

    name: ClassVar[str] = TWO_TABLES

    def tables(
        self, table: Table, encoded: EncodedTable, classes: Partition | Cut, schema: Schema
    ) -> Mapping[str, pl.DataFrame]:
        """Both tables, rows of the first in the order of the input, of the second by group and
        value.
        """
        assert isinstance(classes, Partition)
        numbers = pl.Series(GROUP, classes.labels.astype(np.int64) + 1)
        quasi = [table.frame[attribute.name] for attribute in schema.quasi]
        (sensitive,) = schema.sensitive
        values = as_text(table.frame[sensitive.name]).alias(sensitive.name)
        counted = (
            pl.DataFrame([numbers, values])
            .group_by(GROUP, sensitive.name)
            .agg(pl.len().cast(pl.Int64).alias(COUNT))
            .sort(GROUP, sensitive.name)
        )
        return {"": pl.DataFrame([*quasi, numbers]), SENSITIVE: counted}
