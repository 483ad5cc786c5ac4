"""Compiled recursive cutting of records in place, for the rounded partition function.

columns: (d + 1, n) int32, the codes of one record per column and, in the last row, the record's number: attribute
after attribute, so that spans and counts are taken over whole runs of memory. A node is a run of records, a..b.
costs: (d + nodes, 3) float64, `Matrix` in one table: a row (loss per unit, first node or -1, 0) for each
attribute, then a row (parent, last leaf, loss) for each node; parents and first nodes are row numbers.

Large nodes are cut where they lie: their low records are found by counting values, and every column is parted in
one pass that keeps the order of the records on both sides. Where to cut comes from the rule of sizes or from a
strided sample. Smaller nodes keep one sorted list of records per attribute, so that every cut on every attribute can
be priced in linear time, exactly up to `sample` records.
"""

from __future__ import annotations

import numpy as np
from numba import njit

SAME, CROSS, PROPORTIONAL = 0, 1, 2
TIES_BY_ROW, TIES_LEXICOGRAPHIC = 0, 1
LOW, HIGH, TIED = 0, 1, 2
LISTED = 50_000  # nodes up to here keep sorted lists if that is all there is to cut: one kernel less to compile
SPARSE, FEWEST = 8, 64  # a large node's cut is priced on one of so many records, and on at least so many
DEEPEST = 4096  # far above any depth that cuts of at least a fiftieth can reach

