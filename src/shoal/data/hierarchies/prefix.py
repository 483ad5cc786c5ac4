"""Codes that say more with every character, such as postal codes: masked from the right."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shoal.data.hierarchies.edits import is_whole
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.option import parameter
from shoal.errors import InputError


@dataclass(frozen=True)
class Prefix:
    """`13053 -> 1305* -> 130** -> 13*** -> 1**** -> *`: one character less per level.

    A label with p characters and `length - p` stars covers every value that begins with those p, so
    that values of other lengths find their place too: shorter ones join where they still have
    more characters than the level keeps (`123 -> 12***`), longer ones lose all that is beyond
    `length - 1` in one step (`13053-1234 -> 1305*`).
    """

    kind: ClassVar[str] = "prefix"
    by_value: ClassVar[bool] = True
    unmatched_message: ClassVar[str] = "have no place"

    length: int = parameter("characters of a full code", low=1, high=64)

    @classmethod
    def from_spec(cls, argument: Any) -> "Prefix":
        """`{prefix: 5}`."""
        if is_whole(argument, 1, 64):
            return cls(argument)
        raise InputError(
            "hierarchy maker 'prefix' takes the number of characters of a full code, from 1 to 64"
        )

    def values_without_leaf(self, values: np.ndarray) -> np.ndarray:
        """Which values it has no place for: none. (n,) bool."""
        return np.zeros(len(values), dtype=bool)

    def make(self, values: np.ndarray) -> Hierarchy:
        """Every distinct value under its prefixes, sorted; without values the root alone."""
        paths = [self._path(value) for value in sorted(set(values))]
        return Hierarchy.from_paths(paths or [["*"]])

    def _path(self, value: str) -> list[str]:
        kept = range(self.length - 1, 0, -1)
        return [
            value,
            *(value[:p] + "*" * (self.length - p) if len(value) > p else value for p in kept),
            "*",
        ]
