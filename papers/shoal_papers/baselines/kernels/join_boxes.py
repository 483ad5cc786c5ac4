"""Each item joins the box that has to grow least for it.

lo, hi: (boxes, d) int32, bounds; sizes: records in each. costs: as in `shoal.search.kernels.spans`.
To grow least is to add least to records times cost: (size + weight) * cost of both boxes
- size * cost of the box.
"""

from __future__ import annotations

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.spans import box_loss, widen


@outer
def join_boxes(item_lo, item_hi, weight, lo, hi, sizes, grows, costs):
    """The box that each item joins, (m,) int32.

    One that covers it and costs least, else the one to which it adds least; ties go to the lower
    box.

    item_lo, item_hi: (m, d) int32, boxes of the items; weight: (m,) records in each. lo, hi and
    sizes are changed in place where `grows`, so that later items see what earlier ones did.
    """
    count = lo.shape[0]
    cost = np.empty(count)
    for b in range(count):
        cost[b] = box_loss(lo, hi, b, lo, hi, b, costs)
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


@inner
def _covers(lo, hi, b, item_lo, item_hi, i):
    covers = True
    for j in range(lo.shape[1]):
        covers &= lo[b, j] <= item_lo[i, j] and item_hi[i, j] <= hi[b, j]
    return covers
