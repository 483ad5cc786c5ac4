"""Whether a class of the local searches keeps what it promises about sensitive values.

Asked of a class as it is, or with one member replaced, gone or come. Of every class its sensitive
values are kept in rising order, and what they cost. A replaced member changes the cost only between
the old value and the new one, or at the nodes above one of the two; where the size changes, so does
every term, and all are added up anew. The outcome is the same whole number either way.
Records are counted, not people; whoever asks for more has the last word elsewhere.
"""

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inlined, inner
from shoal.search.kernels.closeness import (
    STEP,
    TREE,
    VALUES,
    TargetArrays,
    node_cost,
    parent_of,
    run_cost,
    sort_in_place,
    unit_cost,
)
from shoal.search.kernels.slots import CAPACITY

NEARLY = 1.0 - 1e-9
"""Distances are floats here: what comes so near to the limit is too far."""

NOBODY = -1

LARGEST = 256
"""Members of a class that is asked: of more, asking takes longer than it brings."""


class ClassPromises(NamedTuple):
    """What every class keeps, and what is known of the classes first..end - 1.

    targets: what t-closeness allows. values: (n, m) int32, for each further attribute the value of
    each record. least: (m,) int64, how many different values a class has at least. share: (m,)
    float64, which part of a class has the same value at most.
    crossings: (S, most + 2, most + 2) int32, `closeness.crossing_value` of ordered attributes by
    size and level; most: the members of a class that is asked. spans: (2, entries of lookup) int32,
    of each node of a tree the first and the last leaf.
    kept: (m + S, slots) int64, the values of each class in rising order. known: (2 m + S,
    classes + 1) int64: how many different values, how often the most frequent one, of each m; then
    what each attribute of `targets` costs; last, the same of what was asked last. beyond:
    (classes,) float64, the excess. gathered: (capacity + 1,) int64 and counts: (nodes of a tree,)
    int64, room to work in, the latter zeros.
    """

    targets: TargetArrays
    values: np.ndarray
    least: np.ndarray
    share: np.ndarray
    crossings: np.ndarray
    spans: np.ndarray
    kept: np.ndarray
    known: np.ndarray
    beyond: np.ndarray
    gathered: np.ndarray
    counts: np.ndarray
    first: int


@inner
def learn(c, classes, promises, shape):
    """Takes down the values of class c as it is, what they cost and what is beyond."""
    kept = promises.kept
    begin = (c - promises.first) * shape[CAPACITY]
    further = len(promises.least)
    for row in range(kept.shape[0]):
        for e in range(classes.size[c]):
            i = classes.record[c * shape[CAPACITY] + e]
            if row < further:
                kept[row, begin + e] = promises.values[i, row]
            else:
                kept[row, begin + e] = promises.targets.codes[i, row - further]
        sort_in_place(kept[row, begin : begin + classes.size[c]], promises.gathered)
    keep(c, np.int64(NOBODY), np.int64(NOBODY), classes, promises, shape)


@inner
def keep(c, out, new, classes, promises, shape):
    """Class c, as it still is, is about to lose record `out` and get record `new`; -1 for none."""
    at = c - promises.first
    begin = at * shape[CAPACITY]
    further = len(promises.least)
    promises.beyond[at] = excess(c, out, new, classes, promises, shape, np.bool_(True))
    for row in range(promises.kept.shape[0]):
        if row < further:
            leaving, coming = _of(out, promises.values, row), _of(new, promises.values, row)
        else:
            codes = promises.targets.codes
            leaving, coming = _of(out, codes, row - further), _of(new, codes, row - further)
        size = _changed(row, begin, classes.size[c], leaving, coming, promises)
        for e in range(size):
            promises.kept[row, begin + e] = promises.gathered[e]
    known = promises.known
    for row in range(known.shape[0]):  # what was asked last is what the class is like
        known[row, at] = known[row, known.shape[1] - 1]


@inlined
def excess(c, out, new, classes, promises, shape, exactly):
    """How far class c is from keeping every promise, 0.0 where it does, times its members.

    Without record `out` and with record `new`; -1 for none. exactly: whether all that is known of a
    class is found out about what is asked.
    """
    begin = (c - promises.first) * shape[CAPACITY]
    beyond = 0.0
    size = classes.size[c]
    after = size - np.int64(out >= 0) + np.int64(new >= 0)
    for m in range(len(promises.least)):
        if exactly or not _surely_diverse(c, m, after, promises):
            leaving, coming = _of(out, promises.values, m), _of(new, promises.values, m)
            _changed(m, begin, size, leaving, coming, promises)
            beyond += _lacking(after, m, promises)
    targets, known = promises.targets, promises.known
    for s in range(len(targets.limit)):
        row = 2 * len(promises.least) + s
        leaving, coming = _of(out, targets.codes, s), _of(new, targets.codes, s)
        if out >= 0 and new >= 0:
            cost = known[row, c - promises.first]
            if targets.layout[s, TREE] == 1:
                cost += _change_in_tree(begin, size, leaving, coming, s, promises)
            else:
                cost += _change_in_order(begin, size, leaving, coming, s, promises)
        else:
            _changed(len(promises.least) + s, begin, size, leaving, coming, promises)
            if targets.layout[s, TREE] == 1:
                cost = _tree_cost(after, s, promises)
            else:
                cost = _order_cost(after, s, promises)
        known[row, known.shape[1] - 1] = cost
        unit = unit_cost(after, s, targets)
        beyond += np.divide(max(0.0, cost - targets.limit[s] * unit * NEARLY), unit)
    return beyond * after


