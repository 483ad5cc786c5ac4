"""Compiled recursive cutting of whole rows in place, for the rounded partition function.

rows: (n, d + 1) int32, the codes of one record per row and the record's number in the last column.
costs: (d + nodes, 3) float64, `Matrix` in one table: a row (loss per unit, first node or -1, 0) for each
attribute, then a row (parent, last leaf, loss) for each node; parents and first nodes are row numbers.

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

# helpers are called from compiled code only; without wrappers for Python they compile faster
inner = njit(nogil=True, cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@inner
def span_loss(lo, hi, j, costs):
    """Loss of publishing lo..hi on attribute j."""
    if costs[j, 1] < 0.0:
        return (hi - lo) * costs[j, 0]
    node = int(costs[j, 1]) + lo
    while costs[node, 1] < hi:
        node = int(costs[node, 0])
    return costs[node, 2]


@inner
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


@inner
def _swap(rows, i, j):
    if i != j:
        for c in range(rows.shape[1]):
            t = rows[i, c]
            rows[i, c] = rows[j, c]
            rows[j, c] = t


@inner
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


@inner
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


@inner
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


@inner
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


@inner
def _sort_stable(values, index, other, counts):
    """Sorts positions `index` by values[position], stable, a byte at a time; `other` is scratch."""
    m = index.shape[0]
    lo = values[index[0]]
    hi = lo
    for i in range(m):
        v = values[index[i]]
        if v < lo:
            lo = v
        elif v > hi:
            hi = v
    span = hi - lo
    shift = 0
    while span >> shift > 0:
        for v in range(257):
            counts[v] = 0
        for i in range(m):
            counts[(((values[index[i]] - lo) >> shift) & 255) + 1] += 1
        for v in range(256):
            counts[v + 1] += counts[v]
        for i in range(m):
            p = index[i]
            v = ((values[p] - lo) >> shift) & 255
            other[counts[v]] = p
            counts[v] += 1
        for i in range(m):
            index[i] = other[i]
        shift += 8


@inner
def _sorted_lists(rows, a, reach, ties, losses, block, lists, other, counts):
    """Copies m rows spread evenly over the `reach` rows from a, attribute-major, and sorts them by each attribute.

    block: (d + 1, m) int32, filled: the codes, and the records' numbers last. lists: (d + 1, m) int32, filled:
    positions sorted by one attribute, ties by the tie order; list d holds the tie order itself.
    """
    m = block.shape[1]
    d = block.shape[0] - 1
    order = np.empty(d + 1, dtype=np.int64)
    used = _tie_order(losses, _widest(losses), ties, order)
    for i in range(m):
        r = a + i * reach // m
        for j in range(d + 1):
            block[j, i] = rows[r, j]
        lists[d, i] = i
    first = 1 if ties == TIES_BY_ROW else used - 1
    for t in range(first + d):
        # first the tie order, its least column first; then a list for every attribute
        j = d if ties == TIES_BY_ROW else order[max(used - 2 - t, 0)]
        to = d
        if t >= first:
            j = t - first
            to = j
            for i in range(m):
                lists[j, i] = lists[d, i]
        _sort_stable(block[j], lists[to], other, counts)


@inner
def _prices(block, index, backward, k, rem, low, high, active, lo, hi, prices, costs):
    """Rows times loss of the first c rows of this order, for every admissible c of low..high, into prices[c].

    backward: of the last m - c rows instead, added to what prices[c] holds.
    A cut of c of m rows is admissible when c mod k <= m mod k = rem: then both sides together still
    hold m // k classes. low and high are 1..m-1.
    """
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
                    loss += span_loss(lo[t], hi[t], active[t], costs)
                changed = False
            if step == 1:
                prices[c] = loss * c
            else:
                prices[c] += loss * (m - c)


@inner
def _cheapest_cuts(block, lists, s, e, k, rem, low, high, one, losses, found, costs):
    """Cheapest admissible cut on each attribute, over rows s..e of its list; (price, rows) into `found`.

    one: the only attribute to try, or -1 for all. An attribute without loss is not tried: price inf.
    """
    d = losses.shape[0]
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


@inner
def _least(found):
    j = 0
    for t in range(found.shape[0]):
        if found[t, 0] < found[j, 0]:
            j = t
    return j


@inner
def _widest(losses):
    j = 0
    for t in range(losses.shape[0]):
        if losses[t] > losses[j]:
            j = t
    return j


@inner
def _divide(block, lists, s, e, dim, c, flags, other):
    """Keeps every list sorted while the first c rows of list `dim` go low."""
    for i in range(s, e):
        flags[lists[dim, i]] = i - s >= c
    for j in range(lists.shape[0] - 1):
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


@inner
def _position(rows, a, b, dim, share, sample, below, above, k, window):
    """Rows on the low side of a sampled cut: a share of the node, or all rows up to `below` if `above` differs."""
    m = b - a
    target = share * m // sample
    if below < above:
        target = a - a
        for i in range(a, b):
            if rows[i, dim] <= below:
                target += 1
    low = max(int(m * window), k)
    return min(max(target, low), m - low)


@njit(nogil=True, cache=True)
def cut_large(rows, k, rules, block, sample, window, costs):
    """Cuts nodes of more than `block` rows, in place; returns where each node starts, and n at the end.

    rules: (sizes, admissible, best, ties): SAME, CROSS or PROPORTIONAL; whether any admissible cut may be
    chosen, the cheapest, or only the one of `sizes`; whether every attribute is tried, or only the
    widest; TIES_BY_ROW or TIES_LEXICOGRAPHIC.
    block: at least 2 * k - 1; with exactly that, the nodes are the classes.
    sample: rows on which a node's cuts are priced, at most `block`; 0: never priced, widest and `sizes` decide.
    window: least share of the rows on either side.
    """
    sizes, admissible, best, ties = rules
    n = rows.shape[0]
    d = rows.shape[1] - 1
    starts = np.empty(n // k + 1, dtype=np.int64)
    held = np.empty((d + 1, sample), dtype=np.int32)
    lists = np.empty((d + 1, sample), dtype=np.int32)
    other = np.empty(sample, dtype=np.int32)
    counts = np.empty(257, dtype=np.int64)
    found = np.empty((d, 2))
    lo = np.empty(d, dtype=np.int32)
    hi = np.empty(d, dtype=np.int32)
    losses = np.empty(d)
    order = np.empty(d + 1, dtype=np.int64)
    stack = np.empty((DEEPEST, 2), dtype=np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    top = 1
    used = 0
    while top > 0:
        top -= 1
        a, b = stack[top, 0], stack[top, 1]
        m = b - a
        if m <= block:
            starts[used] = a
            used += 1
            continue
        _bounds(rows, a, b, lo, hi)
        for j in range(d):
            losses[j] = span_loss(lo[j], hi[j], j, costs)
        dim, c = _widest(losses), lower_size(m, k, sizes)
        if sample > 0 and losses[dim] > 0.0:
            _sorted_lists(rows, a, m, ties, losses, held, lists, other, counts)
            low = max(int(sample * window), 1)
            high = sample - low
            if not admissible:
                low = max(c * sample // m, 1)
                high = low
            one = -1 if best else dim
            _cheapest_cuts(held, lists, m - m, sample, m // m, m - m, low, high, one, losses, found, costs)
            dim = _least(found)
            if admissible:
                at = int(found[dim, 1])
                below, above = held[dim, lists[dim, at - 1]], held[dim, lists[dim, at]]
                c = _position(rows, a, b, dim, at, sample, below, above, k, window)
                over, rem = c % k, m % k
                if over > rem:  # to the nearest admissible size
                    c += rem - over if over - rem <= k - over else k - over
        _select(rows, a, b, a + c, order[: _tie_order(losses, dim, ties, order)])
        stack[top, 0], stack[top, 1] = a + c, b
        stack[top + 1, 0], stack[top + 1, 1] = a, a + c
        top += 2
    starts[used] = n
    return starts[: used + 1]


@njit(nogil=True, cache=True)
def cut_small(rows, nodes, k, rules, window, costs):
    """Cuts nodes that fit the cache into classes, every cut priced exactly; returns where each class starts.

    nodes: where each node starts, and n at the end; rules, window and costs as for `cut_large`.
    """
    sizes, admissible, best, ties = rules
    n = rows.shape[0]
    d = rows.shape[1] - 1
    longest = 0
    for node in range(nodes.shape[0] - 1):
        longest = max(longest, nodes[node + 1] - nodes[node])
    starts = np.empty(n // k + 1, dtype=np.int64)
    other = np.empty(longest, dtype=np.int32)
    flags = np.empty(longest, dtype=np.bool_)
    counts = np.empty(257, dtype=np.int64)
    found = np.empty((d, 2))
    lo = np.empty(d, dtype=np.int32)
    hi = np.empty(d, dtype=np.int32)
    losses = np.empty(d)
    stack = np.empty((DEEPEST, 2), dtype=np.int64)
    used = 0
    for node in range(nodes.shape[0] - 1):
        a = nodes[node]
        m = nodes[node + 1] - a
        block = np.empty((d + 1, m), dtype=np.int32)
        lists = np.empty((d + 1, m), dtype=np.int32)
        _bounds(rows, a, a + m, lo, hi)
        for j in range(d):
            losses[j] = span_loss(lo[j], hi[j], j, costs)
        _sorted_lists(rows, a, m, ties, losses, block, lists, other, counts)
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
                losses[j] = span_loss(least, most, j, costs)
            dim, c = _widest(losses), lower_size(size, k, sizes)
            if losses[dim] > 0.0:
                low = max(int(size * window), k)
                high = size - low
                rem = size % k
                if not admissible:
                    low, high, rem = c, c, k - 1
                _cheapest_cuts(block, lists, s, e, k, rem, low, high, -1 if best else dim, losses, found, costs)
                dim = _least(found)
                c = int(found[dim, 1])
            _divide(block, lists, s, e, dim, c, flags, other)
            stack[top, 0], stack[top, 1] = s + c, e
            stack[top + 1, 0], stack[top + 1, 1] = s, s + c
            top += 2
        for i in range(m):
            for j in range(d + 1):
                rows[a + i, j] = block[j, lists[0, i]]
    starts[used] = n
    return starts[: used + 1]


@njit(nogil=True, cache=True)
def cut_once(rows, begin, end, attempt, k, quota, rules, block, window, costs):
    """Proposes one cut for each of these nodes, in place: rows on the low side, 0 where none is left to try.

    begin, end: (nodes,) int64. attempt: (nodes,) int32, how many cuts of the node were refused before: the
    attributes are tried from the cheapest cut to the dearest, or from the widest to the narrowest (`rules`
    as for `cut_large`). k: least rows on a side. quota: rows to count as one class while two of them fit.
    Nodes above `block` rows are priced on a strided sample of so many rows.
    """
    sizes, admissible, best, ties = rules
    d = rows.shape[1] - 1
    low_rows = np.zeros(begin.shape[0], dtype=np.int64)
    other = np.empty(block, dtype=np.int32)
    counts = np.empty(257, dtype=np.int64)
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
        _bounds(rows, a, b, lo, hi)
        for j in range(d):
            losses[j] = span_loss(lo[j], hi[j], j, costs)
        size = min(m, block)
        held = np.empty((d + 1, size), dtype=np.int32)
        lists = np.empty((d + 1, size), dtype=np.int32)
        _sorted_lists(rows, a, m, ties, losses, held, lists, other, counts)
        unit = quota if m >= 2 * quota else k
        c = lower_size(m, unit, sizes)
        low = max(int(size * window), k if size == m else k // k)
        high = size - low
        if not admissible:
            low = max(c * size // m, 1)
            high = low
        step = unit if size == m and admissible else k // k
        for j in range(d):
            found[j, 0] = np.inf
        if losses[_widest(losses)] > 0.0:
            _cheapest_cuts(held, lists, m - m, size, step, m % step, low, high, m - m - 1, losses, found, costs)
        for j in range(d):
            if not best and found[j, 0] < np.inf:
                found[j, 0] = -losses[j]
        for _ in range(attempt[node]):
            found[_least(found), 0] = np.inf
        dim = _least(found)
        if found[dim, 0] < np.inf:
            if admissible:
                c = int(found[dim, 1])
                if size < m:
                    below, above = held[dim, lists[dim, c - 1]], held[dim, lists[dim, c]]
                    c = _position(rows, a, b, dim, c, size, below, above, k, window)
        elif attempt[node] > 0:
            continue
        _select(rows, a, b, a + c, order[: _tie_order(losses, dim, ties, order)])
        low_rows[node] = c
    return low_rows
