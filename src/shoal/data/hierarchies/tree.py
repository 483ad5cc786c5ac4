"""A tree written out in the policy."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from shoal.data.hierarchies.edits import as_label
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.hierarchies.paths import refuse_values_without_leaf
from shoal.data.option import parameter
from shoal.errors import InputError

TAKES = (
    "hierarchy maker 'tree' takes groups and their members, such as {Europe: [DE, FR], Asia: {East:"
    " [JP], South: IN}}"
)


@dataclass(frozen=True)
class Tree:
    """Groups as mappings, members as lists; leaves may lie at different depths.

    Every listed leaf is one, whether it occurs or not. The root is the one key at the top, or `*`
    where there are several.
    """

    kind: ClassVar[str] = "tree"
    unmatched_message: ClassVar[str] = (
        "[is not a leaf|are not leaves] of the tree; add [it|them] there, or correct the data"
    )

    paths: tuple[tuple[str, ...], ...] = parameter("labels from each leaf up to the root")

    @classmethod
    def from_spec(cls, argument: Any) -> "Tree":
        """`{tree: {Europe: [DE, FR], Asia: {East: [JP], South: IN}}}`."""
        if not isinstance(argument, dict | list) or not argument:
            raise InputError(TAKES)
        above = () if isinstance(argument, dict) and len(argument) == 1 else ("*",)
        return cls(tuple(_leaves(argument, above)))

    def values_without_leaf(self, values: np.ndarray) -> np.ndarray:
        """Which values are not leaves; (n,) bool."""
        known = {path[0] for path in self.paths}
        return np.array([value not in known for value in values], dtype=bool)

    def make(self, values: np.ndarray) -> Hierarchy:
        """The whole tree; raises InputError where one of the values is not a leaf."""
        refuse_values_without_leaf(self, values)
        return _hierarchy(self.paths)


@lru_cache(maxsize=16)
def _hierarchy(paths: tuple[tuple[str, ...], ...]) -> Hierarchy:
    """Built once: each stage of a command and each release of a history asks for it again."""
    return Hierarchy.from_paths(paths)


def _leaves(branch: Any, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The path of every leaf of a branch. above: labels from the branch's own up to the root."""
    if isinstance(branch, dict | list) and not branch:
        raise InputError(f"{TAKES}: a group has no members; give it some, or leave it out")
    if isinstance(branch, dict):
        for label, members in branch.items():
            path = (as_label(label, Tree.kind), *above)
            if members is None:
                yield path
            else:
                yield from _leaves(members, path)
    elif isinstance(branch, list):
        for member in branch:
            yield from _leaves(member, above)
    else:
        yield (as_label(branch, Tree.kind), *above)
