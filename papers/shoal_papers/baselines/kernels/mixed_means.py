"""k-means over linear and tree attributes together.

A centre is the mean on linear attributes and the most frequent leaf on trees; the squared distance
adds the squared losses of the two records' smallest box, attribute by attribute.

near: (linear, n) int32 positions, leaf: (trees, n) int32 leaves; base, parent, first, last, cost:
the trees, as in `Space`. middle: (c, linear) float64 and mode: (c, trees) int32, the centres.
"""

from __future__ import annotations

import numpy as np

from shoal.data.numba_kernels import inner, outer


@outer
def lloyd(near, leaf, starts, rounds, base, parent, first, last, cost):
    """The centre of each record after at most so many rounds of Lloyd's steps, fewer where nothing
    changes.

    starts: (c,) int64, the records that are the first centres. A centre without records stays where
    it is; ties go to the first centre. Returns (n,) int32.
    """
    linear = near.shape[0]
    trees = leaf.shape[0]
    n = near.shape[1] if linear > 0 else leaf.shape[1]
    c = len(starts)
    middle = np.empty((c, linear))
    mode = np.empty((c, trees), np.int32)
    for m in range(c):
        for j in range(linear):
            middle[m, j] = near[j, starts[m]]
        for j in range(trees):
            mode[m, j] = leaf[j, starts[m]]
    labels = np.full(n, -1, np.int32)
    for _ in range(rounds):
        changed = False
        for i in range(n):
            best = 0
            least = np.inf
            for m in range(c):
                total = 0.0
                for j in range(linear):
                    off = near[j, i] - middle[m, j]
                    total += off * off
                for j in range(trees):
                    if leaf[j, i] != mode[m, j] and total < least:
                        up = base[j] + mode[m, j]
                        while last[up] < leaf[j, i] or first[up] > leaf[j, i]:
                            up = parent[up]
                        total += np.float64(cost[up]) * cost[up]
                if total < least:
                    best = m
                    least = total
            if labels[i] != best:
                labels[i] = best
                changed = True
        if not changed:
            break
        _move(near, leaf, labels, middle, mode)
    return labels


@inner
def _move(near, leaf, labels, middle, mode):
    """Every centre to the mean and the most frequent leaves of its records."""
    c = middle.shape[0]
    n = len(labels)
    counts = np.zeros(c, np.int64)
    for i in range(n):
        counts[labels[i]] += 1
    for j in range(near.shape[0]):
        sums = np.zeros(c)
        for i in range(n):
            sums[labels[i]] += near[j, i]
        for m in range(c):
            if counts[m] > 0:
                middle[m, j] = sums[m] / counts[m]
    for j in range(leaf.shape[0]):
        seen = np.zeros((c, leaf[j].max() + 1), np.int64)
        for i in range(n):
            seen[labels[i], leaf[j, i]] += 1
        for m in range(c):
            if counts[m] > 0:
                best = 0
                for x in range(seen.shape[1]):
                    if seen[m, x] > seen[m, best]:
                        best = x
                mode[m, j] = best
