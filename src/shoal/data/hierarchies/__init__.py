"""Generalization hierarchies: one array form, read from tables or made by a rule.

A maker is named in a policy by its kind, with one argument: `hierarchy: {prefix: 5}`. To add one,
write its file beside the others and name it in `MAKERS`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np

from shoal.data.hierarchies.bins import Bins
from shoal.data.hierarchies.dates import Dates
from shoal.data.hierarchies.flat import Flat
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.hierarchies.order import Order
from shoal.data.hierarchies.prefix import Prefix
from shoal.data.hierarchies.tree import Tree


class Maker(Protocol):
    """Makes a hierarchy from the distinct values of a column, missing ones left out.

    Messages of its errors are worded so as to follow `attribute 'name': `.
    """

    kind: ClassVar[str]
    unmatched_message: ClassVar[str]
    """What is wrong with values that don't fit and a way out, worded to follow `3 distinct values
    `.
    """

    @classmethod
    def from_spec(cls, argument: Any) -> Maker:
        """The maker with the argument that a policy gives it; raises InputError where that can't
        be.
        """

    def values_without_leaf(self, values: np.ndarray) -> np.ndarray:
        """Which values the rule has no place for; (n,) bool. `make` refuses them."""

    def make(self, values: np.ndarray) -> Hierarchy:
        """A hierarchy with a leaf for every one of these texts; the same for any order of them."""


_MAKERS: tuple[type[Maker], ...] = (Prefix, Bins, Dates, Order, Tree, Flat)
MAKERS: dict[str, type[Maker]] = {maker.kind: maker for maker in _MAKERS}

__all__ = ["MAKERS", "Hierarchy", "Maker"]
