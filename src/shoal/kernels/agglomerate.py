"""Merging groups that are still too small, each with the group that is cheapest to merge with.

Throughout: scale, base, parent, last, width are the costs of a span of codes as in `Matrix`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

ADDED = 0
"""Cheapest is what adds least to records times cost of the box, summed over groups."""
UNION = 1
"""Cheapest is the least records times cost of the union's box."""
BOX = 2
"""Cheapest is the least cost of the union's box."""


@njit(nogil=True, cache=True)
def merge_round(lo, hi, sizes, turns, rule, scale, base, parent, last, width):
    """One round: each group in turn, unless this round changed it already, merges with the cheapest
    group by the rule; ties to the lowest number.

    lo, hi: (groups, d) int32 boxes; sizes: (groups,) int64 records. turns: numbers of the groups that
        must grow, in the order in which they choose.
    Returns (groups,) int64: the group that each one is part of now, the lowest number of its members.
    """
    groups, d = lo.shape
    low, high = _by_attribute(lo), _by_attribute(hi)
    alive = sizes.copy()
    union = np.empty(groups, np.float64)
    own = np.empty(groups, np.float64)
    joint = np.empty(len(parent), np.float64)
    cover = np.zeros((d, groups), np.int32)
    for j in range(d):
        if base[j] >= 0:
            for g in range(groups):
                cover[j, g] = _cover(low, high, j, g, base, parent, last)
    _costs_of_boxes(low, high, cover, scale, base, width, own)
    into = np.arange(groups)
    changed = np.zeros(groups, np.bool_)
    for place in range(len(turns)):
        g = turns[place]
        if changed[g] or alive[g] == 0:
            continue
        _costs_of_unions(low, high, cover, g, scale, base, parent, last, width, joint, union)
        best = _cheapest(union, own, alive, g, rule)
        if best < 0:
            break
        kept, gone = min(g, best), max(g, best)
        for j in range(d):
            low[j, kept] = min(low[j, kept], low[j, gone])
            high[j, kept] = max(high[j, kept], high[j, gone])
            if base[j] >= 0:
                cover[j, kept] = _cover(low, high, j, kept, base, parent, last)
        own[kept] = union[best]
        alive[kept] += alive[gone]
        alive[gone] = 0
        changed[kept] = True
        into[gone] = kept
    for g in range(groups):
        into[g] = into[into[g]]  # a group only ever goes into a lower number
    return into


@njit(nogil=True, cache=True)
def _by_attribute(bounds):
    groups, d = bounds.shape
    turned = np.empty((d, groups), np.int32)
    for g in range(groups):
        for j in range(d):
            turned[j, g] = bounds[g, j]
    return turned


@njit(nogil=True, cache=True)
def _cover(low, high, j, g, base, parent, last):
    """The lowest node over group g on tree attribute j."""
    node = base[j] + low[j, g]
    while last[node] < high[j, g]:
        node = parent[node]
    return node


@njit(nogil=True, cache=True)
def _costs_of_boxes(low, high, cover, scale, base, width, own):
    for g in range(low.shape[1]):
        own[g] = 0.0
        for j in range(low.shape[0]):
            if base[j] < 0:
                own[g] += (np.int64(high[j, g]) - np.int64(low[j, g])) * scale[j]
            else:
                own[g] += width[cover[j, g]]


@njit(nogil=True, cache=True)
def _costs_of_unions(low, high, cover, g, scale, base, parent, last, width, joint, union):
    """Cost of the box of g and each other group, an attribute at a time so that the loops are plain."""
    d, groups = low.shape
    for other in range(groups):
        union[other] = 0.0
    for j in range(d):
        least, most, unit = low[j, g], high[j, g], scale[j]
        if base[j] < 0:
            for other in range(groups):
                reach = np.int64(max(high[j, other], most)) - np.int64(min(low[j, other], least))
                union[other] += reach * unit
        elif _nodes(j, base, parent) <= groups:
            _widths_with(cover[j, g], base[j], base[j] + _nodes(j, base, parent), parent, width, joint)
            for other in range(groups):
                union[other] += joint[cover[j, other]]
        else:
            for other in range(groups):
                node = cover[j, other] if low[j, other] <= least else cover[j, g]
                reach_up = max(high[j, other], most)
                while last[node] < reach_up:
                    node = parent[node]
                union[other] += width[node]


@njit(nogil=True, cache=True)
def _nodes(j, base, parent):
    """How many nodes tree attribute j has."""
    end = len(parent)
    for other in range(len(base)):
        if base[other] > base[j]:
            end = min(end, base[other])
    return end - base[j]


@njit(nogil=True, cache=True)
def _widths_with(node, first, end, parent, width, joint):
    """Into joint[x], for every node x of the tree: width of the lowest node over both x and `node`."""
    for x in range(first, end):
        joint[x] = -1.0
    while node >= 0:
        joint[node] = width[node]
        node = parent[node]
    for x in range(first, end):
        above = x
        while joint[above] < 0.0:
            above = parent[above]
        joint[x] = joint[above]


@njit(nogil=True, cache=True)
def _cheapest(union, own, alive, g, rule):
    best, least = -1, np.inf
    for other in range(len(union)):
        if other != g and alive[other] > 0:
            cost = union[other]
            if rule == ADDED:
                cost = alive[g] * (union[other] - own[g]) + alive[other] * (union[other] - own[other])
            elif rule == UNION:
                cost = (alive[g] + alive[other]) * union[other]
            if cost < least:
                best, least = other, cost
    return best
