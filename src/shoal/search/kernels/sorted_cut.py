"""Recursive cutting by sorted lists, for the rounded partition: small nodes, priced exactly.

columns: (d + 1, n) int32, the codes of one record per column and, in the last row, the record's
    number: attribute after attribute, so that spans and counts are taken over whole runs of memory.
    A node is a run of records, a..b.
costs: as in `spans`.

A node's records are copied, and for each attribute a list holds their places in rising order. Every
cut on every attribute is then priced in linear time, and the lists stay sorted when it is made, so
those of a node serve all its parts. `Space` says what the other arrays are.

Compile time is half of what a first run takes, and most of it goes into helpers, allocations and
wrappers. So Python allocates the work space, as few arrays as hold it, and `space_of` names them.
"""

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inner, outer, uncompiled_up_to
from shoal.search.kernels.spans import (
    LEAST_SHARE,
    is_wider,
    lower_size,
    nearest_admissible,
    span_loss,
)

TIES_BY_ROW = 0
TIES_LEXICOGRAPHIC = 1

# columns of Space.attributes, and rows of Space.order
LOSS, PRICE, ROWS = range(3)
TIES, ACTIVE = range(2)

MOST_TRIED = 64
"""Attributes on which a node's cuts are priced: on all, the time would grow by their square."""
DEEPEST = 4096  # far above any depth that cuts of at least a fiftieth can reach


class Rules(NamedTuple):
    """How nodes are cut; `rules_of` reads them from the numbers that Python passes."""

    k: int  # least rows of a class
    sizes: int  # SAME, CROSS or PROPORTIONAL
    admissible: bool  # any admissible cut may be chosen, the cheapest; else only the one of `sizes`
    best: bool  # every attribute is tried; else only the widest
    ties: int  # TIES_BY_ROW or TIES_LEXICOGRAPHIC
    sample: int  # rows on which a larger node is priced; 0: never priced, widest and `sizes` decide
    limit: int  # rows up to which a node is left to sorted lists, or rows that count as one class


class CutSpace(NamedTuple):
    """Work space for nodes of up to `size` rows of d attributes."""

    codes: np.ndarray  # (d + 1, size) int32, the node's columns
    lists: np.ndarray  # (d + 1, size) int32, places in `codes` by attribute; last: as ties decide
    other: np.ndarray  # (at least size,) int32, a list on its way
    counts: np.ndarray  # (257,) int64
    prices: np.ndarray  # (size + 1,) float64, rows times loss after a cut of each number of rows
    attributes: np.ndarray  # (d, 3) float64, by attribute: loss, cheapest price, rows of that cut
    order: np.ndarray  # (2, d + 1) int64: columns that decide ties; attributes that have a loss
    bounds: np.ndarray  # (2, at least d) int32, least and greatest code on each active attribute


class RowRun(NamedTuple):
    """Some rows of a list: `rows` of them from place `start` on, each `stride` after the last."""

    start: int
    rows: int
    stride: int


class Sizes(NamedTuple):
    """Cuts of low..high rows that leave no more than `rem` rows over a multiple of `unit`."""

    unit: int
    rem: int
    low: int
    high: int


@inner
def rules_of(numbers):
    """numbers: (7,) int64, the fields of `Rules`."""
    return Rules(
        numbers[0], numbers[1], numbers[2] > 0, numbers[3] > 0, numbers[4], numbers[5], numbers[6]
    )


@inner
def space_of(codes, counts, prices, attributes, order):
    """codes: (4, d + 1, at least d) int32: the codes, the lists, room for one more, and bounds."""
    bounds = codes[3][:2]
    return CutSpace(codes[0], codes[1], codes[2, 0], counts, prices, attributes, order, bounds)


