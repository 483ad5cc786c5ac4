"""A column without a hierarchy: every value lies right under the root."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.option import parameter
from shoal.errors import InputError


@dataclass(frozen=True)
class Flat:
    """`value -> *`: either the value is published, or nothing of it."""

    kind: ClassVar[str] = "flat"
    by_value: ClassVar[bool] = True
    unmatched_message: ClassVar[str] = "have no place"

    root: str = parameter("label of the root", default="*")

    @classmethod
    def from_spec(cls, argument: Any) -> "Flat":
        """`{flat: true}`; a text instead of `true` names the root."""
        if isinstance(argument, str) and argument:
            return cls(root=argument)
        if argument is True or argument is None:
            return cls()
        raise InputError("hierarchy maker 'flat' takes 'true', or a label for the root")

    def values_without_leaf(self, values: np.ndarray) -> np.ndarray:
        """Which values it has no place for: none. (n,) bool."""
        return np.zeros(len(values), dtype=bool)

    def make(self, values: np.ndarray) -> Hierarchy:
        """Every distinct value under the root, in sorted order; without values the root alone."""
        paths = [[value, self.root] for value in sorted(set(values))]
        return Hierarchy.from_paths(paths or [[self.root]])
