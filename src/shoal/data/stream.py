"""A stream's publisher: what its quasi-identifiers may hold and what spans cost, known beforehand;
what goes into it, and what comes out.

A table shows its own domains; a stream never ends, so everything here comes from the policy. Each
quasi-identifier of a record is one float64: the number, the place in the order, or the leaf. A
published cluster is a box, a pair of bounds on each of them, and covers exactly the records that
lie in it, ends included.

A missing value (with `missing: value`) is a leaf of its own right under the root, or lies beyond
the domain by once its width; a box that holds values and missing ones is the whole attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

import numpy as np
import polars as pl

from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.numbers import CERTAIN_DIGITS, is_long
from shoal.data.partition import Matrix
from shoal.data.schema import Attribute, Kind, Missing, Schema
from shoal.data.table import as_text

KINDS = ("new", "reuse", "suppress", "hold", "drop")
NEW, REUSE, SUPPRESS, HOLD, DROP = range(5)


State = Mapping[str, np.ndarray]
"""Everything a publisher remembers, as arrays by name."""


@dataclass(frozen=True)
class Piece:
    """Records of a source, in order.

    position: (n,) int64, the number of each among all records of the source, from 0. bad: number
    and reason of what can't be read as a record. at_end: nothing will ever follow. An empty piece
    that is not the end says that nothing more has come yet. new: fields that the policy drops and
    the first record lacks, so far.
    """

    frame: pl.DataFrame
    position: np.ndarray
    bad: list[tuple[int, str]] = field(default_factory=list)
    at_end: bool = False
    new: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Arrivals:
    """Records in order of arrival.

    seq: (n,) int64, numbers that rise with every record of the stream, one by one. values: (n, d)
        float64, as `Space.encode` reads them, NaN for a missing value that suppresses the record.
    people: (n,) int64, equal for equal subjects.
    """

    seq: np.ndarray
    values: np.ndarray
    people: np.ndarray

    def __len__(self) -> int:
        return len(self.seq)

    def part(self, rows: slice | np.ndarray) -> Arrivals:
        return Arrivals(self.seq[rows], self.values[rows], self.people[rows])

    @classmethod
    def joined(cls, parts: list[Arrivals], attributes: int) -> Arrivals:
        """One after the other."""
        return cls(
            np.concatenate([np.zeros(0, np.int64), *(p.seq for p in parts)]),
            np.concatenate([np.zeros((0, attributes)), *(p.values for p in parts)]),
            np.concatenate([np.zeros(0, np.int64), *(p.people for p in parts)]),
        )


@dataclass(frozen=True)
class Emissions:
    """Decisions about m records, each made once and for good.

    seq, people: (m,) int64. values: (m, d) float64. kind: (m,) int8, a place in `KINDS`.
    release: (m,) int64, rows of one release leave together.
    cluster: (m,) int64, -1 where not published under one.
    emitted: (m,) int64, seq of the last record that had arrived when this one left.
    made: (c,) int64, numbers of the clusters of kind `new`. lo, hi: (c, d) float64, what each
        publishes, fixed for good.
    live: (w,) int64, clusters that later records may still be published under.
    """

    seq: np.ndarray
    people: np.ndarray
    values: np.ndarray
    kind: np.ndarray
    release: np.ndarray
    cluster: np.ndarray
    emitted: np.ndarray
    made: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    live: np.ndarray

    def __len__(self) -> int:
        return len(self.seq)

    def part(self, rows: np.ndarray) -> Emissions:
        """Some decisions, with the clusters that they make. rows: (m,) bool, all or none of each of
        these.
        """
        columns = ("seq", "people", "values", "kind", "release", "cluster", "emitted")
        own = {name: getattr(self, name)[rows] for name in columns}
        made = np.isin(self.made, own["cluster"][own["kind"] == NEW])
        return Emissions(
            **own, made=self.made[made], lo=self.lo[made], hi=self.hi[made], live=self.live
        )

    @classmethod
    def joined(cls, parts: list[Emissions]) -> Emissions:
        """One after the other; the last tells which clusters live."""
        columns = [f.name for f in fields(cls) if f.name != "live"]
        joined = {name: np.concatenate([getattr(p, name) for p in parts]) for name in columns}
        return cls(**joined, live=parts[-1].live)


UNIT = 1 << 24
"""Whole-number distances: a loss of 1, every quasi-identifier suppressed, is this many."""


@dataclass(frozen=True)
class Space:
    """Costs and bounds of d quasi-identifiers.

    low, width: (d,) float64, least value and width of linear attributes; trees have 0 and their
        leaves.
    beyond: (d,) float64, where a missing value stands.
    share: (d,) float64, each attribute's part of the loss, adding up to 1.
    trees: the hierarchy of each attribute, a missing leaf included; None where linear.
    base: (t,) int32 and parent, first, last, cost: the trees' nodes, as in
        `kernels.stream_distances`.
    grid: (d,) float64, to whose multiples bounds of linear attributes are widened; 0 for none.
    """

    schema: Schema
    low: np.ndarray
    width: np.ndarray
    beyond: np.ndarray
    share: np.ndarray
    trees: tuple[Hierarchy | None, ...]
    base: np.ndarray
    parent: np.ndarray
    first: np.ndarray
    last: np.ndarray
    cost: np.ndarray
    grid: np.ndarray

    @classmethod
    def of(cls, schema: Schema, snap: int = 0) -> Space:
        """The space of a schema. snap: steps of the public grid in each number's domain, or 0."""
        quasi = schema.quasi
        weights = np.array([a.weight for a in quasi])
        share = weights / weights.sum()
        trees = tuple(_tree(a, schema.missing is Missing.VALUE) for a in quasi)
        low, width = np.zeros(len(quasi)), np.zeros(len(quasi))
        for j, a in enumerate(quasi):
            if a.hierarchy is not None:
                width[j] = a.hierarchy.leaves
            else:
                ends = (0.0, float(len(a.order or ()) - 1)) if a.kind is Kind.ORDINAL else a.domain
                assert ends is not None
                low[j], width[j] = ends[0], ends[1] - ends[0]
        beyond = np.where([t is not None for t in trees], width, low + 2 * np.maximum(width, 1.0))
        linear = np.array(
            [t is None and a.kind is Kind.NUMBER for t, a in zip(trees, quasi, strict=True)]
        )
        grid = np.where(linear & (snap > 0), width / max(snap, 1), 0.0)
        base, parent, first, last, cost = _nodes(
            [(t, a, s) for t, a, s in zip(trees, quasi, share, strict=True) if t is not None]
        )
        return cls(schema, low, width, beyond, share, trees, base, parent, first, last, cost, grid)

    @property
    def attributes(self) -> int:
        return len(self.trees)

    @property
    def is_tree(self) -> np.ndarray:
        """(d,) bool; the others are numbers or ordinals."""
        return np.array([tree is not None for tree in self.trees], dtype=bool)

    @property
    def linear(self) -> np.ndarray:
        """Which attributes are numbers or ordinals; their places."""
        return np.flatnonzero(~self.is_tree)

    @property
    def bases(self) -> np.ndarray:
        """(d,) int32, where the nodes of each attribute begin, -1 where linear."""
        bases = np.full(self.attributes, -1, np.int32)
        bases[self.is_tree] = self.base
        return bases

    @property
    def costs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The trees in the order that kernels take them."""
        return self.base, self.parent, self.first, self.last, self.cost

    def scaled_positions(self, values: np.ndarray) -> np.ndarray:
        """Positions on the linear attributes in units of loss; (linear, n) int32, C-contiguous."""
        at = self.linear
        scale = self.share[at] * UNIT / np.where(self.width[at] > 0, self.width[at], 1.0)
        return np.ascontiguousarray(
            np.rint((values[:, at] - self.low[at]) * scale).T.astype(np.int32)
        )

    def leaf(self, values: np.ndarray) -> np.ndarray:
        """Leaves on the tree attributes; (trees, n) int32, C-contiguous."""
        return np.ascontiguousarray(values[:, self.is_tree].T.astype(np.int32))

    def published_bounds(
        self, lo: np.ndarray, hi: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What boxes publish: bounds widened to whole nodes, to the grid, or to all.

        To all where a value is missing.

        lo, hi: (c, d) float64, least and greatest value of the members. Also their loss, (c,)
        float64: 0 for single values, 1 for everything.
        """
        lo, hi, loss = lo.copy(), hi.copy(), np.zeros(len(lo))
        for j, tree in enumerate(self.trees):
            if tree is not None:
                node = tree.covering(lo[:, j].astype(np.int32), hi[:, j].astype(np.int32))
                lo[:, j], hi[:, j] = tree.first[node], tree.last[node]
                whole = self.schema.quasi[j].hierarchy.leaves - 1  # type: ignore[union-attr]
            else:
                self._widen(j, lo, hi)
                whole = self.width[j]
            loss += self.share[j] * np.clip(
                (hi[:, j] - lo[:, j]) / whole if whole > 0 else hi[:, j] > lo[:, j], 0, 1
            )
        return lo, hi, loss

    def _widen(self, j: int, lo: np.ndarray, hi: np.ndarray) -> None:
        valued = hi[:, j] < self.beyond[j]
        if self.grid[j] > 0:
            step, low = self.grid[j], self.low[j]
            down = low + np.floor((lo[:, j] - low) / step) * step
            up = low + np.ceil((hi[:, j] - low) / step) * step
            # rounding must not move a bound inwards
            lo[valued, j] = np.minimum(down, lo[:, j])[valued]
            hi[valued, j] = np.clip(
                np.maximum(up, hi[:, j]), None, np.maximum(low + self.width[j], hi[:, j])
            )[valued]
        mixed = ~valued & (lo[:, j] < self.beyond[j])
        lo[mixed, j] = self.low[j]

    def encode(self, frame: pl.DataFrame) -> tuple[np.ndarray, dict[int, str]]:
        """The values of n records, (n, d) float64, and by row why some can't be read.

        NaN where a missing value suppresses the record. Reasons name attributes and rules, never
        values.
        """
        values = np.empty((frame.height, self.attributes))
        wrong: dict[int, str] = {}
        for j, attribute in enumerate(self.schema.quasi):
            text = as_text(frame[attribute.name])
            column, unfit, why = _read(attribute, text)
            if not unfit.any():  # and so none is missing: the usual case
                values[:, j] = column
                continue
            missing = text.is_in(self.schema.no_names).to_numpy()
            for row in np.flatnonzero(unfit & ~missing):
                wrong.setdefault(int(row), f"attribute '{attribute.name}': {why(int(row))}")
            if missing.any():
                column = np.where(
                    missing,
                    np.nan if self.schema.missing is Missing.SUPPRESS else self.beyond[j],
                    column,
                )
                if self.schema.missing is Missing.REJECT:
                    for row in np.flatnonzero(missing):
                        wrong.setdefault(
                            int(row),
                            f"attribute '{attribute.name}': no value, which the policy rejects",
                        )
            values[:, j] = column
        return values, wrong


