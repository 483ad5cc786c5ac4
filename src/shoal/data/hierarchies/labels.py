"""Hierarchies over labels: of any value by its own text, or of values that the policy lists."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from shoal.data.hierarchies.edits import as_label, is_whole
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.hierarchies.paths import refuse_values_without_leaf
from shoal.data.option import parameter
from shoal.errors import InputError


class _OfAnyText:
    """Makers that have a place for every value."""

    by_value: ClassVar[bool] = True
    unmatched_message: ClassVar[str] = "have no place"

    def values_without_leaf(self, values: np.ndarray) -> np.ndarray:
        """None of them; (n,) bool."""
        return np.zeros(len(values), dtype=bool)


@dataclass(frozen=True)
class Flat(_OfAnyText):
    """`value -> *`, of a column without a hierarchy: either the value is published, or nothing."""

    kind: ClassVar[str] = "flat"

    root: str = parameter("label of the root", default="*")

    @classmethod
    def from_spec(cls, argument: Any) -> "Flat":
        """`{flat: true}`; a text instead of `true` names the root."""
        if isinstance(argument, str) and argument:
            return cls(root=argument)
        if argument is True or argument is None:
            return cls()
        raise InputError("hierarchy maker 'flat' takes 'true', or a label for the root")

    def make(self, values: np.ndarray) -> Hierarchy:
        """Every distinct value under the root, in sorted order; without values the root alone."""
        paths = [[value, self.root] for value in sorted(set(values))]
        return Hierarchy.from_paths(paths or [[self.root]])


@dataclass(frozen=True)
class Prefix(_OfAnyText):
    """`13053 -> 1305* -> 130** -> 13*** -> 1**** -> *`: one character less per level.

    A label with p characters and `length - p` stars covers every value that begins with those p, so
    that values of other lengths find their place too: shorter ones join where they still have
    more characters than the level keeps (`123 -> 12***`), longer ones lose all that is beyond
    `length - 1` in one step (`13053-1234 -> 1305*`).
    """

    kind: ClassVar[str] = "prefix"

    length: int = parameter("characters of a full code", low=1, high=64)

    @classmethod
    def from_spec(cls, argument: Any) -> "Prefix":
        """`{prefix: 5}`."""
        if is_whole(argument, 1, 64):
            return cls(argument)
        raise InputError(
            "hierarchy maker 'prefix' takes the number of characters of a full code, from 1 to 64"
        )

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


ORDER_TAKES = (
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
            raise InputError(ORDER_TAKES)
        if not is_whole(fanout, 2):
            raise InputError(f"{ORDER_TAKES}: 'fanout' must be a whole number of at least 2")
        labels = tuple(as_label(value, cls.kind) for value in values)
        if len(set(labels)) < len(labels):
            raise InputError(
                f"{ORDER_TAKES}: {len(labels) - len(set(labels))} values are listed twice"
            )
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


TREE_TAKES = (
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
            raise InputError(TREE_TAKES)
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
        raise InputError(f"{TREE_TAKES}: a group has no members; give it some, or leave it out")
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