@uncompiled_up_to(lambda columns, *_: columns.size * 4 * columns.shape[1].bit_length())
@outer
def cut_listed(
    columns, nodes, rules, costs, starts, stack, is_high, codes, counts, prices, attributes, order
):
    """Cuts nodes into classes by sorted lists, and fills in where these start; how many classes
    there are.

    nodes: (nodes + 1,) int64, where each starts, and the last one's end. rules: (7,) int64, see
    `Rules`.
    stack: (DEEPEST, 2) int64, room for the nodes still to cut: where they start and end. is_high:
    (rows of the largest node,) bool, room for the side of each row.
    The lists of a node of at most `sample` rows serve all its parts; a larger node's parts are
    sorted anew, tied rows in the order that fits them.
    """
    asked = rules_of(rules)
    space = space_of(codes, counts, prices, attributes, order)
    k = asked.k
    sample = asked.sample
    classes = np.int64(0)
    for node in range(nodes.shape[0] - 1):
        stack[0, 0] = nodes[node]
        stack[0, 1] = nodes[node + 1]
        top = 1
        while top > 0:
            base = top - 1
            first = stack[base, 0]
            rows = stack[base, 1] - first
            exact = rows <= sample
            span_losses(columns, first, first + rows, attributes, costs)
            used = tie_order(attributes, asked.ties, order)
            sorted_lists(columns, first, rows, rows, used, space)
            # all parts of this node; they lie in its lists as they do in the columns
            while top > base:
                top -= 1
                s = stack[top, 0] - first
                m = stack[top, 1] - first - s
                if m < 2 * k:
                    starts[classes] = first + s
                    classes += 1
                    continue
                dim = np.int64(0)
                for j in range(attributes.shape[0]):  # the ends of a sorted list are its bounds
                    lo = space.codes[j, space.lists[j, s]]
                    hi = space.codes[j, space.lists[j, s + m - 1]]
                    attributes[j, LOSS] = span_loss(lo, hi, j, costs)
                    if is_wider(attributes[j, LOSS], j, attributes[dim, LOSS], dim, costs):
                        dim = j
                c = lower_size(m, k, asked.sizes)
                if attributes[dim, LOSS] > 0.0:
                    # price the cuts of all rows, or of a sample of a node too large for that
                    stride = 1 if exact else max(m // (2 * sample), 2)
                    unit = k if exact else 1
                    priced = m // stride
                    low = max(int(priced * LEAST_SHARE), unit)
                    sizes = Sizes(unit, m % unit, low, priced - low)
                    if not asked.admissible:
                        low = max(c // stride, 1)
                        sizes = Sizes(unit, unit - 1, low, low)
                    one = -1 if asked.best else dim
                    dim = cheapest_cuts(RowRun(s, priced, stride), sizes, one, space, costs)
                    if asked.admissible:
                        c = int(attributes[dim, ROWS]) * stride
                        if not exact:
                            at = s + c - stride
                            below = space.codes[dim, space.lists[dim, at]]
                            # between two values, if the sample is cut there: c grows by the other
                            # rows of the lower one
                            if below < space.codes[dim, space.lists[dim, s + c]]:
                                while space.codes[dim, space.lists[dim, at]] == below:
                                    at += 1
                                c = at - s
                            c = nearest_admissible(c, m, k)
                _divide(s, s + m, dim, c, is_high, space)
                # the low part is the next to be cut, so classes come out from low to high
                stack[top, 0] = first + s + c
                stack[top, 1] = first + s + m
                stack[top + 1, 0] = first + s
                stack[top + 1, 1] = first + s + c
                top += 2
                if not exact:
                    break
            # back from the lists: the records of a class side by side
            for j in range(columns.shape[0]):
                for i in range(rows):
                    columns[j, first + i] = space.codes[j, space.lists[0, i]]
    starts[classes] = nodes[-1]
    return classes


@inner
def span_losses(columns, a, b, attributes, costs):
    """Fills in the loss of the records a..b on each attribute; returns the widest attribute."""
    widest = np.int64(0)
    for j in range(attributes.shape[0]):
        run = columns[j, a:b]
        lo = run[0]
        hi = lo
        for i in range(run.shape[0]):
            lo = min(lo, run[i])
            hi = max(hi, run[i])
        attributes[j, LOSS] = span_loss(lo, hi, j, costs)
        if is_wider(attributes[j, LOSS], j, attributes[widest, LOSS], widest, costs):
            widest = j
    return widest


@inner
def tie_order(attributes, ties, order):
    """Columns that decide ties: the widest attributes, then the record number; how many."""
    d = attributes.shape[0]
    used = 0
    if ties == TIES_LEXICOGRAPHIC:
        for j in range(d):  # insertion sort: d is small
            t = j
            while t > 0 and attributes[order[TIES, t - 1], LOSS] < attributes[j, LOSS]:
                order[TIES, t] = order[TIES, t - 1]
                t -= 1
            order[TIES, t] = j
        used = d
    order[TIES, used] = d
    return used + 1


@inner
def sorted_lists(columns, a, reach, m, used, space):
    """Copies m records spread evenly over the `reach` records from a, and sorts them by each
    attribute.

    used: how many columns decide between tied rows.
    """
    codes = space.codes
    d = codes.shape[0] - 1
    for i in range(m):
        r = a + i * reach // m
        for j in range(d + 1):
            codes[j, i] = columns[j, r]
        space.lists[d, i] = i
    sort_lists(m, used, space)


@inner
def sort_lists(m, used, space):
    """Sorts the first m records of `space.codes` by each attribute; `space.lists[d]` numbers them.

    used: how many columns decide between tied rows.
    """
    d = space.codes.shape[0] - 1
    # every sort is stable, so the column that decides least comes first: after all that decide ties
    # the last list is in that order, and each attribute's list begins with it
    for t in range(used + d):
        j = space.order[TIES, used - 1 - t] if t < used else t - used
        if j < d or used == 1:
            _sort_list(m, j, d if t < used else j, space)


@inner
def _sort_list(m, j, to, space):
    """Sorts the last list by attribute j, stable, a byte at a time, into list `to`."""
    codes = space.codes
    lists = space.lists
    counts = space.counts
    other = space.other
    last = lists.shape[0] - 1
    lo = codes[j, lists[last, 0]]
    hi = lo
    for i in range(m):
        p = lists[last, i]
        lists[to, i] = p
        v = codes[j, p]
        if v < lo:
            lo = v
        elif v > hi:
            hi = v
    span = hi - lo
    shift = 0
    while span >> shift > 0:
        # counts[v + 1]: rows with byte v; then counts[v]: where the next of them goes
        for v in range(257):
            counts[v] = 0
        for i in range(m):
            counts[(((codes[j, lists[to, i]] - lo) >> shift) & 255) + 1] += 1
        for v in range(256):
            counts[v + 1] += counts[v]
        for i in range(m):
            p = lists[to, i]
            v = ((codes[j, p] - lo) >> shift) & 255
            other[counts[v]] = p
            counts[v] += 1
        for i in range(m):
            lists[to, i] = other[i]
        shift += 8


@inner
def cheapest_cuts(run, sizes, one, space, costs):
    """Cheapest admissible cut of a run on each attribute, its price and rows into
    `space.attributes`.

    one: the only attribute to try, or -1 for the widest, up to `MOST_TRIED`. An attribute without
    loss is not tried: its price is inf. Returns the attribute of the cheapest.
    """
    codes = space.codes
    lists = space.lists
    attributes = space.attributes
    prices = space.prices
    d = attributes.shape[0]
    end = run.start + (run.rows - 1) * run.stride
    active = np.int64(0)
    cheapest = np.int64(0)
    for j in range(d):
        if codes[j, lists[j, run.start]] < codes[j, lists[j, end]]:
            space.order[ACTIVE, active] = j
            active += 1
    for j in range(d):
        attributes[j, PRICE] = np.inf
        attributes[j, ROWS] = sizes.low
        if attributes[j, LOSS] > 0.0 and (
            j == one or (one < 0 and width_rank(j, attributes, costs) < MOST_TRIED)
        ):
            for way in range(2):  # the low sides, then what the high sides add
                _prices(j, run, sizes, way > 0, active, space, costs)
            for c in range(sizes.low, sizes.high + 1):
                if c % sizes.unit <= sizes.rem and prices[c] < attributes[j, PRICE]:
                    attributes[j, PRICE] = prices[c]
                    attributes[j, ROWS] = c
        if attributes[j, PRICE] < attributes[cheapest, PRICE]:
            cheapest = j
    return cheapest


@inner
def width_rank(j, attributes, costs):
    """How many attributes come before attribute j, the widest first, the first of equals."""
    before = 0
    for i in range(attributes.shape[0]):
        if i < j:
            before += not is_wider(attributes[j, LOSS], j, attributes[i, LOSS], i, costs)
        else:
            before += is_wider(attributes[i, LOSS], i, attributes[j, LOSS], j, costs)
    return before


@inner
def _prices(j, run, sizes, backward, active, space, costs):
    """Rows times loss of the first c rows in list j, for every admissible c, into prices[c].

    backward: of the other rows instead, from the last, added to what prices[c] holds. active: how
    many attributes have a loss. sizes.low and sizes.high are 1..rows-1.
    """
    codes = space.codes
    lists = space.lists
    prices = space.prices
    bounds = space.bounds
    rem = sizes.rem
    low = sizes.low
    high = sizes.high
    attributes = space.order[ACTIVE]
    m = run.rows
    k = sizes.unit
    step = run.stride
    at = run.start
    over = 0  # c modulo k, kept up to date without dividing
    stop = high
    if backward:
        step = -step
        at = run.start + (m - 1) * run.stride
        over = m % k
        stop = m - low
    r = lists[j, at]
    for t in range(active):
        v = codes[attributes[t], r]
        bounds[0, t] = v
        bounds[1, t] = v
    loss = 0.0
    changed = False
    for i in range(1, stop + 1):
        # the i-th row joins the side: its box grows
        r = lists[j, at]
        at += step
        for t in range(active):
            v = codes[attributes[t], r]
            if v < bounds[0, t]:
                bounds[0, t] = v
                changed = True
            elif v > bounds[1, t]:
                bounds[1, t] = v
                changed = True
        c = i
        over += 1
        if backward:
            c = m - i
            over -= 2
        if over == k:
            over = 0
        elif over < 0:
            over = k - 1
        # the loss is only asked for where a cut is admissible, and only when the box has grown
        if over <= rem and low <= c <= high:
            if changed:
                loss = 0.0
                for t in range(active):
                    loss += span_loss(bounds[0, t], bounds[1, t], attributes[t], costs)
                changed = False
            if backward:
                prices[c] += loss * i
            else:
                prices[c] = loss * i


@inner
def _divide(s, e, dim, c, is_high, space):
    """Keeps every list sorted while the first c rows of list `dim` go low."""
    lists = space.lists
    other = space.other
    for i in range(s, e):
        is_high[lists[dim, i]] = i - s >= c
    for j in range(lists.shape[0] - 1):
        if j == dim:
            continue
        left = s
        right = 0
        for i in range(s, e):
            p = lists[j, i]
            if is_high[p]:
                other[right] = p
                right += 1
            else:
                lists[j, left] = p
                left += 1
        for i in range(right):
            lists[j, left + i] = other[i]
