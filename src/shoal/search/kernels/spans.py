"""What a span of codes costs, shared by every kernel that prices boxes of records, and how many
records a cut may put on its low side: the sizes of the rounded partition function.

costs: (d + nodes, 3) float64, all that a `Matrix` says about costs in one table; see
    `search.segments`. The first d rows are the attributes: loss per unit of code, row of the
    first node of its hierarchy or -1, nothing. The others are the nodes: row of the parent or -1,
    last leaf covered, loss. Row numbers and leaves are the bits of an int64: converting them from
    floats would cost more than all the rest of a climb. The node of leaf code c of an attribute is
    c rows below its first node.
"""

import numpy as np

from shoal.data.numba_kernels import inner


@inner
def first_node(j, costs):
    """The row of attribute j's first node, negative for linear attributes."""
    return np.float64(costs[j, 1]).view(np.int64)


@inner
def last_leaf(node, costs):
    return np.float64(costs[node, 1]).view(np.int64)


@inner
def parent_of(node, costs):
    return np.float64(costs[node, 0]).view(np.int64)


@inner
def span_loss(lo, hi, j, costs):
    """Loss of publishing lo..hi on attribute j."""
    first = np.float64(costs[j, 1]).view(np.int64)
    if first < 0:
        return (hi - lo) * costs[j, 0]
    # a tree: climb from the leaf `lo` to the lowest node that covers `hi` too; unsigned rows are
    # not checked for counting from the end
    node = np.uint64(first + lo)
    while np.float64(costs[node, 1]).view(np.int64) < hi:
        node = np.uint64(np.float64(costs[node, 0]).view(np.int64))
    return costs[node, 2]


@inner
def box_loss(lo, hi, a, other_lo, other_hi, b, costs):
    """Loss of the least box that covers lo[a]..hi[a] and other_lo[b]..other_hi[b].

    lo, hi, other_lo, other_hi: (boxes, d) int32. A record is a box whose bounds are its codes.
    """
    total = 0.0
    for j in range(lo.shape[1]):
        low = min(lo[a, j], other_lo[b, j])
        high = max(hi[a, j], other_hi[b, j])
        total += span_loss(low, high, j, costs)
    return total


@inner
def widen(lo, hi, b, item_lo, item_hi, i):
    """Box b grows to cover box i of item_lo, item_hi."""
    for j in range(lo.shape[1]):
        lo[b, j] = min(lo[b, j], item_lo[i, j])
        hi[b, j] = max(hi[b, j], item_hi[i, j])


# Moving whole records: rows of a matrix, (n, columns), one record each.


@inner
def swap_rows(rows, a, b):
    for c in range(rows.shape[1]):
        rows[a, c], rows[b, c] = rows[b, c], rows[a, c]


@inner
def copy_row(source, a, target, b):
    """Row a of `source` into row b of `target`."""
    for c in range(source.shape[1]):
        target[b, c] = source[a, c]


# as plain numbers they would compile a function that takes one of them once more for each
SAME = np.int64(0)
"""Both halves of alpha and of beta are rounded up: the paper's figure 4."""
CROSS = np.int64(1)
"""Half of alpha is rounded up, half of beta down."""
PROPORTIONAL = np.int64(2)
"""Half of the classes, and their share of the records."""

LEAST_SHARE = 1 / 16  # of a node's records on either side of an admissible cut


@inner
def lower_size(m, k, sizes):
    """Records on the low side of a cut of m = alpha * k + beta: the rounded partition function."""
    alpha = m // k
    beta = m - alpha * k
    if sizes == SAME:
        return ((alpha + 1) // 2) * k + (beta + 1) // 2
    if sizes == CROSS:
        return ((alpha + 1) // 2) * k + beta // 2
    half = alpha - alpha // 2
    return half * (m // alpha) + ((m % alpha) * half) // alpha


@inner
def nearest_admissible(c, m, k):
    """The admissible size of a cut of m rows that is nearest to c and leaves enough on either side.

    A cut of c rows is admissible when c mod k <= m mod k: then both sides together still hold
    m // k classes. Enough: k rows, and LEAST_SHARE of all.
    """
    low = max(int(m * LEAST_SHARE), k)
    c = min(max(c, low), m - low)
    over = c % k
    rem = m % k
    if over > rem:
        c += rem - over if over - rem <= k - over else k - over
    return c
