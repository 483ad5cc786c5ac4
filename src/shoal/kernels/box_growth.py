"""Boxes that grow: each item joins the box that has to grow least for it.

lo, hi: (boxes, d) int32, bounds; sizes: records in each. costs: as in `spans`.
To grow least is to add least to records times cost: (size + weight) * cost of both boxes
- size * cost of the box.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compile import inner, outer
from shoal.kernels.spans import box_loss, widen


@outer
def join_boxes(item_lo, item_hi, weight, lo, hi, sizes, grows, costs):
    """The box that each item joins, (m,) int32.

    One that covers it and costs least, else the one to which it adds least; ties go to the lower
    box.

    item_lo, item_hi: (m, d) int32, boxes of the items; weight: (m,) records in each. lo, hi and
    sizes are changed in place where `grows`, so that later items see what earlier ones did.
    """
    count = lo.shape[0]
    cost = _costs_of_boxes(lo, hi, costs)
    chosen = np.empty(len(weight), np.int32)
    for i in range(len(weight)):
        best = -1
        is_covered = False
        least = np.inf  # cost of the best box once one covers the item, what it adds before
        for b in range(count):
            if _covers(lo, hi, b, item_lo, item_hi, i):
                if not is_covered or cost[b] < least:
                    best = b
                    is_covered = True
                    least = cost[b]
            elif not is_covered:
                both = box_loss(item_lo, item_hi, i, lo, hi, b, costs)
                added = (sizes[b] + weight[i]) * both - sizes[b] * cost[b]
                if added < least:
                    best = b
                    least = added
        chosen[i] = best
        if grows:
            widen(lo, hi, best, item_lo, item_hi, i)
            sizes[best] += weight[i]
            cost[best] = box_loss(lo, hi, best, lo, hi, best, costs)
    return chosen


@outer
def join_with_room(codes, left, person, labels, lo, hi, sizes, people, is_in, most, costs):
    """Puts each record of `left`, one by one, into the class with room to which it adds least;
    labels in place.

    Ties go to the lower class. Room, person, people, is_in: as in `farthest_first.join_nearest`.
    lo, hi, sizes: the boxes of the classes, kept up to date.
    """
    count = lo.shape[0]
    cost = _costs_of_boxes(lo, hi, costs)
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
def _costs_of_boxes(lo, hi, costs):
    cost = np.empty(lo.shape[0])
    for b in range(lo.shape[0]):
        cost[b] = box_loss(lo, hi, b, lo, hi, b, costs)
    return cost


@inner
def _covers(lo, hi, b, item_lo, item_hi, i):
    covers = True
    for j in range(lo.shape[1]):
        covers &= lo[b, j] <= item_lo[i, j] and item_hi[i, j] <= hi[b, j]
    return covers
