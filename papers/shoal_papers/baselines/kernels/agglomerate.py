"""Merging groups that are still too small, each with the group that is cheapest to merge with.

low, high: (d, groups) int32, bounds of the groups, an attribute at a time so that the loops are
    plain. cover: (d, groups) int32, on trees the lowest node over each group, as a row of `costs`.
costs: as in `spans`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.spans import first_node, last_leaf, parent_of

ADDED = 0
"""Cheapest is what adds least to records times cost of the box, summed over groups."""
UNION = 1
"""Cheapest is the least records times cost of the union's box."""
BOX = 2
"""Cheapest is the least cost of the union's box."""


class Groups(NamedTuple):
    """Bounds of the groups, and on trees the lowest node over each."""

    low: np.ndarray
    high: np.ndarray
    cover: np.ndarray


@outer
def merge_round(lo, hi, sizes, turns, rule, costs):
    """One round: each group in turn, unless this round changed it already, merges with the cheapest
    group by the rule; ties to the lowest number.

    lo, hi: (groups, d) int32 boxes; sizes: (groups,) int64 records. turns: numbers of the groups
        that must grow, in the order in which they choose.
    Returns (groups,) int64: the group that each one is part of now, the lowest number of its
    members.
    """
    count, d = lo.shape
    groups = Groups(_by_attribute(lo), _by_attribute(hi), np.zeros((d, count), np.int32))
    low = groups.low
    high = groups.high
    for g in range(count):
        _cover(groups, g, costs)
    alive = sizes.copy()
    own = np.empty(count, np.float64)  # cost of each group's box
    union = np.empty(count, np.float64)  # cost of its box together with the group whose turn it is
    joint = np.empty(len(costs), np.float64)
    _costs_of_boxes(groups, costs, own)
    into = np.arange(count)
    changed = np.zeros(count, np.bool_)
    for turn in range(len(turns)):
        g = turns[turn]
        if changed[g] or alive[g] == 0:
            continue
        _costs_of_unions(groups, g, costs, joint, union)
        best = _cheapest(union, own, alive, g, rule)
        if best < 0:
            break
        kept = min(g, best)
        merged = max(g, best)
        for j in range(d):
            low[j, kept] = min(low[j, kept], low[j, merged])
            high[j, kept] = max(high[j, kept], high[j, merged])
        _cover(groups, kept, costs)
        own[kept] = union[best]
        alive[kept] += alive[merged]
        alive[merged] = 0
        changed[kept] = True
        into[merged] = kept
    for g in range(count):
        into[g] = into[into[g]]  # a group only ever goes into a lower number
    return into


@inner
def _by_attribute(bounds):
    groups, d = bounds.shape
    turned = np.empty((d, groups), np.int32)
    for g in range(groups):
        for j in range(d):
            turned[j, g] = bounds[g, j]
    return turned


@inner
def _cover(groups, g, costs):
    """Finds the lowest node over group g on every tree attribute."""
    for j in range(groups.low.shape[0]):
        if first_node(j, costs) >= 0:
            node = first_node(j, costs) + groups.low[j, g]
            while last_leaf(node, costs) < groups.high[j, g]:
                node = parent_of(node, costs)
            groups.cover[j, g] = node


@inner
def _costs_of_boxes(groups, costs, own):
    low = groups.low
    high = groups.high
    for g in range(low.shape[1]):
        own[g] = 0.0
        for j in range(low.shape[0]):
            if first_node(j, costs) < 0:
                own[g] += (high[j, g] - low[j, g]) * costs[j, 0]
            else:
                own[g] += costs[groups.cover[j, g], 2]


@inner
def _costs_of_unions(groups, g, costs, joint, union):
    """Cost of the box of g and each other group.

    joint: room for a float64 of each row of `costs`.
    """
    low = groups.low
    high = groups.high
    cover = groups.cover
    d, count = low.shape
    for other in range(count):
        union[other] = 0.0
    for j in range(d):
        least = low[j, g]
        most = high[j, g]
        if first_node(j, costs) < 0:
            unit = costs[j, 0]
            for other in range(count):
                reach = np.int64(max(high[j, other], most)) - np.int64(min(low[j, other], least))
                union[other] += reach * unit
            continue
        first = first_node(j, costs)
        end = _end_of_nodes(j, d, costs)
        if end - first <= count:  # cheaper once for each node than once for each group
            _losses_with(cover[j, g], first, end, costs, joint)
            for other in range(count):
                union[other] += joint[cover[j, other]]
        else:
            for other in range(count):
                node = cover[j, other] if low[j, other] <= least else cover[j, g]
                reach_up = max(high[j, other], most)
                while last_leaf(node, costs) < reach_up:
                    node = parent_of(node, costs)
                union[other] += costs[node, 2]


@inner
def _end_of_nodes(j, d, costs):
    """The row after the last node of tree attribute j."""
    end = len(costs)
    for other in range(d):
        if first_node(other, costs) > first_node(j, costs):
            end = min(end, first_node(other, costs))
    return end


@inner
def _losses_with(node, first, end, costs, joint):
    """Into joint[x], for each node x of the tree: loss of the lowest node over x and `node`."""
    for x in range(first, end):
        joint[x] = -1.0
    while node >= 0:  # on the way up from `node`, it is x's own loss
        joint[node] = costs[node, 2]
        node = parent_of(node, costs)
    for x in range(first, end):  # elsewhere that of the first node up from x that is on that way
        above = x
        while joint[above] < 0.0:
            above = parent_of(above, costs)
        joint[x] = joint[above]


@inner
def _cheapest(union, own, alive, g, rule):
    """The group that is cheapest to merge with g, -1 for none."""
    best = -1
    least = np.inf
    for other in range(len(union)):
        if other != g and alive[other] > 0:
            cost = union[other]
            if rule == ADDED:
                cost = alive[g] * (union[other] - own[g]) + alive[other] * (
                    union[other] - own[other]
                )
            elif rule == UNION:
                cost = (alive[g] + alive[other]) * union[other]
            if cost < least:
                best = other
                least = cost
    return best
