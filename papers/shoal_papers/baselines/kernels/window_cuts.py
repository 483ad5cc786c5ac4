"""The leaf of a record in a tree of cuts over the records of a stream that wait.

What Python passes, and how the functions below name its parts. Slots hold records; nodes are
numbered, the root is node 0.

codes: (d, slots) int32, positions on linear attributes in units of loss, and leaves of trees.
subject_ids: (slots,) int64, the person of each. held: (slots,) bool, slots with a record to divide.
trees: (nodes + d, 4) int32, as in `candidates`.
cuts: (4, n) int32, for each node the attribute of its cut, -1 for leaves, the greatest code on its
low side, and the nodes of both sides. free: (n + 1,) int32, how many nodes are free, then these.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.distinct_rows import bits_for, place_of

PARENT, FIRST, LAST, PRICE = range(4)  # columns of `trees`
ATTRIBUTE, BOUND, LOW, HIGH = range(4)  # rows of `cuts`
BEGIN, MIDDLE, END, RULE = range(4)  # columns of `path`


class Division(NamedTuple):
    """The records, and what has to stay on both sides of a cut: k people.

    rows: (slots,) int32, the slots of the records; those of a node stand together.
    by_gap: whether a cut is in the widest gap near the median, or at the median.
    ordered: (slots,) int32 and people: (2**m,) int64, a hash table: work space.
    """

    codes: np.ndarray
    subject_ids: np.ndarray
    trees: np.ndarray
    rows: np.ndarray
    k: int
    by_gap: bool
    ordered: np.ndarray
    people: np.ndarray


class Waiting(NamedTuple):
    """Records that come, or slots to wait in.

    seq, people: (n,) int64. values: (n, d) float64. codes: (d, n) int32. held, lacking: (n,) bool,
    who waits, and who lacks a value; of records that come, `held` says nothing.
    """

    seq: np.ndarray
    people: np.ndarray
    values: np.ndarray
    codes: np.ndarray
    held: np.ndarray
    lacking: np.ndarray


@outer
def leaf_of(target, k, by_gap, codes, subject_ids, held, trees, cuts, free, refused, rows, path):
    """Goes from the root to the leaf of the record in slot `target`.

    A cut that does not leave k people on both sides is dropped with all cuts below it. New ones are
    made while any leaves them: in the attribute over which the node's records lose most, else in
    the next; of equals in the earlier.
    refused: (depths, d + 1) bool, the attributes that may not be cut at each depth; the last: the
    cut that is there is dropped. cuts, free: changed.
    rows: (slots,) int32, changed: the slots of the records, those of a node together.
    path: (depths, 4) int32, changed: for each cut on the way the places in `rows` where its low
    side begins, where its high side begins, and where that ends; and its attribute, d for a cut
    that was there. Returns where the leaf's records begin and end in `rows`, and the number of
    cuts; 0, 0, 0 where all records are not k people.
    """
    people = np.empty(1 << bits_for(k), np.int64)
    all_ = Division(
        codes, subject_ids, trees, rows, k, by_gap, np.empty(len(rows), np.int32), people
    )
    return _leaf(target, held, cuts, free, refused, path, all_)


@outer
def arrive(arrivals, slots, k, shares, most, trees, cuts, free, depths):
    """Takes records in until the leaf of one loses at most `most` on the linear attributes.

    Cuts are at medians. arrivals: `Waiting`, whose records are put into their slots, number modulo
    slots. shares: (d,) float64, what the whole domain of each linear attribute loses, -1 for trees;
    both in units of codes. depths: a tree with room for fewer than twice so many cuts begins anew.
    Returns how many have arrived, and the slots of the leaf of the last one; no slots
    where all arrived and none of their leaves is good enough.
    """
    count = len(slots.seq)
    d = slots.codes.shape[0]
    people = np.empty(1 << bits_for(k), np.int64)
    rows = np.empty(count, np.int32)
    ordered = np.empty(count, np.int32)
    division = Division(slots.codes, slots.people, trees, rows, k, False, ordered, people)
    refused = np.zeros((depths + 1, d + 1), np.bool_)
    path = np.empty((depths + 1, 4), np.int32)
    held = slots.held & ~slots.lacking
    for i in range(len(arrivals.seq)):
        slot = arrivals.seq[i] % count
        _put(i, slot, arrivals, slots)
        held[slot] = not slots.lacking[slot]
        if slots.lacking[slot]:
            continue
        if free[0] < 2 * depths:
            _begin_anew(cuts, free)
        begin, end, _ = _leaf(slot, held, cuts, free, refused, path, division)
        if begin < end and _loss_of_numbers(begin, end, shares, division) <= most:
            return i + 1, rows[begin:end].copy()
    return len(arrivals.seq), rows[:0].copy()


@inner
def _begin_anew(cuts, free):
    """Makes the tree one leaf, its root; all other nodes are free."""
    nodes = len(free) - 1
    for node in range(cuts.shape[1]):
        cuts[ATTRIBUTE, node] = -1
    free[0] = nodes - 1
    for at in range(1, nodes):
        free[at] = nodes - at


@inner
def _put(i, slot, arrivals, slots):
    """Record i stands in the slot, and waits."""
    slots.seq[slot] = arrivals.seq[i]
    slots.people[slot] = arrivals.people[i]
    slots.lacking[slot] = arrivals.lacking[i]
    slots.held[slot] = True
    for j in range(slots.codes.shape[0]):
        slots.values[slot, j] = arrivals.values[i, j]
        slots.codes[j, slot] = arrivals.codes[j, i]


@inner
def _loss_of_numbers(begin, end, shares, division):
    """What the records' spans lose on the linear attributes."""
    loss = 0.0
    for j in range(len(shares)):
        if shares[j] >= 0.0:
            loss += min(np.float64(_width(j, begin, end, division)), shares[j])
    return loss


