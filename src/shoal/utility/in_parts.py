"""Measures that add up over the parts of a release."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.data.classes import Sizes
from shoal.data.release import PublishedColumn, Release
from shoal.protocols import PartedMetric


class InParts(PartedMetric):
    """A measure of which the whole release is but one part."""

    def score(self, release: Release) -> float | None:
        return self.total([self.part(release)])

    @abstractmethod
    def part(self, release: Release) -> Any: ...

    @abstractmethod
    def total(self, parts: Sequence[Any]) -> float | None: ...


class OfSizes(InParts):
    """A measure of nothing but how many people are in each class."""

    def part(self, release: Release) -> Sizes:
        return Sizes.of(release.classes.people())

    def total(self, parts: Sequence[Sizes]) -> float | None:
        return self.of_sizes(Sizes.joined(parts))

    @abstractmethod
    def of_sizes(self, sizes: Sizes) -> float | None: ...


@dataclass(frozen=True)
class CellCounts:
    """What measures of cells need: which are shown how often, by attribute.

    columns: without the codes of the records. counts: (cells,) int64 of each column.
    """

    records: int
    suppressed: int
    columns: tuple[PublishedColumn, ...]
    counts: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, release: Release) -> "CellCounts":
        return cls(
            release.records,
            release.suppressed,
            tuple(replace(column, codes=column.codes[:0]) for column in release.columns),
            tuple(release.cell_counts[column.name] for column in release.columns),
        )

    @classmethod
    def joined(cls, parts: "Sequence[CellCounts]") -> "CellCounts":
        """Of all parts of one release; there is at least one."""
        return cls(
            sum(part.records for part in parts),
            sum(part.suppressed for part in parts),
            parts[0].columns,
            tuple(
                sum(counts, start=np.zeros_like(counts[0]))
                for counts in zip(*(part.counts for part in parts), strict=True)
            ),
        )


class OfCells(InParts):
    """A measure of which cells are shown how often."""

    def part(self, release: Release) -> CellCounts:
        return CellCounts.of(release)

    def total(self, parts: Sequence[CellCounts]) -> float | None:
        return self.of_cells(CellCounts.joined(parts))

    @abstractmethod
    def of_cells(self, cells: CellCounts) -> float | None: ...
