"""Boxes that grow: each item joins the box that has to grow least for it.

Throughout: scale, base, parent, last, width are the costs of a span of codes as in `Matrix`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

inner = njit(nogil=True, cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]


@njit(nogil=True, cache=True)
def join_boxes(item_lo, item_hi, weight, lo, hi, sizes, grows, scale, base, parent, last, width):
    """The box that each item joins, (m,) int32.

    One that covers it and costs least, else the one to which it adds least; ties go to the lower box.

    item_lo, item_hi: (m, d) int32, boxes of the items; weight: (m,) records in each. lo, hi: (boxes, d) int32,
    changed in place where `grows`, so that later items see what earlier ones did; so are sizes, records in each.
    Adding is (size + weight) * cost of both - size * cost of the box.
    """
    boxes, d = lo.shape
    cost = np.empty(boxes)
    for b in range(boxes):
        cost[b] = _cost(lo, hi, b, lo, hi, b, scale, base, parent, last, width)
    chosen = np.empty(len(weight), np.int32)
    for i in range(len(weight)):
        best, is_covered, least = -1, False, np.inf
        for b in range(boxes):
            covers = True
            for j in range(d):
                covers &= lo[b, j] <= item_lo[i, j] and item_hi[i, j] <= hi[b, j]
            if covers:
                if not is_covered or cost[b] < least:
                    best, is_covered, least = b, True, cost[b]
            elif not is_covered:
                both = _cost(item_lo, item_hi, i, lo, hi, b, scale, base, parent, last, width)
                added = (sizes[b] + weight[i]) * both - sizes[b] * cost[b]
                if added < least:
                    best, least = b, added
        chosen[i] = best
        if grows:
            for j in range(d):
                lo[best, j] = min(lo[best, j], item_lo[i, j])
                hi[best, j] = max(hi[best, j], item_hi[i, j])
            sizes[best] += weight[i]
            cost[best] = _cost(lo, hi, best, lo, hi, best, scale, base, parent, last, width)
    return chosen


@njit(nogil=True, cache=True)
def join_with_room(codes, left, person, labels, lo, hi, sizes, people, is_in, most, scale, base, parent, last, width):
    """Puts each record of `left`, one by one, into the class with room to which it adds least; labels in place.

    Adding is as in `join_boxes`; ties go to the lower class. Room, person, people, is_in: as in
    `farthest_first.join_nearest`. lo, hi, sizes: the boxes of the classes, kept up to date.
    """
    classes, d = lo.shape
    cost = np.empty(classes)
    for c in range(classes):
        cost[c] = _cost(lo, hi, c, lo, hi, c, scale, base, parent, last, width)
    for at in range(len(left)):
        i, best, least = left[at], -1, np.inf
        for c in range(classes):
            if people[c] >= most and not is_in[person[at], c]:
                continue
            both = _cost(codes, codes, i, lo, hi, c, scale, base, parent, last, width)
            added = (sizes[c] + 1) * both - sizes[c] * cost[c]
            if added < least:
                best, least = c, added
        labels[i] = best
        for j in range(d):
            lo[best, j], hi[best, j] = min(lo[best, j], codes[i, j]), max(hi[best, j], codes[i, j])
        sizes[best] += 1
        cost[best] = _cost(lo, hi, best, lo, hi, best, scale, base, parent, last, width)
        people[best] += not is_in[person[at], best]
        is_in[person[at], best] = True


@inner
def _cost(lo, hi, a, other_lo, other_hi, b, scale, base, parent, last, width):
    """Cost of the least box over both."""
    total = 0.0
    for j in range(lo.shape[1]):
        low, high = min(lo[a, j], other_lo[b, j]), max(hi[a, j], other_hi[b, j])
        if base[j] < 0:
            total += (np.int64(high) - np.int64(low)) * scale[j]
        else:
            node = base[j] + low
            while last[node] < high:
                node = parent[node]
            total += width[node]
    return total
