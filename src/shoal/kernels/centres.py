"""Records around centres: k-means++ and fuzzy c-means.

points: (coordinates, n) float64; centres and means: (coordinates, k) float64. Equal distances go to
the lower centre, equal shares to the lower record.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compile import inner, outer


@outer
def k_means(points, k, uniform, rounds):
    """Lloyd's k-means from centres drawn by k-means++ (Arthur, Vassilvitskii 2007); (n,) int32
    centre of each.

    uniform: (k,) in [0, 1). A centre without records stays where it is.
    """
    d, n = points.shape
    centres = _drawn_centres(points, k, uniform)
    group = np.full(n, -1, np.int32)
    sizes = np.empty(k)
    for _ in range(rounds):
        changed = False
        for i in range(n):
            best = _nearest(points, i, centres)
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


@outer
def fuzzy_shares(points, k, uniform, fuzzifier, rounds):
    """Fuzzy c-means from centres drawn by k-means++: the share of each record in each centre,
    (n, k) float64.
    """
    d, n = points.shape
    centres = _drawn_centres(points, k, uniform)
    share = np.zeros((n, k))
    before = np.empty(k)
    for _ in range(rounds):
        moved = 0.0
        for i in range(n):
            _fill_shares(points, i, centres, fuzzifier, share, before)
            for g in range(k):
                moved = max(moved, abs(share[i, g] - before[g]))
        if moved < 1e-6:
            break
        for g in range(k):
            weight = 0.0
            for i in range(n):
                weight += share[i, g] ** fuzzifier
            if weight > 0.0:
                for j in range(d):
                    total = 0.0
                    for i in range(n):
                        total += share[i, g] ** fuzzifier * points[j, i]
                    centres[j, g] = total / weight
    return share


@outer
def equal_groups(order, k, n):
    """Groups of floor(n / k) or one more records, filled in the given order; (n,) int32.

    order: record * k + centre of every pair, the greatest share first. A full group is closed.
    """
    group = np.full(n, -1, np.int32)
    sizes = np.zeros(k, np.int64)
    larger = n % k
    for at in range(len(order)):
        i = order[at] // k
        g = order[at] % k
        if group[i] >= 0 or sizes[g] > n // k or (sizes[g] == n // k and larger == 0):
            continue
        group[i] = g
        sizes[g] += 1
        if sizes[g] == n // k + 1:
            larger -= 1
    return group


@outer
def one_pass(points, order, k):
    """One-pass k-means: the first floor(n / k) records of the order are seeds, the others join the
    nearest mean in turn. Groups above k records give up their farthest, one by one; these join the
    nearest group below k, then, when there is none, the nearest of all.

    Returns the group of each record, (n,) int32, none below k records.
    """
    d, n = points.shape
    groups = n // k
    group = np.full(n, -1, np.int32)
    sizes = np.zeros(groups, np.int64)
    means = np.zeros((d, groups))
    for at in range(n):
        g = at if at < groups else _nearest(points, order[at], means)
        group[order[at]] = g
        sizes[g] += 1
        _shift_mean(points, order[at], means, g, 1.0 / sizes[g])
    # groups above k records give up their farthest
    removed = 0
    spare = np.empty(n, np.int64)
    for g in range(groups):
        while sizes[g] > k:
            worst = _farthest_member(points, group, means, g)
            sizes[g] -= 1
            group[worst] = -1
            _shift_mean(points, worst, means, g, -1.0 / sizes[g])
            spare[removed] = worst
            removed += 1
    # these go where records are missing, then to the nearest
    short = 0
    for g in range(groups):
        short += k - sizes[g]
    for at in range(removed):
        best = -1
        least = np.inf
        for g in range(groups):
            if short > 0 and sizes[g] >= k:
                continue
            distance = _squared_distance(points, spare[at], means, g)
            if best < 0 or distance < least:
                best = g
                least = distance
        short -= 1 if short > 0 else 0
        group[spare[at]] = best
        sizes[best] += 1
        _shift_mean(points, spare[at], means, best, 1.0 / sizes[best])
    return group


@inner
def _drawn_centres(points, k, uniform):
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
            distance = _squared_distance(points, i, centres, g)
            apart[i] = distance if g == 0 else min(apart[i], distance)
    return centres


@inner
def _squared_distance(points, i, centres, g):
    distance = 0.0
    for j in range(points.shape[0]):
        apart = points[j, i] - centres[j, g]
        distance += apart * apart
    return distance


@inner
def _nearest(points, i, centres):
    best = 0
    least = np.inf
    for g in range(centres.shape[1]):
        distance = _squared_distance(points, i, centres, g)
        if distance < least:
            best = g
            least = distance
    return best


@inner
def _fill_shares(points, i, centres, fuzzifier, share, before):
    """share[i, g] proportional to distance ** (-2 / (fuzzifier - 1)); all of it at centres that
    coincide with the record. before: what the shares were.
    """
    k = centres.shape[1]
    whole = 0.0
    at_centre = 0
    for g in range(k):
        before[g] = share[i, g]
        distance = _squared_distance(points, i, centres, g)
        share[i, g] = distance
        if distance == 0.0:
            at_centre += 1
    for g in range(k):
        if at_centre > 0:
            share[i, g] = 1.0 if share[i, g] == 0.0 else 0.0
        else:
            share[i, g] = share[i, g] ** (-1.0 / (fuzzifier - 1.0))
        whole += share[i, g]
    for g in range(k):
        share[i, g] /= whole


@inner
def _shift_mean(points, i, means, g, by):
    for j in range(points.shape[0]):
        means[j, g] += (points[j, i] - means[j, g]) * by


@inner
def _farthest_member(points, group, means, g):
    worst = -1
    most = -1.0
    for i in range(points.shape[1]):
        if group[i] == g:
            distance = _squared_distance(points, i, means, g)
            if distance > most:
                worst = i
                most = distance
    return worst
