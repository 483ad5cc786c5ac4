"""What goes into a stream's publisher and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import numpy as np
import polars as pl

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
    float64, as `Space.encode` reads them; records with a quasi-identifier that must be suppressed
    hold NaN.
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

    seq, people: (m,) int64. values: (m, d) float64. kind: (m,) int8, a place in `KINDS`. release:
    (m,) int64, rows of one release leave together. cluster: (m,) int64, -1 where not
    published under one.
    emitted: (m,) int64, seq of the last record that had arrived when this one left.
    made: (c,) int64, numbers of the clusters of kind `new`; lo, hi: (c, d) float64, what each
    publishes,
    fixed for good. live: (w,) int64, clusters that later records may still be published under.
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
