"""k-member: a class grows by the record that adds least loss to it.

Throughout: scale, base, parent, last, width are the costs of a span of codes as in `Matrix`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

inner = njit(nogil=True, cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]


@njit(nogil=True, cache=True)
def k_member(codes, who, k, first, scale, base, parent, last, width):
    """Classes of k people: each begins with the record farthest from where the one before began, the
    first with the one farthest from record `first`, and takes the record of least loss added until
    it has k people; what is left below k people joins the class where it adds least, one by one.

    codes: (n, d) int32. who: (n,) int32 people, empty where each record is its own. Farthest and least
    are measured by the loss of the smallest box; the lower record or class of equals. A class of k
    people that the rest can't fill is not begun.
    Returns the class of each record, (n,) int32.
    """
    n, d = codes.shape
    labels = np.full(n, -1, np.int32)
    lo, hi = np.empty((n // k + 1, d), np.int32), np.empty((n // k + 1, d), np.int32)
    sizes, cost = np.zeros(n // k + 1, np.int64), np.zeros(n // k + 1)
    ids, seen = np.arange(n), np.zeros(max(len(who), 1), np.int64)
    left, classes, seed = n, 0, first
    while left > 0 and _people_left(ids, left, who, seen, classes) >= k:
        seed = _farthest(codes, ids, left, seed, scale, base, parent, last, width)
        for j in range(d):
            lo[classes, j], hi[classes, j] = codes[seed, j], codes[seed, j]
        following, people, mark = seed, 0, -classes - 1
        while True:
            labels[following] = classes
            sizes[classes] += 1
            left = _without(ids, left, following)
            _widen(codes, following, lo, hi, classes)
            if len(who) == 0 or seen[who[following]] != mark:
                people += 1
            if len(who) > 0:
                seen[who[following]] = mark
            if people == k:
                break
            following = _least_added(codes, ids, left, lo, hi, classes, scale, base, parent, last, width)
        cost[classes] = _cost_with(codes, seed, lo, hi, classes, scale, base, parent, last, width)
        classes += 1
    for at in range(left):
        best, least = 0, np.inf
        for c in range(classes):
            grown = _cost_with(codes, ids[at], lo, hi, c, scale, base, parent, last, width)
            added = (sizes[c] + 1) * grown - sizes[c] * cost[c]
            if added < least:
                best, least = c, added
        labels[ids[at]] = best
        sizes[best] += 1
        _widen(codes, ids[at], lo, hi, best)
        cost[best] = _cost_with(codes, ids[at], lo, hi, best, scale, base, parent, last, width)
    return labels


@inner
def _people_left(ids, left, who, seen, classes):
    if len(who) == 0:
        return left
    people = 0
    for at in range(left):
        if seen[who[ids[at]]] != classes + 1:
            seen[who[ids[at]]] = classes + 1
            people += 1
    return people


@inner
def _without(ids, left, record):
    """Drops a record from those left, which stay in rising order."""
    kept = 0
    for at in range(left):
        if ids[at] != record:
            ids[kept] = ids[at]
            kept += 1
    return kept


@inner
def _widen(codes, i, lo, hi, c):
    for j in range(codes.shape[1]):
        lo[c, j] = min(lo[c, j], codes[i, j])
        hi[c, j] = max(hi[c, j], codes[i, j])


@inner
def _cost_with(codes, i, lo, hi, c, scale, base, parent, last, width):
    """Loss of the box of class c together with record i."""
    total = 0.0
    for j in range(codes.shape[1]):
        low, high = min(lo[c, j], codes[i, j]), max(hi[c, j], codes[i, j])
        if base[j] < 0:
            total += (np.int64(high) - np.int64(low)) * scale[j]
        else:
            node = base[j] + low
            while last[node] < high:
                node = parent[node]
            total += width[node]
    return total


@inner
def _least_added(codes, ids, left, lo, hi, c, scale, base, parent, last, width):
    best, least = ids[0], np.inf
    for at in range(left):
        grown = _cost_with(codes, ids[at], lo, hi, c, scale, base, parent, last, width)
        if grown < least:
            best, least = ids[at], grown
    return best


@inner
def _farthest(codes, ids, left, seed, scale, base, parent, last, width):
    box_lo, box_hi = np.empty((1, codes.shape[1]), np.int32), np.empty((1, codes.shape[1]), np.int32)
    for j in range(codes.shape[1]):
        box_lo[0, j], box_hi[0, j] = codes[seed, j], codes[seed, j]
    best, most = ids[0], -1.0
    for at in range(left):
        apart = _cost_with(codes, ids[at], box_lo, box_hi, 0, scale, base, parent, last, width)
        if apart > most:
            best, most = ids[at], apart
    return best
