"""k-member: a class grows by the record that adds least loss to it.

codes: (n, d) int32. subject_ids: (n,) int32 people, empty where each record is its own person.
ids: (n,) int64, of which the first `left` are the records in no class yet, in rising order.
lo, hi: (classes, d) int32, bounds of the classes. costs: as in `spans`.
"""

from __future__ import annotations

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.spans import box_loss, widen


@outer
def k_member(codes, subject_ids, k, first, costs):
    """Classes of k people: each begins with the record farthest from where the one before began,
    the first with the one farthest from record `first`, and takes the record of least loss added
    until it has k people; what is left below k people joins the class where it adds least, one by
    one.

    Farthest and least are measured by the loss of the smallest box; the lower record or class of
    equals. A class of k people that the rest can't fill is not begun.
    Returns the class of each record, (n,) int32.
    """
    n, d = codes.shape
    labels = np.full(n, -1, np.int32)
    lo = np.empty((n // k + 1, d), np.int32)
    hi = np.empty((n // k + 1, d), np.int32)
    sizes = np.zeros(n // k + 1, np.int64)
    cost = np.zeros(n // k + 1)
    ids = np.arange(n)
    seen = np.zeros(max(len(subject_ids), 1), np.int64)  # the latest mark of each person
    left = n
    classes = 0
    seed = first
    while left > 0 and _people_left(ids, left, subject_ids, seen, classes) >= k:
        seed = _farthest(codes, ids, left, seed, costs)
        for j in range(d):
            lo[classes, j] = codes[seed, j]
            hi[classes, j] = codes[seed, j]
        following = seed
        people = 0
        mark = -classes - 1  # negative: `_people_left` marks with positive numbers
        while True:
            labels[following] = classes
            sizes[classes] += 1
            left = _without(ids, left, following)
            widen(lo, hi, classes, codes, codes, following)
            if len(subject_ids) == 0 or seen[subject_ids[following]] != mark:
                people += 1
            if len(subject_ids) > 0:
                seen[subject_ids[following]] = mark
            if people == k:
                break
            following = _least_added(codes, ids, left, lo, hi, classes, costs)
        cost[classes] = box_loss(codes, codes, seed, lo, hi, classes, costs)
        classes += 1
    for at in range(left):
        i = ids[at]
        best = 0
        least = np.inf
        for c in range(classes):
            grown = box_loss(codes, codes, i, lo, hi, c, costs)
            added = (sizes[c] + 1) * grown - sizes[c] * cost[c]
            if added < least:
                best = c
                least = added
        labels[i] = best
        sizes[best] += 1
        widen(lo, hi, best, codes, codes, i)
        cost[best] = box_loss(codes, codes, i, lo, hi, best, costs)
    return labels


@inner
def _people_left(ids, left, subject_ids, seen, classes):
    """How many people own the records in no class yet."""
    if len(subject_ids) == 0:
        return left
    people = 0
    for at in range(left):
        if seen[subject_ids[ids[at]]] != classes + 1:
            seen[subject_ids[ids[at]]] = classes + 1
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
def _least_added(codes, ids, left, lo, hi, c, costs):
    """The record left with which the box of class c costs least."""
    best = ids[0]
    least = np.inf
    for at in range(left):
        grown = box_loss(codes, codes, ids[at], lo, hi, c, costs)
        if grown < least:
            best = ids[at]
            least = grown
    return best


@inner
def _farthest(codes, ids, left, seed, costs):
    """The record left whose smallest box with record `seed` costs most."""
    best = ids[0]
    most = -1.0
    for at in range(left):
        apart = box_loss(codes, codes, ids[at], codes, codes, seed, costs)
        if apart > most:
            best = ids[at]
            most = apart
    return best
