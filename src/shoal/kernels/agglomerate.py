"""Merging groups that are still too small with the group that makes the cheapest union.

Throughout: scale, base, parent, last, width are the costs of a span of codes as in `Matrix`.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def merge_round(lo, hi, sizes, turns, scale, base, parent, last, width):
    """One round: each group in turn, unless this round changed it already, merges with the group that
    makes the union of least cost times records; ties to the lowest number.

    lo, hi: (groups, d) int32 boxes; sizes: (groups,) int64 records. turns: numbers of the groups that
        must grow, in the order in which they choose.
    Returns (groups,) int64: the group that each one is part of now, the lowest number of its members.
    """
    groups, d = lo.shape
    low, high = _by_attribute(lo), _by_attribute(hi)
    alive = sizes.copy()
    union = np.empty(groups, np.float64)
    into = np.arange(groups)
    changed = np.zeros(groups, np.bool_)
    for place in range(len(turns)):
        g = turns[place]
        if changed[g] or alive[g] == 0:
            continue
        _costs_of_unions(low, high, g, scale, base, parent, last, width, union)
        best = _cheapest(union, alive, g)
        if best < 0:
            break
        kept, gone = min(g, best), max(g, best)
        for j in range(d):
            low[j, kept] = min(low[j, kept], low[j, gone])
            high[j, kept] = max(high[j, kept], high[j, gone])
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
def _costs_of_unions(low, high, g, scale, base, parent, last, width, union):
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
            continue
        for other in range(groups):
            node = base[j] + min(low[j, other], least)
            reach_up = max(high[j, other], most)
            while last[node] < reach_up:
                node = parent[node]
            union[other] += width[node]


@njit(nogil=True, cache=True)
def _cheapest(union, alive, g):
    best, least = -1, np.inf
    for other in range(len(union)):
        if other != g and alive[other] > 0:
            cost = (alive[g] + alive[other]) * union[other]
            if cost < least:
                best, least = other, cost
    return best
