"""Recursive cutting of distinct rows with counts, for the rounded partition of large tables.

rows: (d + 2, most) int32: of each distinct row the codes, its number, and how many of its records
the node has.

Cuts are chosen as in `rounded_cut`: nodes of many rows are priced on a sample of their records,
others exactly, by lists that stay sorted while they are cut to the end. A node that is cut lies
last, in the array as in the lists. Its high side takes its place, and its low side lies behind that
and is cut first. So a row that a cut falls into finds room on both sides, and the room that a side
took is free again when it has become classes.

held: (sample + DEEPEST,) int32, records of each place of `space.codes`; places: how many of these
are taken. `sorted_cut.CutSpace` says what the space is.
"""

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.rounded_cut import (
    FEWEST_PRICED,
    HIGH,
    LOW,
    SPARSE,
    most_listed,
    parting_space,
    value_at,
    work_space,
)
from shoal.search.kernels.sorted_cut import (
    ACTIVE,
    DEEPEST,
    LOSS,
    MOST_TRIED,
    PRICE,
    ROWS,
    TIES,
    Sizes,
    rules_of,
    sort_lists,
    space_of,
    span_losses,
    tie_order,
    width_rank,
)
from shoal.search.kernels.spans import (
    LEAST_SHARE,
    is_wider,
    lower_size,
    nearest_admissible,
    span_loss,
)


def cut(row_codes, records, k, rules, sample, costs):
    """Cuts rows into classes: (parts, starts).

    row_codes: (d, r) int32. records: (r,) int32, how many there are of each row.
    k, rules, sample, costs: as for `rounded_cut.cut`.
    parts: (2, p) int32, the row of each part of a class, and how many of its records it has, class
    after class. starts: (classes + 1,) int64, the first record of each class, and the end.
    """
    d, count = row_codes.shape
    rows = np.empty((d + 2, count + DEEPEST), dtype=np.int32)  # an open node may share its last row
    rows[:d, :count] = row_codes
    rows[d:, :count] = np.arange(count), records
    most = int(records.sum()) // k  # classes
    parts = np.empty((2, count + most), dtype=np.int32)
    starts = np.empty(most + 1, dtype=np.int64)
    done = np.zeros(3, dtype=np.int64)
    stack = np.empty((2 * DEEPEST, 3), dtype=np.int64)
    held = np.empty(sample + DEEPEST, dtype=np.int32)
    asked = np.array([k, *rules, sample, most_listed(k, sample)], dtype=np.int64)
    sides = parting_space(rows.shape[1])
    space = work_space(d, len(held))
    cut_rows(rows, count, asked, costs, parts, starts, done, stack, held, *sides, *space)
    return np.ascontiguousarray(parts[:, : done[0]]), starts[: done[1] + 1]


