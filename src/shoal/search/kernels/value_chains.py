"""Classes as chains of records in ascending order of their values; those too far from the table
merge with near ones until none is.

Chains merge, and take in a record, in linear time.

Throughout: targets as in `kernels.closeness`; head (S, classes) int32, the first record of each
class on each sensitive attribute, and later (S, n) int32, the record that follows each one in its
class; -1 for none. counts (nodes of all trees,) int64, zeros before and after. The excess of a
class is the greatest distance - limit over the attributes, -1 where nothing is asked: a class is
close enough when it is at most 0.

points: (d, n) float64. labels: (n,) int32, the class of each record. codes, layout, prefix_sums,
lookup, limit: as in `search.clustering.Targets`. sizes: (classes,) int64 and total:
(classes, d) float64, records of each class and the sum of their points; a class of size 0 has
merged away.
"""

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.closeness import (
    ENOUGH,
    FIRST,
    TREE,
    VALUES,
    TargetArrays,
    crossing_value,
    node_cost,
    parent_of,
    run_cost,
    sort_in_place,
    unit_cost,
)

FEW = 16
"""Records are sorted, not bucketed, where values are more than records by this factor."""


@inner
def chains_of(labels, classes, targets):
    """Links the records of every class in rising order of their values, from the greatest down."""
    codes, layout = targets.codes, targets.layout
    n = len(labels)
    several = layout.shape[0]
    head = np.full((several, classes), -1, np.int32)
    later = np.full((several, n), -1, np.int32)
    for s in range(several):
        if n * FEW < layout[s, VALUES]:
            order = np.empty(n, np.int64)
            sort_in_place(codes[:, s].astype(np.int64), order)
        else:
            order = _sorted_by_counting(s, targets)
        for at in range(n - 1, -1, -1):
            i = order[at]
            if labels[i] >= 0:
                later[s, i] = head[s, labels[i]]
                head[s, labels[i]] = i
    return head, later


@inner
def _sorted_by_counting(s, targets):
    """The records in rising order of their values, (n,) int64."""
    codes = targets.codes
    n = codes.shape[0]
    begin = np.zeros(targets.layout[s, VALUES] + 1, np.int64)  # where each value begins
    for i in range(n):
        begin[codes[i, s] + 1] += 1
    for value in range(targets.layout[s, VALUES]):
        begin[value + 1] += begin[value]
    order = np.empty(n, np.int64)
    for i in range(n):
        order[begin[codes[i, s]]] = i
        begin[codes[i, s]] += 1
    return order


@inner
def merged_chain(a, b, s, later, targets):
    """The head of the chain of both, on attribute s; ties to chain a."""
    codes = targets.codes
    if a < 0 or b < 0:
        return max(a, b)
    if codes[b, s] < codes[a, s]:
        head = b
        b = later[s, b]
    else:
        head = a
        a = later[s, a]
    tail = head
    while a >= 0 and b >= 0:
        if codes[b, s] < codes[a, s]:
            later[s, tail] = b
            tail = b
            b = later[s, b]
        else:
            later[s, tail] = a
            tail = a
            a = later[s, a]
    later[s, tail] = a if a >= 0 else b
    return head


@inner
def measure_chains(begin, end, head, later, sizes, counts, excess, targets):
    """Fills in the excess of classes begin..end - 1. sizes: (classes,) int64, records of each."""
    for c in range(begin, end):
        greatest = -1.0
        for s in range(len(targets.limit)):
            first = head[s, c]
            if targets.layout[s, TREE] == 1:
                cost = cost_in_tree(first, later, np.int64(-1), sizes[c], s, counts, targets)
            else:
                cost = cost_in_order(first, later, np.int64(-1), sizes[c], s, targets)
            apart = cost / unit_cost(max(sizes[c], 1), s, targets)
            greatest = max(greatest, apart - targets.limit[s])
        excess[c] = greatest


