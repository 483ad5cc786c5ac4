"""Values that have an order, such as grades: neighbours are grouped."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shoal.data.hierarchies.edits import as_label, is_whole
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.hierarchies.paths import refuse_values_without_leaf
from shoal.data.option import parameter
from shoal.errors import InputError

TAKES = (
    "hierarchy maker 'order' takes the values in order, such as [low, mid, high], or {values:"
    " [...], fanout: 2}"
)


@dataclass(frozen=True)
class Order:
    """`low -> low..mid -> *`: groups of `fanout` neighbours, groups of such groups, and so on.

    Every listed value is a leaf, whether it occurs or not. Where the last group of a level would
    hold a single member, that member goes on alone.
    """

    kind: ClassVar[str] = "order"
    unmatched_message: ClassVar[str] = (
        "[is|are] not in the listed order; list [it|them] too, or correct the data"
    )

    values: tuple[str, ...] = parameter("all values, in order")
    fanout: int = parameter("members of a group", default=2, low=2)

    @classmethod
    def from_spec(cls, argument: Any) -> "Order":
        """`{order: [a, b, c]}` or `{order: {values: [a, b, c], fanout: 2}}`."""
        given = argument if isinstance(argument, dict) else {"values": argument}
        values, fanout = given.get("values"), given.get("fanout", 2)
        if set(given) - {"values", "fanout"} or not isinstance(values, list | tuple) or not values:
            raise InputError(TAKES)
        if not is_whole(fanout, 2):
            raise InputError(f"{TAKES}: 'fanout' must be a whole number of at least 2")
        labels = tuple(as_label(value, cls.kind) for value in values)
        if len(set(labels)) < len(labels):
            raise InputError(f"{TAKES}: {len(labels) - len(set(labels))} values are listed twice")
        return cls(labels, fanout)

    def values_without_leaf(self, values: np.ndarray) -> np.ndarray:
        """Which values are not in the list; (n,) bool."""
        known = set(self.values)
        return np.array([value not in known for value in values], dtype=bool)

    def make(self, values: np.ndarray) -> Hierarchy:
        """All listed values; raises InputError where one of these isn't among them."""
        refuse_values_without_leaf(self, values)
        paths = [[value] for value in self.values]
        # first and last value of each group of the level
        spans = [(i, i) for i in range(len(paths))]
        while len(spans) > self.fanout:
            groups = [spans[i : i + self.fanout] for i in range(0, len(spans), self.fanout)]
            spans = [(group[0][0], group[-1][1]) for group in groups]
            for low, high in spans:
                for path in paths[low : high + 1]:
                    path.append(
                        self.values[low]
                        if low == high
                        else f"{self.values[low]}..{self.values[high]}"
                    )
        return Hierarchy.from_paths([*path, "*"] for path in paths)