@inlined
def _of(i, values, column):
    """The value of record i, -1 if it has no value."""
    return np.int64(values[i, column]) if i >= 0 else np.int64(-1)


@inner
def _changed(row, begin, size, leaving, coming, promises):
    """Gathers the kept values in rising order, without `leaving` and with `coming`; returns how
    many there are. -1: none leaves or comes.
    """
    gathered, kept = promises.gathered, promises.kept
    is_gone, has_come = leaving < 0, coming < 0
    after = np.int64(0)
    for e in range(begin, begin + size):
        value = kept[row, e]
        if not is_gone and value == leaving:
            is_gone = True
            continue
        if not has_come and coming <= value:
            gathered[after] = coming
            after += 1
            has_come = True
        gathered[after] = value
        after += 1
    if not has_come:
        gathered[after] = coming
        after += 1
    return after


@inlined
def _surely_diverse(c, m, after, promises):
    """Whether no change of one member leaves class c with too few values, or one too frequent."""
    at = c - promises.first
    longest = promises.known[2 * m + 1, at] + 1
    enough = promises.known[2 * m, at] - 1 >= promises.least[m]
    return enough and longest <= promises.share[m] * after


@inlined
def _lacking(size, m, promises):
    """Which share of the class has to change for as many values, none of them more frequent."""
    gathered, known = promises.gathered, promises.known
    distinct = np.int64(0)
    run = np.int64(0)
    longest = np.int64(0)
    for e in range(size):
        if e == 0 or gathered[e] != gathered[e - 1]:
            distinct += 1
            run = 0
        run += 1
        longest = max(longest, run)
    known[2 * m, known.shape[1] - 1] = distinct
    known[2 * m + 1, known.shape[1] - 1] = longest
    lacking = max(np.int64(0), promises.least[m] - distinct)
    return np.divide(lacking + max(0.0, longest - promises.share[m] * size), np.float64(size))


@inlined
def _order_cost(size, s, promises):
    """What the gathered values of an ordered attribute cost, as in `closeness.refresh_class`."""
    targets, gathered = promises.targets, promises.gathered
    cost = np.int64(0)
    begin = np.int64(0)
    for level in range(size + 1):
        end = gathered[level] if level < size else targets.layout[s, VALUES]
        if end > begin:
            crossing = np.int64(promises.crossings[s, size, level])
            cost += run_cost(level, crossing, begin, end, size, s, targets)
        begin = end
    return cost


@inlined
def _change_in_order(first, size, leaving, coming, s, promises):
    """How the cost changes when a member of one value is replaced by one of another.

    Only the runs between the two change: they fall by one level where the new value is greater,
    else they rise by one.
    """
    targets = promises.targets
    values = promises.kept[len(promises.least) + s]
    begin, last = min(leaving, coming), max(leaving, coming)
    by = np.int64(-1) if coming > leaving else np.int64(1)
    level = np.int64(0)
    for e in range(first, first + size):
        level += np.int64(values[e] <= begin)
    change = np.int64(0)
    while begin < last:
        end = min(values[first + level], last) if level < size else last
        if end > begin:
            crossing = np.int64(promises.crossings[s, size, level + by])
            change += run_cost(level + by, crossing, begin, end, size, s, targets)
            crossing = np.int64(promises.crossings[s, size, level])
            change -= run_cost(level, crossing, begin, end, size, s, targets)
        begin = end
        level += 1
    return change


@inlined
def _tree_cost(size, s, promises):
    """What the nodes above the gathered values cost, every node once."""
    targets, gathered, counts = promises.targets, promises.gathered, promises.counts
    for e in range(size):
        node = np.int64(gathered[e])
        while node >= 0:
            counts[node] += 1
            node = parent_of(node, s, targets)
    cost = np.int64(0)
    for e in range(size):
        node = np.int64(gathered[e])
        while node >= 0 and counts[node] > 0:
            cost += node_cost(counts[node], node, size, s, targets)
            counts[node] = 0
            node = parent_of(node, s, targets)
    return cost


@inlined
def _change_in_tree(first, size, leaving, coming, s, promises):
    """How the cost changes when a member moves from one leaf to another: at nodes over just one."""
    change = np.int64(0)
    if leaving == coming:
        return change
    for by in (-1, 1):
        node, other = (leaving, coming) if by < 0 else (coming, leaving)
        while node >= 0:
            begin = promises.spans[0, promises.targets.layout[s, STEP] + node]
            end = promises.spans[1, promises.targets.layout[s, STEP] + node]
            if begin <= other and other <= end:
                break  # over both, and so is all above
            held = _within(begin, end, first, size, s, promises)
            change -= node_cost(held, node, size, s, promises.targets)
            change += node_cost(held + by, node, size, s, promises.targets)
            node = parent_of(node, s, promises.targets)
    return change


@inlined
def _within(begin, end, first, size, s, promises):
    values = promises.kept[len(promises.least) + s]
    held = np.int64(0)
    for e in range(first, first + size):
        held += np.int64(values[e] >= begin) & np.int64(values[e] <= end)
    return held
