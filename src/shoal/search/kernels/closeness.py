"""How far a class lies from the whole table, and what replacing one member changes.

The sensitive attributes are as in `search.clustering.Targets`. The cost of a class is a
whole number: its distance from the whole table times `unit_cost`.

On ordered values, a class of `size` records costs the sum over all values of
|pairs * C - size * G|, with C and G the cumulative counts of class and table. Between two values of
the class, C stands still at one level: such a run of values costs O(1) with prefix sums of G. The
sign inside |...| changes once in a run, at the value where size * G crosses pairs * level.
Replacing a member shifts only the runs between the old value and the new one, by one level. So with
prefix sums of the runs at their own level, one lower and one higher, every replacement costs O(1),
however many values the table has.

On a tree, a class costs the sum over the nodes above its records of what it holds there
beyond its share, times the edge above the node.
"""

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inner

TREE, FIRST, VALUES, STEP, PAIRS, SPAN = range(6)
"""The columns of `layout`."""

ENOUGH = 1e-12
"""Distances are compared as floats; rounding must not fail a class."""


class TargetArrays(NamedTuple):
    """What `Targets.arrays` holds of S sensitive attributes: the table, and how far is allowed.

    codes: (n, S) int32, value or leaf of each record.
    layout: (S, 6) int64, where each attribute's numbers are and their kind; see the columns above.
    prefix_sums, lookup: int64 and int32, the whole table on all attributes, one after the other.
    limit: (S,) float64, the greatest distance allowed.
    """

    codes: np.ndarray
    layout: np.ndarray
    prefix_sums: np.ndarray
    lookup: np.ndarray
    limit: np.ndarray


class Runs(NamedTuple):
    """What is kept of classes so that a replacement costs O(1). All arrays are int64.

    Class c has the records members[start[c] : start[c + 1]]; a position is a place in `members`.
    Its part of `values` and `sums` begins at its base, which is start[c] + 2 * c.
    values: (S, members + 2 * classes), per class 0, the codes of its records in rising order, and
        the number of values of the attribute.
    sums: (S, 3, members + 2 * classes), per class prefix sums of its runs: at one level lower than
        their own, at their own, and at one level higher.
    rank: (S, members), by position, where the record is in the rising order of its class, from 1.
    cost: (S, classes).
    order: (members,), room to sort in.
    """

    values: np.ndarray
    sums: np.ndarray
    rank: np.ndarray
    cost: np.ndarray
    order: np.ndarray


@inner
def unit_cost(size, s, targets):
    """What a class of `size` records costs at distance 1 on attribute s.

    Divide by it where the distance is needed: a helper that divides, and so may raise, would make
    Numba count references to every array around it.
    """
    layout = targets.layout
    return np.float64(layout[s, PAIRS]) * size * layout[s, SPAN]


# Attributes of ordered values


@inner
def run_cost(level, crossing, begin, end, size, s, targets):
    """Sum of |pairs * level - size * G| over values begin..end-1. crossing: `crossing_value`."""
    layout, prefix_sums = targets.layout, targets.prefix_sums
    crossing = min(max(crossing, begin), end)
    first = layout[s, FIRST]
    below = prefix_sums[first + crossing] - prefix_sums[first + begin]
    above = prefix_sums[first + end] - prefix_sums[first + crossing]
    return layout[s, PAIRS] * level * (2 * crossing - begin - end) + size * (above - below)


@inner
def crossing_value(level, size, s, targets):
    """The first value at which size * G reaches pairs * level."""
    layout = targets.layout
    if level <= 0:
        return np.int64(0)
    if level >= size:
        return layout[s, VALUES]
    # the pair that is the ceil(pairs * level / size)-th in rising order has that value
    nth = (layout[s, PAIRS] * level + size - 1) // size
    return np.int64(targets.lookup[layout[s, STEP] + nth - 1])


@inner
def _run_at(level, begin, end, size, s, targets):
    """`run_cost` where it is not known at which value it crosses."""
    return run_cost(level, crossing_value(level, size, s, targets), begin, end, size, s, targets)


@inner
def members_up_to(y, base, size, s, runs):
    """How many members of a class have a value of at most y, by halving."""
    values = runs.values
    low = 0
    high = size
    while low < high:
        middle = (low + high + 1) // 2
        if values[s, base + middle] <= y:
            low = middle
        else:
            high = middle - 1
    return low


@inner
def change_below(y, p, base, size, s, runs, targets):
    """How the cost changes when a record of value y replaces one of the p members not above y.

    Add sums[s, 1, base + r] - sums[s, 0, base + r] for the rank r of the one replaced: the runs
    from its value up to y fall by one level.
    """
    sums = runs.sums
    begin = runs.values[s, base + p]
    change = _run_at(p - 1, begin, y, size, s, targets)
    change -= _run_at(p, begin, y, size, s, targets)
    return change + sums[s, 0, base + p] - sums[s, 1, base + p]


@inner
def change_above(y, p, base, size, s, runs, targets):
    """How the cost changes when a record of value y replaces a member above y; p are not above y.

    Add sums[s, 2, base + r] - sums[s, 1, base + r] for the rank r of the one replaced: the runs
    from y up to its value rise by one level.
    """
    sums = runs.sums
    end = runs.values[s, base + p + 1]
    change = _run_at(p + 1, y, end, size, s, targets)
    change -= _run_at(p, y, end, size, s, targets)
    return change + sums[s, 1, base + p + 1] - sums[s, 2, base + p + 1]


