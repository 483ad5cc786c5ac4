"""Boxes that grow: each item joins the box that has to grow least for it.

lo, hi: (boxes, d) int32, bounds; sizes: records in each. costs: as in `spans`.
To grow least is to add least to records times cost: (size + weight) * cost of both boxes
- size * cost of the box.
"""

from __future__ import annotations

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.spans import box_loss, widen


@outer
def join_with_room(codes, left, person, labels, lo, hi, sizes, people, is_in, most, costs):
    """Puts each record of `left`, one by one, into the class with room to which it adds least;
    labels in place.

    Ties go to the lower class. Room, person, people, is_in: as in `farthest_first.join_nearest`.
    lo, hi, sizes: the boxes of the classes, kept up to date.
    """
    count = lo.shape[0]
    cost = costs_of_boxes(lo, hi, costs)
    for at in range(len(left)):
        i = left[at]
        best = -1
        least = np.inf
        for c in range(count):
            if people[c] >= most and not is_in[person[at], c]:
                continue
            both = box_loss(codes, codes, i, lo, hi, c, costs)
            added = (sizes[c] + 1) * both - sizes[c] * cost[c]
            if added < least:
                best = c
                least = added
        labels[i] = best
        widen(lo, hi, best, codes, codes, i)
        sizes[best] += 1
        cost[best] = box_loss(lo, hi, best, lo, hi, best, costs)
        people[best] += not is_in[person[at], best]
        is_in[person[at], best] = True


@inner
def costs_of_boxes(lo, hi, costs):
    cost = np.empty(lo.shape[0])
    for b in range(lo.shape[0]):
        cost[b] = box_loss(lo, hi, b, lo, hi, b, costs)
    return cost