@outer
def cut_rows(
    rows,
    count,
    rules,
    costs,
    parts,
    starts,
    done,
    stack,
    held,
    sides,
    scratch,
    codes,
    counts,
    prices,
    attributes,
    order,
):
    """Cuts the first `count` rows into classes, and fills in parts and starts.

    done: (3,) int64, zeros: parts, classes and records that are done. stack: (2 * DEEPEST, 3)
    int64, nodes still to cut: where they start, their records, and in lists the places taken.
    """
    asked = rules_of(rules)
    space = space_of(codes, counts, prices, attributes, order)
    stack[0, 0] = 0
    stack[0, 1] = 0
    for r in range(count):
        stack[0, 1] += rows[-1, r]
    top = 1
    b = np.int64(count)
    while top > 0:
        top -= 1
        a = stack[top, 0]
        m = stack[top, 1]
        dim = span_losses(rows, a, b, attributes, costs)
        used = tie_order(attributes, asked.ties, order)
        is_listed = b - a <= asked.sample
        priced = m if is_listed else min(max(m // SPARSE, FEWEST_PRICED), asked.sample)
        size = _copy_rows(rows, a, b, m, priced, held, space)
        sort_lists(size, used, space)
        if is_listed:
            lists = stack[DEEPEST:]
            _cut_listed(size, m, asked, held, lists, sides, parts, starts, done, space, costs)
            b = a
            continue
        # every size of a cut of the sample is priced: it stands for shares of the node
        c = lower_size(m, asked.k, asked.sizes)
        low = max(int(priced * LEAST_SHARE), 1)
        high = priced - low
        if not asked.admissible:
            low = max(c * priced // m, 1)
            high = low
        sizes = Sizes(np.int64(1), np.int64(0), low, high)
        one = np.int64(-1) if asked.best else dim
        dim = _cheapest(np.int64(0), size, priced, sizes, one, held, space, costs)
        if asked.admissible:
            share = int(attributes[dim, ROWS])
            c = _between_values(rows, a, b, m, dim, share, priced, held, space)
            c = nearest_admissible(c, m, asked.k)
        # without the last of `order`: rows lie in the order of their numbers
        middle, b = _part(rows, a, b, c, dim, used - 1, sides, scratch, space)
        stack[top, 0] = a
        stack[top, 1] = m - c
        stack[top + 1, 0] = middle
        stack[top + 1, 1] = c
        top += 2
    starts[done[1]] = done[2]


@inner
def _copy_rows(rows, a, b, m, some, held, space):
    """Copies the rows of `some` records, spread evenly over the m of a..b; how many rows."""
    size = np.int64(0)
    taken = np.int64(0)
    before = np.int64(0)
    for r in range(a, b):
        first = taken
        before += rows[-1, r]
        taken = (before * some + m - 1) // m
        if taken > first:
            for j in range(space.codes.shape[0]):
                space.codes[j, size] = rows[j, r]
            space.lists[-1, size] = size
            held[size] = taken - first
            size += 1
    return size


@inner
def _cut_listed(size, records, asked, held, stack, sides, parts, starts, done, space, costs):
    """Cuts the rows of the sorted lists into classes."""
    attributes = space.attributes
    k = asked.k
    stack[0, 0] = 0
    stack[0, 1] = records
    stack[0, 2] = size
    top = 1
    e = np.int64(size)
    while top > 0:
        top -= 1
        s = stack[top, 0]
        m = stack[top, 1]
        places = stack[top, 2]
        if m < 2 * k or e - s == 1:
            classes = m // k
            for i in range(classes):
                starts[done[1] + i] = done[2] + i * k
            for i in range(s, e):
                p = space.lists[0, i]
                parts[0, done[0]] = space.codes[-1, p]
                parts[1, done[0]] = held[p]
                done[0] += 1
            done[1] += classes
            done[2] += m
            e = s
            continue
        dim = np.int64(0)
        for j in range(attributes.shape[0]):  # the ends of a sorted list are its bounds
            lo = space.codes[j, space.lists[j, s]]
            hi = space.codes[j, space.lists[j, e - 1]]
            attributes[j, LOSS] = span_loss(lo, hi, j, costs)
            if is_wider(attributes[j, LOSS], j, attributes[dim, LOSS], dim, costs):
                dim = j
        c = lower_size(m, k, asked.sizes)
        low = max(int(m * LEAST_SHARE), k)
        sizes = Sizes(k, m % k, low, m - low)
        if not asked.admissible:
            sizes = Sizes(k, k - 1, c, c)
        elif m > asked.limit:  # between rows, and then moved: on most tables it loses less
            sizes = Sizes(np.int64(1), np.int64(0), low, m - low)
        one = np.int64(-1) if asked.best else dim
        dim = _cheapest(s, e, m, sizes, one, held, space, costs)
        if asked.admissible:
            c = nearest_admissible(int(attributes[dim, ROWS]), m, k)
        stack[top, 0] = s
        stack[top, 1] = m - c
        stack[top, 2] = places
        middle, e, places = _divide(s, e, dim, c, places, held, sides, space)
        stack[top + 1, 0] = middle
        stack[top + 1, 1] = c
        stack[top + 1, 2] = places
        top += 2


@inner
def _cheapest(s, e, m, sizes, one, held, space, costs):
    """Cheapest admissible cut of the rows s..e of the lists on each attribute, as
    `sorted_cut.cheapest_cuts`; returns the attribute of the cheapest.
    """
    attributes = space.attributes
    active = np.int64(0)
    cheapest = np.int64(0)
    for j in range(attributes.shape[0]):
        if space.codes[j, space.lists[j, s]] < space.codes[j, space.lists[j, e - 1]]:
            space.order[ACTIVE, active] = j
            active += 1
    for j in range(attributes.shape[0]):
        attributes[j, PRICE] = np.inf
        attributes[j, ROWS] = sizes.low
        if attributes[j, LOSS] > 0.0 and (
            j == one or (one < 0 and width_rank(j, attributes, costs) < MOST_TRIED)
        ):
            _price(j, s, e, m, sizes, active, held, space, costs)
        if attributes[j, PRICE] < attributes[cheapest, PRICE]:
            cheapest = j
    return cheapest


@inner
def _price(j, s, e, m, sizes, active, held, space, costs):
    """The cheapest cut on attribute j: its price, and the records on its low side.

    Between two rows, or within one: there the price is linear in the records on the low side, so
    the least and the most are tried.
    """
    for i in range(e - 1, s - 1, -1):  # of the rows from i on
        space.prices[i] = _loss_with(i, j, i == e - 1, active, space, costs)
    before = np.int64(0)
    for i in range(s, e):
        loss = _loss_with(i, j, i == s, active, space, costs)
        after = before + held[space.lists[j, i]]
        if sizes.unit > 1:
            c = max(before + 1, sizes.low)
            over = c % sizes.unit
            if over > sizes.rem:
                c += sizes.unit - over
            if c < after:
                _try_cut(j, c, m, loss, space.prices[i], sizes, space)
            c = min(after - 1, sizes.high)
            c -= max(c % sizes.unit - sizes.rem, 0)
            if c > before:
                _try_cut(j, c, m, loss, space.prices[i], sizes, space)
        if i + 1 < e:
            _try_cut(j, after, m, loss, space.prices[i + 1], sizes, space)
        before = after


@inner
def _try_cut(j, c, m, low, high, sizes, space):
    """Keeps a cut that is admissible and the cheapest so far. low, high: losses of its sides."""
    price = low * c + high * (m - c)
    if (
        price < space.attributes[j, PRICE]
        and sizes.low <= c <= sizes.high
        and c % sizes.unit <= sizes.rem
    ):
        space.attributes[j, PRICE] = price
        space.attributes[j, ROWS] = c


@inner
def _loss_with(i, j, is_first, active, space, costs):
    """The loss of some rows when the i-th one of list j joins them, or begins."""
    bounds = space.bounds
    p = space.lists[j, i]
    loss = 0.0
    for t in range(active):
        a = space.order[ACTIVE, t]
        v = space.codes[a, p]
        bounds[0, t] = v if is_first else min(v, bounds[0, t])
        bounds[1, t] = v if is_first else max(v, bounds[1, t])
        loss += span_loss(bounds[0, t], bounds[1, t], a, costs)
    return loss


@inner
def _divide(s, e, dim, c, places, held, sides, space):
    """Moves the first c records of list `dim` behind the others, in every list, which stay sorted.

    Returns where they begin and end, and how many places of `space.codes` are taken.
    """
    lists = space.lists
    other = space.other
    need = c
    split = np.int64(-1)
    for i in range(s, e):
        p = lists[dim, i]
        sides[p] = LOW if held[p] <= need else HIGH
        if 0 < need < held[p]:
            split = p
            held[p] -= need
            held[places] = need
            for j in range(space.codes.shape[0]):
                space.codes[j, places] = space.codes[j, p]
            need = np.int64(0)
        need -= held[p] * (sides[p] == LOW)
    low = np.int64(0)
    high = np.int64(0)
    for j in range(lists.shape[0] - 1):
        high = s
        low = np.int64(0)
        for i in range(s, e):
            p = lists[j, i]
            if p == split:
                other[low] = places
                low += 1
            if sides[p] == HIGH:
                lists[j, high] = p
                high += 1
            else:
                other[low] = p
                low += 1
        for i in range(low):
            lists[j, high + i] = other[i]
    return high, high + low, places + (split >= 0)


@inner
def _between_values(rows, a, b, m, dim, share, priced, held, space):
    """Records on a sampled cut's low side: its share, or between values all up to the lower."""
    i = np.int64(0)
    before = held[space.lists[dim, 0]]
    while before < share:
        i += 1
        before += held[space.lists[dim, i]]
    below = space.codes[dim, space.lists[dim, i]]
    if before > share or below == space.codes[dim, space.lists[dim, i + 1]]:
        return share * m // priced
    c = np.int64(0)
    for r in range(a, b):
        if rows[dim, r] <= below:
            c += rows[-1, r]
    return c


@inner
def _part(rows, a, b, rank, dim, used, sides, scratch, space):
    """Moves rows a..b so that the `rank` lowest records come last, in the order of attribute `dim`,
    of the first `used` columns that decide ties, and of where they lie; both sides keep that order.
    A row with records on both sides is last of the low ones. Returns where these begin and end.
    """
    m = b - a
    order = space.order[TIES]
    records = rows[-1, a:b]
    need = rank
    tied = m  # rows around the rank that no column has told apart; their places in `scratch`
    for i in range(m):
        scratch[i] = i
    for t in range(-1, used):
        j = dim if t < 0 else order[t]
        if (t >= 0 and j == dim) or need == 0:
            continue
        run = rows[j, a:b]
        value, below = value_at(run, records, need, scratch, tied, space.counts)
        need -= below
        still = 0
        for i in range(tied):
            place = scratch[i]
            sides[place] = HIGH if run[place] > value else LOW
            scratch[still] = place
            still += run[place] == value
        tied = still
    split = np.int64(-1)
    taken = np.int64(0)
    for i in range(tied):
        place = scratch[i]
        if records[place] <= need:
            need -= records[place]
            continue
        sides[place] = HIGH
        if need > 0:
            split = place
            taken = need
            records[place] -= need
            need = np.int64(0)
    low = 0
    high = 0
    for j in range(rows.shape[0]):
        run = rows[j, a:b]
        shared = run[split]
        low = 0
        high = 0
        # both places are written and one counts: nothing for the processor to guess
        for i in range(m):
            v = run[i]
            run[high] = v
            scratch[low] = v
            high += sides[i]
            low += 1 - sides[i]
        if split >= 0:
            scratch[low] = shared
            low += 1
        for i in range(low):
            rows[j, a + high + i] = scratch[i]
    if split >= 0:
        rows[-1, a + high + low - 1] = taken
    return a + high, a + high + low