@inner
def _leaf(target, held, cuts, free, refused, path, all_):
    """`leaf_of`, in the division of all records."""
    codes, rows = all_.codes, all_.rows
    d = codes.shape[0]
    begin = 0
    end = 0
    for slot in range(len(held)):
        if held[slot]:
            rows[end] = slot
            end += 1
    node = np.int64(0)
    depth = 0
    if not _has_people(begin, end, all_):
        return 0, 0, 0
    while True:
        middle = -1
        if cuts[ATTRIBUTE, node] >= 0:
            path[depth, RULE] = d
            if not refused[depth, d]:
                middle = _parted(cuts[ATTRIBUTE, node], cuts[BOUND, node], begin, end, all_)
            if middle < 0:
                _drop(node, cuts, free)
        if middle < 0:
            middle = _cut(node, begin, end, refused[depth], all_, cuts, free)
            path[depth, RULE] = cuts[ATTRIBUTE, node]
        if middle < 0:
            return begin, end, depth
        path[depth, BEGIN] = begin
        path[depth, MIDDLE] = middle
        path[depth, END] = end
        depth += 1
        if codes[cuts[ATTRIBUTE, node], target] <= cuts[BOUND, node]:
            end = middle
            node = np.int64(cuts[LOW, node])
        else:
            begin = middle
            node = np.int64(cuts[HIGH, node])


@inner
def _drop(node, cuts, free):
    """Makes a node a leaf; all nodes below it are free."""
    at = free[0]
    free[at + 1] = cuts[LOW, node]
    free[at + 2] = cuts[HIGH, node]
    free[0] += 2
    cuts[ATTRIBUTE, node] = -1
    while at < free[0]:  # free nodes from here on may have cuts of their own
        at += 1
        below = free[at]
        if cuts[ATTRIBUTE, below] >= 0:
            cuts[ATTRIBUTE, below] = -1
            free[free[0] + 1] = cuts[LOW, below]
            free[free[0] + 2] = cuts[HIGH, below]
            free[0] += 2


@inner
def _cut(node, begin, end, refused, division, cuts, free):
    """Cuts a leaf if that leaves k people on both sides; where the high side begins, else -1."""
    d = division.codes.shape[0]
    widths = np.zeros(d, np.int64)
    for j in range(d):
        if not refused[j]:
            widths[j] = _width(j, begin, end, division)
    while True:
        widest = 0
        for j in range(d):
            if widths[j] > widths[widest]:
                widest = j
        if widths[widest] == 0:
            return -1
        widths[widest] = 0
        bound = _bound(widest, begin, end, division)
        middle = _parted(widest, bound, begin, end, division)
        if middle >= 0:
            cuts[ATTRIBUTE, node] = widest
            cuts[BOUND, node] = bound
            cuts[LOW, node] = free[free[0]]
            cuts[HIGH, node] = free[free[0] - 1]
            free[0] -= 2
            return middle


