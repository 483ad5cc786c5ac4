"""Records around centres: k-means++.

points: (coordinates, n) float64; centres: (coordinates, k) float64. Equal distances go to the lower
centre.
"""

import numpy as np

from shoal.data.numba_kernels import inner, outer


@outer
def k_means(points, k, uniform, rounds):
    """Lloyd's k-means from centres drawn by k-means++ (Arthur, Vassilvitskii 2007); (n,) int32
    centre of each.

    uniform: (k,) in [0, 1). A centre without records stays where it is.
    """
    d, n = points.shape
    centres = drawn_centres(points, k, uniform)
    group = np.full(n, -1, np.int32)
    sizes = np.empty(k)
    for _ in range(rounds):
        changed = False
        for i in range(n):
            best = nearest(points, i, centres)
            changed |= best != group[i]
            group[i] = best
        if not changed:
            break
        total = np.zeros((d, k))
        sizes[:] = 0.0
        for i in range(n):
            sizes[group[i]] += 1.0
            for j in range(d):
                total[j, group[i]] += points[j, i]
        for g in range(k):
            if sizes[g] > 0:
                for j in range(d):
                    centres[j, g] = total[j, g] / sizes[g]
    return group


@inner
def drawn_centres(points, k, uniform):
    """k-means++: each centre is a record, drawn by its squared distance to the nearest so far."""
    d, n = points.shape
    centres = np.empty((d, k))
    apart = np.ones(n)
    for g in range(k):
        whole = 0.0
        for i in range(n):
            whole += apart[i]
        chosen = min(np.int64(uniform[g] * n), n - 1)  # where each record is a centre already
        if whole > 0.0:
            running = 0.0
            chosen = n - 1
            for i in range(n):
                running += apart[i]
                if running > uniform[g] * whole and apart[i] > 0.0:
                    chosen = i
                    break
        for j in range(d):
            centres[j, g] = points[j, chosen]
        for i in range(n):
            distance = squared_distance(points, i, centres, g)
            apart[i] = distance if g == 0 else min(apart[i], distance)
    return centres


@inner
def squared_distance(points, i, centres, g):
    distance = 0.0
    for j in range(points.shape[0]):
        apart = points[j, i] - centres[j, g]
        distance += apart * apart
    return distance


@inner
def nearest(points, i, centres):
    best = 0
    least = np.inf
    for g in range(centres.shape[1]):
        distance = squared_distance(points, i, centres, g)
        if distance < least:
            best = g
            least = distance
    return best
