"""Compiled recursive cutting of whole rows in place, for the rounded partition function.

rows: (n, d + 1) int32, the codes of one record per row and the record's number in the last column.
A span of codes costs what `Matrix` says: `scale` for linear attributes, the lowest covering node for
tree attributes (`base`, `parent`, `last`, `width`). Costs are summed over attributes.

Large nodes are cut where they lie, by a selection that moves whole rows; their position comes from
the rule of sizes or from a strided sample. Nodes of at most `block` rows keep one sorted list of
rows per attribute, so that every cut on every attribute can be priced exactly in linear time.
"""

from __future__ import annotations

import numpy as np
from numba import njit

SAME, CROSS, PROPORTIONAL = 0, 1, 2
TIES_BY_ROW, TIES_LEXICOGRAPHIC = 0, 1
DEEPEST = 4096  # far above any depth that cuts of at least a fiftieth can reach


@njit(nogil=True, cache=True)
def span_loss(lo, hi, j, scale, base, parent, last, width):
    """Loss of publishing lo..hi on attribute j."""
    if base[j] < 0:
        return (hi - lo) * scale[j]
    node = base[j] + lo
    while last[node] < hi:
        node = parent[node]
    return width[node]


@njit(nogil=True, cache=True)
def lower_size(m, k, sizes):
    """Records on the low side of a cut: the paper's rounded partition function."""
    a = m // k
    b = m - a * k
    if sizes == SAME:
        return ((a + 1) // 2) * k + (b + 1) // 2
    if sizes == CROSS:
        return ((a + 1) // 2) * k + b // 2
    half = a - a // 2
    return half * (m // a) + ((m % a) * half) // a


@njit(nogil=True, cache=True)
def _swap(rows, i, j):
    if i != j:
        for c in range(rows.shape[1]):
            t = rows[i, c]
            rows[i, c] = rows[j, c]
            rows[j, c] = t


@njit(nogil=True, cache=True)
def _pivot(rows, a, b, column, rank):
    """A value of the column near the given rank: that rank's share of a small strided sample."""
    m = b - a
    size = 1 if m < 16 else (7 if m < 512 else 31)
    sample = np.empty(31, dtype=np.int32)
    for s in range(size):
        value = rows[a + (2 * s + 1) * m // (2 * size), column]
        t = s
        while t > 0 and sample[t - 1] > value:
            sample[t] = sample[t - 1]
            t -= 1
        sample[t] = value
    return sample[(rank - a) * size // m]


@njit(nogil=True, cache=True)
def _select(rows, a, b, cut, order):
    """Moves rows so that [a, cut) precede [cut, b) in the order of these columns, first column first."""
    for column in order:
        equal = False
        while not equal and a < cut < b:
            pivot = _pivot(rows, a, b, column, cut)
            low, i, high = a, a, b
            while i < high:
                value = rows[i, column]
                if value < pivot:
                    _swap(rows, i, low)
                    low += 1
                    i += 1
                elif value > pivot:
                    high -= 1
                    while high > i and rows[high, column] > pivot:
                        high -= 1
                    _swap(rows, i, high)
                else:
                    i += 1
            if cut < low:
                b = low
            elif cut > high:
                a = high
            else:
                a, b = low, high
                equal = True
        if a >= cut or cut >= b:
            return


@njit(nogil=True, cache=True)
def _bounds(rows, a, b, lo, hi):
    d = lo.shape[0]
    for j in range(d):
        lo[j] = rows[a, j]
        hi[j] = rows[a, j]
    for i in range(a + 1, b):
        for j in range(d):
            v = rows[i, j]
            if v < lo[j]:
                lo[j] = v
            elif v > hi[j]:
                hi[j] = v


@njit(nogil=True, cache=True)
def _tie_order(losses, first, ties, order):
    """Columns that decide who goes first: the cut's own, then the widest, then the record number."""
    d = losses.shape[0]
    if ties == TIES_BY_ROW:
        order[0] = first
        order[1] = d
        return 2
    used = 0
    for j in range(d):
        if j != first:
            t = used
            while t > 0 and losses[order[t - 1]] < losses[j]:
                order[t] = order[t - 1]
                t -= 1
            order[t] = j
            used += 1
    for t in range(used, 0, -1):
        order[t] = order[t - 1]
    order[0] = first
    order[d] = d
    return d + 1


@njit(nogil=True, cache=True)
def _sort_stable(values, index, other, counts):
    """Sorts positions `index` by values[position], stable; `other` is scratch of the same length."""
    m = index.shape[0]
    lo = values[index[0]]
    hi = lo
    for i in range(m):
        v = values[index[i]]
        lo = min(lo, v)
        hi = max(hi, v)
    if lo == hi:
        return
    span = hi - lo + 1
    if span <= counts.shape[0] - 1 and span <= 4 * m + 64:
        for v in range(span + 1):
            counts[v] = 0
        for i in range(m):
            counts[values[index[i]] - lo + 1] += 1
        for v in range(span):
            counts[v + 1] += counts[v]
        for i in range(m):
            p = index[i]
            v = values[p] - lo
            other[counts[v]] = p
            counts[v] += 1
        for i in range(m):
            index[i] = other[i]
        return
    step = 1
    while step < m:
        for start in range(0, m, 2 * step):
            middle = min(start + step, m)
            end = min(start + 2 * step, m)
            i, j, t = start, middle, start
            while i < middle and j < end:
                if values[index[j]] < values[index[i]]:
                    other[t] = index[j]
                    j += 1
                else:
                    other[t] = index[i]
                    i += 1
                t += 1
            while i < middle:
                other[t] = index[i]
                i += 1
                t += 1
            while j < end:
                other[t] = index[j]
                j += 1
                t += 1
        for i in range(m):
            index[i] = other[i]
        step *= 2


@njit(nogil=True, cache=True)
def _sorted_lists(block, ids, losses, ties, lists, other, counts):
    """One list of positions per attribute, sorted by value and then by the tie order.

    block: (d, m) int32, attribute-major codes. lists: (d, m) int32, filled.
    """
    d, m = block.shape
    order = np.empty(d + 1, dtype=np.int64)
    _tie_order(losses, _widest(losses), ties, order)
    tied = lists[0]
    for i in range(m):
        tied[i] = i
    if ties == TIES_BY_ROW:
        _sort_stable(ids, tied, other, counts)
    else:
        for t in range(d - 1, -1, -1):
            _sort_stable(block[order[t]], tied, other, counts)
    for j in range(d - 1, -1, -1):
        if j > 0:
            for i in range(m):
                lists[j, i] = tied[i]
        _sort_stable(block[j], lists[j], other, counts)


@njit(nogil=True, cache=True)
def _prices(block, index, backward, k, rem, low, high, active, lo, hi, prices, costs):
    """Rows times loss of the first c rows of this order, for every admissible c of low..high, into prices[c].

    backward: of the last m - c rows instead, added to what prices[c] holds.
    A cut of c of m rows is admissible when c mod k <= m mod k = rem: then both sides together still
    hold m // k classes. low and high are 1..m-1.
    """
    scale, base, parent, last, width = costs
    m = index.shape[0]
    used = active.shape[0]
    step, r = 1, index[0]
    stop = high
    if backward:
        step, r = -1, index[m - 1]
        stop = m - low
    for t in range(used):
        lo[t] = block[active[t], r]
        hi[t] = lo[t]
    loss = 0.0
    changed = False
    at = 0 if step == 1 else m - 1
    place = 0 if step == 1 else m % k
    for i in range(stop):
        r = index[at]
        at += step
        for t in range(used):
            v = block[active[t], r]
            if v < lo[t]:
                lo[t] = v
                changed = True
            elif v > hi[t]:
                hi[t] = v
                changed = True
        place += step
        if place == k:
            place = 0
        elif place < 0:
            place = k - 1
        c = i + 1 if step == 1 else at + 1
        if place <= rem and low <= c <= high:
            if changed:
                loss = 0.0
                for t in range(used):
                    loss += span_loss(lo[t], hi[t], active[t], scale, base, parent, last, width)
                changed = False
            if step == 1:
                prices[c] = loss * c
            else:
                prices[c] += loss * (m - c)


@njit(nogil=True, cache=True)
def _cheapest_cuts(block, lists, s, e, k, rem, low, high, one, losses, found, costs):
    """Cheapest admissible cut on each attribute, over rows s..e of its list; (price, rows) into `found`.

    one: the only attribute to try, or -1 for all. An attribute without loss is not tried: price inf.
    """
    d = block.shape[0]
    active = np.empty(d, dtype=np.int64)
    lo = np.empty(d, dtype=np.int32)
    hi = np.empty(d, dtype=np.int32)
    prices = np.empty(high + 1)
    used = 0
    for j in range(d):
        if block[j, lists[j, s]] < block[j, lists[j, e - 1]]:
            active[used] = j
            used += 1
    rising = e > s
    for j in range(d):
        found[j, 0] = np.inf
        found[j, 1] = low
        if losses[j] == 0.0 or not (one < 0 or j == one):
            continue
        for backward in (not rising, rising):
            _prices(block, lists[j, s:e], backward, k, rem, low, high, active[:used], lo, hi, prices, costs)
        for c in range(low, high + 1):
            if c % k <= rem and prices[c] < found[j, 0]:
                found[j, 0] = prices[c]
                found[j, 1] = c


@njit(nogil=True, cache=True)
def _least(found, column):
    j = 0
    for t in range(found.shape[0]):
        if found[t, column] < found[j, column]:
            j = t
    return j


@njit(nogil=True, cache=True)
def _widest(losses):
    j = 0
    for t in range(losses.shape[0]):
        if losses[t] > losses[j]:
            j = t
    return j


@njit(nogil=True, cache=True)
def _losses(rows, a, b, lo, hi, losses, costs):
    """Loss of publishing each attribute of rows a..b."""
    scale, base, parent, last, width = costs
    _bounds(rows, a, b, lo, hi)
    for j in range(losses.shape[0]):
        losses[j] = span_loss(lo[j], hi[j], j, scale, base, parent, last, width)


@njit(nogil=True, cache=True)
def _load(rows, a, m, stride_rows, ties, losses, block, ids, lists, other, counts):
    """m rows, spread evenly over `stride_rows` rows from a, attribute-major and with their sorted lists."""
    d = block.shape[0]
    for i in range(m):
        r = a + i * stride_rows // m
        for j in range(d):
            block[j, i] = rows[r, j]
        ids[i] = rows[r, d]
    _sorted_lists(block, ids, losses, ties, lists, other, counts)


@njit(nogil=True, cache=True)
def _divide(block, lists, s, e, dim, c, flags, other):
    """Keeps every list sorted while the first c rows of list `dim` go low."""
    for i in range(s, e):
        flags[lists[dim, i]] = i - s >= c
    for j in range(lists.shape[0]):
        if j == dim:
            continue
        left, right = s, 0
        for i in range(s, e):
            p = lists[j, i]
            if flags[p]:
                other[right] = p
                right += 1
            else:
                lists[j, left] = p
                left += 1
        for i in range(right):
            lists[j, left + i] = other[i]


@njit(nogil=True, cache=True)
def _cut_block(rows, a, b, k, rules, window, losses, other, counts, flags, starts, used, costs):
    """Cuts rows a..b into classes by exact prices; writes where each starts. Returns the classes so far."""
    scale, base, parent, last, width = costs
    sizes, admissible, best, ties = rules
    m = b - a
    d = rows.shape[1] - 1
    block = np.empty((d, m), dtype=np.int32)
    lists = np.empty((d, m), dtype=np.int32)
    ids = np.empty(m, dtype=np.int32)
    found = np.empty((d, 2))
    _load(rows, a, m, m, ties, losses, block, ids, lists, other, counts)
    stack = np.empty((DEEPEST, 2), dtype=np.int64)
    stack[0, 0], stack[0, 1] = 0, m
    top = 1
    while top > 0:
        top -= 1
        s, e = stack[top, 0], stack[top, 1]
        size = e - s
        if size < 2 * k:
            starts[used] = a + s
            used += 1
            continue
        for j in range(d):
            least, most = block[j, lists[j, s]], block[j, lists[j, e - 1]]
            losses[j] = span_loss(least, most, j, scale, base, parent, last, width)
        middle = lower_size(size, k, sizes)
        low = max(int(size * window), k)
        high = size - low
        rem = size % k
        if not admissible:
            low, high, rem = middle, middle, k - 1
        widest = _widest(losses)
        dim, c = widest, middle
        if losses[widest] > 0.0:
            one = -1 if best else widest
            _cheapest_cuts(block, lists, s, e, k, rem, low, high, one, losses, found, costs)
            dim = _least(found, 0)
            c = int(found[dim, 1])
        _divide(block, lists, s, e, dim, c, flags, other)
        stack[top, 0], stack[top, 1] = s + c, e
        stack[top + 1, 0], stack[top + 1, 1] = s, s + c
        top += 2
    for i in range(m):
        p = lists[0, i]
        for j in range(d):
            rows[a + i, j] = block[j, p]
        rows[a + i, d] = ids[p]
    return used


@njit(nogil=True, cache=True)
def _propose(rows, a, b, k, rules, window, sample, losses, other, counts, costs):
    """Where to cut a large node, from a strided sample of it: (attribute, rows on the low side)."""
    sizes, admissible, best, ties = rules
    m = b - a
    d = rows.shape[1] - 1
    block = np.empty((d, sample), dtype=np.int32)
    lists = np.empty((d, sample), dtype=np.int32)
    ids = np.empty(sample, dtype=np.int32)
    found = np.empty((d, 2))
    _load(rows, a, sample, m, ties, losses, block, ids, lists, other, counts)
    low = int(sample * window)
    high = sample - low
    middle = lower_size(m, k, sizes)
    if not admissible:
        low = middle * sample // m
        high = low
    _cheapest_cuts(block, lists, m - m, sample, sample - sample + 1, sample - sample, low, high,
                   -1 if best else _widest(losses), losses, found, costs)
    dim = _least(found, 0)
    if not admissible:
        return dim, middle
    at = int(found[dim, 1])
    below = block[dim, lists[dim, at - 1]]
    target = at * m // sample
    if below < block[dim, lists[dim, at]]:
        target = 0
        for i in range(a, b):
            if rows[i, dim] <= below:
                target += 1
    low = max(int(m * window), k)
    target = min(max(target, low), m - low)
    over = target % k
    if over > m % k:
        target += m % k - over if over - m % k <= k - over else k - over
    return dim, target


@njit(nogil=True, cache=True)
def cut_rows(rows, k, rules, block, sample, window, costs):
    """Cuts all rows into n // k classes, in place; returns where each class starts, and n at the end.

    rules: (sizes, admissible, best, ties): SAME, CROSS or PROPORTIONAL; whether any admissible cut may be
    chosen, the cheapest, or only the one of `sizes`; whether every attribute is tried, or only the
    widest; TIES_BY_ROW or TIES_LEXICOGRAPHIC.
    block: nodes of at most so many rows are priced exactly; larger ones from `sample` rows (0: never priced).
    window: least share of the rows on either side.
    costs: (scale, base, parent, last, width) of the matrix.
    """
    n = rows.shape[0]
    d = rows.shape[1] - 1
    starts = np.empty(n // k + 1, dtype=np.int64)
    longest = max(min(block, n), sample, 1)
    other = np.empty(longest, dtype=np.int32)
    flags = np.empty(longest, dtype=np.bool_)
    counts = np.empty(4 * longest + 66, dtype=np.int32)
    lo = np.empty(d, dtype=np.int32)
    hi = np.empty(d, dtype=np.int32)
    losses = np.empty(d)
    order = np.empty(d + 1, dtype=np.int64)
    stack = np.empty((DEEPEST, 2), dtype=np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    top = 1
    used = n - n
    while top > 0:
        top -= 1
        a, b = stack[top, 0], stack[top, 1]
        m = b - a
        if m < 2 * k:
            starts[used] = a
            used += 1
            continue
        _losses(rows, a, b, lo, hi, losses, costs)
        if m <= block:
            used = _cut_block(rows, a, b, k, rules, window, losses, other, counts, flags, starts, used, costs)
            continue
        dim, c = _widest(losses), lower_size(m, k, rules[0])
        if sample > 0 and losses[dim] > 0.0:
            dim, c = _propose(rows, a, b, k, rules, window, sample, losses, other, counts, costs)
        _select(rows, a, b, a + c, order[: _tie_order(losses, dim, rules[3], order)])
        stack[top, 0], stack[top, 1] = a + c, b
        stack[top + 1, 0], stack[top + 1, 1] = a, a + c
        top += 2
    starts[used] = n
    return starts[: used + 1]


@njit(nogil=True, cache=True)
def cut_once(rows, begin, end, attempt, k, quota, rules, block, window, costs):
    """Proposes one cut for each of these nodes, in place: rows on the low side, 0 where none is left to try.

    begin, end: (nodes,) int64. attempt: (nodes,) int32, how many cuts of the node were refused before: the
    attributes are tried from the cheapest cut to the dearest, or from the widest to the narrowest (`rules`
    as for `cut_rows`). k: least rows on a side. quota: rows to count as one class while two of them fit.
    Nodes above `block` rows are priced on a strided sample of so many rows.
    """
    d = rows.shape[1] - 1
    low_rows = np.zeros(begin.shape[0], dtype=np.int64)
    other = np.empty(block, dtype=np.int32)
    counts = np.empty(4 * block + 66, dtype=np.int32)
    lo = np.empty(d, dtype=np.int32)
    hi = np.empty(d, dtype=np.int32)
    losses = np.empty(d)
    order = np.empty(d + 1, dtype=np.int64)
    found = np.empty((d, 2))
    for node in range(begin.shape[0]):
        a, b = begin[node], end[node]
        m = b - a
        if m < 2 * k:
            continue
        _losses(rows, a, b, lo, hi, losses, costs)
        size = min(m, block)
        held = np.empty((d, size), dtype=np.int32)
        lists = np.empty((d, size), dtype=np.int32)
        ids = np.empty(size, dtype=np.int32)
        _load(rows, a, size, m, rules[3], losses, held, ids, lists, other, counts)
        unit = quota if m >= 2 * quota else k
        middle = lower_size(m, unit, rules[0])
        low = max(int(size * window), k if size == m else k // k)
        high = size - low
        if not rules[1]:
            low = middle * size // m
            high = low
        exact = size == m and rules[1]
        for j in range(d):
            found[j, 0] = np.inf
            found[j, 1] = middle * size // m
        step = unit if exact else k // k
        _cheapest_cuts(held, lists, m - m, size, step, m % step, low, high, m - m - 1, losses, found, costs)
        for j in range(d):
            if not rules[2] and found[j, 0] < np.inf:
                found[j, 0] = -losses[j]
        for _ in range(attempt[node]):
            found[_least(found, 0), 0] = np.inf
        dim = _least(found, 0)
        if found[dim, 0] == np.inf:
            if attempt[node] > 0:
                continue
            dim = _widest(losses)
        c = int(found[dim, 1])
        if size < m:
            below = held[dim, lists[dim, c - 1]]
            target = c * m // size
            if below < held[dim, lists[dim, c]]:
                target = a - a
                for i in range(a, b):
                    if rows[i, dim] <= below:
                        target += 1
            c = min(max(target, k), m - k)
        if not rules[1]:
            c = middle
        _select(rows, a, b, a + c, order[: _tie_order(losses, dim, rules[3], order)])
        low_rows[node] = c
    return low_rows
