"""Near records: an order that keeps them together, and the nearest ones of each.

rows, shape, table: as in `slots`. The records are halved again and again at the median of the
attribute that spreads farthest, times a random weight (a k-d tree); so a run of the order is a
small region, and which records share one differs with the weights.
"""

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.slots import LINEAR, PER_TREE, TREES, tree_loss


@outer
def halve(rows, shape, table, weights, leaf, order, stack, reach):
    """Puts the numbers in `order` so that near rows come together: down to runs of `leaf`.

    weights: (draws, columns) int64, by how much the spread of each column counts in turn, one draw
    a node. order: (m,) int32, row numbers. stack: (64, 2) int64, room for the nodes still to halve.
    reach: (2, columns) int32, room for what a node reaches.
    """
    stack[0, 0] = 0
    stack[0, 1] = len(order)
    depth = 1
    node = np.int64(0)
    while depth > 0:
        depth -= 1
        begin = stack[depth, 0]
        end = stack[depth, 1]
        if end - begin <= leaf:
            continue
        turn = weights[node % weights.shape[0]]
        j = _widest(rows, order[begin:end], turn, shape, table, reach)
        node += 1
        if j < 0:
            continue
        # whole runs on both sides
        middle = begin + ((end - begin + leaf - 1) // leaf + 1) // 2 * leaf
        _part(rows, order, begin, end, middle, j)
        stack[depth, 0] = begin
        stack[depth, 1] = middle
        stack[depth + 1, 0] = middle
        stack[depth + 1, 1] = end
        depth += 2


@inner
def _widest(rows, order, weights, shape, table, reach):
    """The column whose weighted spread is greatest, -1 where all rows are equal."""
    for j in range(rows.shape[1]):
        reach[0, j] = rows[order[0], j]
        reach[1, j] = reach[0, j]
    for i in order:
        for j in range(rows.shape[1]):
            reach[0, j] = min(reach[0, j], rows[i, j])
            reach[1, j] = max(reach[1, j], rows[i, j])
    best = np.int64(0)
    at = np.int64(-1)
    for j in range(len(weights)):
        lo = reach[0, j]
        hi = reach[1, j]
        spread = np.int64(hi - lo)
        if j >= shape[LINEAR]:
            spread = tree_loss(lo, hi, j - shape[LINEAR], shape, table)
        if spread * weights[j] > best:
            best = spread * weights[j]
            at = np.int64(j)
    return at


@inner
def _part(rows, order, begin, end, middle, j):
    """Quickselect: what is least on column j comes before `middle`."""
    lo = begin
    hi = end - 1
    while lo < hi:
        pivot = rows[order[(lo + hi) // 2], j]
        i = lo
        m = hi
        while i <= m:
            while rows[order[i], j] < pivot:
                i += 1
            while rows[order[m], j] > pivot:
                m -= 1
            if i <= m:
                order[i], order[m] = order[m], order[i]
                i += 1
                m -= 1
        if middle <= m:
            hi = m
        elif middle >= i:
            lo = i
        else:
            return


@outer
def nearest_by_runs(rows, order, shape, table, near, distance, columns, apart):
    """For each row of a run in the order, the nearest others of that run join its list.

    near: (n, q) int32, nearest first, -1 where there is none yet. distance: (n, q) int32, how far
    they are: what a class of both loses. columns: (columns, leaf) int32, room for the rows of a
    run; apart: (2, leaf) int32, for how far they are, and how far the last on each list is.
    """
    leaf = apart.shape[1]
    farthest = apart[1]
    last = near.shape[1] - 1
    for begin in range(0, len(order), leaf):
        members = order[begin : begin + leaf]
        count = len(members)
        for y in range(count):
            farthest[y] = distance[members[y], last]
            for j in range(rows.shape[1]):
                columns[j, y] = rows[members[y], j]
        # every pair once; so each list still meets the others in their order
        for x in range(count - 1):
            _distances(columns, x, count, shape, table, apart[0])
            for y in range(x + 1, count):
                gap = apart[0, y]
                if gap < farthest[x]:
                    farthest[x] = _insert(members[y], gap, near[members[x]], distance[members[x]])
                if gap < farthest[y]:
                    farthest[y] = _insert(members[x], gap, near[members[y]], distance[members[y]])


@inner
def _distances(columns, x, count, shape, table, apart):
    """What a class of rows x and y loses, for every y after x, into `apart`."""
    linear = shape[LINEAR]
    first = x + 1
    apart = apart[first:count]
    for y in range(len(apart)):
        apart[y] = 0
    for j in range(linear):
        v = columns[j, x]
        others = columns[j, first:]
        for y in range(len(apart)):
            apart[y] += abs(others[y] - v)
    for j in range(linear, linear + shape[TREES]):
        v = columns[j, x]
        others = columns[j, first:]
        leaves = shape[PER_TREE + 2 * (j - linear) + 1]
        if leaves > 0:
            # the pairs of one leaf follow one another
            row = shape[PER_TREE + 2 * (j - linear)] + v * leaves
            for y in range(len(apart)):
                apart[y] += table[row + others[y]]
            continue
        for y in range(len(apart)):
            w = others[y]
            apart[y] += np.int32(tree_loss(min(v, w), max(v, w), j - linear, shape, table))


@inner
def _insert(row, gap, near, distance):
    """Puts a row that is nearer than the last on a list into it, if it is not there from an earlier
    order; returns how far the last is then.
    """
    last = len(near) - 1
    for t in range(last + 1):
        if near[t] == row:
            return distance[last]
    t = last
    while t > 0 and distance[t - 1] > gap:
        distance[t] = distance[t - 1]
        near[t] = near[t - 1]
        t -= 1
    distance[t] = gap
    near[t] = row
    return distance[last]
