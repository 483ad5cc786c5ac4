"""Names under their first letters."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shoal.extend import Hierarchy, HierarchyMaker, InputError


@dataclass(frozen=True)
class Initials(HierarchyMaker):
    """`Berlin -> Be... -> B... -> *` for two letters."""

    kind: ClassVar[str] = "initials"
    unmatched_message: ClassVar[str] = (
        "[begins|begin] with no letter; correct [it|them], or list [it|them] under 'missing_values'"
    )

    letters: int

    @classmethod
    def from_spec(cls, argument: Any) -> "Initials":
        """The maker that a policy asks for."""
        if isinstance(argument, bool) or not isinstance(argument, int) or not 1 <= argument <= 9:
            raise InputError("hierarchy maker 'initials' takes the number of letters, from 1 to 9")
        return cls(argument)

    def values_without_leaf(self, values: np.ndarray) -> np.ndarray:
        """Which values begin with no letter."""
        return np.array([not value[:1].isalpha() for value in values], dtype=bool)

    def make(self, values: np.ndarray) -> Hierarchy:
        """Every value under its first letters; the same for any order of the values."""
        unmatched = int(self.values_without_leaf(values).sum())
        if unmatched:
            raise InputError(f"{unmatched} distinct values begin with no letter; correct them")
        if not len(values):
            return Hierarchy.from_paths([["*"]])
        return Hierarchy.from_paths(
            [value, *(value[:n] + "..." for n in range(self.letters, 0, -1)), "*"]
            for value in sorted(set(values))
        )