# Half the compile time of a kernel goes into its helpers, allocations and wrappers. So helpers, called from compiled
# code only, have no wrappers, all work space is allocated in Python, and rows of a matrix are passed by their number. A
# counter that a helper takes starts as `x - x`: for a literal 0 the helper would be compiled a second time.
inner = njit(nogil=True, cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
outer = njit(nogil=True, cache=True, no_cfunc_wrapper=True)


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
def _value_at(run, rank, sides, counts):
    """The value that the tied record of this rank has, and how many tied records have less."""
    first = rank - rank + run[0]
    last = first
    for i in range(run.shape[0]):
        first = min(first, run[i])
        last = max(last, run[i])
    below = rank - rank
    while True:
        shift = rank - rank
        while (last - first) >> shift > 255:
            shift += 8
        for v in range(257):
            counts[v] = 0
        for i in range(run.shape[0]):
            v = run[i]
            if sides[i] == TIED and first <= v <= last:
                counts[(v - first) >> shift] += 1
        at = rank - rank
        while below + counts[at] <= rank:
            below += counts[at]
            at += 1
        first += at << shift
        if shift == 0:
            return first, below
        last = min(last, first + (1 << shift) - 1)


@inner
def _part(columns, a, b, rank, dim, order, used, sides, aside, counts):
    """Moves records so that the `rank` lowest of a..b come first, in the order of attribute `dim`, of the `used`
    attributes of `order`, and of where they lie; both sides keep that last order.
    """
    m = b - a
    for i in range(m):
        sides[i] = TIED
    need = rank
    for t in range(-1, used):
        j = dim if t < 0 else order[t]
        if (t >= 0 and j == dim) or need == 0:
            continue
        run = columns[j, a:b]
        value, below = _value_at(run, need, sides, counts)
        need -= below
        for i in range(run.shape[0]):
            if sides[i] == TIED:
                sides[i] = TIED if run[i] == value else (HIGH if run[i] > value else LOW)
    for i in range(m):
        if sides[i] == TIED:
            sides[i] = LOW if need > 0 else HIGH
            need -= 1
    one = np.uint64(1)  # unsigned places are not checked for counting from the end
    for j in range(columns.shape[0]):
        run = columns[j, a:b]
        low = np.uint64(0)
        high = np.uint64(0)
        for i in range(run.shape[0]):  # both places are written and one counts: nothing for the processor to guess
            v = run[i]
            run[low] = v
            aside[high] = v
            side = np.uint64(sides[i])
            low += one - side
            high += side
        for i in range(high):
            run[low + i] = aside[i]


@inner
def _weigh(columns, a, b, losses, costs):
    """Fills in the loss of the records a..b on each attribute; returns the widest attribute."""
    widest = a - a
    for j in range(losses.shape[0]):
        run = columns[j, a:b]
        lo = run[0]
        hi = lo
        for i in range(run.shape[0]):
            lo = min(lo, run[i])
            hi = max(hi, run[i])
        losses[j] = span_loss(lo, hi, j, costs)
        if losses[j] > losses[widest]:
            widest = j
    return widest


@inner
def _tie_order(losses, ties, order):
    """Columns that decide between tied rows: the widest attributes first, then the record number; how many."""
    d = losses.shape[0]
    used = 0
    if ties == TIES_LEXICOGRAPHIC:
        for j in range(d):
            t = j
            while t > 0 and losses[order[t - 1]] < losses[j]:
                order[t] = order[t - 1]
                t -= 1
            order[t] = j
        used = d
    order[used] = d
    return used + 1


@inner
def _sort_list(block, lists, m, j, to, other, counts):
    """Sorts the last list by attribute j, stable, a byte at a time, into list `to`; `other` is scratch."""
    last = lists.shape[0] - 1
    lo = block[j, lists[last, 0]]
    hi = lo
    for i in range(m):
        p = lists[last, i]
        lists[to, i] = p
        v = block[j, p]
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
            counts[(((block[j, lists[to, i]] - lo) >> shift) & 255) + 1] += 1
        for v in range(256):
            counts[v + 1] += counts[v]
        for i in range(m):
            p = lists[to, i]
            v = ((block[j, p] - lo) >> shift) & 255
            other[counts[v]] = p
            counts[v] += 1
        for i in range(m):
            lists[to, i] = other[i]
        shift += 8


@inner
def _sorted_lists(columns, a, reach, m, order, used, block, lists, other, counts):
    """Copies m records spread evenly over the `reach` records from a, and sorts them by each attribute.

    order: the `used` columns that decide between tied rows. block, lists: (d + 1, at least m) int32, filled: the
    codes, and the records' numbers last; positions sorted by one attribute, and last in the order of ties.
    """
    d = block.shape[0] - 1
    for i in range(m):
        r = a + i * reach // m
        for j in range(d + 1):
            block[j, i] = columns[j, r]
        lists[d, i] = i
    for t in range(used + d):  # the column that decides least first; after all d attributes the rows are in order
        j = order[used - 1 - t] if t < used else t - used
        if j < d or used == 1:
            _sort_list(block, lists, m, j, d if t < used else j, other, counts)


@inner
def _prices(block, lists, j, s, m, stride, backward, k, rem, low, high, active, used, bounds, prices, costs):
    """Rows times loss of the first c rows in list j, for every admissible c of low..high, into prices[c].

    The rows: m of them from s on, each `stride` places after the last. backward: of the other rows instead, from the
    last, added to what prices[c] holds. active: the `used` attributes that have a loss. A cut of c of m rows is
    admissible when c mod k <= m mod k = rem: then both sides together still hold m // k classes. low and high are
    1..m-1.
    """
    step = stride
    at = s
    place = 0
    stop = high
    if backward:
        step = -stride
        at = s + (m - 1) * stride
        place = m % k
        stop = m - low
    r = lists[j, at]
    for t in range(used):
        v = block[active[t], r]
        bounds[0, t] = v
        bounds[1, t] = v
    loss = 0.0
    changed = False
    for i in range(1, stop + 1):
        r = lists[j, at]
        at += step
        for t in range(used):
            v = block[active[t], r]
            if v < bounds[0, t]:
                bounds[0, t] = v
                changed = True
            elif v > bounds[1, t]:
                bounds[1, t] = v
                changed = True
        c = i
        place += 1
        if backward:
            c = m - i
            place -= 2
        if place == k:
            place = 0
        elif place < 0:
            place = k - 1
        if place <= rem and low <= c <= high:
            if changed:
                loss = 0.0
                for t in range(used):
                    loss += span_loss(bounds[0, t], bounds[1, t], active[t], costs)
                changed = False
            if backward:
                prices[c] += loss * i
            else:
                prices[c] = loss * i


@inner
def _cheapest_cuts(block, lists, s, m, stride, k, rem, low, high, one, losses, found, prices, active, bounds, costs):
    """Cheapest admissible cut on each attribute; (price, rows) into `found`. Rows and sizes as for `_prices`.

    one: the only attribute to try, or -1 for all. An attribute without loss is not tried: price inf.
    Returns the attribute of the cheapest.
    """
    d = losses.shape[0]
    used = s - s
    cheapest = s - s
    for j in range(d):
        if block[j, lists[j, s]] < block[j, lists[j, s + (m - 1) * stride]]:
            active[used] = j
            used += 1
    for j in range(d):
        found[j, 0] = np.inf
        found[j, 1] = low
        if losses[j] > 0.0 and (one < 0 or j == one):
            for way in range(2):
                _prices(block, lists, j, s, m, stride, way > 0, k, rem, low, high, active, used, bounds, prices, costs)
            for c in range(low, high + 1):
                if c % k <= rem and prices[c] < found[j, 0]:
                    found[j, 0] = prices[c]
                    found[j, 1] = c
        if found[j, 0] < found[cheapest, 0]:
            cheapest = j
    return cheapest


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
def _between_values(columns, a, b, dim, share, sample, block, lists):
    """Rows on the low side of a sampled cut: its share of the node, or between values all rows up to the lower."""
    below = block[dim, lists[dim, share - 1]]
    c = share * (b - a) // sample
    if below < block[dim, lists[dim, share]]:
        c = a - a
        run = columns[dim, a:b]
        for i in range(run.shape[0]):
            c += run[i] <= below
    return c


@inner
def _allowed(c, m, k, window):
    """The admissible size of a cut of m rows that is nearest to c and leaves enough on either side."""
    low = max(int(m * window), k)
    c = min(max(c, low), m - low)
    over = c % k
    rem = m % k
    if over > rem:
        c += rem - over if over - rem <= k - over else k - over
    return c


def _room(size):
    """What parting nodes of up to `size` records needs: the side of each record, and a column's values on the high."""
    return np.empty(size, dtype=np.int8), np.empty(size, dtype=np.int32)


def _work_space(d, size):
    """What nodes of up to `size` rows of d attributes need, in the order in which the functions below take it."""
    return (
        np.empty((d + 1, size), dtype=np.int32),  # block
        np.empty((d + 1, size), dtype=np.int32),  # lists
        np.empty(max(size, 31), dtype=np.int32),  # other
        np.empty(257, dtype=np.int64),  # counts
        np.empty(size + 1),  # prices
        np.empty((d, 2)),  # found
        np.empty((2, d), dtype=np.int32),  # bounds
        np.empty(d, dtype=np.int64),  # active
        np.empty(d),  # losses
        np.empty(d + 1, dtype=np.int64),  # order
    )


def cut(columns, nodes, k, rules, sample, window, costs):
    """Cuts nodes into classes, in place; returns where each class starts, and n at the end.

    nodes: (nodes + 1,) int64, where each starts, and n.
    rules: (sizes, admissible, best, ties): SAME, CROSS or PROPORTIONAL; whether any admissible cut may be
    chosen, the cheapest, or only the one of `sizes`; whether every attribute is tried, or only the
    widest; TIES_BY_ROW or TIES_LEXICOGRAPHIC.
    sample: nodes up to so many rows are priced exactly, larger ones on some of their rows; 0: never priced, widest and
    `sizes` decide.
    window: least share of the rows on either side.
    """
    d = len(columns) - 1
    starts = np.empty(columns.shape[1] // k + len(nodes), dtype=np.int64)
    stack = np.empty((DEEPEST, 2), dtype=np.int64)
    largest = int(np.diff(nodes).max())
    block = max(sample, 2 * k - 1) if sample else 0
    if block == 0 or largest > max(block, LISTED):
        work_space = (*_room(largest), *_work_space(d, sample))
        found = _cut_large(columns, nodes, k, *rules, block, sample, window, costs, starts, stack, *work_space)
        nodes, largest = starts[: found + 1].copy(), block
    if block == 0:
        return nodes
    work_space = (np.empty(largest, dtype=np.bool_), *_work_space(d, largest))
    found = _cut_listed(columns, nodes, k, *rules, sample, window, costs, starts, stack, *work_space)
    return starts[: found + 1]


@outer
def _cut_large(
    columns, nodes, k, sizes, admissible, best, ties, limit, sample, window, costs, starts, stack, sides, aside,
    block, lists, other, counts, prices, found, bounds, active, losses, order,
):  # fmt: skip
    """Cuts nodes until none has more than `limit` rows and can still be cut; how many there are."""
    done = nodes.shape[0] - nodes.shape[0]
    for node in range(nodes.shape[0] - 1):
        stack[0, 0] = nodes[node]
        stack[0, 1] = nodes[node + 1]
        top = 1
        while top > 0:
            top -= 1
            a = stack[top, 0]
            b = stack[top, 1]
            m = b - a
            if m < 2 * k or m <= limit:
                starts[done] = a
                done += 1
                continue
            dim = _weigh(columns, a, b, losses, costs)
            used = _tie_order(losses, ties, order)
            c = lower_size(m, k, sizes)
            if sample > 0 and losses[dim] > 0.0:
                size = min(max(m // SPARSE, FEWEST), sample)
                _sorted_lists(columns, a, m, size, order, used, block, lists, other, counts)
                low = max(int(size * window), 1)
                high = size - low
                if not admissible:
                    low = max(c * size // m, 1)
                    high = low
                one = -1 if best else dim
                dim = _cheapest_cuts(
                    block, lists, m - m, size, m // m, m // m, m - m, low, high, one,
                    losses, found, prices, active, bounds, costs,
                )  # fmt: skip
                if admissible:
                    c = int(found[dim, 1])
                    c = _allowed(_between_values(columns, a, b, dim, c, size, block, lists), m, k, window)
            # without the last of `order`: records lie in the order of their numbers
            _part(columns, a, b, c, dim, order, used - 1, sides, aside, counts)
            stack[top, 0] = a + c
            stack[top, 1] = b
            stack[top + 1, 0] = a
            stack[top + 1, 1] = a + c
            top += 2
    starts[done] = columns.shape[1]
    return done


@outer
def _cut_listed(
    columns, nodes, k, sizes, admissible, best, ties, sample, window, costs, starts, stack, flags,
    block, lists, other, counts, prices, found, bounds, active, losses, order,
):  # fmt: skip
    """Cuts nodes into classes by sorted lists, and fills in where these start; how many classes there are.

    The lists of a node of at most `sample` rows serve all its parts; a larger node's parts are sorted anew, tied rows
    in the order that fits them.
    """
    d = losses.shape[0]
    classes = nodes.shape[0] - nodes.shape[0]
    for node in range(nodes.shape[0] - 1):
        stack[0, 0] = nodes[node]
        stack[0, 1] = nodes[node + 1]
        top = 1
        while top > 0:
            base = top - 1
            first = stack[base, 0]
            rows = stack[base, 1] - first
            exact = rows <= sample
            _weigh(columns, first, first + rows, losses, costs)
            used = _tie_order(losses, ties, order)
            _sorted_lists(columns, first, rows, rows, order, used, block, lists, other, counts)
            while top > base:
                top -= 1
                s = stack[top, 0] - first
                m = stack[top, 1] - first - s
                if m < 2 * k:
                    starts[classes] = first + s
                    classes += 1
                    continue
                dim = s - s
                for j in range(d):
                    losses[j] = span_loss(block[j, lists[j, s]], block[j, lists[j, s + m - 1]], j, costs)
                    if losses[j] > losses[dim]:
                        dim = j
                c = lower_size(m, k, sizes)
                if losses[dim] > 0.0:
                    stride = 1 if exact else max(m // (2 * sample), 2)
                    unit = k if exact else 1
                    low = max(int(m // stride * window), unit)
                    high = m // stride - low
                    rem = m % unit
                    if not admissible:
                        low = max(c // stride, 1)
                        high = low
                        rem = unit - 1
                    one = -1 if best else dim
                    dim = _cheapest_cuts(
                        block, lists, s, m // stride, stride, unit, rem, low, high, one,
                        losses, found, prices, active, bounds, costs,
                    )  # fmt: skip
                    if admissible:
                        c = int(found[dim, 1]) * stride
                        if not exact:
                            at = s + c - stride
                            below = block[dim, lists[dim, at]]
                            if below < block[dim, lists[dim, s + c]]:  # between two values, if the sample is cut there
                                while block[dim, lists[dim, at]] == below:
                                    at += 1
                                c = at - s
                            c = _allowed(c, m, k, window)
                _divide(block, lists, s, s + m, dim, c, flags, other)
                stack[top, 0] = first + s + c
                stack[top, 1] = first + s + m
                stack[top + 1, 0] = first + s
                stack[top + 1, 1] = first + s + c
                top += 2
                if not exact:
                    break
            for j in range(d + 1):
                for i in range(rows):
                    columns[j, first + i] = block[j, lists[0, i]]
    starts[classes] = columns.shape[1]
    return classes


def cut_once(columns, begin, end, attempt, k, quota, rules, block, window, costs):
    """Proposes one cut for each of these nodes, in place: rows on the low side, 0 where none is left to try.

    begin, end: (nodes,) int64. attempt: (nodes,) int32, how many cuts of the node were refused before: the
    attributes are tried from the cheapest cut to the dearest, or from the widest to the narrowest (`rules`
    as for `cut`). k: least rows on a side. quota: rows to count as one class while two of them fit.
    Nodes above `block` rows are priced on a strided sample of so many rows.
    """
    low_rows = np.zeros(len(begin), dtype=np.int64)
    room = _room(int((end - begin).max(initial=0)))
    space = _work_space(len(columns) - 1, block)
    _cut_once(columns, begin, end, attempt, k, quota, *rules, block, window, costs, low_rows, *room, *space)
    return low_rows


@outer
def _cut_once(
    columns, begin, end, attempt, k, quota, sizes, admissible, best, ties, limit, window, costs, low_rows, sides, aside,
    block, lists, other, counts, prices, found, bounds, active, losses, order,
):  # fmt: skip
    d = losses.shape[0]
    for node in range(begin.shape[0]):
        a = begin[node]
        b = end[node]
        m = b - a
        if m < 2 * k:
            continue
        dim = _weigh(columns, a, b, losses, costs)
        used = _tie_order(losses, ties, order)
        size = min(m, limit)
        _sorted_lists(columns, a, m, size, order, used, block, lists, other, counts)
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
        if losses[dim] > 0.0:
            _cheapest_cuts(
                block, lists, m - m, size, m // m, step, m % step, low, high, m - m - 1,
                losses, found, prices, active, bounds, costs,
            )  # fmt: skip
        for j in range(d):
            if not best and found[j, 0] < np.inf:
                found[j, 0] = -losses[j]
        for more in range(attempt[node] + 1):
            if more > 0:
                found[dim, 0] = np.inf
            for j in range(d):
                if j == 0 or found[j, 0] < found[dim, 0]:
                    dim = j
        if found[dim, 0] < np.inf:
            if admissible:
                c = int(found[dim, 1])
                if size < m:
                    c = _between_values(columns, a, b, dim, c, size, block, lists)
                    c = min(max(c, int(m * window), k), m - max(int(m * window), k))
        elif attempt[node] > 0:
            continue
        _part(columns, a, b, c, dim, order, used, sides, aside, counts)
        low_rows[node] = c
