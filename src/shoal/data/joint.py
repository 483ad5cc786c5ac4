"""Several sensitive attributes as one: their combinations, and how far apart two of them are.

Ours, not from a paper: the k-means++ t-closeness paper names the joint distribution as future work.
Two combinations are as far apart as on the attribute where they are farthest. There, two values are
- equal: 0 if they are the same, else 1;
- hierarchical: height of their lowest common node over that of the root;
- ordered: m values that occur are halved into 1, 2, 4, ... nearly equal runs; of the shortest run
  that holds both, (its length - 1) / (m - 1), length meaning that of the longest run of that
  halving.
Every one of these is at least the distance that t-closeness takes on the attribute alone, so a
class whose combinations are within t is within t on each attribute, where nobody has several
records. All are distances
on trees, and so is the greatest of them: combinations are the leaves of one hierarchy, and
everything that is known of hierarchical attributes serves here. Distances are rounded up to whole
units of 1 / UNITS.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from shoal.data.classes import SensitiveColumn
from shoal.data.hierarchies.hierarchy import Alias, Hierarchy

UNITS = 100_800
"""Of the greatest distance: halves to tenths and hundredths of it are whole."""


def joint_column(
    name: str, columns: Sequence[SensitiveColumn], kept: np.ndarray
) -> SensitiveColumn:
    """The combinations of these columns as one hierarchical column.

    kept: (n,) bool, the records whose values count; the others get any code.
    """
    if not kept.any():
        return SensitiveColumn(name, np.zeros(len(kept), dtype=np.int32), 0)
    first, code = _combinations([column.codes[kept] for column in columns])
    codes_of = [column.codes[kept][first] for column in columns]
    steps = [list(_steps(column, codes)) for column, codes in zip(columns, codes_of, strict=True)]
    heights, groups = _nested(steps, len(first))
    leaf = groups[0]
    tree = _tree(heights, [group[np.argsort(leaf)] for group in groups])
    codes = np.zeros(len(kept), dtype=np.int32)
    codes[kept] = leaf[code]
    return SensitiveColumn(name, codes, tree.leaves, "hierarchical", tree)


def _combinations(columns: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """A record of each combination that occurs, and the combination of each record."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for codes in columns:
        key = np.unique(key * (int(codes.max()) + 1) + codes, return_inverse=True)[1].reshape(-1)
    _, first, code = np.unique(key, return_index=True, return_inverse=True)
    return first, code.reshape(-1)


def _steps(column: SensitiveColumn, code: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Heights in units, falling, and the places that are one there or below; (combinations,)."""
    if column.distance == "hierarchical" and column.hierarchy is not None:
        tree = column.hierarchy
        for level in range(tree.height, -1, -1):
            yield (
                -(-UNITS * level // max(tree.height, 1)),
                tree.ancestors_at(level)[code].astype(np.int64),
            )
    elif column.distance == "ordered":
        distinct, rank = np.unique(code, return_inverse=True)
        values = len(distinct)
        for halvings in range((values - 1).bit_length() + 1):
            longest = -(-values >> halvings)
            yield (
                -(-UNITS * (longest - 1) // max(values - 1, 1)),
                (rank.reshape(-1) << halvings) // values,
            )
    else:
        yield UNITS, np.zeros(len(code), dtype=np.int64)
        yield 0, code.astype(np.int64)


def _nested(
    steps: list[list[tuple[int, np.ndarray]]], combinations: int
) -> tuple[list[int], list[np.ndarray]]:
    """Heights, rising from 0, and the group of every combination at each.

    Groups are numbered so that they nest in order.
    """
    heights = sorted({height for each in steps for height, _ in each}, reverse=True)
    groups: list[np.ndarray] = []
    waiting = [list(reversed(each)) for each in steps]
    finest = np.zeros(combinations, dtype=np.int64)
    for height in heights:
        for each in waiting:
            if groups and each[-1][0] <= height:
                # an attribute's step holds from its own height up to that of the step above
                continue
            while each[-1][0] > height:
                each.pop()
            group = each[-1][1]
            finest = np.unique(finest * (int(group.max()) + 1) + group, return_inverse=True)[
                1
            ].reshape(-1)
        groups.append(finest)
    return heights[::-1], groups[::-1]


def _tree(heights: list[int], groups: list[np.ndarray]) -> Hierarchy:
    """The hierarchy whose nodes are these groups of leaves, without groups that add nothing.

    groups: for each height, (leaves,) int64, the group of each leaf; rising along the leaves.
    """
    leaves = len(groups[0])
    node = np.arange(leaves)
    firsts, lasts, levels, children = [node], [node], [np.zeros(leaves, dtype=np.int64)], []
    starts, count = node, leaves
    for height, group in zip(heights[1:], groups[1:], strict=True):
        own = group[starts]
        edge = np.flatnonzero(np.concatenate(([True], own[1:] != own[:-1])))
        members = np.diff(np.append(edge, len(own)))
        joins = members > 1
        above = np.where(joins, count + np.cumsum(joins) - 1, node[edge])
        inside = np.repeat(joins, members)
        children.append(np.stack([node[inside], np.repeat(above, members)[inside]]))
        ends = np.append(starts[edge][1:], leaves) - 1
        firsts.append(starts[edge][joins])
        lasts.append(ends[joins])
        levels.append(np.full(int(joins.sum()), height))
        node, starts, count = above, starts[edge], count + int(joins.sum())
    parent = np.full(count, -1, dtype=np.int32)
    for child, above in children:
        parent[child] = above
    # the root may stand lower than the greatest distance there is: its alias tells that distance
    return Hierarchy(
        ("",) * count,
        parent,
        np.concatenate(firsts).astype(np.int32),
        np.concatenate(lasts).astype(np.int32),
        (Alias(count - 1, UNITS, ""),),
        np.concatenate(levels).astype(np.int32),
    )