def _read(
    attribute: Attribute, text: pl.Series
) -> tuple[np.ndarray, np.ndarray, Callable[[int], str]]:
    """The column as float64, which rows don't fit, and a function that says why a row doesn't."""
    if attribute.hierarchy is not None or attribute.kind is Kind.ORDINAL:
        places = attribute.places(text)
        where = "order" if attribute.hierarchy is None else "hierarchy"
        return places, np.isnan(places), lambda row: f"missing from its {where}"
    bare, parsed = text, text.cast(pl.Float64, strict=False)
    if parsed.null_count():
        bare = text.str.strip_chars()
        parsed = bare.cast(pl.Float64, strict=False).fill_null(np.nan)
    numbers = parsed.to_numpy()
    assert attribute.domain is not None
    low, high = attribute.domain
    finite, inside = np.isfinite(numbers), (numbers >= low) & (numbers <= high)
    long = np.zeros(len(bare), dtype=bool)
    if (bare.str.len_bytes() > CERTAIN_DIGITS).any():
        long = is_long(bare)

    def why(row: int) -> str:
        if not finite[row]:
            return "no number"
        if not inside[row]:
            return "outside its domain"
        return "a number of more digits than can be told apart"

    return numbers, ~(finite & inside & ~long), why


def _tree(attribute: Attribute, with_missing: bool) -> Hierarchy | None:
    if attribute.hierarchy is None:
        return None
    return attribute.hierarchy.with_leaf("") if with_missing else attribute.hierarchy


def _nodes(trees: list[tuple[Hierarchy, Attribute, float]]) -> tuple[np.ndarray, ...]:
    """base, parent, first, last and cost of all trees, one after the other."""
    nodes = Matrix.from_columns(np.zeros((0, len(trees))), [tree for tree, _, _ in trees])
    costs = [np.zeros(0)]
    for tree, attribute, share in trees:
        leaves = attribute.hierarchy.leaves if attribute.hierarchy is not None else 1
        # a leaf for missing values must not make the others cheaper
        wide = np.minimum((tree.last - tree.first) / max(leaves - 1, 1), 1.0)
        costs.append(np.rint(wide * share * UNIT))
    cost = np.concatenate(costs).astype(np.int32)
    return nodes.base, nodes.parent, nodes.first, nodes.last, cost
