"""Before and after: how a quasi-identifier is distributed in the original and in the release.

A report is a publication, too, so what it may show of the original follows one rule:

1. What the release says is public: published cells are counted as they are, each spread evenly over
   the span that it covers.
2. The original is shown in bars that each stand for at least `least` people (the largest k that the
   policy asks, never below FEWEST). Neighbouring intervals with fewer are merged, rare labels are
   folded into one bar, and what is still below is not shown. The bar's records are rounded to a
   multiple of `least`, so that no difference of two figures counts a single person.
3. A label is shown where it is schema, that is, where the policy or a hierarchy file names it. A
   label that comes from the data - flat categories, made hierarchies, orders by frequency - is
   shown only where the release shows it, or a value below it.
4. The ends of an axis are round numbers about what is published, never the original's extremes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from shoal.data.certificate_shape import unit
from shoal.data.classes import Sizes
from shoal.data.encoding import EncodedAttribute
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.language import gettext
from shoal.data.numbers import weighted_sum
from shoal.data.regular_files import Json
from shoal.data.release import PublishedColumn
from shoal.data.schema import Attribute, Kind
from shoal.data.single_ends import step_of
from shoal.policy.model import AttributePolicy
from shoal.reports import charts, pages
from shoal.utility.gcp import GlobalCertaintyPenalty

FEWEST = 5
MOST_LABELS = 12
MOST_INTERVALS = 24
ENOUGH = 0.9
SINGLE = 0.01
SCHEMA_MAKERS = ("tree", "order")
OTHERS = gettext("(all others)")
NO_VALUE = gettext("(no value)")


@dataclass(frozen=True)
class Distribution:
    """One quasi-identifier before and after, safe to show.

    labels: text of every bar. edges: (bars + 1,) float64 ends of the intervals, None for labels.
    before: (bars,) float64 records of the original, NaN where fewer than `least` people stand
        behind them; None where the original is not at hand.
    after: (bars,) float64 records of the release, spread over what they cover.
    hidden: published records, suppressed ones apart, that show the mark and are in no bar.
    records: all those of which the bars are shares.
    """

    name: str
    labels: tuple[str, ...]
    edges: np.ndarray | None
    before: np.ndarray | None
    after: np.ndarray
    hidden: int = 0
    records: int = 1

    @property
    def percent(self) -> tuple[np.ndarray | None, np.ndarray]:
        """(bars,) percent of the records before, if that may be shown, and after."""
        whole = max(self.records, 1) / 100
        return None if self.before is None else self.before / whole, self.after / whole

    def report(self) -> Json:
        """Its bars in percent, as JSON can hold them."""
        before, after = self.percent
        return {
            "name": self.name,
            "labels": list(self.labels),
            "edges": None if self.edges is None else self.edges.tolist(),
            "before": None if before is None else _numbers(before),
            "after": _numbers(after),
            "hidden": self.hidden,
        }

    @classmethod
    def of(cls, report: Json) -> Distribution:
        """What `report` gave."""
        edges, before, after = (
            None if report[key] is None else np.array(report[key], dtype=np.float64)
            for key in ("edges", "before", "after")
        )
        assert after is not None
        labels = tuple(report["labels"])
        return cls(report["name"], labels, edges, before, after, report["hidden"], records=100)


def _numbers(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else round(float(value), 4) for value in values]


@dataclass(frozen=True)
class Counts:
    """The original by distinct value, (values,) each; the last place counts records without a
    value.

    values: numbers, places of an order or leaves. people: no person is counted twice, so that sums
    over values are at most the people behind them.
    """

    values: np.ndarray
    records: np.ndarray
    people: np.ndarray

    @classmethod
    def of(cls, encoded: EncodedAttribute, owners: np.ndarray | None) -> Counts:
        """owners: one record of every person; None where every record is its own person."""
        records = _by_value(encoded, encoded.ranks)
        people = records if owners is None else _by_value(encoded, encoded.ranks[owners])
        return cls(encoded.values, records, people)


def _by_value(encoded: EncodedAttribute, ranks: np.ndarray) -> np.ndarray:
    counts = np.bincount(ranks, minlength=len(encoded.texts)).astype(np.float64)
    return np.append(counts[: encoded.present], counts[encoded.present :].sum())


def least_shown(measured: pages.Measured) -> int:
    """How many people stand behind every figure of the original."""
    asked = [getattr(promise, "k", None) for promise in measured.policy.build_promises()]
    return max([FEWEST, *(k for k in asked if isinstance(k, int))])


def distributions_of(measured: pages.Measured, names: Container[str]) -> tuple[Distribution, ...]:
    """Each of these quasi-identifiers before and after; what can't be shown safely is left out."""
    release, truth, least = measured.release, measured.truth, least_shown(measured)
    originals = {} if truth is None else {e.attribute.name: e for e in truth.encoded.attributes}
    subjects = None if truth is None else truth.encoded.subjects
    owners = None if subjects is None else np.unique(subjects, return_index=True)[1]
    columns = {column.name: column for column in release.columns}
    found = []
    for attribute in (a for a in measured.schema.quasi if a.name in names):
        original = originals.get(attribute.name)
        count = None if original is None else Counts.of(original, owners)
        safe = SafeColumn.of(
            columns[attribute.name], release.cell_counts[attribute.name], count, least
        )
        drawn = safe.distribution(attribute, measured.policy.model.attributes[attribute.name])
        found.append(replace(drawn, records=release.records))
    return tuple(found)


