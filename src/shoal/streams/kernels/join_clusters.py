"""Records of a stream that no cluster has join the clusters where they add least loss.

near, leaf, base, parent, first, last and cost, and boxes, as in `kernels.stream_distances`.
"""

import numpy as np

from shoal.data.numba_kernels import inner, outer, uncompiled_up_to
from shoal.streams.kernels.stream_distances import (
    StreamPoints,
    StreamTrees,
    empty_box,
    empty_boxes,
    widen,
)


@uncompiled_up_to(
    lambda near, leaf, people, labels, clusters, *_: (near.size + leaf.size) * clusters
)
@outer
def join(near, leaf, subject_ids, labels, clusters, base, parent, first, last, cost):
    """Puts each record that is left over into the cluster whose loss grows least, as they arrived.

    subject_ids: (n,) int32, to put all that is left of a person into one cluster; empty to put
    records singly. Clusters grow as they go; of equals the one made first. labels: (n,) int32,
    changed in place.
    """
    points = StreamPoints(near, leaf)
    trees = StreamTrees(base, parent, first, last, cost)
    n = len(labels)
    boxes = empty_boxes(clusters + 1, points)
    for i in range(n):
        if labels[i] >= 0:
            widen(i, np.int64(labels[i]), points, boxes, trees)
    own = clusters  # the box over all that is to join
    for i in range(n):
        if labels[i] >= 0:
            continue
        empty_box(own, boxes)
        end = n if len(subject_ids) > 0 else i + 1
        for other in range(i, end):
            if other == i or (labels[other] < 0 and subject_ids[other] == subject_ids[i]):
                widen(other, own, points, boxes, trees)
        best = _cheapest(own, boxes, trees)
        for other in range(i, end):
            if other == i or (labels[other] < 0 and subject_ids[other] == subject_ids[i]):
                labels[other] = best
                widen(other, best, points, boxes, trees)


@inner
def _cheapest(own, boxes, trees):
    """Of the boxes before box `own`, the first whose loss grows least if it takes that one in."""
    lo, hi, node = boxes.lo, boxes.hi, boxes.node
    parent, first, last, cost = trees.parent, trees.first, trees.last, trees.cost
    best = np.int64(0)
    least = np.int64(2**62)
    for c in range(own):
        added = np.int64(0)
        for j in range(lo.shape[1]):
            added += max(np.int64(lo[c, j]) - lo[own, j], 0)
            added += max(np.int64(hi[own, j]) - hi[c, j], 0)
        for j in range(node.shape[1]):
            up = node[c, j]
            while last[up] < last[node[own, j]] or first[up] > first[node[own, j]]:
                up = parent[up]
            added += cost[up] - cost[node[c, j]]
        if added < least:
            best = c
            least = added
    return best


# Which published cluster covers a record.


@outer
def covering(values, lo, hi, loss, draws):
    """For each record the covering cluster of least loss, -1 where none covers it; (n,) int32.

    values: (n, d) float64. lo, hi: (d, c) float64, bounds of the clusters, in ascending order of
    loss. loss: (c,) float64. draws: (n,) float64 in [0, 1), which one of several clusters of equal
    loss.
    """
    n, d = values.shape
    clusters = len(loss)
    result = np.full(n, -1, np.int32)
    outside = np.empty(clusters, np.int32)
    for i in range(n):
        for c in range(clusters):
            outside[c] = 0
        for j in range(d):
            _mark_outside(values[i, j], lo[j], hi[j], outside)
        for c in range(clusters):
            if outside[c] == 0:
                result[i] = c
                break
        c = result[i]
        if c >= 0 and c + 1 < clusters and loss[c + 1] == loss[c]:
            result[i] = _drawn_equal(outside, loss, c, draws[i])
    return result


@inner
def _mark_outside(x, lo, hi, outside):
    for c in range(len(outside)):
        outside[c] |= 1 - (np.int32(x >= lo[c]) & np.int32(x <= hi[c]))  # NaN lies outside


@inner
def _drawn_equal(outside, loss, c, draw):
    """The drawn one of the covering clusters that lose as much as cluster c."""
    end = c
    covering = 0
    while end < len(loss) and loss[end] == loss[c]:
        covering += outside[end] == 0
        end += 1
    skip = int(draw * covering)
    for other in range(c, end):
        if outside[other] == 0:
            if skip == 0:
                return other
            skip -= 1
    return c
