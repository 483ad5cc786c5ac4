"""Recursive cutting of records in place, for the rounded partition function: what Python calls, and
large nodes.

Large nodes are cut where they lie (`cut_large`), smaller ones by sorted lists (`sorted_cut`),
which price every cut on every attribute exactly (`most_listed`).

columns: (d + 1, n) int32, the codes of one record per column and, in the last row, the record's
number. costs: as in `spans`.

The rules are as in `sorted_cut`. A large node's low records are found by counting values,
and every column is parted in one pass that keeps the order of the records on both sides. Where to
cut comes from the rule of sizes, or from a strided sample whose cuts are priced by sorted lists.

sides: (rows of the largest node,) int8, LOW or HIGH. scratch: (rows of the largest node,) int32,
places of tied records, then a column's values on the high side. `sorted_cut.CutSpace` says what the
other arrays are.
"""

import numpy as np

from shoal.data.numba_kernels import inner, outer, uncompiled_up_to
from shoal.search.kernels.sorted_cut import (
    DEEPEST,
    LOSS,
    PRICE,
    ROWS,
    TIES,
    TIES_BY_ROW,
    TIES_LEXICOGRAPHIC,
    RowRun,
    Sizes,
    cheapest_cuts,
    cut_listed,
    rules_of,
    sorted_lists,
    space_of,
    span_losses,
    tie_order,
    width_rank,
)
from shoal.search.kernels.spans import (
    CROSS,
    LEAST_SHARE,
    PROPORTIONAL,
    SAME,
    lower_size,
    nearest_admissible,
)

__all__ = [
    "CROSS",
    "PROPORTIONAL",
    "SAME",
    "TIES_BY_ROW",
    "TIES_LEXICOGRAPHIC",
    "cut",
    "cut_once",
    "halve",
    "is_listed",
    "most_listed",
    "parting_space",
    "work_space",
]

# nodes up to here keep sorted lists if that is all there is to cut: one kernel less to compile
LISTED = 50_000
FEW = 12  # classes in a node of a larger table that is left to sorted lists,
FEWEST = 128  # and records, if that is more


def most_listed(k, sample):
    """The size of a node up to which it is not cut where it lies; 0 where all are."""
    # the last few cuts are priced exactly: more of them take longer and, on most tables, lose more
    return max(min(sample, max(FEW * k, FEWEST)), 2 * k - 1) if sample else 0


def is_listed(records, k, sample):
    """Whether a table of this size is cut by sorted lists alone."""
    return sample > 0 and records <= max(most_listed(k, sample), LISTED)


