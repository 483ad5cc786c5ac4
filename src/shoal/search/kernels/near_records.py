"""Near records: an order that keeps them together, and the nearest ones of each.

rows, shape, table: as in `slots`. The records are halved again and again at the median of the
attribute that spreads farthest, times a random weight (a k-d tree); so a run of the order is a
small region, and which records share one differs with the weights.
"""

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.slots import LINEAR, PER_TREE, TREES, tree_loss


@outer
def halve(rows, shape, table, weights, leaf, order, stack):
    """Puts the numbers in `order` so that near rows come together: down to runs of `leaf`.

    weights: (draws, columns) int64, by how much the spread of each column counts in turn, one draw
    a node. order: (m,) int32, row numbers. stack: (64, 2) int64, room for the nodes still to halve.
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
        j = _widest(rows, order, begin, end, weights[node % weights.shape[0]], shape, table)
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
def _widest(rows, order, begin, end, weights, shape, table):
    """The column whose weighted spread is greatest, -1 where all rows are equal."""
    best = np.int64(0)
    at = np.int64(-1)
    for j in range(len(weights)):
        lo = rows[order[begin], j]
        hi = lo
        for i in range(begin + 1, end):
            v = rows[order[i], j]
            lo = min(lo, v)
            hi = max(hi, v)
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
    run; apart: (leaf,) int32, for how far they are.
    """
    leaf = apart.shape[0]
    for begin in range(0, len(order), leaf):
        members = min(leaf, len(order) - begin)
        for y in range(members):
            for j in range(rows.shape[1]):
                columns[j, y] = rows[order[begin + y], j]
        for x in range(members):
            _distances(columns, x, members, shape, table, apart)
            apart[x] = 2147483647
            _insert(order, begin, x, members, apart, near, distance)


@inner
def _distances(columns, x, members, shape, table, apart):
    """What a class of rows x and y loses, for every y, into `apart`."""
    linear = shape[LINEAR]
    for y in range(members):
        apart[y] = 0
    for j in range(linear):
        v = columns[j, x]
        for y in range(members):
            apart[y] += abs(columns[j, y] - v)
    for j in range(linear, linear + shape[TREES]):
        v = columns[j, x]
        leaves = shape[PER_TREE + 2 * (j - linear) + 1]
        if leaves > 0:
            # the pairs of one leaf follow one another
            row = shape[PER_TREE + 2 * (j - linear)] + v * leaves
            for y in range(members):
                apart[y] += table[row + columns[j, y]]
            continue
        for y in range(members):
            w = columns[j, y]
            apart[y] += np.int32(tree_loss(min(v, w), max(v, w), j - linear, shape, table))


@inner
def _insert(order, begin, x, members, apart, near, distance):
    """Puts the rows of the run that are nearer than the last on the list of row x into it."""
    i = order[begin + x]
    last = near.shape[1] - 1
    for y in range(members):
        if apart[y] >= distance[i, last]:
            continue
        p = order[begin + y]
        t = np.int64(0)
        while t <= last and near[i, t] != p:
            t += 1
        if t <= last:
            continue  # found in an earlier order
        t = np.int64(last)
        while t > 0 and distance[i, t - 1] > apart[y]:
            distance[i, t] = distance[i, t - 1]
            near[i, t] = near[i, t - 1]
            t -= 1
        distance[i, t] = apart[y]
        near[i, t] = p
