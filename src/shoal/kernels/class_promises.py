"""Whether a class of the local searches keeps what it promises about sensitive values.

Asked of a class as it is, or with one member replaced, gone or come: the sensitive values of its
members are gathered, in rising order where that matters, and compared with what is allowed. A class
that is asked as it is has its values sorted and kept, so that asking for a change takes O(size).
Records are counted, not people; whoever asks for more has the last word elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.closeness import (
    TREE,
    VALUES,
    TargetArrays,
    crossing_value,
    node_cost,
    parent_of,
    run_cost,
    unit_cost,
)
from shoal.kernels.compile import inner
from shoal.kernels.slots import CAPACITY

NEARLY = 1.0 - 1e-9
"""Distances are floats here: what comes so near to the limit is too far."""

NOBODY = -1


class ClassPromises(NamedTuple):
    """What every class keeps.

    targets: what t-closeness allows. values: (n, m) int32, for each further attribute the value of
    each record. least: (m,) int64, how many different values a class has at least. share: (m,)
    float64, which part of a class has the same value at most. values_gathered: (capacity + 1,)
    int64 and counts: (nodes of all trees,) int64, room to work in, the latter zeros.
    """

    targets: TargetArrays
    values: np.ndarray
    least: np.ndarray
    share: np.ndarray
    values_gathered: np.ndarray
    counts: np.ndarray
    kept: np.ndarray
    first_slot: int


@inner
def excess(c, out, new, classes, promises, shape):
    """How far class c is from keeping every promise, 0.0 where it does, times its members.

    Without slot `out` and with record `new`; -1 for none.
    """
    beyond = 0.0
    size = np.int64(0)
    for m in range(len(promises.least)):
        size = _in_order(c, out, new, promises.values, m, m, classes, promises, shape)
        beyond += _lacking(size, m, promises)
    targets = promises.targets
    for s in range(len(targets.limit)):
        if targets.layout[s, TREE] == 1:
            size = _gather(c, out, new, targets.codes, s, classes, promises, shape)
            cost = _tree_cost(size, s, promises)
        else:
            row = len(promises.least) + s
            size = _in_order(c, out, new, targets.codes, s, row, classes, promises, shape)
            cost = _order_cost(size, s, promises)
        unit = unit_cost(size, s, targets)
        beyond += max(0.0, cost - targets.limit[s] * unit * NEARLY) / unit
    return beyond * size


@inner
def _gather(c, out, new, codes, column, classes, promises, shape):
    """Puts the values of the class into `values_gathered`; returns how many there are."""
    gathered = promises.values_gathered
    first = c * shape[CAPACITY]
    size = np.int64(0)
    for e in range(first, first + classes.size[c]):
        if e != out:
            gathered[size] = codes[classes.record[e], column]
            size += 1
    if new >= 0:
        gathered[size] = codes[new, column]
        size += 1
    return size


@inner
def _in_order(c, out, new, codes, column, row, classes, promises, shape):
    """As `_gather`, rising. row: where in `kept` the class's values are; as it is, they are put
    there.
    """
    gathered, kept = promises.values_gathered, promises.kept
    first = c * shape[CAPACITY] - promises.first_slot
    if out < 0 and new < 0:
        size = _gather(c, out, new, codes, column, classes, promises, shape)
        _sort(gathered, size)
        for e in range(size):
            kept[row, first + e] = gathered[e]
        return size
    is_gone, has_come = out < 0, new < 0
    leaving = np.int64(0) if is_gone else np.int64(codes[classes.record[out], column])
    coming = np.int64(0) if has_come else np.int64(codes[new, column])
    size = np.int64(0)
    for e in range(first, first + classes.size[c]):
        value = kept[row, e]
        if not is_gone and value == leaving:
            is_gone = True
            continue
        if not has_come and coming <= value:
            gathered[size] = coming
            size += 1
            has_come = True
        gathered[size] = value
        size += 1
    if not has_come:
        gathered[size] = coming
        size += 1
    return size


@inner
def _sort(gathered, size):
    """Shell's sort of the first so many."""
    gap = 1
    while 3 * gap + 1 < size:
        gap = 3 * gap + 1
    while gap > 0:
        for e in range(gap, size):
            key = gathered[e]
            at = e
            while at >= gap and gathered[at - gap] > key:
                gathered[at] = gathered[at - gap]
                at -= gap
            gathered[at] = key
        gap //= 3


@inner
def _lacking(size, m, promises):
    """Which share of the class has to change for as many values, none of them more frequent."""
    gathered = promises.values_gathered
    distinct = np.int64(0)
    run = np.int64(0)
    longest = np.int64(0)
    for e in range(size):
        if e == 0 or gathered[e] != gathered[e - 1]:
            distinct += 1
            run = 0
        run += 1
        longest = max(longest, run)
    lacking = max(np.int64(0), promises.least[m] - distinct)
    return (lacking + max(0.0, longest - promises.share[m] * size)) / size


@inner
def _order_cost(size, s, promises):
    """What the gathered values of an ordered attribute cost, as in `closeness.refresh_class`."""
    targets, gathered = promises.targets, promises.values_gathered
    cost = np.int64(0)
    begin = np.int64(0)
    for level in range(size + 1):
        end = gathered[level] if level < size else targets.layout[s, VALUES]
        if end > begin:
            crossing = crossing_value(level, size, s, targets)
            cost += run_cost(level, crossing, begin, end, size, s, targets)
        begin = end
    return cost


@inner
def _tree_cost(size, s, promises):
    """What the nodes above the gathered values cost, every node once."""
    targets, gathered, counts = promises.targets, promises.values_gathered, promises.counts
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
