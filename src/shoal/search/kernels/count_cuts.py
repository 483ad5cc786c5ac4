"""Top-down cuts that keep as many classes as possible under l-diversity.

A node's *bound* says how many classes its records could make, whatever they are: see
`search.most_classes`. A cut is admissible where both sides together have the bound of the
node. Every cut may divide records that are tied.
"""

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.spans import span_loss

TRIED = 60  # cuts on each attribute of a node, from its middle outward
LOSS = 0.3
"""What a record's loss weighs against the share that comes nearest to its limit: sides that are
just within it can't be cut again. Of 0, .1, .3, 1 and 3 on Adult (l = 2, 4), one between loss and
count."""
DEEP = 128  # nodes that wait at a time: the smaller side goes on the stack last


@outer
def cut_by_count(codes, values, k, l, is_share, costs):
    """Classes of the records: which of them each record is in, (n,) int32.

    codes: (n, d) int32. values: (n,) int32, places of the sensitive values from 0 on. k: least
    records of a class. l: least different values, or with is_share 1 / the greatest share of one.
    costs: as in `spans`.
    """
    n = len(codes)
    order = np.arange(n)
    place = np.full(values.max() + 1, -1, dtype=np.int64)
    labels = np.empty(n, dtype=np.int32)
    stack = np.empty((DEEP, 2), dtype=np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    waiting, classes = 1, 0
    while waiting:
        waiting -= 1
        begin, end = stack[waiting]
        low = np.int64(0)
        if end - begin >= 2 * k:
            low = _cut(order[begin:end], codes, values, place, k, l, is_share, costs)
        if low == 0:
            for at in range(begin, end):
                labels[order[at]] = classes
            classes += 1
            continue
        middle = begin + low
        small = 0 if low * 2 <= end - begin else 1
        for side in (1 - small, small):  # the smaller side is done first: few nodes wait
            stack[waiting, 0] = begin if side == 0 else middle
            stack[waiting, 1] = middle if side == 0 else end
            waiting += 1
    return labels


@inner
def _cut(node, codes, values, place, k, l, is_share, costs):
    """Orders the node's records by the best cut; records on its low side, 0 where there is none."""
    m, d = len(node), codes.shape[1]
    node.sort()
    local, counts = _local_values(node, values, place)
    whole = _bound(counts, m, k, l, is_share)
    unit = l * (-(-k // l)) if is_share else k
    best_sum, best_loss, best_low, best_attribute = 1, np.inf, np.int64(0), -1
    for only_whole in (True, False):
        positions = _positions(m, k, unit if only_whole else 1)
        for j in range(d):
            by = np.argsort(codes[node, j], kind="mergesort")
            if codes[node[by[0]], j] == codes[node[by[-1]], j] and (j < d - 1 or best_low):
                continue  # records that are all alike are cut as they come
            sums = _sums(by, local, counts, positions, k, l, is_share)
            losses = _losses(node, by, codes, positions, costs) / m
            if is_share:
                losses = LOSS * losses + _tight(by, local, counts, positions, l)
            for p in range(len(positions)):
                found = min(sums[p], whole)
                if found > best_sum or (found == best_sum and losses[p] < best_loss):
                    best_sum, best_loss = found, losses[p]
                    best_low, best_attribute = positions[p], j
        if best_sum >= whole or best_low:
            break
    if best_low:
        node[:] = node[np.argsort(codes[node, best_attribute], kind="mergesort")]
    return best_low


@inner
def _local_values(node, values, place):
    """The values of a node numbered from 0 on, by record, and how often each occurs. place: -1."""
    local, distinct = np.empty(len(node), dtype=np.int64), 0
    for i in range(len(node)):
        v = values[node[i]]
        if place[v] < 0:
            place[v] = distinct
            distinct += 1
        local[i] = place[v]
    counts = np.zeros(distinct, dtype=np.int64)
    for i in range(len(node)):
        counts[local[i]] += 1
        place[values[node[i]]] = -1
    return local, counts


@inner
def _bound(counts, m, k, l, is_share):
    """How many classes m records with these counts of values can make at most, for distinct l;
    for shares how many they can make for sure. 0 where they can't even be one.
    """
    if m < k:
        return np.int64(0)
    if is_share:
        largest = np.int64(0)
        for count in counts:
            largest = max(largest, count)
        return max(np.int64(1), m // (l * (-(-k // l)))) if largest * l <= m else np.int64(0)
    low, high = np.int64(0), np.int64(m // k)
    if _deals(counts, l, high):
        return high
    while high - low > 1:
        a = (low + high) // 2
        if _deals(counts, l, a):
            low = a
        else:
            high = a
    return low


@inner
def _deals(counts, l, a):
    """Whether a classes get l different values each: a value goes to a of them at most."""
    pairs = np.int64(0)
    for count in counts:
        pairs += min(count, a)
    return pairs >= l * a


@inner
def _positions(m, k, unit):
    """Sizes of the low side that keep m // unit classes of `unit`, near the middle, ascending."""
    found, n = np.empty(TRIED, dtype=np.int64), 0
    for away in range(m):
        for c in (m // 2 - away, m // 2 + away + 1):
            if k <= c <= m - k and c % unit <= m % unit and n < TRIED:
                found[n] = c
                n += 1
        if n == TRIED:
            break
    return np.sort(found[:n])


@inner
def _sums(by, local, counts, positions, k, l, is_share):
    """The bounds of both sides together at each position; 0 where a side has none."""
    m = len(by)
    low, high = np.zeros(len(counts), dtype=np.int64), counts.copy()
    sums, at = np.zeros(len(positions), dtype=np.int64), 0
    for p in range(len(positions)):
        while at < positions[p]:
            low[local[by[at]]] += 1
            high[local[by[at]]] -= 1
            at += 1
        one = _bound(low, at, k, l, is_share)
        other = _bound(high, m - at, k, l, is_share) if one else np.int64(0)
        sums[p] = one + other if other else 0
    return sums


@inner
def _tight(by, local, counts, positions, l):
    """How near the greatest share of a value comes to 1 / l on the worse side of each position."""
    m = len(by)
    low, high = np.zeros(len(counts), dtype=np.int64), counts.copy()
    tight, at = np.zeros(len(positions)), 0
    for p in range(len(positions)):
        while at < positions[p]:
            low[local[by[at]]] += 1
            high[local[by[at]]] -= 1
            at += 1
        tight[p] = l * max(low.max() / at, high.max() / (m - at))
    return tight


@inner
def _losses(node, by, codes, positions, costs):
    m, d = len(by), codes.shape[1]
    losses = np.zeros(len(positions))
    for backward in (False, True):
        lo = codes[node[by[m - 1 if backward else 0]]].copy()
        hi, at = lo.copy(), 0
        for q in range(len(positions)):
            p = len(positions) - 1 - q if backward else q
            size = m - positions[p] if backward else positions[p]
            while at < size:
                record = node[by[m - 1 - at if backward else at]]
                for j in range(d):
                    lo[j] = min(lo[j], codes[record, j])
                    hi[j] = max(hi[j], codes[record, j])
                at += 1
            for j in range(d):
                losses[p] += size * span_loss(lo[j], hi[j], j, costs)
    return losses