@dataclass(frozen=True)
class SafeColumn:
    """One quasi-identifier, to be shown by the rule of this file.

    column: its published cells, those that occur outside suppressed records. shown: records that
    show each. original: None where it is not at hand.
    """

    column: PublishedColumn
    shown: np.ndarray
    original: Counts | None
    least: int

    @classmethod
    def of(
        cls, column: PublishedColumn, shown: np.ndarray, original: Counts | None, least: int
    ) -> SafeColumn:
        """shown: (cells,) int64, of all cells of the column."""
        occurs = shown > 0
        column = replace(
            column,
            cells=tuple(cell for cell, there in zip(column.cells, occurs, strict=True) if there),
            lo=column.lo[occurs],
            hi=column.hi[occurs],
            widths=column.widths[occurs],
        )
        return cls(column, shown[occurs].astype(np.float64), original, least)

    def distribution(self, attribute: Attribute, declared: AttributePolicy) -> Distribution:
        tree = attribute.hierarchy
        if attribute.opaque or (tree is None and attribute.kind is Kind.CATEGORY):
            return self._cells()
        if tree is not None:
            named = isinstance(declared.hierarchy, str) or (
                isinstance(declared.hierarchy, dict)
                and next(iter(declared.hierarchy)) in SCHEMA_MAKERS
            )
            levels = _tree_levels(tree, None if named else _public_labels(tree, self.column.cells))
            return self._labels(levels, tree.leaves, by_size=declared.hierarchy is None)
        if attribute.kind is Kind.ORDINAL:
            order = attribute.order or ()
            ends = np.concatenate([self.column.lo, self.column.hi])
            public = np.isin(np.arange(len(order)), ends) | isinstance(declared.order, list)
            level = _Level(np.arange(len(order)), np.array(order, dtype=object), public)
            return self._labels(iter([level]), len(order), by_size=False)
        return self._numbers()

    # Labels

    def _cells(self) -> Distribution:
        """The most frequent published cells as they are: what they cover is not known."""
        mark = np.isneginf(self.column.lo)
        size = np.where(mark, 0.0, self.shown)
        top = [i for i in np.lexsort((np.arange(len(size)), -size)) if size[i]][:MOST_LABELS]
        labels = [self.column.cells[i] or NO_VALUE for i in top]
        after = [size[i] for i in top]
        if size.sum() > sum(after):
            labels.append(OTHERS)
            after.append(size.sum() - sum(after))
        hidden = int(self.shown[mark].sum())
        return Distribution(self.column.name, tuple(labels), None, None, np.array(after), hidden)

    def _labels(self, levels: Iterator[_Level], leaves: int, by_size: bool) -> Distribution:
        """Bars at the finest level that shows nearly everything."""
        after = self._spread_over_leaves(leaves)
        records, people = self._by_place(leaves, lambda values: values.astype(np.int64))
        best = max(
            (self._bars(level, after, records, people) for level in levels),
            key=lambda bars: bars.coverage,
        )
        order = list(range(len(best.sizes)))
        if by_size:
            order.sort(key=lambda i: -best.sizes[i])
        labels, bars = [best.labels[i] for i in order], [best.leaves[i] for i in order]
        others = np.setdiff1d(np.arange(leaves), np.concatenate([*bars, np.zeros(0, np.int64)]))
        if after[others].sum() > 0 or people[others].sum() >= self.least:
            labels.append(OTHERS)
            bars.append(others)
        before = [self._rounded(records[members].sum(), people[members].sum()) for members in bars]
        return self._shown_with(labels, None, before, [after[members].sum() for members in bars])

    def _bars(
        self, level: _Level, after: np.ndarray, records: np.ndarray, people: np.ndarray
    ) -> _Bars:
        """The largest nodes of a level that may be shown, in the order of the level."""
        nodes, first, of_leaf = np.unique(level.node, return_index=True, return_inverse=True)
        size = np.bincount(
            of_leaf, weights=after if self.original is None else records, minlength=len(nodes)
        )
        behind = np.bincount(of_leaf, weights=people, minlength=len(nodes))
        may = level.public[first] & ((self.original is None) | (behind >= self.least)) & (size > 0)
        top = [i for i in np.lexsort((first, -size)) if may[i]][:MOST_LABELS]
        top.sort(key=lambda i: first[i])
        coverage = float(size[top].sum() / size.sum()) if size.sum() else 0.0
        members = tuple(np.flatnonzero(of_leaf == i) for i in top)
        # a single bar tells little: only where there is nothing better
        coverage = min(coverage, ENOUGH) if len(top) > 1 else coverage * SINGLE
        labels = tuple(level.labels[first[i]] for i in top)
        return _Bars(labels, members, tuple(float(size[i]) for i in top), coverage)

    def _spread_over_leaves(self, leaves: int) -> np.ndarray:
        """(leaves,) float64, the release's records, each spread evenly over its cell's leaves."""
        valued = ~np.isnan(self.column.lo)
        lo = np.clip(self.column.lo[valued], 0, leaves - 1).astype(np.int64)
        hi = np.clip(self.column.hi[valued], 0, leaves - 1).astype(np.int64)
        each = self.shown[valued] / (hi - lo + 1)
        # exact at the leaves that nothing covers: narrow cells one by one, then the sum of wide
        # ones
        spread = np.zeros(leaves)
        np.add.at(spread, lo[lo == hi], each[lo == hi])
        wide = np.flatnonzero(lo < hi)
        spans, which = np.unique(lo[wide] * leaves + hi[wide], return_inverse=True)
        weights = np.bincount(which, weights=each[wide], minlength=len(spans))
        for span, weight in zip(spans, weights, strict=True):
            spread[span // leaves : span % leaves + 1] += weight
        return spread

    def _by_place(
        self, count: int, place_of: Callable[[np.ndarray], np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Records and people of the original in each leaf or interval; zeros without one."""
        if self.original is None:
            return np.zeros(count), np.zeros(count)
        place = place_of(self.original.values)
        return (
            np.bincount(place, weights=self.original.records[:-1], minlength=count),
            np.bincount(place, weights=self.original.people[:-1], minlength=count),
        )

    # Numbers

    def _numbers(self) -> Distribution:
        spans = np.isfinite(self.column.lo)
        hidden = int(self.shown[np.isneginf(self.column.lo)].sum())
        if not spans.any():
            return Distribution(self.column.name, (), np.zeros(0), None, np.zeros(0), hidden)
        lo, hi, weights = self.column.lo[spans], self.column.hi[spans], self.shown[spans]
        whole = bool(
            (lo == np.rint(lo)).all() and (hi == np.rint(hi)).all() and np.abs(hi).max() < 2**52
        )
        edges = round_edges(float(lo.min()), float(hi.max()), whole)
        count = len(edges) - 1
        # what lies outside counts to the ends
        records, people = self._by_place(
            count, lambda at: np.clip(np.searchsorted(edges, at, side="right") - 1, 0, count - 1)
        )
        merged, bins = self._merged(edges, people)
        after = spread_over_intervals(lo, hi + whole, weights, merged)
        before = [self._rounded(records[part].sum(), people[part].sum()) for part in bins]
        labels = [interval_text(low, high, whole) for low, high in pairwise(merged)]
        return self._shown_with(labels, merged, before, after.tolist(), hidden)

    def _merged(self, edges: np.ndarray, people: np.ndarray) -> tuple[np.ndarray, list[slice]]:
        """Neighbouring intervals with too few people as one, as few of them as it takes.

        A run that has too few people altogether is one interval, too; nothing is shown for it.
        """
        if self.original is None:
            return edges, [slice(i, i + 1) for i in range(len(people))]
        starts = [0]
        for i in range(1, len(people)):
            behind = people[starts[-1] : i].sum()
            if people[i] >= self.least or behind >= self.least:
                starts.append(i)
        ends = [*starts, len(people)]
        return edges[ends], [slice(a, b) for a, b in pairwise(ends)]

    # Both

    def _rounded(self, records: float, people: float) -> float:
        return float(np.rint(records / self.least) * self.least) if people >= self.least else np.nan

    def _shown_with(
        self,
        labels: list[str],
        edges: np.ndarray | None,
        before: list[float],
        after: list[float],
        hidden: int = 0,
    ) -> Distribution:
        """These bars, and one more of the records without a value where there are any."""
        no_value, lacking = float(self.shown[np.isnan(self.column.lo)].sum()), np.nan
        known = None
        if self.original is not None:
            lacking = self._rounded(self.original.records[-1], self.original.people[-1])
        if no_value or lacking > 0:
            labels, before, after = [*labels, NO_VALUE], [*before, lacking], [*after, no_value]
        if self.original is not None:
            known = np.array(before, dtype=np.float64)
        heights = np.array(after, dtype=np.float64)
        return Distribution(self.column.name, tuple(labels), edges, known, heights, hidden)


@dataclass(frozen=True)
class _Level:
    """One way to group leaves: node, label and whether that label is public, of each leaf."""

    node: np.ndarray
    labels: np.ndarray
    public: np.ndarray


@dataclass(frozen=True)
class _Bars:
    """Nodes to draw; coverage: the share of records they stand for, as far as more is better."""

    labels: tuple[str, ...]
    leaves: tuple[np.ndarray, ...]
    sizes: tuple[float, ...]
    coverage: float


def _tree_levels(tree: Hierarchy, public: set[str] | None) -> Iterator[_Level]:
    """The levels below the root, finest first; every label is public where `public` is None."""
    for level in range(max(tree.height, 1)):
        labels = tree.labels_at(level)
        may = np.array([public is None or label in public for label in labels], dtype=bool)
        yield _Level(tree.ancestors_at(level), labels, may)


def _public_labels(tree: Hierarchy, cells: tuple[str, ...]) -> set[str]:
    """What the release shows of a tree made from the data: published labels and all above them."""
    public = set(cells)
    above = set()
    for cell in cells:
        node = tree.node_of_label(cell)
        while node >= 0 and (node := int(tree.parent[node])) >= 0 and node not in above:
            above.add(node)
    public |= {tree.labels[node] for node in above}
    return public | {
        alias.label
        for alias in tree.aliases
        if alias.node in above or tree.labels[alias.node] in cells
    }


def round_edges(lo: float, hi: float, whole: bool) -> np.ndarray:
    """Ends of at most about MOST_INTERVALS equal intervals at round numbers that cover lo..hi.

    whole: an interval a..b holds the whole numbers a to b - 1. Returns (m + 1,) float64.
    """
    wide = (hi - lo + 1) if whole else (hi - lo) or max(abs(lo), 1.0)
    step = step_of(20 * wide / MOST_INTERVALS)
    if whole:
        step = max(1.0, float(np.rint(step)))
    first, last = int(np.floor(lo / step)), int(np.floor(hi / step))
    return np.arange(first, last + 2) * step


def spread_over_intervals(
    lo: np.ndarray, hi: np.ndarray, weights: np.ndarray, edges: np.ndarray
) -> np.ndarray:
    """(intervals,) float64, the weights of spans lo..hi, each spread evenly over its width."""
    width = hi - lo
    below = np.empty(len(edges))
    for i, edge in enumerate(edges):
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(width > 0, np.clip((edge - lo) / width, 0.0, 1.0), lo < edge)
        below[i] = weighted_sum(share, weights)
    return np.diff(below)


def interval_text(lo: float, hi: float, whole: bool) -> str:
    """What an interval between two edges holds, in words."""
    if whole and hi - lo == 1:
        return f"{lo:,.0f}"
    if whole:
        return gettext("{lo:,.0f} to {hi:,.0f}", lo=lo, hi=hi - 1)
    return gettext("{lo:,.10g} to under {hi:,.10g}", lo=lo, hi=hi)


# Their charts and those of the release as a whole, for its page and for notebooks.


MOST_DRAWN = 24  # columns on one page or in one figure; the tables have all of them


def sizes_chart(measured: pages.Measured) -> charts.Chart | None:
    """How many classes have how many people; None where there is no class."""
    found = Sizes.of(measured.release.classes.people())
    if not found.count:
        return None
    counted = gettext(unit(measured.certificate).many)
    required_k = measured.release.required_k
    return charts.class_sizes_chart(found.sizes, found.groups, required_k, counted)


def losses_of(measured: pages.Measured) -> dict[str, float | None]:
    """The loss (gcp) of every quasi-identifier, as the certificate has it; None if unknown."""
    return GlobalCertaintyPenalty().per_attribute(measured.release)


def drawn_of(losses: Mapping[str, float | None]) -> dict[str, float | None]:
    """Those of the quasi-identifiers that are drawn, in their order: the ones that lost most."""
    by_loss = sorted(losses, key=lambda name: -(losses[name] or 0.0))
    drawn = set(by_loss[:MOST_DRAWN])
    return {name: loss for name, loss in losses.items() if name in drawn}


def distribution_chart(found: Distribution) -> charts.Chart | None:
    """A quasi-identifier before and after, in percent of the records; None of nothing."""
    before, after = found.percent
    if found.edges is not None and len(found.edges) > 1:
        count = len(found.edges) - 1
        shown = None if before is None else before[:count]
        labels = found.labels[:count]
        return charts.intervals_chart(found.name, labels, found.edges, shown, after[:count])
    if len(found.labels):
        return charts.labels_chart(found.name, found.labels, before, after)
    return None