# Attributes of trees; counts: (nodes of all trees,) int64, records of the class below each node


@inner
def node_cost(count, node, size, s, targets):
    """What a node adds to the cost when it holds `count` records of the class."""
    layout, prefix_sums = targets.layout, targets.prefix_sums
    at = layout[s, FIRST] + node
    beyond = max(np.int64(0), layout[s, PAIRS] * count - size * prefix_sums[at])
    return prefix_sums[at + layout[s, VALUES]] * beyond


@inner
def change_at_node(by, node, size, s, counts, targets):
    """How the cost changes when a node comes to hold `by` records more."""
    held = counts[targets.layout[s, FIRST] + node]
    now = node_cost(held, node, size, s, targets)
    return node_cost(held + by, node, size, s, targets) - now


@inner
def parent_of(node, s, targets):
    """The node above, -1 above the root."""
    return np.int64(targets.lookup[targets.layout[s, STEP] + node])


@inner
def count_members(by, members, start, c, counts, targets):
    """Adds `by` for each member of class c at every node above it."""
    codes, layout = targets.codes, targets.layout
    for s in range(layout.shape[0]):
        if layout[s, TREE] == 1:
            for e in range(start[c], start[c + 1]):
                node = np.int64(codes[members[e], s])
                while node >= 0:
                    counts[layout[s, FIRST] + node] += by
                    node = parent_of(node, s, targets)


@inner
def _cost_of_tree(members, start, c, s, counts, targets):
    """What the nodes above the members, which are counted, cost; every node once."""
    codes, layout = targets.codes, targets.layout
    size = start[c + 1] - start[c]
    cost = np.int64(0)
    for e in range(start[c], start[c + 1]):
        node = np.int64(codes[members[e], s])
        while node >= 0:
            at = layout[s, FIRST] + node
            if counts[at] > 0:
                cost += node_cost(counts[at], node, size, s, targets)
                counts[at] = -counts[at]  # marks the node as added
            node = parent_of(node, s, targets)
    for e in range(start[c], start[c + 1]):
        node = np.int64(codes[members[e], s])
        while node >= 0:
            at = layout[s, FIRST] + node
            counts[at] = abs(counts[at])
            node = parent_of(node, s, targets)
    return cost


# Both


def runs_of(records, classes, several):
    """Empty `Runs` of classes with this number of records in all; `refresh_class` fills them in."""
    return Runs(
        np.zeros((several, records + 2 * classes), np.int64),
        np.zeros((several, 3, records + 2 * classes), np.int64),
        np.zeros((several, records), np.int64),
        np.zeros((several, classes), np.int64),
        np.zeros(records, np.int64),
    )


@inner
def refresh_class(members, start, c, runs, counts, targets):
    """Computes the cost of class c, and its runs, after its members changed.

    The members are counted in `counts` from then on, until `count_members` by -1.
    """
    layout, values, sums = targets.layout, runs.values, runs.sums
    size = start[c + 1] - start[c]
    base = start[c] + 2 * c
    count_members(np.int64(1), members, start, c, counts, targets)
    for s in range(layout.shape[0]):
        if layout[s, TREE] == 1:
            runs.cost[s, c] = _cost_of_tree(members, start, c, s, counts, targets)
            continue
        _sort_values(members, start, c, s, runs, targets)
        for shift in range(3):  # one level lower, at its own level, one higher
            running = np.int64(0)
            for j in range(size + 1):  # run j lies behind j members
                sums[s, shift, base + j] = running
                end = values[s, base + j + 1]
                running += _run_at(j + shift - 1, values[s, base + j], end, size, s, targets)
            sums[s, shift, base + size + 1] = running
        runs.cost[s, c] = sums[s, 1, base + size + 1]


@inner
def _sort_values(members, start, c, s, runs, targets):
    """Fills in the values and ranks of class c on an ordered attribute."""
    values, rank, codes = runs.values, runs.rank, targets.codes
    first = start[c]
    size = start[c + 1] - first
    base = first + 2 * c
    for e in range(size):
        values[s, base + e + 1] = codes[members[first + e], s]
    order = runs.order[first : first + size]
    sort_in_place(values[s, base + 1 : base + size + 1], order)
    for e in range(size):
        rank[s, first + order[e]] = e + 1
    values[s, base] = 0
    values[s, base + size + 1] = targets.layout[s, VALUES]


@inner
def sort_in_place(keys, order):
    """Sorts n int64 keys by Shell's sort; `order`: int64, which one came to each place."""
    n = len(keys)
    for at in range(n):
        order[at] = at
    gap = 1
    while 3 * gap + 1 < n:
        gap = 3 * gap + 1
    while gap > 0:
        for e in range(gap, n):
            key = keys[e]
            moved = order[e]
            at = e
            while at >= gap and keys[at - gap] > key:
                keys[at] = keys[at - gap]
                order[at] = order[at - gap]
                at -= gap
            keys[at] = key
            order[at] = moved
        gap //= 3
