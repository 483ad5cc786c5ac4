"""Records without a class join the classes where they cost least.

rows: (n, d) float64, the records as points. codes, layout, prefix_sums, lookup, limit: as in
`algorithms.steps.targets.Targets`; targets as in `kernels.closeness`; head and later: the chains of
`kernels.value_chains`. sizes: (classes,) int64. means: (classes, d) float64. counts: (nodes of all
trees,) int64, zeros between calls. The excess of a class is the sum over the sensitive attributes
of max(0, distance - limit).
"""

from __future__ import annotations

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.closeness import ENOUGH, TREE, TargetArrays, unit_cost
from shoal.search.kernels.value_chains import cost_in_order, cost_in_tree


@outer
def assign_leftovers(rows, labels, classes, weight, codes, layout, prefix_sums, lookup, limit):
    """Every record without a class joins that where squared error + weight * excess grows least.

    labels: (n,) int32, -1 for records without a class; changed in place. The lower class of equals.
    """
    targets = TargetArrays(codes, layout, prefix_sums, lookup, limit)
    n, d = rows.shape
    several = len(limit)
    sizes = np.zeros(classes, np.int64)
    means = np.zeros((classes, d))
    head = np.full((several, classes), -1, np.int32)
    later = np.full((several, n), -1, np.int32)
    counts = np.zeros(len(prefix_sums), np.int64)
    excess = np.empty(classes)
    grown = np.empty(classes)
    for i in range(n):
        if labels[i] >= 0:
            _join(i, np.int64(labels[i]), rows, sizes, means, head, later, targets)
    for c in range(classes):
        excess[c] = _excess_with(np.int64(-1), head, later, c, sizes[c], counts, targets)
    for i in range(n):
        if labels[i] >= 0:
            continue
        best = np.int64(0)
        least = np.inf
        for c in range(classes):
            error = 0.0
            for j in range(d):
                error += (rows[i, j] - means[c, j]) * (rows[i, j] - means[c, j])
            error *= sizes[c] / (sizes[c] + 1.0)
            # even if the record took away all that the class exceeds by
            if error - weight * excess[c] >= least:
                continue
            grown[c] = _excess_with(i, head, later, c, sizes[c] + 1, counts, targets)
            error += weight * (grown[c] - excess[c])
            if error < least:
                best = c
                least = error
        labels[i] = best
        excess[best] = grown[best]
        _join(i, best, rows, sizes, means, head, later, targets)


@inner
def _join(i, c, rows, sizes, means, head, later, targets):
    """Puts record i into class c, and into the chains of the class by rising values."""
    codes = targets.codes
    sizes[c] += 1
    for j in range(rows.shape[1]):
        means[c, j] += (rows[i, j] - means[c, j]) / sizes[c]
    for s in range(head.shape[0]):
        before = -1
        at = np.int64(head[s, c])
        while at >= 0 and codes[at, s] < codes[i, s]:
            before = at
            at = np.int64(later[s, at])
        later[s, i] = at
        if before < 0:
            head[s, c] = i
        else:
            later[s, before] = i


@inner
def _excess_with(extra, head, later, c, size, counts, targets):
    """The excess of class c, which has `size` records, `extra` among them unless it is -1."""
    result = 0.0
    for s in range(len(targets.limit)):
        if targets.layout[s, TREE] == 1:
            cost = cost_in_tree(head[s, c], later, extra, size, s, counts, targets)
        else:
            cost = cost_in_order(head[s, c], later, extra, size, s, targets)
        apart = cost / unit_cost(max(size, 1), s, targets)
        result += max(0.0, apart - targets.limit[s] - ENOUGH)
    return result