@inner
def _width(j, begin, end, division):
    """The loss of the span of some records on attribute j."""
    codes, rows = division.codes, division.rows
    low = codes[j, rows[begin]]
    high = low
    for at in range(begin, end):
        low = min(low, codes[j, rows[at]])
        high = max(high, codes[j, rows[at]])
    return _loss(j, low, high, division)


@inner
def _loss(j, low, high, division):
    """The loss of a span of codes of attribute j."""
    trees = division.trees
    base = trees[len(trees) - division.codes.shape[0] + j, PARENT]
    if base < 0:
        return np.int64(high) - np.int64(low)
    return np.int64(trees[_node_over(base + low, high, trees), PRICE])


@inner
def _node_over(node, leaf, trees):
    """The lowest node from `node` up that covers a leaf behind it."""
    while trees[node, LAST] < leaf:
        node = trees[node, PARENT]
    return node


@inner
def _bound(j, begin, end, division):
    """The greatest code of the low side where attribute j is cut; some codes lie above it.

    At the median, records that are equal there stay together, on the more even side.
    """
    codes, rows, trees = division.codes, division.rows, division.trees
    count = end - begin
    ordered = division.ordered[:count]
    for at in range(count):
        ordered[at] = codes[j, rows[begin + at]]
    ordered.sort()
    if division.by_gap:
        at = _widest_gap(j, ordered, division)
        if at >= 0:
            return ordered[at]
    bound = ordered[(count - 1) // 2]
    greatest = ordered[count - 1]
    base = trees[len(trees) - codes.shape[0] + j, PARENT]
    if base >= 0:  # between children of the lowest node over all
        over = _node_over(base + ordered[0], greatest, trees)
        child = base + bound
        while trees[child, PARENT] != over:
            child = trees[child, PARENT]
        bound = trees[child, LAST]
        if bound >= greatest:
            bound = trees[child, FIRST] - 1
        return bound
    below = (count - 1) // 2
    while below >= 0 and ordered[below] == bound:
        below -= 1
    above = (count - 1) // 2
    while above < count and ordered[above] == bound:
        above += 1
    if above == count or (below >= 0 and below + 1 > count - above):
        return ordered[below]
    return bound


@inner
def _widest_gap(j, ordered, division):
    """Behind which of the codes the widest gap of their middle half is; -1 where there is none."""
    count = len(ordered)
    best = -1
    widest = np.int64(0)
    for at in range(max(count // 4 - 1, 0), min(count - count // 4, count - 1)):
        if ordered[at] < ordered[at + 1]:
            gap = _loss(j, ordered[at], ordered[at + 1], division)
            if gap > widest:
                widest = gap
                best = at
    return best


@inner
def _parted(j, bound, begin, end, division):
    """Moves codes above the bound behind the others; where they begin, -1 if either side has fewer
    than k people.
    """
    codes, rows = division.codes, division.rows
    middle = begin
    for at in range(begin, end):
        slot = rows[at]
        rows[at] = rows[middle]
        rows[middle] = slot
        middle += codes[j, slot] <= bound
    if _has_people(begin, middle, division) and _has_people(middle, end, division):
        return middle
    return -1


@inner
def _has_people(begin, end, division):
    """Whether some records are of k people."""
    if end - begin < division.k:
        return False
    people, rows, subject_ids = division.people, division.rows, division.subject_ids
    shift = np.uint64(65 - bits_for(len(people)))  # the table is twice as long as its keys
    nobody = np.int64(-1)
    for place in range(len(people)):
        people[place] = nobody
    found = 0
    mask = len(people) - 1
    for at in range(begin, end):
        slot = rows[at]
        place = place_of(np.uint64(subject_ids[slot]), shift)
        while people[place] >= 0 and subject_ids[people[place]] != subject_ids[slot]:
            place = (place + 1) & mask
        if people[place] < 0:
            people[place] = slot
            found += 1
            if found == division.k:
                return True
    return False