def cut(columns, nodes, k, rules, sample, costs, listed=None):
    """Cuts nodes into classes, in place; returns where each class starts, and the end.

    nodes: (nodes + 1,) int64, where each starts, and where the last one ends.
    rules: (sizes, admissible, best, ties): SAME, CROSS or PROPORTIONAL; whether any admissible cut
    may be chosen, the cheapest, or only the one of `sizes`; whether every attribute is tried, or
    only the widest; TIES_BY_ROW or TIES_LEXICOGRAPHIC.
    sample: the most rows that a node is priced on; 0: all. Nodes left to sorted lists: on all
    priced, widest and `sizes` decide.
    listed: whether no node is cut where it lies; by default as the largest of them asks. Other
    classes come out, so who cuts a part of a table says what the whole one asks (`is_listed`).
    """
    d = len(columns) - 1
    starts = np.empty(int(nodes[-1] - nodes[0]) // k + len(nodes), dtype=np.int64)
    largest = int(np.diff(nodes).max())
    limit = most_listed(k, sample)
    asked = np.array([k, *rules, sample, limit], dtype=np.int64)
    if not (is_listed(largest, k, sample) if listed is None else listed):
        space = work_space(d, sample)
        count = cut_large(columns, nodes, asked, costs, starts, *parting_space(largest), *space)
        nodes = starts[: count + 1].copy()
        largest = limit
    if limit == 0:
        return nodes
    is_high = np.empty(largest, dtype=np.bool_)
    space = work_space(d, largest)
    stack = np.empty((DEEPEST, 2), dtype=np.int64)
    count = cut_listed(columns, nodes, asked, costs, starts, stack, is_high, *space)
    return starts[: count + 1]


def halve(columns, begin, end, k, rules, sample, costs, room=None):
    """Cuts the node of the records begin..end once, where it lies; returns where its high side
    begins.

    room: what `parting_space` gives for a node of that size, where it lies elsewhere.
    """
    size = end - begin
    starts = np.empty(3, dtype=np.int64)
    asked = np.array([k, *rules, sample, size - 1], dtype=np.int64)
    node, sides = np.array([begin, end]), room or parting_space(size)
    space = work_space(len(columns) - 1, sample)
    cut_large(columns, node, asked, costs, starts, *sides, *space)
    return int(starts[1])


def cut_once(columns, begin, end, attempt, k, quota, rules, sample, costs):
    """Proposes one cut for each of these nodes, in place: rows on the low side, 0 where none is
    left to try.

    begin, end: (nodes,) int64. attempt: (nodes,) int32, how many cuts of the node were refused
    before: the attributes are tried from the cheapest cut to the dearest, or from the widest to the
    narrowest (`rules` as for `cut`). k: least rows on a side. quota: rows to count as one class
    while two of them fit. Nodes above `sample` rows are priced on a strided sample of that size.
    """
    low_rows = np.zeros(len(begin), dtype=np.int64)
    nodes = np.column_stack([begin, end, attempt]).astype(np.int64)
    asked = np.array([k, *rules, sample, quota], dtype=np.int64)
    room = parting_space(int((end - begin).max(initial=0)))
    space = work_space(len(columns) - 1, sample)
    propose_cuts(columns, nodes, asked, costs, low_rows, *room, *space)
    return low_rows


def parting_space(size):
    """For parting nodes of up to `size` records: each record's side, a column's high values."""
    return np.empty(size, dtype=np.int8), np.empty(size, dtype=np.int32)


def work_space(d, size):
    """What nodes of up to `size` rows of d attributes need; see `sorted_cut.CutSpace`."""
    return (
        # codes, lists, one more list, bounds
        np.empty((4, d + 1, max(size, d)), dtype=np.int32),
        np.empty(257, dtype=np.int64),  # counts
        np.empty(size + 1),  # prices
        np.empty((d, 3)),  # attributes
        np.empty((2, d + 1), dtype=np.int64),  # order
    )


LOW, HIGH = range(2)
# a large node's cut is priced on one record in SPARSE, and on at least FEWEST of them
SPARSE = 8
FEWEST_PRICED = 64


@outer
def cut_large(
    columns, nodes, rules, costs, starts, sides, scratch, codes, counts, prices, attributes, order
):
    """Cuts nodes until none has more than `limit` rows and can still be cut; how many there are.

    nodes: (nodes + 1,) int64, where each starts, and the last one's end; starts: the same, filled
    in.
    """
    asked = rules_of(rules)
    space = space_of(codes, counts, prices, attributes, order)
    stack = np.empty((DEEPEST, 2), np.int64)  # nodes still to cut: where they start and end
    done = np.int64(0)
    for node in range(nodes.shape[0] - 1):
        stack[0, 0] = nodes[node]
        stack[0, 1] = nodes[node + 1]
        top = 1
        while top > 0:
            top -= 1
            a = stack[top, 0]
            b = stack[top, 1]
            m = b - a
            if m < 2 * asked.k or m <= asked.limit:
                starts[done] = a
                done += 1
                continue
            dim = span_losses(columns, a, b, attributes, costs)
            used = tie_order(attributes, asked.ties, order)
            c = lower_size(m, asked.k, asked.sizes)
            if asked.sample > 0 and attributes[dim, LOSS] > 0.0:
                # price the cuts of a sample, every size of it: it stands for shares of the node
                size = min(max(m // SPARSE, FEWEST_PRICED), asked.sample)
                sorted_lists(columns, a, m, size, used, space)
                low = max(int(size * LEAST_SHARE), 1)
                sizes = Sizes(np.int64(1), np.int64(0), low, size - low)
                if not asked.admissible:
                    low = max(c * size // m, 1)
                    sizes = Sizes(np.int64(1), np.int64(0), low, low)
                one = -1 if asked.best else dim
                whole = RowRun(np.int64(0), size, np.int64(1))
                dim = cheapest_cuts(whole, sizes, one, space, costs)
                if asked.admissible:
                    c = int(attributes[dim, ROWS])
                    c = _between_values(columns, a, b, dim, c, size, space)
                    c = nearest_admissible(c, m, asked.k)
            # without the last of `order`: records lie in the order of their numbers
            _part(columns, a, b, c, dim, used - 1, sides, scratch, space)
            stack[top, 0] = a + c
            stack[top, 1] = b
            stack[top + 1, 0] = a
            stack[top + 1, 1] = a + c
            top += 2
    starts[done] = nodes[-1]
    return done


@uncompiled_up_to(lambda columns, *_: 8 * columns.size)
@outer
def propose_cuts(
    columns, nodes, rules, costs, low_rows, sides, scratch, codes, counts, prices, attributes, order
):
    """One cut for each node, into low_rows: rows on its low side, 0 where none is left to try.

    nodes: (nodes, 3) int64: where each starts and ends, and how many of its cuts were refused
        before. The rules' `limit` is the quota: rows that count as one class while two of them fit.
    """
    asked = rules_of(rules)
    space = space_of(codes, counts, prices, attributes, order)
    k = asked.k
    quota = asked.limit
    d = attributes.shape[0]
    for node in range(nodes.shape[0]):
        a = nodes[node, 0]
        b = nodes[node, 1]
        attempt = nodes[node, 2]
        m = b - a
        if m < 2 * k:
            continue
        dim = span_losses(columns, a, b, attributes, costs)
        used = tie_order(attributes, asked.ties, order)
        size = min(m, asked.sample)
        sorted_lists(columns, a, m, size, used, space)
        unit = quota if m >= 2 * quota else k
        c = lower_size(m, unit, asked.sizes)
        # a node that fits is priced whole, with admissible sizes; of a sample any size will do
        low = max(int(size * LEAST_SHARE), k if size == m else 1)
        high = size - low
        if not asked.admissible:
            low = max(c * size // m, 1)
            high = low
        step = unit if size == m and asked.admissible else np.int64(1)
        for j in range(d):
            attributes[j, PRICE] = np.inf
        if attributes[dim, LOSS] > 0.0:
            whole = RowRun(np.int64(0), size, np.int64(1))
            cheapest_cuts(whole, Sizes(step, m % step, low, high), np.int64(-1), space, costs)
        for j in range(d):
            if not asked.best and attributes[j, PRICE] < np.inf:
                attributes[j, PRICE] = width_rank(j, attributes, costs)
        # pass over as many attributes as were refused, the cheapest first
        for more in range(attempt + 1):
            if more > 0:
                attributes[dim, PRICE] = np.inf
            for j in range(d):
                if j == 0 or attributes[j, PRICE] < attributes[dim, PRICE]:
                    dim = j
        if attributes[dim, PRICE] < np.inf:
            if asked.admissible:
                c = int(attributes[dim, ROWS])
                if size < m:
                    c = _between_values(columns, a, b, dim, c, size, space)
                    least = max(int(m * LEAST_SHARE), k)
                    c = min(max(c, least), m - least)
        elif attempt > 0:
            continue
        _part(columns, a, b, c, dim, used, sides, scratch, space)
        low_rows[node] = c


@inner
def _between_values(columns, a, b, dim, share, sample, space):
    """Rows on a sampled cut's low side: its share, or between values all up to the lower."""
    below = space.codes[dim, space.lists[dim, share - 1]]
    c = share * (b - a) // sample
    if below < space.codes[dim, space.lists[dim, share]]:
        c = np.int64(0)
        run = columns[dim, a:b]
        for i in range(run.shape[0]):
            c += run[i] <= below
    return c


@inner
def _part(columns, a, b, rank, dim, used, sides, scratch, space):
    """Moves records so that the `rank` lowest of a..b come first, in the order of attribute `dim`,
    of the first `used` columns that decide ties, and of where they lie; both sides keep that last
    order.
    """
    m = b - a
    order = space.order[TIES]
    need = rank
    tied = m  # records around the rank that no column has told apart; their places in `scratch`
    for t in range(-1, used):
        j = dim if t < 0 else order[t]
        if (t >= 0 and j == dim) or need == 0:
            continue
        run = columns[j, a:b]
        value, below = value_at(run, scratch[:0], need, scratch, tied, space.counts)
        need -= below
        still = 0
        if t < 0:
            for i in range(run.shape[0]):
                sides[i] = run[i] > value
                scratch[still] = i  # written for every record, kept for tied ones
                still += run[i] == value
        else:
            for i in range(tied):
                place = scratch[i]
                sides[place] = run[place] > value
                scratch[still] = place
                still += run[place] == value
        tied = still
    for i in range(need, tied):
        sides[scratch[i]] = HIGH
    one = np.uint64(1)  # unsigned places are not checked for counting from the end
    for j in range(columns.shape[0]):
        run = columns[j, a:b]
        low = np.uint64(0)
        high = np.uint64(0)
        # both places are written and one counts: nothing for the processor to guess
        for i in range(run.shape[0]):
            v = run[i]
            run[low] = v
            scratch[high] = v
            side = np.uint64(sides[i])
            low += one - side
            high += side
        for i in range(high):
            run[low + i] = scratch[i]


@inner
def value_at(run, held, rank, places, some, counts):
    """The value that the record of this rank has, and how many have less, among the first `some` of
    these places of a run; where that is all of it, among all records.

    held: how many records each place of the run stands for; empty where it is one.
    Counts the values in 256 intervals, then in 256 parts of the interval that holds the rank, ...
    """
    listed = some < run.shape[0]
    several = held.shape[0] > 0
    first = np.int64(run[places[0] if listed else 0])
    last = first
    for i in range(some):
        v = run[places[i] if listed else i]
        first = min(first, v)
        last = max(last, v)
    below = np.int64(0)
    while True:
        shift = np.int64(0)
        while (last - first) >> shift > 255:
            shift += 8
        for v in range(257):
            counts[v] = 0
        for i in range(some):
            place = places[i] if listed else i
            v = run[place]
            if first <= v <= last:
                counts[(v - first) >> shift] += held[place] if several else 1
        at = np.int64(0)
        while below + counts[at] <= rank:
            below += counts[at]
            at += 1
        first += at << shift
        if shift == 0:
            return first, below
        last = min(last, first + (1 << shift) - 1)
