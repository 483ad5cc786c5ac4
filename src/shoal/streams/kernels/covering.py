"""Which published cluster covers a record."""

from __future__ import annotations

import numpy as np

from shoal.data.numba_kernels import inner, outer


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
