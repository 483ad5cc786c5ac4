"""The public part of a quasi-identifier in a fusion: what all parties know beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np

from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.numbers import parse_numbers
from shoal.data.table import Column
from shoal.data.taxonomy import Taxonomy
from shoal.policy.agreement_model import FusedAttribute

MOST_CELLS = 1 << 20


@dataclass(frozen=True)
class Domain:
    """The cells of one quasi-identifier, and the text of every span of them.

    numbers: least value and step of a number's grid. order: labels of an ordinal. hierarchy: tree
    of a category.
    """

    name: str
    cells: int
    numbers: tuple[Decimal, Decimal] | None = None
    order: tuple[str, ...] | None = None
    hierarchy: Hierarchy | None = None

    @classmethod
    def of(cls, name: str, attribute: FusedAttribute, hierarchy: Hierarchy | None) -> Domain:
        """The domain of an attribute as it is agreed; hierarchy: the one that it names, if any."""
        if hierarchy is not None:
            return cls(name, hierarchy.leaves, hierarchy=hierarchy)
        if isinstance(attribute.order, list):
            return cls(name, len(attribute.order), order=tuple(attribute.order))
        assert attribute.domain is not None
        low, high = (Decimal(repr(end)) for end in attribute.domain)
        step = Decimal(repr(attribute.grid or 1.0))
        return cls(name, int((high - low) // step) + 1, numbers=(low, step))

    @property
    def taxonomy(self) -> Taxonomy:
        return (
            Taxonomy(self.cells, is_number=True)
            if self.hierarchy is None
            else Taxonomy.of_tree(self.hierarchy)
        )

    def text(self, lo: int, hi: int) -> str:
        """What is published for a node."""
        if self.hierarchy is not None:
            return self.hierarchy.labels[
                int(self.hierarchy.covering(np.array([lo]), np.array([hi]))[0])
            ]
        return self._point(lo) if lo == hi else f"[{self._point(lo)}, {self._point(hi)}]"

    def span(self, text: str) -> tuple[int, int]:
        """The cells that a published text means; raises ValueError."""
        if self.hierarchy is not None:
            node = self.hierarchy.node_of_label(text)
            if node < 0:
                raise ValueError("not a node")
            return int(self.hierarchy.first[node]), int(self.hierarchy.last[node])
        ends = (
            text[1:-1].split(", ")
            if text.startswith("[") and text not in (self.order or ())
            else [text, text]
        )
        lo, hi = (self._cell_of_point(end) for end in ends)
        return lo, hi

    def _cell_of_point(self, text: str) -> int:
        if self.numbers is None:
            return (self.order or ()).index(text)
        least, step = self.numbers
        return int((Decimal(text) - least) / step)

    def _point(self, cell: int) -> str:
        if self.numbers is None:
            assert self.order is not None
            return self.order[cell]
        least, step = self.numbers
        return format((least + cell * step).normalize(), "f")

    def cells_of(self, column: Column, party: str) -> tuple[np.ndarray, list[str]]:
        """The cell of every record, and findings about values without one."""
        values = (
            np.array([self._cell(text) for text in column.cells])
            if self.numbers is None
            else self._grid(column)
        )
        outside = values < 0
        if not outside.any():
            return values.astype(np.min_scalar_type(self.cells - 1))[column.codes], []
        count = int(column.counts()[outside].sum())
        message = (
            f"party '{party}', attribute '{self.name}': {count} records lie outside"
            f" {self._bounds}; fix them, or make a new agreement"
        )
        return values, [message]

    @property
    def _bounds(self) -> str:
        """What a value can lie outside of."""
        if self.hierarchy is not None:
            return "its hierarchy"
        return "its order" if self.order else "its domain and grid"

    def _cell(self, text: str) -> int:
        if self.hierarchy is not None:
            node = self.hierarchy.node_of_label(text)
            leaf = self._leaves.get(text, -1)
            return leaf if leaf >= 0 else node if 0 <= node < self.cells else -1
        assert self.order is not None
        return self.order.index(text) if text in self.order else -1

    @cached_property
    def _leaves(self) -> dict[str, int]:
        assert self.hierarchy is not None
        return {label: leaf for leaf, label in enumerate(self.hierarchy.labels[: self.cells])}

    def _grid(self, column: Column) -> np.ndarray:
        assert self.numbers is not None
        least, step = (float(part) for part in self.numbers)
        points = (parse_numbers(column.cells) - least) / step
        cells = np.rint(points)
        with np.errstate(invalid="ignore"):
            fits = (np.abs(points - cells) < 1e-6) & (cells >= 0) & (cells < self.cells)
        return np.where(fits, cells, -1).astype(np.int64)