@inner
def cost_in_order(head, later, extra, size, s, targets):
    """The cost of a chain of `size` on ordered attribute s, with record `extra` unless -1."""
    codes = targets.codes
    cost = np.int64(0)
    level = np.int64(0)
    value = np.int64(0)
    i = np.int64(head)
    waiting = extra >= 0
    while i >= 0 or waiting:
        if waiting and (i < 0 or codes[extra, s] <= codes[i, s]):
            following = np.int64(codes[extra, s])
            waiting = False
        else:
            following = np.int64(codes[i, s])
            i = np.int64(later[s, i])
        if following > value:
            crossing = crossing_value(level, size, s, targets)
            cost += run_cost(level, crossing, value, following, size, s, targets)
            value = following
        level += 1
    crossing = crossing_value(level, size, s, targets)
    return cost + run_cost(level, crossing, value, targets.layout[s, VALUES], size, s, targets)


@inner
def cost_in_tree(head, later, extra, size, s, counts, targets):
    """The cost of a chain on tree s, together with record `extra` unless it is -1."""
    codes, first = targets.codes, targets.layout[s, FIRST]
    cost = np.int64(0)
    for step in range(3):  # count every node above a record, add what each costs once, clear
        i = np.int64(head)
        waiting = extra >= 0
        while i >= 0 or waiting:
            if i < 0:
                i = extra
                waiting = False
            node = np.int64(codes[i, s])
            while node >= 0:
                at = first + node
                if step == 0:
                    counts[at] += 1
                elif step == 1 and counts[at] > 0:
                    cost += node_cost(counts[at], node, size, s, targets)
                    counts[at] = -counts[at]  # marks the node as added
                elif step == 2:
                    counts[at] = 0
                node = parent_of(node, s, targets)
            i = np.int64(later[s, i]) if i != extra else np.int64(-1)
    return cost


@outer
def merge_far(points, labels, classes, codes, layout, prefix_sums, lookup, limit):
    """While the farthest class is too far from the table, it merges with that of the nearest mean.

    Equally far or near classes go to the lower number; a union keeps the lower number of the two.
    Returns the class of each record with gaps where classes merged away, (n,) int32.
    """
    targets = TargetArrays(codes, layout, prefix_sums, lookup, limit)
    d, n = points.shape
    into = np.arange(classes)
    sizes = np.zeros(classes, np.int64)
    total = np.zeros((classes, d))
    for i in range(n):
        sizes[labels[i]] += 1
        for j in range(d):
            total[labels[i], j] += points[j, i]
    head, later = chains_of(labels, classes, targets)
    counts = np.zeros(len(prefix_sums), np.int64)
    excess = np.empty(classes)
    measure_chains(np.int64(0), classes, head, later, sizes, counts, excess, targets)
    for _ in range(classes - 1):
        worst = _farthest_class(excess, sizes)
        if excess[worst] <= ENOUGH:
            break
        nearest = _nearest_class(worst, sizes, total)
        kept = min(worst, nearest)
        other = max(worst, nearest)
        for j in range(d):
            total[kept, j] += total[other, j]
        for s in range(len(limit)):
            head[s, kept] = merged_chain(head[s, kept], head[s, other], s, later, targets)
        sizes[kept] += sizes[other]
        sizes[other] = 0
        into[other] = kept
        measure_chains(kept, kept + 1, head, later, sizes, counts, excess, targets)
    for c in range(classes):
        into[c] = into[into[c]]  # a class only ever goes into a lower number
    result = np.empty(n, np.int32)
    for i in range(n):
        result[i] = into[labels[i]]
    return result


@inner
def _farthest_class(excess, sizes):
    worst = 0
    for c in range(len(sizes)):
        if sizes[c] > 0 and (sizes[worst] == 0 or excess[c] > excess[worst]):
            worst = c
    return worst


@inner
def _nearest_class(a, sizes, total):
    best = -1
    least = np.inf
    for c in range(len(sizes)):
        if c != a and sizes[c] > 0:
            apart = 0.0
            for j in range(total.shape[1]):
                between = total[c, j] / sizes[c] - total[a, j] / sizes[a]
                apart += between * between
            if apart < least or best < 0:
                best = c
                least = apart
    return best
